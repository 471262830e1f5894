"""Whether a module is surely a tree, so that its train step is compiled with ``nnx.jit(graph=False)``.

A call of a function under ``nnx.jit`` costs more than a small model's step: Flax walks the module to find what is
shared in it and what the function changed of its structure. ``graph=False`` leaves that out. It takes no module in
which one variable stands twice, and loses attributes that are not variables and are set during the call. Here both
are looked for in the classes of the file; what can't be seen is no tree (docs/decisions/train-steps.md).
"""

from __future__ import annotations

import ast
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.rule.facts import Class, ClassInfo, Fact, Instance, Layer, ListOf, Qual, Tensor, is_module
from t2j_lsp.translate.rule.facts import Tuple as TupleFact
from t2j_lsp.translate.rule.layer import LAYERS

_REFLECTION = frozenset({"setattr", "delattr", "vars", "globals", "exec"})
_CHANGES = frozenset({"append", "extend", "insert", "pop", "clear", "update", "remove", "setdefault", "popitem", "add"})
_CONSTRUCTOR = "__init__"


class Trees:
    """Looks at modules and the classes that they are made of."""

    def __init__(self, context: Context) -> None:
        self.ctx = context
        self._known: dict[ClassInfo, bool] = {}

    def is_tree(self, fact: Fact) -> bool:
        """Whether no variable stands twice in a module, and no call of it sets anything but variables."""
        match fact:
            case Instance():
                return self._class(fact.cls.info)
            case Layer():
                return self._layer(fact)
        return False

    def are_passed(self, places: list[ast.expr], body: str) -> bool:
        """Whether the module that is read in these places is a tree and stays one in code that is moved there."""
        stored = (n for n in symbols.walk(ast.parse(f"def body():\n{_indented(body)}")) if isinstance(n, ast.Attribute))
        if not places or any(not isinstance(n.ctx, ast.Load) for n in stored) or not self._nothing_is_tied:
            return False
        return all(self.is_tree(self.ctx.fact(place)) for place in places)

    def helper(self, name: str, *modules: str) -> str:
        """The helper that compiles something for modules, as the file names them: for a tree, or for any modules."""
        is_tree = len(modules) == 1 and self.are_passed(self._read.get(modules[0], []), "")
        return name if is_tree else f"{name}_graph"

    @cached_property
    def _read(self) -> dict[str, list[ast.expr]]:
        """Where variables and attributes are read, by their texts."""
        out: dict[str, list[ast.expr]] = {}
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load):
                if is_module(self.ctx.fact(node)):
                    out.setdefault(ast.unparse(node), []).append(node)
        return out

    @cached_property
    def _nothing_is_tied(self) -> bool:
        """Whether attributes of modules are set in constructors alone, and by ``self.x = ...``."""
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                own = isinstance(node.value, ast.Name) and node.value.id == "self"
                fact = self.ctx.fact(node.value)
                deep = isinstance(node.value, ast.Attribute) and not isinstance(fact, Qual)
                if not own and (is_module(fact) or deep):
                    return False
            if isinstance(node, ast.Name) and node.id in _REFLECTION:
                return False
            if isinstance(node, ast.Attribute) and "hook" in node.attr:
                return False
        return True

    # --- layers and classes ---------------------------------------------------------------------------------------

    def _layer(self, layer: Layer) -> bool:
        if layer.name in CONTAINERS:
            return layer.node is not None and not layer.node.keywords and all(map(self._child, layer.node.args))
        return layer.name in LAYERS and (layer.node is None or self._made_in_place(layer.node))

    def _child(self, node: ast.expr) -> bool:
        """Whether an argument of a container makes children of its own."""
        match node:
            case ast.Call():
                return self._constructs(node) and self._made_in_place(node) and self.is_tree(self.ctx.fact(node))
            case ast.List() | ast.Tuple():
                return all(map(self._child, node.elts))
            case ast.ListComp() | ast.GeneratorExp():
                return self._child(node.elt)
            case ast.Starred():
                return self._child(node.value)
        return False

    def _constructs(self, call: ast.Call) -> bool:
        """Whether a call makes a new module: one of a function may give one that is there already."""
        fact = self.ctx.fact(call.func)
        return isinstance(fact, Class) or isinstance(fact, Qual) and fact.name in LAYERS

    def _made_in_place(self, call: ast.Call) -> bool:
        """Whether no module that is there already is handed to a constructor."""
        return not any(self._stands_already(node) for node in symbols.walk(call))

    def _class(self, info: ClassInfo) -> bool:
        if info not in self._known:
            self._known[info] = False  # of a class that holds itself
            self._known[info] = all(map(self._own, info.ancestry()))
        return self._known[info]

    def _own(self, info: ClassInfo) -> bool:
        """Whether this class of the file, without its bases, makes trees."""
        foreign = any(isinstance(b, Qual) and b.name in LAYERS or not isinstance(b, Qual | Class) for b in info.bases)
        if foreign or info.external or info.keeps_rngs:
            return False
        for name, method in info.methods.items():
            if any(self._is_obstacle(node, name == _CONSTRUCTOR, info) for node in symbols.walk(method.node)):
                return False
        return all(self._attribute(fact) for fact in info.attributes.values())

    def _attribute(self, fact: Fact) -> bool:
        match fact:
            case ListOf():
                return self._attribute(fact.item)
            case TupleFact():
                return all(map(self._attribute, fact.items))
        return self.is_tree(fact) if is_module(fact) else True

    def _is_obstacle(self, node: ast.AST, constructing: bool, info: ClassInfo) -> bool:
        """Whether a node may set what is no variable when the module is called, or make a variable stand twice."""
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            deep = not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
            return _of_self(node) and (deep or not constructing)
        if isinstance(node, ast.Call) and is_module(self.ctx.fact(node)) and not self._constructs(node):
            return not _is_super(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, method = node.func.value, node.func.attr
            if isinstance(owner, ast.Name) and owner.id == "self":
                unknown = not any(method in one.methods or method in one.attributes for one in info.ancestry())
                fact = self.ctx.fact(node.func)
                return unknown or method not in info.methods and not is_module(fact) and not _is_plain(fact)
            return _of_self(owner) and method in _CHANGES and not isinstance(self.ctx.fact(owner), Tensor)
        return self._stands_already(node)

    def _stands_already(self, node: ast.AST) -> bool:
        """Whether a module or a parameter of one is handed on as a value."""
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return False
        parent, fact = self.ctx.source.parents.get(node), self.ctx.fact(node)
        if isinstance(parent, ast.Assign) and isinstance(node, ast.Attribute) and isinstance(fact, Tensor):
            return is_module(self.ctx.fact(node.value))
        if not is_module(fact) and not (isinstance(fact, ListOf | TupleFact) and _holds_modules(fact)):
            return False
        if isinstance(node, ast.Name) and node.id == "self":
            return not isinstance(parent, ast.Attribute) and not _is_super(parent)
        if isinstance(parent, ast.Attribute | ast.Subscript | ast.For | ast.comprehension):
            return False
        iterates = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name)
        if iterates and parent.func.id in ("enumerate", "zip", "len", "reversed", "isinstance"):  # type: ignore[union-attr]
            return False
        return not (isinstance(parent, ast.Call) and parent.func is node)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in [*text.splitlines(), "pass"])


def _is_super(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _of_self(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"


def _holds_modules(fact: Fact) -> bool:
    match fact:
        case ListOf():
            return is_module(fact.item) or _holds_modules(fact.item)
        case TupleFact():
            return any(is_module(one) or _holds_modules(one) for one in fact.items)
    return False


def _is_plain(fact: Fact) -> bool:
    """Whether what is called is known, and is no module: a function of a library."""
    return isinstance(fact, Qual)
