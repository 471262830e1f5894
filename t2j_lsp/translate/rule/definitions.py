"""The classes and functions of a file as the translator knows them, their instances, and what of a file is a module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeGuard

from t2j_lsp import symbols

from .facts import UNKNOWN, AnyModule, Fact, Layer, ModuleClass, Object, Partial, Qual, Tuple


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
class Instance(Fact):
    """An instance of a class of the file."""

    cls: Class


def is_module(fact: Fact) -> bool:
    """Whether the value is an nn.Module instance."""
    return isinstance(fact, Layer | AnyModule) or (isinstance(fact, Instance) and fact.cls.info.acts_as_module)


def is_plain_object(fact: Fact) -> TypeGuard[Instance]:
    """Whether it is an object of a class of the file that is no module."""
    return isinstance(fact, Instance) and not is_module(fact) and not fact.cls.info.external


def holds_modules(fact: Fact) -> bool:
    """Whether it is such an object, which holds modules."""
    return is_plain_object(fact) and any(map(is_module, held_by(fact)))


def holds_optimizers(fact: Fact) -> bool:
    """Whether it is such an object, which holds optimizers."""
    held = held_by(fact) if is_plain_object(fact) else ()
    return any(isinstance(one, Object) and one.kind == "optimizer" for one in held)


def held_by(fact: Instance) -> Iterator[Fact]:
    """What an object of a class of the file has in its attributes."""
    return (one for info in fact.cls.info.ancestry() for one in info.attributes.values())


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


_MODULE_CLASS = re.compile(r"torch\.nn\.(?:modules\.\w+\._)?[A-Z]")
"""Names of classes of modules, those that PyTorch's own derive from among them."""


def is_module_base(fact: Fact) -> bool:
    """Whether a base class makes its subclasses modules."""
    named = isinstance(fact, Qual) and fact.name.startswith("torch.nn")
    return named or isinstance(fact, Class) and fact.info.is_module


class Home(Protocol):
    """A file that the converted one imports. What stands in it is inferred when it is asked for."""

    def infer_function(self, info: FunctionInfo) -> Fact:
        """What a function of the file returns."""

    def infer_class(self, info: ClassInfo) -> None:
        """Fill in what a class of the file holds."""


_WORD = re.compile(r"\w+")


_DATA = frozenset({
    "torch", "Tensor", "FloatTensor", "LongTensor", "BoolTensor", "int", "float", "bool", "str", "None",
    "tuple", "list", "dict", "set", "typing", "Tuple", "List", "Dict", "Set", "Optional", "Union",
})  # fmt: skip


_HARMLESS = frozenset({
    "staticmethod", "classmethod", "override", "abstractmethod", "overload", "final", "contextmanager", "cache",
    "lru_cache", "wraps", "no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "compile", "disable", "jit",
    "autocast", "custom_fwd", "custom_bwd", "script", "script_method", "ignore", "export", "unused", "wrap",
    "allow_in_graph", "assume_constant_result", "ensure_compile_time_eval", "fixture", "parametrize", "remat",
    "checkpoint", "vmap", "value_and_grad", "grad", "custom_vjp", "custom_jvp", "recorded",
})  # fmt: skip
"""Decorators after which a function is called by its name, with the keywords it has."""


