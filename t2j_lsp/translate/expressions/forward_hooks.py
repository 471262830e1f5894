"""Forward hooks: functions that are called with what a module gives.

In JAX a hook runs where its module runs in Python. In a compiled function, or one that is differentiated, it would
run while that is traced: what it keeps would be tracers, and what it prints would be printed once. So a hook converts
where each such pass of the file is over before it is registered, or comes after it is taken away.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.module_methods import HOOKING
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .backward import differentiates
from .context import Context

HOOKS = {name: name.removeprefix("register_") for name in HOOKING}
"""The methods, and the helpers that stand for them."""

_TRACED = (
    "In a compiled or differentiated pass a hook runs only while that is traced: what it keeps would be tracers;"
    " return the value from __call__, or keep it with self.sow and read it with nnx.capture"
)
_ORDERS = "with_kwargs, prepend and always_call have no counterpart"
_DEPTH = 6
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Once = ast.If | ast.With | ast.Try
_Inner = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def problem_of_hook(ctx: Context, node: ast.Call) -> str | None:
    """Why the registration of a forward hook has no sure form; None where it has one."""
    if len(node.args) + len(node.keywords) != 1 or any(k.arg != "hook" for k in node.keywords):
        return _ORDERS
    return None if Order(ctx.inference).is_apart(node) else _TRACED


class Order:
    """What of a file runs before what, as far as it can be seen."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.parents = inference.source.parents

    def is_apart(self, hook: ast.Call) -> bool:
        """Whether no pass that JAX traces runs while a hook is registered."""
        traced = list(self._traced())
        if not traced:
            return True
        return self._is_taken_away(hook, traced) or all(self._before(one, hook, _DEPTH) for one in traced)

    def _traced(self) -> Iterator[ast.AST]:
        """Where the file differentiates or compiles."""
        names = names_with(Trait.TRACES) | names_with(Trait.INPUT_GRADIENT)
        for node in self.inference.source.nodes:
            fact = self.inference.facts.get(node)
            if differentiates(self.inference, node) or isinstance(fact, Qual) and fact.name in names:
                if not isinstance(node, ast.alias):
                    yield node

    def _before(self, first: ast.AST, second: ast.AST, depth: int) -> bool:
        """Whether ``first`` surely never runs again once ``second`` has run."""
        if depth == 0:
            return False
        one, two = self._function(first), self._function(second)
        if one is two:
            return self._is_above(first, second) and (one is None or self._runs_once(one, depth))
        for function, as_first in ((one, True), (two, False)):
            calls = self._calls(function) if function is not None else None
            if calls and all(
                self._before(c, second, depth - 1) if as_first else self._before(first, c, depth - 1) for c in calls
            ):
                return True
        return False

    def _is_above(self, first: ast.AST, second: ast.AST) -> bool:
        """Whether two places of a function stand in statements of one block that no loop repeats, in this order."""
        above, below = self._statements(first), self._statements(second)
        for a, b in zip(above, below, strict=False):
            if a is not b:
                block = self.inference.source.block_of(a)
                return block is not None and b in block and block.index(a) < block.index(b)
            if not isinstance(a, _Once):
                return False
        return False

    def _runs_once(self, function: _Function, depth: int) -> bool:
        """Whether a function is called in one place, which no loop repeats."""
        calls = self._calls(function)
        if calls is None or len(calls) != 1 or depth == 0:
            return False
        inside = ancestors(calls[0], self.parents)
        if any(isinstance(n, ast.For | ast.While | ast.AsyncFor | _Inner) for n in inside):
            return False
        around = self._function(calls[0])
        return around is None or self._runs_once(around, depth - 1)

    def _is_taken_away(self, hook: ast.Call, traced: list[ast.AST]) -> bool:
        """Whether the block that registers a hook removes it, with nothing traced in between."""
        held = self._handle(hook)
        for statement in reversed(self._statements(hook)) if held is not None else ():
            block = self.inference.source.block_of(statement) or []
            behind = block[block.index(statement) + 1 :] if statement in block else []
            for at, other in enumerate(behind):
                if self._removes(other, held):
                    return not any(self._reaches(between, traced, _DEPTH) for between in (statement, *behind[:at]))
        return False

    def _handle(self, hook: ast.Call) -> str | None:
        """The variable that gets the handle, or the list that it is put into."""
        match self.parents.get(hook):
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
                return ast.unparse(target)
            case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as held, attr="append")):
                return ast.unparse(held)
            case ast.ListComp() as made:
                match self.parents.get(made):
                    case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
                        return ast.unparse(target)
            case ast.List() as made:
                match self.parents.get(made):
                    case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
                        return ast.unparse(target)
        return None

    def _removes(self, statement: ast.stmt, held: str | None) -> bool:
        """``handle.remove()``, or a loop over the handles that does."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="remove"), args=[])):
                return ast.unparse(owner) == held
            case ast.For(
                target=ast.Name(id=name),
                iter=handles,
                body=[ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="remove"), args=[]))],
            ):
                return name == owner and ast.unparse(handles) == held
            case _:
                return False

    def _reaches(self, node: ast.AST, traced: list[ast.AST], depth: int) -> bool:
        """Whether code, or a function of the file that it names, differentiates or compiles."""
        for inner in symbols.walk(node):
            if inner in traced:
                return True
            name = inner.id if isinstance(inner, ast.Name) else inner.attr if isinstance(inner, ast.Attribute) else None
            for function in self.inference.functions.values() if name is not None else ():
                if function.name == name and (depth == 0 or self._reaches(function.node, traced, depth - 1)):
                    return True
        return False

    def _function(self, node: ast.AST) -> _Function | None:
        """The function that a node stands in."""
        return next((n for n in ancestors(node, self.parents) if isinstance(n, _Function)), None)

    def _statements(self, node: ast.AST) -> list[ast.stmt]:
        """The statements around a node in its function, outermost first."""
        out: list[ast.stmt] = []
        for at in (node, *ancestors(node, self.parents)):
            if isinstance(at, _Function | ast.ClassDef):
                break
            if isinstance(at, ast.stmt):
                out.append(at)
        return out[::-1]

    def _calls(self, function: _Function) -> list[ast.Call] | None:
        """The calls of a function; None where its name is read otherwise."""
        out: list[ast.Call] = []
        for node in self.inference.source.nodes:
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if name != function.name:
                continue
            call = self.parents.get(node)
            if not isinstance(call, ast.Call) or call.func is not node:
                return None
            out.append(call)
        return out
