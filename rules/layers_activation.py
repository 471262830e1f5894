"""Activation layers (torch docs: torch.nn, Non-linear Activations).

Where JAX's function is the same in value and gradient the layer is that function; where PyTorch differs, or where
``isinstance`` asks for the class, it is a small module.
"""

from __future__ import annotations

from collections.abc import Callable

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.layer import layer
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Call

SAME = Tensor(dtype="same")

for name, function, arguments in (
    ("ReLU", "nnx.relu", "inplace=False"),
    ("ReLU6", "nnx.relu6", "inplace=False"),
    ("SiLU", "nnx.silu", "inplace=False"),
    ("Mish", "jax.nn.mish", "inplace=False"),
    ("Hardswish", "nnx.hard_swish", "inplace=False"),
    ("Hardsigmoid", "nnx.hard_sigmoid", "inplace=False"),
    ("SELU", "nnx.selu", "inplace=False"),
    ("Sigmoid", "nnx.sigmoid", ""),
    ("Tanh", "nnx.tanh", ""),
    ("LogSigmoid", "nnx.log_sigmoid", ""),
    ("Softsign", "nnx.soft_sign", ""),
):
    layer(f"torch.nn.{name}({arguments})", function, function=True, random=False, result=SAME, elementwise=True)


def _gelu(call: Call) -> Piece | None:
    match call.literal("approximate"):
        case "none":
            return call.emit("lambda x: nnx.gelu(x, approximate=False)")
        case "tanh":
            return call.emit("lambda x: nnx.gelu(x, approximate=True)")
        case _:
            return None


def _leaky_relu(call: Call) -> Piece | None:
    """The function of a slope that is known: a variable could be another one by the time of the call."""
    slope = call.literal("negative_slope")
    return call.emit("lambda x: jnp.where(x > 0, x, {negative_slope} * x)") if isinstance(slope, float | int) else None


def _elu(function: str) -> Callable[[Call], Piece | None]:
    """The function of an alpha that is known, alone where that is 1."""

    def build(call: Call) -> Piece | None:
        alpha = call.literal("alpha")
        if not isinstance(alpha, float | int):
            return None
        return call.emit(function if alpha == 1 else f"lambda x: {function}(x, {{alpha}})")

    return build


def _softplus(call: Call) -> Piece | None:
    threshold = call.literal("threshold")
    if call.literal("beta") != 1 or not isinstance(threshold, float | int):
        return None
    return call.emit("lambda x: jnp.where(x > {threshold}, x, nnx.softplus(x))")


def _softmax(function: str) -> object:
    def build(call: Call) -> Piece | None:
        if call.literal("dim") is None:
            return None
        return call.emit(f"functools.partial({function}, axis={{dim}})")

    return build


layer(
    "torch.nn.GELU(approximate='none')",
    _gelu,
    function=True,
    random=False,
    result=SAME,
    elementwise=True,
    jax="lambda x: nnx.gelu(x, approximate=False)",
)
layer(
    "torch.nn.LeakyReLU(negative_slope=0.01, inplace=False)",
    _leaky_relu,
    function=True,
    random=False,
    result=SAME,
    elementwise=True,
    jax="lambda x: jnp.where(x > 0, x, negative_slope * x)",
)
for name, function in (("ELU", "nnx.elu"), ("CELU", "nnx.celu")):
    layer(
        f"torch.nn.{name}(alpha=1.0, inplace=False)",
        _elu(function),
        function=True,
        random=False,
        result=SAME,
        elementwise=True,
        jax=f"lambda x: {function}(x, alpha)",
    )
layer(
    "torch.nn.Softplus(beta=1.0, threshold=20.0)",
    _softplus,
    function=True,
    random=False,
    result=SAME,
    elementwise=True,
    jax="lambda x: jnp.where(x > threshold, x, nnx.softplus(x))",
)
layer(
    "torch.nn.Tanhshrink()",
    "lambda x: x - jnp.tanh(x)",
    function=True,
    random=False,
    result=SAME,
    elementwise=True,
)
for name, function in (("Softmax", "nnx.softmax"), ("LogSoftmax", "nnx.log_softmax")):
    layer(
        f"torch.nn.{name}(dim=None)",
        _softmax(function),  # type: ignore[arg-type]
        function=True,
        random=False,
        result=SAME,
        jax=f"functools.partial({function}, axis=dim)",
    )
for signature in (
    "Hardtanh(min_val=-1.0, max_val=1.0, inplace=False)",
    "Hardshrink(lambd=0.5)",
    "Softshrink(lambd=0.5)",
    "Threshold(threshold, value, inplace=False)",
):
    layer(f"torch.nn.{signature}", random=False, result=SAME, elementwise=True)
for signature in ("GLU(dim=-1)", "Softmin(dim=None)", "Softmax2d()"):
    layer(f"torch.nn.{signature}", random=False, result=SAME)
layer(
    "torch.nn.PReLU(num_parameters=1, init=0.25, device=None, dtype=None)",
    result=SAME,
    elementwise_without="num_parameters",
)
layer("torch.nn.RReLU(lower=0.125, upper=0.3333333333333333, inplace=False)", result=SAME)

trait(
    Trait.SAME_SHAPE,
    *(f"torch.nn.{name}" for name in ("Softmax", "LogSoftmax", "Softmin", "Softmax2d", "PReLU", "RReLU")),
)
trait(Trait.RELU, "torch.nn.ReLU", "torch.nn.functional.relu")
