"""What a run showed: the table of the README, and the list of all that differs."""

from __future__ import annotations

from collections import Counter

from . import modules, optimizers
from .cases import DTYPES, SPELLINGS
from .running import WORST, Result


def table(results: list[Result]) -> str:
    """Operators by dtype and spelling, and the share of samples that is right."""
    lines = [f"{'':28}" + "".join(f"{w:>9}" for w in WORST) + "  of operators    samples right"]
    for dtype in DTYPES:
        for spelling in SPELLINGS:
            of_dtype = [r for r in results if r.dtype == dtype and spelling in r.counts]
            if of_dtype:
                lines.append(_row(f"{dtype}, {spelling}", of_dtype, spelling))
                lines.append(_row("... annotated", of_dtype, spelling, "annotated"))
    plain = [r for r in results if r.dtype == "float" and "function" in r.plain]
    if plain:
        lines.append(_row("... no 0-d, no empty", plain, "function", "plain"))
    for one in (modules.SET, optimizers.SET):
        for spelling in dict.fromkeys(s for r in results if r.dtype == one for s in r.counts):
            of_dtype = [r for r in results if r.dtype == one and spelling in r.counts]
            lines.append(_row(f"{one}, {spelling}", of_dtype, spelling))
            if any(r.annotated for r in of_dtype):
                lines.append(_row("... annotated", of_dtype, spelling, "annotated"))
    return "\n".join(lines)


def _row(title: str, results: list[Result], spelling: str, of: str = "counts") -> str:
    worst = Counter(r.worst(spelling, of) for r in results)
    every: Counter[str] = sum((Counter(r.counted(of).get(spelling, {})) for r in results), Counter())
    operators = f"{worst['right'] / len(results):6.1%} of {len(results):4}"
    cases = f"{every['right'] / max(1, every.total()):6.1%} of {every.total()}"
    return f"{title:28}" + "".join(f"{worst[w]:9}" for w in WORST) + f"  {operators}   {cases}"


def problems_text(results: list[Result]) -> str:
    """Every case that is not right, the worst first, and what had no text."""
    out = []
    for outcome in reversed(WORST[1:]):
        out.append(f"=== {outcome}")
        for result in sorted(results, key=lambda r: r.operator):
            for p in result.problems:
                if p.outcome == outcome:
                    small = " (0-d or empty)" if p.small else ""
                    where = f"{result.operator} [{result.dtype}, {p.spelling}]{small}"
                    out.append(f"{where} {p.text} <- {p.inputs}: {p.why}")
    out.append("=== without text")
    out += [f"{r.operator} [{r.dtype}] {why}" for r in results for why in r.textless]
    return "\n".join(out) + "\n"
