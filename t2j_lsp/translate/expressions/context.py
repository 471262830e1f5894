"""What the passes of one translation are handed: the source and its facts, the plan, and who writes what."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

from t2j_lsp.contract import Options
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, FunctionInfo
from t2j_lsp.translate.source.edits import Edits
from t2j_lsp.translate.source.helpers import IMPORT_ROOTS, helper_names
from t2j_lsp.translate.source.text import Source

from .plan import Plan
from .report import Report
from .scope import Scope


class Names:
    """Names that the output may introduce."""

    def __init__(self, source: Source, module_names: Collection[str], scope: Scope) -> None:
        self.source = source
        self.module_names = module_names
        """What the module level binds."""
        self.scope = scope
        self.made: set[str] = set()

    @cached_property
    def of_source(self) -> frozenset[str]:
        """Every identifier of the source, so that fresh names don't clash."""
        return self.source.symbols.names | set(dir(builtins)) | set(keyword.kwlist)

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Names that the output may use for itself."""
        return frozenset({*helper_names(), *IMPORT_ROOTS, *dir(builtins), *keyword.kwlist})

    def fresh(self, hint: str) -> str:
        """A name like ``hint`` that nothing in reach uses: not the function, not the module, no import or helper."""
        name, count = hint, 1
        taken = self.reserved | self.made
        if self.scope.functions:
            taken |= self.source.symbols.within(self.scope.functions[0].node)
            taken |= set(self.module_names)
        else:
            taken |= self.of_source
        while name in taken:
            count += 1
            name = f"{hint}{count}"
        self.made.add(name)
        return name


@dataclass
class Rngs:
    """Where the output needs ``nnx.Rngs``, and where it has one."""

    drawing: set[ast.AST]
    """Functions that turned out to need rngs while the file was rendered."""
    module: ast.stmt | None = None
    """The first module-level statement that needs rngs."""
    seeds: dict[ast.stmt, str] = field(default_factory=dict)
    asking: list[FunctionInfo] = field(default_factory=list)
    """Tests and fixtures that take the fixture ``rngs``."""


@dataclass(frozen=True)
class Context:
    """One translation: a bundle of what each of its parts owns."""

    source: Source
    inference: Inference
    options: Options
    plan: Plan
    scope: Scope
    edits: Edits
    report: Report
    names: Names
    rngs: Rngs

    @classmethod
    def of(cls, inference: Inference, options: Options, plan: Plan, drawing: set[ast.AST]) -> Context:
        """The context of a translation that is about to begin."""
        source, scope = inference.source, Scope()
        names = Names(source, inference.env, scope)
        return cls(source, inference, options, plan, scope, Edits(source), Report(source, scope), names, Rngs(drawing))

    def fact(self, node: ast.AST) -> Fact:
        return self.inference.facts.get(node, UNKNOWN)
