"""Methods that collect the lists of a group, ``self._init_group(group, params)``: their loop stands in the step."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from t2j_lsp import symbols

from .functions import is_text
from .unfit import Unfit, need


def with_collecting_methods(
    step: ast.FunctionDef, methods: Mapping[str, ast.FunctionDef]
) -> tuple[ast.FunctionDef, set[str]]:
    """The step with the loops of methods that it hands a group in it, and the names of these. Raises Unfit."""
    calls = [n for n in symbols.walk(step) if isinstance(n, ast.stmt) and _called(n, methods) is not None]
    if not calls:
        return step, set()
    inlined = _Inlined(methods)
    made = inlined.visit(copy.deepcopy(step))
    for node in ast.walk(made):
        if isinstance(node, ast.Name) and node.id in inlined.flags and not isinstance(node.ctx, ast.Load):
            raise Unfit(f"the value of {node.id}", step)
    return _AsFalse(inlined.flags).visit(made), inlined.names


def _called(node: ast.stmt, methods: Mapping[str, ast.FunctionDef]) -> ast.FunctionDef | None:
    """The method that a statement calls, if that walks over the parameters of its first argument."""
    match node:
        case (
            ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)))
            | ast.Assign(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)))
        ) if name in methods:
            parameters = symbols.named_parameters(methods[name])
            loops = [s for s in methods[name].body if isinstance(s, ast.For)]
            walks = len(parameters) > 1 and [ast.unparse(s.iter) for s in loops] == [f"{parameters[1].arg}['params']"]
            return methods[name] if walks else None
    return None


class _Inlined(ast.NodeTransformer):
    def __init__(self, methods: Mapping[str, ast.FunctionDef]) -> None:
        self.methods = methods
        self.names: set[str] = set()
        self.flags: set[str] = set()

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        return self._statement(node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        return self._statement(node)

    def _statement(self, node: ast.Expr | ast.Assign) -> ast.stmt | list[ast.stmt]:
        method = _called(node, self.methods)
        if method is None:
            return node
        call = node.value
        assert isinstance(call, ast.Call)
        names = [a.arg for a in symbols.named_parameters(method)][1:]
        plain = all(isinstance(a, ast.Name) for a in call.args) and not call.keywords and len(names) == len(call.args)
        need(plain and not method.decorator_list, f"how its method {method.name} is called", node)
        self.names.add(method.name)
        given = {name: a.id for name, a in zip(names, call.args, strict=True) if isinstance(a, ast.Name)}
        body = [copy.deepcopy(s) for s in method.body if not isinstance(s, ast.Return) and not is_text(s)]
        returned = [s.value for s in symbols.walk(method) if isinstance(s, ast.Return)]
        need(len(returned) <= 1, f"what its method {method.name} returns", node)
        flags = {n for n in map(_flag, body) if n is not None}
        if isinstance(node, ast.Assign):
            flags |= _given_back(node, returned, flags)
        for inner in (n for s in body for n in ast.walk(s)):
            if isinstance(inner, ast.Name):
                inner.id = given.get(inner.id, inner.id)
        self.flags |= flags
        return [_WithoutFlags(flags).visit(s) for s in body if _flag(s) is None]


def _flag(node: ast.stmt) -> str | None:
    """The variable of ``has_complex = False``."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=False)):
            return name
    return None


def _given_back(node: ast.Assign, returned: list[ast.expr | None], flags: set[str]) -> set[str]:
    """Checks that what a method gives back are flags, under their own names. Raises Unfit."""
    given = ast.unparse(returned[0]) if returned and returned[0] is not None else ""
    names = {n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)}
    need(given == ast.unparse(node.targets[0]) and names <= flags, "what it does with what a method gives back", node)
    return names


class _WithoutFlags(ast.NodeTransformer):
    """Flags that say whether any gradient is sparse or any parameter complex: neither is."""

    def __init__(self, flags: set[str]) -> None:
        self.flags = flags

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        match node:
            case ast.AugAssign(target=ast.Name(id=name), op=ast.BitOr(), value=ast.Call(func=func) as asked):
                if name in self.flags and ast.unparse(func).endswith("is_complex"):
                    check = ast.Assert(ast.UnaryOp(ast.Not(), asked), ast.Constant("parameters are real"))
                    return ast.fix_missing_locations(ast.copy_location(check, node))
        return node

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        asks = any(isinstance(n, ast.Attribute) and n.attr == "is_sparse" for n in ast.walk(node.test))
        if asks and not node.orelse and all(isinstance(s, ast.Assign | ast.Raise) for s in node.body):
            return ast.copy_location(ast.Pass(), node)
        return node


class _AsFalse(ast.NodeTransformer):
    def __init__(self, flags: set[str]) -> None:
        self.flags = flags

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.copy_location(ast.Constant(False), node) if node.id in self.flags else node
