"""Pieces of JAX code: templates with holes, and brackets wherever a piece needs them in the place it is put.

``"jnp.sum({input}, axis={dim?}, keepdims={keepdim?})"`` has three holes. ``{dim?}`` drops its whole keyword when
the argument equals the torch default (which must then be JAX's default too: a test holds that).
``{size:shape}`` turns ``*size`` arguments into one shape expression.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

ANY, ARGUMENT, CONDITIONAL, OR, AND, NOT, COMPARE = 0, 1, 2, 3, 4, 5, 6
BITOR, BITXOR, BITAND, SHIFT, ADD, MULTIPLY, UNARY, POWER, AWAIT, ATOM = 7, 8, 9, 10, 11, 12, 13, 14, 15, 16

_BINARY: dict[type[ast.operator], int] = {
    ast.BitOr: BITOR,
    ast.BitXor: BITXOR,
    ast.BitAnd: BITAND,
    ast.LShift: SHIFT,
    ast.RShift: SHIFT,
    ast.Add: ADD,
    ast.Sub: ADD,
    ast.Mult: MULTIPLY,
    ast.Div: MULTIPLY,
    ast.FloorDiv: MULTIPLY,
    ast.Mod: MULTIPLY,
    ast.MatMult: MULTIPLY,
    ast.Pow: POWER,
}


@dataclass(frozen=True)
class Piece:
    """Rendered code and how tightly its outermost operator binds."""

    text: str
    precedence: int = ATOM


class Part(Piece):
    """A rule's answer for one part of a pair: it stands for the whole ``f(x)[i]``, ``f(x).name`` or used name."""


def enclosed_tuple(text: str) -> bool:
    """Whether a tuple's text is all inside one pair of brackets: ``(a, b)``, not ``(a), (b)``."""
    if not text.startswith("("):
        return False
    try:
        inner = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return False
    return inner.col_offset == 1


def precedence(node: ast.expr) -> int:
    """How tightly the outermost operator of ``node`` binds. An unparenthesised tuple binds loosest."""
    match node:
        case ast.NamedExpr() | ast.Yield() | ast.YieldFrom() | ast.Tuple():
            return ANY
        case ast.Lambda() | ast.Starred() | ast.Slice():
            return ARGUMENT
        case ast.IfExp():
            return CONDITIONAL
        case ast.BoolOp():
            return OR if isinstance(node.op, ast.Or) else AND
        case ast.UnaryOp():
            return NOT if isinstance(node.op, ast.Not) else UNARY
        case ast.Compare():
            return COMPARE
        case ast.BinOp():
            return _BINARY[type(node.op)]
        case ast.Await():
            return AWAIT
        case ast.Constant() if isinstance(node.value, int | float) and node.value < 0:
            return UNARY
        case _:
            return ATOM


def slot(parent: ast.AST, field: str, child: ast.AST | None = None) -> int:
    """The loosest precedence that may stand in ``field`` of ``parent`` without brackets."""
    match parent:
        case ast.BinOp():
            own = _BINARY[type(parent.op)]
            if isinstance(parent.op, ast.Pow):
                return AWAIT if field == "left" else UNARY
            return own if field == "left" else own + 1
        case ast.UnaryOp():
            return NOT if isinstance(parent.op, ast.Not) else UNARY
        case ast.BoolOp():
            return (OR if isinstance(parent.op, ast.Or) else AND) + 1
        case ast.Compare():
            return BITOR
        case ast.Attribute() | ast.Await():
            return ATOM
        case ast.Subscript():
            return ATOM if field == "value" else ANY
        case ast.Call():
            return ATOM if field == "func" else ARGUMENT
        case ast.IfExp():
            return CONDITIONAL if field == "orelse" else OR
        case ast.Starred():
            return BITOR
        case ast.comprehension():
            return OR
        case ast.FormattedValue():
            return CONDITIONAL
        case ast.keyword() | ast.Lambda() | ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.Slice():
            return ARGUMENT
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp() | ast.NamedExpr() | ast.arguments():
            return ARGUMENT
        case ast.withitem() | ast.Assert() | ast.Raise():
            return ARGUMENT
        case _:
            return ANY


def bracket(piece: Piece, needed: int) -> str:
    """The text of ``piece``, in brackets if it binds more loosely than ``needed``."""
    if piece.precedence < needed or (needed > ARGUMENT and bare_newline(piece.text)):
        return f"({piece.text})"
    if needed == ATOM and piece.text[:1].isdigit() and piece.text.isdigit():
        return f"({piece.text})"
    return piece.text


