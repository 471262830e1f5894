"""Settings of a module in its functions: expressions of the constructor, in terms of its parameters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, is_module
from t2j_lsp.translate.rule.facts import Qual, Scalar, Tensor
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.text import Edit, Source, apply_edits

from .children import Constructor, Setting, Unconvertible
from .unpacking import given_to

_PURE = frozenset({"torch", "math", "functools", "operator", "numpy", "einops"})
"""Packages whose functions give the same value each time, but for those that draw."""
_BUILTINS = frozenset({
    "abs", "bool", "divmod", "float", "int", "isinstance", "len", "max", "min", "pow", "range", "round", "sorted",
    "str", "sum", "tuple", "zip", "enumerate", "reversed",
})  # fmt: skip
_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict)


def rendered(source: Source, node: ast.AST, instead: Callable[[ast.AST], str | None], inside: bool = False) -> str:
    """The text of a node, with what ``instead`` says in place of the outermost nodes that it knows.

    ``inside``: it is asked of what stands in the node alone.
    """
    edits: list[Edit] = []

    def visit(one: ast.AST) -> None:
        new = None if inside and one is node else instead(one)
        if new is not None:
            start, end = source.span(one)
            edits.append(Edit(start, end, 0, new))
            return
        for child in ast.iter_child_nodes(one):
            visit(child)

    visit(node)
    return apply_edits(source.text, edits, *source.span(node))


class ModuleSettings:
    """The settings that a module's functions read, and the parameters of the constructor that they come from."""

    def __init__(self, inference: Inference, constructor: Constructor, taken: Container[str]) -> None:
        self.inference, self.source = inference, inference.source
        self.constructor = constructor
        self.taken = taken
        """Names that the function has for something else."""
        self.prologue: dict[str, str] = {}
        """Settings that are computed at the function's beginning, by their names."""
        self.needed: set[str] = set()
        """Parameters of the constructor that are read."""
        self._inside: set[str] = set()

    def text(self, node: ast.expr) -> str:
        """An expression of the constructor as a function says it. Raises Unconvertible where it can't."""
        inner = _bound_inside(node)
        later = {id(n) for at in symbols.walk(node) if isinstance(at, ast.Lambda) for n in symbols.walk(at.body)}

        def instead(one: ast.AST) -> str | None:
            if isinstance(one, ast.Call):
                self._allow(one, once=id(one) not in later)
            if isinstance(one, ast.Attribute) and self.constructor.is_own(one):
                return self.attribute(one.attr, one)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id not in inner:
                given = self._variable(one)
                return None if given is None else _bracketed(self.text(given[0]), given[0]) + given[1]
            return None

        if isinstance(node, ast.Name) and (whole := self._variable(node)) is not None:
            value, index = whole
            return _bracketed(self.text(value), value) + index if index else self.text(value)
        return rendered(self.source, node, instead)

    def attribute(self, name: str, at: ast.AST) -> str:
        """A setting by its attribute's name: its text where that is simple, else a variable that is computed first."""
        if name in self.prologue:
            return name
        attribute = self.constructor.attributes.get(name)
        if not isinstance(attribute, Setting):
            raise Unconvertible(at, f"self.{name} is no setting that its constructor makes in sight")
        if name in self._inside:
            raise Unconvertible(at, f"self.{name} depends on itself")
        self._inside.add(name)
        try:
            text = self.text(attribute.value)
        finally:
            self._inside.discard(name)
        if isinstance(attribute.value, ast.Name | ast.Constant) or text.replace(".", "").isidentifier():
            return text
        if name in self.taken or name in self.constructor.parameters:
            return f"({text})"
        self.prologue[name] = text
        return name

    def _allow(self, call: ast.Call, once: bool) -> None:
        """Raises Unconvertible where a call that the constructor makes ``once`` may give another value each time."""
        fact = self.inference.fact(call.func)
        if is_module(self.inference.fact(call)):
            raise Unconvertible(call, "a module is among the settings")
        match fact:
            case Qual(name=name):
                rule = REGISTRY.get(name)
                if rule is not None and rule.random:
                    raise Unconvertible(call, "a setting is drawn at random, and is in no state dict")
                if name.partition(".")[0] in _PURE:
                    return
            case Function():
                return
        if not once:
            return
        if isinstance(call.func, ast.Name) and call.func.id in _BUILTINS:
            return
        if isinstance(call.func, ast.Attribute) and isinstance(self.inference.fact(call.func.value), Tensor | Scalar):
            return
        raise Unconvertible(call, f"a setting is made by {ast.unparse(call.func)}, which may do so once only")

    def _variable(self, node: ast.Name) -> tuple[ast.expr, str] | None:
        """What a variable of the constructor is, and the index of it; None for a name that the function has too."""
        init = self.constructor.node
        if init is None or node.id not in self.source.symbols.bound(init):
            return None
        stores = [n for n in symbols.walk(init) if isinstance(n, ast.Name) and n.id == node.id and not _is_load(n)]
        if node.id in self.constructor.parameters:
            if stores:
                raise Unconvertible(node, f"its constructor gives {node.id} another value, and a setting reads it")
            self.needed.add(node.id)
            return None
        if node.id == self.constructor.own:
            raise Unconvertible(node, "a setting holds the module itself")
        for statement in init.body:
            value = given_to(node.id, statement) if len(stores) == 1 else None
            if value is not None:
                return value
        raise Unconvertible(node, f"a setting reads {node.id}, which its constructor does not assign once and for all")


def _is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _bracketed(text: str, node: ast.expr) -> str:
    if isinstance(node, ast.Tuple):
        return text if text.startswith("(") else f"({text})"
    return text if isinstance(node, _ATOMS) else f"({text})"


def _bound_inside(node: ast.AST) -> set[str]:
    """Names that lambdas and comprehensions inside an expression bind."""
    names: set[str] = set()
    for inner in symbols.walk(node):
        if isinstance(inner, ast.Lambda):
            names |= symbols.parameter_names(inner)
        elif isinstance(inner, Comprehension):
            targets = (n for g in inner.generators for n in symbols.walk(g.target))
            names |= {n.id for n in targets if isinstance(n, ast.Name)}
    return names