@dataclass(eq=False)
class FunctionInfo:
    """A function or method of the file, or of one that it imports."""

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: ClassInfo | None = None
    outer: FunctionInfo | None = None
    """The function this one is nested in."""
    env: dict[str, Fact] = field(default_factory=dict)
    """Names that the function sees from outside."""
    returns: Fact | None = None
    """Join of its return values; None until inferred."""
    tuples: dict[int, Tuple] = field(default_factory=dict)
    """Join of the tuples among them, by their length: of ``return (x, hidden) if every else x``."""
    inferring: bool = False
    callees: set[FunctionInfo | ClassInfo] = field(default_factory=set)
    self_calls: set[str] = field(default_factory=set)
    """Names of methods it calls on ``self``."""
    builds: bool = False
    """Whether it builds modules or initial values itself."""
    draws: bool = False
    """Whether it draws random numbers itself."""
    generators: frozenset[str] | None = None
    """Variables that hold generators which it makes for its own draws; None until they are asked for."""
    seeds: bool = False
    """Whether it seeds the generator itself, and so makes its own ``nnx.Rngs``."""
    seeds_with: str = ""
    """The parameter that it seeds the generator with, whatever else it does."""
    takes_rngs: bool = False
    """Decided: it gets a keyword ``rngs``."""
    makes_rngs: bool = False
    """Decided: it makes an ``nnx.Rngs`` in its first line, since nobody could pass it one."""
    reads_rngs: bool = False
    """Decided: it draws from the ``rngs`` of the module level, since not all that calls it can pass it one."""
    settled: bool = False
    """Decided: it is JAX code already, and stays as it is."""
    called_by: str = ""
    """Who calls it, where no code of the file does: see `unit_tests.caller_of`."""
    learned: dict[str, Fact] = field(default_factory=dict)
    """What the body's use of its parameters tells of them."""
    home: Home | None = None
    """What infers it, if it stands in a file that the converted one imports."""

    @property
    def external(self) -> bool:
        """Whether it stands in a file that the converted one imports."""
        return self.home is not None

    def with_outer(self) -> Iterator[FunctionInfo]:
        """It and the functions that it stands in, the nearest first."""
        function: FunctionInfo | None = self
        while function is not None:
            yield function
            function = function.outer

    @property
    def result(self) -> Fact | None:
        """What it returns, also where nothing has called it yet; None if that isn't known yet."""
        return self.home.infer_function(self) if self.returns is None and self.home is not None else self.returns

    @cached_property
    def declares_data(self) -> bool:
        """Whether its annotation says that it returns tensors, numbers, strings, or containers of them."""
        returned = self.node.returns
        return returned is not None and set(_WORD.findall(ast.unparse(returned))) <= _DATA

    @cached_property
    def is_wrapped(self) -> bool:
        """Whether a decorator may make something else of it, or hand it to others."""
        names = (ast.unparse(symbols.called_decorator(d)) for d in self.node.decorator_list)
        return any(name.rpartition(".")[2] not in _HARMLESS for name in names)

    @property
    def fact(self) -> Function:
        return Function(self, self.name)

    @property
    def is_seeder(self) -> bool:
        """Whether seeding is what it is for, ``def set_seed(seed)``: whoever calls it draws."""
        return bool(self.seeds_with) and not (self.builds or self.draws or self.callees)

    @property
    def runs_in_module(self) -> bool:
        """Whether it is part of what a module does when it is called: a method, but not the constructor."""
        return self.owner is not None and self.owner.is_module and self.name != "__init__"

    @cached_property
    def static(self) -> bool:
        """Whether it is a method that gets no instance."""
        names = {d.id for d in self.node.decorator_list if isinstance(d, ast.Name)}
        return self.owner is not None and bool(names & {"staticmethod", "classmethod"})

    @cached_property
    def none_names(self) -> frozenset[str]:
        """Names that the body assigns None to."""
        return frozenset(
            target.id
            for node in ast.walk(self.node)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None
            for target in node.targets
            if isinstance(target, ast.Name)
        )

    @cached_property
    def none_parameters(self) -> frozenset[str]:
        """Parameters that are None unless the caller says otherwise."""
        given = symbols.defaults(self.node.args)
        return frozenset(a.arg for a, d in given if isinstance(d, ast.Constant) and d.value is None)


