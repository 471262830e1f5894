"""Expressions that say less once a constant stands in them for a name: they are written as people would."""

from __future__ import annotations

import libcst as cst

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


def without_defaults(before: cst.Call, call: cst.Call) -> cst.Call:
    """A reduction of ``jnp`` without the arguments that became what it takes anyway."""
    match call.func:
        case cst.Attribute(value=cst.Name("jnp")) if any(_named(one) == _KEEPS for one in before.args):
            pairs = zip(before.args, call.args, strict=True)
            kept = [new for old, new in pairs if new.value is old.value or not _is_default(new)]
            if kept and len(kept) < len(call.args):
                return call.with_changes(args=[*kept[:-1], kept[-1].with_changes(comma=before.args[-1].comma)])
    return call


def _is_default(argument: cst.Arg) -> bool:
    return isinstance(argument.value, cst.Name) and _DEFAULTS.get(_named(argument)) == argument.value.value


def _named(argument: cst.Arg) -> str:
    return argument.keyword.value if argument.keyword else ""
