"""Facts of calls: library functions, constructors, modules, builtins; and who needs rngs for them."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from t2j_lsp.translate.rule.facts import (
    BOOL,
    FLOAT,
    INT,
    STR,
    TENSOR,
    UNKNOWN,
    AnyModule,
    Class,
    Fact,
    Function,
    Instance,
    Layer,
    ListOf,
    ModuleClass,
    Object,
    Partial,
    Qual,
    Shape,
    Tensor,
    Tuple,
    is_module,
    is_module_class,
    is_tensor,
)
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import ARRAY_LIBRARIES
from t2j_lsp.translate.rule.record import REGISTRY, Rule

from .methods import MethodInference
from .results import OBJECT_CLASSES, rule_result
from .state import CONTAINERS, Parameter, class_names, join_all


class CallInference(MethodInference):
    """Calls."""

    def _call(self, node: ast.Call, env: dict[str, Fact]) -> Fact:
        function = self._called(node, env)
        arguments = [self.expr(a, env) for a in node.args]
        keywords = {k.arg: self.expr(k.value, env) for k in node.keywords}
        if isinstance(node.func, ast.Name) and function is UNKNOWN and node.func.id not in env:
            if node.func.id == "map" and len(arguments) > 1:
                return ListOf(self._mapped(node.args[0], arguments, env))
            return self._builtin(node, node.func.id, arguments)
        match function:
            case Qual():
                return self._library_call(node, function.name, arguments, env)
            case Class():
                self._remember(function.info)
                self.infer_class(function.info)
                self._passed(function.info.method("__init__"), node, skip=1)
                return Instance(function)
            case Parameter() if self._builds_by_name(function, node):
                self._evidence(function, ModuleClass())
                self._builds()
                return AnyModule()
            case ModuleClass():
                self._builds()
                return AnyModule()
            case Partial():
                return self._partial_call(node, function, arguments, env)
            case Function():
                self._remember(function.info)
                result = self.infer_function(function.info)
                self._passed(function.info, node, skip=int(isinstance(node.func, ast.Attribute)))
                return result
            case Layer():
                return self._layer_call(function, node, arguments)
            case Instance():
                if function.cls.info.is_module:
                    if arguments:
                        self._evidence(arguments[0])
                    forward = function.cls.info.method("forward")
                    return self.infer_function(forward) if forward else self._base_call(function)
                return UNKNOWN
            case AnyModule():
                if node.args:
                    self._evidence(arguments[0])
                return Tensor(sure=False)
            case _:
                pass
        if isinstance(node.func, ast.Attribute):
            return self._method_call(node, node.func, arguments, keywords, env)
        return UNKNOWN

    def _called(self, node: ast.Call, env: dict[str, Fact]) -> Fact:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return UNKNOWN
        return self.expr(node.func, env)

    def _base_call(self, function: Instance) -> Fact:
        base = function.cls.info.layer_base
        return LAYERS[base].result if base in LAYERS else Tensor(sure=False)

    def _layer_call(self, layer: Layer, node: ast.Call, arguments: list[Fact]) -> Fact:
        if arguments:
            self._evidence(arguments[0])
        rule = LAYERS.get(layer.name)
        if rule is None:
            return Tensor(sure=False)
        if (
            isinstance(rule.result, Tensor)
            and arguments
            and isinstance(arguments[0], Tensor)
            and rule.result.dtype == "same"
        ):
            return replace(arguments[0], variable=False)
        return rule.result

    def _partial_call(self, node: ast.Call, function: Partial, arguments: list[Fact], env: dict[str, Fact]) -> Fact:
        inner = function.function
        if is_module(inner):
            self._builds()
            return inner
        if is_module_class(inner, LAYERS):
            self._builds()
            if isinstance(inner, Class):
                return Instance(inner)
            return Layer(inner.name) if isinstance(inner, Qual) else AnyModule()
        if isinstance(inner, Function):
            self._remember(inner.info)
            return self.infer_function(inner.info)
        if isinstance(inner, Qual):
            return self._library_call(node, inner.name, arguments, env)
        return UNKNOWN

    def _children(self, node: ast.Call, name: str, arguments: list[Fact]) -> tuple[Fact, ...] | None:
        """Facts of a container's children where the call lists them."""
        if name == "torch.nn.Sequential":
            if any(isinstance(a, ast.Starred) for a in node.args):
                return None
            if len(arguments) == 1 and not is_module(arguments[0]):
                children = [self.facts.get(v, UNKNOWN) for v in _listed(node.args[0]) or ()]
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
            return rule_result(rule, node, arguments, self, method=False)
        self._evidence(arguments[0])
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

    def _mapped(self, node: ast.expr, arguments: list[Fact], env: dict[str, Fact]) -> Fact:
        """The fact of ``f(x)`` in ``map(f, xs)``; a lambda's body is inferred again, knowing its parameters."""
        items = list(map(element, arguments[1:]))
        match arguments[0]:
            case Function() as function:
                self._remember(function.info)
                return self.infer_function(function.info)
            case Layer() | AnyModule():
                return Tensor(sure=False)
            case _:
                pass
        if not isinstance(node, ast.Lambda) or len(node.args.args) != len(items):
            return UNKNOWN
        names = [a.arg for a in node.args.args]
        return self.expr(node.body, {**env, **dict(zip(names, items, strict=True))})

    def _library_call(self, node: ast.Call, name: str, arguments: list[Fact], env: dict[str, Fact]) -> Fact:
        if name == "functools.partial" and arguments:
            return Partial(arguments[0], node)
        if name in ("copy.copy", "copy.deepcopy") and arguments:
            return arguments[0]
        if name in ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.UninitializedParameter"):
            inner = arguments[0] if arguments else TENSOR
            return replace(inner, variable=True) if isinstance(inner, Tensor) else Tensor(variable=True)
        if name in LAYERS:
            if LAYERS[name].random or name in CONTAINERS:
                self._builds()
            self._sizes(node, name)
            return Layer(name, node, self._children(node, name, arguments))
        if name in OBJECT_CLASSES:
            return Object(OBJECT_CLASSES[name], name)
        if name.startswith("torch.optim.") and name.rpartition(".")[2][:1].isupper():
            return Object("scheduler" if "lr_scheduler" in name else "optimizer", name)
        if name == "collections.OrderedDict":
            return ListOf(element(element(arguments[0])) if arguments else UNKNOWN, STR)
        if name in ("torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all"):
            if self.current is not None:
                self.current.seeds = True
            return UNKNOWN
        if name.startswith("einops.") and arguments and node.args:
            return self._einops(node, name, arguments)
        rule = REGISTRY.get(name)
        if rule is None:
            return Object("array", name) if name.partition(".")[0] in ARRAY_LIBRARIES else UNKNOWN
        if arguments and rule.result != "none" and _takes_tensor_first(rule):
            self._evidence(arguments[0])
        for fact in arguments[slice(*_TENSORS.get(name, (0, 0)))]:
            self._evidence(fact)
        self._random(name, rule)
        return rule_result(rule, node, arguments, self, method=False)

    def _builtin(self, node: ast.Call, name: str, arguments: list[Fact]) -> Fact:
        first = arguments[0] if arguments else UNKNOWN
        if name == "len":
            self._note_indexed(first)
        match name:
            case "len" | "int" | "round" | "abs" | "ord" | "id" | "hash":
                return first if name == "abs" and is_tensor(first) else INT
            case "float":
                return FLOAT
            case "bool" | "isinstance" | "issubclass" | "hasattr" | "callable" | "any" | "all":
                if name == "isinstance" and len(arguments) == 2:
                    self.isinstance_classes.update(class_names(arguments[1]))
                return BOOL
            case "str" | "repr" | "format":
                return STR
            case "range":
                return ListOf(INT)
            case "enumerate":
                self._note_indexed(first)
                return ListOf(Tuple((INT, element(first))))
            case "zip":
                for fact in arguments:
                    self._note_indexed(fact)
                return ListOf(Tuple(tuple(map(element, arguments))))
            case "list" | "tuple" | "sorted" | "set" | "iter":
                self._note_indexed(first)
                return (
                    first
                    if isinstance(first, Tuple | Shape)
                    else ListOf(element(first))
                    if arguments
                    else ListOf(UNKNOWN)
                )
            case "reversed":
                return ListOf(element(first))
            case "dict":
                return first if isinstance(first, ListOf) else ListOf(UNKNOWN, STR)
            case "next":
                return element(first)
            case "max" | "min":
                return element(first) if len(arguments) == 1 else join_all(arguments)
            case "sum":
                return element(first)
            case "type" if isinstance(first, Instance):
                return first.cls
            case "filter" if len(arguments) > 1:
                return ListOf(element(arguments[1]))
            case _:
                return UNKNOWN


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


_TENSORS = {
    "torch.matmul": (1, 2),
    "torch.bmm": (1, 2),
    "torch.mm": (1, 2),
    "torch.einsum": (1, None),
    "torch.nn.functional.linear": (1, 3),
    "torch.nn.functional.scaled_dot_product_attention": (1, 4),
}
"""Positions of further arguments that can only be tensors."""


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
