"""Binds a call to a rule: arguments get the parameters' names, as in Python, and the value what the rule says of it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from .factory import FactoryKeywords
from .facts import BOOL, FLOAT, INT, NONE, STR, TENSOR, UNKNOWN, Fact, Layer, ListOf, Object, Scalar, Shape, Tensor
from .optimizer_plan import OptimizerPlan
from .pieces import Piece, precedence
from .record import IGNORED, Argument, Call, Rule, Signature

Render = Callable[[ast.expr], Piece]


def argument(call: ast.Call, index: int, name: str) -> ast.expr | None:
    """An argument of a call by its position or name."""
    if len(call.args) > index and not any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
        return call.args[index]
    return next((k.value for k in call.keywords if k.arg == name), None)


def spelled(keywords: Iterable[ast.keyword]) -> Iterator[ast.keyword]:
    """Keywords, with those of ``**dict(a=1)`` and ``**{"a": 1}`` as if they stood in the call."""
    for keyword in keywords:
        match keyword:
            case ast.keyword(arg=None, value=ast.Call(func=ast.Name(id="dict"), args=[], keywords=inner)):
                yield from spelled(inner)
            case ast.keyword(arg=None, value=ast.Dict(keys=keys, values=values)) if all(
                isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys
            ):
                for key, value in zip(keys, values, strict=True):
                    yield ast.keyword(str(getattr(key, "value", "")), value)
            case _:
                yield keyword


def bind(signature: Signature, node: ast.Call, receiver: ast.expr | None) -> dict[str, list[ast.expr]] | None:
    """Which argument nodes each parameter gets; None if the call doesn't fit the signature.

    ``receiver`` is the object of a method call; it takes the first parameter. Parameters that aren't given are absent.
    """
    if signature.parameters is None:
        return None
    bound: dict[str, list[ast.expr]] = {}
    positional = [p for p in signature.parameters if p.kind in ("normal", "star")]
    queue = ([receiver] if receiver is not None else []) + list(node.args)
    index = 0
    for argument in queue:
        if index >= len(positional):
            return None
        parameter = positional[index]
        if isinstance(argument, ast.Starred) and parameter.kind != "star":
            return None
        bound.setdefault(parameter.name, []).append(argument)
        if parameter.kind != "star":
            index += 1
    names = {p.name: p for p in signature.parameters if p.kind != "starstar"}
    rest = next((p.name for p in signature.parameters if p.kind == "starstar"), None)
    for keyword in spelled(node.keywords):
        if isinstance(keyword, FactoryKeywords) or _writes_nowhere(keyword):
            continue
        if keyword.arg is None and rest is not None:
            bound.setdefault(rest, []).append(keyword.value)
            continue
        if keyword.arg is None or keyword.arg in bound:
            return None
        if keyword.arg in names:
            bound[keyword.arg] = [keyword.value]
        elif rest is not None:
            bound.setdefault(rest, []).append(keyword.value)
        else:
            alias = _ALIASES.get(keyword.arg)
            if alias not in names or alias in bound:
                return None
            bound[alias] = [keyword.value]
    for parameter in signature.parameters:
        required = parameter.kind in ("normal", "keyword") and parameter.default is None
        if required and parameter.name not in bound:
            return None
    return bound


def _writes_nowhere(keyword: ast.keyword) -> bool:
    """Whether it is ``out=None``, which says that the result is a new tensor."""
    return keyword.arg == "out" and isinstance(keyword.value, ast.Constant) and keyword.value.value is None


# torch accepts the array library's names too.
_ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}


class Bound(dict[str, Argument]):
    """A call's arguments by name, which remember what a rule looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> Argument:
        self.seen.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Argument | None = None) -> Argument | None:  # type: ignore[override]
        self.seen.add(name)
        return super().get(name, default)

    def unseen(self, ignored: frozenset[str]) -> list[str]:
        """Arguments that the call gives and no rule looked at: they would be dropped in silence."""
        names = list(self)
        return [n for n, a in self.items() if a.given and n not in self.seen | ignored and n != names[0]]


def arguments_of(
    signature: Signature,
    bound: Mapping[str, list[ast.expr]],
    render: Render,
    fact: Callable[[ast.expr], Fact],
    keywords: Iterable[ast.keyword] = (),
    render_ignored: Render | None = None,
    render_needed: Render | None = None,
    shown: Callable[[ast.expr], ast.expr] = lambda node: node,
) -> Bound:
    """Arguments as rules see them; defaults are filled in from the signature's text.

    ``keywords`` are those of the call: items of a ``**`` parameter carry their names. ``render_ignored`` renders the
    arguments that JAX has no use for, ``render_needed`` those that PyTorch has no default for. ``shown`` gives what
    rules see of an argument's node.
    """
    out = Bound()
    for parameter in signature.parameters or ():
        nodes = bound.get(parameter.name)
        if parameter.kind == "star":
            items = tuple(Argument(parameter.name, render(n), fact(n), shown(n)) for n in nodes or ())
            text = ", ".join(i.text for i in items)
            out[parameter.name] = Argument(
                parameter.name, Piece(f"({text},)" if len(items) == 1 else f"({text})"), given=bool(items), items=items
            )
        elif parameter.kind == "starstar":
            names = {k.value: k.arg or "" for k in keywords}
            items = tuple(Argument(names.get(n, ""), render(n), fact(n), shown(n)) for n in nodes or ())
            out[parameter.name] = Argument(parameter.name, Piece(""), given=bool(items), items=items)
        elif nodes and parameter.name in IGNORED:
            # It goes: nothing in it is to be reported.
            out[parameter.name] = Argument(
                parameter.name, (render_ignored or render)(nodes[0]), fact(nodes[0]), nodes[0]
            )
        elif nodes:
            node = nodes[0]
            how = render_needed if render_needed is not None and parameter.default is None else render
            out[parameter.name] = Argument(parameter.name, how(node), fact(node), shown(node))
        elif parameter.default is not None:
            default = _parsed_default(parameter.default)
            out[parameter.name] = Argument(
                parameter.name, Piece(parameter.default, precedence(default)), _default_fact(default), None, given=False
            )
    return out


