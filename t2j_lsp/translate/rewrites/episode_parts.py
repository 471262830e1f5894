"""What a policy gradient is made of, where its loss is made of what an episode kept; see `episodes`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.rule.library import Trait, names_with

TO_HOST = names_with(Trait.TAKES_OUT)


class Unseen(Exception):
    """Something that a gradient may come through otherwise, or that compiled code would do once."""


@dataclass
class KeptList:
    """A list that an episode fills."""

    name: str
    uses: list[ast.expr]
    """``policy.saved`` wherever it stands."""
    made: ast.stmt
    """``self.saved = []`` in the constructor, or ``saved = []`` of the module level."""
    item: ast.expr | None = None
    """What is appended with its gradient; None for other values."""

    @property
    def in_module(self) -> bool:
        """Whether the list stands in the module, which is handed to compiled code without it."""
        return isinstance(self.made, ast.Assign) and isinstance(self.made.targets[0], ast.Attribute)


@dataclass
class ActingFunction:
    """The function that calls the module."""

    node: ast.FunctionDef
    compiled: list[ast.stmt]
    """Its statements that are compiled together."""
    tail: list[ast.stmt]
    """Those behind them."""
    inputs: list[str]
    taken: dict[str, list[ast.expr]] = field(default_factory=dict)
    """What the tail takes to the host, by its code."""


@dataclass
class RecordedEpisode:
    """What was found."""

    module: str
    made: ast.Assign
    optimizer: str
    lists: list[KeptList]
    acting: ActingFunction
    update: ast.FunctionDef
    loss: ast.expr
    block: list[ast.stmt]
    """What the loss is computed with."""
    zeroing: list[ast.stmt]
    backward: ast.stmt
    step: ast.stmt
    rest: list[ast.stmt]
    clip: ast.expr | None = None
    """The norm that gradients are clipped to."""

    @property
    def recorded(self) -> list[KeptList]:
        return [one for one in self.lists if one.item is not None]


def called_attribute(node: ast.AST, name: str) -> ast.expr | None:
    """The receiver of ``x.name()``."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=[], keywords=[]) if attr == name:
            return value
    return None


def need(condition: object) -> None:
    if not condition:
        raise Unseen


def to_host(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TO_HOST


def is_docstring(node: ast.stmt, function: ast.FunctionDef) -> bool:
    return node is function.body[0] and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def names(node: ast.AST, name: str) -> bool:
    return any(n.id == name for n in reads(node))


def reads(node: ast.AST) -> list[ast.Name]:
    return [n for n in symbols.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def stores(node: ast.AST) -> set[str]:
    return {n.id for n in symbols.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


def appends(node: ast.stmt) -> bool:
    """``saved.append(x)``."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[_], keywords=[])):
            return True
    return False
