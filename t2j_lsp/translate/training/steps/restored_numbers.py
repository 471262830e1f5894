"""Python's numbers that a train step gives with its arrays: a compiled function gives them as arrays.

Behind the call they are made numbers again, ``beta = beta.item()``, since an array is no float to `isinstance` and to
`json.dumps`, and what adds up arrays becomes one. Where a program only shows them they stay: they look alike.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import function_around
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.array_classes import is_data, is_named_tuple
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Tuple
from t2j_lsp.translate.training.program.held_numbers import HeldNumbers, NumbersIn
from t2j_lsp.translate.training.program.step_calls import Refused

HOLDS_NUMBERS = (
    "a step would give the numbers in {} as arrays, and a frozen dataclass takes no others: give them in variables of "
    "their own"
)
_SHOWING = frozenset({"print", "str", "format"})


class RestoredNumbers:
    """Which of the results of a step's ``parts`` are numbers, or hold some."""

    def __init__(self, context: Context, parts: Sequence[ast.AST], place: ast.AST) -> None:
        self.ctx = context
        self.parts = parts
        self.numbers = HeldNumbers(context.inference)
        self.scope = function_around(place, context.source.parents) or context.source.tree
        self.inside = {node for part in parts for node in symbols.walk(part)}

    def lines(self, results: Sequence[str]) -> list[str]:
        """The statements behind the call that make them numbers again. Raises Refused."""
        alone: list[str] = []
        held: list[str] = []
        for name in results:
            made = self.numbers.assigned(name, self.parts)
            if made.number and self._is_used(name):
                alone.append(name)
            held += self._items(name, made)
        numbers = ", ".join(f"{name}.item()" for name in alone)
        return [*([f"{', '.join(alone)} = {numbers}"] if alone else []), *held]

    def _items(self, name: str, made: NumbersIn) -> list[str]:
        """The statements that make numbers of a variable's items."""
        fact = self._fact(name)
        if isinstance(fact, Instance) and is_data(fact):
            return self._fields(name, fact)
        places = {key: f'{name}["{key}"]' if isinstance(key, str) else f"{name}[{key}]" for key in made.items}
        used = [key for key, one in made.items.items() if one.number and self._is_used(places[key])]
        if not used:
            return []
        if not isinstance(fact, Tuple):
            return [f"{places[key]} = {places[key]}.item()" for key in used]
        items = [f"{place}.item()" if key in used else place for key, place in places.items()]
        return [f"{name} = ({', '.join(items)}{',' * (len(items) == 1)})"]

    def _fact(self, name: str) -> Fact:
        """What is known of a variable where the step assigns it."""
        nodes = (n for n in self.inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == name)
        return next(map(self.ctx.fact, nodes), UNKNOWN)

    def _fields(self, name: str, fact: Instance) -> list[str]:
        fields = [key for info in fact.cls.info.ancestry() for key in _numbers_stated(info.node)]
        numbers = [key for key in fields if self._is_used(f"{name}.{key}")]
        if is_named_tuple(fact.cls.info):
            given = ", ".join(f"{key}={name}.{key}.item()" for key in numbers)
            return [f"{name} = {name}._replace({given})"] if numbers else []
        frozen = any("frozen" in ast.unparse(made) for made in fact.cls.info.node.decorator_list)
        if frozen and numbers:
            raise Refused(HOLDS_NUMBERS.format(name))
        return [f"{name}.{key} = {name}.{key}.item()" for key in numbers]

    # --- what reads them ------------------------------------------------------------------------------------------

    def _is_used(self, place: str) -> bool:
        """Whether the program does more with a value than show it: ``total += beta``, also in what holds it."""
        place = ast.unparse(ast.parse(place))
        return any(ast.unparse(node) != place or not _is_shown(node, self.ctx) for node in self._reads(place))

    def _reads(self, place: str) -> Iterator[ast.expr]:
        """Where a value is read outside of the step: by its own place, or as part of the variable as a whole."""
        variable = ast.parse(place, mode="eval").body
        whole = ast.unparse(variable.value) if isinstance(variable, ast.Subscript | ast.Attribute) else ""
        name = _root(variable)
        for node in symbols.walk(self.scope) if name != "self" else self.ctx.source.nodes:
            if not isinstance(node, ast.expr) or node in self.inside or not _is_loaded(node) or _root(node) != name:
                continue
            function = function_around(node, self.ctx.source.parents)
            if function is not None and function is not self.scope and name in self.ctx.source.symbols.bound(function):
                continue  # another variable
            text = ast.unparse(node)
            if text == place or text == whole != "self" and not _is_item(self.ctx.source.parents.get(node)):
                yield node


def _numbers_stated(node: ast.ClassDef) -> Iterator[str]:
    """The fields that a class says to be numbers."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            if ast.unparse(one.annotation) in ("int", "float", "bool"):
                yield one.target.id


def _is_loaded(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load)


def _is_item(around: ast.AST | None) -> bool:
    """Whether only one item of what stands in it is read: ``out["loss"]``, ``out.loss``, ``out[0]``."""
    constant = isinstance(around, ast.Subscript) and isinstance(around.slice, ast.Constant)
    return constant or isinstance(around, ast.Attribute)


def _is_shown(node: ast.AST, ctx: Context) -> bool:
    """Whether a value only becomes text."""
    match ctx.source.parents.get(node):
        case ast.FormattedValue():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) as call:
            return name in _SHOWING and node in call.args
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
            return True
        case ast.Tuple() as listed:
            around = ctx.source.parents.get(listed)
            return isinstance(around, ast.BinOp) and isinstance(around.left, ast.Constant | ast.JoinedStr)
    return False


def _root(node: ast.expr) -> str:
    """The variable that an expression reads items and attributes of."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
