"""Functions that PyTorch made for its own use (views that copy, kernels of layers), and what is written instead."""

from __future__ import annotations

from t2j_lsp.translate.rule.record import refuse

COPIES = """
    alias as_strided diagonal expand narrow permute split split_with_sizes squeeze t transpose unbind unfold
    unsqueeze view
"""
for name in COPIES.split():
    spelled = {"alias": "the tensor itself", "expand": "x.expand", "unfold": "x.unfold", "view": "x.view"}
    instead = spelled.get(name, f"torch.{name}")
    refuse(f"torch.{name}_copy", f"A function of PyTorch's compiler: write {instead}, which is no view in JAX either.")

WRAPPED = {
    "native_batch_norm": "nn.BatchNorm2d",
    "native_group_norm": "F.group_norm",
    "native_layer_norm": "F.layer_norm",
    "native_dropout": "F.dropout",
    "grid_sampler": "F.grid_sample",
    "grid_sampler_2d": "F.grid_sample",
    "grid_sampler_3d": "F.grid_sample",
    "unsafe_chunk": "torch.chunk",
    "unsafe_split": "torch.split",
    "unsafe_split_with_sizes": "torch.split_with_sizes",
    "fill": "torch.full_like",
    "zero_": "x.zero_()",
}
for name, wrapper in WRAPPED.items():
    refuse(f"torch.{name}", f"An inner function of PyTorch: write {wrapper}, which converts.")

STRIDES = "JAX arrays have no strides: {}."
refuse("torch.as_strided_scatter", STRIDES.format("write the elements that are meant with x.at[...].set(src)"))
refuse("torch.empty_permuted", STRIDES.format("write jnp.empty(size), its axes are in any order that XLA likes"))
refuse("torch.Tensor.new_empty_strided", STRIDES.format("write jnp.empty(size, x.dtype)"))
refuse("torch.resize_as_", "JAX arrays don't change their size: write x.reshape(other.shape), or jnp.pad.")
refuse("torch.hash_tensor", "JAX has no hash of an array: take hashlib's of its bytes outside of jit.")
refuse(
    "torch.histogramdd",
    "jnp.histogramdd takes ranges and weights otherwise, and returns a list of edges: write the call by hand.",
)
refuse(
    "torch.combinations",
    "Take x[jnp.array(list(itertools.combinations(range(n), r)))]: the indices are known when it is traced.",
)
refuse(
    "torch.nonzero_static",
    "Write jnp.argwhere(x, size=n, fill_value=-1): it pads, and cuts off, as nonzero_static does.",
    aliases=["torch.Tensor.nonzero_static"],
)
refuse(
    "torch.renorm",
    "Write x * jnp.minimum(1, maxnorm / (norm + 1e-7)), with the norm over all axes but dim.",
    aliases=["torch.Tensor.renorm"],
)
refuse("torch.Tensor.sum_to_size", "Write x.sum(axis, keepdims=True) over the axes that size has as 1.")
