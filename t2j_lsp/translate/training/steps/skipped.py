"""Updates that code between the loss and the step may jump over: ``if not torch.isfinite(loss): continue``."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp.translate.training.program.slice import UpdateSlice
from t2j_lsp.translate.training.program.step_calls import Item, Refused

SKIPPED = "Code between the loss and the step may skip the update."
KEPT = "Code behind the backward pass may skip the zeroing of its gradients, which then add up."


def may_skip(items: Sequence[Item], made: UpdateSlice, last: int) -> bool:
    """Whether code in front of the step, item ``last``, may jump over it."""
    stay = [i for i in range(made.call, last) if items[i].step_call is None]
    return any(jumps(items[i].node) for i in (*made.delayed, *stay))


def may_jump(items: Sequence[Item], start: int, stop: int) -> bool:
    """Whether code among items ``start`` to ``stop`` (exclusive) may jump over what follows."""
    return any(item.step_call is None and jumps(item.node) for item in items[start:stop])


def check_unskipped(items: Sequence[Item], made: UpdateSlice) -> None:
    """Raises Refused if a loss may be left without a backward pass, whose gradients would be added up."""
    if any(jumps(items[index].node) for index in made.delayed):
        raise Refused(SKIPPED)


def jumps(node: ast.stmt) -> bool:
    """Whether a statement may leave the block that it stands in, other than by an error."""
    stack: list[tuple[ast.AST, bool]] = [(node, False)]
    while stack:
        at, looped = stack.pop()
        if isinstance(at, ast.Return) or isinstance(at, ast.Break | ast.Continue) and not looped:
            return True
        if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(at, ast.For | ast.AsyncFor | ast.While):
            stack += [(child, True) for child in at.body] + [(child, looped) for child in at.orelse]
            continue
        stack += [(child, looped) for child in ast.iter_child_nodes(at)]
    return False
