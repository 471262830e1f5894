"""Loops that change each gradient in front of the step: ``for p in model.parameters(): p.grad *= 0.5``.

Clipping to values, scaling, weight decay by hand: each element is computed of itself, its parameter and
numbers, so that one ``jax.tree.map`` over the gradients does the same, in any order and any layout.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import EllipsisType

from t2j_lsp.symbols import walk

from .gradient_forms import CHANGES, SIGNS, asked, gradient_name, is_arithmetic, is_name

_OPERATORS: dict[str, type[ast.operator]] = {sign: op for op, sign in SIGNS.items()}
_CLIP = "clip"


@dataclass(frozen=True)
class GradientEdit:
    """The new value of a gradient."""

    value: ast.expr
    """In it, names stand for the gradient and its parameter."""
    given: tuple[ast.expr, ...]
    """What the value is computed with besides, as it stands in the source."""

    @property
    def reads_parameter(self) -> bool:
        return any(is_name(n, _PARAMETER) for n in walk(self.value))

    def line(self, arguments: Sequence[str], grads: str, module: str, need: Callable[[str], str]) -> str:
        """``grads = jax.tree.map(lambda g: g * 0.5, grads)``, with the texts of what else is given."""
        taken = {n.id for text in arguments for n in walk(ast.parse(text)) if isinstance(n, ast.Name)}
        g = gradient_name(taken)
        p = next(name for name in ("p", "param", "parameter", "its_parameter") if name not in taken)
        value = _AsCode(arguments, g, p, need).visit(copy.deepcopy(self.value))
        text = ast.unparse(value)
        tree_map, parameters, trees = f"{need('jax')}.tree.map", g, grads
        if self.reads_parameter:
            parameters, trees = f"{g}, {p}", f"{grads}, {need('nnx')}.state({module}, {need('nnx')}.Param)"
        return f"{grads} = {tree_map}(lambda {parameters}: {text}, {trees})"


_GRADIENT, _PARAMETER, _GIVEN = "gradient", "parameter", "given"
"""Names in the value of an edit; ``given`` is subscripted."""


def gradient_edit(loop: ast.For) -> GradientEdit | None:
    """What a loop over parameters makes of each gradient; None if it does more, or something else."""
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    *others, name = [one.id for one in targets if isinstance(one, ast.Name)] or [""]
    if len(others) + 1 < len(targets) or not name or loop.orelse:
        return None
    reader = _EditReader(name)
    value: ast.expr = ast.Name(_GRADIENT, ast.Load())
    for statement in (s for outer in loop.body for s in asked(outer, name)):
        new = reader.changed(statement, value)
        if new is None:
            return None
        value = new
    if is_name(value, _GRADIENT) or any(is_name(n, o) for o in others for given in reader.given for n in walk(given)):
        return None
    return GradientEdit(value, tuple(reader.given))


class _EditReader:
    def __init__(self, parameter: str) -> None:
        self.parameter = parameter
        self.given: list[ast.expr] = []

    def changed(self, node: ast.stmt, value: ast.expr) -> ast.expr | None:
        """The gradient behind a statement, where it was ``value`` in front of it."""
        match node:
            case ast.AugAssign(target=target, op=op, value=other) if self._is_gradient(target) and type(op) in SIGNS:
                return self._operation(value, op, self._read(other, value))
            case ast.Assign(targets=[target], value=other) if self._is_gradient(target):
                return self._read(other, value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr=attr)) as call):
                return self._called(call, attr, value) if self._is_gradient(held) else None
        return None

    def _called(self, call: ast.Call, attr: str, value: ast.expr) -> ast.expr | None:
        """``p.grad.mul_(0.5)``, ``p.grad.add_(p, alpha=1e-4)``, ``p.grad.clamp_(-1, 1)``."""
        named = {k.arg: k.value for k in call.keywords}
        match attr, call.args:
            case "clamp_" | "clip_", args if len(args) + len(named) == 2 and named.keys() <= {"min", "max"}:
                low, high = [*args, *(named[k] for k in ("min", "max") if k in named)]
                if len(args) == 1 and "min" in named:
                    return None
                limits = [self._read(one, value) for one in (low, high)]
                read = [one for one in limits if one is not None]
                clip = ast.Name(_CLIP, ast.Load())
                return ast.Call(clip, [value, *read], []) if len(read) == 2 else None
            case (("add_" | "sub_"), [factor, other]) if not named:
                return self._scaled(value, attr, factor, other)
            case (("add_" | "sub_"), [other]) if named.keys() == {"alpha"}:
                return self._scaled(value, attr, named["alpha"], other)
            case _, [other] if attr in CHANGES and not named:
                return self._operation(value, _OPERATORS[CHANGES[attr]](), self._read(other, value))
        return None

    def _scaled(self, value: ast.expr, attr: str, factor: ast.expr, other: ast.expr) -> ast.expr | None:
        by, read = self._read(factor, value), self._read(other, value)
        product = ast.BinOp(by, ast.Mult(), read) if by is not None and read is not None else None
        return self._operation(value, _OPERATORS[CHANGES[attr]](), product)

    def _operation(self, value: ast.expr, op: ast.operator, other: ast.expr | None) -> ast.expr | None:
        return ast.BinOp(value, op, other) if other is not None else None

    def _read(self, node: ast.expr, value: ast.expr) -> ast.expr | None:
        """An expression with the gradient and the parameter put for what stands for them; None if it isn't plain."""
        if not any(is_name(n, self.parameter) for n in walk(node)):
            if not is_arithmetic(node):
                return None
            self.given.append(node)
            return ast.Subscript(ast.Name(_GIVEN, ast.Load()), ast.Constant(len(self.given) - 1), ast.Load())
        if self._is_gradient(node):
            return value
        match node:
            case ast.Name() | ast.Attribute(attr="data", value=ast.Name()):
                return ast.Name(_PARAMETER, ast.Load())
            case ast.Call(func=ast.Attribute(attr="detach", value=inner), args=[], keywords=[]):
                return self._read(inner, value)
            case ast.UnaryOp(op=ast.USub() as op, operand=inner):
                read = self._read(inner, value)
                return ast.UnaryOp(op, read) if read is not None else None
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
                one, other = self._read(left, value), self._read(right, value)
                return ast.BinOp(one, op, other) if one is not None and other is not None else None
        return None

    def _is_gradient(self, node: ast.AST) -> bool:
        """``p.grad``, ``p.grad.data``, ``p.grad[:]``."""
        match node:
            case ast.Subscript(slice=ast.Slice(lower=None, upper=None, step=None) | ast.Constant(value=EllipsisType())):
                node = node.value
        if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.value, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Attribute) and node.attr == "grad" and is_name(node.value, self.parameter)


class _AsCode(ast.NodeTransformer):
    """The value of an edit as code: with names, the texts of what it is given, and ``jnp.clip``."""

    def __init__(self, arguments: Sequence[str], gradient: str, parameter: str, need: Callable[[str], str]) -> None:
        self.arguments, self.need = arguments, need
        self.names = {_GRADIENT: gradient, _PARAMETER: parameter}

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        assert isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)
        return ast.parse(self.arguments[node.slice.value], mode="eval").body

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == _CLIP:
            return ast.Attribute(ast.Name(self.need("jnp"), ast.Load()), "clip", ast.Load())
        return ast.Name(self.names[node.id], ast.Load())
