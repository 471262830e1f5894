"""Classes of optimizers of the user's own, for which functions stand: here, and in files that are converted as well."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo
from t2j_lsp.translate.rule.facts import OPTIMIZER_BASE, Fact, OptimizerFunction, Qual
from t2j_lsp.translate.source.optimizer_classes.function import function_text, signature_of
from t2j_lsp.translate.source.optimizer_classes.unfit import Unfit
from t2j_lsp.translate.source.text import Source


def named_function(info: FunctionInfo) -> Fact:
    """What the name of a function with decorators is."""
    signature = signature_of(info.node) if info.owner is None else None
    return info.fact if signature is None else OptimizerFunction(OPTIMIZER_BASE, signature)


def is_own_optimizer(info: ClassInfo) -> bool:
    """Whether a class derives from the base of all optimizers, and from nothing else."""
    return info.bases == (Qual(OPTIMIZER_BASE),)


def why_it_stays(source: Source, info: ClassInfo) -> str | None:
    """What of a class of the file has no form as a function; None for those that have, and for other classes."""
    if not is_own_optimizer(info) or info.external:
        return None
    try:
        function_text(source, info.node)
    except Unfit as problem:
        line = f" (line {problem.node.lineno})" if isinstance(problem.node, ast.stmt | ast.expr) else ""
        return f"{problem.reason}{line}"
    return None


def as_function(source: Source, info: ClassInfo) -> OptimizerFunction | None:
    """The function that stands for a class of another file; None for classes that stay."""
    if not is_own_optimizer(info):
        return None
    try:
        function = ast.parse(function_text(source, info.node)).body[-1]
    except Unfit:
        return None
    assert isinstance(function, ast.FunctionDef)
    signature = signature_of(function)
    return OptimizerFunction(OPTIMIZER_BASE, signature) if signature is not None else None
