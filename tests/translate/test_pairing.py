"""Attributes that an object is given below each other are given in one statement, where that means the same."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp.translate.source.folding.pairing import paired
from t2j_lsp.translate.source.helpers import helpers

CLASS = "class Net(Module):\n    def __init__(self, size, draw):\n"
PAIRED = {
    "names": (["self.size = size", "self.draw = draw"], ["self.size, self.draw = size, draw"]),
    "behind a pair": (
        ["self.size, self.draw = size, draw", "self.rate = 0.1"],
        ["self.size, self.draw, self.rate = size, draw, 0.1"],
    ),
    "calls of one function": (
        ["self.w = draw(3, size)", "self.v = draw(size, 3)"],
        ["self.w, self.v = draw(3, size), draw(size, 3)"],
    ),
    "four at most": (
        [f"self.{name} = size" for name in "abcde"],
        ["self.a, self.b, self.c, self.d = size, size, size, size", "self.e = size"],
    ),
}
APART = {
    "a value that reads the object": ["self.size = size", "self.rows = 3 * self.size"],
    "a method of it": ["self.size = size", "self.rows = self.count()"],
    "a call that is given it": ["self.size = size", "self.rows = draw(self)"],
    "another object": ["self.size = size", "draw.size = size"],
    "an item": ["self.size = size", "self.sizes[0] = size"],
    "a name": ["self.size = size", "rows = size"],
    "other functions": ["self.w = draw(3)", "self.v = size(3)"],
    "a choice": ["self.size = size", "self.rows = 3 if size else 4"],
    "a remark": ["self.size = size  # of a row", "self.draw = draw"],
    "something between": ["self.size = size", "print(size)", "self.draw = draw"],
    "a long line": [f"self.{'a' * 40} = size", f"self.{'b' * 40} = size"],
    "a value of several": ["self.size, self.draw = draw", "self.rate = size"],
}


def method(lines: list[str]) -> str:
    return CLASS + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize("case", PAIRED)
def test_attributes_are_given_together(case: str) -> None:
    before, after = PAIRED[case]
    assert paired(method(before), 88) == method(after)


@pytest.mark.parametrize("case", APART)
def test_what_may_depend_on_the_order_stays(case: str) -> None:
    assert paired(method(APART[case]), 88) == method(APART[case])


def test_helpers_give_the_same_attributes_the_same_values() -> None:
    for helper in helpers().values():
        text = paired(helper.text, 100)
        assert stored(text) == stored(helper.text), helper.name


def stored(text: str) -> list[str]:
    """What is assigned to attributes, in order."""
    pairs = []
    for node in ast.walk(ast.parse(text)):
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs += [
                    f"{ast.unparse(a)} = {ast.unparse(b)}" for a, b in zip(target.elts, node.value.elts, strict=True)
                ]
            else:
                pairs.append(f"{ast.unparse(target)} = {ast.unparse(node.value)}")
    return pairs
