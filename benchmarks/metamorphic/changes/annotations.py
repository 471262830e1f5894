"""Annotations: none of them, or in comments."""

from __future__ import annotations

import random

import libcst as cst

from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source


class _Strip(cst.CSTTransformer):
    """Takes annotations off parameters, results and variables. Those of a class's own body may be fields and stay."""

    def __init__(self, comments: bool = False) -> None:
        self.comments = comments
        self.inside: list[str] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.inside.append("class")

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self.inside.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.inside.append("function")

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.inside.pop()
        parameters = original_node.params
        plain = not (parameters.star_kwarg or parameters.kwonly_params or parameters.posonly_params)
        if self.comments and plain and isinstance(updated_node.body, cst.IndentedBlock):
            updated_node = _with_type_comment(original_node, updated_node)
        return updated_node.with_changes(returns=None)

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        if updated_node.annotation is None:
            return updated_node
        equal = cst.MaybeSentinel.DEFAULT
        return updated_node.with_changes(annotation=None, equal=equal)

    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.BaseSmallStatement:
        if self.inside and self.inside[-1] == "function" and updated_node.value is not None:
            return cst.Assign([cst.AssignTarget(updated_node.target)], updated_node.value)
        return updated_node


def _with_type_comment(original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef:
    """The function with ``# type: (int, Tensor) -> Tensor`` behind its head."""
    parameters = [p for p in original.params.params if p.name.value not in ("self", "cls")]
    if original.returns is None or any(p.annotation is None for p in parameters):
        return updated
    code = cst.Module([]).code_for_node
    types = [code(p.annotation.annotation) for p in parameters if p.annotation is not None]
    text = f"# type: ({', '.join(types)}) -> {code(original.returns.annotation)}"
    if "\n" in text:
        return updated
    header = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(text))
    assert isinstance(updated.body, cst.IndentedBlock)
    return updated.with_changes(body=updated.body.with_changes(header=header))


@change("annotations stripped")
def annotations_stripped(source: Source, rng: random.Random) -> cst.Module:
    """No parameter, result or local variable has an annotation."""
    return source.module.visit(_Strip())


@change("type comments")
def type_comments(source: Source, rng: random.Random) -> cst.Module:
    """Annotations of functions are written as type comments."""
    return source.module.visit(_Strip(comments=True))
