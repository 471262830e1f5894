"""What stood in the way of a verdict: a refusal that only one side met, or a gap that the conversion still has.

Neither says anything about the meaning of what was converted, so what would be `different` is `unchecked`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from t2j_lsp.check.messages import Failure, Frame
from t2j_lsp.check.process.worker import Kind
from t2j_lsp.check.program.slice import Slice, Slicer
from t2j_lsp.contract import VerdictKind

from .evidence import Judgement
from .refusals import one_sided

_GAP = re.compile(r"\s*# TODO\(t2j\): (.*)")


def obstacle(judgement: Judgement, met: Mapping[Kind, Collection[str]], side: Slicer, part: Slice) -> str | None:
    """Why a verdict `different` is none; ``part`` is the slice of the converted file that ran."""
    verdict = judgement.verdict
    if verdict.verdict is not VerdictKind.DIFFERENT:
        return None
    if (reason := one_sided(met)) is not None:
        return f"{reason}; without it, {verdict.reason}"
    error, place, path = judgement.error, verdict.divergence, str(side.path)
    if error is not None and (reason := failed_at_gap(side, part, error.frames)) is not None:
        return reason
    if place is not None and place.jax is not None:
        text = _texts(side, part).get(place.jax.file)
        at_gap = unfinished(text, place.jax.line) if text is not None else None
        if at_gap is not None:
            return incomplete(place.jax.line, at_gap, place.jax.file if place.jax.file != path else None)
    built = _of_construction(judgement)
    if place is None or place.jax is None or built:
        for line, at_gap in gaps_in(side, part, calls=not built):
            return f"{incomplete(line, at_gap)}; as it is, {verdict.reason}"
    return None  # The line where the two part is not one that was left.


def failed_at_gap(side: Slicer, part: Slice | None, frames: Sequence[Frame]) -> str | None:
    """The reason where an error went through a statement that the rules left, in the file or in one that it imports."""
    texts = _texts(side, part)
    for file, line, _ in reversed(frames):
        reason = unfinished(texts[file], line) if file in texts else None
        if reason is not None:
            return incomplete(line, reason, file if file != str(side.path) else None)
    return None


def _texts(side: Slicer, part: Slice | None) -> dict[str, str]:
    """The converted texts of the file and of those that a slice runs of its project, by path."""
    others = {m.path: m.text for m in part.modules if _GAP.search(m.text)} if part is not None else {}
    return {**others, str(side.path): side.text}


def incomplete(line: int, reason: str, file: str | None = None) -> str:
    """The reason for a verdict `unchecked` on what has a gap, in another file than the one that is checked."""
    return f"the conversion is not complete: {f'{file}, ' if file is not None else ''}line {line}: {reason}"


def unfinished(text: str, line: int) -> str | None:
    """What a converted file says above the statement of a line, where the rules left that as it was."""
    lines = text.splitlines()
    around = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt)]
    around = [n for n in around if _first(n) <= line <= (n.end_lineno or n.lineno)]
    for start in sorted(map(_first, around), reverse=True):
        match = _GAP.match(lines[start - 2]) if start > 1 else None
        if match is not None:
            return match[1]
    return None


def _first(statement: ast.stmt) -> int:
    """A statement's first line; that of a definition is its first decorator's."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min(statement.lineno, *(d.lineno for d in decorators)) if decorators else statement.lineno


def gaps_in(side: Slicer, part: Slice, calls: bool = True) -> Iterator[tuple[int, str]]:
    """The statements with a gap above them, by line, in what a slice runs of the converted file.

    Without ``calls``, those of ``__call__`` are left out.
    """
    tree, lines = ast.parse(side.text), side.text.splitlines()
    body = tree.body
    named = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "__call__" and not calls]
    inside = {line for n in named for line in range(n.lineno, (n.end_lineno or n.lineno) + 1)}
    kept = next((m.keep for m in part.modules if m.path == str(side.path)), ())
    for index, _ in kept:
        first, last = _first(body[index]), body[index].end_lineno or body[index].lineno
        for number in range(max(first - 1, 1), last + 1):
            match = _GAP.match(lines[number - 1])
            if match is not None and number not in inside:
                yield number + 1, match[1]


def _of_construction(judgement: Judgement) -> bool:
    """Whether what differs was made by the constructor, of which any statement may be the cause."""
    name = judgement.difference.name if judgement.difference is not None else ""
    misfit = isinstance(judgement.error, Failure) and judgement.error.type == "WeightsError"
    return name.startswith("initial values") or misfit
