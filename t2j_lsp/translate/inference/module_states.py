"""State dicts of modules: whose ``model.state_dict()`` is, and which statements copy into its tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeGuard

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import Fact
from t2j_lsp.translate.rule.names import TENSOR_ONLY
from t2j_lsp.translate.source.text import Source

MODULE_NAMES = frozenset({"module", "model", "net", "layer"})
"""A parameter of one of these names that is asked for its mode is a module."""


def is_modules_state(source: Source, call: ast.Call) -> bool:
    """Whether what ``call`` gives has tensors under its names, or dots in these, as only a module's state has."""
    if _is_modules(source, call):
        return True
    match source.parents.get(call):
        case ast.Assign(targets=[ast.Name() as made]):
            return any(_is_modules(source, n) for n in _reads_of_one(source, made))
    return False


def _reads_of_one(source: Source, name: ast.Name) -> list[ast.Name]:
    """The reads of a variable in its scope, if that binds it once."""
    scope: ast.AST = name
    while not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module):
        scope = source.parents[scope]
    named = [n for n in symbols.walk(scope) if isinstance(n, ast.Name) and n.id == name.id]
    given = any(isinstance(n, ast.arg) and n.arg == name.id for n in symbols.walk(scope))
    reads = [n for n in named if isinstance(n.ctx, ast.Load)]
    return reads if len(reads) == len(named) - 1 and not given else []


def copied_into(
    source: Source, fact: Callable[[ast.AST], Fact], node: ast.AST
) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """``state[name].copy_(value)`` of a module's state: the three of them; None for other statements."""
    match node:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Subscript(value=state, slice=name), attr="copy_"),
                args=[value],
                keywords=[],
            )
        ) if not isinstance(name, ast.Slice | ast.Tuple):
            pass
        case _:
            return None
    if is_state(fact, state):
        return state, name, value
    match state:
        case ast.Name(id=text):
            makes = [
                n
                for n in source.names.get(text, ())
                if isinstance(made := source.parents.get(n), ast.Assign) and made.targets == [n]
                if is_state(fact, made.value) and state in _reads_of_one(source, n)
            ]
            reads = _reads_of_one(source, makes[0]) if makes else []
            if makes and not any(_is_stored(source, read) for read in reads):
                return state, name, value
    return None


def _is_stored(source: Source, read: ast.Name) -> bool:
    """Whether an item of it is given another tensor, which isn't the module's, or it is handed on."""
    match source.parents.get(read):
        case ast.Subscript(value=value, ctx=ctx) if value is read:
            return not isinstance(ctx, ast.Load)
        case ast.Attribute(attr=name):
            return name not in ("keys", "values", "items")
        case ast.Compare() | ast.For():
            return False
        case ast.Call(func=ast.Name(id="zip" | "len")):
            return False
    return True


def is_state(fact: Callable[[ast.AST], Fact], node: ast.expr) -> TypeGuard[ast.Call]:
    """Whether it is ``module.state_dict()`` of a module that has no such method of its own."""
    match node:
        case ast.Call(func=ast.Attribute(value=module, attr="state_dict"), args=[], keywords=[]):
            held = fact(module)
            own = isinstance(held, Instance) and held.cls.info.method("state_dict") is not None
            return is_module(held) and not own
    return False


def evaluates_copy(source: Source, copy: ast.Call) -> bool:
    """Whether a copy is told to evaluate: ``self.ema = deepcopy(model)``, ``self.ema.eval()``."""
    match source.parents.get(copy):
        case ast.Attribute(attr="eval") as method:
            asked = source.parents.get(method)
            return isinstance(asked, ast.Call) and not asked.args and not asked.keywords
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]) as made:
            name = ast.unparse(target)
            block = source.block_of(made) or []
            calls = [s.value for s in block if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
            return any(ast.unparse(call) == f"{name}.eval()" for call in calls)
    return False


def _walks_tensors(source: Source, method: ast.Attribute) -> bool:
    """Whether a loop goes over what it gives, alone or beside others, and calls methods of tensors on that.

    What stands beside others is paired with tensors of a state that are written.
    """
    walked: ast.AST | None = source.parents.get(method)
    around = source.parents.get(walked) if walked is not None else None
    if isinstance(around, ast.Call) and isinstance(around.func, ast.Name) and around.func.id == "zip":
        walked, around = around, source.parents.get(around)
    if not isinstance(around, ast.For) or around.iter is not walked:
        return False
    targets = around.target.elts if isinstance(around.target, ast.Tuple) else [around.target]
    names = {t.id for t in targets[method.attr == "items" :] if isinstance(t, ast.Name)}
    inside = [n for s in around.body for n in symbols.walk(s) if isinstance(n, ast.Attribute)]
    if isinstance(walked, ast.Call) and len(targets) > 1 and method.attr == "values":
        if any(n.attr == "copy_" and isinstance(n.value, ast.Subscript) for n in inside):
            return True
    return any(isinstance(n.value, ast.Name) and n.value.id in names and n.attr in TENSOR_ONLY for n in inside)


def _is_modules(source: Source, state: ast.AST) -> bool:
    match parent := source.parents.get(state):
        case ast.Subscript(value=value) if value is state:
            asked = source.parents.get(parent)
            return isinstance(asked, ast.Attribute) and asked.attr in TENSOR_ONLY | {"shape", "ndim"}
        case ast.Attribute(attr="items" | "values") as method:
            return _walks_tensors(source, method)
        case ast.Compare(left=ast.Constant(value=str() as name), ops=[ast.In() | ast.NotIn()]):
            return "." in name
    return False
