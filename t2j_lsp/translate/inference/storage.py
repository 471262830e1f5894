"""Which storage the values of a function may be or hold: what names, containers and views share."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Layer, ListOf, Qual, Scalar, Shape, Tensor, Tuple, is_number
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch

from .call_sites import bound_arguments
from .forward_pass import is_known
from .places import CROSSING, DEEPEST, NOWHERE, STATE, Env, Reached, is_state, made_by

VIEWS = names_with(Trait.VIEW)
_PIECES, _GIVING = names_with(Trait.PIECES), names_with(Trait.GIVES_ARGUMENT)
FROM_NUMPY, TO_NUMPY = names_with(Trait.FROM_NUMPY), names_with(Trait.TO_NUMPY)
"""Calls whose tensor is a NumPy array's memory, and methods of tensors whose array is theirs."""
_MOVES = names_with(Trait.MOVES)
ADDING = {
    "append": 0,
    "appendleft": 0,
    "add": 0,
    "insert": 1,
    "setdefault": 1,
    "extend": 0,
    "extendleft": 0,
    "update": 0,
}
"""Methods that put something into a container, and which argument that is."""
_SPREADING = frozenset({"extend", "extendleft", "update"})


class Storage:
    """What expressions of one function hold."""

    def __init__(self, facts: Mapping[ast.AST, Fact]) -> None:
        self.facts = facts
        self._ids = count()
        self.crossings: dict[ast.Call, Reached] = {}
        """Calls by which tensors and arrays of NumPy share memory, and what they are given."""
        self.results: dict[object, FunctionInfo] = {}
        """The functions of the file that made storage, by its place."""
        self.trained: set[object] = set()
        """What are parameters: optimizers write into them."""

    def fresh(self) -> Reached:
        """Storage that nothing else has."""
        return made_by(next(self._ids))

    def of(self, node: ast.expr, env: Env) -> Reached:
        """What an expression may be or hold."""
        if isinstance(self.facts.get(node), Scalar | Shape):
            return NOWHERE
        match node:
            case ast.Constant() | ast.Lambda() | ast.JoinedStr() | ast.Compare():
                return NOWHERE
            case ast.Name(id=name):
                return env.setdefault(name, made_by(name))
            case ast.Attribute() if node.attr in VIEWS:
                return Reached(self.of(node.value, env).places)
            case ast.Attribute():
                text = dotted(node)
                if text and is_variable(self.facts.get(node)):
                    self.trained.add(text)
                return env.setdefault(text, made_by(text)) if text else self.fresh()
            case ast.Subscript():
                return self._subscript(node, env)
            case ast.Call():
                return self._call(node, env)
            case ast.List() | ast.Tuple() | ast.Set():
                return self._display(node.elts, env)
            case ast.Dict():
                return self._dict(node, env)
            case ast.IfExp():
                return self.of(node.body, env) | self.of(node.orelse, env)
            case ast.BoolOp():
                return NOWHERE.joined(self.of(value, env) for value in node.values)
            case ast.NamedExpr(target=ast.Name(id=name)):
                env[name] = self.of(node.value, env)
                return env[name]
            case ast.Starred() | ast.Await():
                return self.of(node.value, env)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, env)
            case ast.BinOp(op=ast.Add()) if not isinstance(self.facts.get(node), Tensor):
                sides = self.of(node.left, env), self.of(node.right, env)
                items = NOWHERE.joined(side.item() for side in sides if side.items)
                return Reached(items={None: items}) if items.reach() else self.fresh()
        return self.fresh()

    def elements(self, node: ast.expr, env: Env) -> Reached:
        """What a loop over an expression gets: rows of a tensor, items of a list, or what an iterator makes anew."""
        held = self.of(node, env)
        if held.items:
            return NOWHERE.joined(held.items.values()) | Reached(held.places)
        known = isinstance(self.facts.get(node), Tensor | ListOf | Tuple) or is_state(held)
        return Reached(held.places) if known else self.fresh()

    def bind(self, target: ast.expr, held: Reached, env: Env) -> None:
        """Give a target its value."""
        match target:
            case ast.Name(id=name):
                env[name] = held
            case ast.Attribute() if text := dotted(target):
                env[text] = held
            case ast.Starred():
                self.bind(target.value, Reached(items={None: held.item()}), env)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                known = not any(isinstance(t, ast.Starred) for t in targets)
                for index, part in enumerate(targets):
                    self.bind(part, held.item(index if known else None), env)
            case ast.Subscript() if not isinstance(self.facts.get(target.value), Tensor):
                self.add(target.value, _constant(target.slice), held, env)

    def add(self, holder: ast.expr, key: object, held: Reached, env: Env) -> None:
        """Put something into a container."""
        while isinstance(holder, ast.Subscript):
            holder, key = holder.value, None
        if text := dotted(holder):
            env[text] = self.of(holder, env).added(key, held)

    def put_by(self, call: ast.Call, env: Env) -> None:
        """``kept.append(y)``, ``kept.update(a=y)``."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ADDING:
            return
        if isinstance(self.facts.get(call.func.value), Tensor):
            return
        values = [*call.args[ADDING[call.func.attr] :], *(k.value for k in call.keywords)]
        for value in values:
            held = self.of(value, env)
            spread = call.func.attr in _SPREADING and value in call.args
            self.add(call.func.value, None, held.item() if spread else held, env)

    def _display(self, elements: list[ast.expr], env: Env) -> Reached:
        if any(isinstance(e, ast.Starred) for e in elements):
            return Reached(items={None: NOWHERE.joined(self.of(e, env).item() if isinstance(e, ast.Starred)
                                                    else self.of(e, env) for e in elements)})  # fmt: skip
        return Reached(items={index: self.of(e, env) for index, e in enumerate(elements)})

    def _dict(self, node: ast.Dict, env: Env) -> Reached:
        whole = NOWHERE
        for key, value in zip(node.keys, node.values, strict=True):
            held = self.of(value, env)
            whole = whole.added(_constant(key), held) if key is not None else whole | held
        return whole

    def _subscript(self, node: ast.Subscript, env: Env) -> Reached:
        held, fact = self.of(node.value, env), self.facts.get(node.value)
        container = bool(held.items) or isinstance(fact, ListOf | Tuple) or is_state(held)
        if not container and not self._is_view(node):
            return self.fresh()  # by arrays, masks and unknown numbers: a copy, or an entry of a data set
        if isinstance(node.slice, ast.Slice):
            return Reached(held.places, {None: held.item()} if held.items else {})
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        return held.item(_constant(first))

    def named(self, node: ast.expr, env: Env) -> Reached:
        """What a variable holds that is given a value: ``w = weights[i]`` names an item of what may be a list."""
        if isinstance(node, ast.Subscript) and is_number(self.facts.get(node.slice, UNKNOWN)):
            if not is_known(self.facts.get(node.value, UNKNOWN)):
                return self.of(node.value, env).item()
        return self.of(node, env)

    def _is_view(self, node: ast.Subscript) -> bool:
        """Whether indexing may give a view: numbers, slices, None and Ellipsis do, index arrays and masks do not."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        written = (ast.Slice, ast.Constant, ast.UnaryOp)
        if not isinstance(self.facts.get(node.value), Tensor):  # a number may be that of an entry of a data set
            return all(isinstance(part, written) for part in parts)
        return all(isinstance(part, written) or self._may_be_number(part) for part in parts)

    def _is_tensor(self, node: ast.expr) -> bool:
        return isinstance(self.facts.get(node), Tensor)

    def _may_be_number(self, index: ast.expr) -> bool:
        """Whether an index is a number, or a name of which nothing is known."""
        fact = self.facts.get(index, UNKNOWN)
        return is_number(fact) or isinstance(index, ast.Name) and not is_known(fact)

    def _call(self, node: ast.Call, env: Env) -> Reached:
        if works_in_place(node, self.facts):
            return self.of(node.args[0], env) if node.args else NOWHERE
        function = self.facts.get(node.func)
        if isinstance(function, Qual) and function.name in FROM_NUMPY and node.args:
            listed = isinstance(self.facts.get(node.args[0]), ListOf | Tuple)
            return self.fresh() if listed else self._crossing(node, node.args[0], env)
        if isinstance(function, Function):
            if isinstance(node.func, ast.Name) or not self._may_give_its_own(node.func):
                made = self.fresh()
                self.results.update({owner: function.info for owner, _ in made.places})
                return made
        if isinstance(function, Class):
            kept = [self.of(value, env) for value in _kept_arguments(node, function.info)]
            return Reached(self.fresh().places, {None: NOWHERE.joined(kept)} if kept else {})
        match node.func:
            case ast.Name(id="list" | "tuple" | "iter" | "reversed" | "sorted" | "set") if node.args:
                return Reached(items={None: self.elements(node.args[0], env)})
            case ast.Name(id="enumerate") if node.args:
                return Reached(items={None: Reached(items={0: NOWHERE, 1: self.elements(node.args[0], env)})})
            case ast.Name(id="zip"):
                return Reached(items={None: Reached(items={i: self.elements(a, env) for i, a in enumerate(node.args)})})
            case ast.Name(id="next") if node.args:
                return self.elements(node.args[0], env)
            case ast.Name(id="dict"):
                items: dict[object, Reached] = {k.arg: self.of(k.value, env) for k in node.keywords}
                return Reached(items=items).joined(self.of(a, env) for a in node.args)
            case ast.Attribute(attr=name) if name in _GIVING and len(node.args) == 1 and self._is_tensor(node.args[0]):
                return self.of(node.args[0], env)
            case ast.Attribute():
                return self._method(node, node.func, env)
        return self.fresh()

    def _may_give_its_own(self, func: ast.expr) -> bool:
        """Whether a method is called as one that gives what it is called on, or a view of it."""
        return isinstance(func, ast.Attribute) and (func.attr in VIEWS or func.attr.endswith("_"))

    def _crossing(self, node: ast.Call, given: ast.expr, env: Env) -> Reached:
        """The same memory on the other side."""
        while (
            isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr in _MOVES - {"to"}
        ):
            given = given.func.value
        base = Reached(self.of(given, env).places)
        base = base if base.places else self.fresh()
        self.crossings[node] = self.crossings.get(node, NOWHERE) | base
        return Reached(frozenset((made, (*steps, CROSSING)[:DEEPEST]) for made, steps in base.places))

    def _method(self, node: ast.Call, func: ast.Attribute, env: Env) -> Reached:
        fact, name = self.facts.get(func), func.attr
        held_by_object = isinstance(self.facts.get(func.value), Instance) and not isinstance(fact, Function)
        if name in TO_NUMPY and not isinstance(fact, Qual):
            return self._crossing(node, func.value, env)
        if name in VIEWS and not held_by_object:
            if isinstance(fact, Qual):
                is_view = fact.name == f"torch.{name}" and bool(node.args)
                owner, rest = (node.args[0] if is_view else None), node.args[1:]
            else:
                owner, rest = func.value, node.args
            if owner is None:
                return self.fresh()
            base = Reached(self.of(owner, env).places)
            if name not in _PIECES:
                return base
            how = f"{name}({', '.join(map(ast.unparse, [*rest, *(k.value for k in node.keywords)]))})"
            return _Pieces(base.places, {}, how)
        if isinstance(fact, Qual):
            return self.fresh()
        if is_variable(self.facts.get(node)):
            made = self.fresh()
            self.trained |= {owner for owner, _ in made.places}
            return made
        if name == "state_dict" and not node.args:
            return made_by(STATE)
        if held_by_object:
            return self.fresh()  # a layer in an attribute, whatever its name: ``self.self_(x)``
        held = self.of(func.value, env)
        if name.endswith("_") and not name.endswith("__"):
            return held
        known = bool(held.items) or _is_list(self.facts, func.value) or is_state(held)
        if isinstance(self.facts.get(func.value), Tensor) or not known:
            return self.fresh()
        match name:
            case "values":
                return Reached(items={None: held.item()})
            case "items":
                return Reached(items={None: Reached(items={0: NOWHERE, 1: held.item()})})
            case "get" | "pop" | "setdefault":
                return held.item(_constant(node.args[0]) if node.args else None)
            case "copy":
                return held
        return self.fresh()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Env) -> Reached:
        inner = dict(env)
        for part in node.generators:
            self.bind(part.target, self.elements(part.iter, inner), inner)
        return Reached(items={None: self.of(node.value if isinstance(node, ast.DictComp) else node.elt, inner)})


