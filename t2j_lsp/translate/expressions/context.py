"""What the passes of one translation share: source, facts, edits, findings, needs, and where rngs come from."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from t2j_lsp.contract import Finding, Options, Severity, Span
from t2j_lsp.symbols import FunctionNode, scopes_around
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.layout.marks import Layout
from t2j_lsp.translate.rule.facts import UNKNOWN, ClassInfo, Fact, FunctionInfo
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.source.helpers import IMPORT_ROOTS, helper_names
from t2j_lsp.translate.source.text import Edit, Source

from .handlers import ExpressionHandler, StatementHandler


@dataclass
class Statement:
    """The statement that is being rewritten: what its expressions put in front of it."""

    node: ast.stmt
    before: list[str] = field(default_factory=list)
    """Lines to put in front (hoisted arguments), without indentation."""
    hoistable: bool = True
    """Whether an expression here is evaluated exactly once, right after what is put in front."""


@dataclass
class Context:
    """State of one translation."""

    source: Source
    inference: Inference
    options: Options
    edits: list[Edit] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    refused_calls: set[Span] = field(default_factory=set)
    todos: dict[int, list[str]] = field(default_factory=dict)
    """Reasons to write above the statement that starts at a text index."""
    converted: int = 0
    factory_dicts: set[ast.Assign] = field(default_factory=set)
    """Assignments of dicts that hold nothing but a device and a dtype."""
    removable: dict[ast.stmt, str] = field(default_factory=dict)
    """Assignments that go when nothing in the output reads their name any more."""
    statement: Statement | None = None
    functions: list[FunctionInfo] = field(default_factory=list)
    """The functions around the current statement, innermost last."""
    class_info: ClassInfo | None = None
    dedented: dict[int, int] = field(default_factory=dict)
    """Columns taken off the indentation of a line."""
    module_rngs: ast.stmt | None = None
    """The first module-level statement that needs rngs."""
    drawing: set[ast.AST] = field(default_factory=set)
    """Functions that turned out to need rngs while the file was rendered."""
    seeds: dict[ast.stmt, str] = field(default_factory=dict)
    asks_for_rngs: list[FunctionInfo] = field(default_factory=list)
    """Tests and fixtures that take the fixture ``rngs``."""
    fresh_names: set[str] = field(default_factory=set)
    _reported: set[Finding] = field(default_factory=set)
    quiet: int = 0
    """While positive, nothing is reported: the text being rendered may be thrown away."""
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    layout: Layout = field(default_factory=Layout)
    shared_writes: dict[ast.stmt, str] = field(default_factory=dict)
    """Statements that write into storage which another name shares."""
    statement_handlers: dict[ast.stmt, StatementHandler] = field(default_factory=dict)
    """What is done with statements that are part of training code, instead of rewriting them one by one."""
    expression_handlers: dict[ast.expr, ExpressionHandler] = field(default_factory=dict)
    """What expressions of training code become; None for their usual rewriting."""
    kept: set[ast.AST] = field(default_factory=set)
    """Classes, functions, statements and expressions that stay PyTorch on purpose, such as data pipelines."""
    optimizers: dict[ast.expr, OptimizerPlan] = field(default_factory=dict)
    """What is known of the optimizer that a constructor call makes."""
    placed_comments: set[str] = field(default_factory=set)
    """Comments that went along with moved code, or that were about code that is gone."""

    train_steps: dict[ast.stmt, str] = field(default_factory=dict)
    """The statements that moved into a compiled function, and its name."""
    undifferentiated: set[ast.AST] = field(default_factory=set)
    """Statements around a compiled train step: they run in Python, where no gradient is taken of anything."""

    def fact(self, node: ast.AST) -> Fact:
        return self.inference.facts.get(node, UNKNOWN)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every identifier of the source, so that fresh names don't clash."""
        return self.source.symbols.names | set(dir(builtins)) | set(keyword.kwlist)

    def bound_in(self, node: ast.Name, scope: FunctionNode | ast.ClassDef) -> bool:
        """Whether what a name means is bound in ``scope``, which stands around it, or further inside."""
        around = scopes_around(node, self.parents)
        home = self.source.symbols.home(node.id, around)
        return home is not None and scope in around and around.index(home) <= around.index(scope)

    @cached_property
    def freezes(self) -> bool:
        """Whether the file sets ``requires_grad`` of anything."""
        return any(
            isinstance(n, ast.Attribute)
            and (n.attr == "requires_grad_" or n.attr == "requires_grad" and isinstance(n.ctx, ast.Store))
            for n in self.source.nodes
        )

    def fresh(self, hint: str) -> str:
        """A name like ``hint`` that nothing in reach uses: not the function, not the module, no import or helper."""
        name, count = hint, 1
        taken = self.reserved | self.fresh_names
        if self.functions:
            taken |= self.source.symbols.within(self.functions[0].node)
            taken |= set(self.inference.env)
        else:
            taken |= self.names
        while name in taken:
            count += 1
            name = f"{hint}{count}"
        self.fresh_names.add(name)
        return name

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Names that the output may use for itself."""
        return frozenset({*helper_names(), *IMPORT_ROOTS, *dir(builtins), *keyword.kwlist})

    @property
    def function(self) -> FunctionInfo | None:
        return self.functions[-1] if self.functions else None

    def edit(self, start: int, end: int, new: str, priority: int = 0) -> None:
        self.edits.append(Edit(start, end, priority, new))

    def replace(self, node: ast.AST, new: str) -> None:
        start, end = self.source.span(node)
        if self.source.text[start:end] != new:
            self.edit(start, end, new)

    def gap(self, node: ast.AST, name: str, code: str, reason: str) -> None:
        """Report code that stays as it was, and mark it above its statement."""
        if self.quiet:
            return
        finding = Finding(self.source.contract_span(node), name, code, Severity.GAP, reason)
        if not self._report(finding):
            return
        if code == "refused" and isinstance(node, ast.Call):
            self.refused_calls.add(finding.span)
        if self.statement is not None:
            start, _ = self.source.span(self.statement.node)
            decorators = getattr(self.statement.node, "decorator_list", None)
            if decorators:
                start = self.source.text.rindex("@", 0, self.source.span(decorators[0])[0])
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

    def indent(self, line: int) -> str:
        """The indentation that a source line has in the output."""
        text = self.source.indent(line)
        removed = self.dedented.get(line, 0)
        return text[removed:] if removed >= 0 else text

    def starts_line(self, node: ast.stmt) -> bool:
        """Whether nothing but white space stands before the statement on its line."""
        start, _ = self.source.span(node)
        return not self.source.text[self.source.starts[node.lineno - 1] : start].strip()

    def insert_before(self, node: ast.stmt, lines: Iterable[str], priority: int = 0) -> None:
        """Put lines, indented as the statement is, in front of it. Only for statements that start their line."""
        decorators = getattr(node, "decorator_list", None)
        line = min([node.lineno, *(d.lineno for d in decorators or ())])
        indent = self.indent(line)
        text = "".join(f"{indent if one else ''}{one}{self.source.newline}" for one in lines)
        at = self.source.starts[line - 1]
        self.edit(at, at, text, priority)
        if node in self.deleted and at in self._blanks_removed:
            self.edits.remove(self._blanks_removed.pop(at))  # something stands there again

    def insert_after(self, node: ast.stmt, lines: Iterable[str]) -> None:
        """Put lines, indented as the statement is, behind it."""
        assert node.end_lineno is not None
        indent = self.indent(node.lineno)
        end = self.source.span(node)[1]
        stop = len(self.source.text)
        if node.end_lineno < len(self.source.starts):
            stop = self.source.starts[node.end_lineno]
        line_end = end + len(self.source.text[end:stop].rstrip("\r\n"))
        text = "".join(f"{self.source.newline}{indent if one else ''}{one}" for one in lines)
        self.edit(line_end, line_end, text, 5)

    def delete(self, node: ast.stmt) -> None:
        """Remove a statement, its line with it if it has the line for itself; ``pass`` if its block would be empty."""
        start, end = self.source.span(node)
        decorators = getattr(node, "decorator_list", None)
        first_line = node.lineno
        if decorators:
            first_line = decorators[0].lineno
            start = self.source.text.rindex("@", 0, self.source.span(decorators[0])[0] + 1)
        block = self.block_of(node)
        if block is not None and all(s is node or s in self.deleted for s in block):
            self.edit(start, end, "pass")
            return
        self.deleted.add(node)
        assert node.end_lineno is not None
        after = (
            self.source.starts[node.end_lineno] if node.end_lineno < len(self.source.starts) else len(self.source.text)
        )
        tail = self.source.text[end:after]
        if self.starts_line(node) and not tail.strip():
            self.edit(self.source.starts[first_line - 1], after, "")
            past = self._past_blank(first_line, node, after)
            if past > after:
                self.edit(after, past, "")
                self._blanks_removed[self.source.starts[first_line - 1]] = self.edits[-1]
        elif self.starts_line(node) and tail.lstrip().startswith("#"):
            self.edit(start, end + len(tail) - len(tail.lstrip()), "")
        elif tail.lstrip().startswith(";"):
            self.edit(
                start,
                end
                + tail.index(";")
                + 1
                + len(tail[tail.index(";") + 1 :])
                - len(tail[tail.index(";") + 1 :].lstrip(" ")),
                "",
            )
        else:
            self.edit(start, end, "pass")

    def _past_blank(self, first_line: int, node: ast.stmt, after: int) -> int:
        """The end of as many blank lines behind a removed statement as stand in front of it: all at a file's head."""
        before = first_line - 1
        while before and not self.source.line_text(before).strip():
            before -= 1
        many = first_line - 1 - before if before else len(self.source.starts)
        line = (node.end_lineno or node.lineno) + 1
        while many and line < len(self.source.starts) and not self.source.line_text(line).strip():
            after = self.source.starts[line]
            line += 1
            many -= 1
        return after

    @cached_property
    def deleted(self) -> set[ast.stmt]:
        return set()

    @cached_property
    def _blanks_removed(self) -> dict[int, Edit]:
        """For the start of a removed statement, the edit that removes the blank lines behind it."""
        return {}

    def block_of(self, node: ast.stmt) -> list[ast.stmt] | None:
        """The list of statements that holds ``node``."""
        parent = self.parents.get(node)
        for field_name in ("body", "orelse", "finalbody"):
            block = getattr(parent, field_name, None)
            if isinstance(block, list) and node in block:
                return block
        return None

    def link_parents(self) -> None:
        for node in self.source.nodes:
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
