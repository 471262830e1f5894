"""Rendered statements as lines of text, so that they can stand elsewhere than in the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from t2j_lsp.contract import MARK
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.expressions.scope import CurrentStatement
from t2j_lsp.translate.source.concrete import Concrete, Unreadable
from t2j_lsp.translate.source.folding.merging import merged
from t2j_lsp.translate.source.text import Source, apply_edits


def converted(ctx: Context, statements: StatementRewriter, node: ast.stmt) -> list[str]:
    """The lines that a statement becomes, without the indentation it stands at. Its trailing comment is kept."""
    start, end = span_of_lines(ctx.source, node)
    past = end + len(ctx.source.newline)
    place = ctx.source.statement(node)
    if not place.alone:
        start = place.start
    if place.separator is not None:
        end, past = place.end, place.separator
    before, ctx.edits.made = ctx.edits.made, []
    statements.visit(node, planned=False)
    new, ctx.edits.made = ctx.edits.made, before
    inside = [e for e in new if start <= e.start <= end and e.end <= past]
    ctx.edits.made += [e for e in new if e not in inside]
    text = apply_edits(ctx.source.text, [replace(e, end=min(e.end, end)) for e in inside], start, end)
    reasons = [r for at in list(ctx.report.todos) if start <= at <= end for r in ctx.report.todos.pop(at)]
    width = len(ctx.source.indent(node.lineno))
    lines = dedented(text, width)
    return [f"{MARK}: {reason}" for reason in dict.fromkeys(reasons)] + lines


def rendered(ctx: Context, statements: StatementRewriter, node: ast.expr, place: ast.stmt) -> tuple[list[str], str]:
    """An expression's text, and the lines it needs in front of it."""
    saved, ctx.scope.statement = ctx.scope.statement, CurrentStatement(place)
    try:
        piece = statements.renderer.argument(node)
        return list(ctx.scope.statement.before), piece.text
    finally:
        ctx.scope.statement = saved


def span_of_lines(source: Source, node: ast.stmt) -> tuple[int, int]:
    """Start of a statement's first line and end of its last, without the line break."""
    decorators = getattr(node, "decorator_list", None) or ()
    first = min([node.lineno, *(d.lineno for d in decorators)])
    assert node.end_lineno is not None
    return source.starts[first - 1], source.starts[node.end_lineno - 1] + len(source.line_text(node.end_lineno))


_MAY_BREAK_IN_STRING = re.compile(r"\"\"\"|'''|\\[\r\n]")


def _strings(text: str) -> list[tuple[int, int]]:
    """Where the string literals of some statements stand."""
    head = "if 1:\n" if text[:1].isspace() else ""
    try:
        return [(start - len(head), end - len(head)) for start, end in Concrete(head + text).strings]
    except Unreadable:
        return []  # nothing but comments is left of it


def dedented(text: str, width: int) -> list[str]:
    """Statements as lines with ``width`` columns less of indentation.

    A line break inside a string literal ends no line: what is behind it is the string's, and is indented no more.
    """
    strings = _strings(text) if _MAY_BREAK_IN_STRING.search(text) is not None else []
    ends = [0]
    for breaks in re.finditer(r"\r\n|\r|\n|$", text):
        if not any(start < breaks.start() < end for start, end in strings):
            ends.append(breaks.end())
    lines = [text[start:end].rstrip("\r\n") for start, end in pairwise(ends)]
    while lines and not lines[-1].strip():
        lines.pop()
    return [line[min(width, len(line) - len(line.lstrip())) :] for line in lines]


def indented(lines: Sequence[str], indent: str) -> list[str]:
    """Lines with more indentation; empty ones stay empty."""
    return [f"{indent}{line}" if line else "" for line in lines]


def returned_at_once(lines: list[str]) -> list[str]:
    """The lines of a function that end ``return f(x)`` where they were ``loss = f(x)`` and ``return loss``."""
    match ast.parse("def f():\n" + "\n".join(indented(lines, " "))).body:
        case [
            ast.FunctionDef(body=[*_, ast.Assign([ast.Name(name)], lineno=line) as made, ast.Return(ast.Name(last))])
        ]:
            head = f"{name} = "
            if name == last and lines[line - 2].startswith(head) and made.end_lineno == len(lines):
                return [*lines[: line - 2], "return " + lines[line - 2].removeprefix(head), *lines[line - 1 : -1]]
    return lines


def returned_with(lines: list[str], width: int) -> list[str]:
    """The lines of a function that end ``return f(x), y`` where they were ``loss = f(x)`` and ``return loss, y``."""
    match ast.parse("def f():\n" + "\n".join(indented(lines, " "))).body:
        case [
            ast.FunctionDef(
                body=[*_, ast.Assign([ast.Name(name)]) as made, ast.Return(ast.Tuple([ast.Name(last), *others]))]
            )
        ] if name == last and made.lineno == made.end_lineno == len(lines):
            read = {n.id for one in others for n in ast.walk(one) if isinstance(n, ast.Name)}
            head, value = lines[-2][: len(last) + 3], lines[-2][len(last) + 3 :]
            plain = head == f"{last} = " and "#" not in value and last not in read
            line = f"return {value}{lines[-1].removeprefix(f'return {last}')}"
            if plain and not isinstance(made.value, ast.Tuple | ast.Lambda | ast.IfExp) and len(line) <= width:
                return [*lines[:-2], line]
    return lines


def in_one(lines: list[str], width: int) -> list[str]:
    """``return f(model(x), y)`` for ``output = model(x)`` and ``return f(output, y)``, if that fits; else the lines."""
    function = "def f():\n" + "\n".join(indented(lines, " ")) + "\n"
    match ast.parse(function).body:
        case [ast.FunctionDef(body=[ast.Assign([ast.Name(name)], ast.Call()), ast.Return(ast.Call() as loss)])]:
            operands = [n for n in ast.walk(loss) if isinstance(n, ast.BinOp | ast.UnaryOp | ast.Compare)]
            if any(isinstance(n, ast.Name) and n.id == name for one in operands for n in ast.walk(one)):
                return lines  # what is computed with has a name
            made = merged(function, width + 1).splitlines()
            return [made[1].strip()] if len(made) == 2 else lines
    return lines


def lead_lines(source: Source, node: ast.stmt, previous: int) -> list[str]:
    """The lines between line ``previous`` and a statement: comments and blank lines, without indentation."""
    decorators = getattr(node, "decorator_list", None) or ()
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return [source.line_text(n).strip() for n in range(previous + 1, first)]


def lead_comments(source: Source, node: ast.stmt) -> list[str]:
    """The comments that stand on lines of their own directly above a statement."""
    return list(source.statement(node).above)


def replaced(source: Source, start: int, end: int, instead: Mapping[tuple[int, int], str], indent: str = "") -> str:
    """A range of the source with parts of it replaced, further in by ``indent``."""
    out, at = [], start
    for (begin, stop), text in sorted(instead.items()):
        if at <= begin and start <= begin and stop <= end:
            out += [source.text[at:begin], text]
            at = stop
    text = "".join([*out, source.text[at:end]])
    if text and not text.endswith("\n"):
        text += source.newline
    return re.sub(r"(?m)^(?=[^\r\n])", lambda _: indent, text) if indent else text
