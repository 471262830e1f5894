"""Methods of tensors, and of what may be one."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Object, Tensor
from t2j_lsp.translate.rule.library import Trait, attribute_of, class_of, keeps_methods, names_with
from t2j_lsp.translate.rule.names import (
    AMBIGUOUS,
    HARMLESS,
    OPERATOR_METHODS,
    OUTPUT_METHODS,
    REDUCTIONS,
    TENSOR_ONLY,
    TENSOR_ONLY_BARE,
    means_other_on_arrays,
    only_tensor,
)
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import REGISTRY, Rule, member_rule
from t2j_lsp.translate.source.assignments import values_of
from t2j_lsp.translate.source.scopes import may_be_import
from t2j_lsp.translate.source.walked import walked_by

from .context import Context
from .copying import Copier
from .in_place import InPlace
from .rule_application import RuleApplication
from .taken_for_tensors import note_taken
from .tensor_code import TensorCode


class TensorMethods:
    """What methods of tensors become."""

    def __init__(
        self, context: Context, copier: Copier, rules: RuleApplication, in_place: InPlace, code: TensorCode
    ) -> None:
        self.ctx = context
        self.copier = copier
        self.rules = rules
        self.in_place = in_place
        self.code = code

    def method(self, node: ast.Call, func: ast.Attribute, owner: Tensor | Object) -> Piece | None:
        name = func.attr
        if isinstance(owner, Object):
            return self._kept(node, func, owner) if keeps_methods(owner) else self._of_distribution(node, func, owner)
        if self.ctx.inference.has_jax and any(k.arg in ("axis", "keepdims") for k in node.keywords):
            return None  # converted before: a method of arrays, which may mean something else
        if self.ctx.inference.has_jax and name in _OF_BOTH | OUTPUT_METHODS:
            return None  # likewise, which means the same, or which only JAX has
        explicit = REGISTRY.get(f"torch.Tensor.{name}")
        rule = explicit or self._method_rule(name)
        if name == "transpose" and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred | ast.Constant):
            return None  # PyTorch's takes two axes, NumPy's and JAX's several
        if rule is None or rule.emit is None:
            if rule is None and not owner.sure and name not in TENSOR_ONLY:
                return None
            if rule is None and name in _SAME_IN_JAX:
                return None
            reason = rule.reason if rule is not None and rule.reason else f"t2j has no rule for torch.Tensor.{name}"
            code = "refused" if rule is not None else "no-rule"
            self.ctx.report.gap(node, f"torch.Tensor.{name}", code, reason)
            return self.copier.copy_arguments(node)
        if name.endswith("_") and not name.endswith("__"):
            return self.in_place.call(node, func.value, lambda: self.rules.apply(rule, node, func.value))
        return self.rules.apply(rule, node, func.value) or self.copier.copy_arguments(node)

    def _of_distribution(self, node: ast.Call, func: ast.Attribute, owner: Object) -> Piece | None:
        rule = member_rule(owner, func.attr)
        written = self.ctx.inference.has_jax and func.attr in OUTPUT_METHODS
        if rule is None and (written or attribute_of(owner, func.attr) is not None):
            return None
        if rule is None or rule.emit is None:
            name = f"{owner.name or class_of(owner.kind)}.{func.attr}"
            reason = rule.reason if rule is not None and rule.reason else f"t2j has no rule for {name}"
            self.ctx.report.gap(node, name, "refused" if rule is not None else "no-rule", reason)
            return self.copier.copy_arguments(node)
        return self.rules.apply(rule, node, func.value) or self.copier.copy_arguments(node)

    def _kept(self, node: ast.Call, func: ast.Attribute, owner: Object) -> Piece | None:
        """A method that stays as it is called, unless it has a rule: for all calls, or for those with some argument."""
        rule = member_rule(owner, func.attr)
        if rule is None or rule.ignore and not any(k.arg in rule.ignore for k in node.keywords):
            return self.copier.copy_arguments(node)
        return self._of_distribution(node, func, owner)

    def unknown(self, node: ast.Call, func: ast.Attribute) -> Piece | None:
        """A method of something of unknown type: a tensor's where its name or arguments say so, else it stays."""
        name = func.attr
        if may_be_import(self.ctx.source, func.value):
            return None
        if node in self.ctx.plan.traced:
            return self.method(node, func, Tensor(sure=False))
        if name in _STATES and not any(info.name == name for info in self.ctx.inference.functions.values()):
            reason = _NO_STATE.format(self.ctx.source.segment(func.value))
            self.ctx.report.gap(node, f"torch.nn.Module.{name}", "unsure", reason)
            return None
        rule = self._method_rule(name)
        owner = self.ctx.fact(func.value)
        foreign = isinstance(owner, UnknownParameter) and owner.foreign
        if name not in TENSOR_ONLY and (rule is None or foreign) or self._sorts_in_place(node, name):
            return None
        other = means_other_on_arrays(name, node)
        if only_tensor(name, node) or self._by_its_place(node, name, other):
            piece = self.method(node, func, Tensor(sure=False))
            certain = name in TENSOR_ONLY or name in TENSOR_ONLY_BARE
            why = f"only tensors have .{name}()" if certain else f"of how .{name}() is called"
            note_taken(self.ctx, node, func.value, name, certain, why)
            return piece
        ambiguous = name in AMBIGUOUS or name == "to" and node.args and not self._is_own(name)
        if ambiguous and (self.code.among_tensors or self._is_passed(node)):
            reason = f"JAX arrays have no .{name}(): if this is a tensor, annotate it as torch.Tensor"
            self.ctx.report.gap(node, f"torch.Tensor.{name}", "unsure", reason)
        elif other and (self._comes_of_parameters(func.value) or self.code.among_tensors):
            reason = f"if this is a tensor, .{name}() means something else in JAX: annotate it as torch.Tensor"
            self.ctx.report.gap(node, f"torch.Tensor.{name}", "unsure", reason)
        return None

    def _by_its_place(self, node: ast.Call, name: str, other: bool) -> bool:
        """Whether a receiver is a tensor because of where the call stands."""
        if name == "size" and not node.args and not node.keywords and self._parts_are_taken(node):
            return True
        if name in REDUCTIONS and self.code.among_tensors and any(k.arg is None for k in node.keywords):
            return True  # PyTorch's and JAX's keywords differ
        if name == "to" and self._moves(node) and not self._is_own(name):
            return True
        if self.code.in_module and (other or name in ("to", "type", "select") and bool(node.args or node.keywords)):
            return True
        if name in OPERATOR_METHODS and (self.code.among_tensors or self._is_passed(node)):
            return len(node.args) < 2 and not node.keywords and self._used(node)
        if not self.code.among_tensors:
            return False
        if other and not self.ctx.inference.state.other_arrays:
            return name != "split"
        return name in HARMLESS and other or name == "to" and bool(node.args or node.keywords)

    def _moves(self, node: ast.Call) -> bool:
        """``x.to(device)``, ``x.to(d, non_blocking=True)``: what other objects have is called otherwise."""
        if {"non_blocking", "device"} & {k.arg for k in node.keywords}:
            return True
        match node.args:
            case [ast.Name(id=said) | ast.Attribute(attr=said), *_] if f"_{said}".endswith("_device"):
                return True
            case [first, *_]:
                held = self.ctx.fact(first)
                return isinstance(held, Object) and held.kind == "device"
        return False

    def _is_own(self, name: str) -> bool:
        """Whether a class of the file that is no module has a method of this name."""
        return any(name in info.methods and not info.is_module for info in self.ctx.inference.classes.values())

    def _parts_are_taken(self, node: ast.Call) -> bool:
        """``h, w = x.size()[-2:]``: what other objects call their size is one number, and mostly no method."""
        match self.ctx.source.parents.get(node):
            case ast.Subscript(value=value):
                return value is node
            case ast.Assign(targets=[ast.Tuple()], value=value):
                return value is node
        return False

    def _is_passed(self, node: ast.Call) -> bool:
        """Whether the receiver is a parameter, one of its items, or computed of these alone.

        Not in a file with others' arrays than numpy's, whose methods have the same names.
        """
        if not isinstance(node.func, ast.Attribute) or not self.ctx.inference.state.array_libraries <= {"numpy"}:
            return False
        parts = [node.func.value]
        while any(isinstance(part, ast.BinOp) for part in parts):
            parts = [inner for part in parts for inner in _operands(part)]
        named = [part for part in parts if not isinstance(part, ast.Constant)]
        return bool(named) and all(isinstance(self._walked(part), UnknownParameter) for part in named)

    def _comes_of_parameters(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a value is a parameter that nothing is known of, or is computed of one: ``x.flatten()[0] == i``."""
        fact = self._walked(node)
        if isinstance(fact, UnknownParameter):
            return not seen or not fact.foreign
        if fact != UNKNOWN and not isinstance(node, ast.Compare):
            return False
        match node:
            case ast.Name() if node.id not in seen and self.code.function is not None:
                inner = values_of(self.code.function.node, node)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if not means_other_on_arrays(name, node):
                inner = [owner]
            case ast.Subscript(value=owner) | ast.UnaryOp(operand=owner):
                inner = [owner]
            case ast.Compare(left=left, comparators=others):
                inner = [left, *others]
            case ast.BinOp(left=left, right=right):
                inner = [left, right]
            case _:
                return False
        return any(self._comes_of_parameters(one, seen | {ast.unparse(node)}) for one in inner)

    def _walked(self, node: ast.expr) -> Fact:
        """What is known of an expression, or of what a loop or comprehension walks whose variable it is."""
        held = self.ctx.fact(node)
        walked = walked_by(node, self.ctx.source.parents) if held == UNKNOWN else None
        return held if walked is None else self.ctx.fact(walked)

    def _used(self, node: ast.Call) -> bool:
        """Whether the value of a call is read: ``seen.add(x)`` is a set's."""
        return not isinstance(self.ctx.source.parents.get(node), ast.Expr)

    def _sorts_in_place(self, node: ast.Call, name: str) -> bool:
        """``names.sort()``, a list's; what a tensor's gives is read."""
        return name == "sort" and not self._used(node)

    def _method_rule(self, name: str) -> Rule | None:
        rule = REGISTRY.get(f"torch.Tensor.{name}")
        if rule is None and name.endswith("_") and not name.endswith("__"):
            rule = REGISTRY.get(f"torch.Tensor.{name[:-1]}")
        return rule


def _operands(node: ast.expr) -> list[ast.expr]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) else [node]


_STATES = frozenset({"state_dict", "load_state_dict"})
_NO_STATE = "what {} is isn't known here, and neither modules nor optimizers have this method in Flax"
_OF_BOTH = names_with(Trait.OF_BOTH)
_SAME_IN_JAX = names_with(Trait.SAME_IN_JAX)
