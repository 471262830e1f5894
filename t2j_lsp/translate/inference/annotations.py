"""Facts from type annotations."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from t2j_lsp.translate.rule.definitions import Class, Instance, is_module
from t2j_lsp.translate.rule.facts import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    UNKNOWN,
    Fact,
    Layer,
    ListOf,
    ModuleClass,
    Object,
    Qual,
    Tensor,
    Tuple,
    TypeAlias,
)
from t2j_lsp.translate.rule.join import join
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import CLASSES, class_written
from t2j_lsp.translate.rule.names import ARRAY_LIBRARIES

_PLAIN = {"int": INT, "float": FLOAT, "bool": BOOL, "str": STR, "None": NONE}
_SEQUENCES = {"list", "List", "Sequence", "Iterable", "Iterator", "set", "Set", "frozenset", "deque", "Collection"}
_MAPPINGS = {"dict", "Dict", "Mapping", "OrderedDict", "MutableMapping", "DefaultDict", "defaultdict"}


_JAXTYPING = "jaxtyping."


def annotation_fact(node: ast.expr | None, look_up: Callable[[ast.expr], Fact]) -> Fact:
    """The fact that an annotation states. ``look_up`` gives the fact of a name or attribute in scope."""
    if node is None:
        return UNKNOWN
    match node:
        case ast.Constant(value=None):
            return NONE
        case ast.Constant(value=str() as text):
            try:
                return annotation_fact(ast.parse(text.strip(), mode="eval").body, look_up)
            except SyntaxError:
                return UNKNOWN
        case ast.BinOp(op=ast.BitOr()):
            return join(annotation_fact(node.left, look_up), annotation_fact(node.right, look_up))
        case ast.Name() | ast.Attribute():
            return _named(node, look_up)
        case ast.Subscript():
            return _generic(node, look_up)
        case _:
            return UNKNOWN


def is_type(fact: Fact) -> bool:
    """Whether a value is a type of which more is known than its name."""
    if isinstance(fact, Qual):
        of_torch = fact.name in LAYERS or fact.name in CLASSES and CLASSES[fact.name].fact is not None
        return of_torch or class_written(fact.name) is not None
    return isinstance(fact, TypeAlias | Class)


def _named(node: ast.Name | ast.Attribute, look_up: Callable[[ast.expr], Fact]) -> Fact:
    fact = look_up(node)
    match fact:
        case Qual() if (known := CLASSES.get(fact.name)) is not None and known.fact is not None:
            return known.fact
        case Qual() if fact.name in LAYERS:
            return Layer(fact.name)
        case Qual() if (written := class_written(fact.name)) is not None:
            return written
        case Qual() if fact.name.partition(".")[0] in ARRAY_LIBRARIES:
            return Object("array", fact.name)
        case Class():
            return Instance(fact)
        case TypeAlias(stated=stated):
            return stated
        case _:
            pass
    if isinstance(node, ast.Name):
        if node.id in _PLAIN and fact == UNKNOWN:
            return _PLAIN[node.id]
        if node.id in ("list", "tuple", "dict", "Sequence", "Tuple", "List"):
            return ListOf(UNKNOWN)
    return UNKNOWN


def _generic(node: ast.Subscript, look_up: Callable[[ast.expr], Fact]) -> Fact:
    shaped = _shaped(node, look_up)
    if shaped is not None:
        return shaped
    name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]

    def inner(index: int) -> Fact:
        return annotation_fact(parts[index], look_up) if index < len(parts) else UNKNOWN

    if name == "Optional":
        return inner(0)
    if name == "Union":
        out = inner(0)
        for index in range(1, len(parts)):
            out = join(out, inner(index))
        return out
    if name in ("tuple", "Tuple"):
        if len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is Ellipsis:
            return ListOf(inner(0))
        return Tuple(tuple(inner(i) for i in range(len(parts))))
    if name in _SEQUENCES:
        return ListOf(inner(0))
    if name in _MAPPINGS:
        return ListOf(inner(1), inner(0))
    if name in ("type", "Type"):
        return ModuleClass() if is_module(inner(0)) else UNKNOWN
    if name == "Callable" and len(parts) == 2 and is_module(annotation_fact(parts[1], look_up)):
        return ModuleClass()
    if name in ("Final", "ClassVar", "Annotated"):
        return inner(0)
    return UNKNOWN


def axes_of(node: ast.expr | None, look_up: Callable[[str], Fact | None]) -> tuple[tuple[int | None, ...], bool] | None:
    """The sizes of the last axes that jaxtyping says of a tensor, and whether these are all; None for other types."""
    match node:
        case ast.Subscript(value=ast.Name(id=kind), slice=ast.Tuple(elts=[_, ast.Constant(value=str() as axes)])):
            fact = look_up(kind)
        case _:
            return None
    if not isinstance(fact, Qual) or not fact.name.startswith(_JAXTYPING):
        return None
    names = axes.split()
    many = [i for i, axis in enumerate(names) if "*" in axis or "..." in axis]
    last = names[many[-1] + 1 :] if many else names
    return tuple(int(axis) if axis.isdecimal() else None for axis in last), not many


def _shaped(node: ast.Subscript, look_up: Callable[[ast.expr], Fact]) -> Fact | None:
    """What jaxtyping says of a tensor: ``Float[Tensor, "batch 3"]`` has floats and two axes; None for other types."""
    match node.slice, look_up(node.value):
        case ast.Tuple(elts=[inner, ast.Constant(value=str() as axes)]), Qual(name=name) if name.startswith(_JAXTYPING):
            fact = annotation_fact(inner, look_up)
        case _:
            return None
    if not isinstance(fact, Tensor) or fact.rank is not None:
        return fact
    kind, names = name.removeprefix(_JAXTYPING).lower(), axes.split()
    many = any("*" in axis or "..." in axis for axis in names)
    dtype = f"torch.{kind}" if kind.rstrip("0123456789") in ("float", "int", "uint") else None
    dtype = kind if kind in _PLAIN else "int" if kind in ("integer", "uint") else dtype
    return replace(fact, rank=None if many else len(names), dtype=dtype)
