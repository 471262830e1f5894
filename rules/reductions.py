"""Reductions: ``torch.sum``, ``Tensor.mean``, ``torch.var``, ``Tensor.any``, norms, ... (torch docs: Reduction Ops).

Extremes and order statistics, which give indices too, are in ``ordering.py``; running sums in ``cumulative.py``.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Fact, Scalar, Tuple
from t2j_lsp.translate.rule.record import NO_LITERAL, Call, Piece, Refusal, rule

from ._axes import axis, listed_axis, spelled
from ._facts import first, reduced, reduced_bool, reduced_int, summed

AXES = "axis={axis?}, keepdims={keepdim?}"


def _summary(name: str, jax: str, method: bool) -> None:
    """``torch.sum(input, dim=None, keepdim=False, *, dtype=None)`` and its like."""

    def emit(call: Call) -> Piece:
        template = f"{AXES}, dtype={{dtype?}}"
        if method:
            return spelled(call, jax, template, axis=axis(call))
        return call.emit(f"jnp.{jax}({{input}}, {template})", axis=axis(call))

    signature = f"torch.{name}(input, dim=None, keepdim=False, *, dtype=None)"
    result = reduced if "mean" in name else summed
    rule(signature, jax=f"jnp.{jax}(x, axis)", method=True, result=result)(emit)


for name in ("sum", "mean", "prod"):
    _summary(name, name, method=True)
for name in ("nansum", "nanmean"):
    _summary(name, name, method=False)


@rule("torch.amax(input, dim=(), keepdim=False)", jax="jnp.max(x, axis)", method=True, result=reduced)
def amax(call: Call) -> Piece:
    return spelled(call, "max", AXES, axis=axis(call))


@rule("torch.amin(input, dim=(), keepdim=False)", jax="jnp.min(x, axis)", method=True, result=reduced)
def amin(call: Call) -> Piece:
    return spelled(call, "min", AXES, axis=axis(call))


@rule("torch.any(input, dim=None, keepdim=False)", jax="jnp.any(x, axis)", method=True, result=reduced_bool)
def any_(call: Call) -> Piece:
    return spelled(call, "any", AXES, axis=listed_axis(call))


@rule("torch.all(input, dim=None, keepdim=False)", jax="jnp.all(x, axis)", method=True, result=reduced_bool)
def all_(call: Call) -> Piece:
    return spelled(call, "all", AXES, axis=listed_axis(call))


@rule("torch.count_nonzero(input, dim=None)", jax="jnp.count_nonzero(x, axis)", method=True, result=reduced_int)
def count_nonzero(call: Call) -> Piece:
    return call.emit("jnp.count_nonzero({input}, axis={axis?})", axis=axis(call))


@rule(
    "torch.logsumexp(input, dim, keepdim=False)",
    jax="jax.nn.logsumexp(x, axis)",
    method=True,
    aliases=["torch.special.logsumexp"],
    result=reduced,
)
def logsumexp(call: Call) -> Piece:
    return call.emit("jax.nn.logsumexp({input}, axis={axis?}, keepdims={keepdim?})", axis=axis(call))


# Variance -------------------------------------------------------------------------------------------------------

VARIANCE = (
    "(input, dim=None, *, correction=1, keepdim=False)",
    "(input, dim, unbiased=True, keepdim=False)",
    "(input, unbiased=True)",
)


def _ddof(call: Call) -> tuple[str | None, str | None]:
    """``axis`` and ``ddof``: PyTorch divides by N - 1 by default. A bool in the place of ``dim`` is ``unbiased``."""
    dim = call.arguments.get("dim")
    unbiased = call.arguments.get("unbiased")
    if dim is not None and isinstance(dim.literal, bool):
        dim, unbiased = None, dim
    where = None if dim is None else axis(call)
    if unbiased is None:
        correction = call.arguments.get("correction")
        return where, "1" if correction is None or correction.is_none else correction.text
    if unbiased.literal is NO_LITERAL:
        return where, f"int({unbiased.text})"
    return where, "1" if unbiased.literal else "0"


def _variance(call: Call, template: str) -> Piece:
    where, ddof = _ddof(call)
    if "keepdim" not in call.arguments:
        template = template.replace(", keepdims={keepdim?}", "")
    default = "1" if template.startswith("standard") or "(standard" in template else "0"
    return call.emit(template, axis=where, ddof=None if ddof == default else ddof)


@rule(*(f"torch.var{s}" for s in VARIANCE), jax="jnp.var(x, axis, ddof=1)", method=True, result=reduced)
def var(call: Call) -> Piece:
    arguments = "axis={axis?}, ddof={ddof?}, keepdims={keepdim?}"
    return _variance(call, f"{{input}}.var({arguments})" if call.method else f"jnp.var({{input}}, {arguments})")


STD = "standard_deviation({input}, axis={axis?}, ddof={ddof?}, keepdims={keepdim?})"


@rule(*(f"torch.std{s}" for s in VARIANCE), jax="standard_deviation(x, axis, ddof=1)", method=True, result=reduced)
def std(call: Call) -> Piece:
    """jnp.std has a NaN gradient where all values are equal, PyTorch has 0."""
    return _variance(call, STD)


MEAN = "jnp.mean({input}, axis={axis?}, keepdims={keepdim?})"


def two_reduced(call: Call) -> Fact:
    return Tuple((reduced(call), reduced(call)))


@rule(
    *(f"torch.var_mean{s}" for s in VARIANCE), jax="(jnp.var(x, axis, ddof=1), jnp.mean(x, axis))", result=two_reduced
)
def var_mean(call: Call) -> Piece:
    variance = "jnp.var({input}, axis={axis?}, ddof={ddof?}, keepdims={keepdim?})"
    return Piece(_variance(call, f"({variance}, {MEAN})").text)


@rule(
    *(f"torch.std_mean{s}" for s in VARIANCE),
    jax="(standard_deviation(x, axis), jnp.mean(x, axis))",
    result=two_reduced,
)
def std_mean(call: Call) -> Piece:
    return Piece(_variance(call, f"({STD}, {MEAN})").text)


# Norms ----------------------------------------------------------------------------------------------------------


def euclidean(call: Call, tensor: str) -> Piece:
    """The square root of a sum of squares, whose gradient at zero is 0; optax's takes at most two axes."""
    dim = call["dim"]
    few = dim.is_none or isinstance(dim.fact, Scalar) or isinstance(dim.literal, tuple | list) and len(dim.literal) < 3
    norm = f"optax.safe_norm({tensor}, 0" if few else f"euclidean_norm({tensor}"
    return call.emit(f"{norm}, axis={{axis?}}, keepdims={{keepdim?}})", axis=axis(call))


