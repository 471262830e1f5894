"""Functions that give one gradient, as PINNs and implicit representations have: ``def gradient(y, x, weights=None)``.

A function that returns a call of ``torch.autograd.grad`` stands where it is called. Where a file that has gaps has one
that names the gradient first, or makes weights that nobody gives, it is read as if it returned the call alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import named_parameters
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import RearrangedText

from .left_out import ObjectLeftOut

_PLAIN = ast.Name | ast.Constant | ast.Attribute | ast.Call | ast.List | ast.Tuple


def with_gradients_returned_at_once(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such functions return the call alone; None if there are none, or everything converts."""
    names = names_with(Trait.INPUT_GRADIENT)
    if not any(gap.name in names or any(name in gap.reason for name in names) for gap in gaps):
        return None
    left_out = ObjectLeftOut(inference)
    for info in inference.functions.values():
        if not info.external and (text := _returned(inference, info)) is not None:
            body = info.node.body[ast.get_docstring(info.node) is not None :]
            start, end = inference.source.span(body[0])[0], inference.source.span(body[-1])[1]
            if inference.source.starts_line(body[0]) and "#" not in inference.source.text[start:end]:
                left_out.instead[start, end] = text
    return RearrangedText.of(inference.source.text, left_out.made_edits())


def _returned(inference: Inference, info: FunctionInfo) -> str | None:
    """The statement that such a function is instead of its body."""
    body = info.node.body[ast.get_docstring(info.node) is not None :]
    segment = inference.source.segment
    made: dict[str, ast.expr] = {}
    match body:
        case [ast.If(test=test, body=[ast.Assign(targets=[ast.Name(id=name)], value=weights)], orelse=[]), *body]:
            if ast.unparse(test) != f"{name} is None" or _is_given(inference, info, name):
                return None
            made[name] = weights
    match body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value), ast.Return(value=ast.Name(id=given))]:
            if name != given:
                return None
        case [ast.Return(value=ast.expr() as value)] if made:
            pass
        case _:
            return None
    match value:
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)):
            pass
        case _:
            return None
    fact = inference.fact(call.func)
    if not isinstance(fact, Qual) or fact.name not in names_with(Trait.INPUT_GRADIENT) or spans_lines(call):
        return None
    parts = [*call.args, *(k.value for k in call.keywords)]
    if not all(isinstance(part, _PLAIN) for part in parts) or any(k.arg is None for k in call.keywords):
        return None
    texts = [segment(made.get(a.id, a) if isinstance(a, ast.Name) else a) for a in call.args]
    for k in call.keywords:
        given_value = made.get(k.value.id, k.value) if isinstance(k.value, ast.Name) else k.value
        texts.append(f"{k.arg}={segment(given_value)}")
    return f"return {segment(call.func)}({', '.join(texts)})[0]"


def _is_given(inference: Inference, info: FunctionInfo, name: str) -> bool:
    """Whether a call gives a parameter that is None by default, or it isn't sure that none does."""
    if all(parameter.arg != name for parameter in named_parameters(info.node)):
        return True
    inside = set(symbols.walk(info.node))
    for node in inference.source.names.get(info.name, ()):
        call = inference.source.parents.get(node)
        if node in inside or not isinstance(call, ast.Call) or call.func is not node:
            return True
        if called_function(inference.fact(node)) is not info or any(k.arg is None for k in call.keywords):
            return True
        if any(isinstance(a, ast.Starred) for a in call.args):
            return True
        if any(parameter.arg == name for parameter, _ in bound_arguments(call, info)):
            return True
    return info.owner is not None
