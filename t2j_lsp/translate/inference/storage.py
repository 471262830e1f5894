"""Which storage the values of a function may be or hold: what names, containers and views share.

A place is a path: the value that made it, then what was picked of it, each step with how it was picked. Two pieces
that one ``chunk`` gave share nothing; what was picked in different ways may.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from t2j_lsp.translate.rule.facts import Fact, Layer, ListOf, Qual, Scalar, Shape, Tensor, Tuple
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch

VIEWS = names_with(Trait.VIEW)
_PIECES = names_with(Trait.PIECES)
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

Place = tuple[object, tuple[tuple[str, object], ...]]
"""What made the storage, and the steps to a part of it."""
_DEEPEST = 5


@dataclass(frozen=True)
class Reached:
    """What a value may be: places in storage, and of a container its items, None for those of unknown position."""

    places: frozenset[Place] = frozenset()
    items: Mapping[object, Reached] = field(default_factory=dict)

    def reach(self) -> frozenset[Place]:
        """All storage that can be got at through it."""
        return self.places.union(*(item.reach() for item in self.items.values()))

    def __or__(self, other: Reached) -> Reached:
        items = dict(self.items)
        for key, item in other.items.items():
            items[key] = items[key] | item if key in items else item
        return Reached(self.places | other.places, items)

    def item(self, key: object = None, picked: str = "[]") -> Reached:
        """What is at a position; None if that isn't known."""
        if key is None or self.items and key not in self.items:
            return Reached(self.places).joined(self.items.values())
        parts = frozenset((made, (*steps, (picked, key))[:_DEEPEST]) for made, steps in self.places)
        return Reached(parts).joined(self.items[k] for k in (key, None) if k in self.items)

    def joined(self, others: Iterable[Reached]) -> Reached:
        """It, or any of others."""
        either = self
        for other in others:
            either |= other
        return either

    def added(self, key: object, item: Reached) -> Reached:
        """It, with one more item."""
        return self | Reached(items={key: item})


NOWHERE = Reached()


def made_by(owner: object) -> Reached:
    """Storage that is known by who made it."""
    return Reached(frozenset({(owner, ())}))


STATE = "state_dict()"
"""What made the arrays of a state dict: some module, which sees what is written into them."""


def is_state(held: Reached) -> bool:
    """Whether a value may be a state dict, or an array in it."""
    return any(owner == STATE for owner, _ in held.places)


Env = dict[str, Reached]
"""What names hold, dotted ones too."""


def overlap(left: frozenset[Place], right: frozenset[Place]) -> bool:
    """Whether two sets of places may have storage in common."""
    return any(_meets(a, b) for a in left for b in right)


def _meets(left: Place, right: Place) -> bool:
    if left[0] != right[0]:
        return False
    for one, other in zip(left[1], right[1], strict=False):
        if one != other:
            return one[0] != other[0]
    return True


class Storage:
    """What expressions of one function hold."""

    def __init__(self, facts: Mapping[ast.AST, Fact]) -> None:
        self.facts = facts
        self._ids = count()

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
        if not container and not basic_index(node.slice):
            return self.fresh()  # by arrays, masks and unknown numbers: a copy, or an entry of a data set
        if isinstance(node.slice, ast.Slice):
            return Reached(held.places, {None: held.item()} if held.items else {})
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        return held.item(_constant(first))

    def _call(self, node: ast.Call, env: Env) -> Reached:
        if works_in_place(node, self.facts):
            return self.of(node.args[0], env) if node.args else NOWHERE
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
            case ast.Attribute():
                return self._method(node, node.func, env)
        return self.fresh()

    def _method(self, node: ast.Call, func: ast.Attribute, env: Env) -> Reached:
        fact, name = self.facts.get(func), func.attr
        if name in VIEWS:
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
        if name == "state_dict" and not node.args:
            return made_by(STATE)
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


def dotted(node: ast.AST) -> str:
    """``y`` and ``self.kept`` as text; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner, attr=name):
            text = dotted(inner)
            return f"{text}.{name}" if text else ""
    return ""


def works_in_place(node: ast.Call, facts: Mapping[ast.AST, Fact]) -> bool:
    """``F.relu(x, inplace=True)``, and a call of a layer that was built so."""
    if any(k.arg == "inplace" and _true(k.value) for k in node.keywords):
        function = facts.get(node.func)
        return isinstance(function, Qual) and is_torch(function.name) and bool(node.args)
    layer = facts.get(node.func)
    if isinstance(layer, Layer) and layer.node is not None:
        return any(k.arg == "inplace" and _true(k.value) for k in layer.node.keywords) or (
            layer.name in LAYERS and any(map(_true, LAYERS[layer.name].positional(layer.node, "inplace")))
        )
    return False


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def basic_index(index: ast.expr) -> bool:
    """Whether indexing gives a view: numbers, slices, None and Ellipsis do, index arrays and masks do not."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, ast.Slice | ast.Constant | ast.UnaryOp) for p in parts)


def _is_list(facts: Mapping[ast.AST, Fact], node: ast.expr) -> bool:
    return isinstance(facts.get(node), ListOf | Tuple)


def _constant(node: ast.expr) -> object:
    """A position that the text tells: a number from the front, or a name; None for any other."""
    known = isinstance(node, ast.Constant) and isinstance(node.value, int | str)
    return node.value if known else None  # type: ignore[attr-defined]
