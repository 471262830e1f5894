"""Attributes of modules that hold nothing first and then something unknown: ``self.model = make()`` behind a None.

NNX takes the first value for the kind of an attribute. What comes behind is data where the class uses it as a module;
where it may also be a function, or an array, nothing is sure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.torch_only import stays_torch
from t2j_lsp.translate.inference.module_methods import calls_forward
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.library import Trait, names_with

_MODULE_ONLY = names_with(Trait.MODULE_ONLY)
_NOT_KNOWN = (
    "None stands here first, so that NNX takes what comes behind it for no data, and what {} is isn't known: write"
    " nnx.data(...) around it if it is a module or an array"
)


def is_used_as_module(ctx: Context, node: ast.Assign, target: ast.Attribute, owner: ClassInfo) -> bool:
    """Whether what nothing is known of is a module by what the class calls of it; what it only calls is said."""
    if not isinstance(node.value, ast.Call):
        return False
    calls = [*_calls(target, owner)]
    if any(_is_of_modules(call, target) for call in calls):
        return True
    if any(_is_self(call.func, target) for call in calls) and stays_torch(ctx, node.value) is None:
        ctx.report.gap(node, "Module.__setattr__", "unsure", _NOT_KNOWN.format(ast.unparse(node.value.func) + "(...)"))
    return False


def _calls(target: ast.Attribute, owner: ClassInfo) -> Iterator[ast.Call]:
    """The calls of an attribute and of its methods, in a class and in its bases."""
    for info in owner.ancestry():
        for call in symbols.walk(info.node):
            if isinstance(call, ast.Call):
                function = call.func
                if (
                    _is_self(function, target)
                    or isinstance(function, ast.Attribute)
                    and _is_self(function.value, target)
                ):
                    yield call


def _is_of_modules(call: ast.Call, target: ast.Attribute) -> bool:
    """Whether a method is called that only modules have."""
    if not isinstance(call.func, ast.Attribute) or _is_self(call.func, target):
        return False
    return calls_forward(call) or call.func.attr in _MODULE_ONLY


def _is_self(node: ast.expr, target: ast.Attribute) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == ast.unparse(target)
