"""What texts have in common in which some object of a program is left out: statements go, and what lists hand on."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters
from t2j_lsp.translate.inference.call_sites import defaults
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import Edits, Fragment
from t2j_lsp.translate.training.program.gradient_forms import is_flag
from t2j_lsp.translate.training.program.text import replaced


class Stays(Exception):
    """The object is used otherwise."""


_PLAIN = (
    ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp,
    ast.boolop, ast.unaryop, ast.cmpop, ast.expr_context,
)  # fmt: skip


def is_plain(test: ast.expr) -> bool:
    """Whether a condition only asks for values."""
    return all(isinstance(n, _PLAIN) for n in symbols.walk(test))


def only_reads(node: ast.AST) -> bool:
    """Whether an expression does nothing but ask for values and parts: ``checkpoint["scaler"]``."""
    return all(isinstance(n, (*_PLAIN, ast.Subscript)) for n in symbols.walk(node))


class ObjectLeftOut:
    """Ranges of a file's text, with what stands in their places."""

    def __init__(self, inference: Inference) -> None:
        self.inference, self.source = inference, inference.source
        self.parents = self.source.parents
        self.instead: dict[tuple[int, int], str] = {}

    def made_edits(self) -> Edits:
        return [(*span, [Fragment(text, *span)] if text else []) for span, text in self.instead.items()]

    def free_name(self, name: str) -> str:
        """A name that the file has for nothing else: this one, with lines behind it."""
        while name in self.source.words:
            name = f"{name}_"
        return name

    def drop(self, statement: ast.stmt) -> None:
        """A statement goes with its line. Raises Stays."""
        block = self.source.block_of(statement) or []
        begin = self.source.starts[statement.lineno - 1]
        end = self.source.line_end(statement.end_lineno or 0)
        around = self.source.text[begin:end].replace(self.source.segment(statement), "").strip()
        if len(block) < 2 or around and not around.startswith("#"):
            raise Stays
        self._put(begin, end, "")

    def drop_or_pass(self, statement: ast.stmt) -> None:
        """A statement goes, or is ``pass`` where it is the only one of its block. Raises Stays."""
        if len(self.source.block_of(statement) or []) > 1:
            self.drop(statement)
        else:
            self.put(statement, "pass")

    def drop_with_branches(self, statement: ast.stmt) -> None:
        """A statement goes, and each ``if`` that holds nothing else and only asks for values. Raises Stays."""
        around = self.parents.get(statement)
        while (
            isinstance(around, ast.If) and around.body == [statement] and not around.orelse and only_reads(around.test)
        ):
            if self.source.text.startswith("elif", self.source.span(around)[0]):
                break
            statement, around = around, self.parents.get(around)
        self.drop_or_pass(statement)

    def is_gone(self, node: ast.AST) -> bool:
        """Whether it stands in what goes."""
        start, end = self.source.span(node)
        return any(first <= start and end <= last and not text for (first, last), text in self.instead.items())

    def without_entry(self, table: ast.Dict, value: ast.expr) -> None:
        """An entry of a dict goes. Raises Stays."""
        at = table.values.index(value)
        key = table.keys[at]
        if key is None:
            raise Stays
        start, end = self.source.span(key)[0], self.source.span(value)[1]
        if at:
            start = self.source.span(table.values[at - 1])[1]
        elif len(table.values) > 1:
            behind = table.keys[1]
            end = self.source.span(table.values[1] if behind is None else behind)[0]
        if "#" in self.source.text[start:end]:
            raise Stays
        self._put(start, end, "")

    def without_parameter(self, info: FunctionInfo, parameter: ast.arg) -> None:
        """A parameter goes with its default, none of ``*args``. Raises Stays."""
        everything, given = named_parameters(info.node), dict(defaults(info))
        at, keyword_only = everything.index(parameter), info.node.args.kwonlyargs
        if keyword_only == [parameter] and info.node.args.vararg is None:
            raise Stays  # a star with nothing behind it
        start, end = self.source.span(parameter)
        if parameter in given:
            end = self.source.span(given[parameter])[1]
        if keyword_only[:1] == [parameter] or not at and len(everything) > 1:
            if at + 1 == len(everything):
                raise Stays
            end = self.source.span(everything[at + 1])[0]
        elif at:
            before = everything[at - 1]
            start = self.source.span(given.get(before) or before)[1]
        if "#" in self.source.text[start:end]:
            raise Stays
        self.instead[start, end] = ""

    def only_value(self, name: ast.Name) -> ast.Assign | None:
        """The statement that gives a variable its only value."""
        home = self.source.home(name)
        stores = [n for n in self.source.names.get(name.id, ()) if not isinstance(n.ctx, ast.Load)]
        stores = [n for n in stores if self.source.home(n) is home]
        if len(stores) != 1 or isinstance(home, symbols.FunctionNode) and name.id in symbols.parameter_names(home):
            return None
        statement = self.source.parents.get(stores[0])
        return statement if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None

    def put(self, node: ast.AST, text: str) -> None:
        """Another text for a node, and for all in it."""
        self._put(*self.source.span(node), text)

    def _put(self, start: int, end: int, text: str) -> None:
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
