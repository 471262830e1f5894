"""Elementwise functions and arithmetic: ``torch.exp``, ``Tensor.add``, ``torch.clamp``, ... (docs: Pointwise Ops)."""

from __future__ import annotations

import ast
from dataclasses import replace

from t2j_lsp.translate.rule.facts import Fact, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.library import numbered_by
from t2j_lsp.translate.rule.pieces import UNARY
from t2j_lsp.translate.rule.powers import NEGATIVE_EXPONENTS, may_be_floats, may_be_integers
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, rule

from ._arguments import rank_of
from ._facts import as_float, broadcast, first, is_bool, is_float, is_integer, same
from ._unknown_values import is_unknown_parameter
from .ordering import as_part

numbered_by("decimals")

# One operand: the same value and gradient under the same name in jax.numpy. Integers give floats on both sides.
for name in [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "sinc",
    "deg2rad",
    "rad2deg",
]:
    Row(f"torch.{name}(input)", f"jnp.{name}({{input}})", method=True, result=as_float)
for name in ("ceil", "floor"):
    Row(f"torch.{name}(input)", f"jnp.{name}({{input}})", method=True, result=same)
for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
    jax, aliases = f"jnp.arc{name}", [f"torch.arc{name}", f"torch.Tensor.arc{name}"]
    Row(f"torch.a{name}(input)", f"{jax}({{input}})", method=True, aliases=aliases, result=as_float)
Row("torch.trunc(input)", "jnp.trunc({input})", method=True, aliases=["torch.fix", "torch.Tensor.fix"], result=same)


@rule("torch.rsqrt(input)", jax="jax.lax.rsqrt(x)", method=True, result=as_float)
def rsqrt(call: Call) -> Piece:
    """jax.lax.rsqrt takes no integers."""
    return call.emit("1 / jnp.sqrt({input})" if is_integer(first(call).fact) else "jax.lax.rsqrt({input})")


def _squared(call: Call) -> Fact:
    return Tensor(rank_of(first(call)), "int") if is_bool(first(call).fact) else same(call)


@rule("torch.square(input)", jax="jnp.square(x)", method=True, result=_squared)
def square(call: Call) -> Piece:
    """jnp.square of bools is int32, whatever x64 says."""
    fact = first(call).fact
    if call.site.x64 and is_bool(fact):
        return call.emit("jnp.square({input}.astype(jnp.int64))")
    if call.site.x64 and isinstance(fact, Tensor) and fact.dtype is None:
        call.note("The square of bools is int64 in PyTorch, int32 in JAX.")
    return call.emit("jnp.square({input})")


Row("torch.reciprocal(input)", "1 / {input}", method=True, result=as_float)
Row("torch.neg(input)", "-{input}", method=True, aliases=["torch.negative", "torch.Tensor.negative"], result=same)
Row("torch.positive(input)", "+{input}", method=True, result=same)
Row("torch.frac(input)", "{input} - jnp.trunc({input})", method=True, result=same)

NAN_SIGN = "The sign of NaN is 0 in PyTorch and NaN in JAX."
for name in ("sign", "sgn"):

    @rule(f"torch.{name}(input)", jax="jnp.sign(x)", method=True, result=same, fidelity=CLOSE)
    def sign(call: Call) -> Piece:
        """Bools have no sign, and integers no NaN."""
        fact = call["input"].fact
        if is_bool(fact):
            return call.emit("{input}")
        if not is_integer(fact):
            call.note(NAN_SIGN)
        return call.emit("jnp.sign({input})")


Row(
    "torch.nan_to_num(input, nan=0.0, posinf=None, neginf=None)",
    "jnp.nan_to_num({input}, nan={nan?}, posinf={posinf?}, neginf={neginf?})",
    method=True,
    result=same,
)


@rule(
    "torch.abs(input)",
    jax="absolute(x)",
    method=True,
    aliases=["torch.absolute", "torch.Tensor.absolute"],
    result=same,
)
def absolute(call: Call) -> Piece:
    """The gradient of jnp.abs is 1 at 0 where PyTorch's is 0; integers have no gradient."""
    plain = is_integer(first(call).fact) or call.site.without_gradient
    return call.emit("jnp.abs({input})" if plain else "absolute({input})")


Row(
    "torch.round(input, *, decimals=0)",
    "jnp.round({input}, decimals={decimals?})",
    method=True,
    aliases=["torch.special.round"],
    result=same,
)


# Two operands ---------------------------------------------------------------------------------------------------
# Sums have an older form, which still runs: the factor stands in front of what it scales.


