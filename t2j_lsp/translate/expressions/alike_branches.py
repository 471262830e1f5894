"""Branches that say the same in JAX: ``x = x.cuda() if torch.cuda.is_available() else x``. One of them is enough.

They differ in nothing but the device, where JAX places arrays by itself, or in what is kept in memory:
``checkpoint(block, x)`` and ``block(x)``.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import REGISTRY

DEVICE_TESTS = names_with(Trait.DEVICE_TEST)
_RECOMPUTES = names_with(Trait.RECOMPUTES)


def say_the_same(node: ast.If | ast.IfExp, inference: Inference) -> bool:
    """Whether both branches say the same in JAX, and nothing happens where it is asked which one is taken."""
    if not node.orelse or any(_acts(inner, inference) for inner in symbols.walk(node.test)):
        return False
    named = _names_a_device(node) or recomputes(node.body, inference) or recomputes(node.orelse, inference)
    return named and _same(node.body, node.orelse, inference)


def recomputes(branch: ast.expr | list[ast.stmt], inference: Inference) -> bool:
    """Whether something in a branch is worked out again instead of kept."""
    if not _has_word_of_it(inference):
        return False
    whole = branch if isinstance(branch, list) else [branch]
    return any(_recomputed(n, inference) is not None for one in whole for n in symbols.walk(one))


def unasked_tests(node: ast.AST, inference: Inference) -> set[ast.AST]:
    """What stands in the tests that go, since both branches of an ``if`` say the same."""
    if not _has_word_of_it(inference):
        return set()
    branches = (n for n in symbols.walk(node) if isinstance(n, ast.If | ast.IfExp))
    return {n for one in branches if say_the_same(one, inference) for n in symbols.walk(one.test)}


def _has_word_of_it(inference: Inference) -> bool:
    return any(name.rpartition(".")[2] in inference.source.words for name in _RECOMPUTES)


def _recomputed(node: object, inference: Inference) -> ast.Call | None:
    """``block(x)`` for ``checkpoint(block, x)``."""
    if not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Starred):
        return None
    fact = inference.fact(node.func)
    if not isinstance(fact, Qual) or fact.name not in _RECOMPUTES:
        return None
    rule = REGISTRY.get(fact.name)
    if rule is None or not {k.arg for k in node.keywords} <= rule.ignore:
        return None
    return ast.Call(func=node.args[0], args=node.args[1:], keywords=[])


def _acts(node: ast.AST, inference: Inference) -> bool:
    if isinstance(node, ast.Call):
        fact = inference.fact(node.func)
        return not isinstance(fact, Qual) or fact.name not in DEVICE_TESTS
    return isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)


def _names_a_device(node: ast.AST) -> bool:
    """Whether a device is named in it; what is written twice otherwise stays as it was written."""
    return any(isinstance(inner, ast.Attribute) and inner.attr == "cuda" for inner in symbols.walk(node))


def _same(one: object, other: object, inference: Inference) -> bool:
    one, other = (_recomputed(side, inference) or _without_moves(side) for side in (one, other))
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
