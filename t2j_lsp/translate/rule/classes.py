"""What is known of the classes and functions of a file."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Literal

from .facts import NONE, UNKNOWN, Class, Fact, Function, Qual, join

RngUse = Literal["build", "call"]
"""``build``: randomness that makes parameters, with the constructor's rngs. ``call``: drawn while running."""


@dataclass(eq=False)
class FunctionInfo:
    """A function or method of the file."""

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: ClassInfo | None = None
    outer: FunctionInfo | None = None
    """The function this one is nested in."""
    env: dict[str, Fact] = field(default_factory=dict)
    """Names that the function sees from outside."""
    returns: Fact | None = None
    """Join of its return values; None until inferred."""
    inferring: bool = False
    callees: set[FunctionInfo | ClassInfo] = field(default_factory=set)
    self_calls: set[str] = field(default_factory=set)
    """Names of methods it calls on ``self``."""
    builds: bool = False
    """Whether it builds modules or initial values itself."""
    draws: bool = False
    """Whether it draws random numbers itself."""
    seeds: bool = False
    """Whether it seeds the generator itself, and so makes its own ``nnx.Rngs``."""
    takes_rngs: bool = False
    """Decided: it gets a keyword ``rngs``."""
    makes_rngs: bool = False
    """Decided: it makes an ``nnx.Rngs`` in its first line, since nobody could pass it one."""
    external: bool = False
    """Whether it stands in a file that the converted one imports."""
    called_by: str = ""
    """Who calls it, where no code of the file does: see `unit_tests.caller_of`."""
    learned: dict[str, Fact] = field(default_factory=dict)
    """What the body's use of its parameters tells of them."""

    @property
    def fact(self) -> Function:
        return Function(self, self.name)

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
        arguments = self.node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        given = [*zip(reversed(positional), reversed(arguments.defaults), strict=False)]
        given += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
        return frozenset(a.arg for a, d in given if isinstance(d, ast.Constant) and d.value is None)

    def may_be_none(self, value: ast.expr) -> bool:
        """Whether a value in the body may be None, as far as the body itself shows."""
        match value:
            case ast.Constant():
                return value.value is None
            case ast.IfExp():
                known = value.body, value.orelse
                return any(
                    self.may_be_none(branch) and not (isinstance(branch, ast.Name) and says(value.test, branch.id))
                    for branch, says in zip(known, (_says_given, _says_none), strict=True)
                )
            case ast.Name():
                if value.id in self.none_names:
                    return True
                return value.id in self.none_parameters and not self._given(value.id, value)
            case _:
                return False

    def _given(self, name: str, at: ast.expr) -> bool:
        """Whether a parameter can't be None at a place: for the conditions around it, or what is done before it."""
        block: list[ast.stmt] = self.node.body
        while True:
            around = None
            for statement in block:
                if any(node is at for node in ast.walk(statement)):
                    around = statement
                    break
                if self._settles(statement, name):
                    return True
            if around is None:
                return False
            blocks = [getattr(around, field_name, None) for field_name in ("body", "orelse", "finalbody")]
            inner = next((b for b in blocks if isinstance(b, list) and any(at in ast.walk(s) for s in b)), None)
            if inner is None:
                return False
            if isinstance(around, ast.If):
                says = _says_given if inner is around.body else _says_none
                if says(around.test, name):
                    return True
            block = inner

    def _settles(self, statement: ast.stmt, name: str) -> bool:
        """Whether a parameter isn't None behind a statement: it got a value, or None ended the run."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)]):
                return target == name and not self.may_be_none(statement.value)
            case ast.Assert():
                return _says_given(statement.test, name)
            case ast.If() if _says_none(statement.test, name):
                last = statement.body[-1]
                return isinstance(last, ast.Raise | ast.Return) or any(
                    self._settles(inner, name) for inner in statement.body
                )
            case _:
                return False


def _says_given(test: ast.expr, name: str) -> bool:
    """Whether a true condition means that a name isn't None: ``x is not None``, ``x``, one of several joined by and."""
    match test:
        case ast.BoolOp(op=ast.And()):
            return any(_says_given(value, name) for value in test.values)
        case ast.Compare(left=ast.Name(), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return isinstance(test.left, ast.Name) and test.left.id == name
        case _:
            return isinstance(test, ast.Name) and test.id == name


def _says_none(test: ast.expr, name: str) -> bool:
    """Whether a false condition means that a name isn't None: ``x is None``, ``not x``, one of several joined by or."""
    match test:
        case ast.BoolOp(op=ast.Or()):
            return any(_says_none(value, name) for value in test.values)
        case ast.Compare(left=ast.Name(), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return isinstance(test.left, ast.Name) and test.left.id == name
        case ast.UnaryOp(op=ast.Not()):
            return isinstance(test.operand, ast.Name) and test.operand.id == name
        case _:
            return False


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
    mixed_in: bool = False
    """Whether a module of the file derives from it."""
    external: bool = False
    """Whether it stands in a file that the converted one imports."""
    keeps_rngs: bool = False
    """Whether running it draws random numbers, so that it keeps ``self.rngs``."""

    @property
    def fact(self) -> Class:
        return Class(self, self.name)

    def ancestry(self) -> list[ClassInfo]:
        """This class and its bases of the file, nearest first."""
        out: list[ClassInfo] = [self]
        for base in self.bases:
            if isinstance(base, Class) and base.info is not self:
                out.extend(c for c in base.info.ancestry() if c not in out)
        return out

    @property
    def torch_bases(self) -> tuple[str, ...]:
        """Qualified names of the torch classes it inherits from, directly or through the file's classes."""
        out: list[str] = []
        for info in self.ancestry():
            out.extend(b.name for b in info.bases if isinstance(b, Qual))
        return tuple(out)

    @property
    def is_module(self) -> bool:
        return any(
            b == "torch.nn.Module" or (b.startswith("torch.nn.") and b[9:10].isupper()) for b in self.torch_bases
        )

    @property
    def acts_as_module(self) -> bool:
        """Whether its ``self`` is a module: it is one, or it is mixed into one and has no constructor of its own."""
        return self.is_module or (self.mixed_in and "__init__" not in self.methods)

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
        for info in self.ancestry():
            if name in info.attributes:
                return info.attributes[name]
        return UNKNOWN

    def assign(self, name: str, fact: Fact, author: FunctionInfo | None = None) -> None:
        """Record ``self.name = fact``, as a method says."""
        old = self.attributes.get(name)
        if old is not None and (old == NONE) != (fact == NONE):
            self.nullable.add(name)
        said = self.said.setdefault(name, {})
        said[author] = join(said[author], fact) if author in said else fact
        self.attributes[name] = reduce(join, said.values())

    def forget(self, author: FunctionInfo) -> None:
        """Take back what a method said of attributes: it is inferred again, knowing more."""
        for name, said in self.said.items():
            if said.pop(author, None) is not None:
                if said:
                    self.attributes[name] = reduce(join, said.values())
                else:
                    del self.attributes[name]
