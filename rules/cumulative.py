"""Running sums and differences along an axis: ``torch.cumsum``, ``torch.diff``, ``torch.trapezoid``, ..."""

from __future__ import annotations

from t2j_lsp.translate.rule.library import numbered_by
from t2j_lsp.translate.rule.record import Call, Piece, Row, rule

from ._axes import spelled
from ._facts import same, same_pair

numbered_by("n", of=("torch.diff", "torch.Tensor.diff"))


@rule("torch.cumsum(input, dim, *, dtype=None)", jax="jnp.cumsum(x, axis)", method=True, result=same)
def cumsum(call: Call) -> Piece:
    return spelled(call, "cumsum", "axis={dim}, dtype={dtype?}")


@rule("torch.cumprod(input, dim, *, dtype=None)", jax="jnp.cumprod(x, axis)", method=True, result=same)
def cumprod(call: Call) -> Piece:
    return spelled(call, "cumprod", "axis={dim}, dtype={dtype?}")


Row("torch.cummax(input, dim)", "cummax_with_indices({input}, axis={dim})", method=True, result=same_pair)
Row("torch.cummin(input, dim)", "cummin_with_indices({input}, axis={dim})", method=True, result=same_pair)
Row(
    "torch.logcumsumexp(input, dim)",
    "jnp.logaddexp.accumulate({input}, axis={dim})",
    method=True,
    result=same,
)
Row(
    "torch.diff(input, n=1, dim=-1, prepend=None, append=None)",
    "jnp.diff({input}, n={n?}, axis={dim?}, prepend={prepend?}, append={append?})",
    method=True,
    result=same,
)


@rule("torch.trapezoid(y, x=None, *, dx=None, dim=-1)", jax="jnp.trapezoid(y, x)", aliases=["torch.trapz"])
def trapezoid(call: Call) -> Piece:
    return call.emit("jnp.trapezoid({y}, x={x?}, dx={dx?}, axis={dim?})")


Row(
    "torch.gradient(input, *, spacing=1, dim=None, edge_order=1)",
    "gradient({input}, spacing={spacing?}, axis={dim?}, edge_order={edge_order?})",
    result="tensors",
)
Row(
    "torch.cumulative_trapezoid(y, x=None, *, dx=None, dim=-1)",
    "cumulative_trapezoid({y}, x={x?}, dx={dx?}, axis={dim?})",
)
