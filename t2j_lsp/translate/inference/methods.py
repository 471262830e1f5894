"""Facts of method calls: on tensors, parameters of unknown kind, modules, lists."""

from __future__ import annotations

import ast
from dataclasses import replace

from t2j_lsp.translate.rule.facts import (
    INT,
    NONE,
    STR,
    UNKNOWN,
    AnyModule,
    Class,
    Fact,
    Instance,
    Layer,
    ListOf,
    Object,
    Qual,
    Scalar,
    Shape,
    Tensor,
    Tuple,
)
from t2j_lsp.translate.rule.join import assign, element, join
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import MODULE_ONLY, TENSOR_ONLY, means_other_on_arrays, only_tensor
from t2j_lsp.translate.rule.nullness import may_be_none
from t2j_lsp.translate.rule.record import REGISTRY

from .evidence import Evidence
from .results import rule_result
from .state import Parameter


class MethodInference(Evidence):
    """Method calls."""

    def _method_call(
        self,
        node: ast.Call,
        func: ast.Attribute,
        arguments: list[Fact],
        keywords: dict[str | None, Fact],
        env: dict[str, Fact],
    ) -> Fact:
        owner = self.facts.get(func.value, UNKNOWN)
        name = func.attr
        if name in MODULE_ONLY and not arguments and (owner == UNKNOWN or isinstance(owner, Parameter)):
            return self._module_method(AnyModule(), name, arguments, node)
        if isinstance(func.value, ast.Call) and isinstance(func.value.func, ast.Name) and func.value.func.id == "super":
            return self._super_call(func, name)
        match owner:
            case Tensor():
                return self._tensor_method(node, owner, name, arguments)
            case Parameter():
                return self._parameter_method(node, owner, name, arguments)
            case Instance() if owner.cls.info.acts_as_module:
                return self._module_method(owner, name, arguments, node)
            case Layer() | AnyModule():
                return self._module_method(owner, name, arguments, node)
            case ListOf() | Tuple():
                return self._list_method(func, owner, name, arguments, env)
            case Shape() if name == "numel":
                return INT
            case Scalar(kind="str"):
                return STR
            case Object(kind="array"):
                return owner
            case Scalar() | Object() | Qual():
                return UNKNOWN
            case _:
                pass
        if self._torch_like() and (
            only_tensor(name, node) or (self._runs_in_module() and means_other_on_arrays(name, node))
        ):
            return self._tensor_method(node, Tensor(sure=False), name, arguments)
        return UNKNOWN

    def _torch_like(self) -> bool:
        return bool(getattr(self, "imports_torch", False))

    def _runs_in_module(self) -> bool:
        """Whether the code here is part of a module's forward pass: what has tensor methods there is a tensor."""
        here = self.current
        return here is not None and here.owner is not None and here.owner.is_module and here.name != "__init__"

    def _parameter_method(self, node: ast.Call, owner: Parameter, name: str, arguments: list[Fact]) -> Fact:
        rule = REGISTRY.get(f"torch.Tensor.{name}")
        forward = self.current is not None and self.current.owner is not None and self.current.owner.is_module
        if rule is None and REGISTRY.get(f"torch.Tensor.{name.removesuffix('_')}") is None:
            self._foreign(owner)
        if owner.foreign and name not in TENSOR_ONLY:
            return UNKNOWN
        if rule is not None and (only_tensor(name, node) or name in ("size", "view", "dim", "numel", "to") or forward):
            if name in TENSOR_ONLY:
                self._evidence(owner)
            else:
                self._weak_evidence(owner)
            return self._tensor_method(node, Tensor(sure=True), name, arguments)
        return UNKNOWN

    def _super_call(self, func: ast.Attribute, name: str) -> Fact:
        if self.current_class is None:
            return UNKNOWN
        for base in self.current_class.bases:
            if isinstance(base, Class):
                method = base.info.method(name)
                if method is not None:
                    self._remember(method)
                    return self.infer_function(method)
        return Tensor(sure=False) if name == "forward" else UNKNOWN

    def _tensor_method(self, node: ast.Call, owner: Tensor, name: str, arguments: list[Fact]) -> Fact:
        rule = REGISTRY.get(f"torch.Tensor.{name}")
        plain = replace(owner, variable=False)
        if rule is None:
            base = REGISTRY.get(f"torch.Tensor.{name[:-1]}") if name.endswith("_") else None
            if base is not None:
                self._random(base.name, base)
            return plain if base is not None else UNKNOWN
        self._random(rule.name, rule)
        return rule_result(rule, node, [plain, *arguments], self, method=True)

    def _module_method(self, owner: Fact, name: str, arguments: list[Fact], node: ast.Call) -> Fact:
        if name in ("parameters", "buffers"):
            return ListOf(Tensor(variable=True, any_layout=True))
        if name in ("named_parameters", "named_buffers"):
            return ListOf(Tuple((STR, Tensor(variable=True, any_layout=True))))
        if name in ("modules", "children"):
            return ListOf(AnyModule())
        if name in ("named_modules", "named_children"):
            return ListOf(Tuple((STR, AnyModule())))
        if name in ("to", "cuda", "cpu", "eval", "train", "float", "double", "half", "apply", "requires_grad_"):
            return owner
        if name in ("forward", "__call__"):
            if arguments:
                self._evidence(arguments[0])
            if isinstance(owner, Instance):
                forward = owner.cls.info.method("forward")
                return self.infer_function(forward) if forward else Tensor(sure=False)
            return (
                LAYERS[owner.name].result if isinstance(owner, Layer) and owner.name in LAYERS else Tensor(sure=False)
            )
        if name == "register_buffer" and len(node.args) + len(node.keywords) >= 2 and isinstance(owner, Instance):
            self._register(owner, node, arguments)
        if name == "register_parameter" and len(arguments) >= 2 and isinstance(owner, Instance):
            self._register(owner, node, arguments)
        if name in ("add_module", "register_module") and len(arguments) >= 2 and isinstance(owner, Instance):
            key = node.args[0]
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                assign(owner.cls.info, key.value, arguments[1], self.current)
        if name == "values":
            return ListOf(AnyModule())
        if name == "items":
            return ListOf(Tuple((STR, AnyModule())))
        if name in ("append", "extend", "insert", "pop", "add_module") and isinstance(owner, Layer):
            self._note_indexed(owner)
        return UNKNOWN

    def _register(self, owner: Instance, node: ast.Call, arguments: list[Fact]) -> None:
        key = node.args[0] if node.args else node.keywords[0].value
        value = arguments[1] if len(arguments) > 1 else self.facts.get(node.keywords[-1].value, UNKNOWN)
        held = node.args[1] if len(node.args) > 1 else node.keywords[-1].value
        source = held.func.value if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) else None
        if isinstance(source, ast.Name) and self.facts.get(source, UNKNOWN) == UNKNOWN:
            self.facts[source] = Tensor()  # only a tensor can be registered
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            if self.current is not None and may_be_none(self.current, held):
                owner.cls.info.nullable.add(key.value)
            fact = value
            if value != NONE:
                fact = replace(value, variable=True) if isinstance(value, Tensor) else Tensor(variable=True)
            assign(owner.cls.info, key.value, fact, self.current)

    def _list_method(
        self, func: ast.Attribute, owner: Fact, name: str, arguments: list[Fact], env: dict[str, Fact]
    ) -> Fact:
        if name in ("append", "extend", "insert") and arguments:
            item = element(arguments[-1]) if name == "extend" else arguments[-1]
            old = element(owner)
            grown = ListOf(join(old, item))
            if isinstance(func.value, ast.Name | ast.Attribute):
                self.bind(func.value, grown, env, None)
                self.facts[func.value] = grown
            return NONE
        if name == "items" and isinstance(owner, ListOf):
            return ListOf(Tuple((owner.keys or UNKNOWN, owner.item)))
        if name in ("values", "copy"):
            return owner
        if name == "keys" and isinstance(owner, ListOf):
            return ListOf(owner.keys or UNKNOWN)
        if name in ("pop", "get", "setdefault"):
            return join(element(owner), arguments[1]) if len(arguments) > 1 else element(owner)
        return UNKNOWN