def _norm(call: Call, order: str) -> Piece | Refusal:
    """A vector norm over ``dim``; of order 2 unless ``order`` says otherwise."""
    value = call[order].literal
    if value == "nuc":
        where = axis(call) if call.given("dim") else None
        return call.emit('jnp.linalg.norm({x}, "nuc", axis={axis?}, keepdims={keepdim?})', x=first(call), axis=where)
    tensor = next(iter(call.arguments))
    cast = f"{{{tensor}}}.astype({{dtype}})" if call.given("dtype") else f"{{{tensor}}}"
    if value in ("fro", 2, None):
        return euclidean(call, cast)
    text = f"vector_norm({cast}, {{{order}}}, axis={{axis?}}, keepdims={{keepdim?}})"
    return call.emit(text, axis=axis(call))


@rule(
    "torch.norm(input, p='fro', dim=None, keepdim=False, out=None, dtype=None)",
    jax="optax.safe_norm(x, 0, axis=axis)",
    method=True,
    result=reduced,
)
def norm(call: Call) -> Piece | Refusal:
    return _norm(call, "p")


@rule(
    "torch.linalg.vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None)",
    jax="vector_norm(x, ord, axis)",
    result=reduced,
)
def vector_norm(call: Call) -> Piece | Refusal:
    return _norm(call, "ord")


@rule("torch.dist(input, other, p=2)", jax="optax.safe_norm(x - y, 0)", method=True, result="scalar")
def dist(call: Call) -> Piece:
    if call.literal("p") == 2:
        return call.emit("optax.safe_norm({input} - {other}, 0)")
    return call.emit("vector_norm({input} - {other}, {p})")
