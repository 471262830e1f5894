"""Finds the packages that plug into t2j: the rules, their helper sources, and the fixed-bug examples.

This is the only file that names ``t2j_lsp.rules`` and ``t2j_lsp.retrieval``, and it names them by
string, so that the parts which use them don't import them. Standard library only.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterator
from importlib import import_module, resources
from types import ModuleType

from t2j_lsp.fixes.record import BugIndex, Example, SimilarBugs

RULES = "t2j_lsp.rules"
RETRIEVAL = "t2j_lsp.retrieval"
HELPERS = "helpers"


@functools.cache
def load_rules() -> tuple[str, ...]:
    """Import every rule module, in the order of their names, and return those names.

    Importing a rule module registers its rules. The helpers are never imported: they are JAX code,
    which the translator copies as text.
    """
    names = tuple(_rule_modules(import_module(RULES)))
    for name in names:
        import_module(name)
    return names


def _rule_modules(package: ModuleType) -> Iterator[str]:
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        if info.name == HELPERS:
            continue
        name = f"{package.__name__}.{info.name}"
        yield name
        if info.ispkg:
            yield from _rule_modules(import_module(name))


@functools.cache
def helper_sources() -> dict[str, str]:
    """The source text of each file in ``rules/helpers``, by file name, in the order of the names."""
    folder = resources.files(RULES).joinpath(HELPERS)
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in files
        if file.name.endswith(".py") and file.name != "__init__.py"
    }


@functools.cache
def load_fixed_bugs() -> BugIndex:
    """The index over the fixed bugs that t2j brings."""
    retrieval = import_module(RETRIEVAL)
    index: BugIndex = retrieval.Index(retrieval.dataset())
    return index


def index_with(own: tuple[Example, ...]) -> BugIndex:
    """An index over the fixed bugs that t2j brings and those of the user's."""
    retrieval = import_module(RETRIEVAL)
    index: BugIndex = retrieval.Index((*retrieval.dataset(), *own))
    return index


def brought_fixed_bugs() -> tuple[Example, ...]:
    """The fixed bugs that t2j brings."""
    examples: tuple[Example, ...] = import_module(RETRIEVAL).dataset()
    return examples


def similar_bugs(own: tuple[Example, ...] = ()) -> SimilarBugs:
    """What knows which fixed bugs are really like something, among those that t2j brings and the user's."""
    retrieval = import_module(RETRIEVAL)
    known: SimilarBugs = retrieval.Similar((*retrieval.dataset(), *own))
    return known
