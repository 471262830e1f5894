"""Special functions: ``torch.special.*`` and their names in ``torch`` (torch docs: torch.special)."""

from __future__ import annotations

from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Row, refuse, rule

from ._facts import as_float, broadcast, is_bool, is_float, is_integer

SCIPY = "jax.scipy.special"

for name, jax in {
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "lgamma": "gammaln",
}.items():
    second_name = {"lgamma": "gammaln"}.get(name, name)
    Row(
        f"torch.{name}(input)",
        f"{SCIPY}.{jax}({{input}})",
        method=True,
        aliases=[f"torch.special.{second_name}"],
        result=as_float,
    )
Row(
    "torch.digamma(input)",
    "digamma({input})",
    method=True,
    aliases=["torch.special.digamma", "torch.special.psi"],
    result=as_float,
)

ABSOLUTE = "The gradient at 0 is 0 in PyTorch and 1 or -1 in JAX, whose function is written with jnp.abs."
for name in ("i0", "i0e", "i1", "i1e"):
    aliases = ["torch.i0", "torch.Tensor.i0"] if name == "i0" else []
    Row(
        f"torch.special.{name}(input)",
        f"{SCIPY}.{name}({{input}})",
        aliases=aliases,
        result=as_float,
        fidelity=CLOSE,
        note=ABSOLUTE,
    )
for name, jax in {"ndtr": "cdf", "log_ndtr": "logcdf"}.items():  # JAX's ndtr takes no integers
    Row(f"torch.special.{name}(input)", f"jax.scipy.stats.norm.{jax}({{input}})", result=as_float)
Row("torch.special.entr(input)", f"{SCIPY}.entr({{input}})", result=as_float)


@rule("torch.special.ndtri(input)", jax=f"{SCIPY}.ndtri(x)", result=as_float)
def ndtri(call: Call) -> Piece:
    """JAX's function takes no integers."""
    fact = call["input"].fact
    if is_integer(fact) or is_bool(fact):
        return call.emit(f"{SCIPY}.ndtri({{input}}.astype(jnp.float32))")
    if not is_float(fact):
        call.note("JAX's function takes no integers.")
    return call.emit(f"{SCIPY}.ndtri({{input}})")


Row("torch.special.erfcx(input)", "erfcx({input})", result=as_float)
for name in ("exp2", "expm1", "log1p", "sinc"):
    Row(f"torch.special.{name}(input)", f"jnp.{name}({{input}})", result=as_float)

Row("torch.xlogy(input, other)", "xlogy({input}, {other})", method=True, aliases=["torch.special.xlogy"])
Row("torch.special.xlog1py(input, other)", f"{SCIPY}.xlog1py({{input}}, {{other}})", result=broadcast)
Row(
    "torch.special.zeta(input, other)",
    "zeta({input}, {other})",
    result=broadcast,
)
Row("torch.polygamma(n, input)", "polygamma({n}, {input})", aliases=["torch.special.polygamma"])
Row("torch.Tensor.polygamma(self, n)", "polygamma({n}, {self})")
Row("torch.mvlgamma(input, p)", f"{SCIPY}.multigammaln({{input}}, {{p}})", method=True)
Row("torch.special.multigammaln(input, p)", f"{SCIPY}.multigammaln({{input}}, {{p}})")
for name, alias in {"igamma": "gammainc", "igammac": "gammaincc"}.items():
    Row(
        f"torch.{name}(input, other)",
        f"{SCIPY}.{alias}({{input}}, {{other}})",
        method=True,
        aliases=[f"torch.special.{alias}"],
        result=broadcast,
    )


@rule(
    "torch.logit(input, eps=None)",
    jax=f"{SCIPY}.logit(x)",
    method=True,
    aliases=["torch.special.logit"],
    result=as_float,
)
def logit(call: Call) -> Piece:
    if not call.given("eps"):
        return call.emit(f"{SCIPY}.logit({{input}})")
    return call.emit(f"{SCIPY}.logit(clamp({{input}}, {{eps}}, 1 - {{eps}}))")


UNTRAINED = "jax.lax.stop_gradient({})"
"""PyTorch has no derivatives of the functions below: what they give has no gradient there, without a word."""

for order in (0, 1):
    Row(
        f"torch.special.modified_bessel_i{order}(input)",
        UNTRAINED.format(f"{SCIPY}.i{order}({{input}})"),
        result=as_float,
    )
for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1"):
    Row(f"torch.special.{name}(input)", UNTRAINED.format(f"{name}({{input}})"), result=as_float)
for order in (0, 1):
    name = f"modified_bessel_k{order}"
    Row(f"torch.special.scaled_{name}(x)", UNTRAINED.format(f"{name}({{x}}, scaled=True)"), result=as_float)
Row("torch.special.spherical_bessel_j0(x)", UNTRAINED.format("spherical_bessel_j0({x})"), result=as_float)
Row("torch.special.airy_ai(x)", UNTRAINED.format("airy_ai({x})"), result=as_float)
for kind in "tuvw":
    name = f"chebyshev_polynomial_{kind}"
    Row(f"torch.special.{name}(x, n)", UNTRAINED.format(f"{name}({{x}}, {{n}})"))
    Row(f"torch.special.shifted_{name}(x, n)", UNTRAINED.format(f"{name}(2 * {{x}} - 1, {{n}})"))
for name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):
    Row(f"torch.special.{name}(x, n)", UNTRAINED.format(f"{name}({{x}}, {{n}})"))
refuse(
    "torch.special.*",
    "jax.scipy.special has no such function: call scipy.special's in jax.pure_callback, which has no gradient.",
)
