"""Facts of method calls: on tensors, parameters of unknown kind, lists."""

from __future__ import annotations

import ast
from dataclasses import replace

from t2j_lsp import symbols
from t2j_lsp.translate.rule.binding import rule_result
from t2j_lsp.translate.rule.definitions import Class, Instance, is_module
from t2j_lsp.translate.rule.facts import (
    BOOL,
    INT,
    NONE,
    STR,
    UNKNOWN,
    AnyModule,
    Fact,
    Layer,
    ListOf,
    ModuleClass,
    Object,
    Qual,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    is_number,
)
from t2j_lsp.translate.rule.join import element, iterated, join
from t2j_lsp.translate.rule.library import Trait, has_rules, names_with
from t2j_lsp.translate.rule.names import (
    AMBIGUOUS,
    MODULE_HOOKS,
    MODULE_ONLY,
    TENSOR_ONLY,
    means_other_on_arrays,
    only_tensor,
)
from t2j_lsp.translate.rule.record import REGISTRY, inherited_object, member_rule
from t2j_lsp.translate.source.scopes import may_be_import

from .bindings import Bindings
from .bodies import Bodies
from .evidence import ParameterEvidence
from .forward_pass import Env, State, UnknownParameter
from .item_stores import is_mask
from .module_methods import RESET, ModuleMethodFacts, calls_forward, forward_is_of_modules, resets_layers
from .module_states import MODULE_NAMES, is_modules_state

_STATE = "state_dict"
_OF_ARRAYS = names_with(Trait.VALUE)
"""Methods of an array of NumPy whose value is none."""
_OF_TEXTS: dict[str, Fact] = {
    **dict.fromkeys(("split", "rsplit", "splitlines"), ListOf(STR)),
    **dict.fromkeys(("partition", "rpartition"), Tuple((STR, STR, STR))),
    **dict.fromkeys(("find", "rfind", "index", "rindex", "count"), INT),
    **dict.fromkeys(("startswith", "endswith", "isdigit", "isalpha", "isupper", "islower", "isspace"), BOOL),
    **dict.fromkeys(("encode", "maketrans"), UNKNOWN),
}
"""What methods of texts give that is no text."""


