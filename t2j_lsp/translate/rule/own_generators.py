"""Generators that a function makes for draws of its own, which are an ``nnx.Rngs`` in JAX: ``g = nnx.Rngs(seed)``."""

from __future__ import annotations

import ast
from functools import cache

from t2j_lsp.symbols import FunctionNode, parameter_names

from .definitions import FunctionInfo
from .library import CLASSES, Trait, names_with
from .record import REGISTRY

_Inner = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def own_generator(call: ast.Call, function: FunctionInfo | None) -> str | None:
    """The function's own generator that a draw is given: ``torch.rand(3, generator=g)``."""
    for keyword in call.keywords:
        if keyword.arg == "generator" and isinstance(keyword.value, ast.Name) and function is not None:
            name = keyword.value.id
            return name if any(name in own_generators(one) for one in function.with_outer()) else None
    return None


def own_generators(info: FunctionInfo) -> frozenset[str]:
    """Variables of a function that hold seeded generators which it makes, and which nothing but its draws is given."""
    if info.generators is None:
        info.generators = _own_generators(info.node)
    return info.generators


def _own_generators(function: FunctionNode) -> frozenset[str]:
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    made = {n.id for n in names if isinstance(at := parents[n], ast.Assign) and n in at.targets and _makes(at.value)}
    if not made:
        return frozenset()
    others = {n for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names}
    wrong = {n.id for n in names if n.id in made and not _is_of_draws(n, function, parents)}
    return frozenset(made - wrong - others - set(parameter_names(function)))


def _is_of_draws(use: ast.Name, function: FunctionNode, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a generator is made, seeded or handed to a draw here."""
    around = parents[use]
    match around:
        case ast.Assign(targets=[target], value=value) if target is use and _is_directly_in(function, around, parents):
            return _is_seeded(value) or _makes(value) and _is_seeded_next(around, use.id, parents)
        case ast.Attribute(attr=attr) if attr in seeding_methods():
            statement = parents.get(parents[around])
            return isinstance(statement, ast.Expr) and _is_directly_in(function, statement, parents)
        case ast.keyword(arg="generator"):
            call = parents[around]
            return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in _draws()
    return False


def _makes(value: ast.expr) -> bool:
    if _is_seeded(value):
        return True
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _classes()


def _is_seeded(value: ast.expr) -> bool:
    """Whether it is ``torch.Generator().manual_seed(...)``."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Call() as made, attr=attr)) if attr in seeding_methods():
            return _makes(made)
    return False


def _is_seeded_next(node: ast.Assign, name: str, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether the statement behind ``g = torch.Generator()`` seeds it."""
    for block in (getattr(parents[node], field, None) for field in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and node in block:
            match block[block.index(node) + 1 :]:
                case [ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=seeded), attr=attr))), *_]:
                    return seeded == name and attr in seeding_methods()
    return False


def _is_directly_in(function: FunctionNode, node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    while not isinstance(node := parents[node], _Inner):
        pass
    return node is function


@cache
def _draws() -> frozenset[str]:
    """What functions and methods that draw are called, without the module's name."""
    return frozenset(one.name.rpartition(".")[2] for one in REGISTRY if one.random and one.emit is not None)


@cache
def _classes() -> frozenset[str]:
    return frozenset(n.rpartition(".")[2] for n, known in CLASSES.items() if known.makes == "generator")


@cache
def seeding_methods() -> frozenset[str]:
    """What seeds a generator is called as what seeds PyTorch's own."""
    return frozenset(name.rpartition(".")[2] for name in names_with(Trait.SEED))
