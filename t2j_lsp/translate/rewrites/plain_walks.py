"""Walks over the parameters and parts of modules in the form that planners read.

``for _, p in list(net.named_parameters()):`` is ``for p in net.parameters():`` where nobody reads the name, and
``p.requires_grad_(False)`` in such a loop is ``p.requires_grad = False``.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.source.rearranged import Edits, Fragment

_NAMED = "named_"
_WALKS = frozenset({"parameters", "buffers", "modules", "children"})


def plain_walk(inference: Inference, loop: ast.For, names_are_read: bool) -> Edits:
    """The edits of a loop over what a module holds; ``names_are_read``: its first variable is read."""
    source, walked = inference.source, loop.iter
    match walked:
        case ast.Call(func=ast.Name(id="list" | "tuple" as made), args=[inner], keywords=[]):
            walked = inner if made not in source.symbols.module else walked
    match walked:
        case ast.Call(func=ast.Attribute(attr=name, value=module) as func, args=[], keywords=[]):
            pass
        case _:
            return []
    kind = name.removeprefix(_NAMED)
    if kind not in _WALKS or not is_module(inference.fact(module)):
        return []
    edits: Edits = []
    text, item = source.segment(walked), loop.target
    match item:
        case ast.Tuple(elts=[ast.Name(), ast.Name() as second]) if kind != name and not names_are_read:
            edits.append((*source.span(item), [Fragment(second.id, *source.span(second))]))
            text, item = f"{source.segment(module)}.{kind}()", second
        case ast.Tuple(elts=[ast.Name(), ast.Name() as second]):
            item = second
    if text != source.segment(loop.iter):
        edits.append((*source.span(loop.iter), [Fragment(text, *source.span(func))]))
    return edits + _flags(inference, loop, item) if kind == "parameters" else edits


def _flags(inference: Inference, loop: ast.For, item: ast.expr) -> Edits:
    """The edits of statements in a loop that set the flag of its item by PyTorch's method."""
    edits: Edits = []
    for node in ast.walk(loop):
        match node:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="requires_grad_", value=ast.Name(id=name) as owner),
                    args=[] | [ast.Constant(value=bool())] as flags,
                    keywords=[],
                ) as call
            ) if isinstance(item, ast.Name) and name == item.id:
                on = all(isinstance(flag, ast.Constant) and flag.value for flag in flags)
                flag = Fragment(f"{name}.requires_grad = {on}", *inference.source.span(owner))
                edits.append((*inference.source.span(call), [flag]))
    return edits
