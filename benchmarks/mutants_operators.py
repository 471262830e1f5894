"""Plausible mistakes in converted code: each operator turns one expression into the wrong ones that people write."""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy

from .mutants_expressions import (
    called,
    dotted,
    expressions,
    literal,
    number,
    renamed,
    signature,
    statements,
    with_keyword,
)

Change = tuple[ast.AST, ast.AST]
"""A node and what stands in its place."""
Operator = Callable[[ast.AST], Iterator[ast.AST]]

OPERATORS: dict[str, Operator] = {}


def operator(function: Operator) -> Operator:
    """Registers an operator under the words of its name."""
    OPERATORS[function.__name__.replace("_", " ")] = function
    return function


@dataclass(frozen=True)
class Mutant:
    """A mutated text: the operator, the statement's first and last line there, and both forms of the expression."""

    operator: str
    text: str
    line: int
    end_line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"line {self.line}, {self.operator}: {self.before} -> {self.after}"


def mutants_of(text: str, definitions: list[ast.stmt]) -> Iterator[Mutant]:
    """Every mutant of the statements of some definitions, in the order of the text."""
    lines = text.splitlines(keepends=True)
    for statement in definitions:
        for simple in statements(statement):
            for node in expressions(simple):
                for name, change in OPERATORS.items():
                    for new in change(node):
                        made = _mutant(name, lines, simple, node, new)
                        if made is not None:
                            yield made


def _mutant(name: str, lines: list[str], statement: ast.stmt, node: Any, new: Any) -> Mutant | None:
    ast.fix_missing_locations(new)
    before, after = ast.unparse(node), ast.unparse(new)
    if before == after:
        return None
    brackets = isinstance(new, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp)
    start = _offset(lines, node.lineno, node.col_offset)
    end = _offset(lines, node.end_lineno, node.end_col_offset)
    whole = "".join(lines)
    text = whole[:start] + (f"({after})" if brackets else after) + whole[end:]
    compound = isinstance(statement, ast.If | ast.For | ast.While)
    last = statement.body[0].lineno - 1 if compound else statement.end_lineno or statement.lineno
    last += text.count("\n") - whole.count("\n")
    shown = textwrap.dedent("".join(text.splitlines(keepends=True)[statement.lineno - 1 : last]))
    try:
        ast.parse(f"{shown}\n    pass" if compound else shown)
    except SyntaxError:
        return None
    return Mutant(name, text, statement.lineno, last, before, after)


def _offset(lines: list[str], line: int, column: int) -> int:
    row = lines[line - 1].encode()
    return sum(map(len, lines[: line - 1])) + len(row[:column].decode())


_WITH_AXIS = {"sum", "mean", "max", "min", "softmax", "log_softmax", "std", "var", "argmax", "argmin", "cumsum", "any",
              "all", "prod", "sort", "argsort", "concatenate", "stack", "expand_dims", "squeeze", "split", "flip",
              "norm", "logsumexp", "cumprod", "take_along_axis", "roll"}  # fmt: skip


@operator
def axis(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call):
        return
    for keyword in node.keywords:
        if keyword.arg in ("axis", "dim"):
            value = number(keyword.value)
            if isinstance(value, int):
                yield with_keyword(node, keyword.arg, literal({0: 1, 1: 0, 2: 1, -1: -2, -2: -1}.get(value, value - 1)))
            elif isinstance(keyword.value, ast.Tuple) and len(keyword.value.elts) > 1:
                yield with_keyword(node, keyword.arg, keyword.value.elts[0])
                yield with_keyword(node, keyword.arg, keyword.value.elts[-1])
    if called(node) in ("swapaxes", "moveaxis", "transpose"):
        for index, argument in enumerate(node.args):
            value = number(argument)
            if isinstance(value, int):
                new = copy.deepcopy(node)
                new.args[index] = literal(value - 1 if value > 0 else value + 1 if value < -1 else value - 1)
                yield new


