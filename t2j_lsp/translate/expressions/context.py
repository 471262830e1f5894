"""What the passes of one translation are handed: the source, its facts, the plan, where they are, who writes what."""

from __future__ import annotations

import ast
import builtins
import contextlib
import keyword
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from t2j_lsp.contract import Finding, Options, Severity, Span, TextEdit
from t2j_lsp.symbols import with_ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.written_parameters import SharedWrites
from t2j_lsp.translate.layout.marks import Layout
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Fact
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.source.helpers import IMPORT_ROOTS, helper_names
from t2j_lsp.translate.source.positions import first_line
from t2j_lsp.translate.source.syntax import past_blank
from t2j_lsp.translate.source.text import Edit, Source, in_order

from .handlers import ExpressionHandler, StatementHandler
from .scope import Scope


@dataclass
class Plan:
    """What the planners of layout and training decided. Nothing is added once writing has begun."""

    layout: Layout = field(default_factory=Layout)
    short_layers: frozenset[str] = frozenset()
    """The kinds of layers that a function of the output makes, with PyTorch's initial values."""
    writes: SharedWrites = field(default_factory=SharedWrites)
    """Writes into storage which another name or the caller shares."""
    factory_dicts: dict[ast.Assign, bool] = field(default_factory=dict)
    """Assignments of dicts that hold nothing but a device and a dtype."""
    statement_handlers: dict[ast.stmt, StatementHandler] = field(default_factory=dict)
    """What is done with statements that are part of training code, instead of rewriting them one by one."""
    expression_handlers: dict[ast.expr, ExpressionHandler] = field(default_factory=dict)
    """What expressions of training code become; None for their usual rewriting."""
    kept: set[ast.AST] = field(default_factory=set)
    """Classes, functions, statements and expressions that stay PyTorch on purpose, such as data pipelines."""
    seeds_torch: set[ast.stmt] = field(default_factory=set)
    """Statements that seed PyTorch's generator, which kept code draws from."""
    optimizers: dict[ast.expr, OptimizerPlan] = field(default_factory=dict)
    """What is known of the optimizer that a constructor call makes."""
    tree_averages: dict[ast.For, str] = field(default_factory=dict)
    """Loops over the parameters of two modules that are trees, where something is trained, and the helper."""
    train_steps: dict[ast.stmt, str] = field(default_factory=dict)
    """The statements that moved into a compiled function, and its name."""
    traced: set[ast.AST] = field(default_factory=set)
    """Calls that take values out of arrays where gradients are traced, in steps that aren't compiled."""
    rebound: dict[ast.AST, set[str]] = field(default_factory=dict)
    """Variables of the module level that a function gives new values, where PyTorch's writes into them."""
    parameters: dict[ast.AST, tuple[list[str], list[str]]] = field(default_factory=dict)
    """What functions get in front of and behind their own, having read it from outside; methods that do go static."""
    switches: dict[ast.AST, str] = field(default_factory=dict)
    """Statements about ``requires_grad`` that no step minds, and why they go."""
    kept_tensors: set[ast.AST] = field(default_factory=set)
    """Where JAX code reads tensors that stay PyTorch's, as arrays."""
    undifferentiated: set[ast.AST] = field(default_factory=set)
    """Statements around a compiled train step: they run in Python, where no gradient is taken of anything."""
    left: dict[ast.stmt, str] = field(default_factory=dict)
    """Statements whose train step could not be written, and why: it grows while the file is written."""
    untouched: set[ast.AST] = field(default_factory=set)
    """Functions that stay PyTorch as a whole, because their training code does."""
    done_by_base: set[ast.AST] = field(default_factory=set)
    """What stands in the statements of a module's forward that its base does."""
    frozen: bool = False

    def keeps(self, node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
        """Whether a node stays PyTorch on purpose, by itself or with something around it."""
        return any(at in self.kept for at in with_ancestors(node, parents))

    def on_statement(self, node: ast.stmt, handler: StatementHandler) -> None:
        """Have a statement written by ``handler``, in place of an earlier one."""
        assert not self.frozen, "plans are made before anything is written"
        self.statement_handlers[node] = handler

    def on_expression(self, node: ast.expr, handler: ExpressionHandler) -> None:
        """Have an expression rendered by ``handler``, in place of an earlier one."""
        assert not self.frozen, "plans are made before anything is written"
        self.expression_handlers[node] = handler

    def freeze(self) -> None:
        """Writing begins."""
        self.frozen = True


_BEHIND = 5
"""The priority of lines that stand behind a statement."""


class Edits:
    """Every change that the output makes to the source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.made: list[Edit] = []
        self.deleted: set[ast.stmt] = set()
        self.emptied: set[ast.stmt] = set()
        """The last statements of blocks that nothing is left of but ``pass``."""
        self.dedented: dict[int, int] = {}
        """Columns taken off the indentation of a line."""
        self.removable: dict[ast.stmt, str] = {}
        """Assignments that go when nothing in the output reads their name any more."""
        self.removable_lines: dict[Edit, str] = {}
        """Inserted assignments that go then."""
        self.partials: dict[ast.Call, int] = {}
        """Partials of PyTorch's functions that became ones of JAX's, and how many arguments these are still to get."""
        self.placed_comments: set[str] = set()
        """Comments that went along with moved code, or that were about code that is gone."""
        self._blanks_removed: dict[int, Edit] = {}  # blank lines behind statements, by the starts of these

    def add(self, start: int, end: int, new: str, priority: int = 0) -> None:
        self.made.append(Edit(start, end, priority, new))

    def take_back(self, first: int) -> None:
        """Undo the edits from the one with index ``first`` on."""
        del self.made[first:]

    def drop(self, start: int, end: int, inserted: bool = True) -> None:
        """Undo what was done between two places; what only was ``inserted`` there can be kept."""
        self.made = [e for e in self.made if not (start <= e.start and e.end <= end and (inserted or e.end > e.start))]

    def replace(self, node: ast.AST, new: str) -> None:
        start, end = self.source.span(node)
        if self.source.text[start:end] != new:
            self.add(start, end, new)

    def indent(self, line: int) -> str:
        """The indentation that a source line has in the output."""
        text = self.source.indent(line)
        removed = self.dedented.get(line, 0)
        return text[removed:] if removed >= 0 else text

    def insert_before(self, node: ast.stmt, lines: Iterable[str], priority: int = 0) -> None:
        """Put lines, indented as the statement is, in front of it. Only for statements that start their line."""
        decorators = getattr(node, "decorator_list", None)
        line = min([node.lineno, *(d.lineno for d in decorators or ())])
        indent = self.indent(line)
        text = "".join(f"{indent if one else ''}{one}{self.source.newline}" for one in lines)
        at = self.source.starts[line - 1]
        self.add(at, at, text, priority)
        if node in self.deleted:
            self.keep_blanks(at)

    def in_front_of(self, node: ast.stmt) -> tuple[int, int]:
        """Where a definition goes in front of a top-level statement and its comments, and the empty lines above."""
        line = first_line(node)
        while line > 1 and self.source.line_text(line - 1).startswith("#"):
            line -= 1
        above = 0
        while line - 1 - above >= 1 and not self.source.line_text(line - 1 - above).strip():
            above += 1
        return self.source.starts[line - 1], above

    def insert_after(self, node: ast.stmt, lines: Iterable[str]) -> Edit:
        """Put lines, indented as the statement is, behind it, or in its place if it was removed."""
        indent, at = self.indent(node.lineno), self.line_end(node)
        text = "".join(f"{self.source.newline}{indent if one else ''}{one}" for one in lines)
        gone = next((e.start for e in self.made if not e.new and e.start < at < e.end), None)
        self.add(at, at, text, _BEHIND) if gone is None else self._in_place_of(gone, text)
        return self.made[-1]

    def _in_place_of(self, start: int, text: str) -> None:
        """What was to stand behind a statement whose lines go, from ``start`` on, stands where that was."""
        self.keep_blanks(start)
        self.add(start, start, text.removeprefix(self.source.newline) + self.source.newline, _BEHIND)

    def line_end(self, node: ast.stmt) -> int:
        """The end of the line on which a statement ends, in front of the line break."""
        assert node.end_lineno is not None
        end, stop = self.source.span(node)[1], len(self.source.text)
        if node.end_lineno < len(self.source.starts):
            stop = self.source.starts[node.end_lineno]
        return end + len(self.source.text[end:stop].rstrip("\r\n"))

    def delete(self, node: ast.stmt, above: int = 0) -> None:
        """Remove a statement, its line with it if it has the line for itself; ``pass`` if its block would be empty.

        ``above`` is the number of lines right above it that go too.
        """
        place = self.source.statement(node)
        block = self.source.block_of(node)
        if block is not None and all(s is node or s in self.deleted for s in block):
            self.emptied.add(node)
            self.add(place.start, place.end, "pass")
            return
        self.deleted.add(node)
        if place.separator is not None:
            self.add(place.start, place.separator, "")
        elif not place.alone:
            self.add(place.start, place.end, "pass")
        elif place.behind is not None:
            self.add(place.start, place.behind[0], "")
        else:
            self._delete_lines(node, self.source.line_of(place.start) - above)

    def _delete_lines(self, node: ast.stmt, first_line: int) -> None:
        """Remove the lines of a statement, and blank ones behind it."""
        assert node.end_lineno is not None
        start, last = self.source.starts[first_line - 1], node.end_lineno
        after = self.source.line_end(last)
        self.add(start, after, "")
        past = past_blank(self.source.starts, self.source.line_text, first_line, last, after)
        if past > after:
            self.add(after, past, "")
            self._blanks_removed[start] = self.made[-1]
        for behind in [e for e in self.made if e.priority == _BEHIND and start < e.start < after and e.end == e.start]:
            self.made.remove(behind)
            self._in_place_of(start, behind.new)

    def keep_blanks(self, at: int) -> None:
        """Keep the blank lines behind a statement that was removed from ``at``: something stands there again."""
        if at in self._blanks_removed:
            self.made.remove(self._blanks_removed.pop(at))

    def effective(self, own: Collection[Edit]) -> tuple[TextEdit, ...]:
        """The edits that count, as `Source.apply` takes them: of two that overlap, the one that starts first.

        ``own`` are those of statements; the others are about imports and helpers.
        """
        edits: list[TextEdit] = []
        position = 0
        for edit in in_order(self.made):
            if edit.start >= position:
                edits.append(TextEdit(edit.start, edit.end, edit.new, edit not in own))
                position = edit.end
        return tuple(edits)


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

    def count_converted(self, places: int = 1) -> None:
        """Count places that were converted."""
        if not self.quiet:
            self.converted += places

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Nothing is reported or counted inside the block."""
        self.quiet += 1
        try:
            yield
        finally:
            self.quiet -= 1

    def gap(self, node: ast.AST, name: str, code: str, reason: str) -> None:
        """Report code that stays as it was, and mark it above its statement."""
        if self.quiet:
            return
        reason = " ".join(reason.split())
        finding = Finding(self.source.contract_span(node), name, code, Severity.GAP, reason)
        if not self._report(finding):
            return
        if code == "refused" and isinstance(node, ast.Call):
            self.refused_calls.add(finding.span)
        if (statement := self.scope.statement) is not None:
            start = self.source.statement_start(statement.node)
            reasons = self.todos.setdefault(start, [])
            if reason not in reasons:
                reasons.append(reason)

    def note(self, node: ast.AST, name: str, code: str, reason: str) -> None:
        """Report something worth knowing about code that was converted."""
        if self.quiet:
            return
        self._report(Finding(self.source.contract_span(node), name, code, Severity.NOTE, " ".join(reason.split())))

    def _report(self, finding: Finding) -> bool:
        """Add a finding; whether it is new."""
        if finding in self._reported:
            return False
        self._reported.add(finding)
        self.findings.append(finding)
        return True

    def once(self) -> tuple[Finding, ...]:
        """One place, one finding: those of the source in its order, without those that repeat another one.

        A note on what then stayed as it was is none any more. A refused call among the arguments of a refused call
        (``torch.save(model.state_dict(), path)``) goes with it: whoever mends the outer one writes both anew.
        """
        ordered = sorted(
            self.findings, key=lambda f: (f.span.line, f.span.column, -f.span.end_line, -f.span.end_column)
        )
        gaps = {f.span for f in ordered if f.severity is Severity.GAP}
        kept = []
        last = Span(0, 0, 0, 0)
        for finding in ordered:
            span = finding.span
            if finding.severity is Severity.NOTE and span in gaps:
                continue
            if span in self.refused_calls and finding.severity is Severity.GAP:
                if span != last and (span.end_line, span.end_column) <= (last.end_line, last.end_column):
                    continue
                last = span
            kept.append(finding)
        return tuple(sorted(kept, key=lambda f: f.span))


class Names:
    """Names that the output may introduce."""

    def __init__(self, source: Source, module_names: Collection[str], scope: Scope) -> None:
        self.source = source
        self.module_names = module_names
        """What the module level binds."""
        self.scope = scope
        self.made: set[str] = set()
        self.local: dict[ast.AST, set[str]] = {}
        """What was made for one function alone."""

    @cached_property
    def of_source(self) -> frozenset[str]:
        """Every identifier of the source, so that fresh names don't clash."""
        return self.source.symbols.names | set(dir(builtins)) | set(keyword.kwlist)

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Names that the output may use for itself."""
        return frozenset({*helper_names(), *IMPORT_ROOTS, *dir(builtins), *keyword.kwlist})

    def fresh(self, hint: str) -> str:
        """A name like ``hint`` that nothing in reach uses: not the function, not the module, no import or helper."""
        name, count = hint, 1
        taken = self.reserved | self.made
        if self.scope.functions:
            taken |= self.source.symbols.within(self.scope.functions[0].node)
            taken |= set(self.module_names)
        else:
            taken |= self.of_source
        while name in taken:
            count += 1
            name = f"{hint}{count}"
        self.made.add(name)
        return name


@dataclass
class Rngs:
    """Where the output needs ``nnx.Rngs``, and where it has one."""

    drawing: set[ast.AST]
    """Functions that turned out to need rngs while the file was rendered."""
    module: ast.stmt | None = None
    """The first module-level statement that needs rngs."""
    seeds: dict[ast.stmt, str] = field(default_factory=dict)
    asking: list[FunctionInfo] = field(default_factory=list)
    """Tests and fixtures that take the fixture ``rngs``."""


@dataclass(frozen=True)
class Context:
    """One translation: a bundle of what each of its parts owns."""

    source: Source
    inference: Inference
    options: Options
    plan: Plan
    scope: Scope
    edits: Edits
    report: Report
    names: Names
    rngs: Rngs

    @classmethod
    def of(cls, inference: Inference, options: Options, plan: Plan, drawing: set[ast.AST]) -> Context:
        """The context of a translation that is about to begin."""
        source, scope = inference.source, Scope()
        names = Names(source, inference.env, scope)
        return cls(source, inference, options, plan, scope, Edits(source), Report(source, scope), names, Rngs(drawing))

    def fact(self, node: ast.AST) -> Fact:
        return self.inference.fact(node)

    def is_statement(self, node: ast.Call) -> bool:
        """Whether a call is a statement, of which only the effect matters."""
        inner = getattr(self.scope.statement, "node", None)
        return isinstance(inner, ast.Expr) and inner.value is node
