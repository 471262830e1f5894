"""Compares the initial values of parameters and buffers as distributions, in float64.

torch's weights, once loaded, hide the initialiser, and so do the tables that a constructor computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2j_lsp.check.protocol import NdArray, as_float64

from .compare import Difference

SAMPLES = 600
"""Elements taken of each parameter in each construction, spread evenly."""
MAX_ELEMENTS = 3_000_000
"""Modules with more parameters than this are not constructed again and again."""
_CRITICAL = 3.6
"""Of the Kolmogorov-Smirnov statistic, in units of sqrt((n + m) / (n m)): one false alarm in 10**11 comparisons."""

MOMENTS = 40
"""Constructions from which mean and mean square are compared too."""
_SIGMAS = 8.0
_ROUNDING = 1e-6
"""Of the largest value: means that are closer together differ by rounding."""
_BEYOND = 40
"""Bits against the largest draws all coming from one side: twofold, for one distribution it has a chance of 2**-39."""


def constructions(elements: int) -> int:
    """How often to construct a module with so many parameters."""
    return 400 if elements < 2_000 else 48 if elements < 20_000 else 16 if elements < 300_000 else 4


def picked(array: Any) -> Any:
    """The elements of a parameter that are compared."""
    flat = array.reshape(-1)
    return flat[np.linspace(0, flat.size - 1, SAMPLES).astype(int)] if flat.size > SAMPLES else flat


def compare_initial(torch: Mapping[str, NdArray], jax: Mapping[str, NdArray], seeded: bool = False) -> list[Difference]:
    """Parameters that start otherwise. Both sides hold, by name, an array (constructions, elements).

    ``seeded``: all of torch's constructions are one draw, since the constructor sets the seed.
    """
    differences = []
    for name, values in torch.items():
        if name in jax and jax[name].shape[1:] == values.shape[1:] and values.size:
            what = _unlike(as_float64(values), as_float64(jax[name]), seeded)
            if what is not None:
                differences.append(Difference(f"initial values: {name}", what, "initial"))
    return differences


def _unlike(torch: NdArray, jax: NdArray, seeded: bool) -> str | None:
    if np.iscomplexobj(torch) or not (np.isfinite(torch).all() and np.isfinite(jax).all()):
        return None
    if (torch == torch[0]).all():
        # The same in every construction, so no distribution: a constant, or a table.
        if np.allclose(jax, torch[0], rtol=1e-6, atol=1e-7):
            return None
        if seeded and torch[0].std() > 0:
            return _by_distribution(torch[0], jax)
        return f"are always {_shown(torch)} in torch and {_shown(jax)} in JAX"
    if torch.size < 30:
        return None
    if max(_beyond(torch, jax), _beyond(jax, torch)) >= _BEYOND:
        return f"are {_shown(torch)} in torch and {_shown(jax)} in JAX"
    if len(torch) >= MOMENTS and max(_apart(torch, jax), _apart(torch**2, jax**2)) > _SIGMAS:
        return f"are {_shown(torch)} in torch and {_shown(jax)} in JAX"
    return _by_distribution(torch, jax)


def _by_distribution(torch: NdArray, jax: NdArray) -> str | None:
    distance = _distance(torch.reshape(-1), jax.reshape(-1))
    if distance < _CRITICAL * np.sqrt((torch.size + jax.size) / (torch.size * jax.size)):
        return None
    return f"are {_shown(torch)} in torch and {_shown(jax)} in JAX"


def _shown(values: NdArray) -> str:
    if values.std() < 1e-12:
        return f"{values.flat[0]:.4g}"
    bounded = np.abs(values - values.mean()).max() < 2 * values.std()
    return f"{'uniform' if bounded else 'random'} with mean {values.mean():.2g} and deviation {values.std():.3g}"


def _beyond(a: NdArray, b: NdArray) -> float:
    """How unlikely it is, in bits, that so many constructions of one side have a value larger than all of the other's.

    With as many constructions on both sides each such one is a bit; fewer say less of the side with more of them.
    """
    return float((np.abs(a).max(axis=1) > np.abs(b).max()).sum() * np.log2((len(a) + len(b)) / len(a)))


def _apart(a: NdArray, b: NdArray) -> float:
    """How many standard errors the means of two samples are apart, with each construction as one draw."""
    means = [s.mean(axis=1) for s in (a, b)]
    error = np.sqrt(sum(m.var(ddof=1) / len(m) for m in means))
    apart = abs(means[0].mean() - means[1].mean())
    rounding = _ROUNDING * max(np.abs(s).max() for s in (a, b))  # a permutation's mean is always the same
    return float(apart / error) if error > 0 and apart > rounding else 0.0


def _distance(a: NdArray, b: NdArray) -> float:
    """The two-sample Kolmogorov-Smirnov statistic."""
    a, b = np.sort(a), np.sort(b)
    points = np.concatenate([a, b])
    left = np.searchsorted(a, points, side="right") / a.size
    right = np.searchsorted(b, points, side="right") / b.size
    return float(np.abs(left - right).max())
