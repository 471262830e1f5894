"""Texts of dtypes and devices, which JAX calls otherwise: ``str(x.dtype)`` is ``float32`` and not ``torch.float32``.

People who read them know what is meant; code that compares them, or cuts them, does something else.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, function_around
from t2j_lsp.translate.rule.facts import Object, Qual, Tensor
from t2j_lsp.translate.rule.names import is_dtype

from .context import Context

_TEXTS = frozenset({"str", "repr"})
_OTHER = (
    "JAX calls dtypes otherwise ('float32'), and what is done with the text depends on that: compare dtypes with =="
)
_CUTS = ("split", "rsplit", "partition", "rpartition", "startswith", "strip", "lstrip", "index", "find")


def report_dtype_text(ctx: Context, node: ast.Call) -> None:
    """Report the text of a dtype where code goes on with it, but for what is the same with either name."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[held], keywords=[]) if name in _TEXTS:
            of_array = isinstance(held, ast.Attribute)  # else it may be a class: <class 'jax.numpy.float32'>
            if _is_dtype(ctx, held) and _matters(node, ctx, of_array):
                ctx.report.gap(node, name, "refused", _OTHER)


def _is_dtype(ctx: Context, node: ast.expr) -> bool:
    fact = ctx.fact(node)
    if isinstance(fact, Qual):
        return is_dtype(fact.name)
    if not isinstance(fact, Object) or fact.kind != "dtype":
        return False
    return not isinstance(node, ast.Attribute) or isinstance(ctx.fact(node.value), Tensor)


def _matters(node: ast.expr, ctx: Context, of_array: bool) -> bool:
    """Whether the text is compared, cut, or looked up, also under a name."""
    match ctx.source.parents.get(node):
        case ast.Assign(targets=[ast.Name(id=name)]):
            around = function_around(node, ctx.source.parents)
            reads = [n for n in symbols.walk(around) if isinstance(n, ast.Name)] if around is not None else []
            return any(n.id == name and isinstance(n.ctx, ast.Load) and _matters(n, ctx, of_array) for n in reads)
        case ast.Compare(left=ast.Constant(value=str() as part), ops=[ast.In() | ast.NotIn()]):
            return not of_array or "torch" in part or "." in part
        case ast.Attribute(attr=method) as attribute if method in _CUTS or not of_array:
            return not of_array or not _takes_last(attribute, ctx)
        case ast.Compare() | ast.Subscript():
            return True
        case ast.Call(func=ast.Attribute(attr="get")) | ast.keyword():
            return not any(isinstance(one, ast.JoinedStr | ast.Raise) for one in ancestors(node, ctx.source.parents))
    return False


def _takes_last(attribute: ast.Attribute, ctx: Context) -> bool:
    """``.split(".")[-1]``, which is the name itself in both."""
    call = ctx.source.parents.get(attribute)
    match ctx.source.parents.get(call) if call is not None else None:
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))):
            return attribute.attr in ("split", "rsplit", "rpartition")
    return False
