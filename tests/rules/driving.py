"""Drives every rule with made-up calls and collects what it emits: names, keywords, refusals.

A call is made from one choice for each parameter (a tensor, a number, a tuple, a dtype, ...). The base call gives each
required parameter its most telling choice; then each parameter in turn takes every other choice.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.facts import (
    BOOL,
    FLOAT,
    INT,
    TENSOR,
    UNKNOWN,
    Fact,
    Layer,
    ListOf,
    Object,
    Qual,
    Scalar,
    Tensor,
    Tuple,
)
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.rule.pieces import Piece, precedence
from t2j_lsp.translate.rule.record import REGISTRY, Argument, Call, CannotHoist, Refusal, Rule, Signature

CHOICES: tuple[tuple[str, Fact], ...] = (
    ("x", Tensor(3, "float")),
    ("y", TENSOR),
    ("z", UNKNOWN),
    ("i", Tensor(2, "int")),
    ("m", Tensor(3, "bool")),
    ("w", Tensor(2, variable=True)),
    ("n", INT),
    ("1", Scalar("int", 1)),
    ("-1", Scalar("int", -1)),
    ("2", Scalar("int", 2)),
    ("0.5", Scalar("float", 0.5)),
    ("a", FLOAT),
    ("True", Scalar("bool", True)),
    ("False", Scalar("bool", False)),
    ("b", BOOL),
    ("None", Scalar("none")),
    ("(2, 3)", Tuple((Scalar("int", 2), Scalar("int", 3)))),
    ("[2, 3]", Tuple((Scalar("int", 2), Scalar("int", 3)))),
    ("sizes", ListOf(INT)),
    ("[x, y]", Tuple((TENSOR, TENSOR))),
    ("xs", ListOf(TENSOR)),
    ("half", Qual("torch.float16")),
    ("dtype", Object("dtype")),
    ("device", Object("device")),
    *(
        (repr(s), Scalar("str", s))
        for s in ("mean", "sum", "none", "reflect", "tanh", "amax", "add", "fro", "xy", "left", "same")
    ),
)
"""Texts and facts that arguments take. Names stand for values that only the running program knows."""

TENSORS = {"self", "input", "other", "tensor", "x", "weight", "index", "mask", "src", "source", "condition", "tensors"}
SHAPES = {"size", "shape", "sizes", "dims", "repeats", "normalized_shape", "padding", "pad", "shapes"}

TEXTS = {"pattern": "b c h w -> b (c h) w", "equation": "ij,jk->ik", "reduction": "mean", "reduce": "amax"}


@dataclass
class FakeSite:
    """A place of a call that offers everything and records what it is told."""

    unpacked: int = 0
    mapped: ast.expr | None = None
    statement: bool = False
    x64: bool = False
    index: int | str | None = None
    in_module: bool = False
    without_gradient: bool = False
    traced: bool = False
    copies: bool = False
    rereads: bool = False
    resumes: bool = False
    renames: Mapping[str, str] = field(default_factory=dict)
    optimizer: OptimizerPlan | None = field(
        default_factory=lambda: OptimizerPlan("model", rate="0.1", cycled="momentum")
    )
    notes: list[str] = field(default_factory=list)

    def note(self, reason: str) -> None:
        self.notes.append(reason)

    def fresh(self, hint: str) -> str:
        return f"{hint}2"

    def hoist(self, piece: Piece, hint: str, node: ast.expr | None = None) -> Piece | None:
        return Piece(f"{hint}2")

    def made(self, node: ast.expr, handed: bool = False) -> list[tuple[str, ast.Call]]:
        return []

    def computed(self, node: ast.expr) -> bool:
        return isinstance(node, ast.BinOp)

    def walked(self, node: ast.expr) -> ast.expr | None:
        return None

    def lines(self, text: str) -> int:
        return 1

    def rngs(self) -> str:
        return "rngs"

    def claim(self, names: frozenset[str]) -> None:
        return None

    def owns(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name)

    def fact(self, node: ast.expr) -> Fact:
        return UNKNOWN

    def called(self, node: ast.expr) -> Layer | None:
        return None

    def parameter(self, node: ast.expr, constant: bool = False) -> tuple[str, bool] | None:
        return ("w", False) if isinstance(node, ast.Name) and node.id == "w" else None


@dataclass(frozen=True)
class Emitted:
    """What one rule gave for one call."""

    rule: Rule
    call: Call
    text: str
    """The JAX code."""
    site: FakeSite


SITES = (
    FakeSite(),
    FakeSite(x64=True),
    FakeSite(statement=True),
    *(FakeSite(unpacked=n) for n in (2, 3)),
    FakeSite(index=0),
    FakeSite(index="indices"),
    FakeSite(in_module=True),
)


@functools.cache
def argument(name: str, text: str, fact: Fact) -> Argument:
    node = ast.parse(text, mode="eval").body
    return Argument(name, Piece(text, precedence(node)), fact, node)


def _calls(signature: Signature) -> Iterator[dict[str, Argument]]:
    """The base call of a signature, the same on a parameter, and then its neighbours."""
    if signature.parameters is None:
        owned = re.match(r"torch\.(Tensor|dtype|device|Size|utils\.tensorboard\.SummaryWriter)\.", signature.name)
        for text, fact in CHOICES[:6]:
            yield {"self": argument("self", text, fact)} if owned else {}
        return
    base: dict[str, Argument] = {}
    for p in signature.parameters:
        if p.kind == "star":
            text, fact = ("x", TENSOR) if p.name in TENSORS else ("2", Scalar("int", 2))
            base[p.name] = _star(p.name, [argument(p.name, text, fact), argument(p.name, text, fact)])
        elif p.default is not None:
            default = ast.parse(p.default, mode="eval").body
            base[p.name] = Argument(p.name, Piece(p.default, precedence(default)), UNKNOWN, None, given=False)
        elif p.kind == "starstar":
            base[p.name] = Argument(p.name, Piece(""), given=False)
        else:
            base[p.name] = argument(p.name, *_required(p.name))
    yield base
    for name in list(base)[:1]:
        yield base | {name: argument(name, "w", Tensor(2, variable=True))}
    for p in signature.parameters:
        for text, fact in CHOICES if p.kind != "starstar" else ():
            one = argument(p.name, text, fact)
            yield base | {p.name: _star(p.name, [one]) if p.kind == "star" else one}
        if p.kind == "star":
            for text in ("-1", "n", "*sizes"):
                items = [argument(p.name, "2", Scalar("int", 2)), _item(p.name, text)]
                yield base | {p.name: _star(p.name, items)}


def _required(name: str) -> tuple[str, Fact]:
    if name in TEXTS:
        return repr(TEXTS[name]), Scalar("str", TEXTS[name])
    if name in TENSORS:
        return "x", Tensor(3, "float")
    return ("(2, 3)", CHOICES[16][1]) if name in SHAPES else ("1", Scalar("int", 1))


def _item(name: str, text: str) -> Argument:
    if text.startswith("*"):
        node = ast.parse(f"f({text})", mode="eval").body.args[0]  # type: ignore[attr-defined]
        return Argument(name, Piece(text), INT, node)
    return argument(name, text, INT)


def _star(name: str, items: list[Argument]) -> Argument:
    text = ", ".join(i.text for i in items)
    return Argument(name, Piece(f"({text},)" if len(items) == 1 else f"({text})"), items=tuple(items))


@dataclass
class Driven:
    """Everything that came out of the rules."""

    emitted: dict[str, Emitted] = field(default_factory=dict)
    """By rule name and text."""
    templates: set[tuple[Signature, str]] = field(default_factory=set)
    raised: dict[str, str] = field(default_factory=dict)
    """Exceptions by the name of the rule."""
    notes: set[tuple[str, str]] = field(default_factory=set)
    """Names of rules and what they report about calls that they convert."""
    refusals: set[tuple[str, str]] = field(default_factory=set)
    """Names of rules and the reasons they refuse a call with."""


_NODE = ast.parse("f()", mode="eval").body
"""What calls that stand in no text are said to be written as."""


@functools.cache
def drive() -> Driven:
    """Call every rule with everything."""
    load_rules()
    driven = Driven()
    emit = Call.emit

    def recording(self: Call, template: str, **extra: str | Piece | Argument | None) -> Piece:
        driven.templates.add((self.signature, template))
        return emit(self, template, **extra)

    Call.emit = recording  # type: ignore[method-assign]
    try:
        for one in REGISTRY:
            for signature in one.signatures if one.emit is not None else ():
                for index, arguments in enumerate(_calls(signature)):
                    for site in SITES if index < 2 else SITES[:1]:
                        _call(one, signature, arguments, replace(site, notes=[]), driven)
    finally:
        Call.emit = emit  # type: ignore[method-assign]
    return driven


def _call(one: Rule, signature: Signature, arguments: dict[str, Argument], site: FakeSite, driven: Driven) -> None:
    for method in (False, True) if one.method else (False,):
        call = Call(signature, arguments, site, _NODE, method)
        assert one.emit is not None
        try:
            result = one.emit(call)
        except CannotHoist:
            continue
        except Exception as error:  # noqa: BLE001 - a rule that raises is reported with its call
            shown = {k: v.text for k, v in arguments.items() if v.given}
            driven.raised.setdefault(one.name, f"{type(error).__name__}: {error} for {shown}")
            continue
        driven.notes |= {(one.name, note) for note in site.notes}
        if isinstance(result, Refusal):
            driven.refusals.add((one.name, result.reason))
        elif result is not None:
            driven.emitted.setdefault(f"{one.name}: {result.text}", Emitted(one, call, result.text, site))
