"""What usually makes a JAX line differ from its PyTorch line, and the edit of it that would mend that.

A cause is a row of `CAUSES`: a function from a place in the code to edits that might mend it, best first. None of them
is believed: `experiment` applies each and runs the program again, and only an edit that mends the difference is said.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from t2j_lsp.check.program.rewriting import ParsedText, SpanEdit
from t2j_lsp.symbols import bound_as


@dataclass(frozen=True)
class Candidate:
    """An edit to try: what it does, in the imperative, and what would be the cause if it mends the difference."""

    edit: SpanEdit
    title: str
    cause: str


@dataclass(frozen=True)
class ExpressionPair:
    """An expression of the JAX side, and what the PyTorch side says beside it."""

    text: ParsedText
    node: ast.expr
    modules: frozenset[str]
    """Names that are modules in the JAX file: ``jnp.mean(x)`` is a function and ``x.mean()`` a method."""
    torch: tuple[ast.AST, ...] = ()
    numbers: tuple[Any, ...] = field(default=())
    """The numbers of the PyTorch lines, in order."""

    @property
    def name(self) -> str:
        """The last part of the name that is called."""
        match self.node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                return name
        return ""

    @property
    def layer(self) -> str:
        """The name without dimensions: ``BatchNorm`` for ``BatchNorm2d``."""
        return re.sub(r"\dd$", "", self.name)

    @property
    def call(self) -> ast.Call:
        assert isinstance(self.node, ast.Call)
        return self.node

    @property
    def is_method(self) -> bool:
        root: ast.AST = self.call.func
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(self.call.func, ast.Attribute) and not (
            isinstance(root, ast.Name) and root.id in self.modules
        )

    def torch_arguments(self, *names: str) -> Iterator[Any]:
        """The literal values of arguments that are so called on the PyTorch lines."""
        for tree in self.torch:
            for node in ast.walk(tree):
                if isinstance(node, ast.keyword) and node.arg in names:
                    with_value = _literal(node.value)
                    if with_value is not None:
                        yield with_value

    def set(self, name: str, value: str, cause: str, position: int | None = None) -> Iterator[Candidate]:
        """The candidate that gives an argument a value that it does not have."""
        edit = self.text.with_argument(self.call, name, value, position)
        if edit is not None and not self._has(name, value, position):
            yield Candidate(edit, f"Set {name}={value}", cause)

    def _has(self, name: str, value: str, position: int | None) -> bool:
        given = self.given(name, position)
        return given is not None and ast.unparse(given) == ast.unparse(ast.parse(value, mode="eval").body)

    def given(self, name: str, position: int | None = None) -> ast.expr | None:
        """The argument of a name or at a position."""
        keyword = next((k.value for k in self.call.keywords if k.arg == name), None)
        if keyword is None and position is not None and 0 <= position < len(self.call.args):
            return self.call.args[position]
        return keyword


def _literal(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


# --- the causes -------------------------------------------------------------------------------------------------------

AXES = {
    **dict.fromkeys(("mean", "sum", "prod", "max", "min", "amax", "amin", "var", "std", "all", "any", "median"), 1),
    **dict.fromkeys(("argmax", "argmin", "cumsum", "cumprod", "logsumexp", "softmax", "log_softmax", "sort"), 1),
    **dict.fromkeys(("argsort", "flip", "concatenate", "stack", "squeeze", "expand_dims", "glu", "standardize"), 1),
    **dict.fromkeys(("take", "take_along_axis", "roll", "repeat", "split", "norm", "quantile"), 2),
}
"""Where the axis stands among the arguments of a function; of a method, one earlier."""
KEEPING = frozenset(
    ("mean", "sum", "prod", "max", "min", "amax", "amin", "var", "std", "all", "any", "argmax", "argmin", "median",
     "logsumexp", "norm", "quantile")
)  # fmt: skip
NORMS = frozenset(("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm"))
EPSILONS = (1e-5, 1e-6, 1e-8, 1e-12, 1e-3)
OTHER_NAMES = {
    "var": ("std",), "std": ("var",), "sum": ("mean",), "mean": ("sum", "max"), "max": ("min",), "min": ("max",),
    "argmax": ("argmin",), "argmin": ("argmax",), "maximum": ("minimum",), "minimum": ("maximum",),
    "repeat": ("tile",), "tile": ("repeat",), "softmax": ("log_softmax",), "log_softmax": ("softmax",),
    "round": ("trunc", "floor"), "floor": ("trunc", "round"), "trunc": ("floor",), "relu": ("relu6", "gelu"),
    "relu6": ("relu",), "gelu": ("relu", "silu"), "silu": ("gelu", "hard_silu"), "hard_silu": ("silu",),
    "exp": ("expm1",), "log": ("log1p", "log2"), "log1p": ("log",), "expm1": ("exp",),
    "sigmoid": ("log_sigmoid", "hard_sigmoid"), "remainder": ("fmod",), "fmod": ("remainder",),
    "logical_and": ("logical_or",), "logical_or": ("logical_and",), "triu": ("tril",), "tril": ("triu",),
}  # fmt: skip


OPERATORS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}


def approximation(place: ExpressionPair) -> Iterator[Candidate]:
    """GELU: JAX takes the tanh approximation by default, PyTorch the exact function."""
    if place.name != "gelu":
        return
    exact = "jax.nn.gelu approximates with tanh unless told not to, and PyTorch's gelu is exact"
    yield from place.set("approximate", "False", exact, 1)
    yield from place.set("approximate", "True", "PyTorch's gelu approximates with tanh here", 1)


def kept_axes(place: ExpressionPair) -> Iterator[Candidate]:
    """A reduction that keeps its axis on one side alone."""
    if place.name in KEEPING:
        yield from place.set("keepdims", "True", "PyTorch keeps the reduced axis here")
        if place.given("keepdims") is not None:
            yield from place.set("keepdims", "False", "PyTorch drops the reduced axis here")


def correction(place: ExpressionPair) -> Iterator[Candidate]:
    """Variance: PyTorch divides by n - 1 by default, JAX by n."""
    if place.name in ("var", "std"):
        yield from place.set("ddof", "1", "PyTorch divides by n - 1 here, and JAX by n unless told not to")
        if place.given("ddof") is not None:
            yield from place.set("ddof", "0", "PyTorch divides by n here")


def epsilon(place: ExpressionPair) -> Iterator[Candidate]:
    """The small number that keeps a division finite."""
    small = [n for n in place.numbers if isinstance(n, float) and 0 < n < 0.1]
    values = dict.fromkeys([*small, *EPSILONS])
    if isinstance(place.node, ast.Call):
        name = "eps" if place.given("eps") is not None else "epsilon"
        if place.layer in NORMS or place.given(name) is not None:
            for value in values:
                yield from place.set(name, repr(value), f"PyTorch's epsilon is {value} here")
    elif isinstance(place.node, ast.Constant) and isinstance(place.node.value, float) and 0 < place.node.value < 0.1:
        for value in values:
            if value != place.node.value:
                edit = place.text.replaced(place.node, repr(value))
                yield Candidate(edit, f"Use {value}", f"PyTorch's epsilon is {value} here")


def momentum(place: ExpressionPair) -> Iterator[Candidate]:
    """Running statistics: PyTorch's momentum is the weight of the new value, Flax's that of the old one."""
    if place.layer != "BatchNorm":
        return
    given = _literal(place.given("momentum"))
    why = "PyTorch's momentum weighs the new value, and Flax's the old one"
    torch_momenta = [m for m in (*place.torch_arguments("momentum"), 0.1) if isinstance(m, float)]
    for value in dict.fromkeys(round(1 - m, 12) for m in (*torch_momenta, given) if isinstance(m, float)):
        yield from place.set("momentum", repr(value), why)
    for value in dict.fromkeys(torch_momenta):
        yield from place.set("momentum", repr(value), f"PyTorch's momentum is {value} here")


def fast_variance(place: ExpressionPair) -> Iterator[Candidate]:
    """Flax's mean of squares less squared mean, which loses digits where the mean is large."""
    if place.layer in NORMS:
        why = "Flax's fast variance loses digits where the mean is far from zero"
        yield from place.set("use_fast_variance", "False", why)


