"""What parameters are, from what the file passes for them: classes and other makers of modules, above all.

Nothing in ``def make(block, n): return block(n)`` says that ``block`` needs random numbers to be called with; the calls
of ``make`` do. A dictionary is what is put into it, and a decorator's parameter is what stands below it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.rule.facts import (
    NONE,
    UNKNOWN,
    Class,
    Fact,
    Function,
    FunctionInfo,
    ListOf,
    Tuple,
)
from t2j_lsp.translate.rule.join import join, makes_modules, some_maker

from .file import Inference
from .forward_pass import UnknownParameter

ROUNDS = 3
"""How far a class is followed that is handed from one function to the next."""


def called_function(fact: Fact) -> FunctionInfo | None:
    """The function of the file that a call runs: itself, a method, or a class's constructor."""
    if isinstance(fact, Function):
        return fact.info
    if isinstance(fact, Class):
        return fact.info.method("__init__")
    return None


def bound_arguments(node: ast.Call, info: FunctionInfo) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The parameters of a function of the file with the arguments that a call gives them."""
    arguments = info.node.args
    plain = _own_parameters(info)
    if any(isinstance(a, ast.Starred) for a in node.args):
        return
    yield from zip(plain, node.args, strict=False)
    by_name = {a.arg: a for a in [*plain, *arguments.kwonlyargs]}
    for keyword in node.keywords:
        if keyword.arg in by_name:
            yield by_name[keyword.arg], keyword.value


def _own_parameters(info: FunctionInfo) -> list[ast.arg]:
    """Parameters by position, without the instance."""
    plain = [*info.node.args.posonlyargs, *info.node.args.args]
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in info.node.decorator_list)
    return plain[1:] if info.owner is not None and not static else plain


def with_call_sites(inference: Inference) -> Inference:
    """The inference repeated with the makers of modules that the file hands around."""
    assumed: dict[ast.AST, Fact] = {}
    for _ in range(ROUNDS):
        if not inference.state.calls_unknown:
            break
        found = {node: some_maker(fact) for node, fact in _handed(inference).items() if _holds_makers(fact)}
        if all(assumed.get(node) == fact for node, fact in found.items()):
            break
        assumed.update(found)
        inference = inference.knowing(assumed)
    return inference


def _handed(inference: Inference) -> dict[ast.AST, Fact]:
    """What is passed for each parameter, and put into each dictionary of the file."""
    seen: dict[ast.AST, Fact] = {}
    facts, env = inference.facts, inference.env

    def see(node: ast.AST, fact: Fact) -> None:
        if fact != UNKNOWN and not isinstance(fact, UnknownParameter):
            seen[node] = join(seen[node], fact) if node in seen else fact

    stores = {
        target.id: target
        for statement in inference.source.tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name)
    }
    for node in inference.source.nodes:
        match node:
            case ast.Call():
                info = called_function(facts.get(node.func, UNKNOWN))
                if info is not None and not info.external:
                    for parameter, value in bound_arguments(node, info):
                        see(parameter, facts.get(value, UNKNOWN))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                for decorator in node.decorator_list:
                    info = called_function(facts.get(decorator, UNKNOWN))
                    if info is not None and not info.external and (parameters := _own_parameters(info)):
                        see(parameters[0], env.get(node.name, UNKNOWN))
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]) if name in stores:
                see(stores[name], ListOf(facts.get(node.value, UNKNOWN)))
            case _:
                pass
    for info in inference.functions.values():
        for parameter, default in _defaults(info):
            if parameter in seen and facts.get(default, UNKNOWN) != NONE:
                see(parameter, facts.get(default, UNKNOWN))
    return seen


def _defaults(info: FunctionInfo) -> Iterator[tuple[ast.arg, ast.expr]]:
    arguments = info.node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    yield from zip(reversed(plain), reversed(arguments.defaults), strict=False)
    yield from ((a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None)


def _holds_makers(fact: Fact) -> bool:
    match fact:
        case ListOf():
            return _holds_makers(fact.item)
        case Tuple():
            return bool(fact.items) and all(map(_holds_makers, fact.items))
        case _:
            return makes_modules(fact)
