"""Texts and trees are as if every node had been made anew and every text parsed."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from t2j_lsp.translate.source.folding.annotations import _Annotations
from t2j_lsp.translate.source.folding.constants import Constants, _ConstantFolder, folded
from t2j_lsp.translate.source.folding.decidable import is_decidable
from t2j_lsp.translate.source.folding.parts import of_parts, parts
from t2j_lsp.translate.source.folding.signatures import _ParameterCutter, without_methods
from t2j_lsp.translate.source.folding.stock import _Defaults
from t2j_lsp.translate.source.folding.transformer import Transformer, _trees, transformed
from t2j_lsp.translate.source.folding.unrolling import _Unroller
from t2j_lsp.translate.source.helpers import helpers

MAKERS: dict[str, Callable[[], Transformer]] = {
    "what literals decide": lambda: _ConstantFolder({}, None),
    "a constant": lambda: _ConstantFolder({"dim": "None", "self.bias": "True"}, None),
    "a constant of constructors": lambda: _ConstantFolder({"bias": "False"}, "__init__"),
    "Flax's defaults": lambda: _Defaults("nnx.Conv"),
    "annotations": lambda: _Annotations(None, frozenset(), fields=True),
    "loops": _Unroller,
    "parameters": lambda: _ParameterCutter("__init__", frozenset(("bias",)), frozenset(("bias",))),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_text_is_left_as_visiting_all_of_it_leaves_it(make: Callable[[], Transformer]) -> None:
    texts = [one.text for one in helpers().values()][::16]
    left = [transformed(text, make) for text in texts]
    assert left == [cst.parse_module(text).visit(make()).code for text in texts]
    assert any(one is text for one, text in zip(left, texts, strict=True))
    assert all(cst.parse_module(text).deep_equals(tree) for text, tree in list(_trees.items())[-4:])


class _Second(Transformer):
    """Changes the second function that it leaves, which it has to count."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 0

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.left += 1
        return updated_node.with_changes(name=cst.Name("g")) if self.left == 2 else updated_node


def test_a_transformer_that_counts_is_asked_anew() -> None:
    one, two = "def f():  # first\n    pass\n", "\n\ndef f( ):\n    pass\n"
    assert transformed(one + two, _Second) == one + two.replace("f( )", "g( )")
    assert transformed(one, _Second) is one


CONSTANTS: list[tuple[Constants, str | None]] = [
    ((), None),
    ((("dim", "None"), ("self.bias", "True"), ("axis", "-1")), None),
    ((("bias", "False"), ("batch_first", "True")), "__init__"),
]


@pytest.mark.parametrize(("constants", "method"), CONSTANTS)
def test_a_class_is_folded_in_parts_as_it_is_folded_whole(constants: Constants, method: str | None) -> None:
    texts = [one.text for one in helpers().values()]
    whole = [transformed(text, lambda: _ConstantFolder(dict(constants), method)) for text in texts]
    assert [folded(text, constants, method) for text in texts] == whole
    assert sum(bool(parts(text)) for text in texts) > 20


UNDECIDED = 'def f(x, y=-1):\n    if x is None:\n        return g(-1)\n    return f"{x}" if y == 1 else [x, -1]\n'
DECIDED = [
    "if 1 == 2:\n        x = 0",
    "x = not True",
    "x = x and True",
    "x = 1 + 2",
    "x = 1 if None else 2",
    "x = x + True",
    "x = isinstance(1, int)",
    "x = isinstance(x, int) == True",
    "x = {1: 2}[1]",
    "x = (x,)[:2]",
    "x = (*(), *x.a_shape)",
    "x = f'a'",
    "x = f'{1}'",
    "x = f'a' f'{x}'",
    "x = [(-1)]",
    "return x\n    x = 1",
    "if x:\n        x = 0\n    else:\n        pass",
    "if x:\n        x = None.a\n    else:\n        x = 1",
    "x = float('inf') > 0",
]


@pytest.mark.parametrize("statement", DECIDED)
def test_what_folding_changes_is_told_without_folding(statement: str) -> None:
    text = f"def f(x):\n    {statement}\n"
    assert is_decidable(text)
    assert not is_decidable(UNDECIDED)


def test_a_text_that_is_not_decidable_is_left_by_folding() -> None:
    left = [one.text for one in helpers().values() if not is_decidable(one.text)]
    assert len(left) > 100
    assert all(transformed(text, lambda: _ConstantFolder({}, None)) is text for text in [*left, UNDECIDED])


CLASS = """\
# Above.
class A(
    B,
):
    # A remark.
    kind = "a"

    @property
    def one(self):
        return 1

    # About two.
    def two(self):
        return 2
"""


def test_the_parts_of_a_class_are_its_head_and_its_statements() -> None:
    head, *body = parts(CLASS)
    assert head == "# Above.\nclass A(\n    B,\n):\n"
    assert [part.strip().split("\n")[0] for part in body] == ["# A remark.", "@property", "# About two."]
    assert of_parts(CLASS, lambda part: part.replace("self", "this")) == CLASS.replace("self", "this")
    assert parts("def f():\n    pass\n") == ()


def test_methods_go_with_what_stands_above_them() -> None:
    without = without_methods(CLASS, frozenset(("two",)))
    assert without == CLASS[: CLASS.index("\n    # About")]
    only = "class A:\n    def one(self):\n        pass\n"
    assert without_methods(only, frozenset(("one",))) == "class A:\n    pass\n"
