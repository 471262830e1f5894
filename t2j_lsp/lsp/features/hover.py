"""Hover: what a call or a statement becomes in this conversion, what to know about it, and where to read more.

Answered from the last analysis, without parsing; before the first one, a hover waits for it. On lines that were edited
since, the name under the cursor is looked up in the imports of the last analysis and in the table of rules, and the
hover says that this is the rule and not the conversion.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from lsprotocol import types

from t2j_lsp.contract import FIDELITY_TEXT, Finding, Outcome, Rewrite, Severity, Span
from t2j_lsp.lsp.analysis.model import Analysis, ConversionScope, LineMap, stands_alone
from t2j_lsp.lsp.checking.verdicts import line_in
from t2j_lsp.lsp.convert import scope_data
from t2j_lsp.lsp.documents import Program
from t2j_lsp.lsp.links import library_pages, rule_page, torch_page

from .fixes import offer
from .hover_text import Hover, command_link, of_outcome, of_rewrite, used_helpers

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*")
WAIT = 2.0
"""Seconds that a hover waits for a program's first analysis: editors don't ask again after an empty answer."""
_UNWRITTEN = ("(removed)", "(stays)")
"""Forms of rules that are words and no code."""

RuleRecord = tuple[str, str | None, str, str | None, str]
"""Signature, JAX form, fidelity, what to know, subject."""


def register(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | Awaitable[types.Hover | None] | None:
        uri = params.text_document.uri
        program = server.store.program(uri)
        if program is None or not server.settings_for(uri).hover:
            return None
        if server.service.current(program) is None and program.uri not in server.service.broken:
            return _later(server, program, params)
        return _answer(server, params)


async def _later(server: Server, program: Program, params: types.HoverParams) -> types.Hover | None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(server.service.settled(program), WAIT)
    return _answer(server, params)


def _answer(server: Server, params: types.HoverParams) -> types.Hover | None:
    uri = params.text_document.uri
    program = server.store.program(uri)
    line = program.line_of(uri, params.position.line) if program is not None else None
    if program is None or line is None:
        return None
    column = server.store.column(program.lines[line], params.position.character)
    current = server.service.current(program)
    hovered = _from_analysis(server, program, uri, current, line, column) if current is not None else None
    hovered = hovered or _by_name(server, program, line, column)
    hovered = _with_difference(server, program, uri, line, hovered)
    if hovered is None:
        return None
    hover, span = hovered
    place = types.Range(
        server.store.position(program, span.line - 1, span.column),
        server.store.position(program, span.end_line - 1, span.end_column),
    )
    if server.client.markdown:
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, hover.markdown()), place)
    return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, hover.plain()), place)


def _from_analysis(
    server: Server, program: Program, uri: str, current: tuple[Analysis, LineMap], line: int, column: int
) -> tuple[Hover, Span] | None:
    """The hover from the analysis of the line, if it is as it was then."""
    analysis, lines = current
    old = lines.to_old(line)
    shown = analysis.shown_at(old + 1, column) if old is not None else None
    span = lines.span(shown.span) if shown is not None else None
    if shown is None or span is None:
        return None
    doc = doc_of(server, shown.name)
    findings = [f for f in analysis.findings_by_line.get(shown.span.line, ()) if f.span == shown.span]
    reasons = list(dict.fromkeys(f.reason for f in findings))
    command = None
    if isinstance(shown, Rewrite):
        fidelity = "manual" if any(f.severity is Severity.GAP for f in findings) else doc[2] if doc else "exact"
        if doc is not None and doc[3] and doc[3] not in reasons:
            reasons.append(doc[3])
        hover = of_rewrite(shown, "\n".join(_segment(program, span)), fidelity, reasons)
        if shown.jax is not None and stands_alone(shown.jax):
            command = command_link("t2j.convert", [uri, scope_data(ConversionScope("expression", span))])
    else:
        hover = of_outcome(shown, [r for r in [*reasons, *_note(shown, doc)] if r != shown.reason])
    stays = [(f, place) for f in _gaps_at(analysis, shown) if (place := lines.span(f.span)) is not None]
    _with_gap(server, program, hover, stays)
    hover.helpers = used_helpers(shown.name, hover.code, analysis.helpers, server.service.helpers)
    _link(server, hover, shown.name, doc, command)
    return hover, span


def _gaps_at(analysis: Analysis, shown: Rewrite | Outcome) -> Iterator[Finding]:
    """The gaps at a place: its own, or those of the statement that it stands in where that is left."""
    line, left = shown.span.line, isinstance(shown, Outcome) and shown.state == "left"
    for finding in analysis.findings:
        around = left and finding.span.line <= line <= finding.span.end_line
        if finding.severity is Severity.GAP and (around or finding.span == shown.span):
            yield finding


def _with_gap(server: Server, program: Program, hover: Hover, gaps: Iterable[tuple[Finding, Span]]) -> None:
    """Say in a hover that fixed bugs are like one of these gaps, which are at these places by now."""
    for finding, place in gaps:
        like = server.similar.for_gap(replace(finding, span=place), program.lines)
        if like:
            hover.offer = offer(server, like)
            return


def _with_difference(
    server: Server, program: Program, uri: str, line: int, shown: tuple[Hover, Span] | None
) -> tuple[Hover, Span] | None:
    """The hover of a place, with the fixed bugs that are like what a check found on its line."""
    for one in server.checks.differences_in(uri):
        like = server.similar.for_difference(one.source_uri, one.name)
        if like and program.place(line) == (uri, line_in(one, program.lines)):
            text = program.lines[line].rstrip()
            where = Span(line + 1, len(text) - len(text.lstrip()), line + 1, len(text))
            hover, span = shown or (Hover(one.name, "differs from PyTorch here"), where)
            hover.offer = offer(server, like)
            return hover, span
    return shown


def _note(outcome: Outcome, doc: RuleRecord | None) -> list[str]:
    """What a rule's record says of a statement that went, or of a name that stays PyTorch's."""
    return [doc[3]] if doc is not None and doc[3] and outcome.state in ("removed", "kept", "left") else []


def _by_name(server: Server, program: Program, line: int, column: int) -> tuple[Hover, Span] | None:
    """The hover of a dotted name, from the rule alone."""
    current = server.service.current(program)
    aliases = current[0].aliases if current is not None else {}
    text = program.lines[line]
    for match in _DOTTED.finditer(text):
        if match.start() <= column <= match.end():
            # The name up to the part under the cursor: in `nn.functional.gelu`, `nn` is not gelu.
            dot = text.find(".", column)
            end = match.end() if dot < 0 or dot >= match.end() else len(text[:dot].rstrip())
            name = re.sub(r"\s", "", text[match.start() : end])
            root, _, rest = name.partition(".")
            qualified = f"{aliases.get(root, root)}.{rest}".rstrip(".")
            doc = doc_of(server, qualified) if qualified.startswith("torch.") else None
            if doc is None:
                return None
            meaning = next((words for kind, words in FIDELITY_TEXT.items() if kind == doc[2]), "")
            form = doc[1] if doc[1] not in _UNWRITTEN else None
            about = [doc[3]] if doc[3] else []
            hover = Hover(qualified, f"{doc[2]}: {meaning}", [form] if form else [], rule=True, about=about)
            _link(server, hover, qualified, doc, None)
            return hover, Span(line + 1, match.start(), line + 1, end)
    return None


def _link(server: Server, hover: Hover, name: str, doc: RuleRecord | None, convert: str | None) -> None:
    pages = library_pages(name, "\n".join(hover.code[::-1]))
    hover.links = {"PyTorch": torch_page(name), **pages, "rule": rule_page(server, doc)}
    if server.client.command_links:
        rule = command_link("t2j.explainName", [name]) if doc is not None else None
        hover.links = {"Convert here": convert, **hover.links, "rule": rule}


def doc_of(server: Server, name: str) -> RuleRecord | None:
    """The record of a torch name: the name itself, an in-place spelling of it, or its whole package."""
    docs = server.service.docs
    record = docs.get(name) or (docs.get(name[:-1]) if name.endswith("_") else None)
    package = name
    while record is None and "." in package:
        package = package.rpartition(".")[0]
        record = docs.get(f"{package}.*")
    return record


def _segment(program: Program, span: Span) -> list[str]:
    lines = program.lines[span.line - 1 : span.end_line]
    texts = [line.rstrip("\r\n") for line in lines]
    texts[-1] = texts[-1][: span.end_column]
    texts[0] = texts[0][span.column :]
    return texts
