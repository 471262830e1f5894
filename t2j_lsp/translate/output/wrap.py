"""Breaks lines that the conversion made too long, as black would: at the last bracket, one argument to a line.

Of several statements on a line each gets its own, and so does the body of a loop or branch that stands behind its head.
Lines that stand in the source as they are stay, however long.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

from t2j_lsp import symbols
from t2j_lsp.contract import SourceMapEntry
from t2j_lsp.translate.source.brackets import Bracket
from t2j_lsp.translate.source.concrete import Concrete, Unreadable
from t2j_lsp.translate.source.width import line_limit

SHARE = 3
"""How many times as long as what is in the last bracket another one's is, that the line is broken there."""
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_SEVERAL = re.compile(r";|^\s*(?:async|for|while|if|elif|else|with|def|class|try|except|finally)\b.*:\s*[^\s#]")
_BRANCH = re.compile(r"(?<=[\s)\]}\"'])(if|else)\b")


def wrap_long_lines(
    code: str, source: str, tree: ast.Module, entries: list[SourceMapEntry], newline: str
) -> tuple[str, list[SourceMapEntry]]:
    """The code with its new long lines broken, and the source map for it."""
    bom = code[: len(code) - len(code.removeprefix("\ufeff"))]
    lines = _LINE_BREAK.split(code.removeprefix(bom))
    known = set(_LINE_BREAK.split(source))
    limit = line_limit(known)
    long = [number for number, line in enumerate(lines, 1) if len(line) > limit and line not in known]
    if not long:
        return code, entries
    broken = dict(_broken_lines(lines, long, tree, limit))
    out: list[str] = []
    moved = [0]
    for number, line in enumerate(lines, 1):
        out.extend(broken.get(number, [line]))
        moved.append(len(out))
    return bom + newline.join(out), [
        replace(e, line=moved[e.line - 1] + 1, end_line=moved[min(e.end_line, len(lines))]) for e in entries
    ]


def _broken_lines(lines: list[str], long: list[int], tree: ast.Module, limit: int) -> Iterator[tuple[int, list[str]]]:
    """The lines, by number, that become several. Only the statements around them are parsed."""
    outline = list(lines)
    for first, last in _units(tree):
        inside = long[bisect_left(long, first) : bisect_right(long, last)]
        if not inside:
            continue
        _shorten(outline, [node for node in tree.body if first <= node.lineno <= last], long)
        try:
            unit = _Unit("\n".join(outline[first - 1 : last]), limit)
        except Unreadable:
            continue
        for number in inside:
            yield number, unit.broken(number - first)


def _shorten(lines: list[str], nodes: list[ast.stmt], long: list[int]) -> None:
    """Put ``pass`` in the place of every statement that has its lines for itself, and no long one among them."""
    for node in (n for one in nodes for n in symbols.walk(one)):
        if not isinstance(node, ast.stmt) or hasattr(node, "body") or node.end_lineno is None:
            continue
        first, last = node.lineno, node.end_lineno
        before = lines[first - 1].encode()[: node.col_offset].decode()
        behind = lines[last - 1].encode()[node.end_col_offset :].decode().lstrip()
        if bisect_left(long, first) == bisect_right(long, last) and not before.strip() and behind[:1] in ("", "#"):
            lines[first - 1 : last] = [f"{before}pass", *[""] * (last - first)]


def _units(tree: ast.Module) -> list[tuple[int, int]]:
    """The first and last lines of the top-level statements; those that share a line are one."""
    units: list[tuple[int, int]] = []
    for node in tree.body:
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first, last = min([node.lineno, *(d.lineno for d in decorators)]), node.end_lineno or node.lineno
        if units and units[-1][1] == first:
            first, _ = units.pop()
        units.append((first, last))
    return units


@dataclass(frozen=True)
class _Part:
    """``text[start:end]`` of a unit on a line of its own, with the indentation it gets and what follows it."""

    indent: str
    start: int
    end: int
    suffix: str = ""

    @property
    def deeper(self) -> str:
        """The indentation of what stands inside a bracket of it: a tab more where tabs are the file's."""
        return self.indent + ("\t" if self.indent.endswith("\t") else "    ")

    def __len__(self) -> int:
        return len(self.indent) + self.end - self.start + len(self.suffix)


