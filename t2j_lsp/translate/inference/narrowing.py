"""What a true condition tells of the names in it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp.translate.rule.definitions import Class, Instance, is_module_class
from t2j_lsp.translate.rule.facts import (
    STR,
    TENSOR,
    UNKNOWN,
    AnyModule,
    Fact,
    Layer,
    ListOf,
    Object,
    Partial,
    Qual,
    Tensor,
)
from t2j_lsp.translate.rule.join import class_names
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import BASES, Trait, names_with, object_of

from .forward_pass import Env, UnknownParameter, dotted
from .type_comparisons import listed, part_of_name, type_comparison

_ASKS = names_with(Trait.ASKS_FOR_TENSOR)


class Narrowing:
    """Narrowing by isinstance and by the type's identity."""

    def __init__(self, facts: Mapping[ast.AST, Fact]) -> None:
        self.facts = facts

    def _asks_for_tensor(self, function: ast.expr) -> bool:
        fact = self.facts.get(function)
        return isinstance(fact, Qual) and fact.name in _ASKS

    def asks_for_tensor(self, test: ast.expr) -> ast.expr | None:
        """What a condition asks of whether it is a tensor: `v` of ``isinstance(v, torch.Tensor)``."""
        match test:
            case ast.Call(func=ast.Name(id="isinstance"), args=[asked, cls]):
                return asked if "torch.Tensor" in _names(self.facts.get(cls, UNKNOWN)) else None
            case ast.Call(func=function, args=[asked]) if self._asks_for_tensor(function):
                return asked
        return None

    def narrow(self, test: ast.expr, env: Env) -> None:
        """What a true condition tells: ``isinstance(m, nn.Conv2d)``, ``torch.is_tensor(x)``, also inside ``and``."""
        match test:
            case ast.BoolOp(op=ast.And()):
                for value in test.values:
                    self.narrow(value, env)
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() | ast.Attribute() as target, cls]):
                self._narrow_instance(target, cls, env)
            case ast.Call(func=asked, args=[ast.Name() | ast.Attribute() as target]) if self._asks_for_tensor(asked):
                if key := dotted(target):
                    env[key] = TENSOR
            case ast.BoolOp(op=ast.Or()):
                self._narrow_any(test, env)
            case ast.Compare() if (named := part_of_name(test)) is not None:
                self._narrow_named(*named, env)
            case ast.Compare():
                self._narrow_compared(test, env)

    def narrow_false(self, test: ast.expr, env: Env) -> None:
        """What a false condition tells: ``not isinstance(x, torch.Tensor)``, also inside ``or``."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.narrow(operand, env)
            case ast.BoolOp(op=ast.Or(), values=values):
                for value in values:
                    self.narrow_false(value, env)

    def _narrow_instance(self, target: ast.Name | ast.Attribute, cls: ast.expr, env: Env) -> None:
        key, fact = dotted(target), self.facts.get(cls, UNKNOWN)
        names = _names(fact)
        if not key:
            return
        if isinstance(cls, ast.Name) and cls.id == "dict" and self._may_be_tensor(target):
            env[key] = ListOf(UNKNOWN, STR)
        elif isinstance(fact, Class):
            env[key] = Instance(fact)
        elif names and names <= set(LAYERS):
            if not is_module_class(env.get(key, UNKNOWN), LAYERS):  # a class is no module, and so it stays
                env[key] = Layer(next(iter(names))) if len(names) == 1 else AnyModule(names)
        elif "torch.Tensor" in names and len(names) == 1:
            env[key] = TENSOR
        elif len(names) == 1 and (made := object_of(names)) is not None:
            env[key] = made
        elif names == {"functools.partial"}:
            env[key] = Partial(self.facts.get(target, UNKNOWN))

    def _narrow_compared(self, test: ast.Compare, env: Env) -> None:
        """``type(m) == nn.Linear``, ``type(m) in (nn.Linear, nn.Conv2d)``, ``type(batch) == dict``."""
        asked = type_comparison(test)
        if asked is None or not asked.holds or not isinstance(asked.subject, ast.Name):
            return
        if not asked.several:
            self._narrow_instance(asked.subject, asked.classes, env)
        names = frozenset(n for c in listed(asked.classes) for n in class_names(self.facts.get(c, UNKNOWN)))
        if names and names <= set(LAYERS) and len(names) >= len(listed(asked.classes)):
            env[asked.subject.id] = Layer(next(iter(names))) if len(names) == 1 else AnyModule(names)

    def _may_be_tensor(self, target: ast.expr) -> bool:
        """Whether nothing surer is known of a value than that it is used as a tensor, elsewhere."""
        fact = self.facts.get(target, UNKNOWN)
        return isinstance(fact, Tensor | UnknownParameter) or fact == UNKNOWN

    def _narrow_named(self, name: ast.expr, part: str, env: Env) -> None:
        """``"Conv" in m.__class__.__name__``: a layer whose class, before and after conversion, is named so."""
        fact = self.facts.get(name, UNKNOWN)
        names = frozenset(n for n in LAYERS if part in n.rpartition(".")[2])
        kept = all(part in LAYERS[n].base and part in LAYERS[n].helper and not LAYERS[n].function for n in names)
        if isinstance(fact, Object) and fact.kind == "class name" and fact.name and names and kept:
            env[fact.name] = AnyModule(names) if len(names) > 1 else Layer(next(iter(names)))

    def _narrow_any(self, test: ast.BoolOp, env: Env) -> None:
        """``isinstance(m, A) or type(m) == B`` says that m is one of the two; so do parts of their classes' names."""
        layers = [self._layers_named(value) for value in test.values]
        targets = {target for one in layers for target in one}
        if len(targets) == 1 and all(layers):
            [target] = targets
            env[target] = AnyModule(frozenset[str]().union(*(one[target] for one in layers)))

    def _layers_named(self, test: ast.expr) -> dict[str, frozenset[str]]:
        """The layers that a condition says each variable may be, where it says no more."""
        env: Env = {}
        self.narrow(test, env)
        layers = {key: _layers(fact) for key, fact in env.items()}
        return layers if all(layers.values()) else {}


def _layers(fact: Fact) -> frozenset[str]:
    match fact:
        case Layer(name=name):
            return frozenset({name})
        case AnyModule(names=names):
            return names
    return frozenset()


def _names(fact: Fact) -> frozenset[str]:
    """The names of classes that ``isinstance`` asks for; those of the layers for a base of PyTorch's."""
    return frozenset(n for name in class_names(fact) for n in (BASES[name].layers if name in BASES else (name,)))
