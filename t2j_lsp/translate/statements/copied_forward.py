"""A layer's own ``forward``, copied into a subclass that adds to it: it is the base's, which Flax has.

``BatchNormAct2d`` of timm holds what PyTorch's batch norm does, with its counters and running statistics, and then
calls an activation. In Flax the statistics are the base's concern: ``x = super().__call__(x)``.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache, partial

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, bound_names
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import FORWARDS

NEEDS = Gate(names=(FORWARDS.keys(),))


def plan_copied_forwards(context: Context) -> None:
    """Have copies of what a layer of PyTorch does written as a call of the layer."""
    for info in context.inference.classes.values():
        forward = info.methods.get("forward")
        if forward is not None and info.calls_forward:
            for text in _stated(info):
                _plan(context, forward.node, text)


def _stated(info: ClassInfo) -> tuple[str, ...]:
    """What the forward of the class's only base does, if that is a layer of which this is stated."""
    base = info.bases[0] if len(info.bases) == 1 else None
    return FORWARDS.get(base.name, ()) if isinstance(base, Qual) else ()


def _plan(context: Context, forward: FunctionNode, text: str) -> None:
    wanted, call = _statements(text)
    body = [node for node in forward.body if not _is_text(node)]
    for start in range(len(body) - len(wanted)):
        copy, last = body[start : start + len(wanted)], body[start + len(wanted)]
        if [*map(ast.unparse, copy)] == wanted and _is_call(context, last, call):
            if not _is_read_again(forward, [*copy, last]):
                for node in forward.body[forward.body.index(copy[0]) : forward.body.index(last)]:
                    context.plan.on_statement(node, partial(_delete, context, node))
                context.plan.on_statement(last, partial(_call_base, context, last))
                context.plan.done_by_base.update(inner for node in (*copy, last) for inner in symbols.walk(node))
            return


def _delete(context: Context, node: ast.stmt, _: StatementRewriter) -> None:
    """Remove a statement of the copy, with the comments above it."""
    above = 0
    while context.source.line_text(node.lineno - 1 - above).lstrip().startswith("#"):
        above += 1
    _leave_out_comments(context, context.source.starts[node.lineno - 1 - above], context.edits.line_end(node))
    context.edits.delete(node, above)


def _call_base(context: Context, node: ast.stmt, _: StatementRewriter) -> None:
    """Write the call of the base in place of the function that PyTorch's forward ends with."""
    assert isinstance(node, ast.Assign | ast.Return) and isinstance(node.value, ast.Call)
    _leave_out_comments(context, *context.source.span(node.value))
    context.edits.replace(node.value, f"super().__call__({ast.unparse(node.value.args[0])})")
    context.report.count_converted()


def _leave_out_comments(context: Context, start: int, end: int) -> None:
    """Comments of the copy are about what the base does."""
    context.edits.placed_comments.update(context.source.comments_between(start, end))


@lru_cache
def _statements(text: str) -> tuple[list[str], ast.Call]:
    """The statements that a stated forward begins with, and the call that it ends with."""
    *first, last = ast.parse(text).body
    assert isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
    return [*map(ast.unparse, first)], last.value


def _is_call(context: Context, node: ast.stmt, stated: ast.Call) -> bool:
    """Whether a statement is the stated call, of a plain name, whose value is assigned or returned."""
    match node:
        case (
            ast.Assign(targets=[ast.Name()], value=ast.Call(args=[ast.Name(), *rest], keywords=[]) as call)
            | ast.Return(value=ast.Call(args=[ast.Name(), *rest], keywords=[]) as call)
        ):
            fact = context.fact(call.func)
            same = [*map(ast.unparse, rest)] == [*map(ast.unparse, stated.args[1:])]
            return same and isinstance(fact, Qual) and fact.name == ast.unparse(stated.func)
    return False


def _is_read_again(function: FunctionNode, copy: Sequence[ast.stmt]) -> bool:
    """Whether something behind the copy reads a variable that the copy makes."""
    inside = {id(node) for statement in copy for node in symbols.walk(statement)}
    made = bound_names(copy[:-1])
    return any(isinstance(n, ast.Name) and n.id in made and id(n) not in inside for n in symbols.walk(function))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
