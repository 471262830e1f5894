"""``**options`` of a function that no call gives any: they go, with whatever only hands them on."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache

import libcst as cst

from t2j_lsp import symbols

from .transformer import Transformer, code, transformed
from .uses import HelperUses


def without_idle_options(text: str, node: ast.FunctionDef, uses: HelperUses) -> str:
    """A function without its ``**options``, if all of its calls are known, and pass none."""
    if node.args.kwarg is None or not uses.known or not uses.calls or uses.bound:
        return text
    named = {parameter.arg for parameter in [*node.args.args, *node.args.kwonlyargs]}
    given = {keyword.arg for call in uses.calls for keyword in call.node.keywords}
    return _without_options(text, node.args.kwarg.arg) if given <= named and _hands_on(node) else text


def _hands_on(node: ast.FunctionDef) -> bool:
    """Whether a function does nothing else with its options than to pass them to calls."""
    assert node.args.kwarg is not None
    name = node.args.kwarg.arg
    nodes = [*symbols.walk(node)]
    handed = [k for k in nodes if isinstance(k, ast.keyword) and k.arg is None and isinstance(k.value, ast.Name)]
    reads = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    return len(reads) == sum(isinstance(k.value, ast.Name) and k.value.id == name for k in handed)


@cache
def _without_options(text: str, name: str) -> str:
    return transformed(text, lambda: _Options(name))


class _Options(Transformer):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        star = original_node.params.star_kwarg
        if star is None or star.name.value != self.name:
            return updated_node
        return updated_node.with_changes(params=_without_star(updated_node.params))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        kept = [one for one in updated_node.args if one.star != "**" or code(one.value) != self.name]
        if len(kept) == len(updated_node.args):
            return updated_node
        if code(updated_node.func) == "functools.partial" and len(kept) == 1:
            return kept[0].value
        return updated_node.with_changes(args=_closed(kept))


def _without_star(parameters: cst.Parameters) -> cst.Parameters:
    """Parameters without the last, which takes all other keywords, and so had some be positional only."""
    plain = [*parameters.posonly_params, *parameters.params]
    kept = parameters.with_changes(
        star_kwarg=None, params=plain, posonly_params=[], posonly_ind=cst.MaybeSentinel.DEFAULT
    )
    for kind in ("kwonly_params", "params"):
        if isinstance(kept.star_arg, cst.Param) and kind == "params":
            break
        if group := getattr(kept, kind):
            return kept.with_changes(**{kind: [*group[:-1], group[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)]})
    if isinstance(kept.star_arg, cst.Param):
        return kept.with_changes(star_arg=kept.star_arg.with_changes(comma=cst.MaybeSentinel.DEFAULT))
    return kept


def _closed(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    return [*arguments[:-1], arguments[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)] if arguments else []
