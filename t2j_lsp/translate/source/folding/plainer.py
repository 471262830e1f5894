"""Expressions that say less once a constant stands in them for a name: they are written as people would."""

from __future__ import annotations

import re

import libcst as cst

from .literals import value_of
from .transformer import code

_COUNTED = re.compile(r"^( *)(self\.\w+) = \2 \+ (\d+)$", re.MULTILINE)
_KEEPS = "keepdims"
_DEFAULTS = {"axis": "None", _KEEPS: "False"}
"""What the functions of jax.numpy that can keep the axes they reduce take anyway."""


def plain_test(node: cst.Comparison) -> cst.BaseExpression | None:
    """What ``isinstance(a, B) == True`` says."""
    match node:
        case cst.Comparison(
            left=cst.Call(func=cst.Name("isinstance")) as test,
            comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Name("True" | "False" as value))],
        ):
            return test if value == "True" else cst.UnaryOperation(cst.Not(), test)
    return None


def counted_up(text: str) -> str:
    """A definition in which ``self.count = self.count + 1``, left of a choice, is ``self.count += 1``."""
    return _COUNTED.sub(r"\1\2 += \3", text)


def is_boolean(node: cst.BaseExpression) -> bool:
    """Whether an expression is True or False, and nothing else that is taken for one of them."""
    match node:
        case cst.BooleanOperation(left=left, right=right):
            return is_boolean(left) and is_boolean(right)
        case cst.Call(func=cst.Name("isinstance" | "hasattr")) | cst.Comparison():
            return True
        case cst.UnaryOperation(operator=cst.Not()):
            return True
    return False


def condition(test: cst.BaseExpression) -> cst.BaseExpression:
    """A condition without the parts that decide nothing: ``a and (b or True)`` holds where ``a`` does."""
    if not isinstance(test, cst.BooleanOperation):
        return test
    left, right = condition(test.left), condition(test.right)
    for one, other in ((left, right), (right, left)):
        known = value_of(one)
        if isinstance(known, bool) and known is isinstance(test.operator, cst.And):
            return other
        if isinstance(known, bool) and isinstance(other, cst.Name | cst.Attribute):
            return cst.Name(str(known))
    return test if left is test.left and right is test.right else test.with_changes(left=left, right=right)


def without_defaults(before: cst.Call, call: cst.Call) -> cst.Call:
    """A reduction of ``jnp`` without the arguments that became what it takes anyway."""
    match call.func:
        case cst.Attribute(value=cst.Name("jnp")) if any(_named(one) == _KEEPS for one in before.args):
            pairs = zip(before.args, call.args, strict=True)
            kept = [new for old, new in pairs if new.value is old.value or not _is_default(new)]
            if kept and len(kept) < len(call.args):
                return call.with_changes(args=[*kept[:-1], kept[-1].with_changes(comma=before.args[-1].comma)])
    return call


def without_nothing(node: cst.Tuple) -> cst.BaseExpression:
    """``(*(), *self.batch_shape)`` as that shape, which is a tuple."""
    kept = [one for one in node.elements if not _is_nothing(one)]
    if not kept or len(kept) == len(node.elements):
        return node
    match kept:
        case [cst.StarredElement(value=cst.Attribute(attr=cst.Name(name)) as only)] if name.endswith("_shape"):
            return only
    last = kept[-1].with_changes(comma=cst.Comma() if len(kept) == 1 else cst.MaybeSentinel.DEFAULT)
    return node.with_changes(elements=[*kept[:-1], last])


def without_double_minus(node: cst.BinaryOperation) -> cst.BinaryOperation:
    """``1 - (-0.5)`` as ``1 + 0.5``."""
    match node:
        case cst.BinaryOperation(
            operator=cst.Subtract(),
            right=cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer() | cst.Float() as number),
        ):
            plain = number.with_changes(lpar=[], rpar=[])
            return node.with_changes(operator=cst.Add(), right=plain)
    return node


def _is_nothing(element: cst.BaseElement) -> bool:
    return (
        isinstance(element, cst.StarredElement) and isinstance(element.value, cst.Tuple) and not element.value.elements
    )


def asks_none(block: cst.BaseSuite) -> bool:
    """Whether a block begins with a statement that fails: None, which an argument became, is asked for an attribute."""
    match block.body[0]:
        case cst.SimpleStatementLine(body=[cst.Assign() as first]):
            return re.search(r"\bNone\.\w", code(first)) is not None
    return False


def _is_default(argument: cst.Arg) -> bool:
    return isinstance(argument.value, cst.Name) and _DEFAULTS.get(_named(argument)) == argument.value.value


def _named(argument: cst.Arg) -> str:
    return argument.keyword.value if argument.keyword else ""
