"""Texts and trees are as if every node had been made anew and every text parsed."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from t2j_lsp.translate.source.folding.annotations import _Annotations
from t2j_lsp.translate.source.folding.constants import _Folder
from t2j_lsp.translate.source.folding.signatures import _Methods
from t2j_lsp.translate.source.folding.stock import _Defaults
from t2j_lsp.translate.source.folding.transformer import Transformer, _trees, transformed
from t2j_lsp.translate.source.folding.unrolling import _Unroller
from t2j_lsp.translate.source.helpers import helpers

MAKERS: dict[str, Callable[[], Transformer]] = {
    "what literals decide": lambda: _Folder({}, None),
    "a constant": lambda: _Folder({"dim": "None", "self.bias": "True"}, None),
    "a constant of constructors": lambda: _Folder({"bias": "False"}, "__init__"),
    "Flax's defaults": lambda: _Defaults("nnx.Conv"),
    "annotations": lambda: _Annotations(None, frozenset()),
    "loops": _Unroller,
    "methods": lambda: _Methods(frozenset(("__call__", "reset"))),
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
