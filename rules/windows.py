"""Windows for spectra: ``torch.hann_window`` and its like, ``torch.signal.windows.*``."""

from __future__ import annotations

from t2j_lsp.translate.rule.record import Call, Piece, Refusal, refuse, rule

IGNORE = ["beta", "requires_grad", "periodic", "sym"]
"""What changes no value, and what is not looked at where a window has one point."""
FACTORY = "dtype=None, layout=torch.strided, device=None, requires_grad=False"


def _periodic(call: Call, function: str, extra: str = "") -> Piece | Refusal:
    """PyTorch's windows are periodic by default: a symmetric one of n + 1 points without the last."""
    cast = ".astype({dtype})" if call.given("dtype") else ""
    if call.literal("window_length") == 1:
        return call.emit("jnp.ones(1, dtype={dtype?})")
    match call.literal("periodic"):
        case True:
            return call.emit(f"jnp.{function}({{window_length}} + 1{extra})[:-1]{cast}")
        case False:
            return call.emit(f"jnp.{function}({{window_length}}{extra}){cast}")
        case _:
            return call.refuse("spell out periodic=True or periodic=False")


for name in ("hann", "blackman", "bartlett"):

    def window(call: Call, function: str = "hanning" if name == "hann" else name) -> Piece | Refusal:
        return _periodic(call, function)

    jax = "jnp.hanning(n + 1)[:-1]" if name == "hann" else f"jnp.{name}(n + 1)[:-1]"
    rule(
        f"torch.{name}_window(window_length, periodic=True, *, {FACTORY})",
        jax=jax,
        result="float tensor",
        ignore=IGNORE,
    )(window)


@rule(
    f"torch.hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, {FACTORY})",
    jax="jnp.hamming(n + 1)[:-1]",
    result="float tensor",
    ignore=IGNORE,
)
def hamming_window(call: Call) -> Piece | Refusal:
    if call.given("alpha") or call.given("beta"):
        return call.refuse("jnp.hamming has alpha=0.54 and beta=0.46 only")
    return _periodic(call, "hamming")


@rule(
    f"torch.kaiser_window(window_length, periodic=True, beta=12.0, *, {FACTORY})",
    jax="jnp.kaiser(n + 1, beta)[:-1]",
    result="float tensor",
    ignore=IGNORE,
)
def kaiser_window(call: Call) -> Piece | Refusal:
    return _periodic(call, "kaiser", ", {beta}")


# torch.signal.windows -------------------------------------------------------------------------------------------


def _stock(call: Call, function: str, extra: str = "") -> Piece | Refusal:
    """A window of jax.numpy, which is symmetric; a periodic one is one of a point more, without the last."""
    cast = ".astype({dtype})" if call.given("dtype") else ""
    if call.literal("M") == 1:
        return call.emit("jnp.ones(1, dtype={dtype?})")
    match call.literal("sym"):
        case True:
            return call.emit(f"jnp.{function}({{M}}{extra}){cast}")
        case False:
            return call.emit(f"jnp.{function}({{M}} + 1{extra})[:-1]{cast}")
        case _:
            return call.refuse("spell out sym=True or sym=False")


for name in ("hann", "hamming", "blackman", "bartlett"):

    def plain(call: Call, function: str = "hanning" if name == "hann" else name) -> Piece | Refusal:
        return _stock(call, function)

    jax = "jnp.hanning(n)" if name == "hann" else f"jnp.{name}(n)"
    rule(f"torch.signal.windows.{name}(M, *, sym=True, {FACTORY})", jax=jax, result="float tensor", ignore=IGNORE)(
        plain
    )


@rule(
    f"torch.signal.windows.kaiser(M, *, beta=12.0, sym=True, {FACTORY})",
    jax="jnp.kaiser(n, beta)",
    result="float tensor",
    ignore=IGNORE,
)
def kaiser(call: Call) -> Piece | Refusal:
    return _stock(call, "kaiser", ", {beta}")


for name, parameters, arguments in (
    ("general_cosine", "a, sym=True", "{a}, "),
    ("general_hamming", "alpha=0.54, sym=True", "[{alpha}, 1 - {alpha}], "),
    ("nuttall", "sym=True", "[0.3635819, 0.4891775, 0.1365995, 0.0106411], "),
    ("cosine", "sym=True", ""),
    ("exponential", "center=None, tau=1.0, sym=True", "center={center?}, tau={tau?}, "),
    ("gaussian", "std=1.0, sym=True", "std={std?}, "),
):
    stands = "general_cosine" if name in ("general_hamming", "nuttall") else name

    def helped(call: Call, function: str = f"{stands}_window", arguments: str = arguments) -> Piece:
        cast = ".astype({dtype})" if call.given("dtype") else ""
        return call.emit(f"{function}({{M}}, {arguments}sym={{sym?}}){cast}")

    rule(
        f"torch.signal.windows.{name}(M, *, {parameters}, {FACTORY})",
        jax=f"{stands}_window(n)",
        result="float tensor",
        ignore=IGNORE,
    )(helped)

refuse("torch.signal.windows.*", "Not a window of PyTorch's documentation: compute it with jax.numpy.")
