"""What is computed by modules without gradients in front of a loss: by a teacher, by the policy as it was.

It moves into the train step with the rest, unless that can't be. Then it stays where it is: ``model.eval()``, a pass
under ``torch.no_grad()``, ``model.train()``, and the step takes what it gives.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.fillers import is_without_gradient
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.training.program.cut_values import CUTS
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.step_calls import Item, Reader


class Teachers:
    """The code without gradients of one scope."""

    def __init__(self, inference: Inference, reader: Reader, flow: DataFlow) -> None:
        self.inference = inference
        self.reader = reader
        self.flow = flow

    def among(self, items: Sequence[Item], functions: bool = False) -> dict[int, set[str]]:
        """The items with such code, and what they read outside of it; with ``functions`` that are decorated so."""
        read = {index: self._differentiated(item.node, functions) for index, item in enumerate(items)}
        return {index: reads for index, reads in read.items() if reads is not None}

    def _differentiated(self, node: ast.stmt, functions: bool) -> set[str] | None:
        """What a statement reads outside of its parts without gradients; None if it has no such parts."""
        if self.reader.has_no_gradient(node) or functions and self._gives_no_gradient(node):
            return set()
        if not isinstance(node, ast.If):
            return None
        parts = [(part, self._differentiated(part, functions)) for part in (*node.body, *node.orelse)]
        if all(reads is None for _, reads in parts):
            return None
        return self.flow.reads(node.test).union(*(self.flow.reads(p) if r is None else r for p, r in parts))

    def _gives_no_gradient(self, node: ast.stmt) -> bool:
        """Whether a variable is given what a function under ``@torch.no_grad()`` gives, or what is detached."""
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            return False
        called = self.inference.fact(node.value.func)
        decorated = called.info.node.decorator_list if isinstance(called, Function) else []
        stops = any(is_without_gradient(one, self.inference.facts) for one in decorated)
        return stops or isinstance(node.value.func, ast.Attribute) and node.value.func.attr in CUTS - {"sample"}
