"""Handlers of errors: ``except RuntimeError`` around tensors that may not fit, for which JAX raises another error."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch

_OTHER = (
    "what raises {} in PyTorch here raises another error in JAX (TypeError or ValueError where shapes don't fit), or"
    " none (where an index is out of range, or a value isn't finite): test for it in front"
)
_ANY = frozenset({"Exception", "BaseException"})
_ABOUT = names_with(Trait.ABOUT)


class ErrorHandlers:
    """Reports handlers that wait for an error that JAX doesn't raise."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    def check(self, node: ast.Try) -> None:
        """Report the handlers of a statement that are for errors of PyTorch."""
        for handler in node.handlers:
            names = set(_names(handler.type))
            if names & _ANY or {"TypeError", "ValueError"} <= names or _is_about_memory(handler):
                continue
            for name in sorted(names & {"RuntimeError", "IndexError", "ValueError"}):
                if self._raises(node, name):
                    self.ctx.report.gap(handler, f"except {name}", "unsure", _OTHER.format(name))
                    break

    def _raises(self, node: ast.Try, name: str) -> bool:
        """Whether it is PyTorch that raises such an error in a block, and not the user's own code."""
        nodes = [inner for statement in node.body for inner in symbols.walk(statement)]
        if any(isinstance(inner, ast.Raise) for inner in nodes):
            return False
        if name == "IndexError":
            return any(self._picks(inner) for inner in nodes)
        calls = [inner for inner in nodes if isinstance(inner, ast.Call)]
        if name == "ValueError" and not all(self._computes(call) for call in calls):
            return False  # float(text), a function of the file
        return any(self._computes(inner, name) for inner in nodes)

    def _picks(self, node: ast.AST) -> bool:
        """Whether it picks an item of a tensor by its number."""
        if not isinstance(node, ast.Subscript) or not isinstance(self.ctx.fact(node.value), Tensor):
            return False
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(not isinstance(p, ast.Slice) and not isinstance(self.ctx.fact(p), Tensor) for p in parts)

    def _computes(self, node: ast.AST, error: str = "") -> bool:
        """Whether it computes with tensors, by what PyTorch has."""
        match node:
            case ast.BinOp(left=left, right=right):
                return error != "" and all(isinstance(self.ctx.fact(side), Tensor) for side in (left, right))
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if isinstance(self.ctx.fact(owner), Tensor):
                return attr not in _ABOUT
            case ast.Call(func=func, args=args):
                fact = self.ctx.fact(func)
                if isinstance(fact, Qual):
                    return is_torch(fact.name) and any(self._is_tensor(argument) for argument in args)
                if is_module(fact):
                    forward = fact.cls.info.method("forward") if isinstance(fact, Instance) else None
                    return bool(args) and not _raises_itself(forward, error)
                info = called_function(fact)
                own = info is not None and not info.external and not _raises_itself(info, error)
                if error == "RuntimeError" and info is not None and own:
                    return any(self._computes(n) for n in symbols.walk(info.node) if isinstance(n, ast.Call))
        return False

    def _is_tensor(self, node: ast.expr) -> bool:
        """Whether an argument is a tensor or a list of such."""
        items = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        return any(isinstance(self.ctx.fact(item), Tensor) for item in items)


def _names(node: ast.expr | None) -> Iterator[str]:
    """The errors that a handler is for."""
    for one in node.elts if isinstance(node, ast.Tuple) else [node]:
        if isinstance(one, ast.Name):
            yield one.id


def _is_about_memory(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for a device that has no memory left: JAX's error of it is a RuntimeError, too."""
    texts = [n.value for n in symbols.walk(handler) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return any("memory" in text.lower() for text in texts)


def _raises_itself(info: FunctionInfo | None, error: str) -> bool:
    """Whether a function of the file raises errors of its own."""
    return info is not None and error != "" and any(isinstance(n, ast.Raise) for n in symbols.walk(info.node))
