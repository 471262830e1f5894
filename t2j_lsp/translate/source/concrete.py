"""The concrete syntax tree of a text, and where everything in it stands: statements, comments, brackets, f-strings.

libcst parses; positions are made by one pass of its own code generator over the tree. Each token is looked up in the
text where it is expected, so that a position is never off: white space that libcst drops is stepped over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import TracebackType
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from .brackets import Bracket, Brackets

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MARKS = frozenset("()[]{},")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_DROPPED = re.compile(r"(?:[ \t\f\ufeff]|\\(?:\r\n|\r|\n))*")
"""White space that may be missing in libcst's tree."""
_PARAMETERS = -1
"""Stands for a bracket around the parameters of a lambda."""

Range = tuple[int, int]


class Unreadable(Exception):
    """A text that libcst does not parse, or parses as another: the index where, and why."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at


@dataclass(frozen=True)
class ReplacementField:
    """One ``{expression}`` of an f-string, with the range of its format specification, where it has one."""

    start: int
    end: int
    spec: Range | None


@dataclass(frozen=True)
class Statement:
    """Where a statement stands, and the comments that belong to it."""

    node: cst.CSTNode | None
    """None where libcst wasn't asked."""
    start: int
    """Its first character, which is the ``@`` of its first decorator."""
    end: int
    header: int
    """The end of its first line of code up to the colon; of a simple statement, its end."""
    alone: bool
    """Whether no other statement begins on its first line in front of it."""
    separator: int | None
    """The end of the semicolon behind it with the blanks after it, where another statement follows on the line."""
    above: tuple[str, ...]
    """The comments directly above it, on lines of their own."""
    behind: Range | None
    """The comment behind it on its last line."""


def blanked(text: str, parts: Iterable[Range]) -> str:
    """The text with blanks for some parts of it; lines and places stay."""
    for start, end in parts:
        text = text[:start] + re.sub(r"[^\r\n]", " ", text[start:end]) + text[end:]
    return text


