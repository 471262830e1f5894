"""Code lenses: convert (by a preview, never in place), check, what stays PyTorch, and the last verdict.

They stand above decorators, and say in their titles what a click does. A lens whose command is empty only tells
something: why nothing converts, or how much stays. What has an up-to-date conversion is not offered again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from t2j_lsp.contract import Finding, Severity, VerdictKind
from t2j_lsp.lsp.analysis.model import AnalysedDefinition, Analysis, LineMap
from t2j_lsp.lsp.checking.verdicts import overall
from t2j_lsp.lsp.checking.wording import (
    NO_INPUTS,
    clipped,
    coverage_details,
    coverage_line,
    left_as_pytorch,
    program_line,
    program_tooltip,
    verdict_line,
    verdict_tooltip,
)
from t2j_lsp.lsp.documents import Program
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.standing_conversion import StandingConversion, StandingState, conversion_of, defines

from .ask_offers import ASK_COMMAND, DIFFERENT, REPAIR, asking, is_offered

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

PREVIEW_COMMAND = "t2j.previewConversion"
"""The client's own command, in clients that have one: ``[uri, name?]`` shows the conversion beside the file."""
TELL_COMMAND = "t2j.tellInputs"
RUN_COMMAND = "t2j.run"
NO_COMMAND = ""
TRAINING_STAYS = "This training code isn't converted: "


def register(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions())
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens] | Awaitable[list[types.CodeLens]]:
        uri = params.text_document.uri
        program = server.store.program(uri)
        if program is None or not server.settings_for(uri).code_lens:
            return []
        return _lenses(server, program, uri)


async def _lenses(server: Server, program: Program, uri: str) -> list[types.CodeLens]:
    conversion = await conversion_of(server, program)
    current = server.service.current(program)
    if current is None or not program.lines:
        return []
    return list(Lenses(server, program, uri, *current, conversion).all())


