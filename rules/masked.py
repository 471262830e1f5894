"""Reductions that leave elements out: ``torch.masked.*`` (https://docs.pytorch.org/docs/stable/masked.html).

Where jax.numpy has a ``where=`` argument, the mask is handed on; elsewhere what is left out becomes the value that
changes nothing.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.record import CLOSE, EXACT, NO_LITERAL, Call, Piece, Refusal, refuse, rule

from ._axes import axis
from ._facts import first, is_float, is_integer, reduced, same, summed

AXES = "axis={axis?}, keepdims={keepdim?}"
NAN = "Where a value is NaN, its gradient is another in PyTorch and in JAX."
REDUCTION = "dim=None, *, keepdim=False, dtype=None, mask=None"


def _filled(call: Call, fill: str, name: str = "input", mask: str = "mask", cast: bool = True) -> str:
    """The input with ``fill`` where it is masked out, in the dtype that is asked for."""
    text = f"{{{name}}}" if call[mask].is_none else f"jnp.where({{{mask}}}, {{{name}}}, {fill})"
    return f"{text}.astype({{dtype}})" if cast and call.given("dtype") else text


def _bound(call: Call, sign: str) -> str:
    """The identity of a maximum (``sign`` is "-") or of a minimum, which is infinite where the dtype has infinity."""
    fact = first(call).fact
    if is_float(fact):
        return f"{sign}jnp.inf"
    name = "min" if sign else "max"
    return f"jnp.iinfo({{input}}.dtype).{name}" if is_integer(fact) else f"{name}imum_of({{input}}.dtype)"


def _where(call: Call) -> str:
    return "" if call["mask"].is_none else ", where={mask}"


for name in ("sum", "prod", "mean"):

    def summary(call: Call, name: str = name) -> Piece:
        return call.emit(f"jnp.{name}({{input}}, {AXES}, dtype={{dtype?}}{_where(call)})", axis=axis(call))

    rule(
        f"torch.masked.{name}(input, {REDUCTION})",
        jax=f"jnp.{name}(x, axis, where=mask)",
        result=reduced if name == "mean" else summed,
        fidelity=CLOSE if name == "prod" else EXACT,
        note=NAN if name == "prod" else None,
    )(summary)

for name, jax, sign in (("amax", "max", "-"), ("amin", "min", "")):

    def extreme(call: Call, jax: str = jax, sign: str = sign) -> Piece:
        cast = ".astype({dtype})" if call.given("dtype") else ""
        initial = "" if call["mask"].is_none else f", initial={_bound(call, sign)}"
        return call.emit(f"jnp.{jax}({{input}}{cast}, {AXES}{initial}{_where(call)})", axis=axis(call))

    def argument(call: Call, jax: str = jax, sign: str = sign) -> Piece:
        """PyTorch gives the positions in the input's dtype."""
        dtype = "{dtype}" if call.given("dtype") else "{input}.dtype"
        filled = _filled(call, _bound(call, sign), cast=False)
        return call.emit(f"jnp.arg{jax}({filled}, axis={{dim?}}, keepdims={{keepdim?}}).astype({dtype})")

    rule(
        f"torch.masked.{name}(input, {REDUCTION})",
        jax=f"jnp.{jax}(x, axis, initial={sign}jnp.inf, where=mask)",
        result=reduced,
        fidelity=CLOSE,
        note=NAN,
    )(extreme)
    rule(
        f"torch.masked.arg{jax}(input, dim=None, *, keepdim=False, dtype=None, mask=None)",
        jax=f"jnp.arg{jax}(jnp.where(mask, x, {sign}jnp.inf), axis).astype(x.dtype)",
        result=reduced,
    )(argument)


for name, fill in (("cumsum", "0"), ("cumprod", "1")):

    def running(call: Call, name: str = name, fill: str = fill) -> Piece:
        return call.emit(f"jnp.{name}({_filled(call, fill)}, axis={{dim}})")

    rule(
        f"torch.masked.{name}(input, dim, *, dtype=None, mask=None)",
        jax=f"jnp.{name}(jnp.where(mask, x, {fill}), axis)",
        result=same,
    )(running)


for name, jax, sign in (("softmax", "softmax", ""), ("log_softmax", "log_softmax", ""), ("softmin", "softmax", "-")):

    def soft(call: Call, jax: str = jax, sign: str = sign) -> Piece:
        fill = "jnp.inf" if sign else "-jnp.inf"
        return call.emit(f"jax.nn.{jax}({sign}{_filled(call, fill)}, axis={{dim}})")

    rule(
        f"torch.masked.{name}(input, dim, *, dtype=None, mask=None)",
        jax=f"jax.nn.{jax}(jnp.where(mask, x, -jnp.inf), axis)",
        result=same,
    )(soft)


