"""Templates: JAX code with holes, bracketed so that a filled template means what it says.

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

from .precedence import ARGUMENT, ATOM, Piece, bracket, precedence, slot

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
    found: dict[str, int] = {}
    if isinstance(tree, ast.Name):
        found[tree.id] = ARGUMENT
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.Name):
                    found[child.id] = slot(parent, field, child)
    return found


def _bound(tree: ast.expr) -> frozenset[str]:
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            bound |= {a.arg for a in node.args.args}
        elif isinstance(node, ast.comprehension):
            bound |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return frozenset(bound)
