"""Facts of attributes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from t2j_lsp import symbols
from t2j_lsp.translate.rule.binding import stated_result
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import (
    BOOL,
    INT,
    NONE,
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
    Shape,
    Tensor,
    Tuple,
)
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, attribute_of, has_rules, names_with
from t2j_lsp.translate.rule.names import only_tensor

from .bodies import Bodies
from .evidence import ParameterEvidence
from .forward_pass import CONTAINERS, State, UnknownParameter, contents, is_known
from .module_states import MODULE_NAMES
from .named_layers import RENAMED, asks_for_value, is_named_part

_FIELDS = tuple(names_with(one) for one in (Trait.FIRST_FIELD, Trait.SECOND_FIELD, Trait.THIRD_FIELD))
VIEWS_OF_TENSOR = {"shape": Shape(), "dtype": Object("dtype"), "device": Object("device"), "ndim": INT}
_OF_RECURRENT = re.compile(r"(weight|bias)_(ih|hh|hr)(_l\d+(_reverse)?)?")
"""Parameters of recurrent layers and cells: `weight_ih_l0`."""


class AttributeFacts:
    """Attributes of tensors, modules and classes."""

    def __init__(self, state: State, evidence: ParameterEvidence, bodies: Bodies) -> None:
        self.state = state
        self.evidence = evidence
        self.bodies = bodies

    def attribute(self, node: ast.Attribute, owner: Fact) -> Fact:
        """What the owner has under the name."""
        name = node.attr
        match owner:
            case Instance():
                return self._instance_attribute(owner, name)
            case Class():
                self.bodies.infer_class(owner.info)
                method = owner.info.method(name)
                return method.fact if method else owner.info.attribute(name)
            case Tensor():
                return self._tensor_attribute(owner, name)
            case Object(kind="context") if name in ("saved_tensors", "saved_variables"):
                return ListOf(TENSOR)
            case UnknownParameter() if name in ("shape", "dtype", "device", "ndim", "requires_grad", "data"):
                in_module = (
                    self.state.function is not None
                    and self.state.function.owner is not None
                    and self.state.function.owner.is_module
                )
                on_device = name == "device" and has_shape(self.state.function, node.value)
                if name in ("requires_grad", "device", "data") and in_module or on_device:
                    self.evidence.add(owner)
                return VIEWS_OF_TENSOR.get(name, UNKNOWN)
            case UnknownParameter() if name == "grad":
                self.state.callers.asks_callers = True  # what is passed tells whether it is a tensor's
                return UNKNOWN
            case UnknownParameter() if name == "training" and owner.name in MODULE_NAMES:
                self.evidence.add(owner, AnyModule())
                return BOOL
            case Layer() | AnyModule() if name == "training":
                return BOOL
            case Layer():
                child = named_child(owner, name)
                return (
                    self.state.facts.get(child, AnyModule())
                    if child is not None
                    else self._layer_attribute(owner.name, name)
                )
            case AnyModule():
                if name in ("weight", "bias", "running_mean", "running_var"):
                    return Tensor(variable=True)
                return owner.wrapped if owner.wrapped is not None and name == "module" else UNKNOWN
            case Object() if has_rules(owner) or owner.kind == "image dataset":
                known = attribute_of(owner, name)
                return stated_result(known) if known is not None else UNKNOWN
            case Object(kind="device") if name == "type":
                return STR
            case Object(kind="array") if name == "T":
                return owner
            case Object() if name in ("dtype", "device"):
                return Object(name)
            case Partial() if name == "func":
                return owner.function
            case Tuple():
                every = [{own} for own in owner.fields] or _FIELDS
                places = [place for place, names in enumerate(every) if name in names]
                return owner.items[places[0]] if places and places[0] < len(owner.items) else UNKNOWN
            case _ if owner == UNKNOWN and name == "device" and isinstance(node.value, ast.Subscript):
                return Object("device")  # xs[0].device
            case _ if owner == UNKNOWN and name == "device" and has_shape(self.state.function, node.value):
                return Object("device")
            case _ if name in RENAMED and not is_known(owner) and is_named_part(node.value):
                return TENSOR if asks_for_value(node, self.evidence.source.parents.get(node)) else UNKNOWN
            case _:
                return UNKNOWN

    def _instance_attribute(self, owner: Instance, name: str) -> Fact:
        info = owner.cls.info
        self.bodies.infer_class(info)
        if name == "training" and info.acts_as_module:
            return BOOL
        method = info.method(name)
        if method is not None:
            if self.state.function is not None:
                self.state.function.self_calls.add(name)
                if self.state.function.owner is not info:
                    self.state.function.callees.add(method)
            if any(
                isinstance(d, ast.Name) and d.id in ("property", "cached_property") for d in method.node.decorator_list
            ):
                return self.bodies.infer_function(method)
            return method.fact
        fact = info.attribute(name)
        if fact is UNKNOWN and info.layer_base is not None:
            return self._layer_attribute(info.layer_base, name)
        if name in ("T_destination", "dump_patches"):
            return UNKNOWN
        if fact == NONE and self.state.function is not None:
            self.bodies.read_as_none.setdefault(self.state.function, set()).add(name)
        return fact

    def _layer_attribute(self, layer: str, name: str) -> Fact:
        if name in ("weight", "bias", "running_mean", "running_var", "in_proj_weight", "in_proj_bias"):
            return Tensor(_kernel_rank(layer) if name == "weight" else None, variable=True)
        if name in (
            "in_features",
            "out_features",
            "in_channels",
            "out_channels",
            "embedding_dim",
            "groups",
            "embed_dim",
        ):
            return INT
        if name == "out_proj":
            return Layer("torch.nn.Linear")
        if _OF_RECURRENT.fullmatch(name):
            return Tensor(2 if name.startswith("weight") else 1, variable=True)
        return UNKNOWN

    def _tensor_attribute(self, owner: Tensor, name: str) -> Fact:
        if name == "shape":
            return Shape(owner.rank)
        if name in VIEWS_OF_TENSOR:
            return VIEWS_OF_TENSOR[name]
        if name in ("T", "mT", "H", "mH", "data", "grad", "real", "imag"):
            return replace(owner, variable=False)
        if name in ("requires_grad", "is_cuda", "is_leaf", "is_sparse"):
            return BOOL
        return UNKNOWN


def has_shape(function: FunctionInfo | None, value: ast.expr) -> bool:
    """Whether a function asks for the shape of what stands under a name, or calls what only tensors have.

    What has a device and a shape is a tensor.
    """
    if function is None or not isinstance(value, ast.Name):
        return False
    for node in symbols.walk(function.node):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="shape") if name == value.id:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if name == value.id:
                if only_tensor(attr, node):
                    return True
    return False


def named_child(layer: Layer, name: str) -> ast.expr | None:
    """The child that a ModuleDict or Sequential was given under a name, where the constructor shows it."""
    given = contents(layer.node) if layer.node is not None and layer.name in CONTAINERS else None
    if given is None:
        return None
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    if isinstance(given, ast.Dict):
        pairs = list(zip(given.keys, given.values, strict=True))
    elif isinstance(given, ast.Call):
        for keyword in given.keywords:
            if keyword.arg == name:
                return keyword.value
        given = given.args[0] if given.args else given
    if isinstance(given, ast.List | ast.Tuple):
        pairs = [(e.elts[0], e.elts[1]) for e in given.elts if isinstance(e, ast.Tuple) and len(e.elts) == 2]
    elif isinstance(given, ast.Dict):
        pairs = list(zip(given.keys, given.values, strict=True))
    for key, value in pairs:
        if isinstance(key, ast.Constant) and key.value == name:
            return value
    return None


def _kernel_rank(layer: str) -> int | None:
    """How many axes the weight of a layer has that is a kernel in Flax; None if that isn't known."""
    if layer not in LAYERS or LAYERS[layer].attributes.get("weight") != "kernel":
        return None
    if layer in names_with(Trait.LINEAR):
        return 2
    return int(layer[-2]) + 2 if layer.endswith(("1d", "2d", "3d")) else None


def reads_of_attributes(
    nodes: Iterable[ast.AST], facts: Mapping[ast.AST, Fact], classes: Iterable[ClassInfo]
) -> dict[tuple[ClassInfo | None, str], list[ast.Attribute]]:
    """Reads of attributes by name and by the class of their owner, as `Inference.attribute_reads` has them."""
    derived: dict[ClassInfo, list[ClassInfo]] = {}
    for info in classes:
        for base in info.ancestry()[1:]:
            derived.setdefault(base, []).append(info)
    reads: dict[tuple[ClassInfo | None, str], list[ast.Attribute]] = {}
    for node in nodes:
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Store):
            owner = facts.get(node.value)
            if isinstance(owner, Qual | Tensor):
                continue
            known = owner.cls.info if isinstance(owner, Instance) else None
            for one in [*known.ancestry(), *derived.get(known, ())] if known is not None else [None]:
                reads.setdefault((one, node.attr), []).append(node)
    return reads