def bias(place: ExpressionPair) -> Iterator[Candidate]:
    """A layer with or without a bias."""
    if place.layer in ("Linear", "LinearGeneral", "Conv", "ConvTranspose", "Einsum", *NORMS):
        yield from place.set("use_bias", "False", "PyTorch's layer has no bias here")
        if place.given("use_bias") is not None:
            yield from place.set("use_bias", "True", "PyTorch's layer has a bias here")


def padding(place: ExpressionPair) -> Iterator[Candidate]:
    """Flax pads convolutions to the same size by default, PyTorch not at all."""
    if place.layer not in ("Conv", "ConvTranspose", "avg_pool", "max_pool"):
        return
    for value in place.torch_arguments("padding"):
        if isinstance(value, int):
            yield from place.set("padding", repr(value), f"PyTorch pads by {value} here")
    yield from place.set("padding", '"VALID"', "PyTorch does not pad here, and Flax pads unless told not to")


def dropout(place: ExpressionPair) -> Iterator[Candidate]:
    """The rate at which elements are dropped, not kept."""
    rate = place.given("rate", 0) if place.layer == "Dropout" else None
    value = _literal(rate)
    if isinstance(value, float):
        why = "the rate is the share that is dropped, in PyTorch and in Flax"
        yield from place.set("rate", repr(round(1 - value, 12)), why, 0)


def axis(place: ExpressionPair) -> Iterator[Candidate]:
    """The axis of a reduction, of a softmax, of joining."""
    position = AXES.get(place.name)
    if position is None:
        return
    position -= place.is_method
    arguments = [*place.torch_arguments("dim", "axis"), *(n for n in place.numbers if isinstance(n, int | tuple))]
    wanted = [v for v in arguments if isinstance(v, tuple) or (isinstance(v, int) and -4 <= v < 4)]
    several: list[Any] = [(1, 2), (2, 3), (-2, -1), None] if place.name in KEEPING else []
    for value in dict.fromkeys([*wanted, -1, 1, 0, -2, 2, *several]):
        where = "all axes" if value is None else f"axis {value}" if isinstance(value, int) else f"the axes {value}"
        yield from place.set("axis", repr(value), f"PyTorch takes {where} here", position)


