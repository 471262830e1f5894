"""Variables that stand for a layer's parameter, and are written in place: ``w = self.fc.weight``, ``w.mul_(2)``.

In JAX the variable would hold an array of its own. Where a file that has gaps writes so, it is read as if it named the
parameter each time: ``self.fc.weight.mul_(2)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import scopes_around
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.tensors import behind_data
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source

_PARAMETERS = frozenset({"weight", "bias"})


def with_parameters_under_their_names(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which they are; None where there are no such variables."""
    source = inference.source
    if source.words.isdisjoint(_PARAMETERS) or not any(gap.name == "in-place" for gap in gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_parameter(inference, value):
                uses = _uses(source, node, name)
                if uses and any(_is_written(source, use) for use in uses):
                    edits += [_without(source, node), *_named(source, uses, source.segment(value))]
    return RearrangedText.of(source.text, edits)


def _without(source: Source, made: ast.Assign) -> tuple[int, int, list[Fragment]]:
    """The edit that takes an assignment away, with its line if that has nothing else."""
    start, end = source.span(made)
    stop = source.line_end(made.end_lineno or made.lineno)
    if source.starts_line(made) and not source.text[end:stop].strip():
        return source.starts[made.lineno - 1], stop, []
    return start, end, [Fragment("pass", start, end)]


def _named(source: Source, uses: Iterable[ast.Name], parameter: str) -> Edits:
    return [(*source.span(use), [Fragment(parameter, *source.span(use))]) for use in uses]


def _is_parameter(inference: Inference, value: ast.expr) -> bool:
    """``layer.weight`` of what is surely a module, to which a name or attributes of one lead."""
    node: ast.expr | None = behind_data(value)
    if not isinstance(node, ast.Attribute) or node.attr not in _PARAMETERS:
        return False
    if not is_module(inference.fact(node.value)):
        return False
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _uses(source: Source, made: ast.Assign, name: str) -> list[ast.Name]:
    """Where a variable stands behind its assignment; none where it is given another value, or the parameter may be."""
    block = source.block_of(made)
    scope = next(iter(scopes_around(made, source.parents)), None)
    if block is None or not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    behind = [n for statement in block[block.index(made) + 1 :] for n in symbols.walk(statement)]
    everywhere = [n for n in symbols.walk(scope) if isinstance(n, ast.Name) and n.id == name]
    uses = [n for n in behind if isinstance(n, ast.Name) and n.id == name]
    bound = any(isinstance(n, ast.arg) and n.arg == name for n in symbols.walk(scope))
    if len(uses) != len(everywhere) - 1 or bound or _gives_another(source, made, behind, name):
        return []
    return uses


def _gives_another(source: Source, made: ast.Assign, behind: Sequence[ast.AST], name: str) -> bool:
    """Whether statements give the variable, the parameter or what holds it another value, or keep it for later."""
    words = set(ast.unparse(made.value).split("."))
    for node in behind:
        match node:
            case (
                ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Global() | ast.Nonlocal() | ast.Delete()
            ):
                return True
            case ast.Name(id="setattr" | "delattr"):
                return True
            case ast.Name(id=one, ctx=ast.Store()) if one == name:
                if not isinstance(source.parents.get(node), ast.AugAssign):
                    return True
            case ast.Name(id=one, ctx=ast.Store()) | ast.Attribute(attr=one, ctx=ast.Store()) if one in words:
                return True
            case _:
                pass
    return False


def _is_written(source: Source, use: ast.Name) -> bool:
    """Whether the parameter is changed in place here."""
    place: ast.AST = use
    parent = source.parents.get(place)
    while isinstance(parent, ast.Attribute) and parent.attr == "data":
        place, parent = parent, source.parents.get(parent)
    match parent:
        case ast.Attribute(attr=attr):
            return attr.endswith("_") and not attr.startswith("_")
        case ast.AugAssign(target=target):
            return target is place
        case ast.Subscript(value=value, ctx=ast.Store()):
            return value is place
    return False
