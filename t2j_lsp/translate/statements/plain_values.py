"""Attributes of modules that hold nothing or something plain first: ``self.x = None``, ``[]``, ``0``, then an array.

NNX takes the first value of an attribute for its kind. What comes first is marked as data where its own class tells
that data follows; else what follows is: behind a base's constructor, for one, or a method that the constructor calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Layer, ListOf, Tensor, Tuple, is_number, is_tensor
from t2j_lsp.translate.rule.join import element, holds_array
from t2j_lsp.translate.source.assignments import one_by_one
from t2j_lsp.translate.source.list_items import added_to, is_empty

from .kept_states import keeps_state, may_be_data


class PlainValues:
    """Which values of attributes are marked as data, though they aren't, or since a plain one was there before."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def comes_first(self, node: ast.Assign | ast.AnnAssign, target: ast.Attribute, owner: Instance) -> bool:
        """Whether what stands there is marked, since data of the class follows it."""
        function = self.ctx.scope.function
        return self.none_first(node, target, owner, function) or self._plain_first(node, target, owner, function)

    def comes_behind(self, node: ast.Assign, target: ast.Attribute, owner: Instance) -> bool:
        """Whether a plain value that nothing marks may be in the attribute when it is given this one."""
        function, info = self.ctx.scope.function, owner.cls.info
        for method in _constructors(info) | ({function} if function is not None else set()):
            for other, value in _stores(method, target):
                if other is node or method is function and other.lineno > node.lineno:
                    continue
                if self._is_plain(value, method, own=method is function):
                    if not self._is_marked(other, target, method):
                        return True
        return False

    def is_function(self, value: ast.expr) -> bool:
        """Whether a layer becomes a function, which is no data."""
        return isinstance(self.ctx.fact(value), Layer) and _is_function(self.renderer.render(value).text)

    def _is_plain(self, value: ast.expr, method: FunctionInfo, own: bool) -> bool:
        """Whether NNX takes a value for no data."""
        if isinstance(value, ast.Constant) or is_empty(value):
            return True
        if method.external:
            return False
        fact = self.ctx.fact(value)
        return not may_be_data(fact) and (own or is_known(fact)) and not self.is_function(value)

    def _is_marked(self, node: ast.Assign | ast.AnnAssign, target: ast.Attribute, method: FunctionInfo) -> bool:
        """Whether a plain value is marked as data where it stands."""
        if method.external or method.owner is None or isinstance(node, ast.Assign) and len(node.targets) > 1:
            return False
        place = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(place, ast.Attribute):
            return False
        owner = Instance(Class(method.owner, method.owner.name))
        return (
            self.none_first(node, target, owner, method)
            or self._plain_first(node, target, owner, method)
            or keeps_state(self.ctx, node, target, owner, method)
            or bool(self.modules_added(node, target, owner, method))
        )

    def none_first(
        self,
        node: ast.Assign | ast.AnnAssign,
        target: ast.Attribute,
        owner: Instance,
        function: FunctionInfo | None,
    ) -> bool:
        """``self.x = None`` that a later statement overwrites with a module or array."""
        if node.value is None or not is_none(node.value) or not owner.cls.info.is_module:
            return False
        attribute = owner.cls.info.attribute(target.attr)
        if isinstance(attribute, Tuple | ListOf):
            attribute = element(attribute)
        if not (is_tensor(attribute) or is_module(attribute)):
            return False
        if self._becomes_a_function(node, target, owner, function):
            return False
        if isinstance(self.ctx.source.parents.get(node), ast.FunctionDef) or self._overwritten(node, target):
            return True
        said = owner.cls.info.said.get(target.attr, {})  # in a branch, where another method gives an array
        given = [fact for author, fact in said.items() if author is not function]
        return any(isinstance(fact, Tensor) and not fact.variable for fact in given)

    def modules_added(
        self,
        node: ast.Assign | ast.AnnAssign,
        target: ast.Attribute,
        owner: Instance,
        function: FunctionInfo | None,
    ) -> list[ast.expr]:
        """``self.x = []`` in a module's constructor that adds layers to it: NNX takes a plain list for no data."""
        empty = isinstance(node.value, ast.List) and not node.value.elts
        if not empty or not owner.cls.info.is_module or function is None or function.name != "__init__":
            return []
        name = ast.unparse(target)
        added = [value for part in symbols.walk(owner.cls.info.node) for value in added_to(part, name)]
        return [value for value in added if is_module(self.ctx.fact(value))]

    def _plain_first(
        self,
        node: ast.Assign | ast.AnnAssign,
        target: ast.Attribute,
        owner: Instance,
        function: FunctionInfo | None,
    ) -> bool:
        """``self.x = []`` or ``self.x = 0`` as a module is made: others give it arrays, or arrays are added to it."""
        value, info = node.value, owner.cls.info
        if value is None or not info.is_module or function is None or function not in _constructors(info):
            return False
        said = info.said.get(target.attr, {})
        if is_number(self.ctx.fact(value)):
            others = [fact for author, fact in said.items() if author is not function]
            return any(isinstance(fact, Tensor) and not fact.variable for fact in others)
        if not is_empty(value):
            return False
        if any(map(holds_array, said.values())):
            return True
        stored = [
            self.ctx.fact(store.value)
            for store in symbols.walk(info.node)
            if isinstance(store, ast.Assign) and isinstance(store.targets[0], ast.Subscript)
            if ast.unparse(store.targets[0].value) == ast.unparse(target)
        ]
        return bool(stored) and all(map(is_tensor, stored))

    def _overwritten(self, node: ast.Assign | ast.AnnAssign, target: ast.Attribute) -> bool:
        """Whether a statement behind this one, in its block or in one around, assigns the attribute again."""
        inner: ast.AST = node
        for around in ancestors(node, self.ctx.source.parents):
            for block in (getattr(around, name, None) for name in ("body", "orelse", "finalbody")):
                behind = block[block.index(inner) + 1 :] if isinstance(block, list) and inner in block else []
                stores = (n for statement in behind for n in symbols.walk(statement) if isinstance(n, ast.Attribute))
                if any(isinstance(n.ctx, ast.Store) and ast.unparse(n) == ast.unparse(target) for n in stores):
                    return True
            if isinstance(around, ast.FunctionDef):
                break
            inner = around
        return False

    def _becomes_a_function(
        self,
        node: ast.Assign | ast.AnnAssign,
        target: ast.Attribute,
        owner: Instance,
        function: FunctionInfo | None,
    ) -> bool:
        """Whether all that the class gives the attribute later are layers that become functions, which are no data."""
        others = [
            other
            for other in symbols.walk(owner.cls.info.node)
            if isinstance(other, ast.Assign | ast.AnnAssign) and other.value is not None and not is_none(other.value)
            if ast.unparse(target) in map(ast.unparse, _targets(other))
        ]
        own = list(symbols.walk(function.node)) if function is not None else []
        return bool(others) and all(
            other in own and other.lineno > node.lineno and self.is_function(other.value)
            for other in others
            if other.value is not None
        )