class Methods:
    """Calls of methods: on tensors, parameters of unknown kind, lists, bases."""

    def __init__(
        self, state: State, evidence: ParameterEvidence, bodies: Bodies, bindings: Bindings, modules: ModuleMethodFacts
    ) -> None:
        self.state = state
        self.evidence = evidence
        self.bodies = bodies
        self.bindings = bindings
        self.modules = modules

    def method(self, node: ast.Call, func: ast.Attribute, arguments: list[Fact], env: Env) -> Fact:
        owner = self.state.facts.get(func.value, UNKNOWN)
        owner = UNKNOWN if owner == NONE else owner  # None has no methods: ``self.net``, which a subclass gives
        name = func.attr
        if name == RESET and self._resets_a_layer(func, owner):
            self.state.note_built()
        if name in MODULE_HOOKS and not is_module(owner) and not isinstance(owner, Instance | Class):
            return self.modules.method(AnyModule(), name, arguments, node)
        if name in MODULE_ONLY and not arguments and (owner == UNKNOWN or isinstance(owner, UnknownParameter)):
            self.evidence.add(owner, AnyModule())
            return self.modules.method(AnyModule(), name, arguments, node)
        if name == _STATE and self._has_state_of_module(node, owner):
            self.evidence.add(owner, AnyModule())
            return self.modules.method(AnyModule(), name, arguments, node)
        if name in names_with(Trait.TO_DEVICE) and owner == UNKNOWN and node in self.evidence.source.moved_modules:
            return AnyModule()
        if isinstance(func.value, ast.Call) and isinstance(func.value.func, ast.Name) and func.value.func.id == "super":
            return self._super_call(node, func, arguments)
        if calls_forward(node) and self.state.imports_torch and forward_is_of_modules(self.state.classes.values()):
            if owner == UNKNOWN or isinstance(owner, UnknownParameter) or isinstance(owner, Tensor) and not owner.sure:
                self.evidence.add(owner, AnyModule())
                return self.modules.method(AnyModule(), name, arguments, node)
        if name == "__subclasses__" and isinstance(owner, Class) and self.bodies.has_modules_below(owner.info):
            return ListOf(ModuleClass())
        if name in TENSOR_ONLY and isinstance(func.value, ast.Subscript):
            self.evidence.gives_tensor(func.value)
        if is_number(owner) and self.state.imports_torch and only_tensor(name, node):
            owner = Tensor(sure=False)
        match owner:
            case Tensor():
                return self._tensor_method(node, owner, name, arguments)
            case UnknownParameter():
                return self._parameter_method(node, owner, name, arguments)
            case Instance() if owner.cls.info.acts_as_module:
                return self.modules.method(owner, name, arguments, node)
            case Layer() | AnyModule():
                return self.modules.method(owner, name, arguments, node)
            case ListOf() | Tuple():
                return self._list_method(func, owner, name, arguments, env)
            case Shape() if name == "numel":
                return INT
            case Scalar(kind="str"):
                return _OF_TEXTS.get(name, STR)
            case Object(kind="array"):
                return replace(owner, dtype=None) if name not in _OF_ARRAYS else UNKNOWN
            case Object() if has_rules(owner):
                return self._of_object(node, owner, name, arguments)
            case Instance(cls=made) if made.info.method(name) is None and (base := inherited_object(made.info, name)):
                return self._of_object(node, base, name, arguments)
            case Scalar() | Object() | Qual():
                return UNKNOWN
            case _:
                pass
        if may_be_import(self.evidence.source, func.value):
            return UNKNOWN
        if self.state.imports_torch and (
            only_tensor(name, node) or (self._only_tensors_around() and means_other_on_arrays(name, node))
        ):
            dtype = "bool" if is_mask(func.value, self.state.facts) else None
            return self._tensor_method(node, Tensor(dtype=dtype, sure=False), name, arguments)
        return UNKNOWN

    def _of_object(self, node: ast.Call, owner: Object, name: str, arguments: list[Fact]) -> Fact:
        """What a method of a distribution gives, and whether it draws."""
        rule = member_rule(owner, name)
        if rule is None:
            return UNKNOWN
        self.state.note_random(node, rule.name, rule)
        return rule_result(rule, node, [owner, *arguments], self.state.facts, method=True)

    def _has_state_of_module(self, node: ast.Call, owner: Fact) -> bool:
        """Whether a parameter that is called a model gives names of tensors, and no class of the file has such names.

        Classes that keep averages of a model's parameters have states of their own.
        """
        if not isinstance(owner, UnknownParameter) or owner.name not in MODULE_NAMES or node.args or node.keywords:
            return False
        own = any(_STATE in info.methods for info in self.state.classes.values())
        return not own and is_modules_state(self.evidence.source, node)

    def _resets_a_layer(self, func: ast.Attribute, owner: Fact) -> bool:
        """Whether a layer of PyTorch's, or any module, draws its values anew: what no class of the file does."""
        if symbols.is_super(func.value):
            bases = [] if self.state.class_info is None else self.state.class_info.ancestry()[1:]
            return not any(RESET in base.methods for base in bases)
        if owner == UNKNOWN or isinstance(owner, UnknownParameter):
            return resets_layers(self.evidence.source, self.state.classes.values())
        return is_module(owner) and not (isinstance(owner, Instance) and owner.cls.info.method(RESET) is not None)

    def _only_tensors_around(self) -> bool:
        """Whether what has methods of tensors is one: in a module's forward pass, and where no other arrays are."""
        function = self.state.function
        return function is not None and function.runs_in_module or not self.state.other_arrays

    def _parameter_method(self, node: ast.Call, owner: UnknownParameter, name: str, arguments: list[Fact]) -> Fact:
        rule = REGISTRY.get(f"torch.Tensor.{name}")
        forward = self.state.in_module()
        base = REGISTRY.get(f"torch.Tensor.{name.removesuffix('_')}")
        if base is None and rule is None and name not in TENSOR_ONLY:
            self.evidence.foreign(owner)
        if owner.foreign and name not in TENSOR_ONLY:
            return UNKNOWN
        if rule is not None and (
            only_tensor(name, node) or name in names_with(Trait.COUNTS) | {"view", "to"} or forward
        ):
            if name in TENSOR_ONLY:
                self.evidence.add(owner)
            else:
                self.evidence.add_weak(owner)
            return self._tensor_method(node, Tensor(sure=True), name, arguments)
        self.state.callers.asks_callers |= name in AMBIGUOUS or means_other_on_arrays(name, node)
        return UNKNOWN

    def _super_call(self, node: ast.Call, func: ast.Attribute, arguments: list[Fact]) -> Fact:
        name = func.attr
        if self.state.class_info is None:
            return UNKNOWN
        for base in self.state.class_info.bases:
            if isinstance(base, Class):
                method = base.info.method(name)
                if method is not None:
                    self.state.note_call(method)
                    return self.bodies.infer_function(method)
        if (owner := inherited_object(self.state.class_info, name)) is not None:
            self.state.facts[func.value] = owner
            return self._of_object(node, owner, name, arguments)
        return Tensor(sure=False) if name == "forward" else UNKNOWN

    def _tensor_method(self, node: ast.Call, owner: Tensor, name: str, arguments: list[Fact]) -> Fact:
        rule = REGISTRY.get(f"torch.Tensor.{name}")
        plain = replace(owner, variable=False)
        if rule is None:
            base = REGISTRY.get(f"torch.Tensor.{name[:-1]}") if name.endswith("_") else None
            if base is not None:
                self.state.note_random(node, base.name, base)
            return plain if base is not None else UNKNOWN
        self.state.note_random(node, rule.name, rule)
        return rule_result(rule, node, [plain, *arguments], self.state.facts, method=True)

    def _list_method(self, func: ast.Attribute, owner: Fact, name: str, arguments: list[Fact], env: Env) -> Fact:
        if name in ("append", "extend", "insert") and arguments:
            item = iterated(arguments[-1]) if name == "extend" else arguments[-1]
            old = element(owner)
            grown = ListOf(join(old, item))
            if isinstance(func.value, ast.Name | ast.Attribute):
                self.bindings.bind(func.value, grown, env, None)
                self.state.facts[func.value] = grown
            return NONE
        if name == "items" and isinstance(owner, ListOf):
            return ListOf(Tuple((owner.keys or UNKNOWN, owner.item)))
        if name in ("index", "count"):
            return INT
        if name == "values":
            return ListOf(element(owner))
        if name == "copy":
            return owner
        if name == "keys" and isinstance(owner, ListOf):
            return ListOf(owner.keys or UNKNOWN)
        if name in ("pop", "get", "setdefault"):
            return join(element(owner), arguments[1]) if len(arguments) > 1 else element(owner)
        return UNKNOWN
