"""The text being converted: positions, segments, comments, its head, and edits that leave the rest as it was."""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from t2j_lsp import symbols
from t2j_lsp.contract import MARK, SourceError, SourceMapEntry, Span
from t2j_lsp.symbols import FunctionNode, ScopeNode, Symbols, scopes_around
from t2j_lsp.translate.rule.names import MODULE_BY_NAME, computes_with_torch, is_torch

from . import syntax
from .brackets import Bracket
from .concrete import Concrete, Statement, Unreadable, blanked
from .fstrings import place_expressions
from .given import NOTHING_GIVEN, Given
from .positions import byte_columns, first_line
from .width import line_limit

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_IMPORTS_TORCH = re.compile(r"\b(?:import|from)\s+torch\b")


@dataclass(frozen=True, order=True)
class Edit:
    """Replace ``text[start:end]`` by ``new``. Edits with an empty range insert, in order of ``priority``."""

    start: int
    end: int
    priority: int
    new: str


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """Edits as they are made: at one place what is inserted first, then what replaces most; what overlaps it is void.

    So a line that goes is gone, whatever else was done at its start.
    """
    return sorted(set(edits), key=lambda e: (e.start, -e.end if e.end > e.start else -sys.maxsize, e.priority, e.new))


class Source:
    """A parsed text. Raises SourceError, with line and column, if it isn't Python that this interpreter parses.

    ``placed=False`` leaves expressions in f-strings where ``ast`` says, for texts that are only read for their meaning.
    Of a draft, only statements of the module level that begin on some ``lines`` are written.
    """

    given: Given = NOTHING_GIVEN

    def __init__(self, text: str, placed: bool = True, lines: Container[int] | None = None) -> None:
        self.bom = "\ufeff" if text.startswith("\ufeff") else ""
        self.text = text[len(self.bom) :]
        self._ascii: dict[int, bool] = {}
        self._columns: dict[int, list[int]] = {}
        self.starts = [0] + [m.end() for m in _LINE_BREAK.finditer(self.text)]
        self.tree = syntax.syntax_tree(self.text)
        self.nodes, self.parents = syntax.nodes_and_parents(self.tree)
        """Every node of the tree, as ``ast.walk`` finds them, and the node around each."""
        self.kinds = frozenset(map(type, self.nodes))
        """The kinds of nodes that the tree has."""
        self.written = [s for s in self.tree.body if lines is None or s.lineno in lines]
        """The statements of the module level that are converted."""
        if placed and sys.version_info < (3, 12) and ast.JoinedStr in self.kinds:
            try:
                place_expressions(self)
            except Unreadable as error:
                raise self._refused(error) from None
        self._spans: dict[ast.AST, tuple[int, int]] = {}

    @cached_property
    def concrete(self) -> Concrete:
        """The concrete tree without definitions that aren't written. Raises SourceError if libcst doesn't parse it."""
        return self._concrete(blanked(self.text, self._unwritten()))

    def _concrete(self, text: str) -> Concrete:
        try:
            return Concrete(text)
        except Unreadable as error:
            raise self._refused(error) from None

    def _refused(self, error: Unreadable) -> SourceError:
        line = self.line_of(error.at)
        return SourceError(f"line {line}: t2j reads files with libcst, and {error}", line)

    def statement(self, node: ast.stmt) -> Statement:
        """Where a statement stands, and its comments."""
        if (plain := syntax.plain_statement(self, node)) is not None:
            return plain
        return self.parsed_statement(node)

    def statement_start(self, node: ast.stmt) -> int:
        """The first character of a statement, which is the ``@`` of its first decorator."""
        return self.statement(node).start if getattr(node, "decorator_list", None) else self.span(node)[0]

    def parsed_statement(self, node: ast.stmt) -> Statement:
        """The same with its concrete node."""
        start = self.span(node)[0]
        if start not in self.concrete.statements:
            self.concrete = self._concrete(self.text)
        return self.concrete.statements[start]

    def _unwritten(self) -> Iterator[tuple[int, int]]:
        """Where the definitions stand that aren't written."""
        for node in self.tree.body if len(self.written) < len(self.tree.body) else ():
            if isinstance(node, FunctionNode | ast.ClassDef) and node not in self.written:
                yield self.starts[first_line(node) - 1], self.span(node)[1]

    @cached_property
    def written_nodes(self) -> list[ast.AST]:
        """The nodes of what is converted."""
        return self.nodes if self.written == self.tree.body else [n for s in self.written for n in symbols.walk(s)]

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name that the code writes down, in strings that may be annotations too, and the marks of writes."""
        return frozenset(syntax.words(self.nodes))

    @cached_property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """Where attributes of each name are read, assigned and deleted."""
        out: dict[str, list[ast.Attribute]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Attribute):
                out.setdefault(node.attr, []).append(node)
        return out

    @cached_property
    def names(self) -> dict[str, list[ast.Name]]:
        """Where variables of each name are read, assigned and deleted."""
        return syntax.names_by_text(self.nodes)

    @cached_property
    def bound_at(self) -> dict[str, list[ast.AST]]:
        """The places that bind each name: assignments, parameters and imports."""
        return syntax.places_of_names(self.nodes)

    @cached_property
    def assigned_calls(self) -> dict[str, list[ast.Call]]:
        """The calls whose values variables are given, by the variables as they are written."""
        return syntax.calls_by_target(self.nodes)

    @cached_property
    def moved_modules(self) -> frozenset[ast.Call]:
        """The calls that name what is asked for its parameters: ``net = Net(3).to(device)``, ``net.parameters()``."""
        asked = {
            ast.unparse(node.func.value)
            for node in self.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MODULE_BY_NAME
        }
        return frozenset(call for text in asked for call in self.assigned_calls.get(text, ()))

    @cached_property
    def computes_with_torch(self) -> bool:
        """Whether the code calls what only torch's objects have, and imports torch nowhere."""
        return _IMPORTS_TORCH.search(self.text) is None and computes_with_torch(self.nodes)

    @cached_property
    def holds_tests(self) -> bool:
        """Whether the text imports a framework for unit tests, or has functions that pytest collects."""
        return syntax.holds_tests(self.tree, self.nodes)

    @cached_property
    def symbols(self) -> Symbols:
        """Which scope binds which name. Raises SourceError if the text uses names as Python does not allow."""
        try:
            return Symbols(self.text, self.tree)
        except SyntaxError as error:
            where = f"line {error.lineno}: " if error.lineno else ""
            raise SourceError(f"{where}{error.msg}", error.lineno, (error.offset or 1) - 1) from None

    @cached_property
    def newline(self) -> str:
        """The line break that the text uses first."""
        match = _LINE_BREAK.search(self.text)
        return match.group() if match else "\n"

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text without their breaks."""
        return self.text.splitlines()

    @cached_property
    def line_limit(self) -> int:
        """How long a line of the output may be."""
        return line_limit(self.lines)

    def line_end(self, line: int) -> int:
        """Where what stands behind a line, counted from 1, begins: the next line, or the end of the text."""
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def line_text(self, line: int) -> str:
        """Line ``line`` (1-based) without its line break."""
        start = self.starts[line - 1]
        end = self.line_end(line)
        return self.text[start:end].rstrip("\r\n")

    def offset(self, line: int, byte_column: int) -> int:
        """Index into the text of an ``ast`` position, whose columns count UTF-8 bytes."""
        start = self.starts[line - 1]
        ascii_line = self._ascii.get(line)
        if ascii_line is None:
            ascii_line = self._ascii[line] = self.line_text(line).isascii()
        if ascii_line:
            return start + byte_column
        columns = self._columns.get(line)
        if columns is None:
            columns = self._columns[line] = byte_columns(self.line_text(line))
        return start + bisect_right(columns, byte_column) - 1

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Start and end index of a node."""
        span = self._spans.get(node)
        if span is None:
            span = (
                self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
                self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
            )
            self._spans[node] = span
        return span

    def segment(self, node: ast.AST) -> str:
        return self.text[slice(*self.span(node))]

    def line_of(self, index: int) -> int:
        """1-based line of a text index."""
        return bisect_right(self.starts, index)

    def indent(self, line: int) -> str:
        """The white space that a line starts with."""
        text = self.line_text(line)
        return text[: len(text) - len(text.lstrip())]

    def starts_line(self, node: ast.stmt) -> bool:
        """Whether nothing but white space stands before the statement on its line."""
        start, _ = self.span(node)
        return not self.text[self.starts[node.lineno - 1] : start].strip()

    def block_of(self, node: ast.stmt) -> list[ast.stmt] | None:
        """The list of statements that holds ``node``."""
        parent = self.parents.get(node)
        for field_name in ("body", "orelse", "finalbody"):
            block = getattr(parent, field_name, None)
            if isinstance(block, list) and node in block:
                return block
        return None

    def home(self, name: ast.Name) -> ScopeNode | None:
        """The scope whose variable a name is; None for the module level."""
        return self.symbols.home(name.id, scopes_around(name, self.parents))

    def bound_in(self, node: ast.Name, scope: FunctionNode | ast.ClassDef) -> bool:
        """Whether what a name means is bound in ``scope``, which stands around it, or further inside."""
        around = scopes_around(node, self.parents)
        home = self.symbols.home(node.id, around)
        return home is not None and scope in around and around.index(home) <= around.index(scope)

    def contract_span(self, node: ast.AST) -> Span:
        start, end = self.span(node)
        first, last = self.line_of(start), self.line_of(end)
        return Span(first, start - self.starts[first - 1], last, end - self.starts[last - 1])

    # --- the head of the file -------------------------------------------------------------------------------------

    @cached_property
    def head_end(self) -> int:
        """Line of the end of the docstring and the ``__future__`` imports, 0 if there are none."""
        end = 0
        for index, node in enumerate(self.tree.body):
            docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                end = node.end_lineno or end
            else:
                break
        return end

    @cached_property
    def preamble(self) -> tuple[ast.stmt, ...]:
        """The statements before the first that defines something or uses PyTorch: imports, and what is among them."""
        statements: list[ast.stmt] = []
        torch: set[str] = set()
        for node in self.tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                from_torch = isinstance(node, ast.ImportFrom) and is_torch(node.module or "")
                for alias in node.names:
                    if from_torch or isinstance(node, ast.Import) and is_torch(alias.name):
                        torch.add(symbols.bound_as(alias))
            elif (
                isinstance(node, FunctionNode | ast.ClassDef)
                or "*" in torch
                or any(isinstance(n, ast.Name) and n.id in torch for n in symbols.walk(node))
            ):
                break
            statements.append(node)
        return tuple(statements)

    @cached_property
    def import_block_end(self) -> int:
        """Last line of the imports that stand at the top: helpers go behind it."""
        end = 0
        for index, node in enumerate(self.preamble):
            guarded = isinstance(node, ast.If | ast.Try) and all(
                isinstance(s, ast.Import | ast.ImportFrom | ast.Assign | ast.Pass) for s in [*node.body, *node.orelse]
            )
            if isinstance(node, ast.Import | ast.ImportFrom) or (guarded and index > 0):
                end = node.end_lineno or end
        return end

    def is_marked(self, statement: ast.stmt) -> bool:
        """Whether an earlier conversion said above a statement what stays."""
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        return first > 1 and self.line_text(first - 1).lstrip().startswith(MARK)

    # --- comments, brackets and edits -----------------------------------------------------------------------------

    @cached_property
    def comments(self) -> tuple[tuple[int, str], ...]:
        """Every comment as (index, text), in order."""
        comments = syntax.comments_of(self.text, self.starts)
        return self.concrete.comments if comments is None else comments

    def brackets_around(self, start: int, end: int) -> Bracket | None:
        """The brackets that hold nothing but ``text[start:end]``, white space and comments aside."""
        if not syntax.may_be_in_brackets(self.text, start, end):
            return None
        return self.concrete.brackets.around(start, end)

    def enclosed(self, start: int, end: int) -> bool:
        """Whether ``text[start:end]`` stands alone in brackets that group it, so that it may break its line."""
        bracket = self.brackets_around(start, end)
        return bracket is not None and bracket.group

    def comments_between(self, start: int, end: int) -> Iterator[str]:
        if self.text.find("#", start, end) < 0:
            return
        first = bisect_left(self.comments, start, key=itemgetter(0))
        for index, text in self.comments[first:]:
            if index >= end:
                return
            yield text

    def apply(self, edits: Iterable[Edit]) -> tuple[str, list[SourceMapEntry]]:
        """The text after ``edits``, and where every statement of the tree went."""
        ordered = in_order(edits)
        out: list[str] = []
        marks: list[tuple[int, int]] = [(0, 0)]
        position = length = 0
        for edit in ordered:
            if edit.start < position:
                continue
            out.append(self.text[position : edit.start])
            length += edit.start - position
            marks.append((edit.start, length))
            out.append(edit.new)
            length += len(edit.new)
            marks.append((edit.end, length))
            position = edit.end
        out.append(self.text[position:])
        text = "".join(out)
        return self.bom + text, self._map(text, marks)

    def _map(self, text: str, marks: list[tuple[int, int]]) -> list[SourceMapEntry]:
        starts = [0] + [m.end() for m in _LINE_BREAK.finditer(text)]
        keys = [m[0] for m in marks]

        def moved(index: int, end: bool) -> int:
            at = bisect_right(keys, index) - 1
            if end and keys[at] == index:
                # The end of a statement lies after what replaced its text, but before what was inserted behind it.
                first = bisect_left(keys, index)
                at = min(first + 1, at) if first < at else at
            source, target = marks[at]
            return min(target + index - source, len(text))

        entries = []
        for node in self.nodes:
            if isinstance(node, ast.stmt):
                start, stop = self.span(node)
                first = bisect_right(starts, moved(start, False))
                last = max(first, bisect_right(starts, max(moved(stop, True) - 1, 0)))
                entries.append(SourceMapEntry(node.lineno, node.end_lineno or node.lineno, first, last))
        return sorted(entries, key=lambda e: (e.source_line, -e.source_end_line))


def apply_edits(text: str, edits: Iterable[Edit], start: int, end: int) -> str:
    """The part ``start:end`` of a text after edits."""
    out: list[str] = []
    position = start
    for edit in in_order(edits):
        if edit.start >= position:
            out += [text[position : edit.start], edit.new]
            position = edit.end
    return "".join(out) + text[position:end]
