"""torch objects that stand for themselves: classes in annotations, base classes, values."""

from __future__ import annotations

ANNOTATIONS = {
    "torch.Tensor": "jax.Array",
    "torch.FloatTensor": "jax.Array",
    "torch.LongTensor": "jax.Array",
    "torch.IntTensor": "jax.Array",
    "torch.BoolTensor": "jax.Array",
    "torch.nn.Parameter": "nnx.Param",
    "torch.nn.Module": "nnx.Module",
    "torch.nn.ModuleList": "nnx.List",
    "torch.nn.ModuleDict": "nnx.Dict",
    "torch.nn.Sequential": "nnx.Sequential",
    "torch.dtype": "jnp.dtype",
    "torch.device": "jax.Device",
    "torch.Size": "tuple[int, ...]",
    "torch.Generator": "nnx.Rngs",
    "torch.optim.Optimizer": "nnx.Optimizer",
}
"""What a type annotation becomes."""

VALUES = {
    "torch.Tensor": "jax.Array",
    "torch.nn.Module": "nnx.Module",
    "torch.nn.Parameter": "nnx.Param",
    "torch.Size": "tuple",
}
"""What the class object itself becomes (``isinstance(x, torch.Tensor)``, base classes)."""

WALKS = {
    "modules": "nnx.iter_modules({})",
    "children": "nnx.iter_module_children({})",
    "parameters": "nnx.to_flat_state(nnx.state({}, nnx.Param))",
}
"""Each yields pairs of a path (of a child: its key) and what stands there; the parameters are the module's own."""
