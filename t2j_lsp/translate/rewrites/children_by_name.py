"""Loops over the children of a module that pick some by their place or name: the parts that are picked, by name.

    for i, child in enumerate(net.children()):          for p in net.features.parameters():
        if i < 1:                                           p.requires_grad = False
            for p in child.parameters():
                p.requires_grad = False

Flax's modules have no children in an order, and say in the class which they are. Where a file that has gaps has such a
loop, it is read as if it named the parts.
"""

from __future__ import annotations

import ast
import operator
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import scopes_around
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source

from .listed_children import children_in_file

_MOST = 8
"""Of more parts nobody writes out each."""
_COMPARES: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda item, held: item in held,
    ast.NotIn: lambda item, held: item not in held,
}


@dataclass
class _ChildLoop:
    """Such a loop."""

    node: ast.For
    module: ast.expr
    child: str
    key: str = ""
    """The variable for the place or the name of a child; empty where it has none, or counts by itself."""
    named: bool = False
    counter: ast.stmt | None = None
    """``count += 1``, the first statement of the loop."""
    start: int = 0


def with_children_by_name(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which the parts have names; None where there is no such loop, or it isn't sure which they are."""
    source = inference.source
    if source.words.isdisjoint({"children", "named_children"}) or not list(gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        loop = _loop(node) if isinstance(node, ast.For) else None
        if loop is not None and _counted(source, loop) and (text := _by_name(inference, loop)) is not None:
            start, end = source.span(loop.node)
            edits.append((start, end, [Fragment(text, start, end)]))
    return RearrangedText.of(source.text, edits)


def _loop(node: ast.For) -> _ChildLoop | None:
    match node:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=child)]),
            iter=ast.Call(
                func=ast.Name(id="enumerate"),
                args=[ast.Call(func=ast.Attribute(value=module, attr="children"), args=[], keywords=[])],
                keywords=[],
            ),
            orelse=[],
        ):
            return _ChildLoop(node, module, child, key)
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=child)]),
            iter=ast.Call(func=ast.Attribute(value=module, attr="named_children"), args=[], keywords=[]),
            orelse=[],
        ):
            return _ChildLoop(node, module, child, key, named=True)
        case ast.For(
            target=ast.Name(id=child),
            iter=ast.Call(func=ast.Attribute(value=module, attr="children"), args=[], keywords=[]),
            body=[ast.AugAssign(target=ast.Name(id=key), op=ast.Add(), value=ast.Constant(value=1)) as counter, *_],
            orelse=[],
        ):
            return _ChildLoop(node, module, child, key, counter=counter)
    return None


def _counted(source: Source, loop: _ChildLoop) -> bool:
    """Whether nothing but the loop uses its variables, and where a count begins."""
    scope = next(iter(scopes_around(loop.node, source.parents)), source.tree)
    inside = set(symbols.walk(loop.node))
    names = (loop.key, loop.child)
    outside = [n for n in symbols.walk(scope) if isinstance(n, ast.Name) and n.id in names and n not in inside]
    if loop.counter is None:
        return not any(isinstance(n.ctx, ast.Load) for n in outside)
    stores = [source.parents[n] for n in outside if n.id == loop.key]
    match stores:
        case [ast.Assign(targets=[ast.Name()], value=ast.Constant(value=int(start))) as made]:
            block = source.block_of(loop.node) or []
            loop.start = start + 1
            return made in block and block.index(made) < block.index(loop.node)
    return False


def _by_name(inference: Inference, loop: _ChildLoop) -> str | None:
    """The text for a loop; None where it isn't sure which children it picks."""
    source, children = inference.source, children_in_file(inference, loop.module)
    if children is None or not source.starts_line(loop.node) or _gets_parts(source, loop.module):
        return None
    body = [s for s in loop.node.body if s is not loop.counter]
    picked: dict[str, Sequence[ast.stmt]] = {}
    for place, name in enumerate(children, loop.start):
        taken = _taken(body, loop.key, name if loop.named else place)
        if taken is None:
            return None
        if taken:
            picked[name] = taken
    taken = next(iter(picked.values()), [])
    if not picked or len(picked) > _MOST or any(one != taken for one in picked.values()):
        return None
    if any(isinstance(n, ast.Name) and n.id == loop.key for s in taken for n in symbols.walk(s)):
        return None
    text = _text(source, taken)
    return _looped(source, loop, [f"{source.segment(loop.module)}.{name}" for name in picked], text)


def _looped(source: Source, loop: _ChildLoop, parts: list[str], text: str) -> str | None:
    """The statements for one part, or a loop over several of them."""
    start, end = source.span(loop.node)
    if "#" in source.text[start:end] or '"""' in text or "'''" in text or source.starts[loop.node.lineno - 1] > start:
        return None
    indent = source.indent(loop.node.lineno)
    if len(parts) == 1:
        lines = re.sub(rf"(?<![\w.]){re.escape(loop.child)}\b", parts[0], text)
    else:
        lines = f"for {loop.child} in ({', '.join(parts)}):{source.newline}{textwrap.indent(text, '    ')}"
    return textwrap.indent(lines, indent).removeprefix(indent).rstrip()


def _text(source: Source, body: Sequence[ast.stmt]) -> str:
    """The lines of some statements that follow each other, without what they are indented by."""
    first, last = body[0].lineno, body[-1].end_lineno or body[-1].lineno
    stop = source.line_end(last)
    return textwrap.dedent(source.text[source.starts[first - 1] : stop])


def _taken(body: Sequence[ast.stmt], key: str, value: int | str) -> Sequence[ast.stmt] | None:
    """What a loop does with the child of a place or name: all, what stands under a condition, or nothing."""
    match body:
        case [ast.If(test=test, body=inner, orelse=orelse)]:
            holds = _holds(test, key, value)
            if holds is None or inner[0].lineno == test.lineno:
                return None
            chosen = inner if holds else orelse
            return [] if all(isinstance(s, ast.Pass | ast.Continue) for s in chosen) else chosen
    return body if not any(isinstance(n, ast.Break | ast.Continue | ast.Return) for n in _all(body)) else None


def _all(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from symbols.walk(statement)


def _holds(test: ast.expr, key: str, value: int | str) -> bool | None:
    """Whether a condition on a place or name holds; None where it asks for something else."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            holds = _holds(operand, key, value)
            return None if holds is None else not holds
        case ast.BoolOp(op=op, values=values):
            all_hold = [_holds(one, key, value) for one in values]
            known = [one for one in all_hold if one is not None]
            return None if len(known) < len(all_hold) else (all if isinstance(op, ast.And) else any)(known)
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[other]) if (
            name == key and type(op) in _COMPARES
        ):
            try:
                return _COMPARES[type(op)](value, ast.literal_eval(other))
            except (TypeError, ValueError):
                return None
    return None


def _gets_parts(source: Source, module: ast.expr) -> bool:
    """Whether the file assigns something to an attribute of the module, which may be one more part of it."""
    text = ast.unparse(module)
    return any(
        isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load) and ast.unparse(n.value) == text
        for n in source.nodes
    )