def is_none(node: ast.expr) -> bool:
    """Whether it is ``None`` itself."""
    return isinstance(node, ast.Constant) and node.value is None


def _constructors(info: ClassInfo) -> set[FunctionInfo]:
    """What runs when an instance is made: the constructors of a class and of its bases, and methods that they call."""
    waiting = [method for one in info.ancestry() if (method := one.methods.get("__init__")) is not None]
    reached: set[FunctionInfo] = set()
    while waiting:
        method = waiting.pop()
        if method not in reached:
            reached.add(method)
            waiting += [called for name in method.self_calls if (called := info.method(name)) is not None]
    return reached


def _stores(method: FunctionInfo, target: ast.Attribute) -> Iterator[tuple[ast.Assign | ast.AnnAssign, ast.expr]]:
    """The statements of a method that give an attribute a value, and what they give it."""
    text = ast.unparse(target)
    for node in symbols.walk(method.node):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for whole in _targets(node):
                for one, value in one_by_one(whole, node.value):
                    if isinstance(one, ast.Attribute) and ast.unparse(one) == text:
                        yield node, value


def _is_function(text: str) -> bool:
    """Whether a layer became a function: ``nnx.relu``, a lambda, ``functools.partial(nnx.gelu, ...)``."""
    match ast.parse(f"({text})", mode="eval").body:
        case ast.Name() | ast.Attribute() | ast.Lambda():
            return True
        case ast.Call(func=ast.Name(id="partial") | ast.Attribute(attr="partial")):
            return True
        case _:
            return False


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]
