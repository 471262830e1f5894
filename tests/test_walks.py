"""Walks over syntax trees: those of ``ast``, without the contexts."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import sys

import pytest

from t2j_lsp import symbols

NEWEST = "type Pair[T] = tuple[T, T]\ndef f[*Ts, **P](x: int) -> T: ...\n" if sys.version_info >= (3, 12) else ""
OTHERS = f"""{NEWEST}
global a
async def f(*a, b=1, **c) -> int:
    async with x as (y, [z]), w: await v
    async for i, j in k: del i[1:2, ::3], j.l
    return [u async for u in m if u if not n]
match p:
    case {{"k": q, 1: None, **r}} | C(s, t=-1) | [_, *o] as d if e: nonlocal g
    case _: pass
try: raise E from None
except* E as h: print(f"{{x!r:>{{w}}}} {{y=}}")
lambda *, a: (yield (b := a))
"""


@pytest.mark.parametrize("text", [OTHERS, *map(inspect.getsource, (argparse, ast, dataclasses, inspect))])
def test_walks_are_those_of_ast_without_contexts(text: str) -> None:
    tree = ast.parse(text)
    whole = [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    assert list(symbols.walk(tree)) == whole
    for node in whole:
        below = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
        assert symbols.children(node) == below
