"""What of a text can be analysed: the definitions that parse where another one does not; never a line out of measure.

What is left out becomes blank, so that every other line stays where it is. Statements are told apart by their
indentation: the definition behind one whose bracket was never closed is whole again.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache

from t2j_lsp.contract import Finding, Options, Severity, SourceError, Span, Translation
from t2j_lsp.lsp.positions import split_lines
from t2j_lsp.translate import Neighbours, draft, translate

SYNTAX, TOO_LARGE = "syntax", "too-large"
LONG_LINE = 10_000
"""Characters from which on a line is looked at more closely."""
MAX_NODES = 10_000
"""Nodes of the syntax tree on one line that are still analysed while somebody edits: about 1,500 calls."""
MAX_JOINED = 8
"""Statements at a line's start that may belong to an open bracket before them."""
BOM = "\ufeff"

_CONTINUES = re.compile(r"(?:[)\]}#\s]|(?:else|elif|except|finally)\b)")
_DEFINES = re.compile(r"(?:async\s+def|def|class|import|from)\s|@")


@dataclass(frozen=True)
class LeftOut:
    """Lines (from 1, inclusive) that are not analysed, the place that is to blame, and why."""

    first: int
    last: int
    line: int
    column: int
    code: str
    reason: str

    @property
    def finding(self) -> Finding:
        """What is said of it."""
        lines = f"lines {self.first} to {self.last} are" if self.last > self.first else "this line is"
        reason = f"{lines} not analysed: {self.reason}"
        span = Span(self.line, self.column, self.line, self.column + 1)
        return Finding(span, "", self.code, Severity.NOTE, reason)


@dataclass(frozen=True)
class Intact:
    """The part of a text that can be analysed, with all of its lines, and what was left out."""

    text: str
    tree: ast.Module
    left: tuple[LeftOut, ...] = ()

    @property
    def problem(self) -> str | None:
        """Why the text can't be converted as a whole."""
        broken = next((one for one in self.left if one.code == SYNTAX), None)
        return f"line {broken.line}: {broken.reason}" if broken is not None else None


def tree_of(text: str) -> ast.Module:
    """The tree of a text. Raises SyntaxError whatever is wrong with it."""
    try:
        return ast.parse(text.removeprefix(BOM))
    except (RecursionError, MemoryError):
        raise SyntaxError("it is nested too deeply to be parsed") from None
    except ValueError as error:
        raise SyntaxError(str(error)) from None


def intact(text: str, broken: bool) -> Intact:
    """What can be analysed of a text. Raises SyntaxError where it does not parse, unless it may be ``broken``."""
    lines = split_lines(text.removeprefix(BOM))
    left = list(_too_large(lines)) if max(map(len, lines)) > LONG_LINE else []
    text = _blank(text, left) if left else text
    try:
        tree = tree_of(text)
    except SyntaxError:
        if not broken:
            raise
        text, unparsed = _that_parses(text)
        left += unparsed
        tree = tree_of(text)
    return Intact(text, tree, tuple(sorted(left, key=lambda one: one.first)))


def translated(
    made: Intact, options: Options, project: Neighbours, lines: Container[int] | None = None
) -> tuple[Intact, Translation]:
    """The translation of what can be translated, or a draft of some lines. Raises SourceError where nothing can be."""
    while True:
        try:
            if lines is None:
                return made, translate(made.text, options, project)
            return made, draft(made.text, options, lines, project)
        except SourceError as error:
            unit = next((s for s in made.tree.body if _first(s) <= (error.line or 0) <= (s.end_lineno or 0)), None)
            if unit is None or error.line is None:
                raise
            reason = str(error).removeprefix(f"line {error.line}: ")
            left = LeftOut(_first(unit), unit.end_lineno or unit.lineno, error.line, 0, TOO_LARGE, reason)
            text = _blank(made.text, [left])
            made = Intact(text, tree_of(text), tuple(sorted([*made.left, left], key=lambda one: one.first)))


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _blank(text: str, left: list[LeftOut]) -> str:
    gone = {line for one in left for line in range(one.first - 1, one.last)}
    bom = BOM if text.startswith(BOM) else ""
    lines = split_lines(text.removeprefix(BOM))
    return bom + "".join(line[len(line.rstrip("\r\n")) :] if i in gone else line for i, line in enumerate(lines))


def _too_large(lines: list[str]) -> Iterator[LeftOut]:
    """The statements with a line that would hold up everything else, looked at alone and once."""
    starts = _starts(lines, 0, len(lines), "")
    for first, last in zip(starts, [*starts[1:], len(lines)], strict=True):
        if any(len(lines[n]) > LONG_LINE for n in range(first, last)):
            dense = _dense("".join(lines[first:last]))
            if dense is not None:
                line, many = first + dense[0], dense[1]
                reason = f"line {line} has {many}; `t2j convert` converts it"
                yield LeftOut(first + 1, _end(lines, first, last), line, 0, TOO_LARGE, reason)


