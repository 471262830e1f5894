"""Calls of what is not PyTorch's: of the file's functions, classes and modules, of methods, libraries and built-ins."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property

from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.rule.definitions import Class, Function, is_module, is_module_class
from t2j_lsp.translate.rule.facts import (
    Fact,
    Layer,
    ModuleClass,
    Partial,
    Qual,
    Tensor,
    is_tensor,
)
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.rule.one_of import OneOf
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import REGISTRY

from .array_numbers import number_of_array
from .base_constructors import BaseConstructors
from .called_methods import CalledMethods
from .context import Context
from .copied_constructors import CopiedConstructors
from .copied_modules import DEEP_COPY, copied
from .copying import Copier
from .dtype_texts import report_dtype_text
from .given_numbers import report_given_numbers
from .handlers import ExpressionRenderer
from .hashed_arrays import report_hashed
from .in_place import InPlace
from .known_values import KnownValues
from .layers import Layers
from .module_methods import ModuleMethods
from .one_of_functions import OneOfFunctions
from .rule_application import RuleApplication
from .shared_parameters import report_shared_parameters
from .signatures import report_keywords, report_signatures
from .tensor_code import TensorCode
from .tensor_methods import TensorMethods
from .truth import note_host_draw
from .truth_of_items import report_asked_items
from .unknown_makers import report_unseen_namespace

VALUE_METHODS = names_with(Trait.VALUE)


class OtherCalls:
    """What they become. The parts that know a kind of call are made where they are first asked."""

    def __init__(
        self,
        context: Context,
        renderer: ExpressionRenderer,
        copier: Copier,
        rules: RuleApplication,
        in_place: Callable[[], InPlace],
        layers: Callable[[], Layers],
        methods: Callable[[], ModuleMethods],
        tensors: Callable[[], TensorMethods],
        values: Callable[[], KnownValues],
        code: Callable[[], TensorCode],
        several: Callable[[], OneOfFunctions],
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.copier = copier
        self.rules = rules
        self.in_place = in_place
        self.layers = layers
        self.methods = methods
        self.tensors = tensors
        self.values = values
        self.code = code
        self.several = several

    @cached_property
    def called_methods(self) -> CalledMethods:
        return CalledMethods(self.ctx, self.renderer, self.methods, self.tensors)

    def call(self, node: ast.Call, fact: Fact) -> Piece | None:
        """What such a call becomes; None where only its arguments may change."""
        match fact:
            case Qual():
                report_signatures(self.ctx, node, fact)
                self.values().handed_out(node, fact.name)
                return self._library_call(node, fact.name)
            case OneOf():
                return self.several().call(node, fact)
            case Class():
                report_shared_parameters(self.ctx, node, fact)
                return self._class_call(node, fact)
            case ModuleClass():
                report_keywords(self.ctx, node, fact)
                return self.copier.of_some_class(node)
            case Partial() if is_module_class(fact.function, LAYERS) or is_module(fact.function):
                return self.copier.append_rngs(node) if not is_module(fact.function) else None
            case Partial(function=Qual() as inner) if is_torch(inner.name) and inner.name not in LAYERS:
                return self.rules.apply_partial(node, fact, inner.name)
            case Layer() if fact.name in LAYERS:
                return self.layers().called(node, LAYERS[fact.name])
            case Function():
                report_signatures(self.ctx, node, fact)
                report_given_numbers(self.ctx, node, fact.info)
                return self._function_call(node, fact.info.takes_rngs)
            case _:
                report_asked_items(self.ctx, self.code(), node)
                report_hashed(self.ctx, node)
                report_dtype_text(self.ctx, node)
                report_unseen_namespace(self.ctx, node)
                report_keywords(self.ctx, node, fact)
                self._default_function(node, fact)
        if isinstance(node.func, ast.Attribute):
            if (made := CopiedConstructors(self.ctx, self.renderer, self.rules).of_base(node, node.func)) is not None:
                return made
            self.values().number(node, node.func.value if node.func.attr in VALUE_METHODS else None)
            if node.func.attr == "format":
                self.values().text(node)
            return self.called_methods.call(node, node.func)
        if isinstance(node.func, ast.Name) and node.func.id in ("int", "float", "bool") and len(node.args) == 1:
            self.values().number(node, node.args[0])
            return number_of_array(self.ctx, self.renderer, node)
        if isinstance(node.func, ast.Name) and node.func.id in ("all", "any", "max", "min", "range"):
            self.values().number(node, next((a for a in node.args if is_tensor(self.ctx.fact(a))), None))
            if node.func.id == "range":
                self.values().counted(node)
        if isinstance(node.func, ast.Name) and node.func.id == "format":
            self.values().text(node)
        return None

    def _default_function(self, node: ast.Call, fact: Fact) -> None:
        if isinstance(fact, Partial) and isinstance(fact.function, Tensor):
            self.several().by_default(node)
        elif not is_known(fact):
            self.several().perhaps(node)

    def _function_call(self, node: ast.Call, rngs: bool) -> Piece | None:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr == "forward" and is_module(self.ctx.fact(func.value)):
            return self.methods().method(node, func, self.ctx.fact(func.value))
        return self.copier.append_rngs(node) if rngs else None

    def _class_call(self, node: ast.Call, fact: Class) -> Piece | None:
        if (made := CopiedConstructors(self.ctx, self.renderer, self.rules).made(node, fact.info)) is not None:
            return made
        if fact.info.is_module:
            return BaseConstructors(self.ctx, self.renderer, self.copier).made(node, fact.info)
        init = fact.info.method("__init__")
        return self.copier.append_rngs(node) if init is not None and init.takes_rngs else None

    def _library_call(self, node: ast.Call, name: str) -> Piece | None:
        note_host_draw(self.ctx, self.code, node)
        if (rule := REGISTRY.get(name)) is not None:
            return self.rules.apply(rule, node, None)
        if self.ctx.is_statement(node):
            self.in_place().by_unknown(node)
        return copied(self.ctx, self.renderer, self.copier, node) if name == DEEP_COPY else None
