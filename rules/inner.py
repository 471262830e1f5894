"""Functions that PyTorch made for its own use (views that copy, kernels of layers), and what is written instead.

Copies of views are what the views are: arrays can't be written through.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

from ._arguments import dtype_of, is_dtype, size_rank
from ._axes import axis
from ._facts import reduced, same
from .functional import updates_statistics


@rule("torch.view_copy(input, size)", jax="x.reshape(shape)")
def view_copy(call: Call) -> Piece:
    return call.emit("{input}.view({size})" if is_dtype(call["size"]) else "{input}.reshape({size})")


Row("torch.fill(input, value)", "jnp.full_like({input}, {value})", result=same)
Row("torch.zero_(input)", "jnp.zeros_like({input})", result=same)

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def _grid_sampler(call: Call) -> Piece | Refusal:
    """The modes are numbers here, which ``F.grid_sample`` has names for."""
    mode, padding = call.literal("interpolation_mode"), call.literal("padding_mode")
    if mode not in range(3) or padding not in range(3):
        return call.refuse("The modes are no numbers in plain sight: write F.grid_sample, which converts.")
    return call.emit(
        f'grid_sample({{input}}, {{grid}}, mode="{MODES[mode]}", padding_mode="{PADDINGS[padding]}",'
        " align_corners={align_corners})"
    )


for name in ("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"):
    rule(
        f"torch.{name}(input, grid, interpolation_mode, padding_mode, align_corners)",
        jax="grid_sample(x, grid)",
        result=same,
    )(_grid_sampler)

WRAPPED = {
    "native_dropout": "F.dropout",
}
for name, wrapper in WRAPPED.items():
    refuse(f"torch.{name}", f"An inner function of PyTorch: write {wrapper}, which converts.")

Row(
    "torch.native_layer_norm(input, normalized_shape, weight, bias, eps)",
    "native_layer_norm({input}, {normalized_shape}, {weight}, {bias}, {eps})",
    result="tensors",
)
Row(
    "torch.native_group_norm(input, weight, bias, N, C, HxW, group, eps)",
    "native_group_norm({input}, {group}, {weight}, {bias}, {eps})",
    ignore=["N", "C", "HxW"],
    result="tensors",
)


@rule(
    "torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)",
    jax="native_batch_norm(x, weight, bias, mean, var, training, eps)",
    ignore=["momentum"],
    result="tensors",
)
def native_batch_norm(call: Call) -> Piece | Refusal:
    if updates_statistics(call, "training"):
        return call.refuse("In training it updates the running statistics in place: write nn.BatchNorm2d.")
    return call.emit("native_batch_norm({input}, {weight}, {bias}, {running_mean}, {running_var}, {training}, {eps})")


# Strides --------------------------------------------------------------------------------------------------------

IN_ORDER = (
    "Elements are counted in the tensor's own order; PyTorch counts in memory, where a tensor that was transposed, "
    "expanded or sliced has another."
)


def _strided(call: Call) -> Piece:
    offset = ", {storage_offset}" if call.given("storage_offset") else ""
    return call.emit(f"{{input}}.ravel()[strided_index({{size}}, {{stride}}{offset})]")


for name in ("as_strided", "as_strided_", "as_strided_copy"):
    rule(
        f"torch.{name}(input, size, stride, storage_offset=None)",
        jax="x.ravel()[strided_index(size, stride)]",
        method=name != "as_strided_copy",
        fidelity=CLOSE,
        note=IN_ORDER,
        result=lambda call: Tensor(size_rank(call["size"]), dtype_of(call["input"])),
    )(_strided)


@rule(
    "torch.as_strided_scatter(input, src, size, stride, storage_offset=None)",
    jax="x.ravel().at[strided_index(size, stride)].set(src).reshape(x.shape)",
    method=True,
    fidelity=CLOSE,
    note=IN_ORDER,
    result=same,
)
def as_strided_scatter(call: Call) -> Piece:
    offset = ", {storage_offset}" if call.given("storage_offset") else ""
    places = f"strided_index({{size}}, {{stride}}{offset})"
    return call.emit(f"{{input}}.ravel().at[{places}].set({{src}}).reshape({{input}}.shape)")


Row(
    "torch.Tensor.new_empty_strided(self, size, stride, dtype=None, layout=None, device=None, pin_memory=None,"
    " requires_grad=False)",
    "jnp.empty_like({self}, shape={size}, dtype={dtype?})",
    ignore=["stride", "requires_grad"],
)
FACTORY = "dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None"
for name, order in (("empty_strided", "stride"), ("empty_permuted", "physical_layout")):
    Row(
        f"torch.{name}(size, {order}, *, {FACTORY})",
        "jnp.empty({size}, dtype={dtype?})",
        ignore=[order, "requires_grad"],
    )
refuse("torch.resize_as_", "JAX arrays don't change their size: write x.reshape(other.shape), or jnp.pad.")
Row(
    "torch.histogramdd(input, bins, range=None, weight=None, density=False)",
    "histogramdd({input}, {bins}, range={range?}, weight={weight?}, density={density?})",
    result="tensors",
)
Row(
    "torch.renorm(input, p, dim, maxnorm)",
    "renorm({input}, p={p}, axis={dim}, maxnorm={maxnorm})",
    method=True,
    result=same,
)


@rule(
    "torch.hash_tensor(input, dim=None, *, keepdim=False, mode=0)",
    jax="hash_tensor(x, axis)",
    method=True,
    result=reduced,
    ignore=["mode"],
)
def hash_tensor(call: Call) -> Piece | Refusal:
    """There is one mode. ``dim=()`` is all of them."""
    if not call.site.x64:
        return call.refuse("The hash has 64 bits, which JAX's arrays have under jax_enable_x64 only: convert with x64.")
    return call.emit("hash_tensor({input}, axis={axis?}, keepdims={keepdim?})", axis=axis(call))
