"""Attributes of tensors, modules and layers."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TypeGuard

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.attributes import has_shape
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.inference.looked_up import asks_for_rngs
from t2j_lsp.translate.inference.named_layers import RENAMED
from t2j_lsp.translate.rule.definitions import Class, Function, Instance, is_module, is_module_class, layer_names
from t2j_lsp.translate.rule.facts import PACKED, UNKNOWN, AnyModule, Fact, Layer, Object, Qual, Tensor, Tuple
from t2j_lsp.translate.rule.layer import LAYERS, flax_names
from t2j_lsp.translate.rule.library import Trait, attribute_of, class_of, has_rules, keeps_methods, names_with
from t2j_lsp.translate.rule.names import OUTPUT_METHODS, TENSOR_ATTRIBUTES, is_torch, only_tensor
from t2j_lsp.translate.rule.pieces import ATOM, COMPARE, NOT, Part, Piece, bracket
from t2j_lsp.translate.rule.record import REGISTRY, member_rule
from t2j_lsp.translate.source.assignments import assigned
from t2j_lsp.translate.source.scopes import may_be_import

from .any_layer import ParametersOfAnyLayer
from .base_methods import base_method
from .context import Context
from .handlers import ExpressionRenderer
from .layer_parts import NO_DICT, assigns, is_own, no_such_part
from .library_objects import LibraryObjects
from .module_modes import NO_MODE, loses_mode, named_as_module
from .resets import Resets
from .rule_application import RuleApplication
from .subscripts import UNPADDED
from .taken_for_tensors import note_device, note_taken
from .tensor_code import TensorCode
from .variables import Variables
from .wrapped_layers import INSIDE, is_being_built, is_wrapped, shares_weight

BY_NAME = Gate(words=frozenset({"getattr", "hasattr"}))
_UNKNOWN_CLASS = "the class of {} isn't known here, and Flax's layers call it otherwise"
_NO_GROUPS = "nnx.Optimizer has no groups: it keeps what optax.inject_hyperparams was given in its opt_state"

_CHILDREN = names_with(Trait.CHILDREN_BY_NAME)
_OF_VALUES = names_with(Trait.FROM_VALUES), names_with(Trait.FROM_NUMPY)


class Attributes:
    """What attributes become."""

    def __init__(
        self,
        context: Context,
        renderer: ExpressionRenderer,
        variables: Variables,
        rules: RuleApplication,
        objects: LibraryObjects,
        any_layer: ParametersOfAnyLayer,
        code: TensorCode,
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.variables = variables
        self.rules = rules
        self.objects = objects
        self.any_layer = any_layer
        self.code = code

    def attribute(self, node: ast.Attribute) -> Piece | None:
        """An attribute that is read."""
        if not isinstance(node.ctx, ast.Load):
            return None
        fact = self.ctx.fact(node)
        if isinstance(fact, Qual) and is_torch(fact.name):
            return self.objects.value(node)
        if isinstance(fact, Function | Class) and asks_for_rngs(fact.info) and not is_module_class(fact):
            return self.objects.function_with_rngs(node)
        if isinstance(fact, Object) and fact.kind == "class name":
            self._note_printed_class(node)
        if symbols.is_super(node.value):
            return base_method(self.ctx, node)
        if isinstance(node.value, ast.Call) and isinstance(part := self.renderer.render(node.value), Part):
            return Piece(part.text, part.precedence)
        owner = self.ctx.fact(node.value)
        match owner:
            case Instance() if node.attr == "training" and is_own(owner):
                return Piece(f"not {bracket(self.renderer.render(node.value), ATOM)}.deterministic", NOT)
            case Layer() | AnyModule() | Instance() if node.attr == "training" and is_module(owner):
                return self._mode(node) if not loses_mode(self.ctx, owner) else self._unsure(node, NO_MODE)
            case Tensor():
                return self._tensor_attribute(node, owner)
            case Instance() if owner.cls.info.mixed_in and no_such_part(owner, node.attr, True) == NO_DICT:
                return self._unsure(node, NO_DICT)
            case Layer() | AnyModule() | Instance() if node.attr == "forward" and is_module(owner):
                return self._forward(node, owner)
            case Layer() | AnyModule() | Instance() if is_module(owner):
                return self._layer_attribute(node, owner)
            case Object() if owner == PACKED:
                self.ctx.report.gap(node, f"PackedSequence.{node.attr}", "torch-only", UNPADDED)
                return Piece(self.ctx.source.segment(node))
            case Object() if has_rules(owner):
                return self._of_object(node, owner)
            case Object() if keeps_methods(owner) and (rule := member_rule(owner, node.attr)) is not None:
                return self._tensor_attribute(node, owner, rule.name)
            case Object(kind="device") if node.attr == "type" and self._is_shown(node):
                self.ctx.report.note(node, "device.type", "note", "JAX calls CUDA devices 'gpu'")
                return Piece(f"{bracket(self.renderer.render(node.value), ATOM)}.platform", ATOM)
            case Object(kind="context") if node.attr == "saved_variables":  # as it was called before
                return Piece(f"{bracket(self.renderer.render(node.value), ATOM)}.saved_tensors", ATOM)
            case Object() if owner.kind in ("dtype", "device"):
                return self._tensor_attribute(node, owner, f"torch.{owner.kind}.{node.attr}")
            case Tuple(fields=names) if node.attr in names:
                return Piece(f"{bracket(self.renderer.render(node.value), ATOM)}[{names.index(node.attr)}]", ATOM)
            case UnknownParameter():
                return self._unknown_attribute(node)
            case _:
                return self._unknown_attribute(node) if owner == UNKNOWN else None

    def _is_shown(self, node: ast.expr) -> bool:
        """Whether people read it and nothing else does: it stands in an f-string, or is printed."""
        match self.ctx.source.parents.get(node):
            case ast.FormattedValue() | ast.Call(func=ast.Name(id="print")):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format")):
                return True
        return False

    def _note_printed_class(self, node: ast.Attribute) -> None:
        """``print(layer.__class__.__name__)``: a layer's class has another name in Flax."""
        match node.value:
            case ast.Attribute(value=owner) | ast.Call(args=[owner]):
                known = isinstance(self.ctx.fact(owner), Layer | AnyModule)
            case _:
                return
        around = ancestors(node, self.ctx.source.parents)
        if known and any(isinstance(at, ast.Call) and ast.unparse(at.func) == "print" for at in around):
            self.ctx.report.note(node, "__class__.__name__", "note", "prints the name of Flax's class")

    def _unknown_attribute(self, node: ast.Attribute) -> Piece | None:
        """``module.training`` and ``optimizer.param_groups``, of which only the name says whose they are."""
        if not self.ctx.inference.imports_torch or may_be_import(self.ctx.source, node.value):
            return None
        if node.attr in RENAMED and self.any_layer.is_of_layer(node) and not self.variables.is_initialised(node):
            return self.any_layer.read(node) or self._unsure(node, _UNKNOWN_CLASS.format(ast.unparse(node.value)))
        if node.attr == "param_groups" and not isinstance(node.ctx, ast.Store):
            self.ctx.report.gap(node, "torch.optim.Optimizer.param_groups", "unsure", _NO_GROUPS)
        held = node.value if node.attr == "data" else None
        if isinstance(held, ast.Attribute) and (of_layer := self.any_layer.read(held)):
            return Piece(f"{self.renderer.need('jax')}.lax.stop_gradient({of_layer.text})", ATOM)
        if node.attr == "data" and (given := self._given_by_parameter(node)):
            return Piece(f"{self.renderer.need('jax')}.lax.stop_gradient({self.renderer.argument(node.value).text})")
        if node.attr == "data" and (given is False or self._is_parameter(node.value) or self._is_used_as_tensor(node)):
            reason = "if this is a tensor, JAX says 'jax.lax.stop_gradient(array)': say so by an annotation"
            self.ctx.report.gap(node, f"torch.Tensor.{node.attr}", "unsure", reason)
        if node.attr in TENSOR_ATTRIBUTES and self.code.among_tensors:
            why = f"only tensors have .{node.attr}"
            note_taken(self.ctx, node, node.value, node.attr, certain=True, why=why)
            return self._tensor_attribute(node, Tensor(sure=False))
        if node.attr == "device" and has_shape(self.ctx.scope.function, node.value):
            note_taken(self.ctx, node, node.value, node.attr, True, "what has a device and a shape is a tensor")
            return self._tensor_attribute(node, Tensor(sure=False))
        note_device(self.ctx, node, self.code)
        if node.attr in _CHILDREN:
            return self._unsure(node, "if this is a module, Flax's keep no such dict: their parts are attributes")
        if node.attr in RENAMED and self._is_read_as_tensor(node) and not self.variables.is_initialised(node):
            if value := self.any_layer.read(node):
                return value
            self._unsure(node, f"if this is a layer, Flax's has its .{node.attr} under another name")
        if node.attr != "training":
            return None
        if named_as_module(self.ctx, node.value):
            why = f"{ast.unparse(node.value)!r} is taken for a module"
            self.ctx.report.note(node, "Module.training", "probable", why)
            return self._mode(node)
        self.ctx.report.gap(
            node, "Module.training", "unsure", "if this is a module, NNX says 'not module.deterministic'"
        )
        return None

    def _given_by_parameter(self, node: ast.Attribute) -> bool | None:
        """Whether ``out`` of ``out.data.view(-1)`` is what a parameter gives that is called with tensors, like a model.

        False where it isn't known whether these are tensors, None where the value comes from somewhere else.
        """
        if not isinstance(node.value, ast.Name) or not self._stands_before_tensors_method(node):
            return None
        calls, function = list[ast.Call](), self.ctx.scope.function
        for statement in symbols.walk(function.node) if function is not None else ():
            if isinstance(statement, ast.Assign) and node.value.id in map(ast.unparse, _targets(statement)):
                if not isinstance(statement.value, ast.Call):
                    return None
                calls.append(statement.value)
        if not calls or not all(isinstance(self.ctx.fact(call.func), UnknownParameter) for call in calls):
            return None
        return all(any(isinstance(self.ctx.fact(a), Tensor) for a in call.args) for call in calls)

    def _is_used_as_tensor(self, node: ast.Attribute) -> bool:
        """Whether it is ``outputs.logits.data`` in front of ``.numpy()``, or of a function that takes tensors."""
        call, owner = self.ctx.source.parents.get(node), self.ctx.fact(node.value)
        if isinstance(owner, UnknownParameter) and owner.foreign:
            return False
        function = self.ctx.fact(call.func) if isinstance(call, ast.Call) and node in call.args else UNKNOWN
        if isinstance(function, Qual) and is_torch(function.name):
            return not any(function.name in names for names in _OF_VALUES)
        writes = isinstance(call, ast.Attribute) and call.attr.endswith("_")
        return not writes and self._stands_before_tensors_method(node)

    def _stands_before_tensors_method(self, node: ast.Attribute) -> bool:
        read = self.ctx.source.parents.get(node)
        call = self.ctx.source.parents.get(read) if isinstance(read, ast.Attribute) else None
        if isinstance(read, ast.Attribute) and isinstance(call, ast.Call) and call.func is read:
            return only_tensor(read.attr, call)
        return False

    def _is_read_as_tensor(self, node: ast.Attribute) -> bool:
        """Whether something that tensors have is asked of it, or PyTorch is handed it: ``m.weight.shape``."""
        match self.ctx.source.parents.get(node):
            case ast.Attribute(attr=name):
                return f"torch.Tensor.{name}" in REGISTRY.rules
            case ast.Call() as call if call.func is not node:
                function = self.ctx.fact(call.func)
                return isinstance(function, Qual) and is_torch(function.name)
        return False

    def _is_parameter(self, node: ast.expr) -> bool:
        """Whether it is a function's parameter, of which nothing speaks against a tensor."""
        return isinstance(node, ast.Name) and isinstance(f := self.ctx.fact(node), UnknownParameter) and not f.foreign

    def _mode(self, node: ast.Attribute) -> Piece:
        """The mode of a module that may have no flag for it: only what behaves otherwise in training has one in NNX."""
        return Piece(f"{self.renderer.need('is_training')}({self.renderer.render(node.value).text})")

    def _forward(self, node: ast.Attribute, owner: Fact) -> Piece | None:
        """``module.forward`` as a value, which ``__call__`` is in NNX."""
        defined = owner.cls.info.method("forward") if isinstance(owner, Instance) else None
        if defined is not None and not (defined.owner is not None and defined.owner.calls_forward):
            return None
        asked = self.ctx.source.parents.get(node)
        if defined is None and isinstance(asked, ast.Call) and self._is_of_inspect(asked.func):
            return self._unsure(node, "Flax's layers have other names for what they are called with")
        return Piece(f"{bracket(self.renderer.render(node.value), ATOM)}.__call__")

    def _is_of_inspect(self, function: ast.expr) -> bool:
        """Whether a function is one that reads another's signature."""
        fact = self.ctx.fact(function)
        return isinstance(fact, Qual) and fact.name.startswith("inspect.")

    def _tensor_attribute(self, node: ast.Attribute, owner: Fact, name: str = "") -> Piece | None:
        rule = REGISTRY.get(name or f"torch.Tensor.{node.attr}")
        if rule is None:
            return None
        if rule.emit is None:
            self.ctx.report.gap(node, rule.name, "refused", rule.reason or f"t2j has no rule for {rule.name}")
            return None
        if rule.signatures[0].parameters is not None:
            return None
        return self.rules.apply_attribute(rule, node, owner)

    def _of_object(self, node: ast.Attribute, owner: Object) -> Piece | None:
        """An attribute of a distribution, or a method of it as a value: it stays, or has a reason why it can't."""
        rule = member_rule(owner, node.attr)
        refused = rule is not None and rule.emit is None
        written = self.ctx.inference.has_jax and node.attr in OUTPUT_METHODS
        if refused or rule is None and not written and attribute_of(owner, node.attr) is None:
            name = f"{owner.name or class_of(owner.kind)}.{node.attr}"
            reason = rule.reason if rule is not None and rule.reason else f"t2j has no rule for {name}"
            self.ctx.report.gap(node, name, "refused" if refused else "no-rule", reason)
        return self._tensor_attribute(node, owner, rule.name) if rule is not None and not refused else None

    def _layer_attribute(self, node: ast.Attribute, owner: Fact) -> Piece | None:
        """``conv.weight`` is ``conv.kernel`` in Flax's layout; reads get torch's layout back."""
        names = layer_names(owner)
        if (reason := no_such_part(owner, node.attr, symbols.is_callee(node, self.ctx.source.parents))) is not None:
            return self._unsure(node, reason)
        if is_wrapped(owner):
            written = shares_weight(owner) and is_being_built(self.ctx) and self.variables.is_initialised(node)
            if node.attr.startswith("weight") and not written:
                return self._unsure(node, "the weight is divided in each call: JAX keeps the one that is trained")
            forms = flax_names(owner, node.attr)
            if len(forms) != 1:
                return self._unsure(node, f"the layer in Flax has no .{node.attr} as PyTorch's has")
            return Piece(f"{bracket(self.renderer.render(node.value), ATOM)}.{INSIDE}.{forms.pop()}")
        if owner == AnyModule() and node.attr in RENAMED and not self._answers_to_torch_names(node):
            return self.any_layer.read(node) or self._unsure(node, _UNKNOWN_CLASS.format(ast.unparse(node.value)))
        forms = flax_names(owner, node.attr)
        if forms and any(node.attr in LAYERS[name].unheld for name in names if name in LAYERS):
            return self._unsure(node, f"the layer in Flax has no .{node.attr} as PyTorch's has")
        if forms <= {node.attr}:
            return None
        if len(forms) > 1 and self.variables.is_initialised(node):
            return None
        if len(forms) > 1 and self._is_other_branch(node):
            return None
        if len(forms) > 1:
            reason = f".{node.attr} has another name in each of these layers"
            return self.any_layer.read(node) or self._unsure(node, reason)
        return self._under_flax_name(node.value, names, forms.pop())

    def child_by_name(self, node: ast.Subscript) -> Piece | None:
        """``self._modules[name]``, an attribute of that name."""
        match node:
            case ast.Subscript(value=ast.Attribute(value=owner, attr=name), ctx=ast.Load()) if name in _CHILDREN:
                fact = self.ctx.fact(owner)
                if isinstance(fact, Instance) and is_module(fact) and not assigns(fact, name):
                    return Piece(
                        f"getattr({self.renderer.render(owner).text}, {self.renderer.render(node.slice).text})"
                    )
        return None

    def _under_flax_name(self, owner: ast.expr, names: frozenset[str], form: str) -> Piece:
        """A layer's attribute; a kernel in PyTorch's layout."""
        text = bracket(self.renderer.render(owner), ATOM)
        if form != "kernel":
            return Piece(f"{text}.{form}")
        if all(n in names_with(Trait.LINEAR) for n in names):
            return Piece(f"{text}.kernel.T")
        return Piece(f"{self.renderer.need('jnp')}.moveaxis({text}.kernel[...], (-1, -2), (0, 1))")

    def by_name(self, node: ast.Call) -> Piece | None:
        """``hasattr(layer, "weight")`` and ``getattr(layer, "weight")``, which Flax's layers call otherwise."""
        match node:
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr" as asked),
                args=[owner, ast.Constant(value=str() as name), *_],
                keywords=[],
            ):
                pass
            case _:
                return None
        fact = self.ctx.fact(owner)
        if (
            (asked, name) == ("hasattr", "data")
            and isinstance(owner, ast.Attribute)
            and owner.attr in (*RENAMED, "bias")
        ):
            return Piece(f"{bracket(self.renderer.render(owner), ATOM)} is not None", COMPARE)
        if (question := Resets(self.ctx, self.renderer).question(node, asked, name, fact)) is not None:
            return question
        forms = flax_names(fact, name)
        unknown = fact == UNKNOWN or isinstance(fact, UnknownParameter)
        if unknown and name in RENAMED and self.ctx.inference.imports_torch:
            return self.any_layer.by_name(node)  # what isn't a layer has the name itself
        if not forms and fact == AnyModule() and name in RENAMED or len(forms) > 1:
            if (value := self.any_layer.by_name(node)) is not None:
                return value
            reason = f"the class of {ast.unparse(owner)} isn't known here, and Flax's layers call .{name} otherwise"
            self.ctx.report.gap(node, f"torch.nn.Module.{name}", "unsure", reason)
            return Piece(self.ctx.source.segment(node))
        if forms <= {name}:
            return None
        if asked == "hasattr":
            return Piece(f'hasattr({self.renderer.render(owner).text}, "{forms.pop()}")')
        return self._under_flax_name(owner, layer_names(fact), forms.pop())

    def _is_other_branch(self, node: ast.Attribute) -> bool:
        """Whether it stands in ``m.kernel if isinstance(m, nnx.Conv) else m.weight``, which is converted already."""
        parent = self.ctx.source.parents.get(node)
        if not isinstance(parent, ast.IfExp) or parent.orelse is not node or not isinstance(parent.test, ast.Call):
            return False
        classes = [self.ctx.fact(n) for a in parent.test.args[1:] for n in symbols.walk(a)]
        return any(isinstance(c, Qual) and c.name.startswith("flax.") for c in classes)

    def _unsure(self, node: ast.Attribute, reason: str) -> Piece:
        """The attribute as it stands, marked."""
        self.ctx.report.gap(node, f"torch.nn.Module.{node.attr}", "unsure", reason)
        self.variables.unsure.add(node)
        return Piece(f"{bracket(self.renderer.render(node.value), ATOM)}.{node.attr}")

    def _answers_to_torch_names(self, node: ast.Attribute) -> bool:
        """Whether a module of unknown class has the attribute too: one built by a class that was passed is a helper."""
        made = isinstance(node.value, ast.Attribute) and node.value.attr not in self._handed
        return made or self.variables.is_initialised(node)

    @cached_property
    def _handed(self) -> set[str]:
        """The attributes that functions give what they are handed themselves: ``self.model = model``."""
        source = self.ctx.source
        return {
            target.attr
            for node in source.nodes
            for target, value in assigned(node)
            if isinstance(target, ast.Attribute)
            and isinstance(value, ast.Name)
            and (function := next(filter(_is_function, ancestors(node, source.parents)), None)) is not None
            and any(a.arg == value.id for a in symbols.named_parameters(function))
        }


def _is_function(node: ast.AST) -> TypeGuard[symbols.FunctionNode]:
    return isinstance(node, symbols.FunctionNode)


def _targets(node: ast.Assign) -> list[ast.expr]:
    """What an assignment binds, in tuples too."""
    return [part for t in node.targets for part in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
