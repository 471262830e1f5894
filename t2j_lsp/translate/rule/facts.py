"""What the translator knows of a value, and of the classes and functions of the file."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class Fact:
    """Base of all facts. A bare Fact knows nothing."""

    is_open: ClassVar[bool] = False
    """Whether it is the value of a parameter, of which the caller knows more."""


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
    fields: tuple[str, ...] = ()
    """The items' names in PyTorch, where what JAX gives has none: `torch.aminmax`."""


@dataclass(frozen=True)
class ListOf(Fact):
    """A list, tuple, dict or iterable of values that share one fact."""

    item: Fact
    keys: Fact | None = None


@dataclass(frozen=True)
class MixedTuple(Tuple):
    """A batch that is a tuple, of whose items some may be texts."""


@dataclass(frozen=True)
class MixedDict(Fact):
    """A batch that is a dict, of whose items some may be texts."""

    items: tuple[tuple[str, Fact], ...]


@dataclass(frozen=True)
class Qual(Fact):
    """A library object by its qualified name: ``torch.nn``, ``torch.cat``, ``torch.float32``, ``numpy``."""

    name: str


@dataclass(frozen=True)
class QualOrNone(Qual):
    """A library object, or None in its place: ``norm`` of ``norm = None`` and, in a branch, ``norm = nn.LayerNorm``."""


@dataclass(frozen=True)
class TypeAlias(Fact):
    """A type that is written out as a value, and says of what it annotates what ``stated`` is: ``list[Tensor]``."""

    stated: Fact


OPTIMIZER_BASE = "torch.optim.Optimizer"
KERNELS = "torch.optim._functional"
"""Where functions are that a step hands lists of tensors to: PyTorch's, and those that go with a class."""


@dataclass(frozen=True)
class OptimizerFunction(Qual):
    """A class of optimizers of the user's own, for which a function stands that makes optax's transformation."""

    signature: str = ""
    """What the class takes: ``Lion(params, lr=1e-4)``."""
    keeps_rate: bool = False
    """Whether the class keeps something that it computes of the learning rate that it is made with."""
    of_all_gradients: bool = False
    """Whether a step computes something of the gradients of all groups together."""


@dataclass(frozen=True)
class ModuleClass(Fact):
    """Some nn.Module class that is passed around as a value (``norm_layer``)."""

    lambdas: frozenset[ast.Lambda] = field(default=frozenset(), hash=False, compare=False)
    """Lambdas that make modules, one of which it may be instead; they are called as the classes are."""


@dataclass(frozen=True)
class Partial(Fact):
    """``functools.partial`` of something. ``node`` is the call that made it."""

    function: Fact
    node: ast.Call | None = field(default=None, hash=False, compare=False)
    made_by: ast.Lambda | None = field(default=None, hash=False, compare=False)
    """The lambda that makes a module, where that is what it stands for."""


@dataclass(frozen=True)
class Transformed(Fact):
    """A function that a library made of ``function``, as a gradient of it or one over a batch."""

    function: Fact
    like: int | None = None
    """The position of the argument of whose kind its values are, as a gradient's are; None where that isn't known."""
    with_value: bool = False
    """Whether its values are pairs of such a one and of what ``function`` gives."""

    def result(self, arguments: list[Fact]) -> Fact:
        """What is known of its value, given what is known of the arguments."""
        if self.like is None or self.like >= len(arguments):
            return UNKNOWN
        match arguments[self.like]:
            case Tensor(dtype=dtype):
                value: Fact = Tensor(dtype=dtype)
            case ListOf(item=Tensor(dtype=dtype), keys=keys):
                value = ListOf(Tensor(dtype=dtype), keys)
            case _:
                return UNKNOWN
        return Tuple((value, Tensor())) if self.with_value else value


@dataclass(frozen=True)
class Layer(Fact):
    """An instance of a ``torch.nn`` layer. ``node`` is the constructor call where it is known."""

    name: str
    node: ast.Call | None = field(default=None, hash=False, compare=False)
    items: tuple[Fact, ...] | None = None
    """Children of a Sequential or ModuleList, where they are known."""
    wrapped: str = ""
    """PyTorch's name of what stands around it, as a module of its own in Flax."""


@dataclass(frozen=True)
class AnyModule(Fact):
    """Some module of a class that is not known."""

    names: frozenset[str] = frozenset()
    """The torch layers it may be (from ``isinstance``, or because it is one of several), empty if anything."""
    wrapped: Fact | None = None
    """What its attribute ``module`` is, for a wrapper of another module."""


@dataclass(frozen=True)
class Object(Fact):
    """An object of the training world: ``optimizer``, ``scheduler``, ``loader``, ``batches`` (an iterator over a
    loader), ``dataset``, ``device``, ``generator``, ``dtype``, ``scaler``, ``packed sequence``."""

    kind: str
    name: str = ""
    dtype: str | None = None
    """Of an array of NumPy's, where known: ``int`` or ``bool``."""


NONE = Scalar("none")
INT = Scalar("int")
FLOAT = Scalar("float")
BOOL = Scalar("bool")
STR = Scalar("str")
TENSOR = Tensor()
PACKED = Object("packed sequence")
"""Sequences of unequal lengths, which PyTorch stores one behind the other and JAX with their padding."""


def is_tensor(fact: Fact) -> bool:
    return isinstance(fact, Tensor)


def is_number(fact: Fact) -> bool:
    """Whether the value is Python's number."""
    return isinstance(fact, Scalar) and fact.kind in ("int", "float", "bool")
