"""What is said of a translation: gaps with their marks in the output, notes, and how much was converted."""

from __future__ import annotations

import ast

from t2j_lsp.contract import Finding, Severity, Span
from t2j_lsp.translate.source.text import Source

from .scope import Scope


class Report:
    """The findings of one translation."""

    def __init__(self, source: Source, scope: Scope) -> None:
        self.source = source
        self.scope = scope
        self.findings: list[Finding] = []
        self.refused_calls: set[Span] = set()
        self.todos: dict[int, list[str]] = {}
        """Reasons to write above the statement that starts at a text index."""
        self.converted = 0
        self.quiet = 0
        """While positive, nothing is reported: the text being rendered may be thrown away."""
        self._reported: set[Finding] = set()

    def gap(self, node: ast.AST, name: str, code: str, reason: str) -> None:
        """Report code that stays as it was, and mark it above its statement."""
        if self.quiet:
            return
        finding = Finding(self.source.contract_span(node), name, code, Severity.GAP, reason)
        if not self._report(finding):
            return
        if code == "refused" and isinstance(node, ast.Call):
            self.refused_calls.add(finding.span)
        statement = self.scope.statement
        if statement is not None:
            start = self.source.statement(statement.node).start
            reasons = self.todos.setdefault(start, [])
            if reason not in reasons:
                reasons.append(reason)

    def note(self, node: ast.AST, name: str, code: str, reason: str) -> None:
        """Report something worth knowing about code that was converted."""
        if self.quiet:
            return
        self._report(Finding(self.source.contract_span(node), name, code, Severity.NOTE, reason))

    def _report(self, finding: Finding) -> bool:
        """Add a finding; whether it is new."""
        if finding in self._reported:
            return False
        self._reported.add(finding)
        self.findings.append(finding)
        return True