def function(place: ExpressionPair) -> Iterator[Candidate]:
    """A function with a similar name or purpose."""
    for name in OTHER_NAMES.get(place.name, ()):
        edit = place.text.renamed(place.call, name)
        if edit is not None:
            yield Candidate(edit, f"Call {name}", f"PyTorch's function is {name} here, not {place.name}")


def square_root(place: ExpressionPair) -> Iterator[Candidate]:
    """A division by a variance instead of its root, or the other way round."""
    match place.node:
        case ast.BinOp(op=ast.Div(), right=ast.BinOp(op=ast.Add()) as divisor) if "jnp" in place.modules:
            edit = place.text.replaced(divisor, f"jnp.sqrt({place.text.of(divisor)})")
            if place.text.of(divisor):
                yield Candidate(edit, "Take the square root", "PyTorch divides by the square root here")
        case ast.Call(args=[inner]) if place.name == "sqrt" and place.text.of(inner):
            edit = place.text.replaced(place.node, f"({place.text.of(inner)})")
            yield Candidate(edit, "Take no square root", "PyTorch takes no square root here")


def transposed(place: ExpressionPair) -> Iterator[Candidate]:
    """A matrix product with a matrix or with its transpose."""
    match place.node:
        case ast.BinOp(op=ast.MatMult(), right=ast.Attribute(value=inner, attr="T" | "mT") as right):
            edit = place.text.replaced(right, place.text.of(inner))
            yield Candidate(edit, "Do not transpose", "PyTorch multiplies by the matrix itself here")
        case ast.BinOp(op=ast.MatMult(), right=ast.Name() | ast.Attribute() | ast.Subscript() as right):
            edit = place.text.replaced(right, f"{place.text.of(right)}.T")
            yield Candidate(edit, "Transpose the matrix", "PyTorch multiplies by the transposed matrix here")


def operator(place: ExpressionPair) -> Iterator[Candidate]:
    """A sum for a difference, a product for a quotient."""
    match place.node:
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as operation):
            old, new = OPERATORS[type(operation)]
            edit = place.text.operator(place.node, old, new)
            if edit is not None:
                yield Candidate(edit, f"Use {new} instead of {old}", f"PyTorch has {new} here")


def number(place: ExpressionPair) -> Iterator[Candidate]:
    """A number that the PyTorch line has another one for."""
    value = _literal(place.node)
    if isinstance(value, int | float) and not isinstance(value, bool):
        for other in dict.fromkeys(place.numbers):
            if isinstance(other, int | float) and other != value:
                edit = place.text.replaced(place.node, repr(other))
                yield Candidate(edit, f"Use {other} instead of {value}", f"PyTorch has {other} here")


Cause = Callable[[ExpressionPair], Iterator[Candidate]]
CAUSES: tuple[Cause, ...] = (
    approximation, correction, momentum, epsilon, kept_axes, bias, padding, dropout, fast_variance, axis, square_root,
    function, transposed, number, operator,
)  # fmt: skip
"""What is tried, in this order."""
_OF_CALLS = frozenset(
    (approximation, correction, momentum, kept_axes, bias, padding, dropout, fast_variance, axis, function)
)


def candidates(
    text: ParsedText, lines: Sequence[int], torch: tuple[ast.AST, ...], causes: Sequence[Cause] = CAUSES
) -> Iterator[Candidate]:
    """The edits to try on the statements around some lines, each once."""
    modules = frozenset(_modules(text.tree))
    numbers = tuple(_numbers(torch))
    nodes = [n for line in dict.fromkeys(lines) for n in expressions(text.tree, line)]
    tried: set[SpanEdit] = set()
    for cause in causes:
        for node in nodes:
            if cause in _OF_CALLS and not isinstance(node, ast.Call):
                continue
            for candidate in cause(ExpressionPair(text, node, modules, torch, numbers)):
                if candidate.edit not in tried:
                    tried.add(candidate.edit)
                    yield candidate


def statement(tree: ast.AST, line: int) -> ast.stmt | None:
    """The innermost statement around a line."""
    inside = [
        node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(inside, key=lambda node: (node.lineno, -(node.end_lineno or 0)), default=None)


def expressions(tree: ast.AST, line: int) -> Iterator[ast.expr]:
    """The expressions of the statement around a line, outermost first; not what its body holds."""
    statements = statement(tree, line)
    todo: list[ast.AST] = [statements] if statements is not None else []
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.expr):
            yield node
        todo += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt)]


def _modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (bound_as(a) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (bound_as(a) for a in node.names if a.name.islower())


def _numbers(trees: tuple[ast.AST, ...]) -> Iterator[Any]:
    """The numbers and the tuples of integers on the PyTorch lines."""
    for tree in trees:
        for node in ast.walk(tree):
            value = _literal(node) if isinstance(node, ast.expr) else None
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield value
            elif isinstance(value, tuple | list) and value and all(type(v) is int for v in value):
                yield tuple(value)
