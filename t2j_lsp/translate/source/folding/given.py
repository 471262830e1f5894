"""Parameters and attributes that are never None, or one of a few strings: what tests for others is decided.

A parameter that is never None has no default.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

import libcst as cst

from t2j_lsp.symbols import positional_parameters

from .arguments import assigned_names
from .constants import COMPARE, KINDS, folded
from .definitions import defaults, definition, is_given, nodes
from .literals import boolean, is_literal, literal, number_of
from .parts import is_function, of_parts, words
from .transformer import Transformer, code, transformed
from .uses import HelperCall, HelperUses

_PRODUCT = "math.prod({})"


def given(node: ast.FunctionDef, calls: Sequence[HelperCall], bound: Iterable[str], shift: int = 0) -> frozenset[str]:
    """The parameters that have a default and are never None: every call passes something else, or has the default.

    A ``functools.partial`` passes those that are ``bound`` something that may be None.
    """
    plain = [a.arg for a in positional_parameters(node)]
    taken = {*bound, *assigned_names(node)}
    return frozenset(
        name
        for name, default in defaults(node).items()
        if name not in taken
        and calls
        and all(is_given(c.value(plain.index(name) - shift if name in plain else None, name, default)) for c in calls)
    )


def known_calls(
    node: ast.FunctionDef, calls: Sequence[HelperCall], bound: Iterable[str], shift: int = 0
) -> tuple[tuple[str, str], ...]:
    """Calls in a function whose answer its callers decide: `len(size)` of tuples, `options.get(key, default)`.

    So is `math.prod(size)` of one or two numbers, as the first factor. A tuple stays one of whose elements a function
    reads none: it would take it for nothing.
    """
    lengths = dict(_lengths(node, calls, bound, shift))
    if not shift:
        lengths = {name: size for name, size in lengths.items() if _reads_elements(node, name)}
    sizes = {f"len({parameter})": str(size) for parameter, size in lengths.items()}
    short = {parameter: range(size) for parameter, size in lengths.items() if size in (1, 2)}
    products = {_PRODUCT.format(name): " * ".join(f"{name}[{i}]" for i in places) for name, places in short.items()}
    return tuple(sorted({**sizes, **products, **_unpassed_options(node, calls)}.items()))


def _reads_elements(node: ast.FunctionDef, name: str) -> bool:
    """Whether a function reads elements of a tuple, or their product."""
    for inner in nodes(node):
        match inner:
            case (
                ast.Subscript(value=ast.Name(id=read))
                | ast.Call(func=ast.Attribute(attr="prod"), args=[ast.Name(id=read)])
            ):
                if read == name:
                    return True
    return False


def _lengths(
    node: ast.FunctionDef, calls: Sequence[HelperCall], bound: Iterable[str], shift: int
) -> tuple[tuple[str, int], ...]:
    """The parameters that every call passes a tuple of so many elements."""
    plain = [a.arg for a in positional_parameters(node)][shift:]
    taken = {*bound, *assigned_names(node)}
    passed = {name: {tuple_length(c.argument(i, name)) for c in calls} for i, name in enumerate(plain)}
    known = {name: sizes.pop() for name, sizes in passed.items() if len(sizes) == 1 and name not in taken}
    return tuple((name, size) for name, size in known.items() if size is not None)


def tuple_length(node: ast.expr | None) -> int | None:
    """How many elements a tuple has that is written out."""
    if not isinstance(node, ast.Tuple) or any(isinstance(e, ast.Starred) for e in node.elts):
        return None
    return len(node.elts)


def _unpassed_options(node: ast.FunctionDef, calls: Sequence[HelperCall]) -> Mapping[str, str]:
    """What `options.get(key, default)` of the keywords that a function collects is, for keys that no call passes."""
    options = node.args.kwarg.arg if node.args.kwarg else None
    passed = {keyword.arg for call in calls for keyword in call.node.keywords}
    defaults: dict[str, str] = {}
    for call in nodes(node):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=[ast.Constant(value=str() as key), value]
            ) if name == options and key not in passed and is_literal(value):
                defaults[ast.unparse(call)] = literal(value)
    return defaults


@cache
def with_values(text: str, known: tuple[tuple[str, str], ...], function: str) -> str:
    """A definition with literals for some calls in the function or method of a name."""
    if not known:
        return text
    return of_parts(text, lambda part: _with_values(part, known, function) if is_function(part, function) else part)


@cache
def _with_values(text: str, known: tuple[tuple[str, str], ...], function: str) -> str:
    changed = transformed(text, lambda: _WithValues(dict(known), function))
    return folded(changed, ()) if changed != text else text


class _WithValues(Transformer):
    def __init__(self, known: Mapping[str, str], function: str) -> None:
        super().__init__()
        self.known, self.function = known, function
        self.around: list[str] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.around.append(node.name.value)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.around.pop()
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        called = code(original_node)
        value = None if called.startswith(_PRODUCT.partition("{")[0]) else self._value(called)
        return updated_node if value is None else cst.parse_expression(value)

    def _value(self, text: str) -> str | None:
        return self.known.get(text.replace('"', "'")) if self.around[:1] == [self.function] else None

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        match updated_node:
            case cst.BinaryOperation(operator=cst.FloorDivide(), right=cst.Integer("1")):
                return updated_node.left
        product = self._value(code(original_node.left)) if isinstance(original_node.operator, cst.Multiply) else None
        return updated_node if product is None else updated_node.with_changes(left=cst.parse_expression(product))


Values = Mapping[str, frozenset[str]]
"""Parameters, and the literals that they may be, of strings and of numbers."""


def value_kind(node: ast.expr | None) -> str | None:
    """The literal of a string or of a number; None for anything else."""
    match node:
        case (
            ast.Constant(value=str() | int() | float() as value)
            | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value))
        ) if not isinstance(value, bool):
            return literal(node)
    return None


def possible(definitions: Mapping[str, ast.stmt], uses: Mapping[str, HelperUses]) -> dict[str, Values]:
    """For each function the parameters that are a few strings or whole numbers: what is passed, or the default."""
    functions = {n: f for n, f in definitions.items() if isinstance(f, ast.FunctionDef) and uses[n].known}
    values: dict[str, Values] = {}
    for _ in functions:
        before, values = values, {n: dict(_values(f, uses[n], values)) for n, f in functions.items()}
        if values == before:
            break
    return values


def _values(
    node: ast.FunctionDef, uses: HelperUses, known: Mapping[str, Values]
) -> Iterator[tuple[str, frozenset[str]]]:
    """What each parameter of a function may be, if every call passes it, a partial binds it or it has a default."""
    plain, taken = [a.arg for a in positional_parameters(node)], assigned_names(node)
    for index, name in enumerate((*plain, *(a.arg for a in node.args.kwonlyargs))):
        if name in taken:
            continue
        bound = [value for one, value in uses.literals if one == name]
        default = defaults(node).get(name)
        place = index if index < len(plain) else None
        given = [(c.home, c.value(place, name, default)) for c in uses.calls]
        values = [
            _of(value, known.get(home or "", {})) for home, value in [*given, *([(None, default)] if bound else [])]
        ]
        values += [None if one is None else _of(ast.parse(one, mode="eval").body, {}) for one in bound]
        if values and None not in values:
            yield name, frozenset[str]().union(*(value for value in values if value is not None))


def _of(value: ast.expr | None, parameters: Values) -> frozenset[str] | None:
    """What an argument may be, if that is known."""
    kind = value_kind(value)
    if kind is None:
        return parameters.get(value.id) if isinstance(value, ast.Name) else None
    return frozenset({kind})


@cache
def within(text: str, values: tuple[tuple[str, frozenset[str]], ...]) -> str:
    """The text of a function without what the values of its parameters decide.

    That is comparisons with strings that they never are, questions for their kinds, and comparisons with numbers that
    come out the same for all of them, unless nothing else is done with the parameter.
    """
    changed = transformed(text, lambda: _Within(dict(values)))
    if changed == text:
        return text
    settled = folded(changed, ())
    unread = {name for name, _ in values} & (_read(text) - _read(settled))
    return within(text, tuple(one for one in values if one[0] not in unread)) if unread else settled


def _read(text: str) -> set[str]:
    return {n.id for n in nodes(definition(text)) if isinstance(n, ast.Name)}


class _Within(Transformer):
    def __init__(self, values: Mapping[str, frozenset[str]]) -> None:
        super().__init__()
        self.values = values
        self.known = {name: [ast.literal_eval(one) for one in held] for name, held in values.items()}

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        match updated_node:
            case cst.Call(
                func=cst.Name("isinstance"), args=[cst.Arg(value=cst.Name(name)), cst.Arg(value=cst.Name(kind))]
            ) if kind in KINDS and {int} == {type(one) for one in self.known.get(name, ())}:
                return cst.Name(str(kind == "int"))
        return updated_node

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        match updated_node:
            case cst.Comparison(
                left=cst.Name(value=name),
                comparisons=[
                    cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual() as way, comparator=cst.SimpleString())
                ],
            ) if name in self.values and code(updated_node.comparisons[0].comparator) not in self.values[name]:
                return cst.Name("True" if isinstance(way, cst.NotEqual) else "False")
            case cst.Comparison(
                left=cst.Name(value=name), comparisons=[cst.ComparisonTarget(operator=way, comparator=right)]
            ) if (bound := number_of(right)) is not None and isinstance(bound, int | float):
                known = self.known.get(name) or ["unknown"]
                if type(way) in COMPARE and all(isinstance(one, int | float) for one in known):
                    answers = {COMPARE[type(way)](one, bound) for one in known}
                    return boolean(answers.pop()) if len(answers) == 1 else updated_node
        return updated_node


@cache
def never_none(text: str, names: frozenset[str], function: str | None = None) -> str:
    """A definition without tests whether some names, or attributes (``self.bias``), are None.

    With a ``function``, in the function or method of that name, whose parameters they are.
    """
    return of_parts(text, lambda part: _never_none(part, names, function) if _may_ask(part, names, function) else part)


def _may_ask(part: str, names: frozenset[str], function: str | None) -> bool:
    """Whether a part of a definition has parameters that may go, or may ask whether something is None."""
    if function is not None:
        return is_function(part, function)
    return "None" in part and any(words(part).issuperset(name.split(".")) for name in names)


@cache
def _never_none(text: str, names: frozenset[str], function: str | None) -> str:
    changed = transformed(text, lambda: _NeverNone(names, function))
    return folded(changed, ()) if changed != text else text


class _NeverNone(Transformer):
    def __init__(self, names: frozenset[str], function: str | None) -> None:
        super().__init__()
        self.names, self.function = names, function
        self.inside = function is None
        self.depth = 0

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.depth += 1
        self.inside |= self.depth == 1 and node.name.value == self.function

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.depth -= 1
        if self.depth or self.function is None or original_node.name.value != self.function:
            return updated_node
        self.inside = False
        return updated_node.with_changes(params=_required(updated_node.params, self.names))

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        match updated_node:
            case cst.Comparison(
                left=cst.Name() | cst.Attribute() as left,
                comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot() as way, comparator=cst.Name("None"))],
            ) if self.inside and code(left) in self.names:
                return cst.Name("True" if isinstance(way, cst.IsNot) else "False")
        return updated_node


def _required(parameters: cst.Parameters, names: frozenset[str]) -> cst.Parameters:
    """Parameters of which some have no default, unless one in front of them has."""
    plain: list[cst.Param] = []
    for one in parameters.params:
        free = all(p.default is None for p in plain)
        plain.append(_bare(one) if one.name.value in names and free else one)
    named = [_bare(one) if one.name.value in names else one for one in parameters.kwonly_params]
    return parameters.with_changes(params=plain, kwonly_params=named)


def _bare(parameter: cst.Param) -> cst.Param:
    if not (isinstance(parameter.default, cst.Name) and parameter.default.value == "None"):
        return parameter  # a default that is a value stays
    return parameter.with_changes(default=None, equal=cst.MaybeSentinel.DEFAULT)
