"""Arguments that are spread from a tuple: ``w.uniform_(*bounds(layer))``.

A rule has to know each argument of a call. Where a file that has gaps spreads a tuple of a known length, it is
read as if the items had the names of the parameters: ``from_, to = bounds(layer)``, and ``w.uniform_(from_, to)``.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Fact, Qual, Shape, Tensor, Tuple
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText

_IN_TURN = ast.Call | ast.keyword | ast.Attribute | ast.Subscript | ast.BinOp | ast.UnaryOp | ast.Tuple | ast.List
"""What computes all its parts, from left to right."""


def with_starred_tuples_named(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which the items have names; None if there are none, or everything converts."""
    source = inference.source
    lines = {line for gap in gaps for line in range(gap.span.line, gap.span.end_line + 1)}
    edits: Edits = []
    for node in source.nodes:
        if not isinstance(node, ast.Call) or node.lineno not in lines:
            continue
        match [one for one in node.args if isinstance(one, ast.Starred)]:
            case [ast.Starred(value=given) as star]:
                pass
            case _:
                continue
        statement = next(one for one in ancestors(node, source.parents) if isinstance(one, ast.stmt))
        names = _names(inference, node, node.args.index(star), inference.fact(given))
        if not names or not _is_computed_first(inference, statement, node, given):
            continue
        (start, end), (first, _) = source.span(star), source.span(statement)
        listed = ", ".join(names)
        line = f"{listed} = {source.segment(given)}{source.newline}{source.indent(statement.lineno)}"
        edits += [(first, first, [Fragment(line, start, end)]), (start, end, [Fragment(listed, start, end)])]
    return RearrangedText.of(source.text, edits)


def _names(inference: Inference, call: ast.Call, at: int, held: Fact) -> list[str]:
    """Names for the items of a tuple that is spread from an argument on; none where the parameters aren't known."""
    fact, receiver = inference.fact(call.func), 0
    name = fact.name if isinstance(fact, Qual) else ""
    if isinstance(call.func, ast.Attribute) and isinstance(inference.fact(call.func.value), Tensor):
        name, receiver = f"torch.Tensor.{call.func.attr}", 1
    rule = REGISTRY.get(name)
    count = len(held.items) if isinstance(held, Tuple) else held.rank or 0 if isinstance(held, Shape) else 0
    if rule is None or count < 2:
        return []
    for signature in rule.signatures:
        plain = [one.name for one in signature.parameters or () if one.kind == "normal"][receiver:]
        names = plain[at : at + count]
        if len(names) == count and len(plain) >= len(call.args) - 1 + len(names):
            return _free(inference, names)
    return []


def _free(inference: Inference, names: Sequence[str]) -> list[str]:
    """The names, with an underscore where the file has a use for one."""
    taken = {*dir(builtins)} | {n.id for n in inference.source.nodes if isinstance(n, ast.Name)}
    taken |= {n.arg for n in inference.source.nodes if isinstance(n, ast.arg)}
    return [f"{name}_" if name in taken else name for name in names]


def _is_computed_first(inference: Inference, statement: ast.stmt, call: ast.Call, given: ast.expr) -> bool:
    """Whether a statement begins a line of a function or of the file, and calls nothing before the tuple is made."""
    source = inference.source
    plain = isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return)
    if not plain or not source.starts_line(statement) or isinstance(source.parents.get(statement), ast.ClassDef):
        return False
    around: list[ast.AST] = [call]
    for one in ancestors(call, source.parents):
        if one is statement:
            break
        around.append(one)
    if not all(isinstance(one, _IN_TURN) for one in around):
        return False
    inside = {*around, *symbols.walk(given)}
    return not any(
        isinstance(one, ast.Call | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) and one not in inside
        for one in symbols.walk(statement)
    )
