"""Code lenses on modules, functions and training loops: convert, check, and the last verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from ...contract import STAGES, VerdictKind
from ..analysis.model import Definition, Scope
from ..convert import scope_data
from ..documents import Program

if TYPE_CHECKING:
    from ..server import Server

MARKS = {"equivalent": "✓", "different": "≠", "unchecked": "?"}


def register(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions())
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        program = server.store.program(uri)
        if program is None or not server.settings_for(uri).code_lens:
            return []
        return list(_lenses(server, program, uri))


def _lenses(server: Server, program: Program, uri: str) -> Iterator[types.CodeLens]:
    current = server.service.current(program)
    if current is None:
        return
    analysis, lines = current
    source = server.checks.pairs.source_of(program.uri)
    for definition in analysis.definitions:
        line = lines.to_new(definition.name_span.line - 1)
        last = lines.to_new(definition.end_line - 1)
        first = lines.to_new(definition.line - 1)
        if line is None or last is None or first is None or program.place(line)[0] != uri or definition.depth:
            continue
        start = types.Position(program.place(line)[1], 0)
        where = types.Range(start, start)
        if definition.edits:
            scope = scope_data(Scope("lines", None, first + 1, last + 1))
            yield _lens(where, _convert_title(definition), "t2j.convert", [uri, scope])
        if definition.kind == "loop" or source is None:
            continue
        verdict = verdict_of(server, source, definition.name)
        if verdict is not None:
            yield _lens(where, verdict_text(server, source, verdict), "t2j.check", [source, definition.name])
            if verdict["verdict"] == VerdictKind.DIFFERENT and server.client.panels and not is_stale(server, source):
                yield _lens(where, "Explain", "t2j.showDifference", [source, definition.name])
        elif definition.edits and (server.trusted or server.client.asks_before_checks):
            yield _lens(where, "Check", "t2j.check", [source, definition.name])


def _lens(where: types.Range, title: str, command: str, arguments: list[Any]) -> types.CodeLens:
    return types.CodeLens(where, types.Command(title=title, command=command, arguments=arguments))


def _convert_title(definition: Definition) -> str:
    gaps = len(definition.gaps)
    return "Convert to JAX" + (f" ({gaps} left as it is)" if gaps else "")


def verdict_of(server: Server, source: str, name: str) -> dict[str, Any] | None:
    """The last verdict on a class or function of a file."""
    state = server.checks.states.get(source)
    return next((v for v in state.verdicts if v["name"] == name), None) if state is not None else None


def is_stale(server: Server, source: str) -> bool:
    """Whether one of a pair's texts was edited since its last check."""
    return server.checks.states[source].stale


def verdict_text(server: Server, source: str, verdict: dict[str, Any]) -> str:
    """A verdict in a line: how far it was checked, the worst error, and on what."""
    state = server.checks.states[source]
    kind = verdict["verdict"]
    parts = [f"{MARKS[kind]} {kind}"]
    stages = verdict["stages"]
    passed = [s for s in STAGES if stages[s]["result"] == "pass"]
    failed = next((s for s in STAGES if stages[s]["result"] == "fail"), None)
    if failed is not None:
        parts.append(f"in {failed}")
    elif kind == "equivalent" and passed:
        parts.append(f"up to {passed[-1]}")
    errors = [s["max_rel_err"] for s in stages.values() if s["max_rel_err"] is not None]
    if errors and kind != "unchecked":
        parts.append(f"worst error {max(errors):.0e}")
    if kind == "unchecked" and verdict["reason"]:
        parts.append(verdict["reason"][:80])
    if device := verdict.get("device", state.device):
        parts.append(device)
    return ", ".join(parts) + (" (stale)" if is_stale(server, source) else "")
