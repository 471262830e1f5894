"""Parameters that JAX has under other names: of a module's class that is asked, and of a function that is any."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo, is_module_class
from t2j_lsp.translate.rule.facts import Fact, Partial, Qual, Tensor
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import TENSOR_KEYWORDS

from .context import Context

_SWITCH = "size_average"
_SAY_REDUCTION = "losses in JAX have no size_average: say reduction='mean' or 'sum'"
_ASKED = "inspect.signature"
_REASON = "inspect.signature of a Flax class is (*args, **kwargs): ask for that of its __init__"


def report_signatures(ctx: Context, node: ast.Call, called: Fact) -> None:
    """``signature(nn.Linear)``, and a call of a function that asks this of the class it is given."""
    classes = [value for value in _values(node) if is_module_class(ctx.fact(value), LAYERS)]
    if not classes:
        return
    match called:
        case Qual(name=name):
            asked = name == _ASKED
        case Function(info=info):
            asked = any(value in classes for value in _asked(node, info))
        case _:
            return
    if asked:
        ctx.report.gap(node, _ASKED, "refused", _REASON)


def report_keywords(ctx: Context, node: ast.Call, called: Fact) -> None:
    """``pool(x, dim=1)`` of a parameter whose default is a function: callers may give any of PyTorch's or their own.

    So ``criterion(size_average=False)`` of a loss's class that is passed: those that stand for them have ``reduction``.
    """
    of_base = isinstance(node.func, ast.Attribute) and symbols.is_super(node.func.value)
    if any(k.arg == _SWITCH for k in node.keywords) and not of_base and not _takes(ctx, _SWITCH):
        ctx.report.gap(node, ast.unparse(node.func), "unsure", _SAY_REDUCTION)
    keyword = next((k.arg for k in node.keywords if k.arg in TENSOR_KEYWORDS), None)
    if keyword is not None and isinstance(called, Partial) and isinstance(called.function, Tensor):
        name = ast.unparse(node.func)
        reason = f"{name} may be any function, and JAX's have other names for {keyword!r}: give it by position"
        ctx.report.gap(node, name, "unsure", reason)


def _takes(ctx: Context, name: str) -> bool:
    """Whether a function of the file has a parameter of this name."""
    return any(isinstance(n, ast.arg) and n.arg == name for n in ctx.source.nodes)


def _values(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(k.value for k in node.keywords)]


def _asked(node: ast.Call, info: FunctionInfo) -> Iterator[ast.expr]:
    """The arguments of a call whose parameters the function asks for."""
    given = [a.arg for a in symbols.positional_parameters(info.node)]
    for inner in symbols.walk(info.node):
        match inner:
            case ast.Call(func=ast.Name(id="signature") | ast.Attribute(attr="signature"), args=[ast.Name(id=name)]):
                yield from (k.value for k in node.keywords if k.arg == name)
                if name in given:
                    yield from node.args[given.index(name) :][:1]
