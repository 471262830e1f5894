"""What the inference passes share: the facts found so far and the hooks between the passes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

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


class InferenceState:
    """State of the inference of one file."""

    def __init__(self) -> None:
        self.facts: dict[ast.AST, Fact] = {}
        self.env: dict[str, Fact] = {}
        self.classes: dict[ast.ClassDef, ClassInfo] = {}
        self.functions: dict[ast.AST, FunctionInfo] = {}
        self.current: FunctionInfo | None = None
        self.current_class: ClassInfo | None = None
        self.evidence: dict[str, Fact] = {}
        self.weak: set[str] = set()
        """Parameters that only the names of methods make tensors, names that other objects may have too."""
        """What the present function's use of its parameters tells of them."""
        self.returned: list[Fact] = []
        self.yielded: list[Fact] = []
        self.indexed: set[ast.Call] = set()
        """Constructor calls of containers that are indexed, measured or iterated."""
        self.indexes_any = False
        """Whether a module of unknown class is indexed somewhere."""
        self.isinstance_classes: set[str] = set()
        """torch layers that isinstance asks for."""
        self.module_random = False
        self.arrays_imported: bool | None = None
        """Whether the file imports a package with arrays of its own; None until asked."""

    # Provided by Inference.
    def infer_function(self, info: FunctionInfo) -> Fact:
        raise NotImplementedError

    def module_member(self, module: str, name: str) -> Fact | None:
        raise NotImplementedError

    def infer_class(self, info: ClassInfo) -> None:
        raise NotImplementedError

    def bind(self, target: ast.expr, fact: Fact, env: dict[str, Fact], value: ast.expr | None) -> None:
        raise NotImplementedError

    def narrow(self, test: ast.expr, env: dict[str, Fact]) -> None:
        raise NotImplementedError

    def _expr(self, node: ast.expr, env: dict[str, Fact]) -> Fact:
        raise NotImplementedError

    def expr(self, node: ast.expr | None, env: dict[str, Fact], load: bool = False) -> Fact:
        """Infer one expression and remember its fact."""
        if node is None:
            return NONE
        fact = self._expr(node, env)
        self.facts[node] = fact
        return fact

    def _note_indexed(self, fact: Fact) -> None:
        if isinstance(fact, Layer) and fact.name == "torch.nn.Sequential":
            if fact.node is not None:
                self.indexed.add(fact.node)
            else:
                self.indexes_any = True
        elif isinstance(fact, AnyModule):
            self.indexes_any = True

    def _random(self, name: str, rule: Rule) -> None:
        if not rule.random:
            return
        if self.current is None:
            self.module_random = True
        elif name.startswith("torch.nn.init."):
            self.current.builds = True
        else:
            self.current.draws = True

    def _remember(self, info: FunctionInfo | ClassInfo) -> None:
        if isinstance(info, ClassInfo) and info.is_module:
            self._builds()
        if self.current is not None:
            self.current.callees.add(info)

    def _builds(self) -> None:
        if self.current is not None:
            self.current.builds = True
        else:
            self.module_random = True


@dataclass(frozen=True)
class Parameter(Fact):
    """A function parameter of which nothing is known yet; use as a tensor is evidence.

    ``foreign``: methods that tensors don't have are called on it, so that ``x.clone()`` makes no tensor of it.
    """

    name: str
    foreign: bool = False


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
