"""Calls of methods, by what their owner is: a tensor, a module, an object of a library, or a value of unknown type."""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp import symbols
from t2j_lsp.translate.inference.module_methods import calls_forward, forward_is_of_modules
from t2j_lsp.translate.rule.definitions import Class, Instance, is_module
from t2j_lsp.translate.rule.facts import (
    NONE,
    AnyModule,
    Fact,
    Layer,
    ListOf,
    Object,
    Qual,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    is_number,
)
from t2j_lsp.translate.rule.library import has_rules, keeps_methods
from t2j_lsp.translate.rule.names import MODULE_BY_NAME, MODULE_HOOKS, MODULE_ONLY, is_torch, only_tensor
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import inherited_object

from .context import Context
from .handlers import ExpressionRenderer
from .module_methods import ModuleMethods
from .module_modes import ModuleModes
from .tensor_methods import TensorMethods


class CalledMethods:
    """What calls of methods become. Who knows methods of modules and of tensors is asked for them."""

    def __init__(
        self,
        context: Context,
        renderer: ExpressionRenderer,
        methods: Callable[[], ModuleMethods],
        tensors: Callable[[], TensorMethods],
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.methods = methods
        self.tensors = tensors

    def call(self, node: ast.Call, func: ast.Attribute) -> Piece | None:
        """What ``owner.name(...)`` becomes; None where only its arguments may change."""
        owner = self.ctx.fact(func.value)
        if (base := self._base_object(func, owner)) is not None:
            return self.tensors().method(node, func, base)
        if symbols.is_super(func.value):
            return self.methods().super_call(node, func)
        if isinstance(owner, Tensor) and func.attr in MODULE_BY_NAME:
            owner = AnyModule()  # Moved to a device, it was taken for what is moved most often.
        if func.attr in MODULE_HOOKS and not isinstance(owner, Instance | Class) and not is_module(owner):
            owner = AnyModule()
        if isinstance(owner, Tensor) and not owner.sure and self.ctx.inference.imports_torch and self._of_module(node):
            owner = AnyModule()  # ``self.net.cuda()`` says tensor or module
        if is_number(owner) and self.ctx.inference.imports_torch and only_tensor(func.attr, node):
            owner = Tensor(sure=False)  # ``out = {"loss": 0.0}``, to which losses are added: numbers have no ``cpu()``
        if isinstance(owner, Tensor) or isinstance(owner, Object) and (has_rules(owner) or keeps_methods(owner)):
            return self.tensors().method(node, func, owner)
        if is_module(owner):
            return self.methods().method(node, func, owner)
        if isinstance(owner, Shape) and func.attr == "numel":
            return Piece(f"{self.renderer.need('math')}.prod({self.renderer.render(func.value).text})")
        if isinstance(owner, ListOf | Tuple | Qual | Class | Instance | Layer | AnyModule | Shape):
            return None
        if (
            self.ctx.inference.imports_torch
            and not (isinstance(owner, Qual) and not is_torch(owner.name))
            and (owner == NONE or not isinstance(owner, Scalar | Object))
        ):
            if (func.attr in MODULE_ONLY or self.methods().resets(func)) and not node.args or self._of_module(node):
                return self.methods().method(node, func, AnyModule())
            if func.attr in ("eval", "train"):
                return ModuleModes(self.ctx, self.renderer).of_unknown(node, func)
            return self.tensors().unknown(node, func)
        return None

    def _base_object(self, func: ast.Attribute, owner: Fact) -> Object | None:
        """The library's object that has the method which a class of the file inherits: ``super().rsample()``."""
        if symbols.is_super(func.value):
            info, above = self.ctx.scope.class_info, 1
        else:
            info, above = owner.cls.info if isinstance(owner, Instance) else None, 0
        if info is None or any(func.attr in one.methods for one in info.ancestry()[above:]):
            return None
        return inherited_object(info, func.attr)

    def _of_module(self, node: ast.Call) -> bool:
        if self.ctx.fact(node) == AnyModule() and node in self.ctx.source.moved_modules:
            return True
        return calls_forward(node) and forward_is_of_modules(self.ctx.inference.classes.values())
