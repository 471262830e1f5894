"""Layers of Flax that a program doesn't have: helpers that ask for the class of a module need not ask for those.

A program that makes all of its modules itself, out of layers that it names, has no others. What other files and
libraries make, and layers that are made of layers, may be anything.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache

import libcst as cst

from t2j_lsp import symbols

from .constants import folded
from .definitions import definition
from .parts import of_parts, words
from .transformer import Transformer, transformed

NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")
LAYERS = frozenset(("Linear", "Conv", "ConvTranspose", "Embed", "Sequential", "SpectralNorm", "WeightNorm", *NORMS))
"""The layers that helpers ask for; none derives from another."""
HELD_BY: Mapping[str, tuple[str, ...]] = {
    "kernel": ("Linear", "Conv", "ConvTranspose"),
    "scale": NORMS,
    "embedding": ("Embed",),
    "mean": ("BatchNorm",),
    "var": ("BatchNorm",),
}
"""Attributes of layers, and which of the layers have them."""
_BY_NAME = frozenset(("Dict", "setattr", "__setattr__", "__dict__", "vars", "register_parameter", "register_buffer"))
"""What gives modules attributes of names that may be computed."""
_OF_HELPERS = frozenset(("_names",))
"""Attributes by which helpers know classes of their own; Flax has no such names."""
_DRAWING = frozenset(("Dropout", "SpectralNorm"))
_OTHER_WORDS = (
    "Module Param Variable Rngs Optimizer List Dict Pytree BatchStat Not State Initializer RngState RngStream"
)
_PLAIN = LAYERS | _DRAWING | frozenset(_OTHER_WORDS.split())
"""Classes of nnx in which no layers are."""
_LIBRARY_WORDS = """
jax optax numpy scipy pandas matplotlib seaborn sklearn tqdm PIL yaml torch torchvision torchtext tensorboardX
gym gymnasium
"""
_LIBRARIES = sys.stdlib_module_names | frozenset(_LIBRARY_WORDS.split())
"""What may be imported and makes no module of Flax."""


def without_absent(texts: Mapping[str, str], user: ast.Module, named: Iterable[str]) -> dict[str, str]:
    """The texts of helpers that ask for no layer which a program doesn't have; ``named`` are those that it names."""
    if not any("isinstance" in text for text in texts.values()):
        return dict(texts)
    own = _read(user)
    read = [own, *map(_read_helper, texts.values())]
    if (mentioned := _mentioned(read, user)) is None:
        return dict(texts)
    absent = set(LAYERS - mentioned)
    if not mentioned & _DRAWING and not any(one.keeps_rngs for one in read):
        absent.add("RngState")
    words = {*own.strings, *(word for one in read for word in one.keywords)}
    tuples = {name: classes for name, text in texts.items() if (classes := _classes(name, texts))}
    known = {name: tuple(c for c in classes if c not in absent) for name, classes in tuples.items()}
    asked = tuple((name, kept) for name, kept in known.items() if name not in named)
    unset = "persistent" not in words
    held = own.strings.union(*(one.stored for one in read))
    absent |= _OF_HELPERS - held
    only_layers = {"SpectralNorm", "WeightNorm"} <= absent and _names_layers_only(user, held | words)
    plain = {name: _with_plain_names(text, absent, only_layers) for name, text in texts.items()}
    left = {name: _without(text, frozenset(absent), asked, unset) for name, text in plain.items()}
    short = tuple((name, table) for name, text in left.items() if name not in named and (table := _short_table(text)))
    return {name: _of_kernels_alone(folded(text, short)) for name, text in left.items()} if short else left


_ONE_NAME = '{"kernel": "weight"}'
"""The names of layers of which only kernels have another one, as they are written in their place."""


def _of_kernels_alone(text: str) -> str:
    """A text in which that table is asked for a name, with a comparison instead."""
    text = text.replace(f"{_ONE_NAME}.get(k, k)", '("weight" if k == "kernel" else k)')
    return text.replace(f"item[0] not in {_ONE_NAME}", 'item[0] != "kernel"')


_OF_LAYERS = "    names = TORCH_NAMES if isinstance(module, LAYERS_WITH_WEIGHTS) else {}\n"
_KERNELS = " and k in names)"
_COUNTED = '{k: v for k, v in state.items() if k in places or "batches_tracked" not in k}'
"""What helpers say of the names that only layers have, and of the batches that only batch norms count."""


