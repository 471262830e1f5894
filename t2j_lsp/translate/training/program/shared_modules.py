"""Whether two modules of a step share variables: one is a part of the other, or both hold a third one.

    body = Net()                             loss = model(x).mean() + body(x).mean()
    model = Classifier(body)

What is differentiated by one of them has to be by the other, too: Flax takes no variable both ways.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.rule.definitions import Class, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.layer import LAYERS

from .allocations import Allocations
from .named_modules import same_module
from .objects import DEPTH, VariableScope

Part = tuple[ast.Call, str]
"""What a call makes, or a part of that: ``.body`` of ``Classifier()``."""


class SharedModules:
    """Follows modules to what they are made with."""

    def __init__(self, allocations: Allocations) -> None:
        self.objects = allocations.objects
        self.ctx = allocations.ctx
        self.allocations = allocations

    def overlap(self, first: list[ast.expr], second: list[ast.expr]) -> bool:
        """Whether two modules, each read in some places, share variables as far as the file shows."""
        held = [self._held(places) for places in (first, second)]
        return any(
            made is other and (path.startswith(inner) or inner.startswith(path))
            for made, path in held[0]
            for other, inner in held[1]
        )

    def _held(self, places: list[ast.expr]) -> set[Part]:
        made = self.allocations.made(places) or set()
        followed = (self._parts(place, self.objects.scope(place), 0) for place in places)
        return {(call, "") for call in made}.union(*followed)

    def _parts(self, node: ast.expr, scope: VariableScope, depth: int) -> set[Part]:
        """The calls that make a module and the modules in it; as a part of one where it is asked for that."""
        node = same_module(node)
        if depth > DEPTH or not (isinstance(node, ast.IfExp) or is_module(self.ctx.fact(node))):
            return set()
        if isinstance(node, ast.IfExp):
            return set[Part]().union(*(self._parts(one, scope, depth + 1) for one in (node.body, node.orelse)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_submodule":
            return self._parts(node.func.value, scope, depth + 1)
        if isinstance(node, ast.Call):
            kept = (self._parts(one, scope, depth + 1) for one in self._kept(node))
            return {(node, "")}.union(*kept)
        parts: set[Part] = set()
        for value, where in self.objects.sources(node, scope):
            if value is not None:
                parts |= self._parts(value, where, depth + 1)
            elif isinstance(node, ast.Subscript):
                parts |= self._parts(node.value, scope, depth + 1)
            elif isinstance(node, ast.Attribute):
                inside = self._parts(node.value, scope, depth + 1)
                parts |= {(call, f"{path}.{node.attr}.") for call, path in inside}
        if isinstance(node, ast.Name) and not parts:
            for returned, where in self._returned(node.id, scope):
                parts |= self._parts(returned, where, depth + 1)
        return parts

    def _returned(self, name: str, scope: VariableScope) -> Iterator[tuple[ast.expr, VariableScope]]:
        """What functions of the file return for a variable among several: ``model, body = build()``."""
        for statement in self.objects.statements(scope):
            match statement:
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Call(func=func)):
                    function = called_function(self.ctx.fact(func))
                    places = [i for i, one in enumerate(targets) if isinstance(one, ast.Name) and one.id == name]
                    for node in symbols.own_nodes(function.node) if function is not None and places else ():
                        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                            yield from ((one, VariableScope(function)) for one in node.value.elts[places[0] :][:1])

    def _kept(self, call: ast.Call) -> list[ast.expr]:
        """The modules that a constructor is given and that it keeps as they are: no copies of them."""
        made = self.ctx.fact(call.func)
        if isinstance(made, Qual) and made.name in LAYERS:
            return self._modules([*call.args, *(k.value for k in call.keywords)])
        if not isinstance(made, Class):
            return []
        constructor = made.info.method("__init__")
        if constructor is None:
            return self._modules([*call.args, *(k.value for k in call.keywords)])
        return self._modules([v for p, v in bound_arguments(call, constructor) if not _copies(constructor, p.arg)])

    def _modules(self, given: list[ast.expr]) -> list[ast.expr]:
        """The modules that stand in arguments, alone or in lists and dicts."""
        out: list[ast.expr] = []
        for one in given:
            nodes = (
                [one] if is_module(self.ctx.fact(one)) else [n for n in symbols.walk(one) if isinstance(n, ast.Name)]
            )
            out += (n for n in nodes if isinstance(n, ast.expr) and is_module(self.ctx.fact(n)))
        return out


def _copies(constructor: FunctionInfo, parameter: str) -> bool:
    """Whether a constructor only copies what it is given, or asks it for something: ``copy.deepcopy(model).eval()``."""
    inside = {
        inner
        for node in symbols.walk(constructor.node)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "deepcopy"
        for inner in symbols.walk(node)
    }
    reads = [n for n in symbols.walk(constructor.node) if isinstance(n, ast.Name) and n.id == parameter]
    return bool(reads) and all(n in inside for n in reads)
