"""Whether a tensor that is updated, or a list of such, gets another name: in JAX that keeps the array from before."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.storage import VIEWS
from t2j_lsp.translate.rule.definitions import Class, Instance, is_module
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.training.program.objects import Objects

_ARRAY = ("numpy", "cpu")
"""Methods of tensors that give the same storage, as arrays of numpy or where it is."""


class OtherNames:
    """Asks it of the places where variables are read."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects

    def keeps(self, node: ast.expr) -> bool:
        """Whether the tensor, or what shares its storage, gets another name, or goes into a container or an object."""
        listed = not isinstance(self.ctx.fact(node), Tensor)
        place, parent = _with_views(self.ctx, node, items=listed)
        match parent:
            case ast.For() | ast.comprehension() if listed and place is parent.iter:
                return self._keeps_items(parent)
            case ast.Assign(targets=[ast.Name() | ast.Tuple() as target]) if self._is_local(node, target):
                return self._keep(target, self.objects.scope(node).node)
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() | ast.Return():
                return not (isinstance(parent, ast.Return) and place is not node) or listed
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return parent.elt is place
            case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.Starred() | ast.Lambda():
                return True
            case ast.Call(func=ast.Attribute(attr="append" | "extend" | "add")):
                return True
            case ast.Call():
                called = self.ctx.fact(parent.func)
                return isinstance(called, Class | Instance) and not is_module(called)
        return False

    def _keeps_items(self, loop: ast.For | ast.comprehension) -> bool:
        """Whether a loop over a list of tensors gives one of them another name that it keeps."""
        return self._keep(loop.target, loop if isinstance(loop, ast.For) else self.ctx.source.parents[loop])

    def _keep(self, target: ast.expr, inside: ast.AST | None) -> bool:
        """Whether names of an item, read inside some code, give it another name that stays."""
        items = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        reads = (n for n in symbols.walk(inside or self.ctx.source.tree) if isinstance(n, ast.Name))
        return any(n.id in items and isinstance(n.ctx, ast.Load) and self.keeps(n) for n in reads)

    def _is_local(self, node: ast.expr, target: ast.expr) -> bool:
        """Whether a name that is given to a tensor from outside of a function ends with the function's call."""
        scope = self.objects.scope(node)
        outside = isinstance(node, ast.Name) and self.objects.home(node.id, scope) != scope
        names = [n for n in ast.walk(target) if isinstance(getattr(n, "ctx", None), ast.Store)]
        own = all(
            isinstance(n, ast.Tuple) or isinstance(n, ast.Name) and self.objects.home(n.id, scope) == scope
            for n in names
        )
        return outside and own and scope.function is not None


def is_held_too(context: Context, node: ast.expr) -> bool:
    """Whether another name, a container or an object holds a parameter outside of modules, or what shares its memory.

    Calls of PyTorch's own functions keep nothing but what they are made for: an optimizer, a clip of gradients.
    """
    place, parent = _with_views(context, node)
    while isinstance(parent, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.Starred | ast.keyword):
        place, parent = parent, context.source.parents.get(parent)
    match parent:
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
            return parent.value is place
        case ast.Call(func=ast.Attribute(value=held, attr="append" | "extend" | "add" | "insert" | "update")):
            return not isinstance(context.fact(held), Tensor)  # of tensors these are sums
        case ast.Call():
            called = context.fact(parent.func)
            return isinstance(called, Class | Instance) and not is_module(called)
    return False


def _with_views(context: Context, node: ast.expr, items: bool = False) -> tuple[ast.AST, ast.AST | None]:
    """The outermost expression around a tensor that shares its memory, and what that stands in.

    ``items``: it is a list, whose items share it, too.
    """
    place: ast.AST = node
    parent = context.source.parents.get(place)
    while (
        isinstance(parent, ast.Attribute)
        and parent.attr in (*VIEWS, *_ARRAY)
        or (isinstance(parent, ast.Call) and parent.func is place and isinstance(place, ast.Attribute))
        or (items and isinstance(parent, ast.Subscript) and parent.value is place)
    ):
        place, parent = parent, context.source.parents.get(parent)
    return place, parent


def is_read_out_of_sight(objects: Objects, node: ast.expr) -> bool:
    """Whether a variable stands in a method of a module, or in the default of a parameter, which no step can pass."""
    scope = objects.scope(node)
    owner = objects.owner(scope)
    if owner is not None and owner.is_module and isinstance(node, ast.Name):
        return objects.home(node.id, scope) != scope
    parents = objects.ctx.source.parents
    around = symbols.with_ancestors(node, parents)
    return any(isinstance(parents.get(one), ast.arguments) for one in around if not isinstance(one, ast.arg))
