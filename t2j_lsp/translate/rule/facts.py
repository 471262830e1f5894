"""What the translator knows of a value. Joins lose information and never invent it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classes import ClassInfo, FunctionInfo


@dataclass(frozen=True)
class Fact:
    """Base of all facts. A bare Fact knows nothing."""


UNKNOWN = Fact()


@dataclass(frozen=True)
class Nothing(Fact):
    """The items of an empty list: joined with anything, that thing."""


NOTHING = Nothing()


@dataclass(frozen=True)
class Tensor(Fact):
    """A torch tensor. ``rank`` and ``dtype`` (``float``, ``int``, ``bool``, or a torch name) where known.

    ``sure`` is False where only a tensor-only method name speaks for it. ``variable`` is True for a parameter or
    buffer, which is an ``nnx.Variable`` after conversion and not a bare array.
    """

    rank: int | None = None
    dtype: str | None = None
    sure: bool = True
    variable: bool = False
    any_layout: bool = False
    """Whether it is a parameter of some layer, whose kernel may have Flax's layout."""


@dataclass(frozen=True)
class Scalar(Fact):
    """A Python number, bool or string: ``kind`` is ``int``, ``float``, ``bool``, ``str`` or ``none``."""

    kind: str
    value: Any = None


@dataclass(frozen=True)
class Shape(Fact):
    """A ``torch.Size`` or tuple of ints."""

    rank: int | None = None


@dataclass(frozen=True)
class Tuple(Fact):
    """A tuple or list whose items are known one by one."""

    items: tuple[Fact, ...]


@dataclass(frozen=True)
class ListOf(Fact):
    """A list, tuple, dict or iterable of values that share one fact."""

    item: Fact
    keys: Fact | None = None


@dataclass(frozen=True)
class Qual(Fact):
    """A library object by its qualified name: ``torch.nn``, ``torch.cat``, ``torch.float32``, ``numpy``."""

    name: str


@dataclass(frozen=True)
class Class(Fact):
    """A class of the file (or of a file it imports)."""

    info: ClassInfo = field(hash=False, compare=False)
    name: str


@dataclass(frozen=True)
class Function(Fact):
    """A function of the file (or of a file it imports)."""

    info: FunctionInfo = field(hash=False, compare=False)
    name: str


@dataclass(frozen=True)
class ModuleClass(Fact):
    """Some nn.Module class that is passed around as a value (``norm_layer``)."""


@dataclass(frozen=True)
class Partial(Fact):
    """``functools.partial`` of something. ``node`` is the call that made it."""

    function: Fact
    node: ast.Call | None = field(default=None, hash=False, compare=False)


@dataclass(frozen=True)
class Instance(Fact):
    """An instance of a class of the file."""

    cls: Class


@dataclass(frozen=True)
class Layer(Fact):
    """An instance of a ``torch.nn`` layer. ``node`` is the constructor call where it is known."""

    name: str
    node: ast.Call | None = field(default=None, hash=False, compare=False)
    items: tuple[Fact, ...] | None = None
    """Children of a Sequential or ModuleList, where they are known."""


@dataclass(frozen=True)
class AnyModule(Fact):
    """Some module of a class that is not known."""

    names: frozenset[str] = frozenset()
    """The torch layers it may be (from ``isinstance``, or because it is one of several), empty if anything."""


@dataclass(frozen=True)
class Object(Fact):
    """An object of the training world: ``optimizer``, ``scheduler``, ``loader``, ``dataset``, ``device``,
    ``generator``, ``dtype``, ``scaler``."""

    kind: str
    name: str = ""


NONE = Scalar("none")
INT = Scalar("int")
FLOAT = Scalar("float")
BOOL = Scalar("bool")
STR = Scalar("str")
TENSOR = Tensor()


def is_tensor(fact: Fact) -> bool:
    return isinstance(fact, Tensor)


