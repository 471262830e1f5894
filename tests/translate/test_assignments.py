"""Which of several values a target gets, and the other way round."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp.translate.source.assignments import assigned, target_of, value_of

PAIRS = {
    "a = x": "a=x",
    "a: int = x": "a=x",
    "a: int": "",
    "a, b = x, y": "a=x b=y",
    "[a, self.b] = (x, f(y))": "a=x self.b=f(y)",
    "a, b = x": "(a, b)=x",
    "a, *b = x, y": "(a, *b)=(x, y)",
    "a, b = *x, y": "(a, b)=(*x, y)",
    "a, b, c = x, y": "(a, b, c)=(x, y)",
    "a = b = x": "",
    "a += x": "",
}


@pytest.mark.parametrize("text", PAIRS)
def test_an_assignment_gives_each_of_several_its_value(text: str) -> None:
    given = assigned(ast.parse(text).body[0])
    assert " ".join(f"{ast.unparse(t)}={ast.unparse(v)}" for t, v in given) == PAIRS[text]


@pytest.mark.parametrize(
    ("text", "target", "value"),
    [("a = x", "a", "x"), ("a, b = x, y", "b", "y"), ("a = b = x", "b", "x"), ("a, b = x", "a", None)],
)
def test_the_value_of_a_target(text: str, target: str, value: str | None) -> None:
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    name = next(n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == target)
    given = value_of(name, parents)
    assert (given and ast.unparse(given)) == value
    if given is not None and text.count("=") == 1:
        assert target_of(given, parents) is name


def test_a_value_in_something_else_goes_to_no_target() -> None:
    tree = ast.parse("a = f(x)")
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    x = next(n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "x")
    assert target_of(x, parents) is None
