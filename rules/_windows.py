"""Windows of convolutions and pooling: their lengths along each spatial axis."""

from __future__ import annotations

import ast
import functools

from t2j_lsp.translate.rule.facts import Scalar, Tensor
from t2j_lsp.translate.rule.record import Argument, Call


def sizes_of(argument: Argument, rank: int) -> tuple[int, ...] | None:
    """A literal int or tuple as one size for each spatial axis."""
    value = argument.literal
    if isinstance(value, int):
        return (value,) * rank
    if isinstance(value, tuple | list) and len(value) == rank and all(isinstance(v, int) for v in value):
        return tuple(value)
    return None


def shown(sizes: tuple[int, ...]) -> str:
    return f"({sizes[0]},)" if len(sizes) == 1 else str(sizes)


def window_text(argument: Argument, rank: int) -> str | None:
    """A window's shape: of a literal, or of what surely is an int (``k``, ``x.size(2)``)."""
    sizes = sizes_of(argument, rank)
    if sizes is not None:
        return shown(sizes)
    if argument.node is None or not isinstance(argument.fact, Scalar) or argument.fact.kind != "int":
        return None
    return f"({argument.text},)" + (f" * {rank}" if rank > 1 else "")


def pools_all(call: Call, rank: int, batched: bool = False) -> bool:
    """Whether a function's one window is all of its input, whose name says so: ``F.avg_pool2d(x, x.size()[2:])``.

    An axis that is counted from the front asks for an input with a batch: it is ``batched``, or its rank is known.
    """
    if any(call.given(name) for name in call.arguments if name not in ("input", "kernel_size")):
        return False
    match call.arguments.get("input"):
        case Argument(node=ast.Name(id=name), fact=fact):
            batched = batched or isinstance(fact, Tensor) and fact.rank == rank + 2
            window = ast.unparse(call["kernel_size"].node or ast.Constant(None))
            return window in _whole_windows(name, rank, (2, -rank) if batched else (-rank,))
    return False


@functools.cache
def _whole_windows(name: str, rank: int, starts: tuple[int, ...]) -> frozenset[str]:
    """How the lengths of a tensor's last `rank` axes, which start at one of `starts`, are spelled."""
    texts = {f"{name}.{shape}[{start}:]" for shape in ("size()", "shape") for start in starts}
    for start in starts:
        for one in (f"{name}.size({{}})", f"{name}.shape[{{}}]", f"{name}.size()[{{}}]"):
            lengths = [one.format(axis) for axis in range(start, start + rank)]
            texts |= {lengths[0]} if rank == 1 else {f"({', '.join(lengths)})", f"[{', '.join(lengths)}]"}
    return frozenset(texts)
