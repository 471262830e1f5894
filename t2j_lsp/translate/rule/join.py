"""Facts of a value that is one of several: joins lose information and never invent it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from .definitions import Class, ClassInfo, Function, FunctionInfo, Instance, is_module, is_module_class, layer_names
from .facts import (
    FLOAT,
    INT,
    NONE,
    NOTHING,
    STR,
    UNKNOWN,
    AnyModule,
    Fact,
    Layer,
    ListOf,
    MixedDict,
    ModuleClass,
    Object,
    Partial,
    Qual,
    QualOrNone,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    is_tensor,
)
from .layer import LAYERS
from .library import Trait, names_with
from .names import is_torch
from .one_of import OneOf, one_of
from .record import REGISTRY


def join(a: Fact, b: Fact) -> Fact:
    """What is true of a value that is ``a`` or ``b``. None joined with X is X: an optional X."""
    if a == b:
        return a
    for none, given in ((a, b), (b, a)):
        if none in (NONE, NOTHING):
            return QualOrNone(given.name) if none == NONE and type(given) is Qual else given
    if isinstance(a, QualOrNone) or isinstance(b, QualOrNone):
        either = join(*(Qual(one.name) if isinstance(one, QualOrNone) else one for one in (a, b)))
        return QualOrNone(either.name) if type(either) is Qual else either
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
            return Tuple(tuple(map(join, a.items, b.items)), a.fields if a.fields == b.fields else ())
        case Tuple() | ListOf(), Tuple() | ListOf():
            return ListOf(join(element(a), element(b)))
        case Object(), Object() if a.kind == b.kind:
            return Object(a.kind, dtype=a.dtype if a.dtype == b.dtype else None)
        case Qual(), Qual() if (rule := REGISTRY.get(a.name)) is not None and rule is REGISTRY.get(b.name):
            return Qual(rule.name)  # one name on a device, and the same without it
        case Qual(), Qual() if _are_default_types(a.name, b.name):
            return Qual(min(names_with(Trait.DEFAULT_TYPE)))
        case Layer(), Layer() if a.name == b.name and bool(a.wrapped) != bool(b.wrapped):
            return a if a.wrapped else b  # self.conv = weight_norm(self.conv), which is a gap where it may not be so
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
    if makes_modules(a) and makes_modules(b):
        closures = _is_closure(a) and _is_closure(b)
        return Partial(AnyModule()) if closures else ModuleClass(lambdas(a) | lambdas(b))
    if isinstance(a, Qual | OneOf) and isinstance(b, Qual | OneOf):
        return one_of(a, b) or UNKNOWN
    return _maker_or_name(a, b) or UNKNOWN


def _are_default_types(*names: str) -> bool:
    """Whether names are of one type: ``torch.cuda.FloatTensor if cuda else torch.Tensor``."""
    rules = [REGISTRY.get(name) for name in names]
    return all(rule is not None and rule.name in names_with(Trait.DEFAULT_TYPE) for rule in rules)


def _maker_or_name(a: Fact, b: Fact) -> Fact | None:
    """A maker of modules, or what a parameter was given in its place: its name (``"relu"``), or another maker.

    Whoever calls the value calls a maker: names can't be called. ``lambda: None`` makes none, and is called as one.
    """
    for maker, other in ((a, b), (b, a)):
        if isinstance(other, Partial) and other.function == NONE and makes_modules(maker):
            return Partial(AnyModule()) if _is_closure(maker) else ModuleClass(lambdas(maker) | lambdas(other))
        unknown = other.is_open or isinstance(other, Scalar) or _is_class_elsewhere(other)
        if unknown and makes_modules(maker) and not _is_closure(maker):
            return some_maker(maker)
    return None


def _is_class_elsewhere(fact: Fact) -> bool:
    """Whether it has the name of a class of a library: one more maker in a table of them."""
    library, _, name = fact.name.rpartition(".") if isinstance(fact, Qual) else ("", "", "")
    return bool(library) and not is_torch(library) and name[:1].isupper() and not name.isupper()


def some_maker(fact: Fact) -> Fact:
    """A maker of modules of which a few are known, and others may come: no class by name."""
    match fact:
        case ListOf():
            return ListOf(some_maker(fact.item), fact.keys)
        case Tuple():
            return Tuple(tuple(map(some_maker, fact.items)))
        case _ if makes_modules(fact) and not _is_closure(fact):
            return ModuleClass(lambdas(fact))
        case _:
            return fact


def _is_closure(fact: Fact) -> bool:
    """Whether it makes modules with the ``rngs`` of the place where it stands."""
    decorated = isinstance(fact, Function) and fact.info.is_wrapped
    return decorated or isinstance(fact, Partial) and is_module(fact.function)


def makes_modules(fact: Fact) -> bool:
    """Whether calling the value makes a module: a class, a partial of one, a lambda or a function that returns one."""
    match fact:
        case Partial():
            return is_module(fact.function) or makes_modules(fact.function)
        case Function():
            if fact.info.declares_data:
                return False
            return (result := fact.info.result) is not None and is_module(result)
        case _:
            return is_module_class(fact, LAYERS)


def lambdas(fact: Fact) -> frozenset[ast.Lambda]:
    """The lambdas that may be called where a class of modules is."""
    match fact:
        case ModuleClass():
            return fact.lambdas
        case Partial(made_by=ast.Lambda() as node):
            return frozenset({node})
        case _:
            return frozenset()


def holds(fact: Fact, asked: Callable[[Fact], bool]) -> bool:
    """Whether a value is what is asked for, or a container with some of it, at any depth."""
    if isinstance(fact, Tuple | ListOf):
        parts = fact.items if isinstance(fact, Tuple) and fact.items else (element(fact),)
        return any(holds(part, asked) for part in parts)
    return asked(fact)


def holds_tensor(fact: Fact) -> bool:
    """Whether a value is a tensor, or a container with tensors in it, at any depth."""
    return holds(fact, is_tensor)


def holds_array(fact: Fact) -> bool:
    """Whether a value is a tensor or an array of NumPy's, or a container with such in it: data, for Flax."""
    return holds(fact, lambda one: is_tensor(one) or isinstance(one, Object) and one.kind == "array")


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
            return Tensor(variable=True) if fact.items is None else element(Tuple(fact.items))
        case Layer() if fact.items is not None:
            return element(Tuple(fact.items))
        case Layer() if fact.name in ("torch.nn.Sequential", "torch.nn.ModuleList"):
            return AnyModule()
        case _:
            return UNKNOWN


