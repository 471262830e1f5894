"""Commands, and the requests of our own: ``t2j/state``, ``t2j/didChangeTrust`` and what the client configures."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from t2j_lsp import __version__
from t2j_lsp.child.process import ChildFailed
from t2j_lsp.contract import Severity, T2JError
from t2j_lsp.lsp import rewriting
from t2j_lsp.lsp.analysis.model import ConversionRefused, ConversionScope, SyntaxProblem
from t2j_lsp.lsp.checking.verdicts import overall
from t2j_lsp.lsp.convert import convert_part, scope_of
from t2j_lsp.lsp.documents import Program

from .actions import RequestFailed
from .conversions import apply_part
from .hover import doc_of
from .lenses import verdict_of

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

HEAVY = frozenset(
    {"torch", "jax", "flax", "optax", "numpy", "libcst", "openai", "t2j_lsp.translate", "t2j_lsp.check.run"}
)
"""What the server's own process has no use for."""
STATE, TRUST = "t2j/state", "t2j/didChangeTrust"


def register(server: Server) -> None:
    _conversions(server)
    _checks(server)
    _information(server)


def _program(server: Server, uri: Any) -> Program:
    program = server.store.program(str(uri))
    if program is None:
        raise RequestFailed(message="the document is not open")
    return program


def _conversions(server: Server) -> None:
    @server.command("t2j.convert")
    async def convert(*arguments: Any) -> dict[str, Any]:
        """``[uri, scope, confirmed?, revision?]``: rewrite a part of a document in place, once the user agreed.

        ``revision`` is the server's of the text that ``scope`` is about.
        """
        uri, scope, confirmed, revision = (*arguments, None, None, None, None)[:4]
        program = _program(server, uri)
        try:
            if revision is not None and program.revision != revision:
                raise ConversionRefused("the text was edited since")
            return await _rewrite(server, program, scope_of(scope), confirmed is True)
        except (ConversionRefused, SyntaxProblem, ChildFailed) as error:
            raise RequestFailed(message=str(error)) from None


async def _rewrite(server: Server, program: Program, scope: ConversionScope, confirmed: bool) -> dict[str, Any]:
    """Rewrite a part in place; what is larger than an expression only after a question. Raises ConversionRefused."""
    asks = rewriting.is_asked_about(scope) and not confirmed
    annotates = asks and server.client.annotations and not server.client.asks_before_rewriting
    in_place = rewriting.question(server, program, scope) if annotates else None
    part = await convert_part(server, program, scope, in_place, confirmed)
    if asks and server.client.asks_before_rewriting:
        return rewriting.as_answer(server, program, scope, part.caveats)
    if asks and not annotates:
        revision = program.revision
        if not await rewriting.allowed(server, program, scope, part.caveats):
            return {"applied": False, "reason": "it was not confirmed"}
        if program.revision != revision:
            raise ConversionRefused("the text was edited meanwhile")
    return await apply_part(server, part)


def _checks(server: Server) -> None:
    @server.command("t2j.check")
    async def check(*arguments: Any) -> dict[str, Any]:
        """``[uri, name?]``: run a file and its conversion side by side, and answer with the verdict."""
        uri, name = (*arguments, None, None)[:2]
        try:
            await server.checks.check(str(uri), [str(name)] if name else None)
        except T2JError as error:
            raise RequestFailed(message=str(error)) from None
        return server.checks.summary(server.pairs.source_of(str(uri)) or str(uri), str(name) if name else None)

    @server.command("t2j.run")
    async def run(*arguments: Any) -> dict[str, Any]:
        """``[uri]``: run a program and its conversion as wholes, and answer with the report."""
        uri = str((*arguments, "")[0])
        try:
            await server.checks.run(uri)
        except T2JError as error:
            raise RequestFailed(message=str(error)) from None
        return server.checks.programs.summary(server.pairs.source_of(uri) or uri) or {}

    @server.command("t2j.cancelCheck")
    def cancel(*_: Any) -> None:
        """Stop the running check."""
        server.checks.cancel()

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel_progress(params: types.WorkDoneProgressCancelParams) -> None:
        stop = server.progress_cancels.get(str(params.token))
        if stop is not None:
            stop()

    @server.feature(TRUST)
    def trust(params: Any) -> None:
        server.trusted = getattr(params, "trusted", None) is True
        if not server.trusted:
            server.checks.cancel()
            server.asking.cancel()
        for program in server.store.programs() if server.trusted else ():
            server.checks.due(program.uri)
        server.refresh_views()


