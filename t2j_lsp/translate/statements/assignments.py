"""Assignments that go or of which a part goes: devices, settings of PyTorch, moves, unused names."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import Headers
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.layers import COMPLEX
from t2j_lsp.translate.rule.factory import KEYS, is_factory
from t2j_lsp.translate.rule.facts import Object, Partial, Qual, Scalar
from t2j_lsp.translate.rule.library import CLASSES, TorchClass, Trait, names_with
from t2j_lsp.translate.rule.names import is_complex_dtype
from t2j_lsp.translate.rule.pieces import Part, assigned
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.assignments import only_used

HANDED_ON = "no layer takes a device or a dtype in Flax, and this dict is changed or handed on: leave it out there"


class Assignments:
    """Assignments that say something only PyTorch needs."""

    def __init__(self, context: Context, renderer: ExpressionRenderer, header: Headers) -> None:
        self.ctx = context
        self.renderer = renderer
        self.header = header

    def factory_dict(self, node: ast.Assign) -> bool:
        """``factory_kwargs = {"device": device, "dtype": dtype}`` goes."""
        if node not in self.ctx.plan.factory_dicts:
            return False
        if not self.ctx.plan.factory_dicts[node]:
            self.ctx.report.gap(node, "dtype", "refused", HANDED_ON)
            return False
        facts = map(self.ctx.fact, symbols.walk(node.value))
        if any(isinstance(fact, Qual) and is_complex_dtype(fact.name) for fact in facts):
            self.ctx.report.gap(node, "dtype", "refused", COMPLEX)
            return False
        self.ctx.edits.delete(node)
        if is_factory(node.value, KEYS):
            reason = "device and dtype of new parameters go: JAX's default device, float32; nnx layers take param_dtype"
        else:
            reason = "options that make an optimizer faster go: XLA compiles its update with the step"
        self.ctx.report.note(node, "dtype" if is_factory(node.value, KEYS) else "fused", "note", reason)
        return True

    def setting(self, node: ast.Assign) -> bool:
        """``torch.backends.cudnn.benchmark = True`` goes."""
        target = node.targets[0]
        owner = self.ctx.fact(target.value) if isinstance(target, ast.Attribute) else None
        if not isinstance(target, ast.Attribute) or not isinstance(owner, Qual):
            return False
        rules = (REGISTRY.get(f"{owner.name}.{name}") for name in (target.attr, "*"))
        if not any(rule is not None and rule.drop for rule in rules):
            return False
        self.ctx.edits.delete(node)
        self.ctx.report.count_converted()
        return True

    def only_moves(self, node: ast.Assign) -> bool:
        """``model = model.to(device)``, ``x, y = x.to(device), y.to(device)`` and ``x = Variable(x)`` go.

        They would say ``x = x``; ``model = model.train()`` is ``model.train()``.
        """
        if len(node.targets) != 1:
            return False
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        moves = all(isinstance(v, ast.Call) and self._may_move(v.func) for v in values)
        if not moves or self.renderer.render(node.value).text != self.ctx.source.segment(node.targets[0]):
            return False
        statement = self.ctx.scope.statement
        if statement is not None and statement.before:
            self.ctx.edits.replace(node, statement.before.pop())
        else:
            self.ctx.edits.delete(node)
        return True

    def _may_move(self, func: ast.expr) -> bool:
        """Whether a call may give what it is given: a method, or a function of PyTorch's like ``Variable(x)``."""
        return isinstance(func, ast.Attribute) or isinstance(self.ctx.fact(func), Qual)

    def used_part(self, node: ast.Assign) -> bool:
        """``_, indices = x.max(1)``: only the part that is used."""
        target = node.targets[0]
        used = only_used(target) if len(node.targets) == 1 else None
        if used is None or not isinstance(node.value, ast.Call) or not isinstance(target, ast.Tuple):
            return False
        piece = self.renderer.render(node.value)
        if not isinstance(piece, Part):
            return False
        self.ctx.edits.replace(node, f"{self.ctx.source.segment(target.elts[used])} = {assigned(piece)}")
        return True

    def device(self, node: ast.Assign) -> bool:
        """``device = torch.device(...)`` goes when nothing in the output reads it."""
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Name):
            return False
        fact = self.ctx.fact(node.value)
        if (
            isinstance(fact, Partial)
            and isinstance(fact.function, Qual)
            and REGISTRY.get(fact.function.name) is not None
        ):
            with self.ctx.report.silent():  # its calls are written out; if it is read, it is asked about then
                self.header.expressions(node)
            self.ctx.edits.removable[node] = target.id
            return True
        if isinstance(node.value, ast.Attribute) and isinstance(fact, Object) and fact.kind == "device":
            self.header.expressions(node)
            self.ctx.edits.removable[node] = target.id
            return True
        mentions = any(
            isinstance(f := self.ctx.fact(n), Qual)
            and (f.name in names_with(Trait.DEVICE_TEST) or CLASSES.get(f.name, TorchClass()).makes == "device")
            for n in symbols.walk(node.value)
            if isinstance(n, ast.expr)
        )
        if not mentions or not (
            isinstance(fact, Object) and fact.kind == "device" or isinstance(fact, Scalar) and fact.kind == "str"
        ):
            return False
        self.ctx.edits.replace(node.value, f"{self.renderer.need('jax')}.devices()[0]")
        self.ctx.edits.removable[node] = target.id
        self.ctx.report.count_converted()
        return True