@dataclass(frozen=True)
class _Pieces(Reached):
    """What ``chunk`` and its like give: pieces that share nothing with each other."""

    how: str = ""

    def item(self, key: object = None, picked: str = "[]") -> Reached:
        return super().item(key, self.how)


def is_variable(fact: Fact | None) -> bool:
    """Whether a value is a parameter, or holds nothing else: Variables stay what they are when an optimizer writes."""
    match fact:
        case Tensor():
            return fact.variable
        case ListOf():
            return is_variable(fact.item)
        case Tuple():
            return any(map(is_variable, fact.items))
    return False


def _kept_arguments(call: ast.Call, info: ClassInfo) -> list[ast.expr]:
    """The arguments of a constructor that the object keeps as they are (``self.w = w``), and a dataclass its fields."""
    method = info.method("__init__")
    if method is None:
        return [*call.args, *(k.value for k in call.keywords)] if info.node.decorator_list else []
    stored = {
        node.value.id
        for node in symbols.walk(method.node)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        if any(isinstance(target, ast.Attribute) for target in node.targets)
    }
    return [value for parameter, value in bound_arguments(call, method) if parameter.arg in stored]


def dotted(node: ast.AST) -> str:
    """``y`` and ``self.kept`` as text; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner, attr=name):
            text = dotted(inner)
            return f"{text}.{name}" if text else ""
    return ""


def root(node: ast.expr) -> str:
    """What is bound anew by a write into a part of it or a view: ``y`` of ``y.view(-1)[0]``."""
    while not (text := dotted(node)) or isinstance(node, ast.Attribute) and node.attr in VIEWS:
        match node:
            case ast.Subscript(value=inner) | ast.Attribute(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case _:
                return ""
    return text


def works_in_place(node: ast.Call, facts: Mapping[ast.AST, Fact]) -> bool:
    """``F.relu(x, inplace=True)``, and a call of a layer that was built so."""
    if any(k.arg == "inplace" and _true(k.value) for k in node.keywords):
        function = facts.get(node.func)
        return isinstance(function, Qual) and is_torch(function.name) and bool(node.args)
    layer = facts.get(node.func)
    return isinstance(layer, Layer) and is_built_in_place(layer)


def is_built_in_place(layer: Layer) -> bool:
    """``nn.ReLU(inplace=True)``, ``nn.ReLU(True)``."""
    if layer.node is None:
        return False
    return any(k.arg == "inplace" and _true(k.value) for k in layer.node.keywords) or (
        layer.name in LAYERS and any(map(_true, LAYERS[layer.name].positional(layer.node, "inplace")))
    )


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_list(facts: Mapping[ast.AST, Fact], node: ast.expr) -> bool:
    return isinstance(facts.get(node), ListOf | Tuple)


def _constant(node: ast.expr) -> object:
    """A position that the text tells: a number from the front, or a name; None for any other."""
    known = isinstance(node, ast.Constant) and isinstance(node.value, int | str)
    return node.value if known else None  # type: ignore[attr-defined]
