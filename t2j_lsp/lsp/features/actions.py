"""Code actions: conversions of what is under the cursor, of the selection, of the file; lazily resolved where possible.

What is offered is read off the last analysis; the edit of an action is worked out when the client asks for it. What
the rules refuse is offered too, disabled, with the reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from t2j_lsp.child.process import ChildFailed
from t2j_lsp.contract import DIFFERS, Finding, Severity, Span, editor_code
from t2j_lsp.lsp import rewriting
from t2j_lsp.lsp.analysis.model import (
    AnalysedDefinition,
    Analysis,
    ConversionRefused,
    ConversionScope,
    LineMap,
    SyntaxProblem,
    stands_alone,
)
from t2j_lsp.lsp.checking.verdicts import line_in
from t2j_lsp.lsp.convert import convert_file, convert_part, file_edit, ignore_edit, restore_edit, scope_data, scope_of
from t2j_lsp.lsp.documents import Document, Program
from t2j_lsp.lsp.edits import joined
from t2j_lsp.lsp.outputs import note_written, output_edit
from t2j_lsp.lsp.targets import UNSAVED_NOTEBOOK, UNTRUSTED, standing_at, target_of

from . import ask_offers
from .mends import explain, mend

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

REWRITE = "refactor.rewrite.t2j"
CONVERT = "source.convert.t2j"
CONVERT_AND_CHECK = "source.convertAndCheck.t2j"
FIX_ALL = "source.fixAll.t2j"
QUICK_FIX = types.CodeActionKind.QuickFix.value
KINDS = (QUICK_FIX, REWRITE, CONVERT, CONVERT_AND_CHECK, FIX_ALL)
REQUEST_FAILED, CONTENT_MODIFIED = -32803, -32801
CONVERT_FILE_COMMAND, CONVERT_PART_COMMAND = "t2j.convertFile", "t2j.convert"

Actions = list[types.CodeAction | types.Command]


class RequestFailed(JsonRpcException):
    """A request that can't be done, with the reason for the user."""

    CODE = REQUEST_FAILED
    MESSAGE = "the request failed"


def register(server: Server) -> None:
    options = types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def code_action(params: types.CodeActionParams) -> Actions | Awaitable[Actions]:
        uri = params.text_document.uri
        program = server.store.program(uri)
        if program is None:
            return []
        offers = Offers(server, program, uri, params)
        wanted = list(_wanted(offers.all(), params.context.only))
        wanted = [a for a in wanted if a.disabled is None or server.client.disabled_actions]
        if not server.client.code_action_literals:
            return [command for a in wanted if (command := _as_command(a, uri)) is not None]
        return list(wanted) if server.client.lazy_actions else _eager(server, wanted)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        try:
            return await resolved(server, action)
        except (ConversionRefused, SyntaxProblem, ChildFailed) as error:
            raise RequestFailed(message=str(error)) from None


def _wanted(
    actions: Iterator[types.CodeAction], only: Sequence[types.CodeActionKind | str] | None
) -> Iterator[types.CodeAction]:
    kinds = [str(getattr(kind, "value", kind)) for kind in only or ()]
    for action in actions:
        kind = str(getattr(action.kind, "value", action.kind))
        if not kinds or any(kind == o or kind.startswith(f"{o}.") or o == "" for o in kinds):
            yield action


async def _eager(server: Server, actions: list[types.CodeAction]) -> Actions:
    """The actions with their edits, for clients that can't ask for them later."""
    done: Actions = []
    for action in actions:
        if str(action.kind).startswith("source.") and action.disabled is None:
            # A whole file is converted when the user chooses so, and not for every list of actions.
            uri = str(action.data["uri"]) if isinstance(action.data, dict) else ""
            action.command, action.data = _as_command(action, uri), None
            done.append(action)
            continue
        try:
            done.append(await resolved(server, action) if action.disabled is None else action)
        except (ConversionRefused, SyntaxProblem) as error:
            if server.client.disabled_actions:
                action.disabled, action.data = types.CodeActionDisabled(str(error)), None
                done.append(action)
        except ChildFailed:
            continue
    return done


def _as_command(action: types.CodeAction, uri: str) -> types.Command | None:
    """An action as a command, for clients that know no other form."""
    data = action.data or {}
    if action.command is not None:
        return action.command
    if data.get("file"):
        return types.Command(title=action.title, command=CONVERT_FILE_COMMAND, arguments=[uri])
    if data.get("scope"):
        return _part_command(action, data)
    return None


def _part_command(action: types.CodeAction, data: dict[str, Any]) -> types.Command:
    """The command that does what an action of a part of the document does."""
    arguments = [data["uri"], data["scope"], False, data["revision"]]
    return types.Command(title=action.title, command=CONVERT_PART_COMMAND, arguments=arguments)


