"""An evaluation as JSON, and that JSON as tables: on a terminal, in a pipe, or on a Markdown page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t2j_lsp.contract import JSON_VERSION

from .cases import OUTCOMES, EvaluatedProgram
from .figures import COSTS, correlations, of_arm, of_models
from .rating import VERSION
from .run import Evaluation, EvaluationSettings

NONE = "–"


@dataclass(frozen=True)
class Table:
    """A title, what is to be known about it, and cells as text; all columns but the first hold numbers."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def to_json(
    folder: str,
    programs: Sequence[EvaluatedProgram],
    settings: EvaluationSettings,
    result: Evaluation,
    versions: dict[str, str],
) -> dict[str, Any]:
    """Everything: settings, programs, figures, and each case with its draft and its code."""
    arms = [arm.name for arm in settings.arms]
    return {
        "version": JSON_VERSION,
        "folder": folder,
        "versions": versions,
        "settings": {
            "models": [model.model for model in settings.models],
            "arms": arms,
            "judge": settings.judge.model if settings.judge else None,
            "judge_prompt": VERSION,
            "rounds": settings.budget.rounds,
        },
        "programs": [_program(program) for program in programs],
        "arms": {arm: of_arm([case for case in result.cases if case.arm == arm]) for arm in arms},
        "models": {
            arm: of_models([case for case in result.cases if case.arm == arm], [m.model for m in settings.models])
            for arm in arms
        },
        "comparisons": [comparison.to_json() for comparison in result.comparisons],
        "correlations": [measured.to_json() for measured in correlations(result.cases)],
        "cases": [case.to_json() for case in result.cases],
    }


def tables(report: dict[str, Any]) -> list[Table]:
    """The tables of a report, those without a case left out."""
    arms = report["arms"]
    if not any(figures["n"] for figures in arms.values()):
        return []
    sections = [_success(arms), _outcomes(arms, "first"), _outcomes(arms, "last"), _rounds(arms), _cost(arms)]
    sections += [_spent(arms), _claims(arms), _scores(arms), _comparisons(report), _models(report), _run_time(arms)]
    return [table for table in [*sections, _correlations(report)] if table.rows]


def markdown(report: dict[str, Any]) -> str:
    """The report as a page."""
    parts = ["# Evaluation of the model lane", *summary(report)]
    for table in tables(report):
        rules = ["---", *("--:" for _ in table.headers[1:])]
        rows = [_row(table.headers), f"|{'|'.join(rules)}|", *map(_row, table.rows)]
        parts += [f"## {table.title}", *([table.note] if table.note else []), "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def summary(report: dict[str, Any]) -> list[str]:
    """In words: what was evaluated, and what was left out."""
    programs, settings = report["programs"], report["settings"]
    asked = sum(bool(program["gaps"]) for program in programs)
    judge = f"; judge {settings['judge']} at temperature 0" if settings["judge"] else "; no judge model"
    lines = [
        f"{len(programs)} programs of {report['folder']}: the rules convert {len(programs) - asked} without a gap; "
        f"models were asked about {asked}.",
        f"Models: {', '.join(settings['models'])}, at most {settings['rounds']} rounds each{judge}. "
        "Fixed bugs of a program itself are never shown for it.",
    ]
    references = Counter(p["reference"] for p in programs if p["reference"] and p["gaps"])
    if references:
        said = ", ".join(f"{count} {kind}" for kind, count in sorted(references.items()))
        lines.append(f"Reference conversions, as the check finds them: {said}. Those that are different are not used.")
    return lines


def _program(program: EvaluatedProgram) -> dict[str, Any]:
    return {
        "name": program.name,
        "lines": len(program.translation.source.splitlines()),
        "gaps": len(program.translation.gaps),
        "reference": program.reference_verdict,
        "left_out": sorted(program.same),
    }


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _number(value: float | None, digits: int = 2) -> str:
    if value is None:
        return NONE
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}"


