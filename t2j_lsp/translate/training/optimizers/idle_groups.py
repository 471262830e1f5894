"""Lists of parameters that only the groups of an optimizer are made of: the groups are masks, and the lists go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import MODULE_ONLY
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

_METHODS = names_with(Trait.SORTS_PARAMETERS)
_FUNCTIONS = frozenset({"len", "set", "sorted", "list", "dict", "tuple", "isinstance", "id", "any", "all", "filter"})


class IdleGroups:
    """Takes out what a program only makes to say which parameters belong to which group."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects

    def drop(self, parameters: ast.expr, kept: set[str]) -> None:
        """Drop the statements that make the groups in ``parameters``, as far as nothing else reads what they make.

        The groups' conditions read what is ``kept``.
        """
        scope = self.objects.scope(parameters)
        made = self._made(parameters, scope)
        while made:
            inside = {n for s in (*(s for each in made.values() for s in each), parameters) for n in symbols.walk(s)}
            read = {n.id for n in self.ctx.source.nodes if _is_load(n, made) and n not in inside}  # type: ignore[attr-defined]
            read |= kept & made.keys()
            if not read:
                break
            made = {name: each for name, each in made.items() if name not in read}
        for statement in (s for each in made.values() for s in each):
            self.ctx.plan.on_statement(statement, lambda _, node=statement: self.ctx.edits.delete(node))  # type: ignore[misc]

    def _made(self, parameters: ast.expr, scope: VariableScope) -> dict[str, list[ast.stmt]]:
        """The statements that give the names in an expression their values, and those in these, by name."""
        statements = list(self.objects.statements(scope))
        made: dict[str, list[ast.stmt]] = {}
        todo = [parameters]
        while todo:
            for name in {n.id for n in symbols.walk(todo.pop()) if isinstance(n, ast.Name)} - made.keys():
                stores = [s for s in statements if any(_is_store(n, name) for n in symbols.walk(s) if s is not n)]
                values = [value for s in stores if (value := _given(s, name)) is not None]
                if stores and len(values) == len(stores) and all(map(_is_pure, values)):
                    made[name] = stores
                    todo += values
        return made


def _given(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement gives a name, if that is all it does."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            return value
    return None


def _is_pure(value: ast.expr) -> bool:
    """Whether a value is made of parameters and their names, and nothing else happens."""
    return all(_is_harmless(n) for n in _calls(value)) and not any(
        isinstance(n, ast.NamedExpr) for n in symbols.walk(value)
    )


def _calls(value: ast.expr) -> Iterator[ast.Call]:
    return (n for n in symbols.walk(value) if isinstance(n, ast.Call))


def _is_harmless(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr=name):
            return name in _METHODS or name in MODULE_ONLY
        case ast.Name(id=name):
            return name in _FUNCTIONS
    return False


def _is_load(node: ast.AST, names: dict[str, list[ast.stmt]]) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names


def _is_store(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
