"""Children of a Sequential of another file: what they are read from is what that file makes of it."""

from __future__ import annotations

import ast
from typing import TypeGuard

from t2j_lsp import symbols
from t2j_lsp.contract import CUT_HELPERS
from t2j_lsp.translate.inference.containers import SEQUENTIAL, asked_of_containers, sequential_attributes
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.readers import reads_children
from t2j_lsp.translate.inference.sequentials import home_of, is_stock_sequential
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Layer
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket

from .context import Context
from .handlers import ExpressionRenderer

CHANGES = frozenset(("append", "extend", "insert", "pop", "add_module"))
UNREAD = "its class stands in another file, whose conversion gives it no method for this: read its children there"


class ForeignChildren:
    """``net.head[0]`` of an nnx.Sequential of another file, which has its children in ``layers``."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer
        self._stock: dict[ast.Call, bool | None] = {}
        """What constructors make, see `_stock_of`."""

    def children(self, node: ast.Name | ast.Attribute) -> Piece | None:
        """A Sequential where it is measured or iterated."""
        parent = self.ctx.source.parents.get(node)
        if not reads_children(node, parent) and not _changes(node, parent):
            return None
        if isinstance(parent, ast.Subscript) or not self._is_stock(node):
            return None
        if _changes(node, parent):
            self.ctx.report.gap(node, SEQUENTIAL, "refused", UNREAD)
            return None
        owner = f"{bracket(self.renderer.render(node.value), ATOM)}." if isinstance(node, ast.Attribute) else ""
        return Piece(f"{owner}{node.attr if isinstance(node, ast.Attribute) else node.id}.layers")

    def child(self, node: ast.Subscript) -> Piece | None:
        """A child, or a slice, which is a Sequential again."""
        if not self._is_stock(node.value):
            return None
        if not isinstance(node.ctx, ast.Load) and not self._puts_module_for_module(node):
            self.ctx.report.gap(node, SEQUENTIAL, "refused", UNREAD)
            return None
        owner = bracket(self.renderer.render(node.value), ATOM)
        text = f"{owner}.layers[{self.renderer.render(node.slice).text}]"
        if isinstance(node.slice, ast.Slice):
            return Piece(f"{self.renderer.need('nnx')}.Sequential(*{text})")
        return Piece(text)

    def _puts_module_for_module(self, node: ast.Subscript) -> bool:
        """Whether a child is replaced, and neither is a function in Flax: the list of children tells these apart."""
        parent = self.ctx.source.parents.get(node)
        if not isinstance(parent, ast.Assign) or parent.targets != [node]:
            return False
        if not _holds_parts(self.ctx.fact(parent.value)):
            return False
        index = ast.literal_eval(node.slice) if isinstance(node.slice, ast.Constant | ast.UnaryOp) else None
        if not isinstance(index, int):
            return False
        for call in self._made(node.value):
            home = home_of(self.ctx.inference, call)
            if home is None or any(isinstance(one, ast.Starred) for one in call.args):
                return False
            if not -len(call.args) <= index < len(call.args) or not _holds_parts(home.fact(call.args[index])):
                return False
        return True

    def _made(self, node: ast.expr) -> list[ast.Call]:
        """The constructors of the Sequential of another file that an expression is: all of its class if it has more."""
        fact, parents = self.ctx.fact(node), self.ctx.source.parents
        names = fact.names if isinstance(fact, AnyModule) else {fact.name} if isinstance(fact, Layer) else ()
        if set(names) != {SEQUENTIAL}:
            return []
        if isinstance(fact, Layer) and fact.node is not None:
            return [] if fact.node in parents else [fact.node]
        owner = self.ctx.fact(node.value) if isinstance(node, ast.Attribute) else None
        if not isinstance(owner, Instance):
            return []
        classes = [info for info in owner.cls.info.ancestry() if info.external]
        return [call for info in classes for call in symbols.walk(info.node) if self._makes_sequential(call)]

    def _makes_sequential(self, node: ast.AST) -> TypeGuard[ast.Call]:
        home = home_of(self.ctx.inference, node) if isinstance(node, ast.Call) else None
        fact = home.fact(node) if home is not None else None
        return isinstance(fact, Layer) and fact.name == SEQUENTIAL

    def _is_stock(self, node: ast.expr) -> bool:
        """Whether the other file makes an nnx.Sequential of it; if it is a class without methods to read it, a gap."""
        stock = {self._stock_of(call) for call in self._made(node)}
        if self._is_unknown(node) or None in stock or len(stock) > 1:
            self.ctx.report.gap(node, SEQUENTIAL, "refused", UNREAD)
        return stock == {True}

    def _is_unknown(self, node: ast.expr) -> bool:
        """Whether a name is one of several Sequentials, none of which this file makes."""
        one = self.ctx.fact(node) == AnyModule(frozenset({SEQUENTIAL}))
        return one and isinstance(node, ast.Name) and SEQUENTIAL not in self.ctx.inference.mentioned

    def _stock_of(self, call: ast.Call) -> bool | None:
        """Whether a constructor makes an nnx.Sequential; None for a class without methods to read it."""
        if (home := home_of(self.ctx.inference, call)) is None:
            return False
        if call not in self._stock:
            whole = self.ctx.options.helpers not in CUT_HELPERS or "__getitem__" in asked_of_containers(home)
            self._stock[call] = True if is_stock_sequential(home, call) else False if whole else None
        stock = self._stock[call]
        return False if stock is None and self._sees_this_file(home, call) else stock

    def _sees_this_file(self, home: Inference, call: ast.Call) -> bool:
        """Whether the other file stands in the same package, so that its conversion knows what this one reads."""
        source, imported = self.ctx.source, self.ctx.inference.imported
        if self.ctx.options.path is None or self.ctx.options.taken_apart:
            return False
        if not any(file is home and name.startswith(".") for name, file in imported.items()):
            return False
        names = {name for name, made in sequential_attributes(home) if made is call}
        attributes = (one for one in source.nodes if isinstance(one, ast.Attribute) and one.attr in names)
        return any(not symbols.is_callee(one, source.parents) for one in attributes)


def _holds_parts(fact: Fact) -> bool:
    """Whether a module is surely one in Flax, too, and no function."""
    return (
        isinstance(fact, Instance)
        and is_module(fact)
        or (isinstance(fact, Layer) and fact.name in LAYERS and not LAYERS[fact.name].function)
    )


def _changes(node: ast.expr, parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Attribute) and parent.value is node and parent.attr in CHANGES
