"""PyTorch and JAX code in one form, in which a right translation and its source are nearly the same tree.

Methods are calls with their receiver first, arguments have their names, and words that mean the same are one.
"""

from __future__ import annotations

import ast
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from .features import parse, same

MODULES = frozenset({
    "torch", "nn", "F", "jnp", "jax", "lax", "nnx", "optax", "np", "numpy", "math", "functools", "optim", "random",
    "init", "flax", "operator", "itertools",
})  # fmt: skip
_AXIS_SECOND = (
    "mean", "sum", "prod", "max", "min", "var", "std", "all", "any", "argmax", "argmin", "cumsum", "cumprod", "softmax",
    "log_softmax", "logsumexp", "sort", "argsort", "flip", "concatenate", "stack", "squeeze", "expand_dims", "glu",
)  # fmt: skip
_POSITIONS = dict.fromkeys(_AXIS_SECOND, ("a", "axis", "keepdims")) | {
    "norm": ("a", "ord", "axis", "keepdims"), "split": ("a", "count", "axis"), "take_along_axis": ("a", "i", "axis"),
    "clip": ("a", "min", "max"), "where": ("condition", "true", "false"), "gelu": ("a", "approximate"),
    "sgd": ("lr", "momentum", "nesterov"), "Conv": ("in", "out", "kernel_size", "strides", "padding"),
    "LayerNorm": ("in", "epsilon"), "max_pool": ("a", "window", "strides", "padding"),
    "avg_pool": ("a", "window", "strides", "padding"), "repeat": ("a", "count", "axis"), "roll": ("a", "count", "axis"),
    "where_fill": ("a", "mask", "value"),
}  # fmt: skip
"""Names of positional arguments, where they may be given either way."""
_OPERATORS = {
    "add": "Add", "subtract": "Sub", "sub": "Sub", "mul": "Mult", "multiply": "Mult", "div": "Div", "divide": "Div",
    "@": "MatMult", "dot": "MatMult", "**": "Pow", "power": "Pow",
}  # fmt: skip
_TRANSPOSED = ("T", "mT")
_LOSSES = frozenset({
    "mse_loss", "l1_loss", "smooth_l1_loss", "cross_entropy", "nll_loss", "binary_cross_entropy", "kl_div",
    "binary_cross_entropy_with_logits", "huber_loss", "cosine_embedding_loss", "margin_ranking_loss",
})  # fmt: skip
"""Losses of PyTorch that take the mean unless told not to; those of optax never do."""
_DEFAULTS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "LayerNorm": ({"epsilon": "1e-05"}, {"epsilon": "1e-06"}),
    "GroupNorm": ({"epsilon": "1e-05"}, {"epsilon": "1e-06"}),
    "BatchNorm": ({"epsilon": "1e-05"}, {"epsilon": "1e-05"}),
    "gelu": ({"approximate": "False"}, {"approximate": "True"}),
    "var": ({"ddof": "1"}, {"ddof": "0"}),
    "std": ({"ddof": "1"}, {"ddof": "0"}),
    "Conv": ({"padding": "0"}, {"padding": "'SAME'"}),
    "Linear": ({"use_bias": "True"}, {"use_bias": "True"}),
    "stack": ({"axis": "0"}, {"axis": "0"}),
    "concatenate": ({"axis": "0"}, {"axis": "0"}),
    "split": ({"axis": "0"}, {"axis": "0"}),
    "max_pool": ({"strides": "window"}, {"strides": "1"}),
    "avg_pool": ({"strides": "window"}, {"strides": "1"}),
    "adamw": ({"weight_decay": "0.01"}, {"weight_decay": "0.0001"}),
    "leaky_relu": ({"slope": "0.01"}, {"slope": "0.01"}),
}
"""What is taken where an argument is left out: by PyTorch, by JAX. This is how a silent mistake is seen."""
_JAX = frozenset({"jnp", "jax", "lax", "nnx", "optax", "flax"})
_WORTH = {"'VALID'": "0", "'same'": "'SAME'", "'none'": "False", "'tanh'": "True"}


@dataclass(frozen=True)
class Tree:
    """A piece of code: what it is, and its parts by their places. ``text`` tells names and numbers apart."""

    label: str
    parts: tuple[tuple[str, Tree], ...] = ()
    text: str = ""
    labels: Counter[str] = field(default_factory=Counter, compare=False, repr=False)

    def like(self, other: Tree) -> float:
        """How much of two trees is the same, from 0 to 1."""
        shared = (self.labels & other.labels).total()
        return 2 * shared / (self.labels.total() + other.labels.total())

    def inside(self, depth: int) -> Iterator[Tree]:
        """The parts, and their parts, so deep; outer ones first."""
        if depth:
            for _, part in self.parts:
                yield part
            for _, part in self.parts:
                yield from part.inside(depth - 1)