class _Unit:
    """A statement of the output with its concrete tree. Raises Unreadable."""

    def __init__(self, text: str, limit: int) -> None:
        self.text = text
        self.limit = limit
        self.concrete = Concrete(text)
        self.starts = [0, *(match.end() for match in _LINE_BREAK.finditer(text)), len(text) + 1]
        self.strings = self.concrete.strings
        self.long_strings = [(a, b) for a, b in self.strings if "\n" in text[a:b]]
        self.brackets = [
            one for _, one in sorted(self.concrete.brackets.pairs.items()) if not self._in_string(one.start, one.end)
        ]

    def _starting_in(self, start: int, end: int) -> list[Bracket]:
        """The brackets that open in a range."""
        place = attrgetter("start")
        return self.brackets[bisect_left(self.brackets, start, key=place) : bisect_left(self.brackets, end, key=place)]

    def _in_string(self, start: int, end: int) -> bool:
        """Whether a range stands in a string literal: in the expression of an f-string."""
        at = bisect_right(self.strings, (start, len(self.text))) - 1
        return at >= 0 and self.strings[at][0] < start and end <= self.strings[at][1]

    @cached_property
    def _torn(self) -> set[int]:
        """The lines (from 0) on which a bracket opens or closes whose other half is on another line."""
        ends = ((bisect_right(self.starts, at) - 1 for at in (one.start, one.end - 1)) for one in self.brackets)
        return {line for first, last in ends if first != last for line in (first, last)}

    def broken(self, line: int) -> list[str]:
        """A line (from 0) as several, or as it was if it has no bracket to break at."""
        start, end = self.starts[line], self.starts[line + 1] - 1
        whole = [self.text[start:end]]
        if any(a < end and b > start for a, b in self.long_strings):
            return whole
        comment = next((text for at, text in self.concrete.comments if start <= at < end), "")
        code = self.text[start : end - len(comment)].rstrip()
        if line in self._torn or code.endswith("\\"):
            return whole
        indent = code[: len(code) - len(code.lstrip())]
        part = _Part(indent, start + len(indent), start + len(code))
        statements = self._statements(line, part) if len(part) > self.limit else [part]
        out = [new for one in statements for new in self._statement(one)]
        if len(out) > 1 and comment:
            out[-1] += f"  {comment}"
        return out if len(out) > 1 else whole

    def _statement(self, part: _Part) -> list[str]:
        parts = self._arguments(part) if len(part) > self.limit else [part]
        return [new for one in parts for new in self._lines(one, inside=one is not part)]

    @cached_property
    def _simple(self) -> list[tuple[int, int, ast.stmt]]:
        """The statements without a body, in order, with the ranges that they take in the text."""
        try:
            tree = ast.parse(self.text)
        except SyntaxError:
            return []
        simple = [n for n in symbols.walk(tree) if isinstance(n, ast.stmt) and not hasattr(n, "body")]
        return sorted(((*self._range(node), node) for node in simple), key=lambda one: one[:2])

    def _range(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        places = ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        first, last = (
            self.starts[line - 1]
            + len(self.text[self.starts[line - 1] : self.starts[line] - 1].encode()[:column].decode())
            for line, column in places
        )
        return first, last

    def _statements(self, line: int, part: _Part) -> list[_Part]:
        """The statements on a line, behind the head of a loop or branch where one stands in front of them."""
        if not _SEVERAL.search(self.text[part.start : part.end]):
            return [part]
        inside = [(start, end) for start, end, _ in self._simple if part.start <= start and end <= part.end]
        if not inside or len(inside) == 1 and inside[0][0] == part.start:
            return [part]
        head = _Part(part.indent, part.start, part.start + len(self.text[part.start : inside[0][0]].rstrip()))
        indent = part.deeper if len(head) > len(part.indent) else part.indent
        return [*([head] if len(head) > len(part.indent) else []), *(_Part(indent, *one) for one in inside)]

    def _tuple(self, part: _Part) -> list[str]:
        """A statement of which the value is a tuple without brackets, in brackets; nothing for others."""
        value = next((getattr(n, "value", None) for a, b, n in self._simple if (a, b) == (part.start, part.end)), None)
        if not isinstance(value, ast.Tuple) or any(isinstance(one, ast.Lambda | ast.Starred) for one in value.elts):
            return []
        start, end = self._range(value)
        if any((one.start, one.end) == (start, end) for one in self.brackets):
            return []
        top = self._top(replace(part, start=start, end=end))
        commas = (at for at in range(start, end) if self.text[at] == "," and not self._in_string(at, at))
        cuts = [at + 1 for at in commas if not any(one.start < at < one.end for one in top)]
        items = [self._item(one, False) for one in self._pieces(part.deeper, start, end, cuts)]
        head, tail = part.indent + self.text[part.start : start] + "(", part.indent + ")"
        return [head, *(line for one in items for line in self._lines(one, inside=True)), tail]

    def _arguments(self, part: _Part) -> list[_Part]:
        """A line of a bracket that began above it, cut between the arguments on it."""
        around = [one for one in self.brackets if one.start < part.start and part.end < one.end]
        if not around or around[-1].clauses:
            return [part]
        cuts = [at + 1 for at in around[-1].commas if part.start <= at < part.end]
        *others, last = self._pieces(part.indent, part.start, part.end, cuts)
        if cuts and self.concrete.brackets.next_code(part.end) == around[-1].end - 1 and self.text[last.end - 1] != ",":
            last = replace(last, suffix=",")
        return [*others, last]

    def _lines(self, part: _Part, *, inside: bool) -> list[str]:
        """A part as several lines, where it is too long: at its conditions if it stands in a bracket, else at one."""
        if len(part) <= self.limit:
            return [self._line(part)]
        if not inside and (lines := self._tuple(part)):
            return lines
        branches = self._branches(part) if inside else []
        if branches:
            *others, last = self._pieces(part.indent, part.start, part.end, branches)
            pieces = [*others, replace(last, suffix=part.suffix)]
            return [line for one in pieces for line in self._lines(one, inside=True)]
        bracket = self._chosen(part)
        return [self._line(part)] if bracket is None else self._broken_at(bracket, part)

    def _broken_at(self, bracket: Bracket, part: _Part) -> list[str]:
        """A part with the content of one of its brackets on lines of its own."""
        head = part.indent + self.text[part.start : bracket.start + 1]
        tail = part.indent + self.text[bracket.end - 1 : part.end] + part.suffix
        inner = part.deeper
        cuts = bracket.clauses or [at + 1 for at in bracket.commas]
        pieces = self._pieces(inner, bracket.start + 1, bracket.end - 1, cuts)
        content = _Part(inner, pieces[0].start, pieces[-1].end)
        trailing = self.text[content.end - 1] == ","
        if len(content) <= self.limit and not trailing:
            return [head, self._line(content), tail]
        if bracket.clauses:
            return [head, *map(self._line, pieces), tail]
        if bracket.commas:
            items = [self._item(one, self._defines(part)) for one in pieces]
            return [head, *(line for one in items for line in self._lines(one, inside=True)), tail]
        deeper = self._lines(content, inside=True)
        return [head, *deeper, tail] if len(deeper) > 1 else [self._line(part)]

    def _branches(self, part: _Part) -> list[int]:
        """Where ``if`` and ``else`` of the conditional expressions stand that a part in a bracket is made of.

        Not where it begins with one: it is cut there already.
        """
        top, text = self._top(part), self.text
        branches = [at for match in _BRANCH.finditer(text, part.start, part.end) if (at := match.start()) > part.start]
        return [
            at for at in branches if not any(one.start < at < one.end for one in top) and not self._in_string(at, at)
        ]

    def _top(self, part: _Part) -> list[Bracket]:
        """The brackets of a part that stand in no other one of it."""
        top: list[Bracket] = []
        for one in self._starting_in(part.start, part.end):
            if one.end <= part.end and one.start >= (top[-1].end if top else 0):
                top.append(one)
        return top

    def _line(self, part: _Part) -> str:
        return part.indent + self.text[part.start : part.end] + part.suffix

    def _item(self, item: _Part, in_definition: bool) -> _Part:
        """An argument with its comma, which Python 3.5 does not allow behind ``**options`` of a definition."""
        end = item.end - 1 if self.text[item.end - 1] == "," else item.end
        last = in_definition and self.text.startswith("**", item.start)
        return replace(item, end=end, suffix="" if last else ",")

    def _pieces(self, indent: str, start: int, end: int, cuts: Sequence[int]) -> list[_Part]:
        """A range cut at some places."""
        bounds = [start, *cuts, end]
        texts = ((at, self.text[at:end]) for at, end in pairwise(bounds))
        return [
            _Part(indent, at + len(text) - len(text.lstrip()), at + len(text.rstrip()))
            for at, text in texts
            if text.strip()
        ]

    def _defines(self, part: _Part) -> bool:
        return re.match(r"(async\s+)?(def|class)\b", self.text[part.start : part.end]) is not None

    def _chosen(self, part: _Part) -> Bracket | None:
        """The bracket to break at: of a definition the first, else a late call or, without one, a late list or dict."""
        filled = [one for one in self._top(part) if one.end > one.start + 2]
        calls = [one for one in filled if self.text[one.start] == "("]
        lists = [one for one in filled if self.text[one.start] in "[{" and not self._subscript(part, one)]
        choice = calls or lists
        if not choice:
            return None
        return choice[0] if self._defines(part) else self._best(part, choice)

    def _best(self, part: _Part, choice: list[Bracket]) -> Bracket:
        """The last bracket; but one with far more in it, if the line is three lines then: ``.squeeze(axis)`` stays.

        Where no bracket makes three lines of it, one with far more in it counts if the line stays too long without it.
        """
        three = [one for one in choice if self._makes_three(part, one)]
        last = choice[-1]
        too_long = len(part.indent) + last.start + 1 - part.start > self.limit
        longest = max(three or (choice if too_long else [last]), key=lambda one: one.end - one.start)
        short = SHARE * (last.end - last.start - 2) < longest.end - longest.start - 2
        return longest if short or three and last not in three else last

    def _makes_three(self, part: _Part, bracket: Bracket) -> bool:
        """Whether a part broken at a bracket fits into three lines."""
        indent = len(part.indent)
        inside = self.text[bracket.start + 1 : bracket.end - 1].strip()
        rest = indent + 1 + part.end - bracket.end + len(part.suffix)
        lengths = (indent + bracket.start + 1 - part.start, indent + 4 + len(inside), rest)
        return max(lengths) <= self.limit and not inside.endswith(",") and "\n" not in inside

    def _subscript(self, part: _Part, bracket: Bracket) -> bool:
        return re.search(r"[\w)\]]$", self.text[part.start : bracket.start]) is not None
