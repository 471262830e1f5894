"""Prints of forward passes that show what is known when these are traced: texts, sizes, settings of the module.

Compiled code makes them itself, each time that it runs: ``jax.debug.print("{} sees {}", self.label, str(x.shape))``.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.rule.facts import Fact, Qual, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

from .file import Inference
from .forward_pass import UnknownParameter
from .host_random import prints_in_forward
from .kept_answers import kept_answers

_SIZES = names_with(Trait.SIZES)


def prints_as_traced(inference: Inference, module: Fact) -> bool:
    """Whether a module prints when it is called, and always what is known when that is traced."""
    prints = prints_in_forward(inference, module)
    return bool(prints) and all(is_known_print(inference, node) for node in prints)


def is_known_print(inference: Inference, node: ast.Call) -> bool:
    """Whether a print is a statement of a module's method that shows the same text each time that this is compiled."""
    parents = inference.source.parents
    statement = parents.get(node)
    if not isinstance(statement, ast.Expr) or node.keywords or not node.args or _is_traced_otherwise(inference):
        return False
    for at in ancestors(statement, parents):
        if isinstance(at, ast.FunctionDef):
            owner = inference.functions[at].owner if at in inference.functions else None
            named = owner is not None and owner.is_module and "print" not in inference.env
            return named and all(_is_known(inference, argument) for argument in node.args)
        if not isinstance(at, ast.If) or not _is_known(inference, at.test):
            return False
    return False


@kept_answers
def _is_traced_otherwise(inference: Inference) -> bool:
    """Whether the file has code over a batch, over several devices, or that is computed twice."""
    names = names_with(Trait.TRACES) | names_with(Trait.RECOMPUTES) | names_with(Trait.COPIED_CLASS)
    facts = (inference.fact(n) for n in inference.source.nodes if isinstance(n, ast.Name | ast.Attribute))
    return any(isinstance(fact, Qual) and fact.name in names for fact in facts)


def _is_known(inference: Inference, node: ast.expr) -> bool:
    """Whether the value of an expression is a text, or one of a size or of a setting that only constructors set."""
    match node:
        case ast.Constant():
            return True
        case ast.JoinedStr(values=values):
            return all(_is_known(inference, value) for value in values)
        case ast.FormattedValue(value=value, format_spec=form):
            return _is_known(inference, value) and (form is None or _is_known(inference, form))
        case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=given, keywords=[]) if attr in _SIZES:
            whole = all(isinstance(one, ast.Constant | ast.UnaryOp) for one in given)
            return whole and _has_sizes(inference, owner)
        case ast.Attribute(value=owner, attr=attr) if attr in _SIZES:
            return _has_sizes(inference, owner)
        case ast.Subscript(value=ast.Attribute() as sizes, slice=ast.Constant() | ast.UnaryOp()):
            return _is_known(inference, sizes)
        case ast.Attribute(value=ast.Name(id="self"), attr=attr):
            return isinstance(inference.fact(node), Scalar) and _is_setting(inference, attr)
    return False


def _has_sizes(inference: Inference, node: ast.expr) -> bool:
    """Whether an expression is a tensor that a variable holds, or what a forward pass is given."""
    fact = inference.fact(node)
    return isinstance(node, ast.Name) and isinstance(fact, Tensor | UnknownParameter)


def _is_setting(inference: Inference, attribute: str) -> bool:
    """Whether an attribute is set in constructors alone."""
    for node in inference.source.attributes.get(attribute, ()):
        function = symbols.nearest(ast.FunctionDef, node, inference.source.parents)
        if not isinstance(node.ctx, ast.Load) and (function is None or function.name != "__init__"):
            return False
    return not _writes_by_name(inference)


@kept_answers
def _writes_by_name(inference: Inference) -> bool:
    """Whether the file may set attributes whose names it doesn't write."""
    return any(isinstance(n, ast.Name) and n.id in ("setattr", "vars") for n in inference.source.nodes)
