"""Classes of optimizers of the user's own, for which functions stand: here, and in files that are converted as well."""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp.translate.rule.definitions import ClassInfo, Function, FunctionInfo
from t2j_lsp.translate.rule.facts import OPTIMIZER_BASE, Fact, OptimizerFunction, Qual
from t2j_lsp.translate.source.optimizer_classes.constructor import is_of_first_rate
from t2j_lsp.translate.source.optimizer_classes.function import function_text, is_of_all_gradients, signature_of
from t2j_lsp.translate.source.optimizer_classes.functions import Imported
from t2j_lsp.translate.source.optimizer_classes.unfit import Unfit
from t2j_lsp.translate.source.text import Source

STEP_WORD = "param_groups"
"""What every file with a class of optimizers says."""


def named_function(info: FunctionInfo) -> Fact:
    """What the name of a function with decorators is."""
    made = _made(info.node) if info.owner is None else None
    return info.fact if made is None else made


def _made(node: ast.FunctionDef | ast.AsyncFunctionDef) -> OptimizerFunction | None:
    """What a function is that stands for a class; None for others."""
    signature = signature_of(node)
    if signature is None:
        return None
    keeps_rate = any(map(is_of_first_rate, node.body))
    return OptimizerFunction(OPTIMIZER_BASE, signature, keeps_rate, is_of_all_gradients(node))


def is_own_optimizer(info: ClassInfo) -> bool:
    """Whether a class derives from the base of all optimizers, and from nothing else."""
    return info.bases == (Qual(OPTIMIZER_BASE),)


def imported_functions(ask: Callable[[str], Fact | None]) -> Imported:
    """The functions of other files by the names under which a file has them; ``ask`` knows what its names are."""

    def of(name: str) -> ast.FunctionDef | None:
        fact = ask(name)
        node = fact.info.node if isinstance(fact, Function) and fact.info.external else None
        return node if isinstance(node, ast.FunctionDef) else None

    return of


def why_it_stays(source: Source, info: ClassInfo, ask: Callable[[str], Fact | None]) -> str | None:
    """What of a class of the file has no form as a function; None for those that have, and for other classes."""
    if not is_own_optimizer(info) or info.external:
        return None
    try:
        function_text(source, info.node, imported_functions(ask))
    except Unfit as problem:
        line = f" (line {problem.node.lineno})" if isinstance(problem.node, ast.stmt | ast.expr) else ""
        return f"{problem.reason}{line}"
    return None


def as_function(source: Source, info: ClassInfo, ask: Callable[[str], Fact | None]) -> OptimizerFunction | None:
    """The function that stands for a class of another file; None for classes that stay."""
    if not is_own_optimizer(info):
        return None
    try:
        function = ast.parse(function_text(source, info.node, imported_functions(ask))).body[-1]
    except Unfit:
        return None
    assert isinstance(function, ast.FunctionDef)
    return _made(function)
