"""What is planned is planned before anything is written."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp.translate.expressions.context import Plan


def test_no_handler_comes_once_writing_has_begun() -> None:
    plan = Plan()
    statement = ast.parse("x = f(x)").body[0]
    assert isinstance(statement, ast.Assign)
    plan.on_statement(statement, lambda statements: None)
    plan.freeze()
    with pytest.raises(AssertionError, match="before anything is written"):
        plan.on_statement(statement, lambda statements: None)
    with pytest.raises(AssertionError, match="before anything is written"):
        plan.on_expression(statement.value, lambda renderer: None)
