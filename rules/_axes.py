"""How rules of reductions spell ``dim``, ``keepdim`` and ``dtype``, as jax.numpy functions and as array methods."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import ListOf, Tuple
from t2j_lsp.translate.rule.record import Argument, Call, Piece

EMPTY: tuple[object, ...] = ((), [])


def axes_text(argument: Argument) -> str:
    """``dim`` as JAX's ``axis``: a list becomes a tuple, because jax.numpy takes no list of axes."""
    items = argument.node
    if argument.literal not in EMPTY and type(argument.literal) is list:
        return repr(tuple(argument.literal))
    if isinstance(argument.fact, ListOf | Tuple) and getattr(items, "elts", None) is None:
        return f"tuple({argument.text})"
    return argument.text


def axis(call: Call, name: str = "dim") -> str | None:
    """The text of JAX's ``axis``, None for all of them: ``dim=None`` or, as PyTorch reads it, ``dim=()``."""
    argument = call[name]
    if argument.is_none or argument.literal in EMPTY:
        return None
    text = axes_text(argument)
    return f"{text} or None" if text.startswith("tuple(") and isinstance(argument.fact, ListOf) else text


def listed_axis(call: Call) -> str | None:
    """As ``axis`` where PyTorch, too, reduces no axis for ``dim=()``."""
    return None if call["dim"].is_none else axes_text(call["dim"])


def spelled(call: Call, name: str, arguments: str, **extra: str | Piece | Argument | None) -> Piece:
    """``x.name(arguments)`` where the source has a method, else ``jnp.name(x, arguments)``."""
    tensor = next(iter(call.arguments))
    if call.method:
        return call.emit(f"{{{tensor}}}.{name}({arguments})", **extra)
    return call.emit(f"jnp.{name}({{{tensor}}}, {arguments})" if arguments else f"jnp.{name}({{{tensor}}})", **extra)
