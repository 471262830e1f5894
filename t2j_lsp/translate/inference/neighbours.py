"""Other files of the project: read once for a conversion, and inferred only as far as is asked of them.

A package imports itself all over: what one file of it names leads to hundreds of others. So a name of the module level
is inferred when something asks for it, a class when an instance or a subclass is met, and a body when it is called.
"""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from t2j_lsp.contract import SourceError
from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo
from t2j_lsp.translate.rule.factory import mark_in_function
from t2j_lsp.translate.rule.facts import KERNELS, UNKNOWN, Fact, OptimizerFunction, Qual
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.optimizer_classes.function import function_text, left_over
from t2j_lsp.translate.source.scopes import Resolve, star_names
from t2j_lsp.translate.source.text import Source

from .file import Inference, Parts
from .forward_pass import Body
from .module_level import ModuleLevel
from .own_optimizers import STEP_WORD, as_function, imported_functions

MOST_FILES = 200
"""Files that are read for one conversion."""
MOST_LINES = 8_000
"""Lines of functions of other files that are inferred for one conversion."""
MOST_NESTED = 12
"""How deep functions of other files are followed that call each other."""
KEPT_CHARACTERS = 6_000_000
"""Texts whose trees are kept for later conversions of the same process; a tree takes about 35 bytes a character."""


_parsed: OrderedDict[str, ModuleLevel] = OrderedDict()
"""Trees by their text, those used last at the end. What is inferred of them is kept elsewhere, for each conversion."""


def parsed(text: str) -> ModuleLevel:
    """The module level of a text. Raises SourceError if it isn't Python."""
    level = _parsed.get(text)
    if level is None:
        level = _parsed[text] = ModuleLevel(Source(text, placed=False))
        while len(_parsed) > 1 and sum(map(len, _parsed)) > KEPT_CHARACTERS:
            _parsed.popitem(last=False)
    _parsed.move_to_end(text)
    return level


class Neighbour(Inference):
    """Facts of another file of the project, as far as something asked for them."""

    def __init__(self, level: ModuleLevel, resolve: Resolve | None, depth: int, project: Neighbours) -> None:
        self._level = level
        self.budget = project
        super().__init__(level.source, resolve, depth, project=project)

    def _run(self) -> None:
        self.state.home = self
        self.parts = Parts(self.source, self.state, self._imported)
        self._bodies = self.parts.bodies
        self._asked: set[str] = set()
        self.state.imports_torch = self._level.imports_torch

    def ask(self, name: str) -> Fact | None:
        """What the module level binds to a name, if it binds it."""
        if name not in self._asked:
            self._asked.add(name)
            for statement, read in self._level.binding(name):
                self._ask_each(read)
                self._infer(statement)
            if name not in self.env and self._level.stars and not self._is_file(name):
                self._ask_stars(name)
        return self.env.get(name)

    def ask_all(self) -> None:
        """Infer the whole file."""
        for name in self._level.binders:
            self.ask(name)
        for info in list(self.functions.values()):
            self.infer_function(info)

    def _infer(self, statement: ast.stmt) -> None:
        """Infer a statement of the module level, which a body may have asked for that is being read."""
        state = self.state
        saved = state.function, state.class_info, state.body
        state.function, state.class_info, state.body = None, None, Body()
        self.parts.declarations.declare([statement])
        if (
            isinstance(statement, ast.ClassDef)
            and (made := as_function(self.source, self.classes[statement], self.ask)) is not None
        ):
            self.env[statement.name] = made
        if not isinstance(statement, ast.ClassDef | ast.Import | ast.ImportFrom):
            self.parts.flow.statement(statement, self.env)
        if isinstance(statement, ast.FunctionDef) and statement in self._left_over:
            self.env[statement.name] = Qual(f"{KERNELS}.{statement.name}")
        state.function, state.class_info, state.body = saved

    @cached_property
    def _left_over(self) -> Sequence[ast.FunctionDef]:
        """The functions that go, as what they did stands in those of optimizers."""
        if STEP_WORD not in self.source.words:
            return []
        texts: dict[ast.ClassDef, str] = {}
        for statement in self.source.tree.body:
            if isinstance(statement, ast.ClassDef) and isinstance(self.ask(statement.name), OptimizerFunction):
                texts[statement] = function_text(self.source, statement, imported_functions(self.ask))
        return left_over(self.source, texts)

    def _ask_each(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._level.binders or self._level.stars and name in self.source.symbols.unbound:
                self.ask(name)

    def _is_file(self, name: str) -> bool:
        """Whether a package has a file of the name."""
        return self.resolve is not None and self.resolve(1, name) is not None

    def _ask_stars(self, name: str) -> None:
        """Look for a name in what the file imports everything of. An unknown module may have it as well."""
        unknown = False
        for node in self._level.stars:
            if node.level == 0 and is_torch(node.module or ""):
                fact = star_names(node.module or "").get(name)
            else:
                other = self._imported(node.level, node.module or "")
                unknown |= other is None
                fact = other.ask(name) if other is not None else None
            if fact is not None:
                self.env[name] = UNKNOWN if unknown else fact
                return

    # --- what other files ask, and what bodies of this one ask for first -----------------------------------------

    def infer_function(self, info: FunctionInfo) -> Fact:
        return self._bodies.infer_function(info)

    def infer_class(self, info: ClassInfo) -> None:
        self._bodies.infer_class(info)

    def begin(self, info: FunctionInfo) -> bool:
        if not self.budget.enter(info):
            return False
        mark_in_function(info.node)
        self._ask_each(self._level.read_by_function(info.node))
        return True

    def end(self) -> None:
        self.budget.leave()

    def tells_of_attributes(self, info: FunctionInfo) -> bool:
        return self._level.tells_of_attributes(info)

    def begin_class(self, info: ClassInfo) -> None:
        self._ask_each(self._level.read_by_class(info.node))


@dataclass
class Neighbours:
    """What conversions of one text have read of other files, and how much more of them the last one may read."""

    files: dict[tuple[str, str], Neighbour | None] = field(default_factory=dict)
    """By the last part of a module's name and the text; None for a text that isn't Python."""
    lines: int = 0
    nested: int = 0

    def read(self, text: str, resolve: Resolve | None, depth: int, module: str) -> Neighbour | None:
        """The file of a module, by its text: once, however many files import it."""
        key = (module.rpartition(".")[2], text)
        if key not in self.files and len(self.files) < MOST_FILES:
            try:
                self.files[key] = Neighbour(parsed(text), resolve, depth, self)
            except SourceError:
                self.files[key] = None
        return self.files.get(key)

    def inferred(self) -> list[Neighbour]:
        """The files that were read."""
        return [file for file in self.files.values() if file is not None]

    def renew(self) -> None:
        """Let one more conversion read as much."""
        self.lines = self.nested = 0

    def enter(self, info: FunctionInfo) -> bool:
        """Whether one more body may be inferred; if so, it is counted."""
        lines = (info.node.end_lineno or info.node.lineno) - info.node.lineno + 1
        if self.nested >= MOST_NESTED or self.lines + lines > MOST_LINES:
            return False
        self.lines += lines
        self.nested += 1
        return True

    def leave(self) -> None:
        self.nested -= 1
