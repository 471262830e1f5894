"""Activation functions, spelled ``torch.relu``, ``F.relu`` or ``Tensor.relu`` (docs: Non-linear activations).

jax.nn has most of them. A helper stands where PyTorch's gradient at a kink is another one or where it takes a parameter
that JAX's doesn't. The layers (``nn.ReLU``) are in ``layers``.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import Call, Piece, Row, rule

from ._facts import as_float, first, is_float, is_integer, same

F = "torch.nn.functional"
HALF = ("torch.float16", "torch.bfloat16")

# Without parameters, and the same in jax.nn in value and gradient.
for name, jax, aliases in (
    ("relu", "jax.nn.relu", ["torch.relu", "torch.Tensor.relu"]),
    ("silu", "jax.nn.silu", []),
    ("mish", "jax.nn.mish", []),
    ("selu", "jax.nn.selu", ["torch.selu"]),
    ("hardswish", "jax.nn.hard_swish", []),
    ("hardsigmoid", "jax.nn.hard_sigmoid", []),
):
    Row(f"{F}.{name}(input, inplace=False)", f"{jax}({{input}})", aliases=aliases, result=same)


@rule(f"{F}.relu6(input, inplace=False)", jax="jax.nn.relu6(x)", result=same)
def relu6(call: Call) -> Piece:
    """jax.nn.relu6 gives floats for integers, PyTorch integers."""
    return call.emit("jax.nn.relu6({input})" + ("" if is_float(first(call).fact) else ".astype({input}.dtype)"))


Row(f"{F}.softsign(input)", "jax.nn.soft_sign({input})", result=same)
Row(f"{F}.logsigmoid(input)", "jax.nn.log_sigmoid({input})", result=same)
Row(f"{F}.tanh(input)", "jnp.tanh({input})", result=as_float)
Row(f"{F}.tanhshrink(input)", "{input} - jnp.tanh({input})", result=same)


@rule(
    "torch.sigmoid(input)",
    jax="jax.nn.sigmoid(x)",
    method=True,
    aliases=[f"{F}.sigmoid", "torch.special.expit"],
    result=as_float,
)
def sigmoid(call: Call) -> Piece:
    """jax.nn.sigmoid takes no integers."""
    cast = ".astype(jnp.float32)" if is_integer(first(call).fact) else ""
    return call.emit(f"jax.nn.sigmoid({{input}}{cast})")


Row(f"{F}.elu(input, alpha=1.0, inplace=False)", "jax.nn.elu({input}, alpha={alpha?})", result=same)
Row(
    f"{F}.celu(input, alpha=1.0, inplace=False)",
    "jax.nn.celu({input}, alpha={alpha?})",
    aliases=["torch.celu"],
    result=same,
)
Row(f"{F}.glu(input, dim=-1)", "jax.nn.glu({input}, axis={dim?})", result=same)


@rule(f"{F}.gelu(input, approximate='none')", jax="jax.nn.gelu(x, approximate=False)", result=same)
def gelu(call: Call) -> Piece:
    """PyTorch's default is exact, JAX's is the tanh approximation."""
    match call.literal("approximate"):
        case "none":
            return call.emit("jax.nn.gelu({input}, approximate=False)")
        case "tanh":
            return call.emit("jax.nn.gelu({input}, approximate=True)")
        case _:
            return call.emit('jax.nn.gelu({input}, approximate={approximate} == "tanh")')


# PyTorch's parameters, and its gradients at the kinks ------------------------------------------------------------

Row(
    f"{F}.leaky_relu(input, negative_slope=0.01, inplace=False)",
    "leaky_relu({input}, negative_slope={negative_slope?})",
    result=same,
)
Row(
    f"{F}.hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False)",
    "hardtanh({input}, min_val={min_val?}, max_val={max_val?})",
    result=same,
)
Row(
    f"{F}.softplus(input, beta=1, threshold=20)",
    "softplus({input}, beta={beta?}, threshold={threshold?})",
    result=same,
)
Row(f"{F}.softshrink(input, lambd=0.5)", "softshrink({input}, lambd={lambd?})", result=same)
Row(
    f"{F}.hardshrink(input, lambd=0.5)",
    "hardshrink({input}, lambd={lambd?})",
    aliases=["torch.hardshrink", "torch.Tensor.hardshrink"],
    result=same,
)
Row(
    f"{F}.threshold(input, threshold, value, inplace=False)",
    "jnp.where({input} > {threshold}, {input}, {value})",
    aliases=["torch.threshold"],
    result=same,
)
Row(
    f"{F}.prelu(input, weight)",
    "prelu({input}, {weight})",
    aliases=["torch.prelu", "torch.Tensor.prelu"],
    result=same,
)


@rule(
    f"{F}.rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False)",
    jax="rrelu(x, lower, upper, deterministic=not training, rngs=rngs)",
    aliases=["torch.rrelu"],
    result=same,
    random=True,
)
def rrelu(call: Call) -> Piece:
    bounds = "{input}, lower={lower?}, upper={upper?}"
    if call.literal("training") is False:
        return call.emit(f"rrelu({bounds})")
    return call.emit(f"rrelu({bounds}, deterministic=not {{training}}, rngs={{rngs}})", rngs=call.site.rngs())


# Softmax --------------------------------------------------------------------------------------------------------


def _softmax(call: Call, function: str, sign: str = "") -> Piece:
    fact = first(call).fact
    if isinstance(fact, Tensor) and fact.dtype in HALF and not call.given("dtype") and not call["dim"].is_none:
        # PyTorch computes in float32 inside.
        half = f"jnp.{fact.dtype.removeprefix('torch.')}"
        return call.emit(f"jax.nn.{function}({sign}{{input}}.astype(jnp.float32), axis={{dim}}).astype({half})")
    cast = f"{sign}{{input}}.astype({{dtype}})" if call.given("dtype") else f"{sign}{{input}}"
    if not call["dim"].is_none:
        return call.emit(f"jax.nn.{function}({cast}, axis={{dim}})")
    if isinstance(fact, Tensor) and fact.rank is not None:
        return call.emit(f"jax.nn.{function}({cast}, axis={0 if fact.rank in (0, 1, 3) else 1})")
    return call.emit(f"jax.nn.{function}({cast}, axis=implicit_softmax_axis({{input}}.ndim))")


for name, sign in (("softmax", ""), ("log_softmax", ""), ("softmin", "-")):
    function = "softmax" if sign else name

    def emit(call: Call, function: str = function, sign: str = sign) -> Piece:
        return _softmax(call, function, sign)

    jax = f"jax.nn.{function}({sign}x, axis)"
    signature = f"{F}.{name}(input, dim=None, _stacklevel=3, dtype=None)"
    rule(signature, jax=jax, ignore=["_stacklevel"], result=same)(emit)
    if not sign:
        rule(f"torch.{name}(input, dim, dtype=None)", jax=jax, method=True, result=same)(emit)
        rule(f"torch.special.{name}(input, dim, *, dtype=None)", jax=jax, result=same)(emit)

Row(
    f"{F}.gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1)",
    "gumbel_softmax({logits}, tau={tau?}, hard={hard?}, axis={dim?}, rngs={rngs})",
    ignore=["eps"],
    result=same,
)

ELEMENTWISE = """
    relu relu6 gelu silu mish elu selu celu leaky_relu hardswish hardsigmoid sigmoid tanh softplus logsigmoid
"""
trait(Trait.ELEMENTWISE, *(f"{F}.{name}" for name in ELEMENTWISE.split()))
trait(Trait.ELEMENTWISE, *(f"torch.{name}" for name in ("relu", "sigmoid", "tanh", "selu")))
