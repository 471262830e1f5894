"""Parameters that are made frozen, ``nn.Parameter(x, requires_grad=False)``: buffers in JAX, and parameters in PyTorch.

Where a program counts or lists its parameters, they are among them.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with

_PARAMETERS, _TABLES = names_with(Trait.MAKES_PARAMETER), names_with(Trait.MAKES_FROZEN)
_LISTING = frozenset({"len", "list", "sum", "tuple"})


def lists_frozen(inference: Inference, node: ast.Call) -> bool:
    """Whether a walk over parameters counts or lists all, in a file that makes some frozen."""
    if not {"requires_grad", "from_pretrained"} & inference.source.words or not _is_listed(inference, node):
        return False
    return any(isinstance(one, ast.Call) and _makes_frozen(inference, one) for one in inference.source.nodes)


def has_buffers(inference: Inference) -> bool:
    """Whether a file has buffers beside them."""
    return not {"register_buffer", "Buffer"}.isdisjoint(inference.source.words)


def _is_listed(inference: Inference, node: ast.Call) -> bool:
    parent = inference.source.parents.get(node)
    if isinstance(parent, ast.comprehension):
        around = inference.source.parents.get(parent)
        asked = (n for n in symbols.walk(around) if isinstance(n, ast.Attribute)) if around is not None else ()
        return isinstance(around, Comprehension) and not any(n.attr == "requires_grad" for n in asked)
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in _LISTING


def _makes_frozen(inference: Inference, node: ast.Call) -> bool:
    fact = inference.fact(node.func)
    if isinstance(fact, Qual) and fact.name in _PARAMETERS:
        given = argument(node, 1, "requires_grad")
        return isinstance(given, ast.Constant) and given.value is False
    if isinstance(fact, Qual) and fact.name in _TABLES:
        given = argument(node, 1, "freeze")
        return not (isinstance(given, ast.Constant) and given.value is False)
    return False
