"""How children are applied: what a layer, a module of the file or a chain of them becomes where it is called."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from t2j_lsp.symbols import Comprehension, with_ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.facts import TENSOR, UNKNOWN, Fact, Tensor
from t2j_lsp.translate.rule.facts import Tuple as TupleFact
from t2j_lsp.translate.rule.functional import FunctionalLayer

from .children import Child, Choice, Constructor, LayerChild, ListChild, OwnChild, SequentialChild, Unconvertible
from .names import FunctionNames
from .plan import ModulePlan
from .settings import ModuleSettings
from .statements import FunctionStatement


@dataclass(frozen=True)
class Held:
    """A child, and where its parameters and its state are."""

    child: Child
    params: str
    state: str
    hint: str
    """What a value that it gives may be called."""


class ChildCalls:
    """The calls of the children of one class, in the function that applies it."""

    def __init__(
        self,
        inference: Inference,
        constructor: Constructor,
        plans: Mapping[ClassInfo, ModulePlan],
        plan: ModulePlan,
        names: FunctionNames,
    ) -> None:
        self.inference, self.source = inference, inference.source
        self.constructor, self.plans, self.plan, self.names = constructor, plans, plan, names
        forward = plan.info.methods[plan.method].node
        self.node = forward
        self.own = forward.args.args[0].arg if forward.args.args else "self"
        self.bound = self.source.symbols.bound(forward)
        self.settings = ModuleSettings(inference, constructor, self.bound)
        self.used: set[str] = set()
        """Names that the function got."""
        self.statements: list[FunctionStatement] = []
        self.current = FunctionStatement(forward)
        """The statement that is being rewritten."""
        self.loops: dict[str, Held] = {}
        """Variables of loops over lists of layers."""
        self.facts: list[tuple[str, Fact]] = []
        """Facts of code that the function has, by the code."""
        self.repeated = False
        """Whether a key is taken in a loop."""
        if "key" in self.bound:
            plan.key = "rng"

    def _is_elif(self, node: ast.stmt) -> bool:
        return isinstance(node, ast.If) and self.source.text.startswith("elif", self.source.span(node)[0])

    def known(self, text: str, fact: Fact) -> str:
        if isinstance(fact, Tensor):
            self.facts.append((text, replace(fact, variable=False, any_layout=False)))
        else:
            self.facts.append((text, TENSOR))
        return text

    def element(self, node: ast.Call, held: Held, children: ListChild, arguments: list[str]) -> Held:
        """One element of a list, if all are applied in the same way."""
        if not children.items:
            raise Unconvertible(node, "a list of layers is empty")
        forms: set[str] = set()
        current, facts = self.current, list(self.facts)
        for item in children.items:
            self.current = FunctionStatement(current.node)
            text = self.applied(replace(held, child=item), arguments, UNKNOWN, node)
            forms.add("\n".join([*self.current.before, text]))
        self.current, self.facts = current, facts
        if len(forms) > 1:
            raise Unconvertible(node, "the layers of a list are applied in different ways")
        return replace(held, child=children.items[0])

    def applied(self, held: Held, arguments: list[str], fact: Fact, at: ast.Call) -> str:
        """The code that applies a child; what it needs lines for goes in front of the statement."""
        child = held.child
        if isinstance(child, OwnChild):
            return self._own_call(child, held, arguments, at)
        if len(arguments) != 1:
            raise Unconvertible(at, "a layer is called with more than its input")
        name, equals, value = arguments[0].partition("=") if at.keywords else ("", "", arguments[0])
        x = value if equals and name == "input" else arguments[0]
        match child:
            case LayerChild():
                return self._layer(child, held, x, fact, at)
            case SequentialChild():
                return self._sequential(child, held, x, fact, at)
            case Choice():
                return self._choice(child, held, x, fact, at)
            case _:
                raise Unconvertible(at, "a list of layers is called")

    def _layer(self, child: LayerChild, held: Held, x: str, fact: Fact, at: ast.Call) -> str:
        layer = child.layer
        if not layer.apply:
            return x
        options = self._options(child)
        if layer.is_library:
            options += [f"{keyword.arg}={self.settings.text(keyword.value)}" for keyword in child.rest]
            return f"{self.names.torch(layer.apply, self.node)}({', '.join([x, *options])})"
        arguments = [held.params] if layer.init else []
        if layer.draws:
            arguments.append(self.key(at))
        if layer.state:
            arguments.append(held.state)
        arguments += [x, *options]
        if layer.draws or layer.state:
            self.plan.trains = True
            arguments.append("train=train")
        text = f"{self.names.helper(layer.apply)}({', '.join(arguments)})"
        result = _result(layer, fact)
        if not layer.state:
            return self.known(text, result)
        self.facts.append((text, TupleFact((result, UNKNOWN))))
        return self._stored(held, text, at)

    def _options(self, child: LayerChild) -> list[str]:
        """The settings of a layer, as its function takes them."""
        layer, out, named = child.layer, [], False
        for parameter, keyword in layer.options.items():
            node, default = child.arguments.get(parameter), layer.signature.by_name[parameter].default
            if node is None and keyword in layer.written:
                out.append(f"{keyword}={layer.written[keyword]}")
                named = True
            elif node is not None and (keyword in layer.written or ast.unparse(node) != default):
                text = self.settings.text(node)
                positional = (default is None or layer.draws) and not named
                out.append(text if positional else f"{keyword}={text}")
                named |= not positional
        return out

    def _own_call(self, child: OwnChild, held: Held, arguments: list[str], at: ast.Call) -> str:
        plan = self.plans[child.info]
        given = {k.arg: k.value for k in child.node.keywords if k.arg is not None}
        given |= dict(zip(plan.parameters, child.node.args, strict=False))
        before = [held.params, held.state] if plan.state else [held.params]
        behind = [f"{name}={self.settings.text(given[name])}" for name in plan.settings if name in given]
        if plan.draws:
            behind.append(f"{plan.key}={self.key(at)}")
        if plan.trains:
            self.plan.trains = True
            behind.append("train=train")
        text = f"{self.names.apply(child.info)}({', '.join([*before, *arguments, *behind])})"
        return self._stored(held, text, at) if plan.updates else text

    def _sequential(self, child: SequentialChild, held: Held, x: str, fact: Fact, at: ast.Call) -> str:
        items = [
            (key, item) for key, item in child.items if not (isinstance(item, LayerChild) and not item.layer.apply)
        ]
        lines = len(items) > 1 + (not self.plan.child_updates(child)) and self._is_hoistable(at)
        variable = self._variable(held, at) if lines else ""
        text = x
        for index, (key, item) in enumerate(items):
            inner = Held(item, f'{held.params}["{key}"]', f'{held.state}["{key}"]', held.hint)
            if lines and index and text != variable:
                self.current.before.append(f"{variable} = {text}")
                text = variable
            text = self.applied(inner, [text], fact, at)
            fact = TENSOR
        return text

    def _choice(self, child: Choice, held: Held, x: str, fact: Fact, at: ast.Call) -> str:
        one, other = child.then, child.other
        if one is None or other is None:
            present = one or other
            assert present is not None
            return self.applied(replace(held, child=present), [x], fact, at)
        test = self._test(child, held)
        if not self._is_hoistable(at):
            texts = [self.applied(replace(held, child=c), [x], fact, at) for c in (one, other)]
            return f"({texts[0]} if {test} else {texts[1]})"
        variable = self._variable(held, at)
        outer, blocks = self.current.before, []
        for branch in (one, other):
            self.current.before = []
            text = self.applied(replace(held, child=branch), [x], fact, at)
            blocks.append(([*self.current.before], text))
        self.current.before = outer
        if not any(lines for lines, _ in blocks):
            return f"({blocks[0][1]} if {test} else {blocks[1][1]})"
        for word, (lines, text) in zip((f"if {test}:", "else:"), blocks, strict=True):
            last = [] if text == variable and lines else [f"{variable} = {text}"]
            if word == "else:" and last == [f"{variable} = {variable}"]:
                continue
            outer += [word, *(f"    {line}" for line in [*lines, *last])]
        return variable

    def _test(self, child: Choice, held: Held) -> str:
        """The condition of a choice: by what is among the parameters, where that tells."""
        holds = [c is not None and self.plan.child_params(c) for c in (child.then, child.other)]
        container, _, key = held.params.rpartition("[")
        if holds == [True, False]:
            return f"{key[:-1]} in {container}"
        if holds == [False, True]:
            return f"{key[:-1]} not in {container}"
        return self.settings.text(child.test)

    # --- lines, names and keys ------------------------------------------------------------------------------------

    def _stored(self, held: Held, text: str, at: ast.Call) -> str:
        """A call that gives back a state, too: it gets a line of its own."""
        if not self._is_hoistable(at):
            raise Unconvertible(at, "a layer that has a state is called inside a condition or a comprehension")
        variable = self._variable(held, at)
        self.current.before.append(f"{variable}, {held.state} = {text}")
        return variable

    def _is_hoistable(self, at: ast.AST) -> bool:
        """Whether a call runs exactly once, whenever its statement does."""
        inner: ast.AST = at
        for around in with_ancestors(self.source.parents[at], self.source.parents):
            match around:
                case ast.stmt():
                    return not isinstance(around, ast.While) and not self._is_elif(around)
                case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    return False
                case ast.IfExp() if inner is not around.test:
                    return False
                case ast.BoolOp() if inner is not around.values[0]:
                    return False
            inner = around
        return False

    def _variable(self, held: Held, at: ast.Call) -> str:
        """The variable that a value gets in front of its statement: that of the statement where it is all of it."""
        statement = self.current.node
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is at:
                return name
        names = self.current.variables
        if at not in names:
            names[at] = self.fresh(held.hint, again=True)
        return names[at]

    def fresh(self, hint: str, again: bool = False) -> str:
        """A name that nothing in the function has; ``again``: what another statement got may be taken again."""
        taken = self.bound | self.names.source.symbols.module | set(self.names.renames) | self.names.taken
        taken |= {*self.settings.prologue, *self.constructor.parameters}
        taken |= set(self.current.variables.values()) if again else self.used
        name = hint
        while name in taken:
            name += "_"
        self.used.add(name)
        return name

    def key(self, at: ast.AST) -> str:
        self.plan.draws = True
        around = list(with_ancestors(at, self.source.parents))
        inside = around[: around.index(self.node)]
        if any(isinstance(one, ast.Lambda | Comprehension) for one in inside):
            raise Unconvertible(at, "something is drawn inside a comprehension")
        self.repeated |= any(isinstance(one, ast.For | ast.While) for one in inside)
        token = f"_t2j_key_{sum(len(s.keys) for s in self.statements)}_{len(self.current.keys)}_"
        self.current.keys.append(token)
        return token


def _result(layer: FunctionalLayer, fact: Fact) -> Fact:
    """What a layer gives for an input."""
    result = layer.rule.result
    if isinstance(result, Tensor) and result.dtype == "same":
        return replace(fact, variable=False) if isinstance(fact, Tensor) else TENSOR
    return result
