"""Users' decorators that put another constructor in the place of a module's: it is handed ``rngs`` in Flax."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import Fact

_KEEPS_RNGS = (
    "the constructor that {} puts in the place of the module's is handed rngs, and keeps it or takes no such keyword:"
    " hand rngs on, and leave it out of what is kept"
)


def report_lost_rngs(context: Context, node: ast.stmt, decorator: ast.expr, loses: Callable[[Fact], bool]) -> None:
    """Say it of a class or a constructor whose decorator ``loses`` the keyword."""
    made_by = symbols.called_decorator(decorator)
    if loses(context.fact(made_by)):
        name = ast.unparse(made_by)
        context.report.gap(node, name, "unsure", _KEEPS_RNGS.format(name))


def loses_rngs(decorator: Fact) -> bool:
    """Whether it is a function whose constructor does more with keywords than hand them on."""
    if not isinstance(decorator, Function):
        return False
    put = {
        node.value.id
        for node in symbols.walk(decorator.info.node)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        if any(isinstance(target, ast.Attribute) and target.attr == "__init__" for target in node.targets)
    }
    return any(function.name in put and not _hands_on(function) for function in _inner(decorator.info.node))


def wraps_and_loses_rngs(decorator: Fact) -> bool:
    """The same of a decorator of the constructor itself: what it gives back in the end is called in its place."""
    if not isinstance(decorator, Function):
        return False
    return any(not _hands_on(function) for function in _given_back(decorator.info.node))


def _given_back(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.FunctionDef]:
    """The functions that a function gives, or those that they give: of ``def cached(size): def decorator(f): ...``."""
    names = {n.value.id for n in symbols.walk(function) if isinstance(n, ast.Return) and isinstance(n.value, ast.Name)}
    for inner in _inner(function):
        if inner.name in names:
            further = list(_given_back(inner))
            yield from further or [inner]


def _inner(function: ast.AST) -> list[ast.FunctionDef]:
    return [n for n in symbols.walk(function) if isinstance(n, ast.FunctionDef) and n is not function]


def _hands_on(function: ast.FunctionDef) -> bool:
    """Whether all that a function does with its ``**kwargs`` is to call others with them, or leave others out."""
    if any(a.arg == "rngs" for a in symbols.named_parameters(function)):
        return True
    if function.args.kwarg is None:
        return False
    name = function.args.kwarg.arg
    nodes = [n for statement in function.body for n in symbols.walk(statement)]
    handed = {n.value for n in nodes if isinstance(n, ast.keyword) and n.arg is None}
    handed |= {used for n in nodes for used in _filtered(n, name)}
    return all(n in handed for n in nodes if isinstance(n, ast.Name) and n.id == name)


def _filtered(node: ast.AST, name: str) -> list[ast.expr]:
    """The uses of ``name`` in ``name = {k: v for k, v in name.items() if ...}``, where the conditions let rngs pass."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=bound) as target],
            value=ast.DictComp(
                key=ast.Name(id=key),
                value=ast.Name(id=value),
                generators=[
                    ast.comprehension(
                        target=ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=other)]),
                        iter=ast.Call(func=ast.Attribute(value=ast.Name(id=read) as source, attr="items"), args=[]),
                        ifs=conditions,
                    )
                ],
            ),
        ) if bound == read == name and (key, value) == (one, other) and all(_passes(c, key) for c in conditions):
            return [target, source]
    return []


def _passes(condition: ast.expr, key: str) -> bool:
    """Whether a condition on the name of a keyword surely holds for ``rngs``."""
    match condition:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _fails(operand, key)
        case ast.Compare(left=ast.Name(id=name), ops=[ast.NotEq() | ast.NotIn()], comparators=[other]):
            return name == key and _is_none_of(other)
    return False


def _fails(condition: ast.expr, key: str) -> bool:
    match condition:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="startswith"), args=[beginning], keywords=[]):
            return name == key and not any("rngs".startswith(one) for one in _texts(beginning, {""}))
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq() | ast.In()], comparators=[other]):
            return name == key and _is_none_of(other)
    return False


def _is_none_of(others: ast.expr) -> bool:
    """Whether ``rngs`` is surely neither a text nor among those of a display, nor a part of a text."""
    return not any("rngs" in one for one in _texts(others, {"rngs"}))


def _texts(node: ast.expr, otherwise: set[str]) -> set[str]:
    """The texts that a text or a display of texts holds; ``otherwise``, where they can't be read off."""
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return set().union(*(_texts(item, otherwise) for item in items))
    return otherwise
