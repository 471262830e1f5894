"""Where asking a model is offered: at a gap, at a marked draft in a conversion, and at what a check found to differ."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from t2j_lsp.contract import Finding, Span
from t2j_lsp.files.outline import todo_marks
from t2j_lsp.lsp.analysis.model import Analysis
from t2j_lsp.lsp.checking.verdicts import FoundDifference
from t2j_lsp.lsp.documents import Program
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.targets import UNTRUSTED

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

ASK_COMMAND = "t2j.ask"
GAPS, DIFFERENT = "gaps", "different"
UNSET = "no model is set: t2j.model.names in the editor's settings"
REPAIR = "Repair with the model…"
_DEFINITION = re.compile(r"(?:class|def)[ \t]+(\w+)")


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


def at_gap(
    server: Server, program: Program, analysis: Analysis, finding: Finding, span: Span
) -> types.CodeAction | None:
    """The action that asks for the definition in which a gap stands; ``span`` is where the gap is now.

    Its title says how many fixed bugs are really like the gap, as far as they have been looked up.
    """
    if not is_offered(server, program.uri):
        return None
    around = (
        d.name
        for d in analysis.definitions
        if not d.depth and d.kind != "loop" and d.line <= finding.span.line <= d.end_line
    )
    name, count = next(around, ""), len(server.similar.for_gap(replace(finding, span=span), program.lines))
    if not count:
        return _action(server, program.uri, name, GAPS)
    fixes = "1 similar fix" if count == 1 else f"{count} similar fixes"
    return _action(server, program.uri, name, GAPS, f"Ask the model ({fixes} found)…")


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


def at_difference(server: Server, difference: FoundDifference) -> types.CodeAction | None:
    """The action that has a definition repaired which a check found to differ."""
    if not is_offered(server, difference.source_uri):
        return None
    return _action(server, difference.source_uri, difference.name, DIFFERENT, REPAIR)


def asking(server: Server, uri: str, name: str, mode: str) -> list[Any]:
    """The command's arguments: only a client that asks the user itself waits for what comes of it."""
    return [uri, name, mode, *([] if server.client.asks_before_sending else [None, True])]


def _action(server: Server, uri: str, name: str, mode: str, title: str = "Ask the model…") -> types.CodeAction:
    command = types.Command(title=title, command=ASK_COMMAND, arguments=asking(server, uri, name, mode))
    return types.CodeAction(title, types.CodeActionKind.QuickFix, command=command)
