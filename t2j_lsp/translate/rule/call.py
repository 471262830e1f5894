"""One call as a rule function sees it: bound arguments, the place it stands at, templates to fill."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from .facts import UNKNOWN, Fact, Layer, Tensor
from .optimizer_plan import OptimizerPlan
from .pieces import ATOM, Piece, bracket, compile_template
from .signature import Signature


class _NoLiteral:
    def __repr__(self) -> str:
        return "NO_LITERAL"

    def __bool__(self) -> bool:
        return False


NO_LITERAL = _NoLiteral()


@lru_cache(maxsize=4096)
def _default(text: str) -> Any:
    """The value of a default of a signature, if it is a literal."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return NO_LITERAL


@dataclass(frozen=True)
class Argument:
    """One bound argument as a rule sees it.

    ``given`` tells whether the call spelled it out; ``node`` is None for a default. ``items`` holds the single
    arguments of a ``*size`` parameter.
    """

    name: str
    piece: Piece
    fact: Fact = UNKNOWN
    node: ast.expr | None = None
    given: bool = True
    items: tuple[Argument, ...] = ()

    @property
    def text(self) -> str:
        """The rendered JAX text, fit to stand as a call argument."""
        return bracket(self.piece, 1)

    @property
    def atom(self) -> str:
        """The rendered JAX text, fit to stand before ``.attribute`` or ``[index]``."""
        return bracket(self.piece, ATOM)

    def operand(self, needed: int) -> str:
        """The rendered JAX text, bracketed for an operator of precedence ``needed``."""
        return bracket(self.piece, needed)

    @property
    def literal(self) -> Any:
        """The Python value if the argument is a literal (``-1``, ``(2, 3)``, ``"mean"``, None), else ``NO_LITERAL``."""
        if self.node is None:
            return _default(self.piece.text)
        try:
            return ast.literal_eval(self.node)
        except (ValueError, SyntaxError, TypeError):
            return NO_LITERAL

    @property
    def is_none(self) -> bool:
        return self.literal is None

    @property
    def simple(self) -> bool:
        """Whether evaluating it twice costs nothing and changes nothing: a name, a literal, an attribute chain."""
        return self.node is None or is_simple(self.node)


@dataclass(frozen=True)
class Refusal:
    """A rule's answer that this call can't be converted surely, and why."""

    reason: str


class Site(Protocol):
    """What the engine offers a rule function at the place of a call."""

    def note(self, reason: str) -> None:
        """Report something worth knowing about this conversion (fidelity CLOSE)."""

    def fresh(self, hint: str) -> str:
        """A name that nothing in the file uses."""

    def hoist(self, piece: Piece, hint: str, node: ast.expr | None = None) -> Piece | None:
        """Bind ``piece`` to a fresh name in a statement before this one; None where that can't be done.

        ``node`` is the argument that it is the code of; else it is taken for all of this call's.
        """

    def lines(self, text: str) -> int:
        """On how many lines the statement stands with ``text`` in place of the call."""
        ...

    def rngs(self) -> str:
        """The expression for the ``nnx.Rngs`` in reach; the enclosing functions are given one."""

    def made(self, node: ast.expr, handed: bool = False) -> list[tuple[str, ast.Call]]:
        """The calls of PyTorch's functions whose values a variable is given in the same function, with their names.

        ``handed``: of a parameter, those that variables of its name are given anywhere.
        """
        ...

    def computed(self, node: ast.expr) -> bool:
        """Whether a value is arithmetic, or a variable that is given some in the same function."""
        ...

    def walked(self, node: ast.expr) -> ast.expr | None:
        """What is walked where a name is the variable of a loop or comprehension around it; None elsewhere."""
        ...

    @property
    def x64(self) -> bool: ...

    def init(self, arguments: str) -> str:
        """The arguments that give a layer PyTorch's initial values; nothing where they are left to Flax."""
        ...

    @property
    def statement(self) -> bool:
        """Whether the call is a statement by itself, so that its value is not used."""
        ...

    @property
    def unpacked(self) -> int:
        """Number of names the call's value is unpacked into (``a, b = f()``), 0 if it is not."""
        ...

    @property
    def mapped(self) -> ast.expr | None:
        """What ``map`` hands to the function that is named here, ``map(f, xs)``; None if that is something else."""
        ...

    @property
    def index(self) -> int | str | None:
        """The constant index or attribute read from the call's value (``x.max(1)[0]``), None otherwise."""
        ...

    @property
    def in_module(self) -> bool:
        """Whether the call stands in a method of an nn.Module."""
        ...

    @property
    def without_gradient(self) -> bool:
        """Whether the source takes no gradient of the call's value: in ``torch.no_grad()``, or ``.detach()`` of it."""
        ...

    @property
    def traced(self) -> bool:
        """Whether the call takes values out of an array where gradients are traced, in code that isn't compiled."""
        ...

    @property
    def hands_flag(self) -> bool:
        """Whether what is read is the flag that another tensor is given: ``requires_grad=p.requires_grad``."""
        ...

    @property
    def copies(self) -> bool:
        """Whether what the call gives must be a copy: the array is written into, or what it was made from."""
        ...

    @property
    def rereads(self) -> bool:
        """Whether the call reads a file that its function has written before."""
        ...

    @property
    def resumes(self) -> bool:
        """Whether the call reads a file that surely has a state for one of the program's optimizers."""
        ...

    @property
    def renames(self) -> Mapping[str, str]:
        """Names of helpers and imports that the user's code has taken, and what they are called instead."""
        ...

    def claim(self, names: frozenset[str]) -> None:
        """Say that these helpers and imports are used here."""

    @property
    def optimizer(self) -> OptimizerPlan | None:
        """What the file does with the optimizer that this call makes."""
        ...

    def owns(self, node: ast.expr) -> bool:
        """Whether a statement's name is a list of tensors that its function made, and that nothing else holds."""
        ...

    def fact(self, node: ast.expr) -> Fact:
        """What is known of any expression, also of a part of an argument."""
        ...

    def called(self, node: ast.expr) -> Layer | None:
        """The layer whose value an expression is, the last one of a Sequential; None where it may be another one."""
        ...

    def parameter(self, node: ast.expr, constant: bool = False) -> tuple[str, bool] | None:
        """The ``nnx.Variable`` that a node names, and whether it has Flax's layout; None if it is not one."""

    def walked_parameters(self) -> tuple[list[Tensor], bool]:
        """The parameters of the user's own that a walk over all meets, as in PyTorch, and whether there are others."""
        ...


