"""What else a module is called, or is a part of: in the callers of a function, and in modules that are made with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.rule.definitions import Class, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.training.program.named_modules import base_of, is_part, same_module
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

Place = tuple[str | None, ast.stmt]
"""A module by its name, and a statement in whose scope it is called so; None where it has no name."""


def other_names(context: Context, module: str, scope: VariableScope) -> Iterator[Place]:
    """The names that a module has elsewhere, and those of modules that hold it."""
    base = base_of(module)
    for value, statement in _in_callers(context, base, scope.function) if scope.function is not None else ():
        name = _name(value)
        yield f"{name}{module.removeprefix(base)}" if name is not None else None, statement
    for call in _calls(context):
        given = {ast.unparse(one) for one in (*call.args, *(k.value for k in call.keywords))}
        if not any(module == one or is_part(module, one) for one in given):
            continue
        place = symbols.nearest(ast.stmt, call, context.source.parents)
        if place is not None and is_module(context.fact(call)) and not is_module(context.fact(call.func)):
            holder = _name(place.targets[0]) if isinstance(place, ast.Assign) else None
            if holder != module:
                yield holder, place


def _in_callers(context: Context, name: str, function: FunctionInfo) -> Iterator[tuple[ast.expr, ast.stmt]]:
    """What callers pass for a parameter, or give what a function returns, where a variable is such a thing."""
    calls = [call for call in _calls(context) if called_function(context.fact(call.func)) is function]
    parameter = next((a for a in symbols.named_parameters(function.node) if a.arg == name), None)
    returned = (n.value for n in symbols.walk(function.node) if isinstance(n, ast.Return) and n.value is not None)
    whole = any(isinstance(n, ast.Name) and n.id == name for value in returned for n in symbols.walk(value))
    for call in calls:
        statement = symbols.nearest(ast.stmt, call, context.source.parents)
        assert statement is not None
        yield from ((v, statement) for p, v in bound_arguments(call, function) if p is parameter)
        if whole:
            yield from ((one, statement) for one in getattr(statement, "targets", [call]))


def _calls(context: Context) -> Iterator[ast.Call]:
    return (node for node in context.source.nodes if isinstance(node, ast.Call))


def _name(value: ast.expr) -> str | None:
    return ast.unparse(value) if isinstance(value, ast.Name | ast.Attribute) else None


def parts_of(context: Context, objects: Objects, module: str, scope: VariableScope) -> Iterator[Place]:
    """The modules that a module is made with: ``body`` of ``judge = Judge(body)``, which is frozen with it."""
    for statement in _makers(objects, module, scope):
        for part in _modules_in(context, statement.value):
            yield _name(part), statement


def is_of_new_parts(context: Context, objects: Objects, name: str, scope: VariableScope) -> bool:
    """Whether a variable holds a module that its scope makes, of none that others may have: ``nn.Linear(3, 2)``."""
    made = list(_makers(objects, name, scope))
    if len(made) != 1 or scope.function is None or not isinstance(value := same_module(made[0].value), ast.Call):
        return False
    return is_module(context.fact(value)) and not any(True for _ in _modules_in(context, value))


def _makers(objects: Objects, module: str, scope: VariableScope) -> Iterator[ast.Assign]:
    """The statements that give a variable, or an attribute in any method of its class, a module."""
    owner = objects.owner(scope) if module.startswith("self.") else None
    scopes = [VariableScope(method) for method in owner.methods.values()] if owner is not None else [scope]
    for statement in (s for one in scopes for s in objects.statements(one)):
        if isinstance(statement, ast.Assign) and module in map(ast.unparse, statement.targets):
            yield statement


def _modules_in(context: Context, value: ast.expr) -> Iterator[ast.expr]:
    """The modules that a constructor is given, or that stand in what it is given."""
    value = same_module(value)
    made = context.fact(value.func) if isinstance(value, ast.Call) else None
    if not isinstance(value, ast.Call) or not (
        isinstance(made, Class) or isinstance(made, Qual) and is_torch(made.name)
    ):
        return
    waiting: list[ast.AST] = [*value.args, *value.keywords]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name | ast.Attribute) and is_module(context.fact(node)):
            yield node
        else:
            waiting += symbols.children(node)
