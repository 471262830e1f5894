"""Arguments of a function that is put where it is called: those that mean the same wherever its body reads them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, Instance, is_module
from t2j_lsp.translate.rule.facts import Object, Qual, is_tensor
from t2j_lsp.translate.rule.names import is_torch


def is_steady(inference: Inference, argument: ast.expr, text: str, body: Sequence[ast.AST]) -> bool:
    """Whether an argument, a name or ``a.b``, is the same object at each place of a function's ``body``."""
    inside = [n for part in body for n in symbols.walk(part)]
    stored = {n.attr for n in inside if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)}
    if not stored.isdisjoint(text.split(".")):
        return False
    fact = inference.fact(argument)
    if is_module(fact) or is_tensor(fact) or isinstance(fact, Object | Function | Qual):
        return True
    if isinstance(fact, Instance) and is_made_once(inference, text):
        return True
    return all(_is_torchs(inference, n) for n in inside if isinstance(n, ast.Call))


def is_made_once(inference: Inference, text: str) -> bool:
    """Whether constructors alone give attributes of these names a value: ``self.schedule``."""
    for node in inference.source.nodes:
        if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
            continue
        if node.attr in text.split(".")[1:]:
            around = ancestors(node, inference.source.parents)
            function = next((at for at in around if isinstance(at, FunctionNode)), None)
            if function is None or function.name != "__init__":
                return False
    return "." in text


def _is_torchs(inference: Inference, call: ast.Call) -> bool:
    """Whether it calls PyTorch, which gives no attribute of the program another value."""
    fact = inference.fact(call.func)
    if isinstance(fact, Qual):
        return is_torch(fact.name)
    match call.func:
        case ast.Attribute(attr="parameters" | "named_parameters", value=module):
            return is_module(inference.fact(module))
    return False
