"""Loops over the parameters of several modules at once, as a loop over the modules around one over each.

``for p in [*actor.parameters(), *critic.parameters()]``, ``list(a.parameters()) + list(b.parameters())`` and
``itertools.chain(...)``: walks of Flax are of one module each. So are those of ``self.q_params = chain(...)``,
where a loop only switches gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import nearest
from t2j_lsp.translate.source.assignments import assigned
from t2j_lsp.translate.source.rearranged import Edits, Fragment
from t2j_lsp.translate.source.text import Source

_WALKS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers", "modules", "named_modules"})
_LISTS = frozenset({"list", "tuple"})
_CHAINS = frozenset({"chain", "itertools.chain"})
_NAME = "module"


def of_each_module(source: Source, loop: ast.For) -> Edits:
    """The edits of a loop that goes over such a list; none where it doesn't."""
    walks = [*_walks(_given(source, loop) or loop.iter)]
    if len(walks) < 2 or not all(_is_plain(walk) for walk in walks) or not _may_be_moved(source, loop):
        return []
    methods = {walk.func.attr for walk in walks if isinstance(walk, ast.Call) and isinstance(walk.func, ast.Attribute)}
    if len(methods) != 1:
        return []
    owners = [walk.func.value for walk in walks if isinstance(walk, ast.Call) and isinstance(walk.func, ast.Attribute)]
    if (on := _switched(loop)) is not None:
        lines = [f"{source.segment(owner)}.requires_grad_({on})" for owner in owners]
        text = f"{source.newline}{source.indent(loop.lineno)}".join(lines)
        return [(*source.span(loop), [Fragment(text, *source.span(loop))])]
    name = _free(source)
    start, end = source.span(loop)[0], source.span(loop.iter)[1]
    indent = source.indent(loop.lineno)
    parts = [Fragment(f"for {name} in ({', '.join(map(source.segment, owners))}):", *source.span(loop.iter))]
    parts.append(Fragment(f"{source.newline}{indent}    for ", start, start))
    parts.append(Fragment(source.segment(loop.target), *source.span(loop.target)))
    parts.append(Fragment(f" in {name}.{methods.pop()}()", *source.span(loop.iter)))
    edits: Edits = [(start, end, parts)]
    for line in range(loop.body[0].lineno, (loop.end_lineno or 0) + 1):
        if source.line_text(line).strip():
            at = source.starts[line - 1]
            edits.append((at, at, [Fragment("    ", at, at)]))
    return edits


def _given(source: Source, loop: ast.For) -> ast.expr | None:
    """What a variable or attribute is given once, over which a loop goes to switch the flag of its items.

    An iterator is at its end where an optimizer took it, and the loop does nothing: so it is if it switches on again.
    """
    if not isinstance(loop.iter, ast.Name | ast.Attribute) or (on := _switched(loop)) is None:
        return None
    name = ast.unparse(loop.iter)
    around = nearest(ast.ClassDef if "." in name else ast.FunctionDef, loop, source.parents) or source.tree
    inside = [*symbols.walk(around)]
    given = [value for node in inside for target, value in assigned(node) if ast.unparse(target) == name]
    loops = (node for node in inside if isinstance(node, ast.For) and ast.unparse(node.iter) == name)
    switched = {_switched(node) for node in loops}
    is_list = isinstance(given[0], ast.List | ast.BinOp) if given else False
    return given[0] if len(given) == 1 and (is_list or {on, not on} <= switched) else None


def _switched(loop: ast.For) -> bool | None:
    """Whether a loop switches its items' gradients on, or off; None if it does anything else."""
    match loop:
        case ast.For(
            target=ast.Name(id=name),
            body=[
                ast.Assign(
                    targets=[ast.Attribute(attr="requires_grad", value=ast.Name(id=owner))],
                    value=ast.Constant(value=bool() as on),
                )
            ],
        ) if name == owner:
            return on
    return None


def _walks(node: ast.expr) -> Iterator[ast.expr | None]:
    """The walks that a list is made of, in order; None for a part that is none."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from (part.value if isinstance(part, ast.Starred) else None for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _walks(left)
            yield from _walks(right)
        case ast.Call(func=ast.Name(id=name), args=[walk], keywords=[]) if name in _LISTS:
            yield walk
        case ast.Call(func=func, args=walks, keywords=[]) if ast.unparse(func) in _CHAINS:
            yield from walks
        case _:
            yield None


def _is_plain(walk: ast.expr | None) -> bool:
    """Whether it is a walk of a module that is named: ``self.actor.parameters()``."""
    match walk:
        case ast.Call(func=ast.Attribute(value=owner, attr=method), args=[], keywords=[]) if method in _WALKS:
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            return isinstance(owner, ast.Name)
    return False


def _may_be_moved(source: Source, loop: ast.For) -> bool:
    """Whether the body can stand in a loop in the loop: on lines of its own, and never left early."""
    if loop.orelse or loop.type_comment or not source.starts_line(loop) or loop.body[0].lineno == loop.lineno:
        return False
    if loop.body[0].lineno <= (loop.iter.end_lineno or 0) or not source.starts_line(loop.body[0]):
        return False
    nodes = [node for statement in loop.body for node in symbols.walk(statement)]
    return not any(_keeps_place(node) for node in nodes)


def _keeps_place(node: ast.AST) -> bool:
    """Whether a node can't be moved by a step: a text of several lines, an early leave, another such loop."""
    match node:
        case ast.Constant() | ast.JoinedStr():
            return node.lineno != node.end_lineno
        case ast.For(iter=walked):
            return len([*_walks(walked)]) > 1
    return isinstance(node, ast.Break)


def _free(source: Source) -> str:
    """A name for the modules that the file has nowhere."""
    taken = {n.arg if isinstance(n, ast.arg) else n.id for n in source.nodes if isinstance(n, ast.Name | ast.arg)}
    return next(name for name in (_NAME, *(f"{_NAME}_{n}" for n in range(2, 1000))) if name not in taken)
