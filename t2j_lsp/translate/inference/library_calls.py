"""Facts of calls of libraries: torch, einops, the standard library."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from t2j_lsp.translate.rule.binding import bind_facts
from t2j_lsp.translate.rule.facts import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    UNKNOWN,
    Fact,
    Layer,
    ListOf,
    Object,
    Partial,
    Shape,
    Tensor,
    Tuple,
    is_module,
)
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import CLASSES, FURTHER_TENSORS, Trait, names_with
from t2j_lsp.translate.rule.names import ARRAY_LIBRARIES
from t2j_lsp.translate.rule.record import REGISTRY, Rule

from .evidence import ParameterEvidence
from .state import CONTAINERS, State

_PARAMETERS = names_with(Trait.PARAMETER)
_SEEDS, _DEVICE_SEEDS = names_with(Trait.SEED), names_with(Trait.DEVICE_SEED)
_RESULTS: dict[str, Fact] = {
    "tensor": TENSOR,
    "scalar": Tensor(0),
    "bool tensor": Tensor(dtype="bool"),
    "int tensor": Tensor(dtype="int"),
    "float tensor": Tensor(dtype="float"),
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "str": STR,
    "shape": Shape(),
    "dtype": Object("dtype"),
    "device": Object("device"),
    "none": NONE,
    "tensors": ListOf(TENSOR),
    "function": UNKNOWN,
    "unknown": UNKNOWN,
}


class LibraryCalls:
    """Calls of torch, and of the libraries beside it."""

    def __init__(self, state: State, evidence: Callable[[], ParameterEvidence]) -> None:
        self.state = state
        self.evidence = evidence

    def call(self, node: ast.Call, name: str, arguments: list[Fact]) -> Fact:
        """What the call of a library's function or class gives."""
        made = self._made(node, name, arguments)
        if made is not None:
            return made
        if name in _SEEDS or name in _DEVICE_SEEDS:
            if self.state.function is not None:
                self.state.function.seeds = True
            return UNKNOWN
        if name.startswith("einops.") and arguments and node.args:
            return self._einops(node, name, arguments)
        rule = REGISTRY.get(name)
        if rule is None:
            return Object("array", name) if name.partition(".")[0] in ARRAY_LIBRARIES else UNKNOWN
        return self._by_rule(rule, node, name, arguments)

    def _made(self, node: ast.Call, name: str, arguments: list[Fact]) -> Fact | None:
        """What a constructor makes, or a function hands on of what it is given; None for other calls."""
        if name == "functools.partial" and arguments:
            return Partial(arguments[0], node)
        if name in ("copy.copy", "copy.deepcopy") and arguments:
            return arguments[0]
        if name in _PARAMETERS:
            inner = arguments[0] if arguments else TENSOR
            return replace(inner, variable=True) if isinstance(inner, Tensor) else Tensor(variable=True)
        if name in LAYERS:
            if LAYERS[name].random or name in CONTAINERS:
                self.state.note_built()
            self.evidence().sizes(node, name)
            return Layer(name, node, self._children(node, name, arguments))
        if (known := CLASSES.get(name)) is not None and known.makes is not None:
            return Object(known.makes, name)
        if name.startswith("torch.optim.") and name.rpartition(".")[2][:1].isupper():
            return Object("scheduler" if "lr_scheduler" in name else "optimizer", name)
        if name == "collections.OrderedDict":
            return ListOf(element(element(arguments[0])) if arguments else UNKNOWN, STR)
        return None

    def _by_rule(self, rule: Rule, node: ast.Call, name: str, arguments: list[Fact]) -> Fact:
        """What a rule's record says of the value; arguments that only tensors can be are evidence."""
        if arguments and rule.result != "none" and _takes_tensor_first(rule):
            self.evidence().add(arguments[0])
        for fact in arguments[1 : FURTHER_TENSORS.get(name, 1)]:
            self.evidence().add(fact)
        self.state.note_random(name, rule)
        return rule_result(rule, node, arguments, self.state.facts, method=False)

    def _children(self, node: ast.Call, name: str, arguments: list[Fact]) -> tuple[Fact, ...] | None:
        """Facts of a container's children where the call lists them."""
        if name == "torch.nn.Sequential":
            if any(isinstance(a, ast.Starred) for a in node.args):
                return None
            if len(arguments) == 1 and not is_module(arguments[0]):
                children = [self.state.facts.get(v, UNKNOWN) for v in _listed(node.args[0]) or ()]
                return tuple(children) if children and all(map(is_module, children)) else None
            return tuple(arguments)
        if name == "torch.nn.ModuleList" and arguments:
            if isinstance(arguments[0], Tuple):
                return arguments[0].items
            if isinstance(arguments[0], ListOf) and is_module(arguments[0].item):
                return (arguments[0].item,)
        return None

    def _einops(self, node: ast.Call, name: str, arguments: list[Fact]) -> Fact:
        """Einops takes JAX arrays as it takes tensors: its calls stay, and their values are tensors."""
        rule = REGISTRY.get(name)
        if rule is not None:
            return rule_result(rule, node, arguments, self.state.facts, method=False)
        self.evidence().add(arguments[0])
        match name.removeprefix("einops."):
            case "rearrange" | "reduce" | "repeat":
                dtype = arguments[0].dtype if isinstance(arguments[0], Tensor) and name != "einops.reduce" else None
                return Tensor(_pattern_rank(node), dtype)
            case "einsum":
                return TENSOR
            case "pack":
                return Tuple((TENSOR, ListOf(Shape())))
            case "unpack":
                return ListOf(TENSOR)
            case "parse_shape":
                return ListOf(INT, STR)
            case _:
                return UNKNOWN


def rule_result(rule: Rule, node: ast.Call, arguments: list[Fact], facts: Mapping[ast.AST, Fact], method: bool) -> Fact:
    """The fact of a call that ``rule`` answers. ``arguments`` are the positional facts, receiver first for a method."""
    result = rule.result
    if callable(result):
        call = bind_facts(rule, node, facts, arguments[0] if method and arguments else None)
        return result(call) if call is not None else TENSOR
    if result == "same":
        first = arguments[0] if arguments else UNKNOWN
        return replace(first, variable=False) if isinstance(first, Tensor) else TENSOR
    return _RESULTS[result]


def _listed(node: ast.expr) -> list[ast.expr] | None:
    """The values of a dict that is written out, in order: ``OrderedDict([("fc", layer), ...])``; None otherwise."""
    if isinstance(node, ast.Call):
        return _listed(node.args[0]) if len(node.args) == 1 and not node.keywords else None
    if isinstance(node, ast.Dict):
        return node.values if None not in node.keys else None
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    pairs = [e.elts for e in node.elts if isinstance(e, ast.List | ast.Tuple) and len(e.elts) == 2]
    return [pair[1] for pair in pairs] if len(pairs) == len(node.elts) else None


def _takes_tensor_first(rule: Rule) -> bool:
    parameters = rule.signatures[0].parameters
    return bool(parameters) and parameters[0].name in ("input", "self", "tensor", "x", "query", "condition")  # type: ignore[index]


def _pattern_rank(node: ast.Call) -> int | None:
    """The number of axes on the right of an einops pattern; None where it has ``...`` or isn't written out."""
    pattern = node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "pattern"), None)
    if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str) or "->" not in pattern.value:
        return None
    right = pattern.value.rpartition("->")[2]
    return None if "..." in right or "…" in right else len(re.sub(r"\([^)]*\)", " g ", right).split())
