"""The process that knows the fixed bugs, ``python -P -m t2j_lsp.lsp.similar.process``.

It reads them on the first question, and executes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from t2j_lsp.child.serve import Requests, step_back
from t2j_lsp.contract import Finding, Severity, Span
from t2j_lsp.fixes.offers import case_of_verdict, row, rows, text
from t2j_lsp.fixes.own_fixes import find, keep, similar_with_own
from t2j_lsp.fixes.record import SimilarPair


def for_verdict(verdict: dict[str, Any], source: list[str], converted: list[str]) -> list[dict[str, Any]]:
    """Fixed bugs like a difference; ``source`` and ``converted`` are each a path and a text."""
    case = case_of_verdict(verdict, (Path(source[0]), source[1]), (Path(converted[0]), converted[1]))
    return rows(similar_with_own().similar(case)) if case is not None else []


def for_gaps(gaps: list[dict[str, Any]], source: str) -> list[list[dict[str, Any]]]:
    """Fixed bugs like each of some gaps, which are given as in a report."""
    known = similar_with_own()
    return [rows(known.for_gap(_finding(gap), source)) for gap in gaps]


def _finding(gap: dict[str, Any]) -> Finding:
    span = Span(gap["line"], gap["column"], gap["end_line"], gap["end_column"])
    return Finding(span=span, name=gap["name"], code=gap["code"], severity=Severity.GAP, reason=gap["reason"])


def show(ids: list[str]) -> dict[str, Any]:
    """Fixed bugs by their ids, as data and as one text."""
    pairs = [find(identity) for identity in ids]
    return {"fixes": [row(SimilarPair(pair, 1.0)) for pair in pairs], "text": "\n\n".join(map(text, pairs))}


def kept(verdict: dict[str, Any], source: list[str], faulty: list[str], fixed: list[str]) -> str | None:
    """Keep a fix of the user's: ``verdict`` is on the faulty code, the fixed code was found to be equivalent."""
    files = [(Path(path), code) for path, code in (source, faulty, fixed)]
    return keep(verdict, files[0], files[1], files[2])


OPERATIONS: dict[str, Callable[..., Any]] = {"verdict": for_verdict, "gaps": for_gaps, "show": show, "keep": kept}


def main() -> None:
    """Answer the server's requests."""
    requests = Requests()
    step_back()
    requests.answer(OPERATIONS)


if __name__ == "__main__":
    main()
