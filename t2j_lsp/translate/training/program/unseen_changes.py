"""What methods of modules change and the file doesn't see: values that no later call reads, methods without calls.

``self.attn`` of an attention layer that keeps its weights to be looked at, where the file doesn't look. A compiled step
needs not keep it up to date.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.facts import Scalar, Tensor
from t2j_lsp.translate.rule.record import DESCRIBED
from t2j_lsp.translate.source.positions import position

_NOTE = "compiled steps leave self.{} as it was: nothing in this file reads what earlier calls set"


class UnseenChanges:
    """Looks at names of a file."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    def is_unread(self, node: ast.AST, info: ClassInfo) -> bool:
        """Whether it gives an attribute of ``self`` an array or a number that nothing reads but the same call."""
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                pass
            case _:
                return False
        named = self.ctx.source.attributes[name]
        stores = [n for n in named if isinstance(n.ctx, ast.Store)]
        others = [n for n in named if n not in stores]
        if name in self._texts or self._asks_for_any or not all(map(self._is_plain, stores)):
            return False
        if not all(self._is_set_before(n, stores) for n in others):
            return False
        if any(name in one.methods for one in info.ancestry()):
            return False
        self.ctx.report.note(node, "torch.nn.Module", "note", _NOTE.format(name))
        return True

    def _is_plain(self, store: ast.Attribute) -> bool:
        """Whether a store gives no module and no variable, and changes nothing that was there."""
        parent, fact = self.ctx.source.parents.get(store), self.ctx.fact(store)
        if isinstance(parent, ast.Assign):
            fact = self.ctx.fact(parent.value)
        elif not isinstance(parent, ast.Tuple):
            return False
        return isinstance(fact, Scalar) or isinstance(fact, Tensor) and not fact.variable

    def _is_set_before(self, read: ast.Attribute, stores: Sequence[ast.Attribute]) -> bool:
        """Whether a method reads of its own object what it has set itself, in whatever way it got there."""
        parents = self.ctx.source.parents
        inner = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
        function = next((at for at in ancestors(read, parents) if isinstance(at, inner)), None)
        if not isinstance(function, ast.FunctionDef) or not isinstance(read.ctx, ast.Load):
            return False
        given = [parents[store] for store in stores]
        given = [parents[one] if isinstance(one, ast.Tuple) else one for one in given]
        before = any(s in function.body and position(s) < position(read) and not _holds(s, read) for s in given)
        return before and isinstance(read.value, ast.Name) and read.value.id == "self"

    def is_uncalled(self, method: str) -> bool:
        """Whether a method is named nowhere in the file, and is none that every module has."""
        inherited = method.startswith("_") or f"torch.nn.Module.{method}" in DESCRIBED
        named = method in self.ctx.source.attributes or method in self.ctx.source.names or method in self._texts
        return not inherited and not named and not self._asks_for_any

    @cached_property
    def _asks_for_any(self) -> bool:
        """Whether the file asks for attributes by names that it computes."""
        for node in self.ctx.source.nodes:
            match node:
                case ast.Attribute(attr="__dict__") | ast.Name(id="vars"):
                    return True
                case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, name, *_]) if not isinstance(
                    name, ast.Constant
                ):
                    return True
        return False

    @cached_property
    def _texts(self) -> frozenset[str]:
        """The texts of the file, by which something may be asked for: ``getattr(layer, "attn")``."""
        constants = (n.value for n in symbols.walk(self.ctx.source.tree) if isinstance(n, ast.Constant))
        return frozenset(value for value in constants if isinstance(value, str))


def _holds(statement: ast.AST, node: ast.AST) -> bool:
    return any(n is node for n in symbols.walk(statement))
