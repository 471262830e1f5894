"""The process that knows the fixed bugs: reads them on the first question, and ends with its parent.

``python -P -m t2j_lsp.lsp.similar.process``. Requests and answers are lines of JSON. It executes nothing.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from t2j_lsp.contract import Finding, Severity, Span, T2JError
from t2j_lsp.fixes.offers import case_of_verdict, row, rows, text
from t2j_lsp.fixes.own_fixes import find, keep, similar_with_own
from t2j_lsp.fixes.record import Found


def main() -> None:
    """Answer requests until standard input ends."""
    if hasattr(os, "nice"):
        # Whoever types comes first.
        os.nice(10)
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    for line in source:
        request = json.loads(line)
        try:
            answer = {"value": OPERATIONS[request.pop("operation")](**request)}
        except T2JError as error:
            answer = {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - the outermost guard of a request
            # Only the type and the place: a message may hold the user's code.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            answer = {"error": f"an error inside t2j: {type(error).__name__} at {place}"}
        sink.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")


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
    return {"fixes": [row(Found(pair, 1.0)) for pair in pairs], "text": "\n\n".join(map(text, pairs))}


def kept(verdict: dict[str, Any], source: list[str], faulty: list[str], fixed: list[str]) -> str | None:
    """Keep a fix of the user's: ``verdict`` is on the faulty code, the fixed code was found to be equivalent."""
    files = [(Path(path), code) for path, code in (source, faulty, fixed)]
    return keep(verdict, files[0], files[1], files[2])


OPERATIONS: dict[str, Callable[..., Any]] = {"verdict": for_verdict, "gaps": for_gaps, "show": show, "keep": kept}


if __name__ == "__main__":
    main()