async def resolved(server: Server, action: types.CodeAction) -> types.CodeAction:
    """The action with its edit. Raises ConversionRefused, also where the text was edited since it was offered."""
    data = action.data
    if not isinstance(data, dict) or action.edit is not None:
        return action
    program = server.store.program(str(data.get("uri")))
    if program is None or program.revision != data.get("revision"):
        raise ConversionRefused("the text was edited since")
    if data.get("file"):
        conversion = await convert_file(server, program.uri)
        if conversion.standing is not None and server.client.create_files:
            action.edit = file_edit(server, conversion)
            for output in conversion.outputs:
                note_written(output)
        else:
            arguments: list[Any] = [program.uri]
            action.command = types.Command(title=action.title, command=CONVERT_FILE_COMMAND, arguments=arguments)
    elif data.get("restore"):
        source = server.store.program(str(data["restore"]["source"]))
        if source is None or not isinstance(program, Document):
            raise ConversionRefused("the PyTorch file is not open")
        action.edit = await restore_edit(server, source, program, int(data["restore"]["line"]))
    else:
        scope = scope_of(data.get("scope"))
        asks = bool(data.get("asks"))
        if asks and not server.client.annotations:
            action.command = _part_command(action, data)
            return action
        part = await convert_part(server, program, scope, rewriting.question(server, program, scope) if asks else None)
        if part.module is None:
            action.edit = part.edit
        elif server.client.create_files:
            action.edit = joined([part.edit, output_edit(server, part.module)])
            note_written(part.module)
        else:
            action.command = _part_command(action, data)
    return action


