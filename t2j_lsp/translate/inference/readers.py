"""Who reads the children of a container: an expression by its place, a function by what it does with a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Fact, Layer

from .builtin_calls import READERS
from .call_sites import bound_arguments
from .file import Inference
from .forward_pass import dotted


def reads_children(node: ast.expr, parent: ast.AST | None) -> bool:
    """Whether an expression stands where children are read: indexed, measured, or iterated."""
    match parent:
        case ast.Subscript(value=held) | ast.Starred(value=held) | ast.YieldFrom(value=held):
            return held is node
        case ast.For(iter=held) | ast.comprehension(iter=held) | ast.Attribute(value=held, attr="children"):
            return held is node
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=held):
            return held is node
        case ast.Call(func=ast.Name(id=name)):
            return name in READERS and node in parent.args
    return False


def handed_to_readers(inference: Inference) -> frozenset[ast.Call]:
    """The constructors of containers that functions or constructors of other files are handed, and read."""
    if inference.state.uses.handed is None:
        inference.state.uses.handed = frozenset(_handed(inference) if any(inference.imported.values()) else ())
    return inference.state.uses.handed


def _handed(inference: Inference) -> Iterator[ast.Call]:
    for call in inference.source.nodes:
        if isinstance(call, ast.Call) and (info := _foreign(inference.fact(call.func))) is not None:
            for parameter, argument in bound_arguments(call, info):
                fact = inference.fact(argument)
                if isinstance(fact, Layer) and fact.node is not None and _reads_parameter(info, parameter.arg):
                    yield fact.node


def _foreign(fact: Fact) -> FunctionInfo | None:
    """The function of another file that is called."""
    match fact:
        case Class():
            info = fact.info.method("__init__")
        case Function():
            info = fact.info
        case Instance():
            info = fact.cls.info.method("forward")
        case _:
            return None
    return info if info is not None and info.external else None


def _reads_parameter(info: FunctionInfo, name: str) -> bool:
    """Whether a function, or its class, reads children of what a parameter is given, or hands it on."""
    scope: ast.AST = info.owner.node if info.owner is not None else info.node
    held = {name, *_attributes(info.node, name)}
    parents = {child: node for node in symbols.walk(scope) for child in ast.iter_child_nodes(node)}
    for node in symbols.walk(scope):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and dotted(node) in held:
            parent = parents.get(node)
            if reads_children(node, parent) or isinstance(parent, ast.Call) and node in parent.args:
                return True
    return False


def _attributes(function: ast.AST, name: str) -> Iterator[str]:
    """The attributes that a function assigns a parameter to."""
    for node in symbols.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name:
            yield from (text for target in node.targets if (text := dotted(target)))