def _with_plain_names(text: str, absent: Set[str], only_layers: bool) -> str:
    """The text of a helper that need not ask whose a name is, nor for what only an absent layer saves."""
    if only_layers and _OF_LAYERS in text:
        text = text.replace(_OF_LAYERS, "").replace(_KERNELS, ")")
        text = text.replace("names.get(k, k)", "TORCH_NAMES.get(k, k)").replace("not in names", "not in TORCH_NAMES")
    return text.replace(_COUNTED, "state") if "BatchNorm" in absent else text


def _names_layers_only(user: ast.Module, words: Set[str | None]) -> bool:
    """Whether none but Flax's layers have attributes of the names that these have, as far as any code says."""
    nodes = list(symbols.walk(user))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    made = {n.id for n in nodes if isinstance(n, ast.Name)} - {"Dict"}
    made |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    return made.isdisjoint(_BY_NAME) and HELD_BY.keys().isdisjoint(words | stored)


def _mentioned(read: Iterable[_Read], user: ast.Module) -> frozenset[str] | None:
    """The classes of nnx that the code may make modules of; None if it may make modules of others."""
    if not imports_only_libraries(user):
        return None
    if any(one.classes is None for one in read):
        return None  # nnx itself is handed on
    classes = frozenset(name for one in read for name in one.classes or ())
    return classes if classes <= _PLAIN else None


def imports_only_libraries(user: ast.Module) -> bool:
    """Whether all that a file imports is Flax's ``nnx`` and libraries that make no module of Flax."""
    for node in symbols.walk(user):
        match node:
            case ast.ImportFrom(level=0, module="flax", names=[ast.alias(name="nnx", asname=None)]):
                continue
            case ast.ImportFrom(level=level, module=module):
                roots = [] if level else [(module or "").partition(".")[0]]
            case ast.Import(names=names):
                roots = [one.name.partition(".")[0] for one in names]
            case _:
                continue
        if not roots or not _LIBRARIES.issuperset(roots):
            return False
    return True


@dataclass(frozen=True)
class _Read:
    """What some code says of layers."""

    classes: tuple[str, ...] | None
    """The classes of nnx that it names other than to ask for them; None where nnx is handed on."""
    keywords: frozenset[str | None]
    strings: frozenset[str]
    stored: frozenset[str]
    """Attributes that are assigned."""
    keeps_rngs: bool


def _read(tree: ast.AST) -> _Read:
    nodes = list(symbols.walk(tree))
    read = sum(isinstance(n, ast.Name) and n.id == "nnx" for n in nodes)
    attributes = [n.attr for n in nodes if isinstance(n, ast.Attribute) and _is_nnx(n.value)]
    known = read == len(attributes)
    asked = [n.attr for test in _tests(tree, nodes) for n in symbols.walk(test) if isinstance(n, ast.Attribute)]
    for one in asked:
        if one in attributes:
            attributes.remove(one)
    return _Read(
        tuple(one for one in attributes if one[0].isupper()) if known else None,
        frozenset(n.arg for n in nodes if isinstance(n, ast.keyword)),
        frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)),
        frozenset(n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)),
        any(map(_keeps_rngs, nodes)),
    )


@cache
def _read_helper(text: str) -> _Read:
    return _read(definition(text))


