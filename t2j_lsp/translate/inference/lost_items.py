"""Writes into what a loop gets, which nothing reads by the loop's name: ``for w in weights: w.zero_()``.

Who holds the items sees such a write in PyTorch. Where they aren't Variables, JAX would give the loop's own name a new
array, and whoever holds the items keeps the old one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import function_around
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.names import TENSOR_ONLY, is_torch

from .file import Inference
from .fillers import in_place, written_argument
from .statement_reads import calls_of, flatten, targets_of
from .storage import is_variable, root
from .written_parameters import sets_flag

LOST = "PyTorch writes into {!r}, which whoever made what the loop runs over sees, and JAX can't: return new arrays"


def written_arrays(node: ast.stmt, inference: Inference) -> Iterator[ast.expr]:
    """The arrays that a statement writes into."""
    facts = inference.facts
    target = node.target if isinstance(node, ast.AugAssign) else None
    for part in targets_of(node):
        if isinstance(part, ast.Subscript) and isinstance(facts.get(part.value), Tensor):
            yield part.value
    if target is not None:
        for held in (target.value, target) if isinstance(target, ast.Subscript) else (target,):
            if isinstance(facts.get(held), Tensor):
                yield held
                break
    for call in calls_of(node):
        func, function = call.func, facts.get(call.func)
        if isinstance(function, Qual):
            if is_torch(function.name) and in_place(function.name) and not function.name.startswith("torch.nn.init."):
                yield from (given for given in call.args[:1] if isinstance(facts.get(given), Tensor))
        elif isinstance(func, ast.Attribute) and func.attr.endswith("_") and not func.attr.endswith("__"):
            if isinstance(facts.get(func.value), Tensor) or func.attr in TENSOR_ONLY:
                yield func.value
        if (argument := written_argument(call, inference)) is not None:
            yield argument
        for held in (k.value for k in call.keywords if k.arg == "out"):
            items = held.elts if isinstance(held, ast.Tuple) else [held]
            yield from (item for item in items if isinstance(facts.get(item), Tensor))


def writes_into_items(inference: Inference) -> Iterator[tuple[ast.stmt, str]]:
    """The statements that write into an item of a loop, and why that is lost."""
    for loop in inference.source.nodes:
        if not isinstance(loop, ast.For):
            continue
        names = {n.id for n in symbols.walk(loop.target) if isinstance(n, ast.Name) and not _is_variable(n, inference)}
        if names:
            yield from _lost(loop, names, inference)


def _is_variable(name: ast.Name, inference: Inference) -> bool:
    return is_variable(inference.facts.get(name))


def _lost(loop: ast.For, names: set[str], inference: Inference) -> Iterator[tuple[ast.stmt, str]]:
    parents = inference.source.parents
    writes: dict[ast.stmt, str] = {}
    for statement in flatten(loop.body):
        if isinstance(statement, ast.Expr):
            for target in written_arrays(statement, inference):
                flag = sets_flag(parents.get(target))
                if (name := root(target)) in names and not flag and not is_variable(inference.facts.get(target)):
                    writes[statement] = name
    if not writes:
        return
    around = function_around(loop, parents) or inference.source.tree
    for name in set(writes.values()):
        written = [statement for statement, what in writes.items() if what == name]
        if not _is_read(name, loop, around, written):
            yield from ((statement, LOST.format(name)) for statement in written)


def _is_read(name: str, loop: ast.For, around: ast.AST, written: list[ast.stmt]) -> bool:
    """Whether a name of a loop is read in it, or behind it, but to write into what it holds."""
    within = {node for statement in written for node in symbols.walk(statement)}
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) and node not in within
        for node in symbols.walk(around)
        if getattr(node, "lineno", 0) >= loop.lineno
    )
