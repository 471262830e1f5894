"""Records of arrays: named tuples, which NNX doesn't see to be data where a module keeps them."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.rule.array_classes import is_named_tuple
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Fact, is_tensor
from t2j_lsp.translate.rule.pieces import Piece

from .context import Context
from .handlers import ExpressionRenderer

_ANYTHING = frozenset({"Any", "typing.Any", "object"})
"""Annotations that tell nothing: one that tells of a record has the base mark it."""


def is_record(fact: Fact) -> bool:
    """Whether it is a named tuple with arrays in it, of a class that derives from ``typing.NamedTuple``."""
    if not isinstance(fact, Instance):
        return False
    info = fact.cls.info
    return is_named_tuple(info) and any(is_tensor(field) or is_record(field) for field in info.attributes.values())


def mark_records(ctx: Context, renderer: ExpressionRenderer, node: ast.Call, info: ClassInfo) -> None:
    """``super().__init__(p=nnx.data(p))``: a record that a base only keeps, not knowing what it is given."""
    base = next((base.info for base in info.bases if isinstance(base, Class)), None)
    constructor = base.method("__init__") if base is not None else None
    if constructor is None:
        return
    for parameter, value in bound_arguments(node, constructor):
        said = parameter.annotation is not None and ast.unparse(parameter.annotation) not in _ANYTHING
        if is_record(ctx.fact(value)) and not said and _only_kept(constructor, parameter.arg):
            text = renderer.argument(value).text
            renderer.put(value, Piece(f"{renderer.need('nnx')}.data({text})"))


def _only_kept(constructor: FunctionInfo, name: str) -> bool:
    """Whether all that a constructor does with a parameter is to keep it: ``self.p = p``."""
    reads = [n for n in symbols.walk(constructor.node) if isinstance(n, ast.Name) and n.id == name]
    kept = [
        n.value
        for n in symbols.walk(constructor.node)
        if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Attribute)
    ]
    return bool(reads) and all(read in kept for read in reads)
