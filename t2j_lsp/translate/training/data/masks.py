"""Masks that select what a loss is computed with: a compiled step takes the positions, since it must know shapes."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.constant_masks import constant_masks
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import ClassInfo, Function, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.windows import stacks_windows
from t2j_lsp.translate.training.program.step_calls import Refused

if TYPE_CHECKING:
    from t2j_lsp.translate.training.program.passed import Input

SIZES = "isn't known under jit"


def mask_of(inference: Inference, node: ast.AST) -> ast.expr | None:
    """The mask that a value is selected by: ``mask`` of ``out[mask]`` and of ``out.masked_select(mask)``.

    None for one that sizes decide, which is known under jit.
    """
    match node:
        case ast.Call(func=ast.Attribute(attr="masked_select"), args=[*_, mask]):
            return mask
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    masks = [i for i in indices if isinstance(f := inference.fact(i), Tensor) and f.dtype == "bool"]
    return next((mask for mask in masks if mask not in constant_masks(inference).known), None)


def sized_by_values(inference: Inference, node: ast.AST) -> ast.Call | None:
    """A call whose result is as large as values say: ``torch.nonzero(x)``, ``x.unique()``."""
    if not isinstance(node, ast.Call):
        return None
    names, fact = names_with(Trait.SIZED_BY_VALUES), inference.fact(node.func)
    if isinstance(fact, Qual):
        return node if fact.name in names else None
    of_tensor = isinstance(node.func, ast.Attribute) and isinstance(inference.fact(node.func.value), Tensor)
    return node if of_tensor and f"torch.{node.func.attr}" in names else None  # type: ignore[attr-defined]


def selection(inference: Inference, node: ast.AST) -> str | None:
    """Why code can't be compiled that selects by values: by a mask, between bounds, or in a call."""
    if isinstance(node, ast.Slice):
        bounds = [bound for bound in (node.lower, node.upper, node.step) if bound is not None]
        if not any(isinstance(inference.fact(bound), Tensor) for bound in bounds):
            return None
        around = ancestors(node, inference.source.parents)
        stacked = any(stacks_windows(at, inference.fact) for at in itertools.islice(around, 3))
        return None if stacked else f"how long [{ast.unparse(node)}] is {SIZES}"
    if (mask := mask_of(inference, node)) is not None:
        return selects(mask)
    if (call := sized_by_values(inference, node)) is not None:
        return f"how large {ast.unparse(call)} is {SIZES}"
    return None


def selection_in_forward(inference: Inference, info: ClassInfo) -> str | None:
    """The same of what a module's ``forward`` does, with the methods and the modules of the file that it calls."""
    waiting, seen = [info.method("forward")], set[FunctionInfo]()
    while waiting:
        method = waiting.pop()
        if method is None or method in seen or method.external:
            continue
        seen.add(method)
        for node in symbols.walk(method.node):
            if (problem := selection(inference, node)) is not None:
                return f"in {info.name}, {problem}"
            if isinstance(node, ast.Call):
                fact = inference.fact(node.func)
                if isinstance(fact, Function):
                    waiting.append(fact.info)
                elif isinstance(fact, Instance) and fact.cls.info.is_module:
                    waiting.append(fact.cls.info.method("forward"))
    return None


def selects(mask: ast.expr) -> str:
    """Why code that selects by a mask can't be compiled."""
    return f"how many elements {ast.unparse(mask)} selects {SIZES}: use jnp.where, or where= of a mean"


def mask_without_positions(
    inference: Inference, part: ast.AST, code: Sequence[ast.AST], is_computed: Callable[[ast.expr], bool]
) -> ast.expr | None:
    """A mask in a part of a step's code that the step computes, or that it reads in other places than indices."""
    nodes = [n for one in code for n in symbols.walk(one)]
    for mask in (mask_of(inference, n) for n in symbols.walk(part)):
        if mask is None:
            continue
        text = ast.unparse(mask)
        same = [n for n in nodes if isinstance(n, ast.Name | ast.Attribute) and ast.unparse(n) == text]
        if not same or is_computed(mask) or not all(_is_index(inference, n) for n in same):
            return mask
    return None


def _is_index(inference: Inference, node: ast.AST) -> bool:
    at = inference.source.parents.get(node)
    return isinstance(at, ast.Subscript) and at.slice is node and isinstance(at.ctx, ast.Load)


def pass_positions(inference: Inference, inputs: Mapping[str, Input], parts: Sequence[ast.AST]) -> None:
    """Pass ``jnp.nonzero(mask)`` for masks that come from outside of a step. Raises Refused for others."""
    made = {n for one in inputs.values() if one.given for place in one.places for n in symbols.walk(place)}
    for node in (n for part in parts for n in symbols.walk(part) if n not in made):
        mask = mask_of(inference, node)
        if mask is None:
            continue
        one = next((i for i in inputs.values() if mask in i.places), None)
        if one is None or not all(_is_index(inference, place) for place in one.places):
            raise Refused(f"The loss can't be computed under jit: {selects(mask)}.")
        one.positions = True