class Offers:
    """The actions for one range of one document."""

    def __init__(self, server: Server, program: Program, uri: str, params: types.CodeActionParams) -> None:
        self.server = server
        self.program = program
        self.uri = uri
        self.context = params.context.diagnostics
        first = program.line_of(uri, params.range.start.line)
        last = program.line_of(uri, params.range.end.line)
        self.first = first if first is not None else 0
        self.last = last if last is not None else len(program.lines) - 1
        if self.last > self.first and params.range.end.character == 0:
            self.last -= 1
        self.column = server.store.column(program.lines[self.first], params.range.start.character)
        self.selects = params.range.start != params.range.end
        automatic = params.context.trigger_kind == types.CodeActionTriggerKind.Automatic
        self.on_save = automatic and bool(params.context.only)
        """Whether the client runs what it asked for without another word."""

    def all(self) -> Iterator[types.CodeAction]:
        yield from self._divergences()
        draft = ask_offers.at_draft(self.server, self.program, self.first, self.last)
        if draft is not None:
            yield draft
        current = self.server.service.current(self.program)
        if current is None:
            return
        analysis, lines = current
        if not analysis.rewrites and not analysis.findings:
            return
        yield from self._quick_fixes(analysis, lines)
        yield from self._expression(analysis, lines)
        yield from self._definitions(analysis, lines)
        if self.selects:
            yield from self._selection(analysis, lines)
        yield from self._file(analysis)

    def _action(
        self, title: str, kind: str, scope: ConversionScope | None = None, reason: str | None = None, **data: Any
    ) -> types.CodeAction:
        data |= {"uri": self.uri, "revision": self.program.revision}
        data |= {"scope": scope_data(scope)} if scope is not None else {}
        if reason is not None:
            return types.CodeAction(title, kind, disabled=types.CodeActionDisabled(reason))
        action = types.CodeAction(title, kind, data=data)
        if scope is not None and rewriting.is_asked_about(scope) and not self.on_save:
            data["asks"] = True
            if self.server.client.asks_before_rewriting:
                action.command, action.data = _part_command(action, data), None
        return action

    def _rewrite(self, what: str, kind: str, scope: ConversionScope, reason: str | None = None) -> types.CodeAction:
        """An action that changes this document itself, and says so; three dots where it asks before."""
        dots = "…" if rewriting.is_asked_about(scope) and not self.on_save else ""
        return self._action(f"Rewrite {what} in place as JAX{dots}", kind, scope, reason)

    # --- what stands here -----------------------------------------------------------------------------------------

    def _quick_fixes(self, analysis: Analysis, lines: LineMap) -> Iterator[types.CodeAction]:
        settings = self.server.settings_for(self.program.uri)
        for finding in analysis.findings:
            span = lines.span(finding.span)
            if span is None or finding.code in settings.ignore:
                continue
            if span.end_line - 1 < self.first or span.line - 1 > self.last or not finding.differs:
                continue
            yield from self._fixes_of(finding, span, analysis)

    def _fixes_of(self, finding: Finding, span: Span, analysis: Analysis) -> Iterator[types.CodeAction]:
        about = [
            d
            for d in self.context
            if d.source == "t2j" and d.code == editor_code(finding.code) and self._same_line(d, span)
        ]
        rewrite = next((r for r in analysis.rewrites if r.span == finding.span), None)
        if finding.severity is Severity.NOTE and rewrite is not None and rewrite.jax is not None:
            fix = self._rewrite(finding.name, QUICK_FIX, ConversionScope("expression", span))
            fix.diagnostics = about or None
            fix.is_preferred = True
            yield fix
        elif finding.severity is Severity.GAP:
            yield self._rewrite(finding.name, QUICK_FIX, ConversionScope("expression", span), finding.reason)
            yield from self._ask(finding, span, analysis, about)
        ignore = types.CodeAction(
            f"Ignore {editor_code(finding.code)} on this line", QUICK_FIX, diagnostics=about or None
        )
        if not self.program.lines[span.line - 1].rstrip().endswith("\\"):
            ignore.edit = ignore_edit(self.server, self.program, span.line - 1, finding.code)
            yield ignore

    def _ask(
        self, finding: Finding, span: Span, analysis: Analysis, about: list[types.Diagnostic]
    ) -> Iterator[types.CodeAction]:
        action = ask_offers.at_gap(self.server, self.program, analysis, finding, span)
        if action is not None:
            action.diagnostics = about or None
            yield action

    def _same_line(self, diagnostic: types.Diagnostic, span: Span) -> bool:
        return self.program.line_of(self.uri, diagnostic.range.start.line) == span.line - 1

    def _expression(self, analysis: Analysis, lines: LineMap) -> Iterator[types.CodeAction]:
        old = lines.to_old(self.first)
        rewrite = analysis.at(old + 1, self.column) if old is not None else None
        span = lines.span(rewrite.span) if rewrite is not None else None
        if rewrite is None or span is None:
            return
        reason = None
        if rewrite.jax is None:
            finding = next((f for f in analysis.findings if f.span == rewrite.span), None)
            reason = finding.reason if finding is not None else f"{rewrite.name} stays as it is"
        elif not stands_alone(rewrite.jax):
            reason = "it draws from the rngs that its class or function gets when that is converted: convert that"
        yield self._rewrite(rewrite.name, REWRITE, ConversionScope("expression", span), reason)

    def _definitions(self, analysis: Analysis, lines: LineMap) -> Iterator[types.CodeAction]:
        innermost: dict[str, tuple[AnalysedDefinition, int, int]] = {}
        for definition in analysis.definitions:
            first, last = lines.to_new(definition.line - 1), lines.to_new(definition.end_line - 1)
            if first is not None and last is not None and first <= self.first and self.last <= last:
                innermost[definition.kind] = (definition, first, last)
        for definition, first, last in innermost.values():
            what = "this loop" if definition.kind == "loop" else f"{definition.kind} {definition.name}"
            reason = definition.refused
            if reason is None and not definition.edits:
                if not definition.gaps:
                    continue
                reason = definition.gaps[0]
            yield self._rewrite(what, REWRITE, ConversionScope("lines", None, first + 1, last + 1), reason)

    def _selection(self, analysis: Analysis, lines: LineMap) -> Iterator[types.CodeAction]:
        spans = [lines.span(r.span) for r in analysis.rewrites]
        if any(s is not None and self.first < s.line <= self.last + 1 for s in spans):
            scope = ConversionScope("lines", None, self.first + 1, self.last + 1)
            yield self._rewrite("selection", REWRITE, scope)

    # --- the file -------------------------------------------------------------------------------------------------

    def _file(self, analysis: Analysis) -> Iterator[types.CodeAction]:
        target = target_of(self.server, self.program.uri)
        if target is None:
            title, reason = "Rewrite this buffer in place as JAX…", None
            if self.program.is_notebook:
                title, reason = "Convert this notebook to JAX", UNSAVED_NOTEBOOK
        else:
            standing = standing_at(self.server, target)
            title, reason = f"Convert file to JAX (new file {target.name})", standing.problem
            if standing.exists and reason is None:
                how = "Merge new conversion into" if standing.edited else "Convert file to JAX again: replace"
                title = f"{how} {target.name}"
        yield self._action(title, CONVERT, reason=analysis.problem or reason, file=True)
        if target is not None:
            both = f"{title}, and check it"
            may_run = self.server.trusted or self.server.client.asks_before_checks
            why = analysis.problem or reason or (None if may_run else UNTRUSTED)
            action = self._action(both, CONVERT_AND_CHECK, reason=why)
            if why is None:
                arguments = [self.program.uri]
                action.data, action.command = None, types.Command(both, "t2j.convertAndCheck", arguments=arguments)
            yield action
        yield self._rewrite("all that is exact", FIX_ALL, ConversionScope("exact"))

    # --- what a check found ---------------------------------------------------------------------------------------

    def _divergences(self) -> Iterator[types.CodeAction]:
        for difference in self.server.checks.differences_in(self.uri):
            line = self.program.line_of(self.uri, line_in(difference, self.program.lines))
            if line is None or not self.first <= line <= self.last:
                continue
            about = [d for d in self.context if d.source == "t2j" and d.code == editor_code(DIFFERS)]
            about = [d for d in about if d.message == difference.message]
            mending = mend(self.server, difference)
            offered = [mending] if mending is not None else []
            if difference.line is not None and not self.program.is_notebook and difference.source_uri != self.uri:
                restore = {"source": difference.source_uri, "line": difference.line + 1}
                offered.append(self._action("Write this as the rules convert it", QUICK_FIX, restore=restore))
                offered[0].is_preferred = True
            if self.server.client.panels:
                offered.append(explain(difference))
            repair = ask_offers.at_difference(self.server, difference)
            offered += [repair] if repair is not None else []
            for action in offered:
                action.diagnostics = about or None
                yield action