class Concrete:
    """The tree of a text without byte order mark. Raises Unreadable."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.module = cst.parse_module(text)
        except cst.ParserSyntaxError as error:
            # The parser's own place is in its message; the exception's may be a line further.
            place = re.search(r"error at (\d+):(\d+)", error.message)
            line, column = (int(place[1]), int(place[2]) - 1) if place else (error.raw_line, error.raw_column)
            raise Unreadable(_index(text, line, column), "libcst does not parse it") from None
        except UnicodeEncodeError as error:
            raise Unreadable(error.start, "it holds half of a character") from None
        made = _Positions(text, self.module)
        self.module._codegen(made)
        if text[made.at :].strip(" \t\f\r\n\\"):
            raise Unreadable(made.at, "libcst ends before the text does")
        self.spans: dict[cst.CSTNode, Range] = made.spans
        self.comments: tuple[tuple[int, str], ...] = tuple(made.comments)
        self._brackets = made.brackets
        self.fields: tuple[ReplacementField, ...] = tuple(sorted(made.fields, key=lambda one: one.start))

    @cached_property
    def brackets(self) -> Brackets:
        """The brackets of the text."""
        return Brackets(self.text, self._brackets, self.comments)

    @cached_property
    def strings(self) -> tuple[Range, ...]:
        """Every string literal, in order, without those in the expressions of f-strings."""
        kinds = (cst.SimpleString, cst.FormattedString, cst.TemplatedString)
        ranges: list[Range] = []
        for one in sorted(span for node, span in self.spans.items() if isinstance(node, kinds)):
            if not ranges or one[0] >= ranges[-1][1]:
                ranges.append(one)
        return tuple(ranges)

    @cached_property
    def decorators(self) -> dict[int, int]:
        """Where the ``@`` of each decorator stands, by where its expression starts."""
        return {
            self.spans[node.decorator][0]: start
            for node, (start, _) in self.spans.items()
            if isinstance(node, cst.Decorator)
        }

    @cached_property
    def statements(self) -> dict[int, Statement]:
        """Every statement by the index at which ``ast`` places it: its keyword, behind its decorators."""
        statements = dict(self._statements(self.module.body))
        if self.module.body:
            # What stands above the first statement is the header of the module, but for a tail of it.
            at, first = next(iter(statements.items()))
            lines = [*self.module.header, *self.module.body[0].leading_lines]
            statements[at] = replace(first, above=_texts(lines))
        return statements

    def _statements(self, body: Any) -> Iterator[tuple[int, Statement]]:
        for node in body:
            if isinstance(node, cst.SimpleStatementLine):
                yield from self._line(node)
                continue
            start, end = self.spans[node]
            first = min([start, *(self.spans[d][0] for d in getattr(node, "decorators", ()))])
            behind = self._last_comment(node)
            yield start, Statement(node, first, end, self._header(node), True, None, _texts(node.leading_lines), behind)
            yield from self._inside(node)

    def _inside(self, node: cst.CSTNode) -> Iterator[tuple[int, Statement]]:
        """The statements in the blocks of a compound statement."""
        for name in ("body", "handlers", "cases", "orelse", "finalbody"):
            part = getattr(node, name, None)
            if isinstance(part, cst.IndentedBlock):
                yield from self._statements(part.body)
            elif isinstance(part, cst.SimpleStatementSuite):
                yield from self._line(part)
            elif isinstance(part, cst.If):
                yield from self._statements([part])
            elif isinstance(part, cst.Else | cst.Finally):
                yield from self._inside(part)
            elif isinstance(part, list | tuple):
                for one in part:
                    yield from self._inside(one)

    def _line(self, line: cst.SimpleStatementLine | cst.SimpleStatementSuite) -> Iterator[tuple[int, Statement]]:
        """The statements of one line."""
        comment = line.trailing_whitespace.comment
        behind = self.spans[comment] if comment is not None else None
        above = _texts(line.leading_lines) if isinstance(line, cst.SimpleStatementLine) else ()
        starts = [self.spans[one][0] for one in line.body]
        for index, node in enumerate(line.body):
            start, end = self.spans[node]
            last = index + 1 == len(line.body)
            alone = index == 0 and isinstance(line, cst.SimpleStatementLine)
            yield (
                start,
                Statement(
                    node,
                    start,
                    end,
                    end,
                    alone,
                    None if last else starts[index + 1],
                    above if alone else (),
                    behind if last else None,
                ),
            )

    def _header(self, node: cst.CSTNode) -> int:
        """The end of the line that ends with the colon of a compound statement, up to its comment."""
        body = getattr(node, "body", None)
        return self.spans[body][0] if body in self.spans else self.spans[node][1]

    def _last_comment(self, node: cst.CSTNode) -> Range | None:
        """The comment behind the last statement of a compound statement."""
        last: Any = node
        while not isinstance(last, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            following = [getattr(last, name, None) for name in ("finalbody", "orelse", "handlers", "cases", "body")]
            last = next((one for one in following if one), None)
            if isinstance(last, list | tuple):
                last = last[-1]
            if last is None:
                return None
        comment = last.trailing_whitespace.comment
        return self.spans[comment] if comment is not None else None


def _texts(lines: Any) -> tuple[str, ...]:
    """The comments at the end of some lines, up to a blank one."""
    texts: list[str] = []
    for line in reversed(lines):
        if line.comment is None:
            break
        texts.insert(0, line.comment.value)
    return tuple(texts)


def _index(text: str, line: int, column: int) -> int:
    starts = [0, *(m.end() for m in _NEWLINE.finditer(text))]
    return min(starts[min(line, len(starts)) - 1] + max(column, 0), len(text))


# --- positions --------------------------------------------------------------------------------------------------------


@dataclass
class _Open:
    """A bracket that isn't closed yet."""

    start: int
    group: bool = False
    commas: list[int] = field(default_factory=list)
    clauses: list[int] = field(default_factory=list)


