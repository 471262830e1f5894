"""Diagnostics: what stays as it is, what differs, and where a check found the two programs to part.

Static findings are pulled where the client pulls, else pushed with the rest; what a check found is always pushed.
Nothing is set both ways. Pushed diagnostics carry the version that they are about.

One problem is one entry. Where a file and its conversion are both open, the conversion has it, because that is the
file to mend: the line of the PyTorch file has a hint, which VS Code neither lists nor underlines.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from t2j_lsp.contract import HINT_CODES, Finding, Severity, Span, editor_code
from t2j_lsp.files.outline import todo_marks
from t2j_lsp.lsp.analysis.model import Analysis, LineMap
from t2j_lsp.lsp.checking.service import CheckService

from .documents import Program
from .links import finding_page
from .positions import content
from .project_file import ProjectFiles
from .session import Session

SOURCE = "t2j"
LONG = 5
"""Findings over more lines are shown on their first line."""

Report = types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport


class Diagnostics:
    """What was said of each document, so that nothing is sent twice."""

    def __init__(self, session: Session, checks: CheckService, project_files: ProjectFiles) -> None:
        self.session = session
        self._checks = checks
        self._project_files = project_files
        self._pushed: dict[str, tuple[int | None, list[types.Diagnostic]]] = {}
        self._pulled: dict[str, tuple[Finding, ...]] = {}

    # --- what there is to say -------------------------------------------------------------------------------------

    def static(self, program: Program) -> dict[str, list[types.Diagnostic]]:
        """The findings of a program's last analysis at their present places, by document."""
        by_uri: dict[str, list[types.Diagnostic]] = {uri: [] for uri, _, _ in program.parts()}
        settings = self.session.settings_for(program.uri)
        current = self.session.service.current(program)
        if current is None or not settings.diagnostics:
            return by_uri
        mends_elsewhere = self._open_conversion(program.uri) is not None
        for finding, span in self._findings(program, *current):
            if finding.code not in settings.ignore:
                uri, _ = program.place(span.line - 1)
                by_uri.setdefault(uri, []).append(self._diagnostic(program, finding, span, mends_elsewhere))
        return by_uri

    def _findings(self, program: Program, analysis: Analysis, lines: LineMap) -> Iterator[tuple[Finding, Span]]:
        """What is found in a program, at its present places; in a conversion also what is marked there."""
        pairs = self.session.pairs
        marked: dict[str, Span] = {}
        if pairs.source_of(program.uri) not in (None, program.uri):
            for line, reason in todo_marks(program.text):
                marked[reason] = span = _code_below(program.lines, line)
                yield Finding(span, "TODO(t2j)", "todo", Severity.GAP, reason), span
        for finding in analysis.findings:
            span_now = lines.span(finding.span)
            if span_now is not None and not (finding.severity is Severity.GAP and finding.reason in marked):
                yield finding, span_now

    def _open_conversion(self, uri: str) -> str | None:
        """The conversion of a document, where it is open too."""
        pair = self.session.pairs.converted_of(uri)
        return pair[0] if pair is not None and self.session.store.program(pair[0]) is not None else None

    def _diagnostic(self, program: Program, finding: Finding, span: Span, mends_elsewhere: bool) -> types.Diagnostic:
        position = self.session.store.position
        first, last, end = span.line - 1, span.end_line - 1, span.end_column
        if last - first > LONG or program.place(first)[0] != program.place(last)[0]:
            last, end = first, len(program.lines[first])
        severity = types.DiagnosticSeverity.Warning
        if finding.code in HINT_CODES or (finding.severity is Severity.GAP and mends_elsewhere):
            severity = types.DiagnosticSeverity.Hint
        elif finding.severity is Severity.NOTE:
            severity = types.DiagnosticSeverity.Information
        page = finding_page(self.session, finding.code) if self.session.client.code_description else None
        return types.Diagnostic(
            types.Range(position(program, first, span.column), position(program, last, end)),
            finding.message,
            severity,
            editor_code(finding.code),
            types.CodeDescription(page) if page else None,
            SOURCE,
        )

    # --- pushing --------------------------------------------------------------------------------------------------

    def publish(self, program: Program) -> None:
        """Push what is to be pushed of a program, where it changed since the last time."""
        everything = {uri: [] for uri, _, _ in program.parts()} if self.pulls else self.static(program)
        for uri, diagnostics in everything.items():
            checked = self._checks.diagnostics(uri)
            self.push(uri, [*diagnostics, *checked, *self._project_files.diagnostics.get(uri, [])])

    def checked(self, uri: str) -> None:
        """The differences in a document, which may be one on disk, are others than before."""
        program = self.session.store.program(uri)
        if program is not None:
            self.publish(program)
        else:
            self.push(uri, self._checks.diagnostics(uri))

    def look_at_project_files(self) -> None:
        """Push what is wrong now with the settings in project files."""
        for uri in self._project_files.refresh():
            self.push(uri, self._project_files.diagnostics.get(uri, []))

    @property
    def pulls(self) -> bool:
        return self.session.client.pull_diagnostics

    def push(self, uri: str, diagnostics: list[types.Diagnostic]) -> None:
        """Set what is pushed for a document."""
        document = self.session.store.document(uri)
        version = document.version if document is not None else None
        before = self._pushed.get(uri, (None, []))
        if before[1] == diagnostics and (not diagnostics or before[0] == version):
            return
        self._pushed[uri] = (version, diagnostics)
        self.session.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))

    def clear(self, uri: str) -> None:
        """A document was closed."""
        self._pulled.pop(uri, None)
        if self._pushed.pop(uri, (None, []))[1]:
            self.session.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def opened_or_closed(self, uri: str) -> None:
        """A document is there or gone: where it is a conversion, its source's diagnostics change."""
        source = self.session.pairs.source_of(uri)
        program = self.session.store.program(source) if source not in (None, uri) and source is not None else None
        if program is None:
            return
        if not self.pulls:
            self.publish(program)
        else:
            self._refresh(program.uri)

    def _refresh(self, uri: str) -> None:
        """Ask the client to pull again what it was told of a program."""
        if self._pulled.pop(uri, None) is not None and self.session.client.diagnostic_refresh:
            self.session.spawn(self.session.protocol.ask(types.WORKSPACE_DIAGNOSTIC_REFRESH))

    def analysed(self, program: Program) -> None:
        """There is a new analysis: push, or ask the client to pull again if it was told something else."""
        if not self.pulls:
            self.publish(program)
            return
        known = self.session.service.known.get(program.uri)
        pulled = self._pulled.get(program.uri)
        if known is not None and pulled is not None and pulled != known.analysis.findings:
            self._refresh(program.uri)

    # --- pulling --------------------------------------------------------------------------------------------------

    async def pull(self, program: Program, params: types.DocumentDiagnosticParams) -> Report:
        await self.session.service.settled(program)
        diagnostics = self.static(program).get(params.text_document.uri, [])
        known = self.session.service.known.get(program.uri)
        if known is not None and known.revision == program.revision:
            self._pulled[program.uri] = known.analysis.findings
        return types.RelatedFullDocumentDiagnosticReport(diagnostics)


def _code_below(lines: list[str], line: int) -> Span:
    """The first line of code under a comment (from 1), or the comment."""
    below = line
    while below < len(lines) and lines[below].lstrip().startswith("#"):
        below += 1
    shown = below if below < len(lines) and lines[below].strip() else line - 1
    text = content(lines[shown])
    return Span(shown + 1, len(text) - len(text.lstrip()), shown + 1, len(text.rstrip()))
