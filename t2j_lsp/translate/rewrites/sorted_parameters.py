"""Loops that sort a model's parameters into lists, for the groups of an optimizer: a comprehension for each list.

    for p in net.parameters():                        no_decay = [p for p in net.parameters() if p.ndim < 2]
        (no_decay if p.ndim < 2 else decay).append(p)   decay = [p for p in net.parameters() if p.ndim >= 2]

Which parameters an optimizer updates is read from such lists. Where a file that has gaps has such a loop, it is read as
if it said so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import scopes_around
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source

from .negation import negated


@dataclass
class _Lists:
    """Lists that are empty in front of a loop, and the statements that make them so."""

    made: list[ast.stmt]
    names: dict[str, str]
    """The variable that has a list behind the loop, by the text that the list has: itself, ``params['decay']``."""
    reads: list[ast.expr] = field(default_factory=list)
    """Where they are read behind the loop."""


def with_sorted_parameters_as_lists(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such loops are comprehensions; None if there are none, or everything converts."""
    source = inference.source
    if "append" not in source.words or not any(gap.code == "training-loop" for gap in gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        if isinstance(node, ast.For) and _walks_parameters(node):
            edits += _as_lists(source, node) or []
    return RearrangedText.of(source.text, edits)


def _walks_parameters(node: ast.For) -> bool:
    """``for name, p in net.named_parameters():`` and ``for p in net.parameters():``."""
    match node:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(), ast.Name()]),
            iter=ast.Call(func=ast.Attribute(attr="named_parameters"), args=[], keywords=[]),
            orelse=[],
        ):
            return True
        case ast.For(
            target=ast.Name(), iter=ast.Call(func=ast.Attribute(attr="parameters"), args=[], keywords=[]), orelse=[]
        ):
            return True
    return False


def _as_lists(source: Source, loop: ast.For) -> Edits | None:
    """The edits that make comprehensions of a loop; None where it does something else."""
    item = (loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target).id  # type: ignore[attr-defined]
    body, skipped = loop.body, list[str]()
    while body and (test := _skips(body[0])) is not None:
        skipped.append(negated(test))
        body = body[1:]
    sorted_into = _sorted(body, item)
    if not sorted_into or not source.starts_line(loop):
        return None
    lists = _lists(source, loop, {ast.unparse(held) for held, _ in sorted_into})
    start, end = source.span(loop)
    if lists is None:
        return None
    head = f"{item} for {source.segment(loop.target)} in {source.segment(loop.iter)}"
    lines = list(source.comments_between(start, end))
    for held, conditions in sorted_into:
        said = " and ".join(_operand(one) for one in (*skipped, *conditions))
        lines.append(f"{lists.names[ast.unparse(held)]} = [{head}{f' if {_bare(said)}' if said else ''}]")
    break_ = f"{source.newline}{source.indent(loop.lineno)}"
    edits: Edits = [(start, end, [Fragment(break_.join(lines), start, end)])]
    for made in lists.made:
        begin, stop = source.starts[made.lineno - 1], source.starts[made.end_lineno or made.lineno]
        edits.append((begin, stop, []))
    for read in lists.reads:
        begin, stop = source.span(read)
        if (name := lists.names[ast.unparse(read)]) != source.segment(read):
            edits.append((begin, stop, [Fragment(name, begin, stop)]))
    return edits


def _skips(node: ast.stmt) -> ast.expr | None:
    """The test of ``if not p.requires_grad: continue``."""
    match node:
        case ast.If(test=test, body=[ast.Continue()], orelse=[]):
            return test
    return None


def _sorted(body: list[ast.stmt], item: str) -> list[tuple[ast.expr, list[str]]]:
    """The lists that an item is put into, with the conditions for it; empty where something else happens to it."""
    match body:
        case [ast.If(test=test, body=inner, orelse=orelse)]:
            first, others = _sorted(inner, item), _sorted(orelse, item) if orelse else []
            if not first or orelse and not others:
                return []
            lists = [(held, [ast.unparse(test), *more]) for held, more in first]
            lists += [(held, [negated(test), *more]) for held, more in others]
        case [ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr="append"), args=[ast.Name(id=name)]))] if (
            name == item
        ):
            lists = list(_chosen(held))
        case _:
            return []
    texts = [ast.unparse(held) for held, _ in lists]
    return lists if len(set(texts)) == len(texts) else []


def _chosen(held: ast.expr) -> Iterator[tuple[ast.expr, list[str]]]:
    """What ``(a if test else b)`` and ``lists["a" if test else "b"]`` stand for, with the conditions for each."""
    match held:
        case ast.IfExp(test=test, body=one, orelse=other):
            yield one, [ast.unparse(test)]
            yield other, [negated(test)]
        case ast.Subscript(value=lists, slice=ast.IfExp(test=test, body=one, orelse=other)):
            yield ast.Subscript(lists, one, ast.Load()), [ast.unparse(test)]
            yield ast.Subscript(lists, other, ast.Load()), [negated(test)]
        case _:
            yield held, []


def _lists(source: Source, loop: ast.For, texts: set[str]) -> _Lists | None:
    """The lists that are made empty in front of a loop, which only the loop fills; None where they aren't."""
    scope = next(iter(scopes_around(loop, source.parents)), source.tree)
    block = source.block_of(loop) or []
    made, names = list[ast.stmt](), dict[str, str]()
    for statement in block[: block.index(loop)]:
        if (empty := _empty_lists(statement)) and texts & set(empty):
            if set(empty) - texts or not source.starts_line(statement):
                return None
            made.append(statement)
            names |= empty
    if set(names) != texts or len(set(names.values())) < len(names):
        return None
    inside = {n for statement in (*made, loop) for n in symbols.walk(statement)}
    roots = {text.partition("[")[0] for text in texts}
    reads: list[ast.expr] = []
    for node in symbols.walk(scope):
        if isinstance(node, ast.Name) and node.id in roots and node not in inside:
            place = source.parents[node] if node.id not in names else node
            if not isinstance(place, ast.expr) or ast.unparse(place) not in names or place.lineno < loop.lineno:
                return None
            if not isinstance(getattr(place, "ctx", None), ast.Load) or isinstance(
                source.parents[place], ast.Attribute
            ):
                return None  # something is done with the list
            reads.append(place)
    new = {name for text, name in names.items() if name != text}
    return _Lists(made, names, reads) if new.isdisjoint(source.symbols.names) else None


def _empty_lists(node: ast.stmt) -> dict[str, str]:
    """``a, b = [], []``, ``a = []`` and ``lists = {"a": [], "b": []}``: each list's text, and a variable for it."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
            return {name: name}
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            empty = all(isinstance(v, ast.List) and not v.elts for v in values) and len(values) == len(targets)
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            return dict(zip(names, names, strict=True)) if empty and len(names) == len(targets) else {}
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys, values=values)):
            empty = all(isinstance(v, ast.List) and not v.elts for v in values)
            words = [k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
            if empty and len(words) == len(keys) and all(word.isidentifier() for word in words):
                return {f"{name}[{word!r}]": word for word in words}
    return {}


def _operand(condition: str) -> str:
    """A condition as one of several that have to hold."""
    return f"({condition})" if isinstance(ast.parse(condition, mode="eval").body, ast.BoolOp | ast.IfExp) else condition


def _bare(condition: str) -> str:
    """A condition without brackets around the whole of it."""
    return ast.unparse(ast.parse(condition, mode="eval"))
