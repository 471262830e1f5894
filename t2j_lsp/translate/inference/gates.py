"""What a pass needs to find in a file: it isn't run on files that have nothing of it."""

from __future__ import annotations

import ast
from collections.abc import Set
from dataclasses import dataclass

from t2j_lsp.translate.rule.facts import Fact


@dataclass(frozen=True)
class Gate:
    """What a pass changes or finds something in. A file that has any of it is handed to the pass, no other file.

    Each pass states its own, next to the function that the pipeline calls; `Inference.has` answers.
    """

    kinds: frozenset[type[ast.AST]] = frozenset()
    """Kinds of nodes."""
    words: Set[str] = frozenset()
    """Names that the code writes down, whatever they mean, and the marks of writes (`Source.words`)."""
    facts: frozenset[type[Fact]] = frozenset()
    """Kinds of facts that any of its expressions has."""
    names: tuple[Set[str], ...] = ()
    """Qualified names of library objects that it uses."""
    libraries: tuple[str, ...] = ()
    """What such a name, or that of a base class, begins with."""
    objects: Set[str] = frozenset()
    """Kinds of `Object` that it has."""
