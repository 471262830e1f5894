"""Where asking a model is offered: at a gap, at a marked draft in a conversion, and at what a check found to differ."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from t2j_lsp.child.process import ChildFailed
from t2j_lsp.contract import Finding, Severity, Span
from t2j_lsp.files.outline import todo_marks
from t2j_lsp.lsp.analysis.model import Analysis, ConversionRefused
from t2j_lsp.lsp.checking.verdicts import FoundDifference
from t2j_lsp.lsp.documents import Program
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.similar.counts import Gap
from t2j_lsp.lsp.targets import UNTRUSTED

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

ASK_COMMAND = "t2j.ask"
GAPS, DIFFERENT = "gaps", "different"
UNSET = "no model is set: t2j.model.names in the editor's settings"
REPAIR = "Repair with the model…"
PATIENCE = 0.5
"""Seconds that a list of actions waits for the number of similar fixes."""
MOST = 50
"""Gaps of one file that are looked for at once."""
_DEFINITION = re.compile(r"(?:class|def)[ \t]+(\w+)")


def register(server: Server) -> None:
    server.on_analysis.append(partial(look_for_fixes, server))


def why_not(server: Server, uri: str) -> str | None:
    """Why no model can be asked about a document; None where one can."""
    path = to_path(uri)
    if not server.settings_for(uri).model_names:
        return UNSET
    if path is None or path.suffix != ".py":
        return "only .py files are asked about"
    return None if server.trusted else UNTRUSTED


def is_offered(server: Server, uri: str) -> bool:
    """Whether asking about a document is offered; a client that asks for trust itself is offered it before, too."""
    reason = why_not(server, uri)
    return reason is None or (reason == UNTRUSTED and server.client.asks_before_checks)


def look_for_fixes(server: Server, program: Program) -> None:
    """Find out how many similar fixes there are for a program's gaps, before anybody opens a list of actions."""
    current = server.service.current(program)
    if current is None or not is_offered(server, program.uri):
        return
    analysis, lines = current
    places = ((f, lines.span(f.span)) for f in analysis.findings if f.severity is Severity.GAP)
    gaps = [_gap(program, finding, span) for finding, span in places if span is not None]
    unknown = server.similar_counts.unknown(gaps)
    if unknown:
        server.similar_counts.look_up(unknown[:MOST])


def at_gap(server: Server, program: Program, analysis: Analysis, finding: Finding, span: Span) -> Offer | None:
    """The action that asks for the definition in which a gap stands; ``span`` is where the gap is now."""
    if not is_offered(server, program.uri):
        return None
    around = (
        d.name
        for d in analysis.definitions
        if not d.depth and d.kind != "loop" and d.line <= finding.span.line <= d.end_line
    )
    return Offer(_action(server, program.uri, next(around, ""), GAPS), _gap(program, finding, span))


def at_draft(server: Server, program: Program, first: int, last: int) -> types.CodeAction | None:
    """The action that asks for what is marked in a conversion, between two of its lines (from 0)."""
    source = server.pairs.source_of(program.uri)
    if source in (None, program.uri) or source is None or not is_offered(server, source):
        return None
    if not any(first <= line <= last + 1 for line, _ in todo_marks(program.text)):
        return None
    above = (_DEFINITION.match(line) for line in reversed(program.lines[: last + 1]))
    name = next((match[1] for match in above if match is not None), "")
    return _action(server, source, name, GAPS)


def at_difference(server: Server, found: FoundDifference) -> types.CodeAction | None:
    """The action that has a definition repaired which a check found to differ."""
    if not is_offered(server, found.source_uri):
        return None
    return _action(server, found.source_uri, found.name, DIFFERENT, REPAIR)


@dataclass(frozen=True)
class Offer:
    """An action whose title gets the number of fixes that are similar to its gap."""

    action: types.CodeAction
    gap: Gap

    def count(self, number: int) -> None:
        if number:
            fixes = "1 similar fix" if number == 1 else f"{number} similar fixes"
            title = f"Ask the model ({fixes} found)…"
            self.action.title = title
            assert self.action.command is not None
            self.action.command.title = title


async def count_similar(server: Server, offers: Sequence[Offer]) -> None:
    """Write into the titles how many similar fixes there are, as far as that is known soon."""
    gaps = server.similar_counts.unknown([offer.gap for offer in offers])
    if gaps:
        with contextlib.suppress(TimeoutError, ChildFailed, ConversionRefused):
            await asyncio.wait_for(asyncio.shield(server.similar_counts.look_up(gaps)), PATIENCE)
    for offer in offers:
        offer.count(server.similar_counts.count(offer.gap))


def _gap(program: Program, finding: Finding, span: Span) -> Gap:
    return Gap("".join(program.lines[span.line - 1 : span.end_line]), finding.name, finding.reason)


def asking(server: Server, uri: str, name: str, mode: str) -> list[Any]:
    """The command's arguments: only a client that asks the user itself waits for what comes of it."""
    return [uri, name, mode, *([] if server.client.asks_before_sending else [None, True])]


def _action(server: Server, uri: str, name: str, mode: str, title: str = "Ask the model…") -> types.CodeAction:
    command = types.Command(title=title, command=ASK_COMMAND, arguments=asking(server, uri, name, mode))
    return types.CodeAction(title, types.CodeActionKind.QuickFix, command=command)