@operator
def epsilon(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            value = number(keyword.value)
            if keyword.arg in ("eps", "epsilon") and value:
                yield with_keyword(node, keyword.arg, literal(1e-6 if value != 1e-6 else 1e-5))
                yield with_keyword(node, keyword.arg, literal(value * 100))
    value = number(node)
    if isinstance(value, float) and 0 < value < 5e-2:
        yield literal(value * 10)


@operator
def momentum(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            value = number(keyword.value)
            if keyword.arg in ("momentum", "decay") and value is not None:
                yield with_keyword(node, keyword.arg, literal(round(1 - value, 6)))
                yield with_keyword(node, keyword.arg, literal(0.99))


@operator
def order_of_operations(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Sub | ast.Div | ast.MatMult | ast.Pow | ast.FloorDiv):
            yield ast.BinOp(node.right, node.op, node.left)
        left = node.left
        if isinstance(left, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) != isinstance(
            left.op, ast.Mult | ast.Div
        ):
            yield ast.BinOp(left.left, left.op, ast.BinOp(left.right, node.op, node.right))


@operator
def missing_transpose(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node.value
    if called(node) in ("swapaxes", "transpose", "moveaxis"):
        assert isinstance(node, ast.Call)
        module = dotted(node.func).startswith("jnp.")
        yield node.args[0] if module else node.func.value  # type: ignore[attr-defined]


@operator
def extra_transpose(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield ast.BinOp(node.left, node.op, ast.Attribute(node.right, "mT", ast.Load()))


@operator
def swapped_arguments(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call):
        return
    name = called(node)
    plain = [a for a in node.args if not isinstance(a, ast.Starred)]
    commutative = {"maximum", "minimum", "add", "multiply", "logical_and", "logical_or", "swapaxes"}
    if len(plain) == len(node.args) == 2 and name not in commutative:
        yield ast.Call(node.func, node.args[::-1], node.keywords)
    if len(plain) == len(node.args) == 3:
        a, b, c = node.args
        yield ast.Call(node.func, [a, c, b], node.keywords)
    for index, argument in enumerate(node.args):
        if isinstance(argument, ast.List | ast.Tuple) and len(argument.elts) == 2 and name in ("concatenate", "stack"):
            new = copy.deepcopy(node)
            new.args[index] = type(argument)(argument.elts[::-1], ast.Load())
            yield new


_REDUCTIONS = {"mean": ["sum", "max"], "sum": ["mean"], "max": ["min", "mean"], "min": ["max"], "argmax": ["argmin"],
               "argmin": ["argmax"], "prod": ["sum"], "any": ["all"], "all": ["any"], "std": ["var"], "var": ["std"],
               "maximum": ["minimum"], "minimum": ["maximum"], "cumsum": ["cumprod"], "cumprod": ["cumsum"],
               "logsumexp": ["max"], "median": ["mean"]}  # fmt: skip


@operator
def wrong_reduction(node: ast.AST) -> Iterator[ast.AST]:
    for name in _REDUCTIONS.get(called(node), ()):
        assert isinstance(node, ast.Call)
        if name == "max" and called(node) == "logsumexp":
            continue
        yield renamed(node, name)


@operator
def dropped_term(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        if not isinstance(node.left, ast.Constant):
            yield node.left
        if not isinstance(node.right, ast.Constant) and not isinstance(node.op, ast.Div):
            yield node.right


@operator
def wrong_default(node: ast.AST) -> Iterator[ast.AST]:
    """A keyword argument left out, so that the default of the JAX side holds, where that is another value."""
    if not isinstance(node, ast.Call):
        return
    defaults = signature(dotted(node.func))
    for index, keyword in enumerate(node.keywords):
        if keyword.arg is None or keyword.arg in ("rngs", "dtype", "precision") or keyword.arg not in defaults:
            continue
        try:
            same = ast.literal_eval(keyword.value) == defaults[keyword.arg]
        except (ValueError, TypeError):
            same = False
        if not same:
            yield ast.Call(node.func, node.args, node.keywords[:index] + node.keywords[index + 1 :])


_CALLS_OF_ARRAYS = {"sum", "mean", "matmul", "einsum", "softmax", "log_softmax", "exp", "tanh", "sigmoid", "relu",
                    "gelu", "normalize", "gather", "take_along_axis", "square", "abs", "sqrt"}  # fmt: skip


@operator
def detached_gradient(node: ast.AST) -> Iterator[ast.AST]:
    function = dotted(node.func) if isinstance(node, ast.Call) else ""
    if function in ("jax.lax.stop_gradient", "lax.stop_gradient"):
        yield node.args[0]  # type: ignore[attr-defined]
    elif function.startswith("self.") or called(node) in _CALLS_OF_ARRAYS:
        yield ast.Call(ast.parse("jax.lax.stop_gradient", mode="eval").body, [node], [])  # type: ignore[list-item]


@operator
def biased_statistic(node: ast.AST) -> Iterator[ast.AST]:
    if called(node) in ("std", "var"):
        assert isinstance(node, ast.Call)
        given = [k for k in node.keywords if k.arg == "ddof"]
        if given:
            yield ast.Call(node.func, node.args, [k for k in node.keywords if k.arg != "ddof"])
        else:
            yield ast.Call(node.func, node.args, [*node.keywords, ast.keyword("ddof", literal(1))])


@operator
def mask_polarity(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        yield node.operand
    if dotted(getattr(node, "func", node)) == "jnp.where" and isinstance(node, ast.Call) and len(node.args) == 3:
        condition = ast.Call(ast.parse("jnp.logical_not", mode="eval").body, [node.args[0]], [])
        yield ast.Call(node.func, [condition, *node.args[1:]], [])


@operator
def off_by_one(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Slice):
        for part in ("lower", "upper"):
            value = number(getattr(node, part)) if getattr(node, part) is not None else None
            if isinstance(value, int):
                new = copy.deepcopy(node)
                setattr(new, part, literal(value + 1 if value != -1 else -2))
                yield new
            elif isinstance(getattr(node, part), ast.Name):
                new = copy.deepcopy(node)
                setattr(new, part, ast.BinOp(getattr(node, part), ast.Sub(), literal(1)))
                yield new
    if isinstance(node, ast.Subscript):
        value = number(node.slice)
        if isinstance(value, int):
            yield ast.Subscript(node.value, literal(value + 1 if value >= 0 else value - 1), ast.Load())
        elif isinstance(node.slice, ast.Tuple):
            for index, part in enumerate(node.slice.elts):
                value = number(part)
                if isinstance(value, int):
                    new = copy.deepcopy(node)
                    new.slice.elts[index] = literal(value + 1 if value >= 0 else value - 1)  # type: ignore[attr-defined]
                    yield new
    if called(node) == "range":
        assert isinstance(node, ast.Call)
        new = copy.deepcopy(node)
        at = 0 if len(node.args) == 1 else 1
        new.args[at] = ast.BinOp(node.args[at], ast.Sub(), literal(1))
        yield new
    if called(node) in ("tril", "triu"):
        assert isinstance(node, ast.Call)
        yield ast.Call(node.func, [node.args[0], literal(-1 if called(node) == "tril" else 1)], [])


@operator
def dtype(node: ast.AST) -> Iterator[ast.AST]:
    if called(node) == "astype":
        assert isinstance(node, ast.Call)
        for other in ("jnp.int32", "jnp.bfloat16"):
            yield ast.Call(node.func, [ast.parse(other, mode="eval").body], [])
    elif called(node) in ("mean", "matmul", "softmax", "einsum", "sum") and isinstance(node, ast.Call):
        for other in ("jnp.bfloat16", "jnp.int32", "jnp.float16"):
            cast = ast.Attribute(node, "astype", ast.Load())
            yield ast.Call(cast, [ast.parse(other, mode="eval").body], [])


_SIGNS: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.Div(), ast.Div: ast.Mult(), ast.Pow: ast.Mult(),
}  # fmt: skip


@operator
def sign(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        yield ast.BinOp(node.left, _SIGNS[type(node.op)], node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and number(node) is None:
        yield node.operand


_COMPARISONS: dict[type[ast.cmpop], list[ast.cmpop]] = {
    ast.Lt: [ast.LtE(), ast.GtE()], ast.LtE: [ast.Lt(), ast.Gt()], ast.Gt: [ast.GtE(), ast.LtE()],
    ast.GtE: [ast.Gt(), ast.Lt()], ast.Eq: [ast.NotEq()], ast.NotEq: [ast.Eq()],
}  # fmt: skip


@operator
def comparison(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in _COMPARISONS.get(type(node.ops[0]), []):
            yield ast.Compare(node.left, [other], node.comparators)


_ACTIVATIONS = {"relu": ["leaky_relu", "abs"], "gelu": ["silu"], "silu": ["gelu"], "sigmoid": ["tanh"], "elu": ["selu"],
                "tanh": ["sigmoid"], "softmax": ["log_softmax"], "log_softmax": ["softmax"], "hard_swish": ["silu"],
                "leaky_relu": ["relu"], "sin": ["cos"], "cos": ["sin"], "log": ["log1p"], "exp": ["expm1"],
                "rsqrt": ["sqrt"], "sqrt": ["square"]}  # fmt: skip
_HOMES = {"abs": "jnp", "square": "jnp", "log1p": "jnp", "expm1": "jnp"}


@operator
def activation(node: ast.AST) -> Iterator[ast.AST]:
    name = called(node)
    if isinstance(node, ast.Call) and dotted(node.func).startswith(("jax.nn.", "jnp.", "jax.lax.")):
        for other in _ACTIVATIONS.get(name, ()):
            keywords = [k for k in node.keywords if k.arg == "axis"]
            home = _HOMES.get(other) or ("jax.nn" if hasattr(jax.nn, other) else "jnp")
            yield ast.Call(ast.parse(f"{home}.{other}", mode="eval").body, node.args, keywords)
        for keyword in node.keywords:
            if keyword.arg == "approximate" and isinstance(keyword.value, ast.Constant):
                yield with_keyword(node, "approximate", literal(not keyword.value.value))


@operator
def constant(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp):
        for side in ("left", "right"):
            value = number(getattr(node, side))
            if value is not None:
                new = copy.deepcopy(node)
                setattr(new, side, literal(value + 1 if isinstance(value, int) else round(value * 1.1, 9)))
                yield new
    if isinstance(node, ast.Call):
        for index, argument in enumerate(node.args):
            value = number(argument)
            if isinstance(value, float):
                new = copy.deepcopy(node)
                new.args[index] = literal(round(value * 0.9, 9) if value else 0.1)
                yield new


@operator
def layer_setting(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Call):
        return
    for keyword in node.keywords:
        value = number(keyword.value)
        if keyword.arg in ("padding", "strides", "stride", "kernel_dilation", "feature_group_count", "num_groups",
                           "input_dilation", "window_strides") and isinstance(value, int):  # fmt: skip
            yield with_keyword(node, keyword.arg, literal(value - 1 if value > 1 else value + 1))
        if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, bool):
            if keyword.arg not in ("approximate",):
                yield with_keyword(node, str(keyword.arg), literal(not keyword.value.value))
        if isinstance(value, float) and keyword.arg not in ("eps", "epsilon", "momentum"):
            yield with_keyword(node, str(keyword.arg), literal(round(value * 1.5, 9) or 0.1))
