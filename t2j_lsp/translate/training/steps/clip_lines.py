"""The lines that limit the gradients of a step."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.training.program.step_calls import StepCall, clip_kind


def clip_lines(
    ctx: Context,
    clip: StepCall,
    arguments: Sequence[str],
    grads: str,
    module: str,
    need: Callable[[str], str],
    scale: str = "",
) -> list[str]:
    """``grads = clip_grad_norm(grads, 1.0)``, with the norm before it where the program keeps it.

    In compiled code, where what it scales by may be called ``scale``, the two lines that it is.
    """
    if clip.edit is not None:
        return [clip.edit.line(arguments, grads, module, need)]
    limit = arguments[0]
    if clip_kind(ctx.inference, clip) == "value":
        g = "g" if not re.search(r"\bg\b", limit) else "gradient"
        text = f"lambda {g}: {need('jnp')}.clip({g}, -{_in_brackets(limit)}, {limit})"
        return [f"{grads} = {need('jax')}.tree.map({text}, {grads})"]
    target = ast.unparse(clip.target) if clip.target is not None else "_"
    is_limited = limit not in ('float("inf")', "float('inf')", "jnp.inf", "np.inf", "math.inf")
    if not scale or len(arguments) > 1:
        order = "_of" if len(arguments) > 1 else ""
        given = ", ".join([grads, *arguments[1:]])
        lines = [f"{target} = {need(f'grad_norm{order}')}({given})"] if target != "_" else []
        clipped = f"{grads} = {need(f'clip_grad_norm{order}')}({', '.join([grads, *arguments])})"
        return [*lines, clipped] if is_limited else lines
    norm = f"{need('optax')}.tree.norm({grads})"
    lines = [f"{target} = {norm}"] if target != "_" else []
    if not is_limited:
        return lines
    return [
        *lines,
        "# optax.clip_by_global_norm scales by max_norm / norm, PyTorch by max_norm / (norm + 1e-6)",
        f"{scale} = {need('jnp')}.minimum({_in_brackets(limit)} / ({target if lines else norm} + 1e-6), 1.0)",
        f"{grads} = {need('jax')}.tree.map(lambda g: g * {scale}.astype(g.dtype), {grads})",
    ]


def _in_brackets(number: str) -> str:
    """A number as an operand."""
    return number if re.fullmatch(r"[\d.e-]+|[\w.]+", number) else f"({number})"
