"""Short-time Fourier transforms with PyTorch's framing, which scales nothing and pads by reflection.

Source: https://docs.pytorch.org/docs/stable/generated/torch.stft.html
"""

import jax
import jax.numpy as jnp


def padded_window(window: jax.Array | None, win_length: int | None, n_fft: int, dtype: jnp.dtype) -> jax.Array:
    """The window of an STFT with zeros on both sides up to n_fft; ones where it is None."""
    length = n_fft if win_length is None else win_length
    window = jnp.ones(length, dtype) if window is None else window
    before = (n_fft - length) // 2
    return jnp.pad(window, (before, n_fft - length - before))


def stft(
    x: jax.Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: jax.Array | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
) -> jax.Array:
    """`torch.stft` of signals (..., time): complex (..., frequencies, frames)."""
    hop = n_fft // 4 if hop_length is None else hop_length
    if center:
        mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[pad_mode]
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode)
    starts = jnp.arange(0, x.shape[-1] - n_fft + 1, hop)
    frames = x[..., starts[:, None] + jnp.arange(n_fft)] * padded_window(window, win_length, n_fft, x.real.dtype)
    norm = "ortho" if normalized else "backward"
    if onesided is False or (onesided is None and jnp.iscomplexobj(frames)):
        return jnp.fft.fft(frames, norm=norm).swapaxes(-1, -2)
    return jnp.fft.rfft(frames, norm=norm).swapaxes(-1, -2)


def istft(
    x: jax.Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: jax.Array | None = None,
    center: bool = True,
    normalized: bool = False,
    length: int | None = None,
) -> jax.Array:
    """`torch.istft` of spectra (..., frequencies, frames): real signals (..., time), overlaps weighed by the window."""
    hop = n_fft // 4 if hop_length is None else hop_length
    norm = "ortho" if normalized else "backward"
    frames = jnp.fft.irfft(x[..., : n_fft // 2 + 1, :].swapaxes(-1, -2), n_fft, norm=norm)
    window = padded_window(window, win_length, n_fft, frames.dtype)
    count = frames.shape[-2]
    total = n_fft + hop * (count - 1)
    places = hop * jnp.arange(count)[:, None] + jnp.arange(n_fft)
    signal = jnp.zeros((*frames.shape[:-2], total), frames.dtype).at[..., places].add(frames * window)
    weight = jnp.zeros(total, frames.dtype).at[places].add(jnp.broadcast_to(jnp.square(window), (count, n_fft)))
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    signal = signal[..., start:end] / weight[start:end]
    missing = 0 if length is None else length - signal.shape[-1]
    return jnp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, max(missing, 0))])


def real_and_imaginary(x: jax.Array) -> jax.Array:
    """The parts of complex numbers along a new last axis."""
    return jnp.stack((x.real, x.imag), axis=-1)
