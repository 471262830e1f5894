"""Whether a module's state has the same order under Flax as in PyTorch.

PyTorch has the parts of a module in the order of their assignment. Flax has them in alphabetical order once the module
was an argument of a compiled function. ``conv1``, ``conv2``, ``fc`` are in the same order in both.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.sequentials import is_indexed_sequential
from t2j_lsp.translate.rule.definitions import ClassInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Layer, Scalar, Tensor
from t2j_lsp.translate.rule.layer import LAYERS

ADDING = frozenset({"setattr", "add_module", "register_module", "register_buffer", "register_parameter"})
"""Functions and methods that give a module parts under names of any kind."""


def in_torch_order(inference: Inference, fact: Fact) -> bool:
    """Whether what a module saves is sure to come in PyTorch's order, and under all of PyTorch's names."""
    match fact:
        case Layer(items=items) if items is not None:
            return len(items) <= 10 and all(in_torch_order(inference, item) for item in items)
        case Layer():
            rule = LAYERS.get(fact.name)
            counts_batches = rule is not None and "running_mean" in rule.attributes
            return rule is not None and not counts_batches and (bool(rule.attributes) or not _has_state(fact))
        case Instance():
            return _class_in_order(fact.cls.info, lambda part: in_torch_order(inference, part))
    return False


def walked_in_torch_order(inference: Inference, fact: Fact, kind: str) -> bool:
    """Whether Flax is sure to come to the ``modules`` or ``parameters`` of a module in PyTorch's order.

    Of layers' parameters those of one shape count: a recurrent layer's are out of order, a kernel and a bias may be.
    """
    match fact:
        case Layer(items=items) if items is not None:
            counted = len(items) <= 10 or fact.node is not None and is_indexed_sequential(inference, fact.node)
            return counted and all(walked_in_torch_order(inference, item, kind) for item in items)
        case Layer():
            rule = LAYERS.get(fact.name)
            plain = rule is not None and (bool(rule.attributes) or rule.elementwise or not rule.random)
            return kind == "modules" or plain
        case Instance():
            counts = _has_state if kind == "parameters" else is_module
            return _class_in_order(fact.cls.info, lambda part: walked_in_torch_order(inference, part, kind), counts)
    return False


def children_of(info: ClassInfo) -> list[str] | None:
    """The attributes that hold a module's children, in PyTorch's order; None where that isn't plain."""
    names = _assigned(info)
    if names is None or not info.is_module or len(info.ancestry()) > 1 or info.layer_base is not None:
        return None
    held = {name: info.attributes.get(name, UNKNOWN) for name in names}
    unknown = {name for name, fact in held.items() if fact == UNKNOWN and not _is_computed(info, name)}
    if unknown or info.nullable:
        return None
    children = [name for name, fact in held.items() if is_module(fact)]
    return None if _is_shared(info, set(children)) else children


def _is_shared(info: ClassInfo, children: set[str]) -> bool:
    """Whether two attributes may hold one child, which PyTorch counts once: ``self.out = self.embedding``."""
    variables: set[str] = set()
    for node in symbols.walk(info.node):
        if isinstance(node, ast.Assign):
            names = [ast.unparse(target) for target in node.targets]
            held = [name for name in names if name.removeprefix("self.") in children and name.startswith("self.")]
            value = ast.unparse(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else ""
            if len(held) > 1 or held and (value.startswith("self.") or value in variables):
                return True
            variables |= {value} if held and value else set()
    return False


def _is_computed(info: ClassInfo, name: str) -> bool:
    """Whether an attribute is only ever given numbers and results of operators, which are no modules."""
    given: list[ast.expr] = []
    for node in symbols.walk(info.node):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)], value=value):
                given += [value] if attribute == name else []
            case ast.Assign(targets=targets) if any(
                isinstance(n, ast.Attribute) and n.attr == name for t in targets for n in symbols.walk(t)
            ):
                return False
    return all(isinstance(value, ast.Constant | ast.BinOp | ast.Compare) for value in given)


def _has_state(fact: Fact) -> bool:
    """Whether a module may hold parameters: a pooling layer has none, and nobody sees where it stands."""
    rule = LAYERS.get(fact.name) if isinstance(fact, Layer) and fact.items is None else None
    return rule is None or rule.base != "nnx.Dropout" and (bool(rule.attributes) or rule.random)


def _class_in_order(
    info: ClassInfo, in_order: Callable[[Fact], bool], counts: Callable[[Fact], bool] = _has_state
) -> bool:
    names = _assigned(info)
    if names is None or not info.is_module or len(info.ancestry()) > 1 or info.layer_base is not None:
        return False
    parts, own = [], []
    for name in names:
        held = info.attributes.get(name)
        if isinstance(held, Tensor) and held.variable:
            own.append(name)
        elif held is not None and is_module(held):
            if not in_order(held):
                return False
            parts += [name] if counts(held) else []
        elif not isinstance(held, Scalar | Tensor):
            return False
    return own == sorted(own) and parts == sorted(parts)


def _assigned(info: ClassInfo) -> list[str] | None:
    """The attributes of a class in the order of their assignment; None where that isn't plain."""
    init = info.methods.get("__init__")
    if init is None:
        return None
    plain: list[str] = []
    for statement in init.node.body:
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
                plain.append(name)
    for node in symbols.walk(info.node):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()) if name not in plain:
                return None
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in ADDING:
                return None
    return list(dict.fromkeys(plain))
