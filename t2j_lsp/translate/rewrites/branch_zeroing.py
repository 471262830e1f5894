"""Gradients that are zeroed in front of the branch that updates: ``opt.zero_grad()``, then ``if i % n == 0:``.

So under the same condition: ``if train: opt.zero_grad()``, then the forward pass and ``if train: loss.backward()``.
Whoever else leaves gradients in these parameters, nobody reads them: only the branch makes a step. Where a file that
has gaps does so, it is read as if the branch zeroed them first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp.contract import Finding
from t2j_lsp.symbols import walk
from t2j_lsp.translate.inference.call_sites import reached_functions
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText

ZEROS, STEPS = "zero_grad", "step"


def with_gradients_zeroed_in_branches(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such branches zero the gradients; None if there are none, or everything converts."""
    source = inference.source
    if ZEROS not in source.words or not any(gap.code == "training-loop" for gap in gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        optimizer = asked_of_optimizer(inference, node, ZEROS)
        if optimizer is None or not isinstance(node, ast.Expr) or not source.starts_line(node):
            continue
        before = source.parents.get(node)
        asked = before if isinstance(before, ast.If) and node in before.body else None
        branch = _next(source.block_of(node) or [], node)
        if branch is None or not _updates(inference, branch, optimizer):
            branch = _asked_again(inference, asked) if asked is not None else None
        if branch is None or not source.starts_line(branch.body[0]):
            continue
        (start, end), first = source.span(node), source.span(branch.body[0])[0]
        empty = asked is not None and asked.body == [node] and not asked.orelse and source.starts_line(asked)
        whole = asked if empty and asked is not None else node
        head, behind = source.starts[whole.lineno - 1], source.starts[whole.end_lineno or 0]
        alone = not source.text[end:behind].strip()
        text = f"{source.segment(node)}\n{source.indent(branch.body[0].lineno)}"
        edits += [(head, behind, []) if alone else (start, end, [Fragment("pass", start, end)])]
        edits += [(first, first, [Fragment(text, start, end)])]
    return RearrangedText.of(source.text, edits)


def asked_of_optimizer(inference: Inference, node: ast.AST, method: str) -> str | None:
    """The optimizer of which a statement calls a method, without arguments that matter."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=name))) if name == method:
            fact = inference.fact(owner)
            return ast.unparse(owner) if isinstance(fact, Object) and fact.kind == "optimizer" else None
    return None


def _next(block: list[ast.stmt], node: ast.stmt) -> ast.If | None:
    """The branch without an alternative right behind a statement."""
    following = block[block.index(node) + 1 :] if node in block else []
    branch = following[0] if following else None
    return branch if isinstance(branch, ast.If) and not branch.orelse else None


def _asked_again(inference: Inference, asked: ast.If) -> ast.If | None:
    """The branch behind another one with the same condition, which nothing between them changes."""
    block, test = inference.source.block_of(asked) or [], ast.unparse(asked.test)
    read = {n.id for n in walk(asked.test) if isinstance(n, ast.Name)}
    if asked not in block or any(isinstance(n, ast.Call) for n in walk(asked.test)):
        return None
    for statement in _in_order(block[block.index(asked) + 1 :]):
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == test:
            used = [n.attr for n in walk(statement) if isinstance(n, ast.Attribute)]
            return statement if "backward" in used and ZEROS not in used and not statement.orelse else None
        run = [statement, *(info.node for info in reached_functions(inference, [statement]))]
        for node in (n for code in run for n in walk(code)):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) if name in read:
                    return None
                case ast.Attribute(attr="train" | "eval" | "backward" | "grad" | "step" | "zero_grad"):
                    return None
    return None


def _in_order(block: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Statements, and those under a ``with`` in its place, behind what it enters."""
    for statement in block:
        if isinstance(statement, ast.With):
            yield from statement.items
            yield from _in_order(statement.body)
        else:
            yield statement


def _updates(inference: Inference, branch: ast.If, optimizer: str) -> bool:
    """Whether a branch makes the only steps of an optimizer, and leaves the zeroing to who comes before it."""
    inside, zeros, steps = set(walk(branch)), list[ast.AST](), list[ast.AST]()
    last = optimizer.rpartition(".")[2]
    for node in inference.source.nodes:
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name != last or ast.unparse(node) != optimizer or isinstance(node.ctx, ast.Store):
            continue
        match inference.source.parents.get(node):
            case ast.Attribute(attr=attr) as method:
                zeros += [method] if attr == ZEROS else []
                steps += [method] if attr == STEPS else []
            case ast.Call() as call if isinstance(made := inference.fact(call), Object) and made.kind == "scheduler":
                pass
            case _:
                return False
    direct = any(asked_of_optimizer(inference, statement, STEPS) == optimizer for statement in branch.body)
    return direct and len(zeros) == 1 and zeros[0] not in inside and all(step in inside for step in steps)
