"""Keywords that a call of PyTorch's is given in a dict of settings: ``AdamW(params, **{"lr": 0.1})``, also by name.

And those of a tensor's method: ``x.sum(**dict(dim=1))``.

Where a file that has gaps writes out such a dict, and nothing adds to it, it is read as if each keyword stood in the
call: ``lr=settings["lr"]``. Of one that may be empty, ``dict(dim=dim) if dim is not None else {}``, a method's call is
read as two: ``x.sum(dim=settings["dim"]) if settings else x.sum()``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.symbols import with_ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.rearranged import RearrangedText

from .left_out import ObjectLeftOut, only_reads

_READS = frozenset({"get", "items", "keys", "values", "copy"})


def with_settings_as_keywords(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such calls are given keywords; None if there are none with a gap."""
    lines = {line for gap in gaps for line in range(gap.span.line, gap.span.end_line + 1)}
    written = SpreadSettings(inference)
    for node in inference.source.nodes:
        if isinstance(node, ast.Call) and node.lineno in lines and any(k.arg is None for k in node.keywords):
            fact = inference.fact(node.func)
            owner = inference.fact(node.func.value) if isinstance(node.func, ast.Attribute) else None
            if isinstance(fact, Qual) and is_torch(fact.name) or isinstance(owner, Tensor):
                written.of(node)
            if isinstance(owner, Tensor):
                written.of_method(node)
    return RearrangedText.of(inference.source.text, written.made_edits())


class SpreadSettings(ObjectLeftOut):
    def of(self, call: ast.Call) -> None:
        """One call with dicts of keywords."""
        for keyword in call.keywords:
            if keyword.arg is None and (table := self._table(keyword.value)) is not None:
                if (values := self._keywords(call, keyword, table)) is not None:
                    self.put(keyword, ", ".join(values))

    def of_method(self, call: ast.Call) -> None:
        """One call of a tensor's method with a dict of keywords that may be empty."""
        if only_reads(call.func) and (text := self.either(call, self.source.segment(call.func))) is not None:
            alone = isinstance(around := self.parents.get(call), ast.Assign | ast.Return) or (
                isinstance(around, ast.Call) and call in around.args
            )
            self.put(call, text if alone else f"({text})")

    def either(self, call: ast.Call, function: str) -> str | None:
        """A function called as a call is that has a dict of keywords which may be empty: with them, or without."""
        match call:
            case ast.Call(args=args, keywords=[ast.keyword(arg=None, value=ast.Name() as read) as keyword]):
                table = self._table(read, or_empty=True)
            case _:
                return None
        if table is None or not all(map(only_reads, args)) or not (values := self._keywords(call, keyword, table)):
            return None
        given = [self.source.segment(a) for a in args]
        full, bare = (f"{function}({', '.join(parts)})" for parts in ([*given, *values], given))
        return f"{full} if {read.id} else {bare}"

    def _keywords(self, call: ast.Call, keyword: ast.keyword, table: ast.Dict) -> list[str] | None:
        """The keywords that a dict of a call stands for, with their values."""
        keys = [key.value for key in table.keys if isinstance(key, ast.Constant)]
        names = [key for key in keys if isinstance(key, str) and key.isidentifier()]
        if len(names) != len(table.keys) or not {k.arg for k in call.keywords}.isdisjoint(names):
            return None
        text = self.source.segment(keyword.value)
        return [self._value(text, name, value) for name, value in zip(names, table.values, strict=True)]

    def _value(self, table: str, name: str, value: ast.expr) -> str:
        """``lr=settings["lr"]``; a switch, which says what is computed, as it is: ``amsgrad=True``."""
        switch = isinstance(value, ast.Constant) and (isinstance(value.value, bool | str) or value.value is None)
        return f"{name}={self.source.segment(value)}" if switch else f'{name}={table}["{name}"]'

    def _table(self, node: ast.expr, or_empty: bool = False) -> ast.Dict | None:
        """The dict that a variable, or an item of it, surely is, with the keys that it is written with.

        ``or_empty``: the one that it is where it isn't empty.
        """
        path: list[object] = []
        while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            path.insert(0, node.slice.value)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        made = self.only_value(node)
        home = self.source.home(node)
        same = (n for n in self.source.names[node.id] if self.source.home(n) is home)
        if made is None or not all(self._only_reads(n) for n in same if isinstance(n.ctx, ast.Load)):
            return None
        table = _unless_empty(made.value) if or_empty else _written_out(made.value)
        for key in path:
            items = zip(table.keys, table.values, strict=True) if table is not None else ()
            part = next((v for k, v in items if isinstance(k, ast.Constant) and k.value == key), None)
            table = _written_out(part) if part is not None else None
        return table

    def _only_reads(self, name: ast.Name) -> bool:
        """Whether a use of a dict adds nothing to it: it is spread, or some item or part of it is read."""
        at: ast.AST = name
        for around in with_ancestors(self.parents.get(name, name), self.parents):
            if not isinstance(around, ast.Subscript) or around.value is not at:
                break
            if not isinstance(around.ctx, ast.Load):
                return False
            at = around
        around_all = self.parents.get(at)
        match around_all:
            case ast.keyword(arg=None):
                return True
            case ast.IfExp(test=test) if test is at:
                return True
            case ast.Attribute(attr=attr):
                return attr in _READS
        return isinstance(at, ast.Subscript) and not isinstance(around_all, ast.Assign)


def _unless_empty(node: ast.expr) -> ast.Dict | None:
    """The dict of ``{"dim": dim} if given else {}``, or of one the other way round."""
    match node:
        case ast.IfExp(body=one, orelse=other):
            one_written, other_written = _written_out(one), _written_out(other)
            if one_written is not None and other_written is not None:
                full, empty = sorted((one_written, other_written), key=lambda d: len(d.keys), reverse=True)
                return full if full.keys and not empty.keys else None
    return None


def _written_out(node: ast.expr) -> ast.Dict | None:
    """A dict with its keys, also one that is written as ``dict(lr=0.1)``."""
    match node:
        case ast.Dict():
            return node
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if all(k.arg for k in keywords):
            return ast.Dict([ast.Constant(k.arg) for k in keywords], [k.value for k in keywords])
    return None
