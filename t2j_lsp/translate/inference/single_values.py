"""Whether a module gives one value if it is given one: not a tuple, which an ``nnx.Sequential`` would spread."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Tensor

from .file import Inference


def gives_one_value(forward: FunctionInfo, inference: Inference) -> bool:
    """Whether what a method returns is computed with its one argument, or is it, as far as its text tells."""
    function = forward.node
    if not isinstance(function, ast.FunctionDef) or len(function.args.args) != 2:
        return False
    inside = [n for n in symbols.walk(function) if n is not function]
    if any(isinstance(n, FunctionNode | ast.Lambda | ast.Yield | ast.YieldFrom) for n in inside):
        return False
    if any(_unpacks(n, function.args.args[1].arg) for n in inside):
        return False
    returned = [n.value for n in inside if isinstance(n, ast.Return)]
    single = _SingleValues(function, inside, inference)
    return bool(returned) and all(value is not None and single.of(value) for value in returned)


def _unpacks(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=ast.Name(id=taken)):
            return taken == name
    return False


class _SingleValues:
    """Expressions of a function that are no tuples. A variable is none if nothing that it is given is one."""

    def __init__(self, function: ast.FunctionDef, inside: list[ast.AST], inference: Inference) -> None:
        self.inference = inference
        self.argument = function.args.args[1].arg
        self.given: dict[str, list[ast.expr | None]] = {}
        for node in inside:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self.given.setdefault(node.id, []).append(self._value(node))
        self.asked: set[str] = set()

    def _value(self, name: ast.Name) -> ast.expr | None:
        """What a statement gives a variable alone; None where it is one of several, or of a loop."""
        statement = self.inference.source.parents.get(name)
        match statement:
            case ast.Assign(targets=[target], value=value) if target is name:
                return value
            case ast.AugAssign(target=target, value=value) if target is name:
                return ast.BinOp(ast.Name(name.id, ast.Load()), statement.op, value)
        return None

    def of(self, node: ast.expr) -> bool:
        """Whether an expression is one value."""
        if isinstance(self.inference.facts.get(node), Tensor):
            return True
        match node:
            case ast.Name(id=name):
                given = self.given.get(name, [])
                if name in self.asked:
                    return True  # round a loop: it is one if the others are
                self.asked.add(name)
                known = bool(given) or name == self.argument
                return known and all(value is not None and self.of(value) for value in given)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Div() | ast.MatMult(), right=right):
                return self.of(left) or self.of(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.of(body) and self.of(orelse)
        return False
