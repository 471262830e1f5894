"""A helper's text with some names standing for constants: branches that can't be taken any more go.

What is known after that is folded as well: comparisons of constants, ``and`` and ``or``, and statements behind a
``return``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import libcst as cst

from .decidable import is_decidable
from .literals import UNKNOWN, boolean, is_one, literal_node, number_of, parsed_literal, value_of, without_brackets
from .parts import is_function, of_parts, words
from .plainer import (
    asks_none,
    condition,
    is_boolean,
    plain_test,
    without_defaults,
    without_double_minus,
    without_nothing,
)
from .transformer import Transformer, code, transformed

Constants = tuple[tuple[str, str], ...]
"""Expressions (``reduction``, ``self.bias``) and the literals that they stand for."""

COMPARE: dict[type[cst.BaseCompOp], Callable[[Any, Any], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.Is: lambda a, b: a is b,
    cst.IsNot: lambda a, b: a is not b,
    cst.In: lambda a, b: a in b,
    cst.NotIn: lambda a, b: a not in b,
}
_CALCULATE: dict[type[cst.BaseBinaryOp], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
}
KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "tuple": tuple}
KINDS["Sequence"] = Sequence
LOOSE = (
    cst.BinaryOperation,
    cst.BooleanOperation,
    cst.Comparison,
    cst.IfExp,
    cst.Lambda,
    cst.UnaryOperation,
)
"""Expressions that need brackets among others."""


@cache
def folded(text: str, constants: Constants, method: str | None = None) -> str:
    """The text of a definition with constants put in for names and attributes, which it doesn't assign.

    With a ``method``, only in that method of a class.
    """
    return of_parts(text, lambda part: _folded(part, *_said(part, constants, method)))


def _said(part: str, constants: Constants, method: str | None) -> tuple[Constants, str | None]:
    """The constants that a part of a definition may name, and the method that they are for."""
    if method is not None and not is_function(part, method):
        return (), None
    named = tuple((name, value) for name, value in constants if words(part).issuperset(name.split(".")))
    return named, method if named else None


@cache
def _folded(text: str, constants: Constants, method: str | None) -> str:
    if not constants and not is_decidable(text):
        return text
    return transformed(text, lambda: _ConstantFolder(dict(constants), method))


@cache
def without_instances(text: str, name: str) -> str:
    """The text of a definition in which nothing is an instance of a class."""
    if name not in text:
        return text
    return folded(transformed(text, lambda: _Instances(name)), ())


class _ConstantFolder(Transformer):
    def __init__(self, constants: Mapping[str, str], method: str | None) -> None:
        super().__init__()
        self.known = constants
        self.method = method
        self.constants: Mapping[str, str] = constants if method is None else {}
        self.depth = 0

    # --- constants for names --------------------------------------------------------------------------------------

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        constant = self.constants.get(original_node.value)
        return literal_node(constant) if constant is not None else updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if isinstance(original_node.value, cst.Name):
            constant = self.constants.get(f"{original_node.value.value}.{original_node.attr.value}")
            if constant is not None:
                return literal_node(constant)
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword, value=without_brackets(updated_node.value))

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        return updated_node.with_changes(name=original_node.name)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.depth += 1
        if self.depth == 1 and node.name.value == self.method:
            self.constants = self.known

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.depth -= 1
        if self.depth == 0 and self.method is not None:
            self.constants = {}
        return updated_node.with_changes(name=original_node.name)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        return updated_node.with_changes(name=original_node.name)

    def leave_AssignTarget(self, original_node: cst.AssignTarget, updated_node: cst.AssignTarget) -> cst.AssignTarget:
        return updated_node.with_changes(target=original_node.target)

    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.AnnAssign:
        return updated_node.with_changes(target=original_node.target)

    def leave_Element(self, original_node: cst.Element, updated_node: cst.Element) -> cst.Element:
        return updated_node.with_changes(value=without_brackets(updated_node.value))

    def leave_Tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.BaseExpression:
        return without_nothing(updated_node)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        """The first elements of a tuple of expressions, or what a dict has for a literal."""
        match updated_node:
            case cst.Subscript(
                value=cst.Dict(elements=entries), slice=[cst.SubscriptElement(slice=cst.Index(value=key))]
            ):
                asked = value_of(without_brackets(key))
                values = [
                    e.value
                    for e in entries
                    if isinstance(e, cst.DictElement) and value_of(without_brackets(e.key)) == asked
                ]
                if asked is not UNKNOWN and len(values) == 1:
                    return values[0]
            case cst.Subscript(
                value=cst.Tuple(elements=elements),
                slice=[cst.SubscriptElement(slice=cst.Slice(lower=None, upper=cst.Integer() as upper, step=None))],
            ) if int(upper.value) >= len(elements):
                return updated_node.value
        return updated_node

    def leave_Slice(self, original_node: cst.Slice, updated_node: cst.Slice) -> cst.Slice:
        lower = updated_node.lower
        if lower is None or lower is original_node.lower or value_of(without_brackets(lower)) is UNKNOWN:
            return updated_node
        if not isinstance(updated_node.upper, cst.Name | cst.Integer | None):
            return updated_node.with_changes(lower=without_brackets(lower))
        colon = cst.Colon()
        return updated_node.with_changes(lower=without_brackets(lower), first_colon=colon)

    # --- expressions of constants ---------------------------------------------------------------------------------

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        if len(updated_node.comparisons) != 1:
            return updated_node
        (target,) = updated_node.comparisons
        target = target.with_changes(comparator=without_brackets(target.comparator))
        updated_node = updated_node.with_changes(left=without_brackets(updated_node.left), comparisons=[target])
        if (plain := plain_test(updated_node)) is not None:
            return plain
        if _asks_nothing(updated_node.left, target):
            return boolean(isinstance(target.operator, cst.NotIn))
        compare = COMPARE.get(type(target.operator))
        left, right = number_of(updated_node.left), number_of(target.comparator)
        if compare is None or left is UNKNOWN or right is UNKNOWN:
            return updated_node
        try:
            return boolean(compare(left, right))
        except TypeError:
            return updated_node

    def leave_UnaryOperation(
        self, original_node: cst.UnaryOperation, updated_node: cst.UnaryOperation
    ) -> cst.BaseExpression:
        if isinstance(updated_node.operator, cst.Not) and (value := value_of(updated_node.expression)) is not UNKNOWN:
            return boolean(not value)
        return updated_node

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        calculate = _CALCULATE.get(type(updated_node.operator))
        left, right = value_of(updated_node.left), value_of(updated_node.right)
        if calculate is not None and left is not UNKNOWN and right is not UNKNOWN:
            try:
                made = parsed_literal(calculate(left, right))
            except TypeError:
                return updated_node
            if made is not None:
                return made
        chosen = isinstance(original_node.right, cst.IfExp)
        if isinstance(updated_node.operator, cst.Multiply):
            if isinstance(original_node.left, cst.Name) and left == 1 and left is not True:
                return updated_node.right
            return updated_node.left if chosen and is_one(right) else updated_node
        if isinstance(updated_node.operator, cst.Add):
            return updated_node.left if chosen and right == 0 else updated_node
        if isinstance(original_node.right, cst.Name) and right == 1:  # helpers divide sizes by sizes, floats by floats
            divides = cst.FloorDivide if is_one(right) else cst.Divide
            return updated_node.left if isinstance(updated_node.operator, divides) else updated_node
        return without_double_minus(updated_node)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        match updated_node:
            case cst.Call(func=cst.Name("isinstance"), args=[cst.Arg(value=value), cst.Arg(value=cst.Name(kind))]):
                if (known := value_of(value)) is not UNKNOWN and kind in KINDS:
                    return boolean(isinstance(known, KINDS[kind]))
        return without_defaults(original_node, updated_node)

    def leave_FormattedStringExpression(
        self, original_node: cst.FormattedStringExpression, updated_node: cst.FormattedStringExpression
    ) -> cst.BaseFormattedStringContent:
        known = value_of(updated_node.expression)
        plain = not (updated_node.conversion or updated_node.format_spec or updated_node.equal)
        if plain and isinstance(known, str | int) and re.fullmatch(r"[\w .,:-]*", str(known)):
            return cst.FormattedStringText(str(known))
        return original_node if isinstance(known, str) else updated_node

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        texts = [part.value for part in updated_node.parts if isinstance(part, cst.FormattedStringText)]
        whole = "".join(texts)
        if len(texts) == len(updated_node.parts) and re.fullmatch(r"[\w .,:-]*", whole):
            return cst.SimpleString(f'"{whole}"')
        return updated_node

    def leave_BooleanOperation(
        self, original_node: cst.BooleanOperation, updated_node: cst.BooleanOperation
    ) -> cst.BaseExpression:
        value = value_of(updated_node.left)
        if value is UNKNOWN:
            return _without_known_right(updated_node)
        takes_right = bool(value) is isinstance(updated_node.operator, cst.And)
        return updated_node.right if takes_right else updated_node.left

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        value = value_of(updated_node.test)
        if value is UNKNOWN:
            return updated_node
        taken = updated_node.body if value else updated_node.orelse
        loose = isinstance(taken, LOOSE) and updated_node.lpar and not taken.lpar
        return taken.with_changes(lpar=updated_node.lpar, rpar=updated_node.rpar) if loose else taken

    # --- statements -----------------------------------------------------------------------------------------------

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        return updated_node.with_changes(test=condition(updated_node.test))

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body = list(_taken(updated_node.body))
        return updated_node.with_changes(body=body or [cst.SimpleStatementLine([cst.Pass()])])

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        return updated_node.with_changes(body=list(_taken(updated_node.body)))


def _asks_nothing(left: cst.BaseExpression, target: cst.ComparisonTarget) -> bool:
    """``name in ()``, and ``name not in ()``."""
    nothing = isinstance(target.comparator, cst.Tuple | cst.List) and not target.comparator.elements
    return nothing and isinstance(target.operator, cst.In | cst.NotIn) and isinstance(left, cst.Name)


def _without_known_right(node: cst.BooleanOperation) -> cst.BaseExpression:
    """``a and True`` as ``a``, ``a and False`` as ``False``, and so with ``or``, where ``a`` is True or False.

    Brackets around one that stands in another of its kind go.
    """
    right = value_of(node.right)
    left = node.left
    if isinstance(left, cst.BooleanOperation) and type(left.operator) is type(node.operator):
        last = value_of(left.right)  # a and True and b
        if isinstance(last, bool) and last is isinstance(node.operator, cst.And):
            return node.with_changes(left=left.left)
    if isinstance(node.right, cst.BooleanOperation) and type(node.right.operator) is type(node.operator):
        return node.with_changes(right=node.right.with_changes(lpar=(), rpar=()))  # a or (b or c)
    if not isinstance(right, bool) or not is_boolean(left):
        return node
    if right is isinstance(node.operator, cst.And):
        return left if isinstance(left, cst.Comparison) else left.with_changes(lpar=node.lpar, rpar=node.rpar)
    return node if "(" in code(left) else node.right


def _taken(body: Sequence[cst.BaseStatement]) -> Iterable[cst.BaseStatement]:
    """The statements that can be reached, without tests that are known."""
    for statement in body:
        reached = [statement]
        if isinstance(statement, cst.If):
            reached = _resolved(statement)
        for one in reached:
            yield one
            if isinstance(one, cst.SimpleStatementLine) and isinstance(one.body[-1], cst.Return | cst.Raise):
                return


def _resolved(statement: cst.If) -> list[cst.BaseStatement]:
    value = value_of(statement.test)
    if value is UNKNOWN and isinstance(statement.orelse, cst.Else) and asks_none(statement.body):
        value = False
    if value is not UNKNOWN:
        taken = list(statement.body.body) if value else _otherwise(statement.orelse)
        lines: list[cst.BaseStatement] = [one for one in taken if isinstance(one, cst.BaseStatement)]
        if lines and statement.leading_lines:
            own = getattr(lines[0], "leading_lines", ())
            lines[0] = lines[0].with_changes(leading_lines=[*statement.leading_lines, *own])
        return [] if lines and _is_pass(lines) else lines
    if isinstance(statement.orelse, cst.If):
        rest = _resolved(statement.orelse)
        if len(rest) == 1 and isinstance(rest[0], cst.If):
            return [statement.with_changes(orelse=rest[0])]
        if not rest:
            return [statement.with_changes(orelse=None)]
        return [statement.with_changes(orelse=cst.Else(cst.IndentedBlock(rest)))]
    if isinstance(statement.orelse, cst.Else) and _is_pass(statement.orelse.body.body):
        return [statement.with_changes(orelse=None)]
    return [statement]


def _otherwise(orelse: cst.If | cst.Else | None) -> list[Any]:
    if isinstance(orelse, cst.If):
        return list(_resolved(orelse))
    return list(orelse.body.body) if orelse is not None else []


def _is_pass(body: Sequence[Any]) -> bool:
    return len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) and isinstance(body[0].body[0], cst.Pass)


class _Instances(Transformer):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        match updated_node:
            case cst.Call(func=cst.Name("isinstance"), args=[_, cst.Arg(value=cst.Name(self.name))]):
                return cst.Name("False")
        return updated_node

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        if isinstance(updated_node.operator, cst.BitOr):  # in an annotation
            for one, other in ((updated_node.left, updated_node.right), (updated_node.right, updated_node.left)):
                if isinstance(one, cst.Name) and one.value == self.name:
                    return other
        return updated_node
