"""Numbers that depend on parameters in more than scale and place: the same on both sides, but for roundings of these.

Each takes a generator for this draw alone. The numbers that it gives do not depend on the parameters, so that a
parameter's rounding moves a draw by a rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_TRIES = 64
_NORMAL_FROM = 500.0
"""Rates from which Poisson numbers are rounded normal ones."""
_SMALLEST = 1e-30


def gamma(generator: np.random.Generator, concentration: Any) -> Any:
    """Gamma numbers of rate 1, as Marsaglia and Tsang draw them."""
    a = np.asarray(concentration, np.float64)
    power = generator.random(a.shape)
    with np.errstate(all="ignore"):
        d = np.where(a < 1, a + 1, a) - 1 / 3
        drawn, is_open = d, np.ones(a.shape, bool)
        for _ in range(_TRIES):
            normal, chance = generator.standard_normal(a.shape), generator.random(a.shape)
            v = (1 + normal / np.sqrt(9 * d)) ** 3
            accepted = is_open & (v > 0) & (np.log1p(-chance) < normal**2 / 2 + d - d * v + d * np.log(v))
            drawn = np.where(accepted, d * v, drawn)
            is_open = is_open & ~accepted
            if not is_open.any():
                break
        return np.maximum(drawn * np.where(a < 1, power ** (1 / a), 1.0), _SMALLEST)


def poisson(generator: np.random.Generator, rate: Any) -> Any:
    """Poisson numbers, by the inverse of their distribution function."""
    rate = np.asarray(rate, np.float64)
    chance, normal = generator.random(rate.shape), generator.standard_normal(rate.shape)
    small = np.minimum(rate, _NORMAL_FROM)
    weight = np.exp(-small)
    below, drawn = weight, np.zeros(rate.shape)
    for count in range(1, int(2 * _NORMAL_FROM)):
        above = chance >= below
        if not above.any():
            break
        drawn = np.where(above, count, drawn)
        weight = weight * small / count
        below = below + weight
    return np.where(rate < _NORMAL_FROM, drawn, np.maximum(np.round(rate + np.sqrt(rate) * normal), 0))


def binomial(generator: np.random.Generator, parameters: Any) -> Any:
    """How many of ``parameters[0]`` numbers are 1, each with the probability ``parameters[1]``."""
    trials, probability = np.asarray(parameters, np.float64)
    drawn = np.zeros(trials.shape)
    for trial in range(int(trials.max(initial=0))):
        drawn += (trial < trials) & (generator.random(trials.shape) < probability)
    return drawn


BY_PARAMETERS: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "gamma": gamma,
    "poisson": poisson,
    "binomial": binomial,
}
