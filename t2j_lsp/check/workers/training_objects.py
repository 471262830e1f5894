"""Runs the statements of a recipe (see ``check/arguments/recipes.py``) in the namespace of a loaded program."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from t2j_lsp.check.arguments.recipe import Recipe
from t2j_lsp.check.program.marks import RAN
from t2j_lsp.check.protocol import Namespace

from .widen import widen


def made(recipe: Recipe, model: Any, namespace: Namespace, wide: bool, **more: Any) -> dict[str, Any]:
    """What the recipe makes, by kind: ``optimizer``, and where the program has them ``scheduler`` and ``criterion``.

    Tracebacks show the lines of the program's file.
    """
    space = {**more, **namespace}
    around = dict(space)
    _run(recipe.before, recipe.path, wide, around)
    space |= {name: eval(text, dict(around)) for name, text in recipe.given.items()}
    space[recipe.names["model"]] = model
    _run(recipe.statements, recipe.path, wide, space)
    RAN.marks |= {(recipe.path, "statement", line) for _, line in recipe.statements}
    return {kind: space[name] for kind, name in recipe.names.items() if kind != "model"}


def _run(statements: Sequence[tuple[str, int]], path: str, wide: bool, space: Namespace) -> None:
    body: list[ast.stmt] = []
    for text, line in statements:
        body += _at(ast.parse(text).body, line)
    tree = ast.Module(body, [])
    if wide:
        tree = ast.fix_missing_locations(widen(tree, path))
    exec(compile(tree, path, "exec", dont_inherit=True), space)


def _at(body: list[ast.stmt], line: int) -> list[ast.stmt]:
    for node in (n for s in body for n in ast.walk(s)):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
    return body
