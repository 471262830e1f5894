"""Where a converted script gets its ``nnx.Rngs``, and a file of tests the fixture that gives one."""

from __future__ import annotations

import ast
from itertools import takewhile

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, statement_of_the_file, with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.source.scopes import is_main

from .fixture import rngs_fixture


def make_rngs(context: Context, module: ast.stmt, renderer: ExpressionRenderer) -> None:
    """Create the Rngs of a script, in front of ``module``, the first statement that needs them, unless a seed did."""
    parents = context.source.parents
    around = (at for at in with_ancestors(module, parents) if isinstance(at, ast.stmt))
    node = _before_seeds(context, [*takewhile(lambda at: not is_main(at), around)][-1])
    earlier = [
        s
        for s in context.rngs.seeds
        if s.lineno <= node.lineno and parents.get(s) in (parents.get(node), context.source.tree)
    ]
    if earlier or not context.source.starts_line(node):
        return
    made = f"rngs = {renderer.need('nnx')}.Rngs(0)"
    if isinstance(node, FunctionNode | ast.ClassDef) and parents.get(node) is context.source.tree:
        at, _ = context.edits.in_front_of(node)
        context.edits.add(at, at, made + context.source.newline * 3, priority=-1)
    else:
        context.edits.insert_before(node, [made], priority=-1)


def make_fixture(context: Context, renderer: ExpressionRenderer) -> None:
    """The fixture ``rngs``, in front of the first test or fixture that asks for it."""
    if any(info.name == "rngs" for info in context.inference.functions.values()):
        return
    asking = min((info.node for info in context.rngs.asking), key=lambda node: node.lineno)
    first = statement_of_the_file(asking, context.source.parents)
    nnx = renderer.need("nnx")
    context.edits.insert_before(first, [line.format(nnx=nnx) for line in rngs_fixture(context)], priority=-1)


def _before_seeds(context: Context, node: ast.stmt) -> ast.stmt:
    """``node``, or the first statement in front of it, in its block, with a seed that is set only on a condition."""
    block = context.source.block_of(node) or []
    for other in block[: block.index(node)] if node in block else []:
        inside = (n for n in symbols.walk(other) if n in context.rngs.seeds and n is not other)
        if not isinstance(other, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and any(inside):
            return other
    return node
