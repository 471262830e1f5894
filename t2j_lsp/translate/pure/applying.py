"""A module's ``forward`` as the function that applies it: ``net(params, x, *, train=False)``."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.facts import UNKNOWN, Qual
from t2j_lsp.translate.rule.functional import DROPPING
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.text import Edit

from .calls import ChildCalls, Held
from .children import (
    Child,
    Choice,
    LayerChild,
    ListChild,
    OwnBuffer,
    OwnParameter,
    SequentialChild,
    Setting,
    Unconvertible,
    is_child,
)
from .plan import ModulePlan
from .settings import rendered
from .statements import FunctionStatement

_CHANGING = frozenset(
    ("append", "extend", "insert", "pop", "popitem", "remove", "clear", "update", "add", "setdefault")
)
"""Methods that change a list, a dict or a set."""
LAYER_PARAMETERS = frozenset({"weight", "bias"})


class Applying(ChildCalls):
    """Writes the function that applies one class."""

    def write(self) -> None:
        """Read the function and decide on everything. Raises Unconvertible."""
        node = self.node
        if isinstance(node, ast.AsyncFunctionDef) or node.decorator_list:
            raise Unconvertible(node, "its forward has decorators, or is asynchronous")
        if node.args.kwarg or node.args.posonlyargs or node.args.defaults and node.args.vararg:
            raise Unconvertible(node, "its forward takes any keywords")
        if node.body[0].lineno == node.lineno:
            raise Unconvertible(node, "its forward stands on one line")
        if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in symbols.walk(node)):
            raise Unconvertible(node, "its forward is a generator")
        for statement in node.body:
            self._statement(statement)
        taken = {"params", "state", "train", self.plan.key, *self.settings.needed} & self.bound
        if taken:
            raise Unconvertible(node, f"its forward has a variable {min(taken)}, which is a parameter of the function")
        self.plan.settings = tuple(name for name in self.constructor.parameters if name in self.settings.needed)

    # --- statements -----------------------------------------------------------------------------------------------

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, FunctionNode | ast.ClassDef | ast.Global | ast.Nonlocal):
            raise Unconvertible(node, "its forward defines a function")
        one = FunctionStatement(node)
        self.current = one
        outer = dict(self.loops)
        if isinstance(node, ast.For):
            self._loop(node, one)
        else:
            for _, value in ast.iter_fields(node):
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, ast.expr | ast.withitem):
                        self._in_place(part, one)
        if isinstance(node, ast.Return) and self.plan.updates:
            self._return(node, one)
        self.statements.append(one)
        if one.before and (not self.source.starts_line(node) or isinstance(node, ast.While) or self._is_elif(node)):
            raise Unconvertible(node, "what it computes in front of a condition has no line of its own")
        for block in ("body", "orelse", "finalbody", "handlers"):
            for inner in getattr(node, block, []):
                if isinstance(inner, ast.ExceptHandler):
                    raise Unconvertible(inner, "its forward catches exceptions")
                self._statement(inner)
        self.loops = outer

    def _in_place(self, node: ast.AST, one: FunctionStatement) -> None:
        def visit(at: ast.AST) -> None:
            new = self._instead(at)
            if new is not None:
                start, end = self.source.span(at)
                one.edits.append(Edit(start, end, 0, new))
                return
            for child in ast.iter_child_nodes(at):
                visit(child)

        visit(node)

    def _return(self, node: ast.Return, one: FunctionStatement) -> None:
        """The function gives back its state, too."""
        if node.value is None:
            raise Unconvertible(node, "its forward returns nothing, and has a state to give back")
        start, end = self.source.span(node.value)
        close = self.source.text[end : self.source.span(node)[1]]
        if isinstance(node.value, ast.Tuple) and not self.source.text[start:end].startswith("("):
            one.edits += [Edit(start, start, -1, "("), Edit(end, end, 1, "), state")]
        else:
            one.edits.append(Edit(end + len(close), end + len(close), 1, ", state"))

    def _loop(self, node: ast.For, one: FunctionStatement) -> None:
        """A loop over a list of layers is one over their parameters."""
        match node:
            case ast.For(iter=ast.Attribute() as owner, target=ast.Name() | ast.Tuple() as target) if (
                self._list(owner) is not None
            ):
                index = ""
            case ast.For(
                iter=ast.Call(func=ast.Name(id="enumerate"), args=[ast.Attribute() as owner], keywords=[]),
                target=ast.Tuple(elts=[ast.Name(id=index), ast.Name() | ast.Tuple() as target]),
            ) if self._list(owner) is not None:
                pass
            case ast.For(
                iter=ast.Call(func=ast.Name(id="zip"), args=[ast.Attribute() as owner, *_]),
                target=ast.Tuple(elts=[ast.Name() as target, *_]),
            ) if self._list(owner) is not None and not self.plan.holds_state(owner.attr):
                index = ""
                for other in node.iter.args[1:]:  # type: ignore[attr-defined]
                    self._in_place(other, one)
            case _:
                self._in_place(node.target, one)
                self._in_place(node.iter, one)
                return
        held = self._list(owner)
        assert held is not None
        if isinstance(target, ast.Tuple):
            self._unpacking_loop(node, one, held, owner, target, index)
            return
        name, params = self.fresh(f"{target.id}_params"), f'params["{owner.attr}"]'
        shown = name
        if self.plan.holds_state(owner.attr) and not index:
            index = self.fresh("i")
            shown, params = f"{index}, {name}", f"enumerate({params})"
        one.edits.append(Edit(*self.source.span(target), 0, shown))
        one.edits.append(Edit(*self.source.span(owner), 0, params))
        self.loops[target.id] = Held(held, name, f'state["{owner.attr}"][{index}]', target.id)
        if any(isinstance(n, ast.Name) and n.id == target.id and self._is_value(n) for n in symbols.walk(node)):
            raise Unconvertible(node, f"the layer {target.id} of a loop is used in another way than by a call")

    def _unpacking_loop(
        self,
        node: ast.For,
        one: FunctionStatement,
        held: ListChild,
        owner: ast.Attribute,
        target: ast.Tuple,
        index: str,
    ) -> None:
        """``for attend, feed in self.layers`` over lists of layers, all of one length."""
        names = [element.id for element in target.elts if isinstance(element, ast.Name)]
        rows = [item for item in held.items if isinstance(item, ListChild) and item.comprehension is None]
        if (
            len(names) != len(target.elts)
            or not rows
            or [len(row.items) for row in rows] != [len(names)] * len(held.items)
        ):
            raise Unconvertible(node, f"the elements of self.{owner.attr} are not lists of {len(target.elts)} layers")
        params, shown = f'params["{owner.attr}"]', [self.fresh(f"{name}_params") for name in names]
        text = ", ".join(shown)
        if self.plan.holds_state(owner.attr) and not index:
            index = self.fresh("i")
            text, params = f"{index}, ({text})", f"enumerate({params})"
        elif index:
            text = f"({text})"
        one.edits.append(Edit(*self.source.span(target), 0, text))
        one.edits.append(Edit(*self.source.span(owner), 0, params))
        for place, name in enumerate(names):
            child = ListChild(held.node, tuple(row.items[place] for row in rows))
            self.loops[name] = Held(child, shown[place], f'state["{owner.attr}"][{index}][{place}]', name)
            if any(isinstance(n, ast.Name) and n.id == name and self._is_value(n) for n in symbols.walk(node)):
                raise Unconvertible(node, f"the layer {name} of a loop is used in another way than by a call")

    def _is_value(self, node: ast.Name) -> bool:
        parent = self.source.parents.get(node)
        return isinstance(node.ctx, ast.Load) and not (isinstance(parent, ast.Call) and parent.func is node)

    def _list(self, node: ast.Attribute) -> ListChild | None:
        child = self.constructor.attributes.get(node.attr) if self._is_own(node) else None
        return child if isinstance(child, ListChild) else None

    # --- expressions ----------------------------------------------------------------------------------------------

    def _is_own(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.own

    def render(self, node: ast.expr) -> str:
        """An expression of the forward pass in the function."""
        return rendered(self.source, node, self._instead)

    def _instead(self, node: ast.AST) -> str | None:
        """What an expression becomes that is about the module; None for any other."""
        match node:
            case ast.Call(func=function):
                held = self._held(function)
                if held is not None:
                    return self._call(node, held)
                if self._is_own(function) and isinstance(function, ast.Attribute):
                    if function.attr in self.plan.methods:
                        return self._method(node, self.plan.methods[function.attr])
                    if not isinstance(self.constructor.attributes.get(function.attr), Setting | Choice):
                        raise Unconvertible(node, f"its forward calls self.{function.attr}")
                return self._drawn(node)
            case ast.Compare(
                left=ast.Attribute() as left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]
            ) if self._is_own(left):
                choice = self.constructor.attributes.get(left.attr)
                if isinstance(choice, Choice):
                    return self._presence(left.attr, choice, isinstance(op, ast.IsNot))
                if choice is not None and is_child(choice):
                    return str(isinstance(op, ast.IsNot))
                return None
            case ast.Attribute():
                return self._attribute(node)
            case ast.Name(id=name) if name == self.own:
                raise Unconvertible(node, "its forward hands the module itself on")
            case ast.ListComp() | ast.GeneratorExp():
                return self._comprehension(node)
            case _:
                return None

    def _attribute(self, node: ast.Attribute) -> str | None:
        if self._is_own(node):
            return self._own_attribute(node)
        inner = node.value
        if isinstance(inner, ast.Attribute) and self._is_own(inner):
            held = self.constructor.attributes.get(inner.attr)
            if isinstance(held, LayerChild):
                if node.attr in LAYER_PARAMETERS and held.layer.init:
                    return self.known(f'params["{inner.attr}"]["{node.attr}"]', self.inference.fact(node))
                if node.attr in held.arguments:
                    return f"({self.settings.text(held.arguments[node.attr])})"
            if held is not None and is_child(held):
                raise Unconvertible(node, f"its forward reads self.{inner.attr}.{node.attr}")
        return None

    def _own_attribute(self, node: ast.Attribute) -> str:
        if not isinstance(node.ctx, ast.Load):
            raise Unconvertible(node, f"its forward assigns self.{node.attr}")
        name, attribute = node.attr, self.constructor.attributes.get(node.attr)
        if self._changes(node, isinstance(attribute, OwnParameter | OwnBuffer)):
            raise Unconvertible(node, f"its forward changes self.{name}")
        fact = self.inference.fact(node)
        if name == "training":
            self.plan.trains = True
            return "train"
        match attribute:
            case OwnParameter():
                return self.known(f'params["{name}"]', fact)
            case OwnBuffer():
                return self.known(f'state["{name}"]', fact)
            case Setting():
                return self.settings.attribute(name, node)
            case Choice() if self._asks_truth(node):
                return self._presence(name, attribute, True)
            case ListChild() if self._is_measured(node):
                return f'params["{name}"]'
            case None:
                raise Unconvertible(
                    node, f"its forward reads self.{name}, which its constructor does not make in sight"
                )
            case _:
                raise Unconvertible(node, f"its forward uses self.{name} in another way than by a call")

    def _changes(self, node: ast.Attribute, is_array: bool) -> bool:
        """Whether what an attribute holds may be changed in place: by an assignment to elements, or by a method."""
        parent = self.source.parents.get(node)
        while isinstance(parent, ast.Subscript):
            if not isinstance(parent.ctx, ast.Load):
                return True
            parent = self.source.parents.get(parent)
        if isinstance(parent, ast.keyword):
            return parent.arg == "out"
        if not isinstance(parent, ast.Attribute):
            return False
        if not isinstance(parent.ctx, ast.Load) or is_array and parent.attr in ("data", "grad"):
            return True
        called = isinstance(call := self.source.parents.get(parent), ast.Call) and call.func is parent
        return called and (parent.attr.endswith("_") if is_array else parent.attr in _CHANGING)

    def _asks_truth(self, node: ast.Attribute) -> bool:
        parent = self.source.parents.get(node)
        return (
            isinstance(parent, ast.If | ast.IfExp)
            and parent.test is node
            or isinstance(parent, ast.BoolOp)
            or isinstance(parent, ast.UnaryOp)
            and isinstance(parent.op, ast.Not)
        )

    def _is_measured(self, node: ast.Attribute) -> bool:
        parent = self.source.parents.get(node)
        return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "len"

    def _presence(self, name: str, choice: Choice, positive: bool) -> str:
        """Whether an attribute that may be None is there."""
        if choice.then is not None and choice.other is not None:
            return str(positive)
        child = choice.then or choice.other
        if child is not None and self.plan.child_params(child):
            return f'"{name}" {"" if positive else "not "}in params'
        text = self.settings.text(choice.test)
        if (choice.then is not None) == positive:
            return f"({text})"
        return f"(not ({text}))"

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> str | None:
        generator = node.generators[0]
        owner, target = generator.iter, generator.target
        held = self._list(owner) if isinstance(owner, ast.Attribute) else None
        if held is None or not isinstance(target, ast.Name) or len(node.generators) > 1:
            return None
        name, outer = self.fresh(f"{target.id}_params"), dict(self.loops)
        self.loops[target.id] = Held(held, name, "", target.id)
        if any(isinstance(n, ast.Name) and n.id == target.id and self._is_value(n) for n in symbols.walk(node)):
            raise Unconvertible(node, f"the layer {target.id} of a loop is used in another way than by a call")

        def instead(one: ast.AST) -> str | None:
            if one is target:
                return name
            return f'params["{owner.attr}"]' if one is owner else self._instead(one)  # type: ignore[attr-defined]

        text = rendered(self.source, node, instead, inside=True)
        self.loops = outer
        return text

    def _drawn(self, call: ast.Call) -> str | None:
        """Dropout by a function; other draws have no key."""
        fact = self.inference.fact(call.func)
        rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
        if rule is None or not rule.random or not isinstance(fact, Qual):
            return None
        helper = DROPPING.get(fact.name)
        bound = bind(rule.signatures[0], call, None) if helper is not None else None
        if helper is None or bound is None or not bound.keys() <= {"input", "p", "training", "inplace"}:
            raise Unconvertible(call, f"its forward draws numbers with {fact.name}")
        values = {name: self.render(nodes[0]) for name, nodes in bound.items()}
        arguments = [self.key(call), values["input"], *([values["p"]] if "p" in values else [])]
        arguments.append(f"train={values.get('training', 'True')}")
        return self.known(f"{self.names.helper(helper)}({', '.join(arguments)})", self.inference.fact(call))

    def _held(self, function: ast.expr) -> Held | None:
        """The child that is called."""
        match function:
            case ast.Name(id=name) if name in self.loops:
                return self.loops[name]
            case ast.Attribute(attr=name) if self._is_own(function):
                held = self.constructor.attributes.get(name)
                if held is not None and is_child(held):
                    return Held(held, f'params["{name}"]', f'state["{name}"]', name)
            case ast.Subscript(value=ast.Attribute(attr=name) as owner, slice=index) if self._is_own(owner):
                return self._item(name, self.constructor.attributes.get(name), index)
        return None

    def _item(self, name: str, children: object, index: ast.expr) -> Held | None:
        number = index.value if isinstance(index, ast.Constant) and isinstance(index.value, int) else None
        if isinstance(children, SequentialChild) and number is not None and 0 <= number < len(children.items):
            key, item = children.items[number]
            return Held(item, f'params["{name}"]["{key}"]', f'state["{name}"]["{key}"]', f"{name}_{key}")
        if isinstance(children, ListChild) and not isinstance(index, ast.Slice):
            text = self.render(index)
            exact = number is not None and children.comprehension is None and 0 <= number < len(children.items)
            child: Child = children.items[number] if exact and number is not None else children
            return Held(child, f'params["{name}"][{text}]', f'state["{name}"][{text}]', name)
        return None

    def _arguments(self, node: ast.Call) -> list[str]:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise Unconvertible(node, "the arguments of a layer are not written out")
        arguments = [self.render(a) for a in node.args]
        return [*arguments, *(f"{k.arg}={self.render(k.value)}" for k in node.keywords)]

    def _method(self, node: ast.Call, plan: ModulePlan) -> str:
        """A call of another method of the class, which is a function of the same parameters."""
        behind = [f"{name}={name}" for name in plan.settings]
        self.settings.needed.update(plan.settings)
        if plan.draws:
            behind.append(f"{plan.key}={self.key(node)}")
        if plan.trains:
            self.plan.trains = True
            behind.append("train=train")
        before = ["params", "state"] if plan.state else ["params"]
        name = self.names.method(plan.info, plan.method)
        return f"{name}({', '.join([*before, *self._arguments(node), *behind])})"

    def _call(self, node: ast.Call, held: Held) -> str:
        arguments = self._arguments(node)
        if isinstance(held.child, ListChild):
            held = self.element(node, held, held.child, arguments)
        fact = self.inference.fact(node.args[0]) if node.args else UNKNOWN
        return self.applied(held, arguments, fact, node)
