"""The edits of one translation: what is replaced, put in front of and behind statements, and taken out."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from t2j_lsp.contract import TextEdit

from .text import Edit, Source


class Edits:
    """Every change that the output makes to the source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.made: list[Edit] = []
        self.deleted: set[ast.stmt] = set()
        self.dedented: dict[int, int] = {}
        """Columns taken off the indentation of a line."""
        self.removable: dict[ast.stmt, str] = {}
        """Assignments that go when nothing in the output reads their name any more."""
        self.placed_comments: set[str] = set()
        """Comments that went along with moved code, or that were about code that is gone."""
        self._blanks_removed: dict[int, Edit] = {}
        """For the start of a removed statement, the edit that removes the blank lines behind it."""

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
        if node in self.deleted and at in self._blanks_removed:
            self.made.remove(self._blanks_removed.pop(at))  # something stands there again

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
        self.add(line_end, line_end, text, 5)

    def delete(self, node: ast.stmt) -> None:
        """Remove a statement, its line with it if it has the line for itself; ``pass`` if its block would be empty."""
        place = self.source.statement(node)
        block = self.source.block_of(node)
        if block is not None and all(s is node or s in self.deleted for s in block):
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
            self._delete_lines(node, self.source.line_of(place.start))

    def _delete_lines(self, node: ast.stmt, first_line: int) -> None:
        """Remove the lines of a statement, and blank ones behind it."""
        assert node.end_lineno is not None
        start, last = self.source.starts[first_line - 1], node.end_lineno
        after = self.source.starts[last] if last < len(self.source.starts) else len(self.source.text)
        self.add(start, after, "")
        past = self._past_blank(first_line, node, after)
        if past > after:
            self.add(after, past, "")
            self._blanks_removed[start] = self.made[-1]

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

    def effective(self, own: Collection[Edit]) -> tuple[TextEdit, ...]:
        """The edits that count, as `Source.apply` takes them: of two that overlap, the one that starts first.

        ``own`` are those of statements; the others are about imports and helpers.
        """
        found: list[TextEdit] = []
        position = 0
        for edit in sorted(set(self.made), key=lambda e: (e.start, e.end, e.priority)):
            if edit.start >= position:
                found.append(TextEdit(edit.start, edit.end, edit.new, edit not in own))
                position = edit.end
        return tuple(found)
