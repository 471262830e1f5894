"""Loops and assignments in the form that planners read.

Where a file has gaps, what they have to do with is read as if it were written in fewer ways: a loop counts nothing
that nobody reads (``for _, p in enumerate(model.parameters())``), its target says what an item holds (``for pair in
named: name, p = pair``), one over the parameters of several modules is a loop over the modules around another, each
name gets its value in a statement of its own (``a, b = f(x), g(y)``), and a condition that chooses what is done is a
branch (``optimizer.zero_grad() if train else None``). Walks over what a module holds are those
of `plain_walks`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source

from .joined_walks import of_each_module
from .plain_walks import plain_walk

_BRACKETED = ast.Call | ast.List | ast.Dict | ast.Set | ast.Subscript
"""What may go on in the next line, since it ends with a bracket."""


def with_plain_forms(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which they are written so; None where they are."""
    source = inference.source
    ranges = [(gap.span.line, gap.span.end_line) for gap in gaps]
    classes = [one for one in source.nodes if isinstance(one, ast.ClassDef) and _touches(one, ranges)]
    around = [*ranges, *((one.lineno, one.end_lineno or 0) for one in classes)]  # what a method keeps, others read
    read = {n.id for n in source.nodes if isinstance(n, ast.Name) and _touches(n, ranges)}
    edits: Edits = []
    for node in source.nodes:
        match node:
            case ast.For() if _touches(node, around):
                of_loop = _uncounted(source, node) or _unpacked(source, node) or of_each_module(source, node)
                edits += of_loop or plain_walk(inference, node, _reads_first(source, node))
            case ast.Expr(value=ast.IfExp() as choice) if _touches(node, ranges):
                edits += _as_branch(source, node, choice)
            case ast.withitem(context_expr=ast.IfExp() as choice) if _touches(choice, ranges):
                edits += _switched(source, choice)
            case ast.Assign(targets=[ast.Tuple() as target], value=ast.Tuple() as value):
                names = {n.id for n in target.elts if isinstance(n, ast.Name)}
                if _touches(node, ranges) or names & read:
                    edits += _apart(source, node, target.elts, value.elts)
    return RearrangedText.of(source.text, edits)


def _touches(node: ast.expr | ast.stmt, ranges: Iterable[tuple[int, int]]) -> bool:
    """Whether a node shares a line with a range of them."""
    return any(node.lineno <= end and begin <= (node.end_lineno or 0) for begin, end in ranges)


def _uncounted(source: Source, loop: ast.For) -> Edits:
    """The edits of a loop that counts what it goes over, and reads no count."""
    match loop:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name() as count, item]),
            iter=ast.Call(func=ast.Name("enumerate"), args=[walked, *start], keywords=keywords),
        ) if all(isinstance(one, ast.Constant) for one in (*start, *(k.value for k in keywords))):
            pass
        case _:
            return []
    if isinstance(walked, ast.Starred) or [*_reads_of(source, count, loop)] or "enumerate" in source.symbols.module:
        return []
    return [_put(source, loop.target, item), _put(source, loop.iter, walked)]


def _as_branch(source: Source, statement: ast.Expr, choice: ast.IfExp) -> Edits:
    """The edit of a statement that does one thing or another."""
    start, end = source.span(statement)
    indent, parts = source.indent(statement.lineno), list[Fragment]()
    for words, node in (
        ("if ", choice.test),
        (f":\n{indent}    ", choice.body),
        (f"\n{indent}else:\n{indent}    ", choice.orelse),
    ):
        if node is choice.orelse and isinstance(node, ast.Constant):
            continue
        parts += [
            Fragment(words.replace("\n", source.newline), start, start),
            Fragment(source.segment(node), *source.span(node)),
        ]
    alone = source.starts_line(statement) and not source.text[end : source.line_end(statement.end_lineno or 0)].strip()
    plain = not [*source.comments_between(start, end)] and "\n" not in source.text[start:end]
    return [(start, end, parts)] if alone and plain else []


def _switched(source: Source, choice: ast.IfExp) -> Edits:
    """The edit of ``with torch.enable_grad() if train else torch.no_grad():``, a switch of gradients."""
    match choice:
        case ast.IfExp(
            body=ast.Call(func=ast.Attribute(value=library, attr="enable_grad"), args=[]),
            orelse=ast.Call(func=ast.Attribute(value=ast.Name(), attr="no_grad" | "inference_mode"), args=[]),
        ):
            start, end = source.span(choice)
            switch = f"{source.segment(library)}.set_grad_enabled("
            asked = Fragment(source.segment(choice.test), *source.span(choice.test))
            return [(start, end, [Fragment(switch, start, start), asked, Fragment(")", end, end)])]
    return []


