"""The text of statements that were rewritten: those that stayed as they were keep their own, and all their comments."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from t2j_lsp.translate.source.text import Source

_COMMENT = re.compile(r"\s*#")


class Lines:
    """Writes statements as lines that begin at the margin."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._comments = {source.line_of(at): text for at, text in source.comments}

    def of(self, new: ast.stmt, old: ast.stmt) -> Iterator[str]:
        """The lines of a simple statement, which was made of an old one."""
        if ast.dump(new) == ast.dump(old) and old in self.source.parents:
            yield from dedented(self.source, old)
        else:
            yield unparsed(new)

    def above(self, old: ast.stmt) -> list[str]:
        """The comments that stand above a statement, behind an empty line if there is one."""
        line = min([old.lineno, *(d.lineno for d in getattr(old, "decorator_list", ()))]) - 1
        comments: list[str] = []
        while line > 0 and _COMMENT.match(self.source.line_text(line)):
            comments.insert(0, self.source.line_text(line).strip())
            line -= 1
        return ["", *comments] if line > 0 and not self.source.line_text(line).strip() else comments

    def beside(self, old: ast.stmt) -> str:
        """The comment at the end of a simple statement."""
        comment = self._comments.get(old.end_lineno or old.lineno, "")
        return f"  {comment}" if comment else ""


def unparsed(node: ast.AST) -> str:
    """Code as ``ast`` writes it, with the quotes that formatters write."""
    text = ast.unparse(node)
    return text if '"' in text else text.replace("'", '"')


def dedented(source: Source, node: ast.stmt) -> list[str]:
    """The lines of a statement of the text, at the margin, whatever its lines end in."""
    text = source.indent(node.lineno) + source.segment(node)
    return textwrap.dedent(text.replace(source.newline, "\n")).split("\n")


def indented(lines: list[str], depth: int = 1) -> list[str]:
    """Lines that are part of a block."""
    return [f"{'    ' * depth}{line}" if line else line for line in lines]
