"""What texts have in common in which some object of a program is left out: statements go, and what lists hand on."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import Edits, Fragment
from t2j_lsp.translate.training.program.gradient_forms import is_flag
from t2j_lsp.translate.training.program.text import replaced


class Stays(Exception):
    """The object is used otherwise."""


class ObjectLeftOut:
    """Ranges of a file's text, with what stands in their places."""

    def __init__(self, inference: Inference) -> None:
        self.inference, self.source = inference, inference.source
        self.parents = self.source.parents
        self.instead: dict[tuple[int, int], str] = {}

    def made_edits(self) -> Edits:
        return [(*span, [Fragment(text, *span)] if text else []) for span, text in self.instead.items()]

    def drop(self, statement: ast.stmt) -> None:
        """A statement goes with its line. Raises Stays."""
        block = self.source.block_of(statement) or []
        begin = self.source.starts[statement.lineno - 1]
        end = self.source.line_end(statement.end_lineno or 0)
        around = self.source.text[begin:end].replace(self.source.segment(statement), "").strip()
        if len(block) < 2 or around and not around.startswith("#"):
            raise Stays
        self.instead[begin, end] = ""

    def drop_or_pass(self, statement: ast.stmt) -> None:
        """A statement goes, or is ``pass`` where it is the only one of its block. Raises Stays."""
        if len(self.source.block_of(statement) or []) > 1:
            self.drop(statement)
        else:
            self.put(statement, "pass")

    def put(self, node: ast.AST, text: str) -> None:
        """Another text for a node, and for all in it."""
        start, end = self.source.span(node)
        self.instead = {span: t for span, t in self.instead.items() if not (start <= span[0] and span[1] <= end)}
        self.instead[start, end] = text

    def without(self, node: ast.AST, others: Sequence[ast.AST]) -> None:
        """Something goes from a list, with the comma in front of it or behind. Raises Stays."""
        at = others.index(node)
        start, end = self.source.span(node)
        if at:
            start = self.source.span(others[at - 1])[1]
        elif len(others) > 1:
            end = self.source.span(others[1])[0]
        if self.source.text[start:end].count(",") > 1 or "#" in self.source.text[start:end]:
            raise Stays
        self.instead[start, end] = ""

    def make_parameter(self, made: ast.Call, torch: str) -> None:
        """``torch.nn.Parameter(torch.zeros(3))`` for ``torch.zeros(3, requires_grad=True)``. Raises Stays."""
        start, end = self.source.span(made)
        flag = next((k for k in made.keywords if is_flag(k)), None)
        if flag is not None:
            self.without(flag, [*made.args, *made.keywords])
            self.instead[end, end] = ")"
        elif is_flag(made) and isinstance(made.func, ast.Attribute):
            self.instead[self.source.span(made.func.value)[1], end] = ")"
        else:
            raise Stays
        self.instead[start, start] = f"{torch}.nn.Parameter("

    def open(self, statement: ast.If | ast.With, body: Sequence[ast.stmt] = ()) -> None:
        """The statements in an ``if`` or a ``with``, without it, or those of its other branch. Raises Stays."""
        source, body = self.source, body or statement.body
        if not source.starts_line(body[0]) or any(spans_lines(n) for s in body for n in symbols.walk(s)):
            raise Stays
        begin, end = source.starts[statement.lineno - 1], source.line_end(statement.end_lineno or 0)
        first, last = source.starts[body[0].lineno - 1], source.line_end(body[-1].end_lineno or 0)
        deeper = len(source.indent(body[0].lineno)) - len(source.indent(statement.lineno))
        text = replaced(source, first, last, self.instead)
        lines = (line[deeper:] if line.strip() else line for line in text.splitlines(keepends=True))
        self.instead = {span: t for span, t in self.instead.items() if not begin <= span[0] < end}
        self.instead[begin, end] = "".join(lines)
