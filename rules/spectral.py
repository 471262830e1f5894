"""Fourier transforms, windows, conjugates: ``torch.fft.*``, ``torch.stft``, ``torch.hann_window``, ``torch.conj``."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Scalar
from t2j_lsp.translate.rule.library import numbered_by
from t2j_lsp.translate.rule.record import Call, Piece, Refusal, Row, rule

from ._axes import axis, listed_axis
from ._facts import as_float, same

numbered_by("n_fft", "hop_length", "win_length", "s")
numbered_by(
    "n", of=[f"torch.fft.{name}" for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftfreq", "rfftfreq")]
)

for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    Row(
        f"torch.fft.{name}(input, n=None, dim=-1, norm=None)",
        f"jnp.fft.{name}({{input}}, n={{n?}}, axis={{dim?}}, norm={{norm?}})",
    )


def _transform(call: Call, name: str) -> Piece:
    """PyTorch takes one number for one axis, and any number of axes also in its transforms of two."""
    arguments = "{input}, s={s?}, axes={axes?}, norm={norm?}"
    axes = _several(call, "dim", listed_axis(call)) if call.given("dim") else None
    dim = call.literal("dim")
    if isinstance(dim, int) or isinstance(dim, tuple | list) and len(dim) != 2:
        name = name.replace("2", "n")
    return call.emit(f"jnp.fft.{name}({arguments})", s=_several(call, "s", call["s"].text), axes=axes)


def _several(call: Call, name: str, text: str | None) -> str | None:
    """A tuple of numbers, also where the call has one number."""
    fact = call[name].fact
    one = isinstance(fact, Scalar) and fact.kind == "int"
    return None if not call.given(name) else f"({text},)" if one else text


for name in ("fft", "ifft", "rfft", "irfft"):
    for suffix, dim in (("2", "(-2, -1)"), ("n", "None")):

        def emit(call: Call, name: str = name + suffix) -> Piece:
            return _transform(call, name)

        rule(f"torch.fft.{name}{suffix}(input, s=None, dim={dim}, norm=None)", jax=f"jnp.fft.{name}{suffix}(x)")(emit)


INVERTED: dict[str | None, str] = {
    None: '"forward"',
    "backward": '"forward"',
    "forward": '"backward"',
    "ortho": '"ortho"',
}
"""By ``norm``: how the transform in the other direction is scaled."""


def _hermitian(call: Call, name: str, template: str) -> Piece | Refusal:
    """A Hermitian transform of several axes is the real one in the other direction, conjugated."""
    literal = call.literal("norm")
    norm = INVERTED.get(literal) if isinstance(literal, str | None) else None
    if norm is None:
        return call.refuse("The norm isn't a string in plain sight.")
    axes = _several(call, "dim", listed_axis(call)) if name.endswith("n") or call.given("dim") else "(-2, -1)"
    return call.emit(template, s=_several(call, "s", call["s"].text), axes=axes, norm=norm)


for suffix, dim in (("2", "(-2, -1)"), ("n", "None")):

    def hermitian(call: Call, name: str = f"hfft{suffix}") -> Piece | Refusal:
        return _hermitian(call, name, "jnp.fft.irfftn({input}.conj(), s={s?}, axes={axes?}, norm={norm})")

    def inverse(call: Call, name: str = f"ihfft{suffix}") -> Piece | Refusal:
        return _hermitian(call, name, "jnp.fft.rfftn({input}, s={s?}, axes={axes?}, norm={norm}).conj()")

    rule(f"torch.fft.hfft{suffix}(input, s=None, dim={dim}, norm=None)", jax="jnp.fft.irfftn(x.conj())")(hermitian)
    rule(f"torch.fft.ihfft{suffix}(input, s=None, dim={dim}, norm=None)", jax="jnp.fft.rfftn(x).conj()")(inverse)

for name in ("fftshift", "ifftshift"):

    def shift(call: Call, name: str = name) -> Piece:
        return call.emit(f"jnp.fft.{name}({{input}}, axes={{axes?}})", axes=axis(call))

    rule(f"torch.fft.{name}(input, dim=None)", jax=f"jnp.fft.{name}(x, axes)", result=same)(shift)

FACTORY = "dtype=None, layout=torch.strided, device=None, requires_grad=False"
for name in ("fftfreq", "rfftfreq"):
    Row(
        f"torch.fft.{name}(n, d=1.0, *, {FACTORY})",
        f"jnp.fft.{name}({{n}}, d={{d?}}, dtype={{dtype?}})",
        ignore=["requires_grad"],
    )


@rule(
    "torch.stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect',"
    " normalized=False, onesided=None, return_complex=None, align_to_window=None)",
    jax="stft(x, n_fft)",
    method=True,
)
def stft(call: Call) -> Piece | Refusal:
    complex_parts = (
        "stft({input}, {n_fft}, hop_length={hop_length?}, win_length={win_length?}, window={window?}, center={center?},"
        " pad_mode={pad_mode?}, normalized={normalized?}, onesided={onesided?})"
    )
    return call.emit(
        f"real_and_imaginary({complex_parts})" if call.literal("return_complex") is False else complex_parts
    )


Row(
    "torch.istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False,"
    " onesided=None, length=None, return_complex=False)",
    "istft({input}, {n_fft}, hop_length={hop_length?}, win_length={win_length?}, window={window?}, center={center?},"
    " normalized={normalized?}, length={length?})",
    method=True,
    ignore=["onesided"],
)


# Complex numbers ------------------------------------------------------------------------------------------------

Row("torch.angle(input)", "angle_of({input})", method=True, result=as_float)
Row(
    "torch.conj(input)",
    "{input}.conj()",
    method=True,
    aliases=["torch.conj_physical", "torch.Tensor.conj_physical"],
    result=same,
)
for name in ("resolve_conj", "resolve_neg"):
    Row(f"torch.{name}(input)", "{input}", method=True, result=same)
