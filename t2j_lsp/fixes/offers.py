"""Fixed bugs that are offered without a model: on a gap, on a difference, and for a torch name.

Only what is really like it is offered: an offer that is noise is worse than none. The user's own pairs are among them.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2j_lsp.contract import Divergence, Finding, Location, ObjectVerdict, SourceError, VerdictKind
from t2j_lsp.files.sources import read_source

from .record import Case, Pair, SimilarPair, statement_lines

if TYPE_CHECKING:
    from t2j_lsp.assist.judging import CandidateFailure

LIMIT = 3
NARROWEST = 60
"""Columns below which two pieces of code don't stand side by side."""


def counted(number: int) -> str:
    """What is said of so many offers: ``3 mistakes like this were fixed``."""
    return "1 mistake like this was fixed" if number == 1 else f"{number} mistakes like this were fixed"


def failure(form: dict[str, Any]) -> CandidateFailure | None:
    """How an object failed, by its verdict in the JSON form of `ObjectVerdict`; None unless it is ``different``."""
    from t2j_lsp.assist.judging import failure_of  # the server counts offers, and starts without the model lane

    place = form["divergence"] or {}
    torch, jax = (Location(**place[side]) if place.get(side) else None for side in ("torch", "jax"))
    divergence = Divergence(torch, jax, place["what"]) if place else None
    kind = VerdictKind(form["verdict"])
    return failure_of(ObjectVerdict(form["name"], kind, form["reason"], divergence=divergence))


def case_of_verdict(form: dict[str, Any], source: tuple[Path, str], converted: tuple[Path, str]) -> Case | None:
    """A verdict, in the JSON form of `ObjectVerdict`, as a case; None unless it is ``different``.

    ``source`` and ``converted`` are the two files with their texts; what a verdict says of their neighbours is read
    from disk.
    """
    failed = failure(form)
    if failed is None:
        return None
    place = form["divergence"] or {}
    torch_text, jax_text = _text_of(place.get("torch"), *source), _text_of(place.get("jax"), *converted)
    outcome = failed.outcome
    assert outcome in ("raises", "differs", "does not load")
    edit = _edit(place["fix"], jax_text) if place.get("fix") else None
    return Case(torch_text, failed.lines[0], jax_text, failed.lines[1], failed.message, outcome, edit)  # type: ignore[arg-type]


def _text_of(place: dict[str, Any] | None, path: Path, text: str) -> str:
    """The text of the file that a place is in."""
    if place is None or Path(place["file"]) in (path, path.resolve()) or not Path(place["file"]).is_file():
        return text
    try:
        return read_source(Path(place["file"])).text
    except SourceError:
        return ""


def _edit(fix: dict[str, Any], text: str) -> tuple[str, str] | None:
    """The statement that an edit is in, before and after it."""
    lines, span = text.splitlines(), fix["span"]
    first, last = statement_lines(text, span["line"]) or (span["line"], span["end_line"])
    last = max(last, span["end_line"])
    if last > len(lines):
        return None
    head = [*lines[first - 1 : span["line"] - 1], lines[span["line"] - 1][: span["column"]]]
    tail = [lines[span["end_line"] - 1][span["end_column"] :], *lines[span["end_line"] : last]]
    return "\n".join(lines[first - 1 : last]), "\n".join(head) + fix["new"] + "\n".join(tail)


def key_of_gap(finding: Finding, lines: Sequence[str]) -> tuple[str, ...]:
    """What an offer for a gap depends on; ``lines`` are those of its text."""
    if finding.name.startswith("torch."):
        return (finding.code, finding.name)
    span = lines[finding.span.line - 1 : finding.span.end_line]
    return (finding.code, finding.name, *(line.rstrip() for line in span))


# --- as data and as text ----------------------------------------------------------------------------------------------


def is_own(pair: Pair) -> bool:
    """Whether a pair is one of the user's."""
    return pair.bug.origin == "captured"


def id_of(pair: Pair) -> str:
    """What a pair goes by on the command line."""
    return pair.example.example_id if is_own(pair) else pair.id


def title_of(pair: Pair) -> str:
    """A pair's head line: ``rngs missing (model definitions: initialisation)``."""
    bug = pair.bug
    if is_own(pair):
        return f"yours: {id_of(pair)}"
    return f"{bug.root_cause.replace('-', ' ')} ({bug.category}: {bug.sub_category})"


def row(similar: SimilarPair) -> dict[str, Any]:
    """The JSON form: the published fields of a pair, its category, and what running it showed."""
    pair = similar.pair
    about = {"id": id_of(pair), "title": title_of(pair), "yours": is_own(pair), "score": round(similar.score, 3)}
    return {**about, "program": pair.example.title, **pair.bug.to_json()}


def rows(pairs: Sequence[SimilarPair]) -> list[dict[str, Any]]:
    return [row(one) for one in pairs]


def text(pair: Pair, width: int | None = None) -> str:
    """A pair for a reader: what was wrong in words, the faulty code and the fixed code side by side, what it said."""
    return row_text(row(SimilarPair(pair, 1.0)), width or shutil.get_terminal_size((120, 40)).columns)


def row_text(one: dict[str, Any], width: int = 120) -> str:
    """The same of a pair in its JSON form."""
    words = textwrap.fill(one["Fix_info"], min(width, 100))
    lines = [one["title"], "", words, "", *side_by_side(one["Error_Code"], one["Fixed_Code"], width), ""]
    where = "" if one["yours"] else f"\n  in {one['program']}"
    return "\n".join([*lines, f"  it said: {one['Error'].splitlines()[0] if one['Error'] else 'nothing'}{where}"])


def side_by_side(faulty: str, fixed: str, width: int) -> list[str]:
    """Two pieces of code as two columns; one below the other where they are too wide."""
    left, right = (textwrap.dedent(code).rstrip("\n").split("\n") for code in (faulty, fixed))
    wide = max(map(len, (*left, "faulty")))
    if width < NARROWEST or 2 + wide + 3 + max(map(len, right)) > width:
        return [*(f"  - {line}" for line in left), *(f"  + {line}" for line in right)]
    count = max(len(left), len(right))
    pairs = zip(["faulty", *left] + [""] * count, ["fixed", *right] + [""] * count, strict=False)
    return [f"  {a.ljust(wide)} | {b}".rstrip() for a, b in list(pairs)[: count + 1]]
