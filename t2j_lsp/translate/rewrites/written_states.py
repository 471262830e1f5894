"""Loops that write into the tensors of a module's state dict: ``for k, v in ema.state_dict().items(): v *= d``.

Averages of weights are kept so. Where a file that has gaps does so, it is read as if what is computed were copied into
the state under its name, ``state[k].copy_(v * d)``, as often as PyTorch would write into the tensor itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.module_states import is_state
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import RearrangedText

from .left_out import ObjectLeftOut, Stays

_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def with_writes_into_states_copied(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such loops copy into the state; None if there are none, or everything converts."""
    source = inference.source
    lines = {gap.span.line for gap in gaps}
    if "state_dict" not in source.words or not lines:
        return None
    written = _WrittenStates(inference)
    for node in source.nodes:
        if isinstance(node, ast.For) and lines & {*range(node.lineno, (node.end_lineno or 0) + 1)}:
            try:
                written.of(node)
            except Stays:
                continue
    return RearrangedText.of(source.text, written.made_edits())


class _WrittenStates(ObjectLeftOut):
    def of(self, node: ast.For) -> None:
        """A loop over a state, or over two in pairs, of which the first is written. Raises Stays."""
        match node:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=tensor)]),
                iter=ast.Call(func=ast.Attribute(value=state, attr="items"), args=[], keywords=[]),
                orelse=[],
            ):
                others = ""
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=tensor), ast.Name(id=other)]),
                iter=ast.Call(
                    func=ast.Name(id="zip"),
                    args=[
                        ast.Call(func=ast.Attribute(value=state, attr="values"), args=[], keywords=[]),
                        ast.Call(func=ast.Attribute(value=second, attr="values"), args=[], keywords=[]),
                    ],
                    keywords=[],
                ),
                orelse=[],
            ) if is_state(self.inference.fact, second):
                key, others = self.free_name("name"), other
            case _:
                raise Stays
        if not is_state(self.inference.fact, state) or not self.source.starts_line(node) or spans_lines(node.iter):
            raise Stays
        held, given = self.free_name("state"), key
        if not others and any(_binds(key, s) for s in node.body):
            key = self.free_name("name")
        texts = self._texts(node.body, [], tensor, f"{held}[{key}]")
        if not texts or self._is_kept(node, tensor):
            raise Stays
        made = self.source.segment(state)
        start = self.source.span(node)[0]
        self.instead[start, start] = f"{held} = {made}{self.source.newline}{self.source.indent(node.lineno)}"
        if others:
            self.put(node.target, f"{key}, {tensor}, {others}")
            walked = self.source.segment(node.iter.args[1]) if isinstance(node.iter, ast.Call) else ""
            self.put(node.iter, f"zip({held}, {held}.values(), {walked})")
        else:
            self.put(node.iter, f"{held}.items()")
        if key != given:
            assert isinstance(node.target, ast.Tuple)
            self.put(node.target.elts[0], key)
            first = self.source.span(node.body[0])[0]
            line = f"{self.source.newline}{self.source.indent(node.body[0].lineno)}"
            self.instead[first, first] = f"{given} = {key}{line}"
        for statement, text in texts.items():
            self.put(statement, text)

    def _texts(
        self, body: Sequence[ast.stmt], later: Sequence[ast.stmt], tensor: str, item: str
    ) -> dict[ast.stmt, str]:
        """What stands for the statements of a loop that write into its tensor; ``later`` come then. Raises Stays."""
        out: dict[ast.stmt, str] = {}
        for at, node in enumerate(body):
            match node:
                case ast.If():
                    rest = [*body[at + 1 :], *later]
                    out |= self._texts(node.body, rest, tensor, item)
                    out |= self._texts(node.orelse, rest, tensor, item)
                    continue
                case ast.Assign(targets=[ast.Name(id=name)]) if name != tensor:
                    continue
                case ast.Continue() | ast.Pass():
                    continue
            value = self._value(node, tensor)
            if value is None or not self.source.starts_line(node) or spans_lines(node):
                raise Stays
            behind = body[at + 1] if at + 1 < len(body) else None
            if not _is_copy(node) and behind is not None and self._value(behind, tensor) is not None:
                out[node] = f"{tensor} = {value}"
            elif any(_names(tensor, s) for s in [*body[at + 1 :], *later]):
                raise Stays
            else:
                out[node] = f"{item}.copy_({value})"
        return out

    def _value(self, node: ast.stmt, tensor: str) -> str | None:
        """What a statement writes into the tensor; None for others."""
        segment = self.source.segment
        match node:
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if (
                name == tensor and type(op) in _OPERATORS
            ):
                plain = isinstance(value, ast.Name | ast.Constant | ast.Attribute | ast.Call | ast.Subscript)
                given = segment(value) if plain else f"({segment(value)})"
                return f"{name} {_OPERATORS[type(op)]} {given}"
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=into, attr="copy_"), args=[value], keywords=[])) if (
                self._is_tensor(into, tensor)
            ):
                return segment(value)
            case ast.Expr(value=ast.Call() as call):
                return self._chained(call, tensor)
        return None

    def _chained(self, node: ast.expr, tensor: str) -> str | None:
        """``v.mul_(d).add_(x, alpha=1 - d)`` as ``v.mul(d).add(x, alpha=1 - d)``."""
        if self._is_tensor(node, tensor):
            return tensor
        match node:
            case ast.Call(func=ast.Attribute(value=into, attr=name)) if _has_form_with_result(name):
                inner = self._chained(into, tensor)
                given = ", ".join(self.source.segment(part) for part in [*node.args, *node.keywords])
                return None if inner is None else f"{inner}.{name[:-1]}({given})"
        return None

    def _is_tensor(self, node: ast.expr, tensor: str) -> bool:
        match node:
            case ast.Attribute(value=inner, attr="data"):
                return self._is_tensor(inner, tensor)
        return isinstance(node, ast.Name) and node.id == tensor

    def _is_kept(self, loop: ast.For, tensor: str) -> bool:
        """Whether the tensor itself may be seen when the loop has gone on: it has another name, or is in a list."""
        inside = {*symbols.walk(loop)}
        for name in self.source.names.get(tensor, ()):
            if name not in inside:
                if self.source.home(name) is self.source.home(loop.target.elts[0]):  # type: ignore[attr-defined]
                    return True
                continue
            match self.parents.get(name):
                case ast.Assign(value=value) if value is name:
                    return True
                case ast.List() | ast.Dict() | ast.Set() | ast.Return() | ast.Yield() | ast.keyword():
                    return True
                case ast.Tuple() as around if around is not loop.target:
                    return True
                case ast.Call(func=ast.Attribute(attr="append" | "add" | "extend")) as call if name in call.args:
                    return True
        return False


def _has_form_with_result(name: str) -> bool:
    """Whether a method that writes in place has one beside it that gives the result: ``mul_`` and ``mul``."""
    rule = REGISTRY.get(f"torch.Tensor.{name.removesuffix('_')}") if name.endswith("_") else None
    return rule is not None and rule.emit is not None and not rule.random


def _names(tensor: str, node: ast.AST) -> bool:
    return any(isinstance(n, ast.Name) and n.id == tensor for n in symbols.walk(node))


def _is_copy(node: ast.stmt) -> bool:
    """``v.copy_(x)``, which casts what it is given."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="copy_"))):
            return True
    return False


def _binds(name: str, node: ast.AST) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in symbols.walk(node))
