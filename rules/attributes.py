"""Attributes of tensors: ``x.device``, ``x.data``, ``x.real``, ``x.requires_grad``, ..."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

from ._arguments import array_text

# Numbers of bytes, complex parts --------------------------------------------------------------------------------

Row("torch.Tensor.itemsize", "{self}.itemsize", result="int")
Row("torch.Tensor.nbytes", "{self}.nbytes", result="int")
Row("torch.Tensor.element_size(self)", "{self}.itemsize", result="int")
Row("torch.Tensor.real", "{self}.real")
Row("torch.Tensor.imag", "{self}.imag")
Row("torch.real(input)", "{input}.real")
Row("torch.imag(input)", "{input}.imag")

# Autograd -------------------------------------------------------------------------------------------------------


@rule("torch.Tensor.data", jax="jax.lax.stop_gradient(x)", result="same")
def data(call: Call) -> Piece:
    return call.emit("jax.lax.stop_gradient({array})", array=array_text(call["self"]))


GRADIENTS = "JAX returns gradients instead of storing them: take them from jax.value_and_grad or nnx.value_and_grad."
refuse("torch.Tensor.grad", GRADIENTS, result="same")
for name in ("grad_fn", "is_leaf", "retains_grad", "output_nr"):
    refuse(f"torch.Tensor.{name}", "JAX keeps no graph on arrays: it traces the function that is differentiated.")
NO_FLAG = (
    "JAX arrays carry no such flag: which arrays get gradients is said where the gradient is taken (argnums, or "
    "nnx.DiffState with a filter)."
)


@rule("torch.Tensor.requires_grad", jax='p.get_metadata("trainable", True)', result="bool")
def requires_grad(call: Call) -> Piece | Refusal:
    """A parameter's flag that another one is given: whoever writes that takes it from the variable."""
    node = call["self"].node
    variable = call.site.parameter(node) if isinstance(node, ast.Attribute) and call.site.hands_flag else None
    if variable is None:
        return call.refuse(NO_FLAG)
    return call.emit('{variable}.get_metadata("trainable", True)', variable=Piece(variable[0]))


# Places and layouts ---------------------------------------------------------------------------------------------

# A traced array knows no device, and one process mostly has one.
Row("torch.Tensor.device", "jax.devices()[0]", ignore=["self"], result="device")
for name, backend in (("is_cuda", "gpu"), ("is_cpu", "cpu")):
    Row(
        f"torch.Tensor.{name}",
        f'jax.default_backend() == "{backend}"',
        ignore=["self"],
        result="bool",
        fidelity=CLOSE,
        note="Asks for JAX's default device, not for the device of this array, which a traced array doesn't know.",
    )
for name in ("is_sparse", "is_quantized", "is_mkldnn", "is_nested", "is_sparse_csr"):
    Row(f"torch.Tensor.{name}", "False", ignore=["self"], result="bool")
for name in ("is_meta", "is_mps", "is_xla", "layout"):
    refuse(f"torch.Tensor.{name}", "JAX arrays have no such attribute.")
Row("torch.device.type", "kind_of_device({self})", result="str")
refuse("torch.device.index", "A JAX device has an id instead, counted over all processes.")
