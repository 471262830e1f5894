"""Facts of calls of methods that every module has."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import ClassInfo, Function, FunctionInfo, Instance, layer_names
from t2j_lsp.translate.rule.facts import NONE, STR, UNKNOWN, AnyModule, Fact, Layer, ListOf, Tensor, Tuple
from t2j_lsp.translate.rule.join import assign
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.nullness import may_be_none
from t2j_lsp.translate.source.text import Source

from .bodies import Bodies
from .evidence import ParameterEvidence
from .forward_pass import State

HOOKING = frozenset({"register_forward_hook", "register_forward_pre_hook"})
"""Methods that register a function which is called with the module."""

RESET = "reset_parameters"
"""The method of layers that draws their initial values anew."""


def resets_layers(source: Source, classes: Iterable[ClassInfo]) -> bool:
    """Whether what resets its parameters may be a layer: no class in sight does that, or any module is asked."""
    if not any(RESET in info.methods for info in classes):
        return True
    return any(isinstance(node, ast.Constant) and node.value == RESET for node in source.nodes)


def calls_forward(node: ast.Call) -> bool:
    """``model.forward(x)``."""
    return isinstance(node.func, ast.Attribute) and node.func.attr == "forward" and bool(node.args or node.keywords)


def runs_on_parameter(node: ast.Call, function: FunctionInfo | None) -> bool:
    """Whether ``self.norm(x)`` of what a forward pass is given runs a module, though its default may be a class."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name()), args=[ast.Name(id=name), *_]):
            if function is None or function.owner is None or function.name not in ("forward", "__call__"):
                return False
            return any(a.arg == name for a in symbols.positional_parameters(function.node)[1:])
    return False


def forward_is_of_modules(classes: Iterable[ClassInfo]) -> bool:
    """Whether what has a ``forward`` is a module: no other class in sight defines one."""
    return not any("forward" in info.methods and not info.is_module for info in classes)


class ModuleMethodFacts:
    """Calls of methods that every module has."""

    def __init__(self, state: State, evidence: ParameterEvidence, bodies: Bodies) -> None:
        self.state = state
        self.evidence = evidence
        self.bodies = bodies

    def method(self, owner: Fact, name: str, arguments: list[Fact], node: ast.Call) -> Fact:
        if node in self.state.named_arrays:
            array = Tensor(any_layout=True)
            return ListOf(Tuple((STR, array)) if name.startswith("named_") else array)
        if name in ("parameters", "buffers"):
            return ListOf(Tensor(variable=True, any_layout=True))
        if name in ("named_parameters", "named_buffers"):
            return ListOf(Tuple((STR, Tensor(variable=True, any_layout=True))))
        if name == "children" and layer_names(owner):
            self.state.uses.note_indexed(owner)
        if name == "get_submodule":
            return AnyModule()
        if name in ("modules", "children"):
            return ListOf(AnyModule())
        if name in ("named_modules", "named_children"):
            return ListOf(Tuple((STR, AnyModule())))
        if name in ("to", "cuda", "cpu", "eval", "train", "float", "double", "half", "apply", "requires_grad_"):
            return owner
        if name in ("forward", "__call__"):
            if arguments:
                self.evidence.runs(arguments[0])
            if isinstance(owner, Instance):
                forward = owner.cls.info.method("forward")
                return self.bodies.infer_function(forward) if forward else Tensor(sure=False)
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
                assign(owner.cls.info, key.value, arguments[1], self.state.function)
        if name == "state_dict":
            return ListOf(Tensor(), keys=STR)
        if name == "values":
            return ListOf(AnyModule())
        if name == "items":
            return ListOf(Tuple((STR, AnyModule())))
        if name in HOOKING:
            self._hooked(owner, arguments)
        if name in ("append", "extend", "insert", "pop", "add_module") and isinstance(owner, Layer):
            self.state.uses.note_indexed(owner)
        return UNKNOWN

    def _hooked(self, owner: Fact, arguments: list[Fact]) -> None:
        """A hook is called on a layer: one that would be a function in JAX has to be a module."""
        any_class = isinstance(owner, AnyModule)
        self.state.uses.hooks_any |= any_class or isinstance(owner, Layer) and owner.node is None
        hooked = LAYERS.keys() if any_class else layer_names(owner)
        self.state.uses.isinstance_classes |= {n for n in hooked if n in LAYERS and LAYERS[n].function}
        self.state.uses.note_indexed(owner)
        if arguments and isinstance(arguments[0], Function):
            self.state.note_call(arguments[0].info, [owner])

    def _register(self, owner: Instance, node: ast.Call, arguments: list[Fact]) -> None:
        key = node.args[0] if node.args else node.keywords[0].value
        value = arguments[1] if len(arguments) > 1 else self.state.facts.get(node.keywords[-1].value, UNKNOWN)
        held = node.args[1] if len(node.args) > 1 else node.keywords[-1].value
        source = held.func.value if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) else None
        if isinstance(source, ast.Name) and self.state.facts.get(source, UNKNOWN) == UNKNOWN:
            self.state.facts[source] = Tensor()  # only a tensor can be registered
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            if self.state.function is not None and may_be_none(self.state.function, held):
                owner.cls.info.nullable.add(key.value)
            fact = value
            if value != NONE:
                fact = replace(value, variable=True) if isinstance(value, Tensor) else Tensor(variable=True)
            assign(owner.cls.info, key.value, fact, self.state.function)


def running_methods(cls: ClassInfo) -> Iterator[FunctionInfo]:
    """The methods that run when a module is called: ``forward``, and those of ``self`` that it names."""
    todo, seen = ["forward"], set[str]()
    while todo:
        name = todo.pop()
        method = cls.method(name) if name not in seen else None
        seen.add(name)
        if method is not None:
            yield method
            read = (
                n for n in symbols.walk(method.node) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
            )
            todo += [n.attr for n in read if ast.unparse(n.value) == "self"]
