"""What the parts of inference share: the facts found so far, where the inference is, and how parts ask each other."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from t2j_lsp.translate.rule.facts import (
    NONE,
    UNKNOWN,
    AnyModule,
    Class,
    ClassInfo,
    Fact,
    FunctionInfo,
    Layer,
    Qual,
    Scalar,
    Tuple,
)
from t2j_lsp.translate.rule.join import join
from t2j_lsp.translate.rule.record import Rule

CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict")


@dataclass(frozen=True)
class UnknownParameter(Fact):
    """A function parameter of which nothing is known yet; use as a tensor is evidence.

    ``foreign``: methods that tensors don't have are called on it, so that ``x.clone()`` makes no tensor of it.
    """

    name: str
    foreign: bool = False


Env = dict[str, Fact]
"""What names mean at a place: also dotted ones (``self.conv``), where a condition tells more of them."""


class Infer(Protocol):
    """What the parts of inference ask for the expressions inside those they answer for."""

    def expr(self, node: ast.expr | None, env: Env) -> Fact:
        """Infer one expression and remember its fact."""


@dataclass
class Body:
    """What one reading of a function's body brings to light."""

    observed: dict[str, Fact] = field(default_factory=dict)
    """What the use of its parameters tells of them."""
    weak: set[str] = field(default_factory=set)
    """Parameters that only the names of methods make tensors, names that other objects may have too."""
    returned: list[Fact] = field(default_factory=list)
    yielded: list[Fact] = field(default_factory=list)


@dataclass
class State:
    """What is known of one file so far, and where in it the inference is. Every part of it reads and writes this."""

    assumed: Mapping[ast.AST, Fact]
    """Facts of parameters and of assigned names, where nothing else is known of them."""
    facts: dict[ast.AST, Fact] = field(default_factory=dict)
    env: Env = field(default_factory=dict)
    """What the module level binds."""
    classes: dict[ast.ClassDef, ClassInfo] = field(default_factory=dict)
    functions: dict[ast.AST, FunctionInfo] = field(default_factory=dict)
    imports_torch: bool = False
    indexed: set[ast.Call] = field(default_factory=set)
    """Constructor calls of containers that are indexed, measured or iterated."""
    indexes_any: bool = False
    """Whether a module of unknown class is indexed somewhere."""
    calls_unknown: bool = False
    """Whether something is called of which nothing is known: a parameter, an item of a dictionary."""
    called_as_classes: set[ast.Lambda] = field(default_factory=set)
    """Lambdas that are called where a class may stand instead, and so with its ``rngs``."""
    isinstance_classes: set[str] = field(default_factory=set)
    """torch layers that isinstance asks for."""
    function: FunctionInfo | None = None
    """The function that is being inferred."""
    class_info: ClassInfo | None = None
    """The class that is being inferred."""
    body: Body = field(default_factory=Body)

    def in_module(self) -> bool:
        """Whether the code here is a method of a module."""
        return self.function is not None and self.function.owner is not None and self.function.owner.is_module

    def note_indexed(self, fact: Fact) -> None:
        """A value was indexed, measured or iterated."""
        if isinstance(fact, Layer) and fact.name == "torch.nn.Sequential":
            if fact.node is not None:
                self.indexed.add(fact.node)
            else:
                self.indexes_any = True
        elif isinstance(fact, AnyModule):
            self.indexes_any = True

    def note_random(self, name: str, rule: Rule) -> None:
        """A torch function was called that may draw random numbers."""
        if rule.random and self.function is not None:
            if name.startswith("torch.nn.init."):
                self.function.builds = True
            else:
                self.function.draws = True

    def note_call(self, info: FunctionInfo | ClassInfo) -> None:
        """A function or class of the file was called."""
        if isinstance(info, ClassInfo) and info.is_module:
            self.note_built()
        if self.function is not None:
            self.function.callees.add(info)

    def note_built(self) -> None:
        """A module was built."""
        if self.function is not None:
            self.function.builds = True


def dotted(node: ast.expr) -> str:
    """``self.conv`` as text, empty for anything that isn't a chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def constant_fact(value: object) -> Fact:
    if value is None:
        return NONE
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return Scalar(kind.__name__, value)
    return UNKNOWN


def join_all(facts: list[Fact]) -> Fact:
    if not facts:
        return UNKNOWN
    out = facts[0]
    for fact in facts[1:]:
        out = join(out, fact)
    return out


def class_names(fact: Fact) -> set[str]:
    match fact:
        case Qual():
            return {fact.name}
        case Tuple():
            return set().union(*map(class_names, fact.items)) if fact.items else set()
        case Class():
            return {fact.name}
        case _:
            return set()