@dataclass(frozen=True)
class Statement:
    """A simple statement, or the head of a compound one, and in what it stands: ``for``, ``if``, ``def name``."""

    tree: Tree
    within: tuple[str, ...]
    line: int
    end_line: int


class _Side(threading.local):
    torch = False


_side = _Side()


def tree(label: str, *parts: tuple[str, Tree], text: str = "") -> Tree:
    labels = Counter([f"{label} {text}"])
    for _, part in parts:
        labels.update(part.labels)
    return Tree(label, tuple(parts), text, labels)


def statements(code: str, torch: bool = False, only: frozenset[str] = frozenset()) -> list[Statement]:
    """The statements of a program or of some lines of one, in order; empty where it is no Python.

    ``torch`` says whose defaults methods have; functions are known by their package. With ``only``, other classes and
    functions than these are left out: helpers, that is.
    """
    module = parse(code)
    if module is None:
        return []
    body = [n for n in module.body if not only or not isinstance(n, ast.ClassDef | ast.FunctionDef) or n.name in only]
    before, _side.torch = _side.torch, torch
    try:
        return list(_statements(body, ()))
    finally:
        _side.torch = before


def _statements(body: list[ast.stmt], within: tuple[str, ...]) -> Iterator[Statement]:
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Pass():
                continue
            case ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.FunctionDef(name=name, args=arguments, decorator_list=decorators, body=inner):
                name = "__call__" if name == "forward" else name
                marks = [("decorator", expression(d)) for d in decorators]
                count = str(len([a for a in arguments.args if a.arg != "self"]))
                head = tree("def", *marks, ("count", tree("const", text=count)), text=name)
                yield Statement(head, within, node.lineno, node.lineno)
                yield from _statements(inner, (*within, f"def {name}"))
            case ast.ClassDef(name=name, body=inner):
                yield from _statements(inner, (*within, f"class {name}"))
            case ast.For(target=target, iter=items, body=inner):
                head = tree("for", ("target", expression(target)), ("in", expression(items)))
                yield Statement(head, within, node.lineno, node.lineno)
                yield from _statements(inner, (*within, "for"))
            case ast.If(test=test, body=inner, orelse=other) | ast.While(test=test, body=inner, orelse=other):
                kind = type(node).__name__.lower()
                yield Statement(tree(kind, ("test", expression(test))), within, node.lineno, node.lineno)
                yield from _statements(inner, (*within, kind))
                yield from _statements(other, (*within, "else"))
            case ast.With(body=inner):
                yield from _statements(inner, within)
            case _:
                yield Statement(_simple(node), within, node.lineno, node.end_lineno or node.lineno)


def _simple(node: ast.stmt) -> Tree:
    match node:
        case ast.Assign(targets=[target], value=value):
            return tree("=", ("target", expression(target)), ("value", expression(value)))
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return tree("=", ("target", expression(target)), ("value", expression(value)))
        case ast.AugAssign(target=target, op=op, value=value):
            done = tree(f"op {type(op).__name__}", ("0", expression(target)), ("1", expression(value)))
            return tree("=", ("target", expression(target)), ("value", done))
        case ast.Return(value=ast.expr() as value):
            return tree("return", ("value", expression(value)))
        case ast.Expr(value=value):
            return tree("statement", ("value", expression(value)))
    return tree(type(node).__name__)


def expression(node: ast.expr) -> Tree:
    """An expression in the common form."""
    match node:
        case ast.Constant(value=value):
            return tree("const", text=_number(value))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            return tree("const", text=f"-{_number(value)}")
        case ast.Name(id=name):
            return tree("name", text=name)
        case ast.Attribute(attr=name, value=value) if name in _TRANSPOSED:
            return tree("call T", ("a", expression(value)))
        case ast.Attribute():
            return tree("name", text=ast.unparse(node).removesuffix("[...]"))
        case ast.Subscript():
            return _subscript(node)
        case ast.Call():
            return _call(node)
        case ast.BinOp(left=left, op=op, right=right):
            return _operation(type(op).__name__, expression(left), expression(right))
        case ast.UnaryOp(op=op, operand=operand):
            return tree(f"op {type(op).__name__}", ("0", expression(operand)))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return tree(f"op {type(op).__name__}", ("0", expression(left)), ("1", expression(right)))
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tree("sequence", *((str(i), expression(e)) for i, e in enumerate(elements)))
        case ast.Lambda(body=body):
            return tree("lambda", ("body", expression(body)))
        case ast.Starred(value=value):
            return tree("star", ("a", expression(value)))
    inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    inner += [c for g in getattr(node, "generators", ()) for c in (g.target, g.iter, *g.ifs)]
    return tree(type(node).__name__, *((str(i), expression(child)) for i, child in enumerate(inner)))