@rule(
    f"torch.masked.logsumexp(input, {REDUCTION})",
    jax="jax.nn.logsumexp(x, axis, where=mask)",
    result=reduced,
)
def logsumexp(call: Call) -> Piece:
    """PyTorch cuts the logarithm of integers to an integer."""
    cast = ".astype({dtype})" if call.given("dtype") else ""
    cut = ".astype({input}.dtype)" if is_integer(first(call).fact) and not cast else ""
    if not cast and not cut and not is_float(first(call).fact):
        call.note("PyTorch cuts the logarithm of integers to an integer; JAX's is a float.")
    return call.emit(f"jax.nn.logsumexp({{input}}{cast}, {AXES}{_where(call)}){cut}", axis=axis(call))


@rule(
    "torch.masked.logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None)",
    jax="jnp.logaddexp(jnp.where(mask, x, -jnp.inf), y)",
    result=same,
)
def logaddexp(call: Call) -> Piece:
    one = _filled(call, "-jnp.inf", "input", "input_mask")
    other = _filled(call, "-jnp.inf", "other", "other_mask")
    return call.emit(f"jnp.logaddexp({one}, {other})")


@rule(
    "torch.masked.median(input, dim=-1, *, keepdim=False, dtype=None, mask=None)",
    jax="nanmedian_with_indices(jnp.where(mask, x, jnp.nan), axis).values",
    result=reduced,
)
def median(call: Call) -> Piece:
    return call.emit(f"nanmedian_with_indices({_filled(call, 'jnp.nan')}, axis={{dim}}, keepdims={{keepdim?}}).values")


@rule(
    f"torch.masked.norm(input, ord=2.0, {REDUCTION})",
    jax="vector_norm(jnp.where(mask, x, 0), ord, axis)",
    result=reduced,
    fidelity=CLOSE,
    note=NAN,
)
def norm(call: Call) -> Piece:
    return call.emit(f"vector_norm({_filled(call, _identity_of_norm(call))}, {{ord}}, {AXES})", axis=axis(call))


def _identity_of_norm(call: Call) -> str:
    """0, but for the norm of order -inf, which is the least element."""
    return "jnp.inf" if call["ord"].text.replace(" ", "") in ("-jnp.inf", "float('-inf')", 'float("-inf")') else "0"


@rule(
    "torch.masked.normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None)",
    jax="normalize(jnp.where(mask, x, 0), p=ord, dim=axis)",
    result=same,
)
def normalize(call: Call) -> Piece | Refusal:
    if not call["mask"].is_none and _identity_of_norm(call) != "0":
        return call.refuse("The least element of those that are left: divide by torch.masked.norm, which converts.")
    return call.emit(f"normalize({_filled(call, '0')}, p={{ord}}, dim={{dim}}, eps={{eps?}})")


SPREAD = "(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None)"


def _spread(call: Call, name: str) -> Piece | Refusal:
    """``jnp.var`` with ``where=``; PyTorch divides by N - 1 unless it is told otherwise."""
    if "correction" in call.arguments and not call["correction"].is_none:
        ddof: str | None = call["correction"].text
    elif call["unbiased"].literal is NO_LITERAL:
        return call.refuse("unbiased must be True or False in plain sight.")
    else:
        ddof = None if call["unbiased"].literal is False else "1"
    cast = ".astype({dtype})" if call.given("dtype") else ""
    return call.emit(
        f"jnp.{name}({{input}}{cast}, axis={{axis?}}, ddof={{ddof?}}, keepdims={{keepdim?}}{_where(call)})",
        axis=axis(call),
        ddof=ddof,
    )


for name in ("var", "std"):

    def spread(call: Call, name: str = name) -> Piece | Refusal:
        return _spread(call, name)

    rule(f"torch.masked.{name}{SPREAD}", jax=f"jnp.{name}(x, axis, ddof=1, where=mask)", result=reduced)(spread)


PAIR = "JAX has no masked tensors: keep the values and their mask as two arrays."
for name in ("MaskedTensor", "masked_tensor", "as_masked_tensor", "is_masked_tensor", "*"):
    refuse(f"torch.masked.{name}", PAIR)