@rule(
    "torch.add(input, other, *, alpha=1)",
    "torch.add(input, alpha, other)",
    jax="x + alpha * y",
    method=True,
    result=broadcast,
)
def add(call: Call) -> Piece:
    return _scaled_sum(call, "+", "alpha", "{other}")


@rule(
    "torch.sub(input, other, *, alpha=1)",
    "torch.sub(input, alpha, other)",
    jax="x - alpha * y",
    method=True,
    aliases=["torch.subtract", "torch.Tensor.subtract"],
    result=broadcast,
)
def sub(call: Call) -> Piece:
    return _scaled_sum(call, "-", "alpha", "{other}")


def _scaled_sum(call: Call, sign: str, factor: str, term: str) -> Piece:
    """``x + a * y``; ``x - a * y`` where ``-a`` is added."""
    if not call.given(factor):
        return call.emit(f"{{input}} {sign} {term}")
    scale = call[factor]
    if isinstance(scale.node, ast.UnaryOp) and isinstance(scale.node.op, ast.USub) and scale.piece.text[:1] == "-":
        sign = "-" if sign == "+" else "+"
        return call.emit(f"{{input}} {sign} {{_}} * {term}", _=Piece(scale.piece.text[1:].lstrip(), UNARY))
    return call.emit(f"{{input}} {sign} {{{factor}}} * {term}")


@rule("torch.rsub(input, other, *, alpha=1)", jax="y - alpha * x", result=broadcast)
def rsub(call: Call) -> Piece:
    return call.emit("{other} - {alpha} * {input}" if call.given("alpha") else "{other} - {input}")


Row(
    "torch.mul(input, other)",
    "{input} * {other}",
    method=True,
    aliases=["torch.multiply", "torch.Tensor.multiply"],
    result=broadcast,
)


@rule(
    "torch.div(input, other, *, rounding_mode=None)",
    jax="x / y",
    method=True,
    aliases=["torch.divide", "torch.Tensor.divide"],
    result=broadcast,
)
def div(call: Call) -> Piece | Refusal:
    match call.literal("rounding_mode"):
        case None:
            return call.emit("{input} / {other}")
        case "floor":
            return call.emit("{input} // {other}")
        case "trunc":
            floats = any(is_float(call[name].fact) for name in ("input", "other"))
            return call.emit("jnp.trunc({input} / {other})" if floats else "trunc_divide({input}, {other})")
        case _:
            return call.refuse("rounding_mode must be spelled out: 'floor', 'trunc' or None")


Row(
    "torch.true_divide(input, other)",
    "{input} / {other}",
    method=True,
    result=broadcast,
)
Row("torch.floor_divide(input, other)", "{input} // {other}", method=True, result=broadcast)
Row("torch.remainder(input, other)", "{input} % {other}", method=True, result=broadcast)
Row("torch.fmod(input, other)", "jnp.fmod({input}, {other})", method=True, result=broadcast)


@rule("torch.pow(input, exponent)", jax="x**y", method=True, result=broadcast)
def pow(call: Call) -> Piece:
    """Where both may be 0, PyTorch's gradient is 0 and JAX's NaN; of integers JAX's is 0, too."""
    facts = call["input"].fact, call["exponent"].fact
    if may_be_integers(*facts):
        call.note(NEGATIVE_EXPONENTS)
    return call.emit("power({input}, {exponent})" if may_be_floats(*facts) else "{input}**{exponent}")


Row(
    "torch.float_power(input, exponent)",
    "jnp.float_power({input}, {exponent})",
    method=True,
    fidelity=CLOSE,
    note="PyTorch computes in float64; JAX in its default float type.",
)
Row("torch.maximum(input, other)", "jnp.maximum({input}, {other})", method=True, result=broadcast)
Row("torch.minimum(input, other)", "jnp.minimum({input}, {other})", method=True, result=broadcast)
for name in ("fmax", "fmin"):
    Row(f"torch.{name}(input, other)", f"{name}({{input}}, {{other}})", method=True, result=broadcast)
Row(
    "torch.atan2(input, other)",
    "arctan2({input}, {other})",
    method=True,
    aliases=["torch.arctan2", "torch.Tensor.arctan2"],
    result=broadcast,
)
Row(
    "torch.hypot(input, other)",
    "jnp.hypot({input}, {other})",
    method=True,
    result=broadcast,
    fidelity=CLOSE,
    note="The gradient at (0, 0) is NaN in PyTorch and finite in JAX.",
)
Row("torch.copysign(input, other)", "copysign({input}, {other})", method=True, result=broadcast)
for name in ("logaddexp", "logaddexp2"):
    Row(f"torch.{name}(input, other)", f"jnp.{name}({{input}}, {{other}})", method=True, result=broadcast)