def _success(arms: dict[str, Any]) -> Table:
    rows = [
        [
            arm,
            str(f["n"]),
            str(f["verified"]),
            _of(f["spans_verified"], f["spans"]),
            _of(f["model_lines"]["of_models"], f["model_lines"]["lines"]),
        ]
        for arm, f in arms.items()
    ]
    note = "Verified: the check ran program and conversion and found them equivalent. All else is a draft."
    return Table("Success", ["prompt", "n", "verified", "spans verified", "lines not by the rules"], rows, note)


def _outcomes(arms: dict[str, Any], which: str) -> Table:
    said = {arm: f[f"{which}_answers"] for arm, f in arms.items()}
    met = [name for name in OUTCOMES if any(counts[name] for counts in said.values())]
    rows = [[arm, str(sum(counts.values())), *(str(counts[name]) for name in met)] for arm, counts in said.items()]
    note = "Where each program's answer ended: spec, numeric, behavioral are the check's stages; each gates the next."
    return Table(f"The {which} answer by stage", ["prompt", "n", *met], rows, note if which == "first" else "")


def _rounds(arms: dict[str, Any]) -> Table:
    most = max(len(f["verified_by_round"]) for f in arms.values())
    rows = []
    for arm, f in arms.items():
        counts = [*f["verified_by_round"], *[f["verified"]] * (most - len(f["verified_by_round"]))]
        rows.append([arm, str(f["n"]), *map(str, counts)])
    return Table("Verified by round", ["prompt", "n", *(str(n) for n in range(1, most + 1))], rows)


def _cost(arms: dict[str, Any]) -> Table:
    rows = []
    for arm, f in arms.items():
        steps, cost = f["fix_cost"]["steps"], f["fix_cost"]
        row = [arm, str(steps["n"]), str(cost["never_verified"]), _number(steps["sum"]), _number(steps["mean"])]
        row += [_number(steps["median"], 1), _number(steps["max"])]
        rows.append([*row, _number(cost["lines"]["mean"]), _number(cost["tokens"]["mean"])])
    headers = ["prompt", "n", "never verified", "sum", "mean", "median", "max", "lines, mean", "tokens, mean"]
    note = "Steps (hunks of the diff) from the first draft to the verified code, and their size."
    return Table("FixCost", headers, rows, note)


def _spent(arms: dict[str, Any]) -> Table:
    rows = []
    for arm, f in arms.items():
        t = f["tokens"]
        row = [arm, str(f["n"]), str(t["all"])]
        row += [f"{_number(t[kind]['mean'], 0)} ({t[kind]['n']})" for kind in ("verified_cases", "failed_cases")]
        rows.append([*row, _number(t["per_verified_case"], 0), _number(float(t["cost"]), 4)])
    headers = ["prompt", "n", "all", "mean, verified (n)", "mean, failed (n)", "all for each verified", "US dollars"]
    return Table("Tokens", headers, rows)


def _claims(arms: dict[str, Any]) -> Table:
    rows = []
    for arm, f in arms.items():
        c = f["claims"]
        row = [arm, str(c["answers"]), str(c["answers_claimed"]), str(c["answers_verified"])]
        row += [str(c["claimed_not_verified"]), _number(c["overclaim_answers"], 1)]
        rows.append([*row, f"{_number(c['overclaim_cases'], 1)} ({f['n']})"])
    headers = ["prompt", "answers", "claimed", "verified", "claimed, not verified", "overclaim", "of programs (n)"]
    note = "What models say of their own answers. Overclaim is claimed minus verified, in points of a hundred."
    return Table("Claims", headers, rows, note)


