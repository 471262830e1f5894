"""Summaries and correlations of figures, each with the number of cases it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean, median
from typing import Any

from t2j_lsp.contract import T2JError

LEAST = 3
"""Cases that a correlation needs: two points always lie on a line."""


@dataclass(frozen=True)
class Summary:
    """Figures of ``n`` cases; None where there are none."""

    n: int
    sum: float
    mean: float | None = None
    median: float | None = None
    max: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def summary(values: Iterable[float]) -> Summary:
    """Sum, mean, median and largest."""
    given = list(values)
    if not given:
        return Summary(0, 0)
    return Summary(len(given), sum(given), float(mean(given)), float(median(given)), max(given))


def share(part: int, whole: int) -> float | None:
    """A part of a whole; None of nothing."""
    return part / whole if whole else None


def geometric_mean(values: Iterable[float]) -> float | None:
    """Of positive numbers; None of none."""
    given = list(values)
    return math.exp(mean(map(math.log, given))) if given else None


@dataclass(frozen=True)
class Correlation:
    """How a metric goes with another figure: coefficients from -1 to 1 with their p values, over ``n`` cases.

    ``undefined`` says why there are none.
    """

    metric: str
    against: str
    n: int
    pearson: float | None = None
    pearson_p: float | None = None
    spearman: float | None = None
    spearman_p: float | None = None
    undefined: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def correlation(metric: str, against: str, points: Sequence[tuple[float, float]]) -> Correlation:
    """Of points (metric, figure). Raises T2JError where scipy is missing."""
    if len(points) < LEAST:
        return Correlation(metric, against, len(points), undefined=f"fewer than {LEAST} cases")
    left, right = zip(*points, strict=True)
    for name, values in ((metric, left), (against, right)):
        if len(set(values)) == 1:
            return Correlation(metric, against, len(points), undefined=f"{name} is the same in all cases")
    try:
        from scipy import stats  # type: ignore[import-untyped]
    except ImportError:
        raise T2JError("correlations need scipy: pip install 't2j-lsp[llm]'") from None
    pearson, spearman = stats.pearsonr(left, right), stats.spearmanr(left, right)
    result = Correlation(metric, against, len(points), float(pearson.statistic), float(pearson.pvalue))
    return replace(result, spearman=float(spearman.statistic), spearman_p=float(spearman.pvalue))
