"""Where values of the data pipeline, which stays in PyTorch, are used: JAX code reads them as arrays."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.calls import takes_tensor_first
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import NONE, UNKNOWN, Fact, ListOf, Object, Qual, Tensor
from t2j_lsp.translate.rule.join import join_all
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.assignments import target_of
from t2j_lsp.translate.training.data.pipelines import Data
from t2j_lsp.translate.training.data.spread_arguments import given_arguments
from t2j_lsp.translate.training.program.dict_order import DictOrder
from t2j_lsp.translate.training.program.kept_values import as_arrays, holds_tensors, knows_parts, makes_arrays
from t2j_lsp.translate.training.program.objects import VariableScope

_OWN_FUNCTION = (
    "{} stays in PyTorch with the data pipeline that uses it, and is given a JAX array here: "
    "write a second one for arrays"
)


class KeptUses:
    """Puts handlers on what reads the tensors of kept code."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.ctx = data.ctx
        self.objects = data.objects
        self.kept = data.kept

    def plan(self) -> None:
        """Tensors of kept code that JAX code reads go through ``jnp.asarray``."""
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Call):
                self._first_batch(node)
                fact = self.ctx.fact(node.func)
                if (
                    isinstance(fact, Function)
                    and fact.info.node in self.kept
                    and self._is_given_arrays(node, fact.info)
                ):
                    self._report_arrays(node, fact.name)
                elif isinstance(fact, Function) and self._stays(fact.info) and holds_tensors(self.ctx.fact(node)):
                    self._convert(node)
                elif (kept := self._kept_lambda(node.func)) is not None and holds_tensors(self.ctx.fact(kept.body)):
                    self._convert(node, isinstance(self.ctx.fact(kept.body), Tensor))
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                info, held = self.data.holder(node), self.ctx.fact(node)
                if info is None or (info, node.attr) not in self.data.attributes or not holds_tensors(held):
                    continue
                if any(statement in self.kept for statement in self.data.given_by_methods(info, node.attr)):
                    self._convert(node, isinstance(held, Tensor))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                home = self.objects.home(node.id, self.objects.scope(node))
                if (node.id, home.node) not in self.data.names:
                    continue
                held = self.ctx.fact(node)
                if not (made := self._assigned_in_torch(node, home)):
                    held = UNKNOWN if self.data.is_given_anew(node) else self._given(node.id, home)
                elif held == UNKNOWN and self._is_input(node):
                    self._convert(node, False)
                elif isinstance(held, ListOf) and not knows_parts(held) and (read := self._read_items(node)):
                    self._convert(read, False, mixed=True)
                if holds_tensors(held) and (made or held != UNKNOWN):
                    self._convert(node, isinstance(held, Tensor))

    def _is_given_arrays(self, node: ast.Call, info: FunctionInfo) -> bool:
        """Whether code that converts calls a function with a tensor, or for a tensor with what isn't known."""
        if self.ctx.plan.keeps(node, self.ctx.source.parents):
            return False
        values = [*node.args, *(k.value for k in node.keywords)]
        arrays = [v for v in values if isinstance(self.ctx.fact(v), Tensor)]
        for parameter, value in bound_arguments(node, info):
            if isinstance(self.ctx.fact(value), UnknownParameter) and self._is_tensor(info, parameter.arg):
                arrays.append(value)
        return any(not self._is_in_torch(value) for value in arrays)

    def _is_tensor(self, info: FunctionInfo, name: str) -> bool:
        """Whether a function uses a parameter as only tensors are used."""
        if isinstance(info.learned.get(name), Tensor):
            return True
        for call in symbols.walk(info.node):
            fact = self.ctx.fact(call.func) if isinstance(call, ast.Call) else None
            rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
            match call:
                case ast.Call(args=[ast.Name(id=given), *_]) if given == name and rule is not None:
                    if takes_tensor_first(rule):
                        return True
        return False

    def _report_arrays(self, node: ast.Call, name: str) -> None:
        """Say that a function which stays with the data pipeline is given an array here."""

        def said(renderer: ExpressionRenderer) -> Piece:
            self.ctx.report.gap(node, name, "torch-only", _OWN_FUNCTION.format(name))
            return Piece(self.ctx.source.segment(node))

        self.ctx.plan.on_expression(node, said)

    def _is_in_torch(self, node: ast.expr) -> bool:
        """Whether a value is a tensor of kept code, or made of one by methods."""
        if self.ctx.plan.keeps(node, self.ctx.source.parents):
            return True
        match node:
            case ast.Name():
                home = self.objects.home(node.id, self.objects.scope(node))
                given = (node.id, home.node) in self.data.names
                return given and (self._assigned_in_torch(node, home) or holds_tensors(self._given(node.id, home)))
            case ast.Call(func=func) if isinstance(fact := self.ctx.fact(func), Function) and self._stays(fact.info):
                return True
            case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner):
                return self._is_in_torch(inner)
            case ast.Attribute(value=inner):
                info = self.data.holder(node)
                return info is not None and (info, node.attr) in self.data.attributes or self._is_in_torch(inner)
        return False

    def _stays(self, info: FunctionInfo) -> bool:
        """Whether a function stays in PyTorch, or the class whose method it is."""
        return info.node in self.kept or info.owner is not None and info.owner.node in self.kept

    def _kept_lambda(self, node: ast.expr) -> ast.Lambda | None:
        """The lambda that a name stands for, which stays: ``transform = lambda x: torch.from_numpy(x / 255)``."""
        if not isinstance(node, ast.Name):
            return None
        home = self.objects.home(node.id, self.objects.scope(node))
        match self.data.writers(home).get(node.id) if (node.id, home.node) in self.data.names else None:
            case [ast.Assign(value=ast.Lambda() as written) as statement] if statement in self.kept:
                return written
        return None

    def _assigned_in_torch(self, node: ast.Name, home: VariableScope) -> bool:
        return any(s in self.kept and self.data.reaches(s, node) for s in self.data.writers(home).get(node.id, ()))

    def _is_input(self, node: ast.Name) -> bool:
        """Whether it is an argument of a module, which takes arrays."""
        call = self.ctx.source.parents.get(node)
        return isinstance(call, ast.Call) and node in call.args and is_module(self.ctx.fact(call.func))

    def _read_items(self, node: ast.Name) -> ast.expr | None:
        """What takes items out of a list, for no variable that kept code reads: ``rows[2:]``, ``for row in rows``."""
        parent = self.ctx.source.parents.get(node)
        match parent:
            case ast.Subscript(value=value, ctx=ast.Load()) if value is node:
                read: ast.expr = parent
            case ast.For(iter=walked) | ast.comprehension(iter=walked) if walked is node:
                return node
            case _:
                return None
        target = target_of(read, self.ctx.source.parents)
        if (
            isinstance(target, ast.Name)
            and (target.id, self.objects.home(target.id, self.objects.scope(target)).node) in self.data.names
        ):
            return None
        return read

    def _given(self, name: str, home: VariableScope) -> Fact:
        """What a parameter that kept code reads is given: tensors that are kept too."""
        if home.function is None or (name, home.node) not in self.data.followed:
            return UNKNOWN
        calls = self.objects.calls(home.function)
        given = [one for call in calls for one in given_arguments(self.ctx.inference, call, home.function)]
        return join_all([one.fact for one in given if one.parameter == name and one.fact != NONE])

    def _feeds(self, node: ast.expr) -> bool:
        """Whether a value is given, whole or in part, or as a part, for a parameter that kept code reads."""
        parents = self.ctx.source.parents
        while (
            isinstance(parent := parents.get(node), ast.Subscript)
            and node is parent.value
            or isinstance(parent, ast.Tuple | ast.List)
        ):
            node = parent
        given, call = node, parents.get(node)
        call = parents.get(call) if isinstance(call, ast.keyword | ast.Starred) else call
        info = called_function(self.ctx.fact(call.func)) if isinstance(call, ast.Call) else None
        if info is None or not isinstance(call, ast.Call):
            return False
        if self._stays(info) and info.node not in self.kept:
            return True
        bound = (one for one in given_arguments(self.ctx.inference, call, info) if one.value is given)
        return any((one.parameter, info.node) in self.data.followed for one in bound)

    def _convert(self, node: ast.expr, one: bool | None = None, mixed: bool = False) -> None:
        if self.ctx.plan.keeps(node, self.ctx.source.parents) or self._feeds(node):
            return
        parent = self.ctx.source.parents.get(node)
        if isinstance(parent, ast.Attribute) and parent.attr in ("shape", "ndim", "append", "extend"):
            return
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "len":
            return
        if makes_arrays(self.ctx, parent):
            return  # converted before
        if isinstance(parent, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in parent.ops):
            return  # ``if labels is not None``
        text = self.ctx.source.segment(node)
        alone = isinstance(self.ctx.fact(node), Tensor) if one is None else one
        report = self.ctx.report
        self.ctx.plan.on_expression(node, lambda renderer: as_arrays(report, renderer, text, alone, mixed=mixed))
        self.ctx.plan.kept_tensors.add(node)

    def _first_batch(self, node: ast.Call) -> None:
        """``images, labels = next(iter(loader))``, and ``next(batches)`` of a variable for such an iterator."""
        match node:
            case ast.Call(func=ast.Name(id="next"), args=[batches, *_]):
                fact = self.ctx.fact(batches)
            case _:
                return
        around = self.ctx.source.parents.get(node)
        converted = makes_arrays(self.ctx, around)
        if isinstance(fact, Object) and fact.kind == "batches" and not converted:
            text, report = self.ctx.source.segment(node), self.ctx.report
            targets = around.targets if isinstance(around, ast.Assign) else []
            order = DictOrder(self.ctx)
            ordered = any(map(order.is_dict, targets)) and order.is_read
            mixed = self.data.samples.may_hold_texts
            self.ctx.plan.on_expression(node, lambda renderer: as_arrays(report, renderer, text, False, ordered, mixed))