def _unpacked(source: Source, loop: ast.For) -> Edits:
    """The edits of a loop whose body begins with the unpacking of an item that it reads nowhere else."""
    match loop:
        case ast.For(
            target=ast.Name() as item,
            body=[ast.Assign(targets=[ast.Tuple() as target], value=ast.Name() as value) as first, second, *_],
        ) if item.id == value.id and all(isinstance(n, ast.Name | ast.Tuple) for n in target.elts):
            pass
        case _:
            return []
    start, end = source.span(first)[0], source.span(second)[0]
    if not source.starts_line(first) or [*source.comments_between(start, end)]:
        return []
    if [read for read in _reads_of(source, item, loop) if read is not value]:
        return []
    return [_put(source, item, target), (start, end, [])]


def _reads_first(source: Source, loop: ast.For) -> bool:
    """Whether the first variable of a loop over pairs is read."""
    match loop.target:
        case ast.Tuple(elts=[ast.Name() as first, *_]):
            return any(True for _ in _reads_of(source, first, loop))
    return True


def _put(source: Source, node: ast.expr, part: ast.expr) -> tuple[int, int, list[Fragment]]:
    """The edit that writes a part of a node in its place."""
    return (*source.span(node), [Fragment(source.segment(part), *source.span(part))])


def _reads_of(source: Source, name: ast.Name, loop: ast.For) -> Iterator[ast.Name]:
    """Where the variable that a loop binds is read, but in other loops that bind it themselves."""
    home = source.home(name)
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Load | ast.Del):
            around = [*ancestors(node, source.parents)]
            if source.home(node) is home and not any(one is not loop and _binds(one, node, around) for one in around):
                yield node


def _binds(node: ast.AST, read: ast.Name, around: Sequence[ast.AST]) -> bool:
    """Whether ``node`` is a loop around a reading of a name, in its body, that binds the name."""
    match node:
        case ast.For() | ast.AsyncFor():
            return any(one in node.body for one in around) and read.id in symbols.bound_names([node.target])
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return any(read.id in symbols.bound_names([one.target]) for one in node.generators)
    return False


def _apart(source: Source, assignment: ast.Assign, targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> Edits:
    """The edits of several assignments in one, where none has to do with those in front of it."""
    start, end = source.span(assignment)
    block = source.block_of(assignment) or []
    behind = source.text[end : source.line_end(assignment.end_lineno or 0)].strip()
    alone = source.starts_line(assignment) and (not behind or behind.startswith("#"))
    if len(targets) != len(values) or not alone or not block or [*source.comments_between(start, end)]:
        return []
    if any("\n" in source.segment(value) and not isinstance(value, _BRACKETED) for value in values):
        return []
    if any(not _is_independent(source, target, values[at + 1 :]) for at, target in enumerate(targets)):
        return []
    if any(isinstance(value, ast.Starred) for value in values):
        return []
    parts = list[Fragment]()
    for at, (target, value) in enumerate(zip(targets, values, strict=True)):
        line = f"{source.newline}{source.indent(assignment.lineno)}" if at else ""
        parts.append(Fragment(f"{line}{source.segment(target)} = ", *source.span(target)))
        parts.append(Fragment(source.segment(value), *source.span(value)))
    return [(start, end, parts)]


def _is_independent(source: Source, target: ast.expr, later: Sequence[ast.expr]) -> bool:
    """Whether values mean the same once something that stands in front of them is assigned."""
    inside = [node for value in later for node in symbols.walk(value)]
    match target:
        case ast.Name():
            if any(isinstance(node, ast.Name) and node.id == target.id for node in inside):
                return False
            return not any(isinstance(node, ast.Call) for node in inside) or not _is_read_elsewhere(source, target)
        case ast.Attribute(value=ast.Name("self"), attr=attribute):
            return not any(_may_read(node, attribute) for node in inside)
    return all(isinstance(value, ast.Constant) for value in later)


def _may_read(node: ast.AST, attribute: str) -> bool:
    """Whether code reads an attribute of ``self``, or hands ``self`` to what may."""
    match node:
        case ast.Attribute(value=ast.Name("self"), attr=other):
            return other == attribute
        case ast.Call(func=ast.Attribute(value=ast.Name("self"))):
            return True
        case ast.Call(args=args, keywords=keywords):
            return any(isinstance(one, ast.Name) and one.id == "self" for one in (*args, *(k.value for k in keywords)))
    return False


def _is_read_elsewhere(source: Source, target: ast.Name) -> bool:
    """Whether a function inside of the variable's scope reads it, and may so be what a value calls."""
    scope = symbols.scopes_around(target, source.parents)
    home = source.home(target)
    return any(
        isinstance(node, ast.Name) and node.id == target.id and source.home(node) is home
        and symbols.scopes_around(node, source.parents) != scope
        for node in source.nodes
    )  # fmt: skip