def assigned(piece: Piece) -> str:
    """The text of ``piece`` behind a ``=``, in brackets if it goes over several lines without any."""
    return f"({piece.text})" if bare_newline(piece.text) else bracket(piece, ARGUMENT)


def breaks_line(text: str) -> bool:
    """Whether a text goes over more than one line."""
    return "\n" in text or "\r" in text


def bare_newline(text: str) -> bool:
    """Whether a line break stands outside all brackets and strings, so that it only parses inside brackets."""
    if not breaks_line(text):
        return False
    try:
        return len(ast.parse(text.strip()).body) != 1
    except SyntaxError:
        return True


# --- templates --------------------------------------------------------------------------------------------------------

_HOLE = re.compile(r"(?P<keyword>(?:,\s*|(?<=\())\w+=)?\{(?P<name>\w+)(?P<optional>\?)?(?::(?P<spec>\w+))?\}")


@dataclass(frozen=True)
class Hole:
    """One place of a template that an argument fills."""

    name: str
    optional: bool
    spec: str | None
    prefix: str
    """Text in front that goes when an optional hole is dropped: ``", axis="``, or empty."""
    slot: int
    """The loosest precedence that may stand here without brackets."""


@dataclass(frozen=True)
class Template:
    """A compiled template: literal text and holes in turn."""

    text: str
    parts: tuple[str | Hole, ...]
    precedence: int
    names: frozenset[str]
    """Free names: import roots (``jnp``) and helpers."""

    @property
    def holes(self) -> tuple[Hole, ...]:
        return tuple(p for p in self.parts if isinstance(p, Hole))

    def uses(self, name: str) -> int:
        """How many holes take the argument ``name``."""
        return sum(hole.name == name for hole in self.holes)

    def fill(self, values: Mapping[str, Piece | None]) -> Piece:
        """The template with its holes filled. None drops an optional hole; a missing value is a KeyError."""
        out: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            value = values[part.name]
            if value is None:
                if not part.optional:
                    raise KeyError(f"hole {part.name!r} of {self.text!r} has no value")
                continue
            out.append(part.prefix + bracket(value, part.slot))
        text = "".join(out)
        # A dropped keyword may have been the first argument.
        text = re.sub(r"\(\s*,\s*", "(", text) if "(," in text.replace(" ", "") else text
        alone = len(self.parts) == 1 and isinstance(self.parts[0], Hole)
        if alone:
            only = values[self.parts[0].name]  # type: ignore[union-attr]
            return only if only is not None else Piece(text, self.precedence)
        return Piece(text, self.precedence)


@cache
def compile_template(text: str) -> Template:
    """Parse a template. Raises ValueError if it is not one Python expression."""
    pieces: list[str | tuple[str, bool, str | None, str]] = []
    skeleton: list[str] = []
    starts: dict[int, int] = {}
    last = 0
    for count, match in enumerate(_HOLE.finditer(text)):
        literal = text[last : match.start()]
        prefix = match["keyword"] or ""
        optional = match["optional"] is not None
        if not optional:
            literal, prefix = literal + prefix, ""
        pieces.append(literal)
        pieces.append((match["name"], optional, match["spec"], prefix))
        skeleton.append(literal + prefix)
        starts[count] = sum(map(len, skeleton))
        skeleton.append(_placeholder(count))
        last = match.end()
    pieces.append(text[last:])
    skeleton.append(text[last:])
    joined = "".join(skeleton)
    try:
        tree = ast.parse(joined.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"template is not an expression: {text!r}") from error
    slots = _slots(tree)
    names = frozenset(
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not re.fullmatch(r"_hole\d+_", n.id)
    ) - _bound(tree)
    parts: list[str | Hole] = []
    index = 0
    for piece in pieces:
        if isinstance(piece, str):
            if piece:
                parts.append(piece)
        else:
            name, optional, spec, prefix = piece
            parts.append(Hole(name, optional, spec, prefix, slots.get(_placeholder(index), ATOM)))
            index += 1
    return Template(text, tuple(parts), precedence(tree), names)


def _placeholder(index: int) -> str:
    return f"_hole{index}_"


def _slots(tree: ast.expr) -> dict[str, int]:
    """For each placeholder, the precedence its place asks for."""
    slots: dict[str, int] = {}
    if isinstance(tree, ast.Name):
        slots[tree.id] = ARGUMENT
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.Name):
                    slots[child.id] = slot(parent, field, child)
    return slots


def _bound(tree: ast.expr) -> frozenset[str]:
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            bound |= {a.arg for a in node.args.args}
        elif isinstance(node, ast.comprehension):
            bound |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return frozenset(bound)
