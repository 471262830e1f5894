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
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Layer, ListOf, Object, Qual, Tensor
from t2j_lsp.translate.rule.facts import Tuple as TupleFact
from t2j_lsp.translate.rule.layer import LAYERS

from .copied_modules import CopiedModules, Sources
from .new_modules import NewModules
from .unseen_changes import UnseenChanges

_REFLECTION = frozenset({"setattr", "delattr", "vars", "globals", "exec"})
_CHANGES = frozenset({"append", "extend", "insert", "pop", "clear", "update", "remove", "setdefault", "popitem", "add"})
_READS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers", "state_dict"})
"""Methods of every module that give its arrays."""
_WALKS = frozenset({"modules", "named_modules", "children", "named_children"})
"""Methods of every module that give its parts, which a loop may look at."""
_MAKES = frozenset({"apply", "register_buffer"})
"""Methods of every module with which a constructor sets its own values."""


class Trees:
    """Looks at modules and the classes that they are made of."""

    def __init__(self, context: Context, sources: Sources = lambda _: (None,), tied: bool = False) -> None:
        """``tied`` asks for less: variables may stand twice."""
        self.ctx = context
        self.sources = sources
        self.tied = tied
        self.copies = CopiedModules(context, sources)
        self.unseen = UnseenChanges(context)
        self.new = NewModules(context, self.is_tree)
        self._known: dict[ClassInfo, bool] = {}

    @cached_property
    def graphs(self) -> Trees:
        """The same of all modules that stay as they are when they are called, trees or not."""
        return Trees(self.ctx, self.sources, True)

    def is_tree(self, fact: Fact) -> bool:
        """Whether no variable stands twice in a module, and no call of it sets anything but variables."""
        match fact:
            case Instance():
                return self._class(fact.cls.info)
            case Layer():
                return self._layer(fact)
            case AnyModule(wrapped=wrapped) if wrapped is not None:
                return self.is_tree(wrapped)  # its wrapper holds nothing else
        return False

    def are_passed(self, places: list[ast.expr], body: str) -> bool:
        """Whether the module that is read in these places is a tree and stays one in code that is moved there."""
        stored = (n for n in symbols.walk(ast.parse(f"def body():\n{_indented(body)}")) if isinstance(n, ast.Attribute))
        if not places or any(not isinstance(n.ctx, ast.Load) for n in stored) or not self._nothing_is_tied:
            return False
        return all(self.is_tree(self.ctx.fact(place)) for place in places)

    @cached_property
    def _nothing_is_tied(self) -> bool:
        """Whether attributes of modules are set in constructors alone, and by ``self.x = ...``."""
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                own = isinstance(node.value, ast.Name) and node.value.id == "self"
                fact = self.ctx.fact(node.value)
                deep = isinstance(node.value, ast.Attribute) and not isinstance(fact, Qual)
                if not own and (is_module(fact) or deep) and not (self.tied and self._is_constructing(node)):
                    return False
            if isinstance(node, ast.Name) and node.id in _REFLECTION:
                return False
            if isinstance(node, ast.Attribute) and "hook" in node.attr:
                return False
        return True

    def _is_constructing(self, node: ast.AST) -> bool:
        """Whether a constructor sets something of its own object: ``self.head.weight = self.embedding.weight``."""
        function = symbols.nearest(ast.FunctionDef, node, self.ctx.source.parents)
        return _of_self(node) and function is not None and function.name == "__init__"

    # --- layers and classes ---------------------------------------------------------------------------------------

    def _layer(self, layer: Layer) -> bool:
        if layer.name in CONTAINERS:
            copied = self.copies.copied(layer) if self.tied else None
            items = copied if copied is not None else layer.items
            if self.tied and items is not None and all(map(self.is_tree, items)):
                return True
            return layer.node is not None and not layer.node.keywords and all(map(self.new.is_new, layer.node.args))
        return layer.name in LAYERS and (self.tied or layer.node is None or self.new.made_in_place(layer.node))

    def _class(self, info: ClassInfo) -> bool:
        """Whether a class makes trees; of one that holds itself, whether no call sets more."""
        if info not in self._known:
            before = dict(self._known)
            self._known[info] = self.tied
            made = all(map(self._own, info.ancestry()))
            if self.tied and not made:  # what was said of others may rest on this one
                self._known = before | {one: False for one, known in self._known.items() if not known}
            self._known[info] = made
        return self._known[info]

    def _own(self, info: ClassInfo) -> bool:
        """Whether this class of the file, without its bases, makes trees."""
        foreign = any(isinstance(b, Qual) and b.name in LAYERS or not isinstance(b, Qual | Class) for b in info.bases)
        if foreign or info.external:
            return False
        constructing = self._constructors(info)
        for name, method in info.methods.items():
            if self.unseen.is_uncalled(name):
                continue
            if any(self._is_obstacle(node, name in constructing, info) for node in symbols.walk(method.node)):
                return False
        return all(self._attribute(fact) for fact in info.attributes.values())

    def _constructors(self, info: ClassInfo) -> set[str]:
        """The constructor of a class and the methods that it alone calls: ``self._make_layer(...)``."""
        making = {"__init__"}
        while True:
            inside = {n for name in making & info.methods.keys() for n in symbols.walk(info.methods[name].node)}
            more = {name for name in info.methods.keys() - making if self._is_named_in(name, inside)}
            if not more:
                return making
            making |= more

    def _is_named_in(self, method: str, nodes: set[ast.AST]) -> bool:
        """Whether a method is called as ``self.method()`` in some code, and named nowhere else."""
        named = self.ctx.source.attributes.get(method, [])
        called = (isinstance(c := self.ctx.source.parents.get(n), ast.Call) and c.func is n for n in named)
        return bool(named) and all(n in nodes and ast.unparse(n.value) == "self" for n in named) and all(called)

    def _attribute(self, fact: Fact) -> bool:
        match fact:
            case ListOf():
                return self._attribute(fact.item)
            case TupleFact():
                return all(map(self._attribute, fact.items))
            case Object(kind="optimizer" | "scheduler"):
                return False  # its state is the module's, and a step is passed it besides
        if isinstance(fact, AnyModule) and fact.wrapped is None and fact.names:
            return fact.names <= LAYERS.keys() - CONTAINERS  # one of several layers, each of which was looked at
        return self.is_tree(fact) if is_module(fact) else True

    def _is_obstacle(self, node: ast.AST, constructing: bool, info: ClassInfo) -> bool:
        """Whether a node may set what is no variable when the module is called, or make a variable stand twice."""
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            deep = not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
            sets = _of_self(node) and (deep and not self.tied or not constructing)
            return sets and not self.unseen.is_unread(node, info)
        if isinstance(node, ast.Call) and self._of_every_module(node, constructing, info):
            return False
        if isinstance(node, ast.Call) and is_module(self.ctx.fact(node)) and not self.new.constructs(node):
            return not self.tied and not symbols.is_super(node) and not self.new.gives_new(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, method = node.func.value, node.func.attr
            if isinstance(owner, ast.Name) and owner.id == "self":
                unknown = not any(method in one.methods or method in one.attributes for one in info.ancestry())
                fact = self.ctx.fact(node.func)
                if self.new.holds_function(info, method):
                    return False
                return unknown or method not in info.methods and not is_module(fact) and not _is_plain(fact)
            changes = method in _CHANGES and not (self.tied and constructing)
            return _of_self(owner) and changes and not isinstance(self.ctx.fact(owner), Tensor)
        return not self.tied and self.new.stands_already(node)

    def _of_every_module(self, call: ast.Call, constructing: bool, info: ClassInfo) -> bool:
        """Whether it is a method of ``self`` that all modules have, and that neither ties nor sets anything."""
        match call.func:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                pass
            case _:
                return False
        if any(name in one.methods or name in one.attributes for one in info.ancestry()):
            return False
        around = self.ctx.source.parents.get(call)
        walked = isinstance(around, ast.For | ast.comprehension) and around.iter is call
        alone = isinstance(around, ast.Expr)
        if name == "register_parameter" and constructing:
            return alone and not isinstance(call.args[-1], ast.Name | ast.Attribute)
        return name in _READS or name in _WALKS and walked or name in _MAKES and constructing and alone


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in [*text.splitlines(), "pass"])


def _of_self(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"


def _is_plain(fact: Fact) -> bool:
    """Whether what is called is known, and is no module: a function of a library."""
    return isinstance(fact, Qual)
