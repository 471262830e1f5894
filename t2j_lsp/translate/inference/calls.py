"""Facts of calls: of classes, functions and modules of the file, layers, and who needs rngs for them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from t2j_lsp.translate.rule.facts import (
    UNKNOWN,
    AnyModule,
    Class,
    Fact,
    Function,
    Instance,
    Layer,
    ListOf,
    ModuleClass,
    Partial,
    Qual,
    Tensor,
    is_module,
    is_module_class,
)
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.layer import LAYERS

from .bodies import Bodies
from .builtin_calls import BuiltinCalls
from .evidence import ParameterEvidence
from .library_calls import LibraryCalls
from .methods import Methods
from .state import Env, Infer, State, UnknownParameter


class CallFacts:
    """Calls, by what is called. The parts that know more of it are made where they are first asked."""

    def __init__(
        self,
        state: State,
        infer: Infer,
        bodies: Bodies,
        evidence: Callable[[], ParameterEvidence],
        library: Callable[[], LibraryCalls],
        builtins: Callable[[], BuiltinCalls],
        methods: Callable[[], Methods],
    ) -> None:
        self.state = state
        self.infer = infer
        self.bodies = bodies
        self.evidence = evidence
        self.library = library
        self.builtins = builtins
        self.methods = methods

    def call(self, node: ast.Call, env: Env) -> Fact:
        function = self._called(node, env)
        arguments = [self.infer.expr(a, env) for a in node.args]
        for keyword in node.keywords:
            self.infer.expr(keyword.value, env)
        if isinstance(node.func, ast.Name) and function is UNKNOWN and node.func.id not in env:
            if node.func.id == "map" and len(arguments) > 1:
                return ListOf(self._mapped(node.args[0], arguments, env))
            return self.builtins().call(node, node.func.id, arguments)
        match function:
            case Qual():
                return self.library().call(node, function.name, arguments)
            case Class():
                self.state.note_call(function.info)
                self.bodies.infer_class(function.info)
                self.evidence().passed(function.info.method("__init__"), node, skip=1)
                return Instance(function)
            case UnknownParameter() if self.evidence().builds_by_name(function, node):
                self.evidence().add(function, ModuleClass())
                self.state.note_built()
                return AnyModule()
            case ModuleClass():
                self.state.note_built()
                self.state.called_as_classes |= function.lambdas
                return AnyModule()
            case Partial():
                return self._partial_call(node, function, arguments, env)
            case Function():
                self.state.note_call(function.info)
                result = self.bodies.infer_function(function.info)
                self.evidence().passed(function.info, node, skip=int(isinstance(node.func, ast.Attribute)))
                return result
            case Layer():
                return self._layer_call(function, node, arguments)
            case Instance():
                if function.cls.info.is_module:
                    if arguments:
                        self.evidence().add(arguments[0])
                    forward = function.cls.info.method("forward")
                    return self.bodies.infer_function(forward) if forward else self._base_call(function)
                return UNKNOWN
            case AnyModule():
                if node.args:
                    self.evidence().add(arguments[0])
                return Tensor(sure=False)
            case _:
                self.state.calls_unknown |= not isinstance(node.func, ast.Attribute)
        if isinstance(node.func, ast.Attribute):
            return self.methods().method(node, node.func, arguments, env)
        return UNKNOWN

    def _called(self, node: ast.Call, env: Env) -> Fact:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return UNKNOWN
        return self.infer.expr(node.func, env)

    def _base_call(self, function: Instance) -> Fact:
        base = function.cls.info.layer_base
        return LAYERS[base].result if base in LAYERS else Tensor(sure=False)

    def _layer_call(self, layer: Layer, node: ast.Call, arguments: list[Fact]) -> Fact:
        if arguments:
            self.evidence().add(arguments[0])
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

    def _partial_call(self, node: ast.Call, function: Partial, arguments: list[Fact], env: Env) -> Fact:
        inner = function.function
        if is_module(inner):
            self.state.note_built()
            return inner
        if is_module_class(inner, LAYERS):
            self.state.note_built()
            if isinstance(inner, Class):
                return Instance(inner)
            return Layer(inner.name) if isinstance(inner, Qual) else AnyModule()
        if isinstance(inner, Function):
            self.state.note_call(inner.info)
            return self.bodies.infer_function(inner.info)
        if isinstance(inner, Qual):
            return self.library().call(node, inner.name, arguments)
        return UNKNOWN

    def _mapped(self, node: ast.expr, arguments: list[Fact], env: Env) -> Fact:
        """The fact of ``f(x)`` in ``map(f, xs)``; a lambda's body is inferred again, knowing its parameters."""
        items = list(map(element, arguments[1:]))
        match arguments[0]:
            case Function() as function:
                self.state.note_call(function.info)
                return self.bodies.infer_function(function.info)
            case Layer() | AnyModule():
                return Tensor(sure=False)
            case _:
                pass
        if not isinstance(node, ast.Lambda) or len(node.args.args) != len(items):
            return UNKNOWN
        names = [a.arg for a in node.args.args]
        return self.infer.expr(node.body, {**env, **dict(zip(names, items, strict=True))})
