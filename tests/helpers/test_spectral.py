"""Short-time Fourier transforms against PyTorch: framing, padding, windows, and the inverse."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.rules.helpers.spectral import istft, stft

from .compare import array, same_function

SETTINGS: list[dict[str, Any]] = [
    {},
    {"hop_length": 3},
    {"win_length": 6},
    {"normalized": True},
    {"onesided": False},
]


@pytest.mark.parametrize("settings", [*SETTINGS, {"center": False}, {"pad_mode": "constant"}])
def test_stft(settings: dict[str, Any]) -> None:
    window = np.hanning(settings.get("win_length", 8) + 2)[1:-1]
    same_function(
        lambda x, w: jnp.stack([(z := stft(x, 8, window=w, **settings)).real, z.imag]),
        lambda x, w: torch.stack(
            [(z := torch.stft(x, 8, window=w, return_complex=True, **settings)).real, z.imag],
        ),
        array(2, 21),
        window,
    )


def test_stft_without_a_window() -> None:
    same_function(
        lambda x: abs(stft(x, 8)),
        lambda x: torch.stft(x, 8, window=torch.ones(8, dtype=x.dtype), return_complex=True).abs(),
        array(21),
    )


@pytest.mark.parametrize("settings", [*SETTINGS, {"length": 18}, {"length": 30}])
def test_istft(settings: dict[str, Any]) -> None:
    window = np.hanning(settings.get("win_length", 8) + 2)[1:-1]
    bins = 8 if settings.get("onesided") is False else 5
    spectra = array(2, bins, 9) + 1j * array(2, bins, 9, seed=1)
    same_function(
        lambda z, w: istft(z, 8, window=w, **{k: v for k, v in settings.items() if k != "onesided"}),
        lambda z, w: torch.istft(z, 8, window=w, **settings),
        spectra,
        window,
        gradients=False,
    )