def _scores(arms: dict[str, Any]) -> Table:
    names = list(dict.fromkeys(name for f in arms.values() for name in f["scores"]))
    rows = []
    for arm, f in arms.items():
        cells = [f"{_number(f['code_bleu'][kind]['mean'])} ({f['code_bleu'][kind]['n']})" for kind in _BLEU]
        for name in names:
            given = f["scores"].get(name, {"mean": None, "n": 0, "malformed": 0})
            bad = f", {given['malformed']} malformed" if given["malformed"] else ""
            cells.append(f"{_number(given['mean'])} ({given['n']}{bad})")
        rows.append([arm, *cells])
    empty = not names and not any(f["code_bleu"][kind]["n"] for f in arms.values() for kind in _BLEU)
    note = (
        "Means, with n. CodeBLEU is from 0 to 1, a judge model's scores from 0 to 4; of the first draft but where "
        "it says result. They accept nothing."
    )
    headers = ["prompt", "CodeBLEU", "CodeBLEU, result", *names]
    return Table("Similarity and judge", headers, [] if empty else rows, note)


_BLEU = ("draft", "result")


def _comparisons(report: dict[str, Any]) -> Table:
    rows = [
        [
            f"{c['first']} against {c['second']}",
            str(c["n"]),
            _number(c["score"]),
            str(c["ties"]),
            _of(c["orders_agree"], c["asked"]),
            _of(c["shown_first"], c["decided"]),
            str(c["unasked"]),
            str(c["malformed"]),
        ]
        for c in report["comparisons"]
    ]
    headers = ["prompts", "n", "Comparison", "ties", "orders agree", "first shown wins", "not asked", "malformed"]
    note = (
        "How often the judge model prefers the first one's draft; a tie is a half. Each two are shown in both orders. "
        "Not asked: the same code (a tie), or one has no draft (and loses)."
    )
    return Table("Comparison", headers, rows, note)


def _models(report: dict[str, Any]) -> Table:
    rows = [
        [f"{arm}, {model}", *(str(f[key]) for key in ("cases", "answers", "spans_verified", "tokens_in", "tokens_out"))]
        for arm, models in report["models"].items()
        for model, f in models.items()
    ]
    return Table("Models", ["prompt, model", "n", "answers", "spans verified", "tokens in", "tokens out"], rows)


def _run_time(arms: dict[str, Any]) -> Table:
    rows = [
        [
            arm,
            str(f["run_time"]["n"]),
            *(_number(1000 * f["run_time"][f"{name}_sum"]) for name in ("torch", "jax", "compile")),
            _number(f["run_time"]["speedup_geometric_mean"]),
        ]
        for arm, f in arms.items()
        if f["run_time"]["n"]
    ]
    headers = ["prompt", "n", "PyTorch, ms", "JAX, ms", "compiling, ms", "speed-up, geometric mean"]
    note = (
        "One call of each verified program in evaluation mode, on the (small) inputs of the check, summed; medians of "
        "repeated calls, one thread, compiling apart."
    )
    return Table("Run time", headers, rows, note)


def _correlations(report: dict[str, Any]) -> Table:
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for correlation in report["correlations"]:
        by_metric.setdefault(correlation["metric"], []).append(correlation)
    rows = [
        [
            metric,
            str(correlation[0]["n"]),
            *(_coefficient(c, kind) for c in correlation for kind in ("pearson", "spearman")),
        ]
        for metric, correlation in by_metric.items()
        if correlation[0]["n"]
    ]
    reasons = dict.fromkeys(c["undefined"] for c in report["correlations"] if c["n"] and c["undefined"])
    costs = [c["against"] for c in report["correlations"][: len(COSTS)]]
    headers = ["metric", "n", *(f"{kind}, {cost}" for cost in costs for kind in ("Pearson", "Spearman"))]
    note = (
        "Coefficients, with p. Over verified programs of all prompts; the same program counts once a prompt, so p is "
        "too small. What tells how much work is left has a negative sign where it is a score, a positive one for "
        "rounds and tokens."
    )
    return Table("Correlation with FixCost", headers, rows, note + "".join(f" Not defined: {r}." for r in reasons))


def _coefficient(coefficients: dict[str, Any], kind: str) -> str:
    return NONE if coefficients[kind] is None else f"{coefficients[kind]:+.2f} ({coefficients[f'{kind}_p']:.3f})"
