"""What is overwritten under ``torch.no_grad()`` or through ``.data`` keeps the gradient of what it was.

``with torch.no_grad(): y.round_()`` changes values alone: the gradient goes on to what ``y`` was computed from. So it
is for a parameter that a module clamps before it uses it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.tensor_code import TensorCode
from t2j_lsp.translate.inference.fillers import filled
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

_NO_VALUES = names_with(Trait.NO_VALUES)


class Overwriting:
    """Finds the local arrays that are overwritten, and puts their gradient back."""

    def __init__(self, context: Context, code: TensorCode) -> None:
        self.ctx = context
        self.code = code

    def names(self, node: ast.stmt, used_later: set[str]) -> list[str]:
        """The local arrays that are overwritten inside a statement and read behind it.

        Not what a function outside of modules was given and fills: it initializes that, and nothing is differentiated.
        """
        function = self.ctx.scope.function
        if function is None or not self.code.is_traced:
            return []
        handed_back = filled(function, self.ctx.inference)
        given = set() if function.runs_in_module or handed_back is None else {handed_back}
        bound = {name.id for n in symbols.walk(node) for name in assigned_names(n)}
        names: dict[str, None] = {}
        for statement in (n for n in symbols.walk(node) if isinstance(n, ast.stmt)):
            for name in overwritten(statement):
                initial = name.id in given and self.fills(node, name.id)
                if name.id in used_later - bound and not initial and self._carries(name, function.node):
                    names.setdefault(name.id)
        return list(names)

    def fills(self, block: ast.stmt, name: str) -> bool:
        """Whether what a block writes into an array reads no other arrays: initial values do not."""
        for statement in (n for n in symbols.walk(block) if isinstance(n, ast.stmt)):
            if any(n.id == name for n in overwritten(statement)) or isinstance(statement, ast.Return):
                read = (n for n in symbols.walk(statement) if isinstance(n, ast.Name) and n.id != name)
                if any(isinstance(self.ctx.fact(n), Tensor) for n in read):
                    return False
        return True

    def _carries(self, name: ast.Name, function: ast.AST) -> bool:
        """Whether an array may carry a gradient: one of floats that was computed from others, or given."""
        fact = self.ctx.fact(name)
        if not isinstance(fact, Tensor) or fact.dtype in ("int", "bool"):
            return False
        values = [
            n.value
            for n in symbols.walk(function)
            if isinstance(n, ast.Assign | ast.AnnAssign | ast.NamedExpr)
            and n.value is not None
            and any(one.id == name.id for one in assigned_names(n))
        ]
        return not values or any(self._reads_floats(value) for value in values)

    def _reads_floats(self, value: ast.expr) -> bool:
        parts = (self.ctx.fact(n) for n in symbols.walk(value) if isinstance(n, ast.Name | ast.Attribute))
        calls = any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and _root(n.func) == "self"
                    for n in symbols.walk(value))  # fmt: skip
        return calls or any(isinstance(fact, Tensor) and fact.dtype not in ("int", "bool") for fact in parts)

    def keep(self, first: ast.stmt, last: ast.stmt, texts: dict[str, str], stop: str) -> None:
        """Between two statements, the arrays that ``texts`` name get new values, and keep the gradient of their own.

        Each is given with the array whose gradient it is: itself, or the one of which it becomes another name.
        """
        held: dict[str, str] = {}
        for text, source in texts.items():
            if source not in held:
                held[source] = self.ctx.names.fresh(f"old_{source.removesuffix('[...]').rpartition('.')[2]}")
                self.ctx.edits.insert_before(first, [f"{held[source]} = {source}"])
            old = held[source]
            self.ctx.edits.insert_after(last, [f"{text} = {stop}({text}) + ({old} - {stop}({old}))"])


def assigned_names(node: ast.AST) -> Iterator[ast.Name]:
    """The names that an assignment binds: ``a = ...``, ``a: Tensor = ...``, ``a, *b = ...``, ``(a := ...)``."""
    todo: list[ast.expr] = []
    match node:
        case ast.Assign(targets=targets):
            todo += targets
        case ast.AnnAssign(target=only, value=ast.expr()) | ast.NamedExpr(target=only):
            todo.append(only)
    while todo:
        target = todo.pop(0)
        match target:
            case ast.Name():
                yield target
            case ast.Tuple(elts=items) | ast.List(elts=items):
                todo += items
            case ast.Starred(value=inner):
                todo.append(inner)


def overwritten(statement: ast.stmt) -> Iterator[ast.Name]:
    """The names of arrays whose values a statement changes in place."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            places: list[ast.expr] = [t for t in targets if not isinstance(t, ast.Name)]
            if isinstance(value, ast.Call) and (changed := changed_in_place(value)) is not None:
                places.append(changed)
        case ast.AugAssign(target=target):
            places = [target]
        case ast.Expr(value=ast.Call() as call):
            place = _written_by(call)
            places = [place] if place is not None else []
        case _:
            places = []
    for place in places:
        while isinstance(place, ast.Subscript) or isinstance(place, ast.Attribute) and place.attr == "data":
            place = place.value
        if isinstance(place, ast.Name):
            yield place


def changed_in_place(value: ast.expr) -> ast.Name | None:
    """The ``y`` of ``y`` and ``y.mul_(2).add_(1)``: what an expression gives, and changes the values of, if any."""
    place = _written_by(value) if isinstance(value, ast.Call) else value
    return place if isinstance(place, ast.Name) else None


def _written_by(call: ast.Call) -> ast.expr | None:
    """What a chain of methods changes in place: ``y[0]`` of ``y[0].mul_(2).add_(1)``."""
    methods: set[str] = set()
    place: ast.expr = call
    while isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute):
        methods.add(place.func.attr)
        place = place.func.value
    changes = all(m.endswith("_") and not m.endswith("__") for m in methods) and bool(methods)
    return place if changes and methods.isdisjoint(_NO_VALUES) else None


def writes_data(statement: ast.stmt) -> bool:
    """Whether a statement writes into the values of a tensor through its ``.data``."""
    match statement:
        case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
            place: ast.expr = target
        case ast.Expr(value=ast.Call() as call):
            place = call
            while isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute):
                if not place.func.attr.endswith("_") or place.func.attr.endswith("__"):
                    return False
                place = place.func.value
        case _:
            return False
    while isinstance(place, ast.Subscript):
        place = place.value
    return isinstance(place, ast.Attribute) and place.attr == "data"


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
