"""What torchvision's transforms make of an image, outside of a data pipeline: ``preprocess(image).unsqueeze(0)``.

Transforms stay PyTorch's, as the pipeline does. What one of them gives becomes an array where it is used as a tensor;
one that is given an array is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.symbols import bound_as, with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.inference.storage import dotted
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.names import TENSOR_ONLY, is_torch
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.training.program.kept_values import as_arrays

NEEDS = Gate(words=frozenset({"transforms"}))
"""The module of torchvision, or the method of its weights."""
_TRANSFORMS = ("torchvision.transforms.", "torchvision.transforms.v2.")
_TAKES = "a transform of torchvision takes PyTorch's tensors and images, and no JAX arrays"


def plan_transformed_images(context: Context) -> None:
    """Plan what becomes an array, and report transforms of arrays."""
    transforms = set(_named(context))
    for node in context.source.nodes:
        if not isinstance(node, ast.Call) or not (_makes(context, node.func) or dotted(node.func) in transforms):
            continue
        if _in_pipeline(context, node):
            continue
        if any(isinstance(fact := context.fact(a), Tensor) and fact.sure for a in node.args):
            _refuse(context, node)
        elif _is_used_as_tensor(context, node):
            _convert(context, node)


def _refuse(context: Context, node: ast.Call) -> None:
    def refused(renderer: ExpressionRenderer) -> Piece:
        context.report.gap(node, ast.unparse(node.func), "torch-only", _TAKES)
        return renderer.usual(node)

    context.plan.on_expression(node, refused)


def _convert(context: Context, node: ast.Call) -> None:
    text = context.source.segment(node)
    context.plan.on_expression(node, lambda renderer: as_arrays(context.report, renderer, text, True))


def _named(context: Context) -> Iterator[str]:
    """The variables and attributes that are given transforms, and nothing else."""
    given: dict[str, bool] = {}
    for node in context.source.nodes:
        if name := _bound(node):
            parent = context.source.parents.get(node)
            is_transform = isinstance(parent, ast.Assign) and parent.targets == [node] and _makes(context, parent.value)
            given[name] = given.get(name, True) and is_transform
    return (name for name, is_transform in given.items() if is_transform)


def _bound(node: ast.AST) -> str | None:
    """The variable or attribute that a node gives a value."""
    match node:
        case ast.Name() | ast.Attribute() if not isinstance(node.ctx, ast.Load):
            return dotted(node)
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.alias():
            return bound_as(node)
    return None


def _makes(context: Context, node: ast.expr) -> bool:
    """Whether an expression makes a transform: ``transforms.Compose([...])``, ``weights.transforms()``."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="transforms"), args=[], keywords=[]):
            return not isinstance(context.fact(owner), Tensor) and not is_module(context.fact(owner))
        case ast.Call(func=func):
            fact = context.fact(func)
            return (
                isinstance(fact, Qual) and fact.name.startswith(_TRANSFORMS) and fact.name.split(".")[-1][0].isupper()
            )
    return False


def _in_pipeline(context: Context, node: ast.Call) -> bool:
    """Whether a call stays with a data pipeline: kept code, or the methods of a data set."""
    if context.plan.keeps(node, context.source.parents):
        return True
    around = with_ancestors(node, context.source.parents)
    return any(
        isinstance(at, ast.ClassDef)
        and any(isinstance(s, ast.FunctionDef) and s.name == "__getitem__" for s in at.body)
        for at in around
    )


def _is_used_as_tensor(context: Context, node: ast.expr) -> bool:
    """Whether a value, or the variable for it, is used as only tensors are, or given to a module."""
    parent = context.source.parents.get(node)
    match parent:
        case ast.Attribute(attr=name):
            call = context.source.parents.get(parent)
            return name in TENSOR_ONLY and isinstance(call, ast.Call) and call.func is parent
        case ast.Subscript(value=value, slice=ast.Constant(value=None)):
            return value is node
        case ast.Call(func=func):
            return node in parent.args and is_module(context.fact(func))
        case ast.List() | ast.Tuple():
            call = context.source.parents.get(parent)
            fact = context.fact(call.func) if isinstance(call, ast.Call) else None
            return isinstance(fact, Qual) and is_torch(fact.name)
        case ast.Assign(targets=[ast.Name(id=name)]):
            read = [n for n in context.source.nodes if isinstance(n, ast.Name) and n.id == name]
            stored = [n for n in read if not isinstance(n.ctx, ast.Load)]
            return len(stored) == 1 and any(_is_used_as_tensor(context, n) for n in read if isinstance(n.ctx, ast.Load))
    return False