def _is_nnx(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "nnx"


def _tests(tree: ast.AST, nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What only says which classes are asked for."""
    if isinstance(tree, ast.Assign) and isinstance(tree.value, ast.Tuple):
        yield tree.value
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]):
                yield classes


def _keeps_rngs(node: ast.AST) -> bool:
    """Whether a statement gives an attribute what may be a generator: ``self.rngs = rngs``."""
    return (
        isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and any(isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) for n in symbols.walk(node))
        and ast.unparse(node.value).startswith("rngs")
    )


def _classes(name: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """The classes of nnx in a tuple of nothing else, among them those of other such tuples."""
    return _classes_of(texts[name], tuple(sorted((n, t) for n, t in texts.items() if n != name and n in texts[name])))


@cache
def _classes_of(text: str, others: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    classes: list[str] = []
    match definition(text):
        case ast.Assign(value=ast.Tuple(elts=elements)):
            for one in elements:
                match one:
                    case ast.Attribute(value=ast.Name(id="nnx"), attr=attribute):
                        classes.append(attribute)
                    case ast.Starred(value=ast.Name(id=other)) if other in dict(others):
                        classes += _classes_of(dict(others)[other], ())
                    case _:
                        return ()
    return tuple(classes)


@cache
def _without(text: str, absent: frozenset[str], tuples: tuple[tuple[str, tuple[str, ...]], ...], unset: bool) -> str:
    return of_parts(text, lambda part: _asking_less(part, absent, tuples, unset) if _may_ask(part, tuples) else part)


def _may_ask(part: str, tuples: tuple[tuple[str, tuple[str, ...]], ...]) -> bool:
    """Whether a part of a definition asks for classes, or holds a table of attributes or one of the ``tuples``."""
    asked = ("isinstance", "hasattr", "get_metadata", *HELD_BY, *(name for name, _ in tuples))
    return not words(part).isdisjoint(asked)


@cache
def _asking_less(
    text: str, absent: frozenset[str], tuples: tuple[tuple[str, tuple[str, ...]], ...], unset: bool
) -> str:
    return transformed(text, lambda: _Absent(absent, dict(tuples), unset))


@cache
def _short_table(text: str) -> str | None:
    """A table of one entry, which is read more easily where it is used."""
    match definition(text):
        case ast.Assign(value=ast.Dict(keys=[ast.Constant()], values=[ast.Constant()]) as table):
            return ast.unparse(table).replace("'", '"')
    return None


MOST_IN_PLACE = 3
"""Classes that are written where they are asked for, rather than in a tuple of their own."""


class _Absent(Transformer):
    def __init__(self, absent: frozenset[str], tuples: Mapping[str, tuple[str, ...]], unset: bool) -> None:
        super().__init__()
        self.absent, self.tuples, self.unset = absent, tuples, unset

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        match updated_node:
            case cst.Call(func=cst.Name("isinstance"), args=[value, cst.Arg(value=asked)]):
                classes = self._asked(asked)
                if classes is None:
                    return updated_node
                kept = [one for one in classes if one not in self.absent]
                if not kept:
                    return cst.Name("False")
                if isinstance(asked, cst.Name) and len(kept) > MOST_IN_PLACE or len(kept) == len(classes):
                    return updated_node
                union = cst.parse_expression(" | ".join(f"nnx.{one}" for one in kept))
                return updated_node.with_changes(args=[value, cst.Arg(union)])
            case cst.Call(func=cst.Name("hasattr"), args=[_, cst.Arg(value=cst.SimpleString() as name)]):
                return cst.Name("False") if _string(name) in self.absent else updated_node
            case cst.Call(func=cst.Attribute(attr=cst.Name("get_metadata")), args=[_, cst.Arg(value=default)]):
                return default if self.unset else updated_node
        return updated_node

    def _asked(self, node: cst.BaseExpression) -> list[str] | None:
        """The classes of nnx that a test is for; None if it is for others."""
        match node:
            case cst.Name(name) if name in self.tuples:
                return [*self.tuples[name], *self.absent]
            case cst.Attribute(value=cst.Name("nnx"), attr=cst.Name(name)):
                return [name]
            case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
                sides = self._asked(left), self._asked(right)
                return None if sides[0] is None or sides[1] is None else [*sides[0], *sides[1]]
        return None

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        match updated_node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))]) if self.tuples.get(name):
                classes = ", ".join(f"nnx.{one}" for one in self.tuples[name])
                made = cst.parse_expression(classes if len(self.tuples[name]) > 1 else f"({classes},)")
                return updated_node.with_changes(value=made)
        return updated_node

    def leave_Dict(self, original_node: cst.Dict, updated_node: cst.Dict) -> cst.Dict:
        """A table by attributes of layers, without those that no layer here has."""
        entries = [e for e in updated_node.elements if isinstance(e, cst.DictElement)]
        keys = [_string(entry.key) for entry in entries]
        if not keys or len(keys) != len(updated_node.elements) or not HELD_BY.keys() >= set(keys):
            return updated_node
        kept = [e for e, k in zip(entries, keys, strict=True) if not self.absent.issuperset(HELD_BY[k or ""])]
        if len(kept) == len(keys) or not kept:
            return updated_node
        return updated_node.with_changes(elements=[*kept[:-1], kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])


def _string(node: cst.BaseExpression) -> str | None:
    return str(node.evaluated_value) if isinstance(node, cst.SimpleString) else None
