"""Variables that hold None until a branch says what they are: ``optimizer = None``, then ``if args.opt == "sgd": ...``.

Where a file that has gaps does so, and every branch gives the variable a value or ends the program, it is read as if it
were not there before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from t2j_lsp.contract import Finding
from t2j_lsp.symbols import FunctionNode, ancestors, walk
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.rearranged import RearrangedText

from .left_out import ObjectLeftOut, Stays

_ENDS = ast.Raise | ast.Return | ast.Continue | ast.Break


def without_placeholders(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text without such assignments of None; None where there are none, or everything converts."""
    if not list(gaps):
        return None
    left_out = ObjectLeftOut(inference)
    for node in inference.source.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=None)):
                if inference.source.starts_line(node) and _is_given_first(inference, node, name):
                    try:
                        left_out.drop(node)
                    except Stays:
                        continue
    return RearrangedText.of(inference.source.text, left_out.made_edits())


def _is_given_first(inference: Inference, node: ast.Assign, name: str) -> bool:
    """Whether what mentions a variable first, behind ``node``, is a branch that gives it a value in any case."""
    block = inference.source.block_of(node) or []
    first = next((s for s in block[block.index(node) + 1 :] if _mentions(s, name) or isinstance(s, _ENDS)), None)
    if not isinstance(first, ast.If) or _mentions(first.test, name) or not _gives(first, name):
        return False
    around = ancestors(node, inference.source.parents)
    scope = next((a for a in around if isinstance(a, FunctionNode | ast.ClassDef)), None)
    inside = (n for n in walk(scope or inference.source.tree) if isinstance(n, FunctionNode | ast.Lambda))
    earlier = (n for n in inside if n is not scope and n.lineno < first.lineno)
    return not isinstance(scope, ast.ClassDef) and not any(_mentions(n, name) for n in earlier)


def _gives(branch: ast.If, name: str) -> bool:
    """Whether each way through a branch assigns a variable before it is read, or doesn't get to what follows."""
    return bool(branch.orelse) and all(_is_given(way, name) for way in (branch.body, branch.orelse))


def _is_given(statements: Sequence[ast.stmt], name: str) -> bool:
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                return not _mentions(value, name)
            case ast.If() if _mentions(statement, name):
                return not _mentions(statement.test, name) and _gives(statement, name)
        if _mentions(statement, name):
            return False
        if isinstance(statement, _ENDS):
            return True
    return False


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(node))
