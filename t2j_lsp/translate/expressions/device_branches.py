"""Branches that differ in nothing but the device: ``x = x.cuda() if torch.cuda.is_available() else x``.

JAX places arrays by itself, so that both branches would say the same; one is enough.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import REGISTRY

DEVICE_TESTS = names_with(Trait.DEVICE_TEST)


def differ_by_device(node: ast.If | ast.IfExp, inference: Inference) -> bool:
    """Whether both branches say the same in JAX, and nothing happens where it is asked which one is taken."""
    if not node.orelse or any(_acts(inner, inference) for inner in symbols.walk(node.test)):
        return False
    return _same(node.body, node.orelse, inference) and _names_a_device(node)


def _acts(node: ast.AST, inference: Inference) -> bool:
    if isinstance(node, ast.Call):
        fact = inference.fact(node.func)
        return not isinstance(fact, Qual) or fact.name not in DEVICE_TESTS
    return isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)


def _names_a_device(node: ast.AST) -> bool:
    """Whether a device is named in it; what is written twice otherwise stays as it was written."""
    return any(isinstance(inner, ast.Attribute) and inner.attr == "cuda" for inner in symbols.walk(node))


def _same(one: object, other: object, inference: Inference) -> bool:
    one, other = _without_moves(one), _without_moves(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(a, b, inference) for a, b in zip(one, other, strict=True))
    if not isinstance(one, ast.AST) or not isinstance(other, ast.AST):
        return one == other
    if isinstance(one, ast.expr) and isinstance(other, ast.expr):
        facts = inference.fact(one), inference.fact(other)
        if isinstance(facts[0], Qual) and isinstance(facts[1], Qual) and facts[0].name != facts[1].name:
            rule = REGISTRY.get(facts[0].name)
            return rule is not None and rule is REGISTRY.get(facts[1].name)
    return type(one) is type(other) and all(
        _same(getattr(one, field, None), getattr(other, field, None), inference) for field in one._fields
    )


def _moves(name: str) -> bool:
    """Whether a method moves to a device, and does no more."""
    return name in names_with(Trait.MOVES) and name != "to"


def _without_moves(node: object) -> object:
    """``x`` of ``x.cuda()`` and ``x.cpu()``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _moves(node.func.attr):
        node = node.func.value
    return node