def is_module(fact: Fact) -> bool:
    """Whether the value is an nn.Module instance."""
    return isinstance(fact, Layer | AnyModule) or (isinstance(fact, Instance) and fact.cls.info.acts_as_module)


def is_module_class(fact: Fact, layers: Iterable[str] = ()) -> bool:
    """Whether calling the value builds an nn.Module."""
    match fact:
        case ModuleClass():
            return True
        case Partial():
            return is_module_class(fact.function, layers)
        case Class():
            return fact.info.is_module
        case Qual():
            return fact.name in layers
        case _:
            return False


def layer_names(owner: Fact) -> frozenset[str]:
    """The torch layers that a module may be."""
    match owner:
        case Layer():
            return frozenset({owner.name})
        case AnyModule():
            return owner.names
        case Instance() if owner.cls.info.layer_base is not None:
            return frozenset({owner.cls.info.layer_base})
        case _:
            return frozenset()


def join(a: Fact, b: Fact) -> Fact:
    """What is true of a value that is ``a`` or ``b``. None joined with X is X: an optional X."""
    if a == b:
        return a
    if a in (NONE, NOTHING):
        return b
    if b in (NONE, NOTHING):
        return a
    match a, b:
        case Tensor(), Tensor():
            return replace(
                a,
                rank=a.rank if a.rank == b.rank else None,
                dtype=a.dtype if a.dtype == b.dtype else None,
                sure=a.sure and b.sure,
                variable=a.variable and b.variable,
            )
        case Scalar(), Scalar() if a.kind == b.kind:
            return Scalar(a.kind)
        case Scalar(), Scalar() if {a.kind, b.kind} <= {"int", "float"}:
            return FLOAT
        case Shape(), Shape():
            return Shape()
        case ListOf(), ListOf():
            return ListOf(join(a.item, b.item), a.keys)
        case Tuple(), Tuple() if len(a.items) == len(b.items):
            return Tuple(tuple(map(join, a.items, b.items)))
        case Tuple() | ListOf(), Tuple() | ListOf():
            return ListOf(join(element(a), element(b)))
        case Object(), Object() if a.kind == b.kind:
            return Object(a.kind)
        case _:
            pass
    if isinstance(a, Instance) and isinstance(b, Instance):
        other = b.cls.info.ancestry()
        shared = next((info for info in a.cls.info.ancestry() if info in other), None)
        if shared is not None:
            return Instance(shared.fact)
    if is_module(a) and is_module(b):
        known = isinstance(a, Layer | AnyModule) and isinstance(b, Layer | AnyModule)
        names = layer_names(a), layer_names(b)
        return AnyModule(names[0] | names[1]) if known and all(names) else AnyModule()
    if is_module_class(a, _LAYERS) and is_module_class(b, _LAYERS):
        return ModuleClass()
    return UNKNOWN


_LAYERS: set[str] = set()
"""Names of the registered layers; filled by the registry so that joins of classes know them."""


def element(fact: Fact) -> Fact:
    """The fact of one item of a container."""
    match fact:
        case Tuple():
            if not fact.items:
                return UNKNOWN
            out = fact.items[0]
            for item in fact.items[1:]:
                out = join(out, item)
            return out
        case ListOf():
            return fact.item
        case Shape():
            return INT
        case Tensor():
            return Tensor(None if fact.rank is None else fact.rank - 1, fact.dtype, fact.sure)
        case Layer() if fact.name in ("torch.nn.ParameterList", "torch.nn.ParameterDict"):
            return Tensor(variable=True)
        case Layer() if fact.items is not None:
            return element(Tuple(fact.items))
        case Layer() if fact.name in ("torch.nn.Sequential", "torch.nn.ModuleList"):
            return AnyModule()
        case _:
            return UNKNOWN


def is_module_base(fact: Fact) -> bool:
    """Whether a base class makes its subclasses modules."""
    return (isinstance(fact, Qual) and fact.name.startswith("torch.nn")) or (
        isinstance(fact, Class) and fact.info.is_module
    )
