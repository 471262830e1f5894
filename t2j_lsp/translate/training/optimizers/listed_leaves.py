"""Which variables hold the tensors of an optimizer: ``[w, b]``, a list of them, ``weights + biases``, ``d.values()``.

A variable that holds a list, a tuple or a dict of tensors is a tree for JAX, as a tensor is one: gradients and optax's
state have its form.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.facts import ListOf, Scalar, Shape, Tensor
from t2j_lsp.translate.rule.tensors import is_array_tree
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

from .leaf_values import LeafValues


class ListedLeaves:
    """Reads the first argument of an optimizer of bare tensors."""

    def __init__(self, context: Context, objects: Objects, scope: VariableScope) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.values = LeafValues(context, objects, scope)
        self.lists: list[ast.Name] = []
        """Where lists are read that were made of the variables, and keep the tensors from before."""
        self.made: set[ast.AST] = set()
        """What these lists are made by, as nodes."""

    def names(self, node: ast.expr) -> list[str]:
        """The variables that hold the tensors of an iterable, each once; empty where that isn't sure."""
        names = self._names(node)
        return names if names is not None and len(names) == len(set(names)) else []

    def _names(self, node: ast.expr, depth: int = 0) -> list[str] | None:
        if depth > 6:
            return None
        match node:
            case ast.List() | ast.Tuple():
                return _joined([self._item(one, depth) for one in node.elts])
            case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner], keywords=[]):
                return self._names(inner, depth + 1)
            case ast.Call(func=ast.Attribute(attr="values", value=ast.Name() as held), args=[], keywords=[]):
                return [held.id] if self._is_dict(held) and self.values.hold_own(held.id) else None
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return _joined([self._names(left, depth + 1), self._names(right, depth + 1)])
            case ast.ListComp() | ast.GeneratorExp():
                return self._flattened(node, depth)
            case ast.Name():
                return self._of_list(node, depth)
        return None

    def _item(self, node: ast.expr, depth: int) -> list[str] | None:
        """The variable of one item of a list."""
        if isinstance(node, ast.Starred):
            return self._names(node.value, depth + 1)
        plain = isinstance(node, ast.Name) and isinstance(fact := self.ctx.fact(node), Tensor) and not fact.variable
        return [node.id] if plain and isinstance(node, ast.Name) else None

    def _of_list(self, node: ast.Name, depth: int) -> list[str] | None:
        """The variables that a list was made of, or the list itself, where it holds tensors that nothing else names."""
        if isinstance(self.ctx.fact(node), Tensor):
            return None  # its rows
        values = self.objects.assigned(node.id, self.objects.home(node.id, self.scope))
        made = values[0] if len(values) == 1 else None
        if made is not None and (names := self._names(made, depth + 1)) is not None:
            self.lists.append(node)
            self.made.update(ast.walk(made))
            return names
        return [node.id] if is_array_tree(self.ctx.fact(node)) and self.values.hold_own(node.id) else None

    def _flattened(self, node: ast.ListComp | ast.GeneratorExp, depth: int) -> list[str] | None:
        """``[p for layer in layers for p in layer]``: all that the outermost list holds."""
        item: str | None = None
        for generator in node.generators:
            iterated = generator.iter
            inside = isinstance(iterated, ast.Name) and iterated.id == item
            if not isinstance(generator.target, ast.Name) or generator.ifs or item is not None and not inside:
                return None
            item = generator.target.id
        if not isinstance(node.elt, ast.Name) or node.elt.id != item or not isinstance(self.ctx.fact(node.elt), Tensor):
            return None
        return self._names(node.generators[0].iter, depth + 1)

    def _is_dict(self, node: ast.Name) -> bool:
        fact = self.ctx.fact(node)
        return isinstance(fact, ListOf) and fact.keys is not None and is_array_tree(fact)

    def reads_what_changes(self, node: ast.Name) -> bool:
        """Whether a list that was made of the variables is read for more than how many numbers it holds."""
        parent = self.ctx.source.parents.get(node)
        match parent:
            case ast.Call(func=ast.Name(id="len")):
                return False
            case ast.comprehension(target=ast.Name(id=item), ifs=[]):
                items = [
                    n for n in ast.walk(self.ctx.source.parents[parent]) if isinstance(n, ast.Name) and n.id == item
                ]
                return not all(isinstance(n.ctx, ast.Store) or self._is_asked_for_sizes(n) for n in items)
        return True

    def _is_asked_for_sizes(self, node: ast.Name) -> bool:
        """Whether a tensor is read for what stays as it is when its values change: ``p.numel()``, ``p.shape``."""
        asked = self.ctx.source.parents.get(node)
        call = self.ctx.source.parents.get(asked) if isinstance(asked, ast.Attribute) else None
        fact = self.ctx.fact(call if isinstance(call, ast.Call) and call.func is asked else asked or node)
        return isinstance(fact, Shape) or isinstance(fact, Scalar) and fact.kind == "int"


def _joined(parts: list[list[str] | None]) -> list[str] | None:
    """All names of several, None where one isn't known."""
    known = [part for part in parts if part is not None]
    return [name for part in known for name in part] if parts and len(known) == len(parts) else None