@cache
def _parsed_default(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _default_fact(node: ast.expr) -> Fact:
    if isinstance(node, ast.Constant):
        value = node.value
        if value is None:
            return NONE
        for kind, fact in ((bool, BOOL), (int, INT), (float, FLOAT), (str, STR)):
            if isinstance(value, kind):
                return Scalar(fact.kind, value)
    return UNKNOWN


@dataclass
class SilentSite:
    """A site for asking a rule about facts only: nothing is reported and nothing is hoisted."""

    unpacked: int = 0
    mapped: ast.expr | None = None
    statement: bool = False
    x64: bool = False
    index: int | str | None = None
    in_module: bool = False
    without_gradient: bool = False
    traced: bool = False
    copies: bool = False
    hands_flag: bool = False
    rereads: bool = False
    resumes: bool = False
    renames: Mapping[str, str] = field(default_factory=dict)
    optimizer: OptimizerPlan | None = None

    def claim(self, names: frozenset[str]) -> None:
        return None

    def init(self, arguments: str) -> str:
        return arguments

    def owns(self, node: ast.expr) -> bool:
        return False

    def fact(self, node: ast.expr) -> Fact:
        return UNKNOWN

    def called(self, node: ast.expr) -> Layer | None:
        return None

    def parameter(self, node: ast.expr, constant: bool = False) -> tuple[str, bool] | None:
        return None

    def walked_parameters(self) -> tuple[list[Tensor], bool]:
        return [], True

    def note(self, reason: str) -> None:
        return None

    def fresh(self, hint: str) -> str:
        return hint

    def hoist(self, piece: Piece, hint: str, node: ast.expr | None = None) -> Piece | None:
        return piece

    def lines(self, text: str) -> int:
        return 1

    def made(self, node: ast.expr, handed: bool = False) -> list[tuple[str, ast.Call]]:
        return []

    def walked(self, node: ast.expr) -> ast.expr | None:
        return None

    def computed(self, node: ast.expr) -> bool:
        return False

    def rngs(self) -> str:
        return "rngs"


def bind_facts(rule: Rule, node: ast.Call, facts: Mapping[ast.AST, Fact], receiver: Fact | None) -> Call | None:
    """The call as ``result`` functions see it: facts and literals, no rendered text."""
    target = node.func.value if receiver is not None and isinstance(node.func, ast.Attribute) else None
    for signature in rule.signatures:
        bound = bind(signature, node, target)
        if bound is None:
            continue
        arguments = arguments_of(
            signature,
            bound,
            lambda n: Piece(ast.unparse(n) if is_short(n) else "...", precedence(n)),
            lambda n: receiver if receiver is not None and n is target else facts.get(n, UNKNOWN),
            node.keywords,
        )
        return Call(signature, arguments, SilentSite(), node, method=receiver is not None)
    return None


def is_short(node: ast.expr) -> bool:
    """Whether unparsing it is cheap: results only look at names and literals."""
    return isinstance(node, ast.Name | ast.Constant | ast.UnaryOp | ast.Attribute)


_RESULTS: dict[str, Fact] = {
    "tensor": TENSOR,
    "scalar": Tensor(0),
    "bool tensor": Tensor(dtype="bool"),
    "int tensor": Tensor(dtype="int"),
    "float tensor": Tensor(dtype="float"),
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "str": STR,
    "shape": Shape(),
    "dtype": Object("dtype"),
    "device": Object("device"),
    "none": NONE,
    "tensors": ListOf(TENSOR),
    "datasets": ListOf(Object("dataset")),
    "distribution": Object("distribution"),
    "function": UNKNOWN,
    "unknown": UNKNOWN,
}


def stated_result(result: str) -> Fact:
    """The fact that a word for results says."""
    return _RESULTS[result]


def rule_result(rule: Rule, node: ast.Call, arguments: list[Fact], facts: Mapping[ast.AST, Fact], method: bool) -> Fact:
    """The fact of a call that ``rule`` answers. ``arguments`` are the positional facts, receiver first for a method."""
    result = rule.result
    if callable(result):
        call = bind_facts(rule, node, facts, arguments[0] if method and arguments else None)
        return result(call) if call is not None else TENSOR
    if result == "same":
        first = arguments[0] if arguments else UNKNOWN
        return replace(first, variable=False) if isinstance(first, Tensor) else TENSOR
    return _RESULTS[result]