@rule("torch.heaviside(input, values)", jax="jnp.heaviside(x, values)", method=True, result=broadcast)
def heaviside(call: Call) -> Piece:
    """PyTorch's result has the dtype of both operands; jnp.heaviside gives floats for integers."""
    text = "jnp.heaviside({input}, {values})"
    return call.emit(text if is_float(first(call).fact) else f"{text}.astype({{input}}.dtype)")


Row(
    "torch.nextafter(input, other)",
    "nextafter({input}, {other})",
    method=True,
    result=broadcast,
)
for name in ("gcd", "lcm"):
    Row(f"torch.{name}(input, other)", f"jnp.{name}({{input}}, {{other}})", method=True, result=broadcast)


def _mantissa_and_exponent(call: Call) -> Fact:
    fact = same(call)
    integers = replace(fact, dtype="int") if isinstance(fact, Tensor) else Tensor(dtype="int")
    return Tuple((fact, integers), fields=("mantissa", "exponent"))


Row("torch.ldexp(input, other)", "{input} * 2.0**{other}", method=True, result=broadcast)


@rule("torch.frexp(input)", jax="jnp.frexp(x)", method=True, result=_mantissa_and_exponent)
def frexp(call: Call) -> Piece:
    """JAX's tuple has no names: ``.mantissa`` is its first value."""
    place = {"mantissa": 0, "exponent": 1}.get(str(call.site.index))
    return call.emit("jnp.frexp({input})") if place is None else as_part(call.emit(f"jnp.frexp({{input}})[{place}]"))


# Three operands -------------------------------------------------------------------------------------------------

Row(
    "torch.lerp(input, end, weight)",
    "{input} + {weight} * ({end} - {input})",
    method=True,
    result=broadcast,
)


@rule(
    "torch.addcmul(input, tensor1, tensor2, *, value=1)",
    "torch.addcmul(input, value, tensor1, tensor2)",
    jax="x + value * a * b",
    method=True,
    result=broadcast,
)
def addcmul(call: Call) -> Piece:
    return _scaled_sum(call, "+", "value", "{tensor1} * {tensor2}")


@rule(
    "torch.addcdiv(input, tensor1, tensor2, *, value=1)",
    "torch.addcdiv(input, value, tensor1, tensor2)",
    jax="x + value * a / b",
    method=True,
    result=broadcast,
)
def addcdiv(call: Call) -> Piece:
    return _scaled_sum(call, "+", "value", "{tensor1} / {tensor2}")


# Bounds ---------------------------------------------------------------------------------------------------------
# jnp.clip halves the gradient of values that lie on a bound, PyTorch does not: the helper `clamp` is exact.


def _clip(call: Call, arguments: str) -> Piece:
    bounds = [call[name].fact for name in ("min", "max") if name in call.arguments]
    passed = len(bounds) == 2 and all(map(is_unknown_parameter, bounds))  # arrays or numbers, which may be equal
    if passed or any(isinstance(bound, Tensor) and not is_integer(bound) for bound in bounds):
        return call.emit(f"clamp_to({{input}}, {arguments})")
    floats = any(_is_float_number(call, name) for name in ("min", "max"))
    if floats if is_integer(first(call).fact) else not call.site.without_gradient:
        return call.emit(f"clamp({{input}}, {arguments})")
    return call.emit(f"{{input}}.clip({arguments})" if call.method else f"jnp.clip({{input}}, {arguments})")


def _is_float_number(call: Call, name: str) -> bool:
    fact = call[name].fact if name in call.arguments else None
    return isinstance(fact, Scalar) and fact.kind == "float"


@rule(
    "torch.clamp(input, min=None, max=None)",
    jax="clamp(x, min, max)",
    method=True,
    aliases=["torch.clip", "torch.Tensor.clip"],
    result=same,
)
def clamp(call: Call) -> Piece:
    low, high = call.given("min"), call.given("max")
    return _clip(call, "{min}, {max}" if low and high else "min={min}" if low else "max={max}")


@rule("torch.clamp_min(input, min)", jax="clamp(x, min=min)", method=True, result=same)
def clamp_min(call: Call) -> Piece:
    return _clip(call, "min={min}")


@rule("torch.clamp_max(input, max)", jax="clamp(x, max=max)", method=True, result=same)
def clamp_max(call: Call) -> Piece:
    return _clip(call, "max={max}")