class Lenses:
    """The lenses of one document."""

    def __init__(
        self,
        server: Server,
        program: Program,
        uri: str,
        analysis: Analysis,
        lines: LineMap,
        conversion: StandingConversion,
    ) -> None:
        self.server = server
        self.program = program
        self.uri = uri
        self.analysis = analysis
        self.lines = lines
        self.conversion = conversion
        self.source = server.pairs.source_of(program.uri)

    def all(self) -> Iterator[types.CodeLens]:
        if self.analysis.rewrites or self.analysis.findings or self.conversion.state is StandingState.IS_CONVERSION:
            yield from self._file()
        for definition in self.analysis.definitions:
            line, last = self.lines.to_new(definition.line - 1), self.lines.to_new(definition.end_line - 1)
            if definition.depth or line is None or last is None or self.program.place(line)[0] != self.uri:
                continue
            start = types.Position(self.program.place(line)[1], 0)
            yield from self._definition(definition, types.Range(start, start))

    # --- the file -------------------------------------------------------------------------------------------------

    def _file(self) -> Iterator[types.CodeLens]:
        top = types.Range(types.Position(0, 0), types.Position(0, 0))
        if self.program.place(0)[0] != self.uri:
            return
        yield from self._run(top)
        covered = self._coverage(top)
        if self.conversion.state is not StandingState.IS_CONVERSION:
            yield from self._whole(top)
        if covered is not None:
            yield covered
            return
        gaps = [f for f in self.analysis.findings if f.severity is Severity.GAP]
        if gaps and self.conversion.state is not StandingState.IS_CONVERSION:
            yield _label(top, left_as_pytorch(len(gaps)), _listed(self._placed(f) for f in gaps))

    def _coverage(self, where: types.Range) -> types.CodeLens | None:
        """The verdict on the file with what it covers, once it was checked as a whole."""
        state = self.server.checks.states.get(self.source or "")
        if state is None or state.coverage is None or not state.verdicts:
            return None
        title = coverage_line(overall(state), state.coverage, state.stale)
        tooltip = "\n".join([*coverage_details(state.coverage), "Click to check the whole file again"])
        return _lens(where, title, "t2j.check", [self.source], tooltip)

    def _whole(self, top: types.Range) -> Iterator[types.CodeLens]:
        """What is offered for the file as a whole."""
        refused = self._why_not()
        if refused is not None:
            yield _label(top, f"Not converted: {clipped(refused)}", refused)
        elif self.conversion.state is not StandingState.UP_TO_DATE:
            yield self._convert(top, self._file_title())

    def _placed(self, finding: Finding) -> str:
        """A finding with its file and line."""
        span = self.lines.span(finding.span)
        uri, line = self.program.place(span.line - 1) if span is not None else (self.uri, -1)
        path = to_path(uri)
        place = f"{path.name}:{line + 1}: " if path is not None and line >= 0 else ""
        return f"{place}{finding.message}"

    def _why_not(self) -> str | None:
        """Why the file can't be converted, if so."""
        if self.analysis.problem or self.conversion.problem:
            return self.analysis.problem or self.conversion.problem
        definitions = self.analysis.definitions
        if self.analysis.converted or any(d.edits and not d.refused for d in definitions):
            return None
        gap = next((f for f in self.analysis.findings if f.severity is Severity.GAP), None)
        return gap.message if gap is not None else None

    def _file_title(self) -> str:
        name = self.conversion.name
        if name is None:
            return "Convert this buffer to JAX…" if self.server.client.previews else "Rewrite in place as JAX…"
        previewed = self.server.client.previews and not self.program.is_notebook
        if self.conversion.state is StandingState.OUTDATED:
            return f"Update {name}…" if previewed else f"Update {name} from this file"
        what = "notebook" if self.program.is_notebook else "file"
        return f"Convert {what} to JAX…" if previewed else f"Convert {what} to JAX (new file {name})"

    # --- what is defined in it ------------------------------------------------------------------------------------

    def _definition(self, definition: AnalysedDefinition, where: types.Range) -> Iterator[types.CodeLens]:
        if not self._is_converted(definition) and not self._why_not():
            yield from self._conversion(definition, where)
        if definition.gaps and (definition.edits or self._is_converted(definition)):
            yield _label(where, left_as_pytorch(len(definition.gaps)), _listed(definition.gaps))
        if definition.name in self.analysis.run_by:
            yield from self._run(where)
        if definition.kind != "loop" and self.source is not None:
            yield from self._verdict(definition, self.source, where)

    def _is_converted(self, definition: AnalysedDefinition) -> bool:
        """Whether the conversion that is there has it, so that it is not offered once more."""
        state = self.conversion.state
        if state is StandingState.OUTDATED and definition.kind != "loop":
            return defines(self.conversion.text, definition.name)
        return state not in (StandingState.NONE, StandingState.NO_FILE)

    def _conversion(self, definition: AnalysedDefinition, where: types.Range) -> Iterator[types.CodeLens]:
        reasons = [definition.refused] if definition.refused else list(definition.gaps)
        if definition.refused or (not definition.edits and definition.gaps):
            reason = reasons[0].removeprefix(TRAINING_STAYS)
            yield _label(where, f"Stays PyTorch: {clipped(reason)}", _listed(reasons))
        elif definition.edits and not self.server.client.previews:
            yield self._convert(where, self._file_title())
        elif definition.edits:
            title = self._file_title() if self.program.is_notebook else "Convert to JAX…"
            yield self._convert(where, title, None if definition.kind == "loop" else definition.name)

    def _convert(self, where: types.Range, title: str, name: str | None = None) -> types.CodeLens:
        if not self.server.client.previews:
            return _lens(where, title, "t2j.convertFile", [self.program.uri], f"{title}: your file stays as it is")
        tooltip = "Shows the conversion beside this file; nothing is written before you apply it"
        return _lens(where, title, PREVIEW_COMMAND, [self.program.uri, *([name] if name else [])], tooltip)

    def _verdict(self, definition: AnalysedDefinition, source: str, where: types.Range) -> Iterator[types.CodeLens]:
        arguments = [source, definition.name]
        verdict = verdict_of(self.server, source, definition.name)
        if verdict is None:
            if definition.edits and (self.server.trusted or self.server.client.asks_before_checks):
                yield _lens(where, "Check", "t2j.check", arguments, "Runs both versions and compares them")
            return
        state = self.server.checks.states[source]
        device = verdict.get("device", state.device)
        title = verdict_line(verdict, device, state.stale, self._name_of_conversion(source))
        tooltip = verdict_tooltip(verdict, device)
        if (verdict["reason"] or "").startswith(NO_INPUTS) and source == self.uri:
            yield _lens(where, title, TELL_COMMAND, arguments, f"{tooltip}\nClick to write the comment that tells them")
        else:
            yield _lens(where, title, "t2j.check", arguments, f"{tooltip}\nClick to check again")
        if verdict["verdict"] == VerdictKind.DIFFERENT and self.server.client.panels and not state.stale:
            yield _lens(where, "Explain", "t2j.showDifference", arguments, "Compares the values of both sides")
        if verdict["verdict"] == VerdictKind.DIFFERENT and not state.stale and is_offered(self.server, source):
            asked = "Asks the model that is set, and checks what it answers"
            yield _lens(where, REPAIR, ASK_COMMAND, asking(self.server, source, definition.name, DIFFERENT), asked)

    def _run(self, where: types.Range) -> Iterator[types.CodeLens]:
        """Running the file as a program beside its conversion, or what came out of that."""
        if not self.analysis.is_program or self.source != self.program.uri:
            return
        if not (self.server.trusted or self.server.client.asks_before_checks):
            return
        state, arguments = self.server.checks.programs.states.get(self.source), [self.source]
        if state is None:
            steps = self.server.settings_for(self.uri).run_steps
            tooltip = (
                f"Runs this program and its conversion, {steps} training steps at most, and compares all they put out"
            )
            yield _lens(where, "Run both", RUN_COMMAND, arguments, tooltip)
            return
        title = program_line(state.report, state.stale, self._name_of_conversion(self.source))
        tooltip = program_tooltip(state.report)
        yield _lens(where, title, RUN_COMMAND, arguments, f"{tooltip}\nClick to run both again".lstrip())

    def _name_of_conversion(self, source: str) -> str | None:
        pair = self.server.pairs.converted_of(source)
        return pair[1].name if pair is not None else None


def _lens(where: types.Range, title: str, command: str, arguments: list[Any], tooltip: str) -> types.CodeLens:
    return types.CodeLens(
        where, types.Command(title=title, command=command, arguments=arguments or None, tooltip=tooltip)
    )


def _label(where: types.Range, title: str, tooltip: str) -> types.CodeLens:
    """A lens that says something and does nothing."""
    return _lens(where, title, NO_COMMAND, [], tooltip)


def _listed(reasons: Any) -> str:
    return "\n".join(dict.fromkeys(reasons))


def verdict_of(server: Server, source: str, name: str) -> dict[str, Any] | None:
    """The last verdict on a class or function of a file."""
    state = server.checks.states.get(source)
    return next((v for v in state.verdicts if v["name"] == name), None) if state is not None else None