def _information(server: Server) -> None:
    @server.command("t2j.explain")
    def explain(*arguments: Any) -> dict[str, Any]:
        """``[name]``: the rule for a qualified torch name."""
        name = str((*arguments, "")[0])
        doc = doc_of(server, name)
        if doc is None:
            raise RequestFailed(message=f"no rule for {name}")
        signature, jax, fidelity, note, subject = doc
        return {
            "name": name,
            "signature": signature,
            "jax": jax,
            "fidelity": fidelity,
            "note": note,
            "subject": subject,
        }

    @server.command("t2j.restart")
    def restart(*_: Any) -> None:
        """Start the analysis and check processes anew."""
        server.checks.cancel()
        server.checks.process.kill()
        server.asking.cancel()
        server.service.restart()

    @server.command("t2j.debugInfo")
    def debug_info(*_: Any) -> dict[str, Any]:
        """What a bug report needs; no code, no paths of documents."""
        return {
            "version": __version__,
            "python": sys.version,
            "platform": platform.platform(),
            "encoding": server.store.encoding,
            "trusted": server.trusted,
            "documents": len(server.store.documents),
            "notebooks": len(server.store.notebooks),
            "client": vars(server.client),
            "processes": {
                "analysis": server.service.pid,
                "check": server.checks.process.pid,
                "asking": server.asking.pid,
            },
            "rules": len(server.service.docs),
            "loaded": sorted(HEAVY & set(sys.modules)),
        }

    @server.feature(STATE)
    async def state(params: Any) -> dict[str, Any] | None:
        """``{uri, complete?}``: how far a document's migration is; ``complete`` waits for the whole file's analysis."""
        program = server.store.program(str(getattr(params, "uri", "")))
        if program is None:
            return None
        await server.service.settled(program, bool(getattr(params, "complete", False)))
        return migration_state(server, program)


def migration_state(server: Server, program: Program) -> dict[str, Any]:
    """What is known of a program: its definitions, what would stay, and the last verdicts."""
    current = server.service.current(program)
    analysis = current[0] if current is not None else None
    source = server.pairs.source_of(program.uri)
    pair = server.pairs.converted_of(source) if source is not None else None
    known = server.checks.states.get(source or "")
    definitions: list[dict[str, Any]] = []
    for d in analysis.definitions if analysis is not None else ():
        verdict = verdict_of(server, source, d.name) if source is not None else None
        definitions.append(
            {
                "kind": d.kind,
                "name": d.name,
                "line": d.line - 1,
                "endLine": d.end_line - 1,
                "state": "refused" if d.refused else "gaps" if d.gaps else "torch" if d.edits else "plain",
                "gaps": list(d.gaps),
                "verdict": verdict["verdict"] if verdict is not None else None,
            }
        )
    findings = analysis.findings if analysis is not None else ()
    return {
        "uri": program.uri,
        "version": program.version,
        "analysed": "none" if analysis is None else "complete" if analysis.complete else "partial",
        "broken": program.uri in server.service.broken,
        "problem": analysis.problem if analysis is not None else None,
        "convertible": analysis.converted if analysis is not None else 0,
        "gaps": sum(f.severity is Severity.GAP for f in findings),
        "notes": sum(f.severity is Severity.NOTE and f.differs for f in findings),
        "definitions": definitions,
        "converted": pair[0] if pair is not None else None,
        "check": {
            "verdict": overall(known) if known is not None else None,
            "coverage": known.coverage.text if known is not None and known.coverage is not None else None,
            "stale": known.stale if known is not None else False,
            "problem": known.problem if known is not None else None,
        },
        "run": server.checks.programs.summary(source or ""),
    }
