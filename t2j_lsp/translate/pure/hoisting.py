"""Functions that stand in a class as its methods are put in its place."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Collection, Iterator, Mapping

from t2j_lsp.translate.source.positions import first_line
from t2j_lsp.translate.source.text import Edit, Source


def hoisted(source: Source, classes: Mapping[str, str]) -> list[Edit]:
    """The edits that take the methods of these classes out of them, with the docstring of the class.

    ``classes`` names the function of each that gets it.
    """
    edits: list[Edit] = []
    strings = _inside_strings(source.text)
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef) and node.name in classes:
            edits += _hoisted(source, node, classes[node.name], strings)
    return edits


def _hoisted(source: Source, node: ast.ClassDef, main: str, strings: Collection[int]) -> Iterator[Edit]:
    methods = [s for s in node.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)]
    docstring = node.body[0] if node.body[0] not in methods else None
    indent = source.indent(methods[0].lineno)
    first = _with_comments(source, methods[0], (docstring or node).end_lineno or 0 if docstring else node.lineno)
    yield Edit(source.span(node)[0], source.starts[first - 1], 0, "")
    if docstring is not None:
        owner = next((method for method in methods if method.name == main), methods[-1])
        if not _has_docstring(owner):
            line = min([owner.body[0].lineno, *_comments_above(source, owner)])
            at, text = source.starts[line - 1], source.segment(docstring)
            yield Edit(at, at, 0, f"{source.indent(owner.body[0].lineno)[len(indent) :]}{text}{source.newline}")
    for index, method in enumerate(methods):
        last = methods[index - 1].end_lineno if index else None
        line = _with_comments(source, method, last or first - 1)
        if last is not None:
            blank = sum(1 for one in range(last + 1, line) if not source.line_text(one).strip())
            at = source.starts[line - 1]
            yield Edit(at, at, -1, source.newline * max(0, 2 - blank))
        for one in range(line, (method.end_lineno or method.lineno) + 1):
            if one not in strings and source.line_text(one).startswith(indent):
                start = source.starts[one - 1]
                yield Edit(start, start + len(indent), 0, "")


def _comments_above(source: Source, owner: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[int]:
    """The lines of comments between a function's head and its first statement."""
    line = owner.body[0].lineno - 1
    while line > owner.lineno and source.line_text(line).lstrip().startswith("#"):
        yield line
        line -= 1


def _with_comments(source: Source, node: ast.stmt, above: int) -> int:
    """The first line of a definition, with the comments right above it, as far as a line ``above``."""
    line = first_line(node)
    while line - 1 > above and source.line_text(line - 1).lstrip().startswith("#"):
        line -= 1
    return line


def _has_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node) is not None


def _inside_strings(text: str) -> frozenset[int]:
    """Lines that begin inside a string which is no docstring."""
    lines: set[int] = set()
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
            if before not in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                lines.update(range(token.start[0] + 1, token.end[0] + 1))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type
    return frozenset(lines)
