"""The kinds of prompt that an evaluation compares, and the fixed bugs that each may show for a program.

Never those of the program itself: an index over the other programs' bugs stands in for the whole one.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from t2j_lsp.contract import T2JError
from t2j_lsp.fixed_bugs import CATEGORIES, BugIndex, Example, Found, Pair, Query

from ..prompts import Style

WITHOUT = "without="
NAMES = ("standard", "retrieved", "all", f"{WITHOUT}CATEGORY")
SHARED = 0.6
"""Of an example's statements that a program has where it is the same program, or holds it."""
_COMMON = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Pass)
"""Statements that are alike in most programs."""


@dataclass(frozen=True)
class Arm:
    """One kind of prompt: the standard one shows no fixed bugs; augmented ones show retrieved ones, or all."""

    name: str
    style: Style
    everything: bool = False
    without: str | None = None
    """A category whose fixed bugs are left out."""


def arm(name: str) -> Arm:
    """The arm of a name. Raises T2JError."""
    if name == "standard":
        return Arm(name, "standard")
    if name in ("retrieved", "all"):
        return Arm(name, "augmented", everything=name == "all")
    category = name.removeprefix(WITHOUT)
    if category == name:
        raise T2JError(f"there is no arm {name!r}; there are {', '.join(NAMES)}")
    if category not in CATEGORIES:
        raise T2JError(f"fixed bugs have no category {category!r}; they have {', '.join(CATEGORIES)}")
    return Arm(name, "augmented", without=category)


@dataclass(frozen=True)
class Shown:
    """An index over the fixed bugs that an arm may show; ``pairs`` are those that it shows unasked."""

    index: BugIndex | None
    pairs: tuple[Pair, ...] | None = None


def shown(arm: Arm, index: BugIndex, every: Sequence[Pair], same: frozenset[str]) -> Shown:
    """What an arm may show for a program, where ``same`` are the names of the data set's programs that it is."""
    if arm.style == "standard":
        return Shown(None, ())

    def left_out(pair: Pair) -> bool:
        return pair.example.program in same or pair.bug.category == arm.without

    if arm.everything:
        return Shown(None, tuple(pair for pair in every if not left_out(pair)))
    return Shown(Partial(index, left_out))


@dataclass(frozen=True)
class Partial:
    """An index without some of its pairs."""

    index: BugIndex
    left_out: Callable[[Pair], bool]

    def __len__(self) -> int:
        return len(self.index)

    def search(
        self,
        query: Query,
        limit: int = 5,
        but: Callable[[Pair], bool] = lambda pair: False,
        tokens: int | None = None,
        distinct: bool = False,
    ) -> list[Found]:
        """As that of the whole index."""
        return self.index.search(query, limit, lambda pair: self.left_out(pair) or but(pair), tokens, distinct)


def same_program(path: PurePath, source: str, examples: Sequence[Example]) -> frozenset[str]:
    """The programs of a data set that a file is or holds: by its name, or by most of their statements, names aside."""
    named = path.stem.replace("-", "_")
    pieces = _pieces(source)
    found: set[str] = set()
    for example in examples:
        own = _pieces(example.input_code)
        if example.program.replace("-", "_") == named or (own and len(own & pieces) >= SHARED * len(own)):
            found.add(example.program)
    return frozenset(found)


@functools.cache
def _pieces(source: str) -> frozenset[str]:
    """A program's statements, with the names that it gives its own things taken away."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return frozenset()
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    found = set()
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt) and not isinstance(statement, _COMMON) and not _starts_base(statement):
            found.add(ast.dump(_Anonymous(own).visit(_head(statement))))
    return frozenset(found)


def _starts_base(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("super(")


def _head(statement: ast.stmt) -> ast.stmt:
    """A copy of a statement; of one with a body, what stands before it."""
    copy = ast.parse(ast.unparse(statement)).body[0]
    for field in ("body", "orelse", "finalbody", "handlers"):
        if isinstance(getattr(copy, field, None), list):
            setattr(copy, field, [])
    return copy


class _Anonymous(ast.NodeTransformer):
    """Takes the program's own names away."""

    def __init__(self, own: set[str]) -> None:
        self.own = own

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name("_" if node.id in self.own else node.id, ast.Load())

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg("_")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = "_"
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = "_"
        return self.generic_visit(node)
