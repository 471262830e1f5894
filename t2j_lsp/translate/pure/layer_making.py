"""The expressions that make what a module holds, each from the layer's call in the constructor."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from t2j_lsp.symbols import Comprehension, with_ancestors
from t2j_lsp.translate.expressions.context import Edits
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.facts import Qual, Scalar, Shape, Tuple
from t2j_lsp.translate.rule.functional import DRAWN
from t2j_lsp.translate.rule.record import REGISTRY

from .children import (
    Child,
    Choice,
    Constructor,
    LayerChild,
    ListChild,
    OwnChild,
    SequentialChild,
    Setting,
    Unconvertible,
)
from .names import FunctionNames
from .plan import ModulePlan
from .settings import rendered

KEY = "\0key\0"
"""Stands for a key until it is known how many there are."""


@dataclass(frozen=True)
class Made:
    """The expressions that make a child's parameters and its state, or ``pair``, one that makes both."""

    params: str | None = None
    state: str | None = None
    pair: str | None = None


class ChildMaking:
    """Makes the children of one class, in the function that makes its parameters."""

    def __init__(
        self,
        inference: Inference,
        constructor: Constructor,
        plans: Mapping[ClassInfo, ModulePlan],
        plan: ModulePlan,
        names: FunctionNames,
        edits: Edits,
    ) -> None:
        self.inference, self.source = inference, inference.source
        self.constructor, self.plans, self.plan, self.names, self.edits = constructor, plans, plan, names, edits
        self.read: set[str] = set()
        """Settings that the constructor itself reads, as local variables."""
        self.keys = 0
        self.repeated = False
        """Whether keys are needed in a loop."""
        self.texts: list[tuple[ast.stmt, list[str]]] = []
        self.gone: set[ast.stmt] = set()

    def key(self, node: ast.AST) -> str:
        self.keys += 1
        around = list(with_ancestors(node, self.source.parents))
        inside = around[: around.index(self.constructor.node)] if self.constructor.node in around else around
        self.repeated |= any(isinstance(at, ast.For | ast.While | Comprehension) for at in inside)
        return KEY

    # --- expressions ----------------------------------------------------------------------------------------------

    def render(self, node: ast.expr) -> str:
        """An expression of the constructor in the function."""

        def instead(one: ast.AST) -> str | None:
            if isinstance(one, ast.Attribute) and self.constructor.is_own(one):
                return self.read_again(one)
            if isinstance(one, ast.Name) and one.id == self.constructor.own:
                raise Unconvertible(one, "its constructor hands the module itself on")
            if isinstance(one, ast.Call):
                return self._drawn(one)
            return None

        return rendered(self.source, node, instead)

    def read_again(self, node: ast.Attribute) -> str:
        """A setting that the constructor reads again."""
        held, init = self.constructor.attributes.get(node.attr), self.constructor.node
        if not isinstance(held, Setting) or init is None:
            raise Unconvertible(node, f"its constructor uses self.{node.attr}, which is no setting")
        if isinstance(held.value, ast.Name) and held.value.id == node.attr:
            return node.attr
        if node.attr in self.source.symbols.bound(init):
            text = self.render(held.value)
            return text if isinstance(held.value, ast.Name | ast.Constant) else f"({text})"
        self.read.add(node.attr)
        return node.attr

    def is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.constructor.own

    def random(self, call: ast.Call) -> str | None:
        """The name of what a call draws with, if it draws."""
        fact = self.inference.fact(call.func)
        rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
        return fact.name if rule is not None and rule.random and isinstance(fact, Qual) else None

    def _drawn(self, call: ast.Call) -> str | None:
        """A draw of initial values with a key; None for any other call."""
        name = self.random(call)
        if name is None:
            return None
        drawn = DRAWN.get(name)
        if drawn is None or call.keywords or not call.args:
            raise Unconvertible(call, f"{name} draws initial values, and has no form with a key yet")
        facts = [self.inference.fact(a) for a in call.args]
        texts = [self.render(a) for a in call.args]
        several = len(facts) > 1 and not any(isinstance(a, ast.Starred) for a in call.args)
        if several or all(isinstance(f, Scalar) and f.kind == "int" for f in facts):
            shape = f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        elif len(texts) == 1 and isinstance(facts[0], Tuple | Shape):
            shape = texts[0]
        else:
            raise Unconvertible(call, f"the shape that {name} draws is not known to be one")
        root, _, rest = drawn.partition(".")
        return f"{self.names.library(root)}.{rest}({self.key(call)}, {shape})"

    # --- what is made -----------------------------------------------------------------------------------------------

    def is_pair(self, child: Child) -> bool:
        match child:
            case OwnChild():
                return self.plans[child.info].state
            case SequentialChild():
                return any(self.is_pair(item) for _, item in child.items)
            case Choice():
                return True
            case _:
                return False

    def made(self, child: Child) -> Made:
        """The expressions that make a child."""
        match child:
            case LayerChild():
                return self._layer(child)
            case OwnChild():
                return self._own(child)
            case SequentialChild():
                return self._sequential(child)
            case ListChild():
                return self._list(child)
            case _:
                raise Unconvertible(child.test, "a choice between layers inside a list of layers")

    def _layer(self, child: LayerChild) -> Made:
        layer = child.layer
        if not layer.init:
            return Made()
        arguments = [self.key(child.node)] if layer.keyed else []
        signature = layer.signature.by_name
        for name in layer.takes:
            node = child.arguments.get(name)
            if node is None:
                continue
            if signature[name].default is None:
                arguments.append(self.render(node))
            elif ast.unparse(node) != signature[name].default:
                arguments.append(f"{name}={self.render(node)}")
        arguments += [f"{name}={value}" for name, value in layer.given.items()]
        params = f"{self.names.helper(layer.init)}({', '.join(arguments)})"
        if not layer.state:
            return Made(params)
        return Made(params, f"{self.names.helper(layer.state)}({self.render(child.arguments[layer.takes[0]])})")

    def _own(self, child: OwnChild) -> Made:
        arguments = [self.key(child.node)]
        spread = any(isinstance(a, ast.Starred) for a in child.node.args)
        if spread or any(keyword.arg is None for keyword in child.node.keywords):
            raise Unconvertible(child.node, f"the arguments of {child.info.name} are not written out")
        arguments += [self.render(a) for a in child.node.args]
        arguments += [f"{keyword.arg}={self.render(keyword.value)}" for keyword in child.node.keywords]
        text = f"{self.names.init(child.info)}({', '.join(arguments)})"
        return Made(pair=text) if self.plans[child.info].state else Made(text)

    def _sequential(self, child: SequentialChild) -> Made:
        if any(self.is_pair(item) for _, item in child.items):
            raise Unconvertible(child.node, "modules with buffers in a Sequential inside a list")
        made = [(key, self.made(item)) for key, item in child.items]
        params = ", ".join(f'"{key}": {one.params}' for key, one in made if one.params is not None)
        state = ", ".join(f'"{key}": {one.state}' for key, one in made if one.state is not None)
        return Made(f"{{{params}}}" if params else None, f"{{{state}}}" if state else None)

    def _list(self, child: ListChild) -> Made:
        if child.comprehension is not None:
            (item,) = child.items
            made = self.made(item)
            if made.pair is not None:
                return Made(pair=f"{self.names.helper('unzip')}({self._comprehension(child.comprehension, made.pair)})")
            forms = [
                f"[{self._comprehension(child.comprehension, text)}]" if text else None
                for text in (made.params, made.state)
            ]
            return Made(*forms)
        written = child.node.args[0] if child.node.args else None
        count = len(written.elts) if isinstance(written, ast.List | ast.Tuple) else 0
        made_items = [self.made(item) for item in child.items[:count]]
        if made_items and all(one.pair is not None for one in made_items):
            return Made(pair=f"{self.names.helper('unzip')}([{', '.join(one.pair or '' for one in made_items)}])")
        if any(one.pair is not None for one in made_items):
            raise Unconvertible(child.node, "a list in which only some of the modules have buffers")
        params = f"[{', '.join(one.params or '{}' for one in made_items)}]"
        stateful = any(one.state for one in made_items) or not made_items and self.plan.holds_state_in(child)
        return Made(params, f"[{', '.join(one.state or '{}' for one in made_items)}]" if stateful else None)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, element: str) -> str:
        """A comprehension with another element, without its brackets."""

        def instead(one: ast.AST) -> str | None:
            if one is node.elt:
                return element
            if isinstance(one, ast.Attribute) and self.constructor.is_own(one):
                return self.read_again(one)
            return None

        return rendered(self.source, node, instead)[1:-1]
