"""Runs the statements of a recipe (see ``check/recipes.py``) in the namespace of a loaded program."""

from __future__ import annotations

import ast
from typing import Any

from t2j_lsp.check.widen import widen


def made(recipe: dict[str, Any], model: Any, namespace: dict[str, Any], wide: bool, **more: Any) -> dict[str, Any]:
    """What the recipe makes, by kind: ``optimizer``, and where the program has them ``scheduler`` and ``criterion``.

    Tracebacks show the lines of the program's file.
    """
    space = {**more, **namespace}
    space |= {name: eval(text, dict(space)) for name, text in recipe["given"].items()}
    space[recipe["names"]["model"]] = model
    body: list[ast.stmt] = []
    for text, line in recipe["statements"]:
        body += _at(ast.parse(text).body, line)
    tree = ast.Module(body, [])
    if wide:
        tree = ast.fix_missing_locations(widen(tree, recipe["path"]))
    exec(compile(tree, recipe["path"], "exec", dont_inherit=True), space)
    return {kind: space[name] for kind, name in recipe["names"].items() if kind != "model"}


def _at(body: list[ast.stmt], line: int) -> list[ast.stmt]:
    for node in (n for s in body for n in ast.walk(s)):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
    return body
