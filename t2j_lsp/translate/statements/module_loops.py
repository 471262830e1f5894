"""Loops over the modules and parameters of a module: ``for name, p in self.named_parameters():``."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.container_children import LISTS, holds_one_twice
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.state_order import walked_in_torch_order
from t2j_lsp.translate.expressions.walk_order import changes_parts_twice, draws, order_matters
from t2j_lsp.translate.inference.rngs import build_methods
from t2j_lsp.translate.rule.definitions import Instance, is_module, layer_names
from t2j_lsp.translate.rule.facts import Layer
from t2j_lsp.translate.rule.values import WALKS


class ModuleLoops:
    """``for`` loops over what a module holds."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def walks(self, node: ast.For | ast.AsyncFor) -> bool:
        """Rewrite the head of such a loop; whether it was one."""
        call = node.iter
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.args or call.keywords:
            return False
        if call in self.ctx.inference.state.named_arrays:
            return False  # as any loop over the items of a dict
        kind = call.func.attr.removeprefix("named_")
        named = kind != call.func.attr
        owner_fact = self.ctx.fact(call.func.value)
        if kind not in WALKS or not is_module(owner_fact):
            return False
        if kind == "children" and not isinstance(owner_fact, Instance) and (names := layer_names(owner_fact)) & LISTS:
            plain = isinstance(owner_fact, Layer) and names <= LISTS and not holds_one_twice(owner_fact)
            return not named and plain and self._items(call)
        if named and node.body[0].lineno == node.lineno:
            return False  # there may have to be a line above the body
        targets = node.target.elts if named and isinstance(node.target, ast.Tuple) else [node.target]
        if len(targets) != 1 + named or not all(isinstance(t, ast.Name) for t in targets):
            return False
        *name, item = [t.id for t in targets if isinstance(t, ast.Name)]
        if order_matters(self.ctx.inference, call) or kind == "children" and _calls(node, item):
            return False  # in Flax's order, which is alphabetical
        owner = self.renderer.render(call.func.value).text
        if kind == "children" and (layer_names(owner_fact) or not isinstance(owner_fact, Instance)):
            walk = f"{self.renderer.need('named_children')}({owner})"  # Flax numbers those of lists
        elif kind == "modules" and changes_parts_twice(self.ctx.inference, node.body, item):
            walk = torch_order(self.renderer, owner, kind)
        else:
            drawn = kind != "children" and draws(self.ctx.inference, node.body)
            walk = walk_of(self.ctx, self.renderer, call.func.value, kind, drawn)
        self.ctx.edits.replace(call, walk)
        self.ctx.edits.replace(node.target, f"{self._key(node, name[0], kind, owner) if name else '_'}, {item}")
        self.ctx.report.count_converted()
        return True

    def _items(self, call: ast.Call) -> bool:
        """The children of a list are its items, in their order; Flax's walk would give the list that holds them."""
        assert isinstance(call.func, ast.Attribute)
        self.ctx.edits.replace(call, self.renderer.render(call.func.value).text)
        self.ctx.report.count_converted()
        return True

    def _key(self, node: ast.For | ast.AsyncFor, name: str, kind: str, owner: str) -> str:
        """The loop's first variable; where the body reads the name, it is made from the path."""
        if not any(isinstance(n, ast.Name) and n.id == name for s in node.body for n in symbols.walk(s)):
            return "_"
        if kind == "children":
            return name
        path = (
            "path" if "path" not in self.ctx.names.of_source | self.ctx.names.reserved else self.ctx.names.fresh("path")
        )
        self.ctx.edits.insert_before(node.body[0], [f"{name} = {self.renderer.need('torch_name')}({owner}, {path})"])
        return path


def _calls(node: ast.For | ast.AsyncFor, name: str) -> bool:
    """Whether the body calls the loop's variable, so that the order matters."""
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name
        for statement in node.body
        for n in symbols.walk(statement)
    )


def walk_of(
    ctx: Context, renderer: ExpressionRenderer, owner: ast.expr, kind: str, drawn: bool, parts_first: bool = False
) -> str:
    """The walk of a module, of its ``modules``, ``children`` or ``parameters``.

    Where numbers are ``drawn`` in it, it goes in PyTorch's order: each layer gets the numbers that PyTorch's gets.
    Flax's own walk of modules has a module behind its parts.
    """
    text = renderer.render(owner).text
    if not drawn or _is_built(ctx, owner) or walked_in_torch_order(ctx.inference, ctx.fact(owner), kind):
        return WALKS[kind].format(text, nnx=renderer.need("nnx"))
    return torch_order(renderer, text, kind, parts_first)


def torch_order(renderer: ExpressionRenderer, owner: str, kind: str, parts_first: bool = False) -> str:
    """The walk in PyTorch's order: of assignment, a module in front of its parts or behind them."""
    walk = WALKS[kind].format(owner, nnx=renderer.need("nnx"))
    return f"{renderer.need('in_torch_order')}({owner}, {walk}{', parts_first=True' if parts_first else ''})"


def _is_built(ctx: Context, owner: ast.expr) -> bool:
    """Whether a module is walked while it is built: the initial values are given or compared as a whole."""
    function, fact = ctx.scope.function, ctx.fact(owner)
    info = None if function is None else function.owner
    if function is None or info is None or not isinstance(fact, Instance) or fact.cls.info is not info:
        return False
    return function.name in build_methods(info) | {"__init__"}