class _Positions(CodegenState):
    """Follows libcst's code generator through the text instead of collecting what it writes."""

    def __init__(self, text: str, module: cst.Module) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.text = text
        self.at = 0
        self.spans: dict[cst.CSTNode, Range] = {}
        self.comments: list[tuple[int, str]] = []
        self.brackets: dict[int, Bracket] = {}
        self.fields: list[ReplacementField] = []
        self._open: list[_Open] = [_Open(_PARAMETERS)]
        self._literal = self._group = False
        self._parameters: set[cst.CSTNode] = set()
        self._starts: list[int] = []

    def add_token(self, value: str) -> None:
        if not self.text.startswith(value, self.at):
            if value in ("\n", "\r\n", "\r"):
                self._line_break()
                return
            self.at = self._beyond_dropped(value)
        if value in _MARKS and value and not self._literal:
            self._mark(value)
        self.at += len(value)

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    def pop_trailing_newline(self) -> None:
        """The line break that isn't there was not looked for beyond the text's end."""

    def _line_break(self) -> None:
        """A line break that is another one in the text, or that is missing at its end."""
        dropped = _DROPPED.match(self.text, self.at)
        at = dropped.end() if dropped else self.at
        match = _NEWLINE.match(self.text, at)
        if match is None and at < len(self.text):
            raise Unreadable(at, "libcst reads a line break that isn't there")
        self.at = match.end() if match else at

    def _beyond_dropped(self, value: str) -> int:
        dropped = _DROPPED.match(self.text, self.at)
        at = dropped.end() if dropped else self.at
        if not self.text.startswith(value, at):
            raise Unreadable(self.at, f"libcst reads {value!r} where the text has {self.text[at : at + 20]!r}")
        return at

    def _mark(self, value: str) -> None:
        if value == ",":
            self._open[-1].commas.append(self.at)
        elif value in _CLOSING:
            self._open.append(_Open(self.at, self._group))
            self._group = False
        else:
            one = self._open.pop()
            commas, clauses = tuple(one.commas), tuple(one.clauses)
            self.brackets[one.start] = Bracket(one.start, self.at + 1, commas, clauses, one.group)

    def before_codegen(self, node: cst.CSTNode) -> None:
        kind = type(node)
        if kind in _NOTED:
            self._starts.append(self.at)
            if kind is cst.Lambda:
                self._parameters.add(node.params)  # type: ignore[attr-defined]
            elif kind is cst.LeftParen:
                self._group = True
            elif kind is cst.Parameters:
                if node in self._parameters:
                    self._open.append(_Open(_PARAMETERS))
            elif kind is cst.FormattedStringText or kind is cst.TemplatedStringText:
                self._literal = True
            elif kind is cst.CompFor or kind is cst.CompIf:
                self._open[-1].clauses.append(self._skipped())

    def _skipped(self) -> int:
        """Where the next token stands, behind white space that belongs to it."""
        at = self.at
        while self.text[at : at + 1] in (" ", "\t", "\f", "\n", "\r", "\\", "#") and at < len(self.text):
            at = self.text.find("\n", at) + 1 or len(self.text) if self.text[at] == "#" else at + 1
        return at

    def after_codegen(self, node: cst.CSTNode) -> None:
        kind = type(node)
        if kind in _NOTED:
            start = self._starts.pop()
            if kind is cst.Parameters:
                if node in self._parameters:
                    self._open.pop()
                return
            self.spans.setdefault(node, (start, self.at))
            if kind is cst.Comment:
                self.comments.append((start, node.value))  # type: ignore[attr-defined]
            elif kind is cst.FormattedStringText or kind is cst.TemplatedStringText:
                self._literal = False
            elif isinstance(node, cst.FormattedStringExpression):
                spec = node.format_spec
                inside = (self.spans[spec[0]][0], self.spans[spec[-1]][1]) if spec else None
                begin = start + 1 + len(cst.Module([]).code_for_node(node.whitespace_before_expression))
                brackets = node.expression.rpar
                end = self.spans[brackets[-1] if brackets else node.expression][1]
                self.fields.append(ReplacementField(begin, end, inside))

    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Any:
        return _Syntactic(self, node, start_node, end_node)


_NOTED = frozenset(
    {
        cst.Comment,
        cst.Lambda,
        cst.Parameters,
        cst.FormattedStringText,
        cst.FormattedStringExpression,
        cst.TemplatedStringText,
        cst.CompFor,
        cst.CompIf,
        cst.Decorator,
        cst.ImportStar,
        cst.LeftParen,
        cst.RightParen,
        cst.IndentedBlock,
        cst.SimpleStatementSuite,
    }
)
"""The nodes that are looked at one by one; others only where libcst gives them a position without white space."""


class _Syntactic:
    """The range of a node without the white space and brackets around it."""

    __slots__ = ("end_node", "made", "node", "start", "start_node")

    def __init__(
        self, made: _Positions, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self.made, self.node, self.start_node, self.end_node = made, node, start_node, end_node

    def __enter__(self) -> None:
        made = self.made
        if made.text[made.at : made.at + 1] == "\f":
            made.at += 1  # no node starts with white space: libcst dropped it
        self.start = made.at

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        spans = self.made.spans
        start = self.start if self.start_node is None else spans[self.start_node][0]
        end = self.made.at if self.end_node is None else spans[self.end_node][1]
        spans[self.node] = (start, end)