@dataclass(eq=False)
class ClassInfo:
    """A class of the file."""

    name: str
    node: ast.ClassDef
    bases: tuple[Fact, ...] = ()
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    attributes: dict[str, Fact] = field(default_factory=dict)
    said: dict[str, dict[FunctionInfo | None, Fact]] = field(default_factory=dict)
    """What each method says of an attribute; ``attributes`` joins it."""
    nullable: set[str] = field(default_factory=set)
    """Attributes that are assigned None in one place and a module, parameter or tensor in another."""
    inferred: bool = False
    is_dataclass: bool = False
    fields: dict[str, Fact] = field(default_factory=dict)
    """What the annotations of a dataclass say of its fields."""
    mixed_in: bool = False
    """Whether a module of the file derives from it."""
    keeps_rngs: bool = False
    """Whether running it draws random numbers, so that it keeps ``self.rngs``."""
    home: Home | None = None
    """What infers it, if it stands in a file that the converted one imports."""
    env: dict[str, Fact] | None = None
    """What the names of the function that it stands in are, which its methods see, too."""

    @property
    def external(self) -> bool:
        """Whether it stands in a file that the converted one imports."""
        return self.home is not None

    @property
    def fact(self) -> Class:
        return Class(self, self.name)

    @property
    def needed(self) -> frozenset[str]:
        """The names of the constructor's parameters that have no default."""
        method = self.methods.get("__init__")
        if method is None:
            return frozenset()
        arguments = method.node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        free = [*plain[: len(plain) - len(arguments.defaults)], *(a for a, default in named if default is None)]
        return frozenset(a.arg for a in free)

    def ancestry(self) -> list[ClassInfo]:
        """This class and its bases of the file, nearest first."""
        out: list[ClassInfo] = [self]
        for base in self.bases:
            if isinstance(base, Class) and base.info is not self:
                out.extend(c for c in base.info.ancestry() if c not in out)
        return out

    def asked_by(self, call: ast.expr) -> ClassInfo:
        """The class whose bases ``super().f()`` in it asks: itself, or for ``super(Base, self).f()`` that base."""
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Call(args=[ast.Name(id=name), *_]))):
                return next((one for one in self.ancestry()[1:] if one.name == name), self)
        return self

    def may_be_none(self, attribute: str) -> bool:
        """Whether an attribute holds None in some branch, of this class or of one that it derives from."""
        return any(attribute in one.nullable for one in self.ancestry())

    @property
    def torch_bases(self) -> tuple[str, ...]:
        """Qualified names of the torch classes it inherits from, directly or through the file's classes."""
        out: list[str] = []
        for info in self.ancestry():
            out.extend(b.name for b in info.bases if isinstance(b, Qual))
        return tuple(out)

    @property
    def is_module(self) -> bool:
        return any(map(_MODULE_CLASS.match, self.torch_bases))

    @property
    def acts_as_module(self) -> bool:
        """Whether its ``self`` is a module: it is one, or it is mixed into one and has no constructor of its own."""
        return self.is_module or (self.mixed_in and "__init__" not in self.methods)

    @property
    def has_generator(self) -> bool:
        """Whether it was converted before, and draws from the ``rngs`` that its instances keep."""
        return not self.is_module and any("rngs" in info.attributes for info in self.ancestry())

    @property
    def calls_forward(self) -> bool:
        """Whether its ``forward`` is what ``__call__`` is in Flax."""
        return self.acts_as_module and "forward" in self.methods and not self.has_own_call

    @property
    def has_own_call(self) -> bool:
        """Whether it defines ``__call__``, or a base before ``nn.Module`` does: ``forward`` is a method beside it."""
        first = next((i for i, base in enumerate(self.bases) if is_module_base(base)), len(self.bases))
        before = (b.info for b in self.bases[: first + 1] if isinstance(b, Class) and b.info is not self)
        return "__call__" in self.methods or any(info.has_own_call for info in before)

    @property
    def layer_base(self) -> str | None:
        """The torch layer it specialises (``torch.nn.Conv2d``), if any."""
        return next((b for b in self.torch_bases if b.startswith("torch.nn.") and b != "torch.nn.Module"), None)

    def method(self, name: str) -> FunctionInfo | None:
        for info in self.ancestry():
            if name in info.methods:
                return info.methods[name]
        return None

    def attribute(self, name: str) -> Fact:
        return next((info.attributes[name] for info in self.ancestry() if name in info.attributes), UNKNOWN)
