"""The fixture ``rngs`` of a converted file of tests."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import nearest
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.unit_tests import SCOPES, SET_UP, fixture_of, keyword_of, seed_of
from t2j_lsp.translate.rule.facts import Qual


def rngs_fixture(context: Context) -> list[str]:
    """The lines of the fixture that tests and fixtures ask for, as wide as the widest that does."""
    scope = "function"
    for info in context.rngs.asking:
        decorator = fixture_of(info, context.inference)
        given = keyword_of(decorator, "scope") if decorator is not None else None
        if isinstance(given, ast.Constant) and given.value in SCOPES:
            scope = max(scope, str(given.value), key=SCOPES.index)
    name = next(n for n, f in context.inference.env.items() if isinstance(f, Qual) and f.name == "pytest")
    arguments = "" if scope == "function" else f'(scope="{scope}")'
    return [f"@{name}.fixture{arguments}", "def rngs():", f"    return {{nnx}}.Rngs({_seed(context)})", "", ""]


def _seed(context: Context) -> str:
    """The seed that the file sets for all its tests: at its top level, or in a fixture or set-up."""
    for node in context.source.nodes:
        seed = seed_of(node, context.inference)
        if seed is not None:
            function = nearest(ast.FunctionDef, node, context.source.parents)
            info = context.inference.functions.get(function) if function is not None else None
            if info is None or fixture_of(info, context.inference) is not None or info.name in SET_UP:
                return ast.unparse(seed)
    return "0"