@dataclass(frozen=True)
class Call:
    """A call (or attribute) bound to a rule's signature."""

    signature: Signature
    arguments: Mapping[str, Argument]
    site: Site
    node: ast.expr
    method: bool = False
    """Whether it was spelled as a method of its first argument."""

    def __getitem__(self, name: str) -> Argument:
        return self.arguments[name]

    def given(self, name: str) -> bool:
        """Whether the call spells this argument out with something else than the default."""
        argument = self.arguments.get(name)
        if argument is None or not argument.given:
            return False
        parameter = self.signature.by_name.get(name)
        default = parameter.default if parameter is not None else None
        return default is None or argument.piece.text != default

    def literal(self, name: str) -> Any:
        return self.arguments[name].literal

    def refuse(self, reason: str) -> Refusal:
        return Refusal(reason)

    def note(self, reason: str) -> None:
        self.site.note(reason)

    def shape(self, name: str) -> str:
        """A ``*size`` parameter as one shape expression: ``(2, 3)``, ``n`` or ``x.shape``."""
        return shape_text(self.arguments[name])

    def axes(self, name: str) -> str:
        """An int, tuple or list of dims as an axis expression: a literal list becomes a tuple."""
        argument = self.arguments[name]
        if isinstance(argument.node, ast.List):
            inner = argument.piece.text.strip()[1:-1].strip()
            return f"({inner},)" if len(argument.node.elts) == 1 else f"({inner})"
        return argument.text

    def emit(self, template: str, **extra: str | Piece | Argument | None) -> Piece:
        """Fill ``template`` with this call's arguments and ``extra``; optional holes at their default are dropped.

        Raises NeedsHoist through the engine if an argument with an effect is used twice and can't be hoisted.
        """
        compiled = compile_template(template)
        self.site.claim(compiled.names)
        if self.site.renames.keys() & compiled.names:
            compiled = compile_template(renamed(template, compiled.names, self.site.renames))
        values: dict[str, Piece | None] = {}
        for hole in compiled.holes:
            if hole.name in extra:
                value = extra[hole.name]
                values[hole.name] = (
                    value.piece if isinstance(value, Argument) else Piece(value) if isinstance(value, str) else value
                )
                continue
            argument = self.arguments[hole.name]
            if hole.optional and not self.given(hole.name):
                values[hole.name] = None
            elif hole.spec == "shape":
                values[hole.name] = Piece(shape_text(argument))
            elif compiled.uses(hole.name) > 1 and not argument.simple and hole.name not in values:
                values[hole.name] = self._once(argument)
            elif ":=" in argument.text and compiled.holes[0].name != hole.name:
                values[hole.name] = self._once(argument)  # what it names may be read by what stands before it now
            elif hole.name not in values:
                values[hole.name] = argument.piece
        return compiled.fill(values)

    def _once(self, argument: Argument) -> Piece:
        hint = argument.name if argument.name not in ("self", "input") else "x"
        hoisted = self.site.hoist(argument.piece, hint, argument.node)
        if hoisted is None:
            raise CannotHoist(argument.name)
        return hoisted


class CannotHoist(Exception):
    """An argument would be evaluated twice, and no statement can be put before the call to bind it once."""


def renamed(template: str, names: frozenset[str], renames: Mapping[str, str]) -> str:
    """A template with the names that the user's code has taken replaced."""
    for name in names & renames.keys():
        template = re.sub(rf"(?<![\w.{{]){name}\b(?!\s*=[^=])", renames[name], template)
    return template


def is_simple(node: ast.expr) -> bool:
    """Whether a second evaluation of ``node`` is free and without effect."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute():
            return is_simple(node.value)
        case ast.UnaryOp():
            return is_simple(node.operand)
        case ast.Subscript():
            return is_simple(node.value) and is_simple(node.slice)
        case ast.Tuple() | ast.List():
            return all(map(is_simple, node.elts))
        case _:
            return False


def shape_text(argument: Argument) -> str:
    """One shape expression from a ``*size`` parameter or from a parameter that takes a tuple."""
    items = argument.items if argument.items or argument.piece.text == "()" else (argument,)
    if len(items) == 1:
        only = items[0]
        if isinstance(only.node, ast.List):
            inner = only.piece.text.strip()[1:-1].strip().rstrip(",")
            return f"({inner},)" if len(only.node.elts) == 1 else f"({inner})"
        if isinstance(only.node, ast.Starred):
            inner = only.text.removeprefix("*")
            return inner if inner.endswith(".shape") else f"({only.text},)"
        return only.text
    return "(" + ", ".join(item.text for item in items) + ")"