@lru_cache(maxsize=32)
def _dense(code: str) -> tuple[int, str] | None:
    """The line (from 1) of a statement with more on it than is analysed while somebody edits, and how much."""
    lines = code.split("\n")
    try:
        tree = tree_of(code)
    except SyntaxError:
        return None
    nodes, calls = Counter[int](), Counter[int]()
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        nodes[line] += bool(line)
        calls[line] += isinstance(node, ast.Call)
    worst, count = max(nodes.items(), key=lambda item: item[1])
    if count <= MAX_NODES or len(lines[worst - 1]) <= LONG_LINE:
        return None
    return worst, f"{calls[worst]:,} calls" if calls[worst] else f"{count:,} values"


def _end(lines: list[str], first: int, last: int) -> int:
    """The last line, counted from 1, of the lines from ``first`` to ``last`` that is not blank."""
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    return last


# --- with a syntax error ----------------------------------------------------------------------------------------------


def _that_parses(text: str) -> tuple[str, list[LeftOut]]:
    """The text without the statements that do not parse."""
    lines = split_lines(text.removeprefix(BOM))
    left: list[LeftOut] = []
    starts = _starts(lines, 0, len(lines), "")
    blocks = list(zip(starts, [*starts[1:], len(lines)], strict=True))
    index = 0
    while index < len(blocks):
        first, last = blocks[index]
        error = _error("".join(lines[first:last]))
        if error is None:
            index += 1
            continue
        joined = _joined(lines, blocks, index, error)
        if joined:
            index += joined
            continue
        left += _members(lines, first, last) or [_left(lines, first, last, error, 0)]
        index += 1
    return _blank(text, left), left


def _starts(lines: list[str], first: int, last: int, indent: str) -> list[int]:
    """The lines (from 0) on which the statements of a block start."""
    starts: list[int] = []
    decorated = False
    for number in range(first, last):
        line = lines[number]
        rest = line[len(indent) :]
        if not line.startswith(indent) or not rest.strip() or _CONTINUES.match(rest):
            continue
        if not decorated and not (number and lines[number - 1].rstrip("\r\n").endswith("\\")):
            starts.append(number)
        decorated = rest.startswith("@")
    return starts


def _error(code: str) -> SyntaxError | None:
    try:
        tree_of(code)
    except SyntaxError as error:
        return error
    return None


def _joined(lines: list[str], blocks: list[tuple[int, int]], index: int, error: SyntaxError) -> int:
    """How many blocks are one statement after all: what stands in an open bracket or string may start its line."""
    message = error.msg or ""
    quoted = "triple-quoted" in message
    if not quoted and "never closed" not in message and "EOF" not in message:
        return 0
    first = blocks[index][0]
    quote = '"""' if "".join(lines[slice(*blocks[index])]).count('"""') % 2 else "'''"
    limit = len(blocks) if quoted else min(len(blocks), index + 1 + MAX_JOINED)
    for other in range(index + 1, limit):
        begin, end = blocks[other]
        if quoted:
            if "".join(lines[begin:end]).count(quote) % 2:
                return other + 1 - index if _error("".join(lines[first:end])) is None else 0
        elif _DEFINES.match(lines[begin]):
            return 0
        elif _error("".join(lines[first:end])) is None:
            return other + 1 - index
    return 0


def _members(lines: list[str], first: int, last: int) -> list[LeftOut]:
    """What is left out of a class so that the rest of it parses; nothing where that is not enough."""
    head = next((n for n in range(first, last) if lines[n].startswith("class ")), None)
    if head is None:
        return []
    body = next((n for n in range(head + 1, last) if lines[n].strip() and lines[n][0] in " \t"), None)
    if body is None:
        return []
    indent = lines[body][: len(lines[body]) - len(lines[body].lstrip())]
    starts = _starts(lines, head + 1, last, indent)
    left: list[LeftOut] = []
    for begin, end in zip(starts, [*starts[1:], last], strict=True):
        error = _error("class _:\n" + "".join(lines[begin:end]))
        if error is not None:
            left.append(_left(lines, begin, end, error, 1))
    gone = {n for one in left for n in range(one.first - 1, one.last)}
    rest = "".join("\n" if n in gone else lines[n] for n in range(first, last))
    return left if _error(rest) is None else []


def _left(lines: list[str], first: int, last: int, error: SyntaxError, above: int) -> LeftOut:
    last = _end(lines, first, last)
    line = min(first + max((error.lineno or 1) - above, 1), last)
    column = min(max((error.offset or 1) - 1, 0), max(len(lines[line - 1].rstrip()) - 1, 0))
    # The parser saw a part of the file, and counted from there.
    reason = re.sub(r"\bline (\d+)", lambda m: f"line {first - above + int(m[1])}", error.msg or "invalid syntax")
    return LeftOut(first + 1, last, line, column, SYNTAX, reason)