def _number(value: object) -> str:
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return f"{value:g}"
    return repr(value)


def _subscript(node: ast.Subscript) -> Tree:
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    value = expression(node.value)
    if all(isinstance(item, ast.Constant) and item.value is ... for item in items):
        return value  # a parameter's value
    new = [item for item in items if isinstance(item, ast.Constant) and item.value is None]
    rest = [i for i in items if i not in new and not (isinstance(i, ast.Slice) and i.lower is i.upper is i.step)]
    rest = [item for item in rest if not (isinstance(item, ast.Constant) and item.value is ...)]
    if new:
        value = tree("call expand_dims", ("a", value))
    return tree("index", ("a", value), *((f"{i}", expression(e)) for i, e in enumerate(rest))) if rest else value


def _call(node: ast.Call) -> Tree:
    name, receiver, torch = _callee(node.func)
    arguments = [*receiver, *node.args]
    given = [expression(a) for a in arguments]
    if name in _TRANSPOSED and given:
        return tree("call T", ("a", given[0]))
    if name == "shape" and len(given) == 2:  # x.size(0)
        whole = tree("name", text=f"{ast.unparse(arguments[0])}.shape")
        return tree("index", ("a", whole), ("0", given[1]))
    if name == "masked_fill" and len(given) == 3:
        given, name = [given[1], given[2], given[0]], "where"
    if name in ("square", "sqrt", "rsqrt") and len(given) == 1:
        power = {"square": "2", "sqrt": "0.5", "rsqrt": "-0.5"}[name]
        return _operation("Pow", given[0], tree("const", text=power))
    if name in _OPERATORS and len(given) == 2:
        return _operation(_OPERATORS[name], *given)
    reduced = torch and name in _LOSSES
    name = same(name)
    places = _POSITIONS.get(name, ())
    parts = [(places[i] if i < len(places) else str(i), part) for i, part in enumerate(given)]
    parts += [(same(k.arg or "**"), expression(k.value)) for k in node.keywords]
    if reduced:
        parts = [part for part in parts if part[0] != "reduction"]
    written = {slot for slot, _ in parts}
    defaults = _DEFAULTS.get(name, ({}, {}))[0 if torch else 1]
    parts += [(slot, tree("const", text=value)) for slot, value in defaults.items() if slot not in written]
    parts = [(slot, _worth(slot, part, dict(parts))) for slot, part in parts]
    call = tree(f"call {name}", *parts)
    return tree("call mean", ("a", call)) if reduced else call


def _worth(slot: str, part: Tree, parts: dict[str, Tree]) -> Tree:
    """A value that is spelled in two ways, in one."""
    if part.label != "const":
        return part
    if slot == "ddof":
        return tree("const", text={"True": "1", "False": "0"}.get(part.text, part.text))
    if part.text == "window":
        return parts.get("window", parts.get("kernel_size", part))
    return tree("const", text=_WORTH.get(part.text, part.text))


def _operation(name: str, left: Tree, right: Tree) -> Tree:
    """An operation; roots and divisions by them have one form each."""
    if name == "Pow" and right == tree("const", text="0.5"):
        return tree("call sqrt", ("a", left))
    if name == "Pow" and right == tree("const", text="-0.5"):
        return tree("op Div", ("0", tree("const", text="1")), ("1", tree("call sqrt", ("a", left))))
    for one, other in ((left, right), (right, left)):
        if name == "Mult" and other.label == "op Div" and other.parts[0][1] == tree("const", text="1"):
            return tree("op Div", ("0", one), ("1", other.parts[1][1]))
    return tree(f"op {name}", ("0", left), ("1", right))


def _callee(node: ast.expr) -> tuple[str, list[ast.expr], bool]:
    """The name that is called, the array or object whose method it is, and whether it has PyTorch's defaults."""
    match node:
        case ast.Attribute(attr=name, value=value):
            root = value
            while isinstance(root, ast.Attribute):
                root = root.value
            owner = root.id if isinstance(root, ast.Name) else ""
            if owner in MODULES:
                return _plain(name), [], owner not in _JAX
            return _plain(name), [] if value is root and owner == "self" else [value], _side.torch
        case ast.Name(id=name):
            return _plain(name), [], True  # a class or function of its own, or a helper, which is as PyTorch's
        case ast.Call():
            return "result", [node], False
    return type(node).__name__, [], False


def _plain(name: str) -> str:
    """The common name; those stay whose arguments are yet to be looked at."""
    return name if name in _LOSSES or name == "masked_fill" else same(name)
