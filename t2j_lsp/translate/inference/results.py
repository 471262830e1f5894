"""The fact of a rule's value, from the ``result`` its record states."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from t2j_lsp.translate.rule.binding import bind_facts
from t2j_lsp.translate.rule.facts import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    UNKNOWN,
    Fact,
    ListOf,
    Object,
    Shape,
    Tensor,
)
from t2j_lsp.translate.rule.record import Rule

_RESULTS: dict[str, Fact] = {
    "tensor": TENSOR,
    "scalar": Tensor(0),
    "bool tensor": Tensor(dtype="bool"),
    "int tensor": Tensor(dtype="int"),
    "float tensor": Tensor(dtype="float"),
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "str": STR,
    "shape": Shape(),
    "dtype": Object("dtype"),
    "device": Object("device"),
    "none": NONE,
    "tensors": ListOf(TENSOR),
    "function": UNKNOWN,
    "unknown": UNKNOWN,
}


def rule_result(rule: Rule, node: ast.Call, arguments: list[Fact], facts: Mapping[ast.AST, Fact], method: bool) -> Fact:
    """The fact of a call that ``rule`` answers. ``arguments`` are the positional facts, receiver first for a method."""
    result = rule.result
    if callable(result):
        call = bind_facts(rule, node, facts, arguments[0] if method and arguments else None)
        return result(call) if call is not None else TENSOR
    if result == "same":
        first = arguments[0] if arguments else UNKNOWN
        return replace(first, variable=False) if isinstance(first, Tensor) else TENSOR
    return _RESULTS[result]
