"""Parameters that are made frozen, ``nn.Parameter(x, requires_grad=False)``: buffers in JAX, and parameters in PyTorch.

So are those of a part that its module's constructor freezes, ``self.proj.requires_grad_(False)``, and nothing else of
the file trains or walks. Where a program counts or lists its parameters, they are among them.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension, ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .context import Context

_PARAMETERS, _TABLES = names_with(Trait.MAKES_PARAMETER), names_with(Trait.MAKES_FROZEN)
_LISTING = frozenset({"len", "list", "sum", "tuple"})


def lists_frozen(inference: Inference, node: ast.Call) -> bool:
    """Whether a walk over parameters counts or lists all, in a file that makes some frozen."""
    if not {"requires_grad", "requires_grad_", "from_pretrained"} & inference.source.words or not _is_listed(
        inference, node
    ):
        return False
    return any(isinstance(one, ast.Call) and _makes_frozen(inference, one) for one in inference.source.nodes)


def has_buffers(inference: Inference) -> bool:
    """Whether a file has buffers beside them."""
    return not {"register_buffer", "Buffer"}.isdisjoint(inference.source.words)


def _is_listed(inference: Inference, node: ast.Call) -> bool:
    parent = inference.source.parents.get(node)
    if isinstance(parent, ast.comprehension):
        around = inference.source.parents.get(parent)
        asked = (n for n in symbols.walk(around) if isinstance(n, ast.Attribute)) if around is not None else ()
        return isinstance(around, Comprehension) and not any(n.attr == "requires_grad" for n in asked)
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in _LISTING


def _makes_frozen(inference: Inference, node: ast.Call) -> bool:
    fact = inference.fact(node.func)
    if _freezes_part(node):
        return True
    if isinstance(fact, Qual) and fact.name in _PARAMETERS:
        given = argument(node, 1, "requires_grad")
        return isinstance(given, ast.Constant) and given.value is False
    if isinstance(fact, Qual) and fact.name in _TABLES:
        given = argument(node, 1, "freeze")
        return not (isinstance(given, ast.Constant) and given.value is False)
    return False


def is_frozen_as_made(ctx: Context, call: ast.Call) -> bool:
    """Whether a constructor freezes a part for good, which the rest of the file only calls."""
    function, source = ctx.scope.function, ctx.source
    if not _freezes_part(call) or function is None or function.name != "__init__" or function.owner is None:
        return False
    assert isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Attribute)
    part = call.func.value.attr
    for node in source.nodes:
        parent = source.parents.get(node)
        match node:
            case ast.Attribute(attr="requires_grad" | "requires_grad_"):
                if not isinstance(parent, ast.Call) or not _freezes_part(parent):
                    return False
            case ast.Attribute(attr=attr) if attr == part and node is not call.func.value:
                called = symbols.is_callee(node, source.parents)
                made = isinstance(node.ctx, ast.Store) and function.node in ancestors(node, source.parents)
                if not called and not made:
                    return False
            case _:
                pass
    return True


def _freezes_part(node: ast.Call) -> bool:
    """``self.part.requires_grad_(False)``."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self")), attr="requires_grad_"),
            args=[ast.Constant(value=False)],
            keywords=[],
        ):
            return True
    return False