def iterated(fact: Fact) -> Fact:
    """The fact of what a loop over a container gives: of a dict its keys."""
    match fact:
        case ListOf(keys=keys) if keys is not None:
            return keys
        case Layer(name="torch.nn.ModuleDict" | "torch.nn.ParameterDict") | MixedDict():
            return STR
        case _:
            return element(fact)


def assign(info: ClassInfo, name: str, fact: Fact, author: FunctionInfo | None = None) -> None:
    """Record ``self.name = fact``, as a method of the class says."""
    old = info.attributes.get(name)
    if old is not None and (old == NONE) != (fact == NONE):
        info.nullable.add(name)
    said = info.said.setdefault(name, {})
    said[author] = join(said[author], fact) if author in said else fact
    info.attributes[name] = _closed(reduce(join, said.values()))


def _closed(fact: Fact) -> Fact:
    """What is known of an attribute: nothing, if it is what a parameter may be, of which only its function learns."""
    return UNKNOWN if fact.is_open else fact


def forget(info: ClassInfo, author: FunctionInfo) -> None:
    """Take back what a method said of attributes: it is inferred again, knowing more."""
    for name, said in info.said.items():
        if said.pop(author, None) is not None:
            if said:
                info.attributes[name] = _closed(reduce(join, said.values()))
            else:
                del info.attributes[name]


def join_all(facts: list[Fact]) -> Fact:
    """What is true of a value that is one of several."""
    if not facts:
        return UNKNOWN
    out = facts[0]
    for fact in facts[1:]:
        out = join(out, fact)
    return out


def class_names(fact: Fact) -> set[str]:
    """The names of the classes that a second argument of `isinstance` holds."""
    match fact:
        case Qual():
            return {fact.name}
        case Tuple():
            return set().union(*map(class_names, fact.items)) if fact.items else set()
        case Class():
            return {fact.name}
        case _:
            return set()
