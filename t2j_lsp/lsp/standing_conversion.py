"""How far the conversion that stands beside a program is: none, up to date, outdated, or somebody else's file."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from t2j_lsp.child.process import ChildFailed
from t2j_lsp.files.written import base_of
from t2j_lsp.lsp.analysis.model import ConversionRefused, SyntaxProblem

from .convert import converted, own_standing
from .documents import Program
from .session import Session
from .targets import Standing, real, standing_at, target_of

MOST = 64
"""Programs whose answer is kept."""


class StandingState(enum.Enum):
    """What stands where a program's conversion goes."""

    NO_FILE = "the program is a buffer that is no file"
    NONE = "nothing"
    UP_TO_DATE = "what the program becomes now, with or without edits of the user's"
    OUTDATED = "what another text of the program became"
    FOREIGN = "a file that nothing can be written to"
    IS_CONVERSION = "the program is a conversion itself"


@dataclass(frozen=True)
class StandingConversion:
    """What stands where a program's conversion goes. ``name`` is that file's, ``problem`` why it can't be written."""

    state: StandingState
    name: str | None = None
    text: str = ""
    problem: str | None = None


async def conversion_of(session: Session, program: Program) -> StandingConversion:
    """What stands where a program's conversion goes now. Nothing is written or converted anew while somebody types."""
    target = target_of(session, program.uri)
    if target is None:
        return StandingConversion(StandingState.NO_FILE)
    if session.pairs.source_of(program.uri) not in (program.uri, None):
        return StandingConversion(StandingState.IS_CONVERSION)
    standing = standing_at(session, target)
    if not standing.exists:
        return StandingConversion(StandingState.NONE, target.name)
    text = standing.text or ""
    if standing.problem is not None:
        return StandingConversion(StandingState.FOREIGN, target.name, text, standing.problem)
    fresh = await _is_fresh(session, program, standing)
    return StandingConversion(StandingState.UP_TO_DATE if fresh else StandingState.OUTDATED, target.name, text)


def defines(text: str, name: str) -> bool:
    """Whether a class or function of the name stands at the top level of a text, which may not parse."""
    return re.search(rf"^(?:class|(?:async )?def) +{re.escape(name)}\b", text, re.M) is not None


async def _is_fresh(session: Session, program: Program, standing: Standing) -> bool:
    """Whether the file comes from what the program becomes now. Until that is known, the last answer holds."""
    known = session.service.known.get(program.uri)
    key = (program.revision, standing.text)
    answers = session.fresh_conversions
    last = answers.get(program.uri)
    if last is not None and last[0] == key:
        return last[1]
    if known is None or known.revision != program.revision or not known.analysis.complete:
        return last[1] if last is not None else True
    if program.is_notebook:
        # A notebook's conversion is made of its file, which is not read for a lens.
        return True
    try:
        beside = own_standing(session, standing.path)
        done = await converted(session, session.service, program.uri, program, standing.path if beside else None)
    except (ConversionRefused, SyntaxProblem, ChildFailed):
        return last[1] if last is not None else True
    fresh = standing.text == done.code
    if not fresh and standing.edited:
        base = base_of(real(standing.path), (standing.text or "").encode("utf-8", "surrogatepass"))
        fresh = base == done.code.encode("utf-8", "surrogatepass")
    answers.pop(program.uri, None)
    answers[program.uri] = (key, fresh)
    while len(answers) > MOST:
        del answers[next(iter(answers))]
    return fresh
