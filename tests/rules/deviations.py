"""Where converted code is known to part from PyTorch, each with a reason. A row that isn't needed is an error."""

from __future__ import annotations

F = "torch.nn.functional."
POLYGAMMA = "PyTorch's polygamma is off by 1e-9"
UNINITIALISED = "the values are whatever was in memory"

DEVIATIONS: dict[str, dict[str, str]] = {
    # what PyTorch does not compute exactly, or not at all
    "torch.polygamma": {"values": POLYGAMMA},
    F + "hardsigmoid": {"gradients": "PyTorch multiplies by 1 / 6 in float32"},
    # derivatives that are taken otherwise
    "torch.cholesky_solve": {
        "gradients": "PyTorch's gradient has both triangles of the factor, JAX's the one it reads"
    },
    "torch.as_strided_scatter": {"gradients": "PyTorch gives the input that of what is written over it"},
    "torch.ormqr": {"gradients": "PyTorch's divides by tau |v|^2 - 1, which may be 0"},
    "torch.linalg.pinv": {"gradients": "of a Hermitian matrix: PyTorch's gradient is symmetric, JAX's is not"},
    F + "multi_head_attention_forward": dict.fromkeys(
        ("values", "gradients"), "samples that drop weights draw: the function takes rngs"
    ),
    # arguments that JAX takes otherwise
    "torch.meshgrid": {"values": "of tensors without axes", "gradients": "as the values"},
    "torch.tensor_split": {"torch": "a tensor of indices has a keyword of its own, tensor_indices_or_sections"},
    # nothing to compare
    "torch.empty": {"values": UNINITIALISED},
    "torch.empty_like": {"values": UNINITIALISED},
    "torch.empty_permuted": {"values": UNINITIALISED},
    "torch.empty_strided": {"values": UNINITIALISED},
    "torch.Tensor.new_empty": {"values": UNINITIALISED},
    "torch.Tensor.new_empty_strided": {"values": UNINITIALISED},
}
"""By rule and by what differs: ``torch`` (a spelling that PyTorch refuses), ``values`` or ``gradients``."""

UNDRIVEN: dict[str, str] = {
    "torch.linalg.eigh": "the signs of the vectors are arbitrary; test_linalg puts the matrix together again",
    "torch.linalg.eig": "as eigh",
    **{
        f"torch.nn.attention.flex_attention.{name}": "given functions, which no sample is; test_functional runs it"
        for name in ("flex_attention", "create_block_mask", "create_mask", "and_masks", "or_masks")
    },
    **{
        f"torch.nn.attention.SDPBackend.{name}": "the name of a kernel; test_function_values converts it"
        for name in (*("ERROR", "MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "OVERRIDEABLE"),)
    },
    "torch.nn.attention.sdpa_kernel": "a context, which no sample enters; test_function_values does",
    "torch.backends.cuda.sdp_kernel": "as sdpa_kernel",
    "torch.nn.functional._canonical_mask": "PyTorch's own, which its database has no samples of",
    "torch.nn.functional._none_or_dtype": "as _canonical_mask",
}
"""Rules of the subjects below that no sample reaches, and why."""

WHOLLY = (
    *("pointwise", "comparison", "reductions", "cumulative", "ordering", "products", "linalg", "spectral", "special"),
    *("activations", "functional", "convolution", "resize", "losses", "attention"),
)
"""Subjects of which every rule must be driven. The others hold constructors and attributes, with tests of their own."""
