"""Tensors that an optimizer updates beside modules: ``log_sigma = torch.zeros(1, requires_grad=True)``.

An optimizer of bare tensors alone has a form of its own. Where that doesn't do, since it updates a module too, has a
scheduler or its gradients are clipped, a file is read as if the tensors were parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Object, Qual, Tensor
from t2j_lsp.translate.source.rearranged import RearrangedText
from t2j_lsp.translate.training.optimizers.groups import BARE_TENSORS, PARTS, UNKNOWN_PARAMETERS
from t2j_lsp.translate.training.optimizers.held_tensors import OTHERWISE
from t2j_lsp.translate.training.optimizers.leaf_values import with_this_memory

from .left_out import ObjectLeftOut, Stays

_REASONS = (BARE_TENSORS, UNKNOWN_PARAMETERS, PARTS, OTHERWISE)
_KEPT = "which has another name too"


def with_leaves_as_parameters(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such tensors are parameters; None if there are none, or no optimizer of them is left."""
    source = inference.source
    torch = next((n for n, fact in inference.env.items() if isinstance(fact, Qual) and fact.name == "torch"), None)
    if torch is None or not any(gap.reason in _REASONS or _KEPT in gap.reason for gap in gaps):
        return None
    written = _Leaves(inference, torch)
    for node in source.nodes:
        made = inference.fact(node) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(made, Object) and made.kind == "optimizer":
            given = argument(node, 0, "params")
            for name in symbols.walk(given) if given is not None else ():
                fact = inference.fact(name)
                if isinstance(name, ast.Name) and isinstance(fact, Tensor) and not fact.variable:
                    written.names.add((name.id, _scope(inference, node)))
    try:
        written.write()
    except Stays:
        return None
    return RearrangedText.of(source.text, written.made_edits())


def _scope(inference: Inference, node: ast.AST) -> ast.AST:
    return next(iter(symbols.scopes_around(node, inference.source.parents)), inference.source.tree)


class _Leaves(ObjectLeftOut):
    def __init__(self, inference: Inference, torch: str) -> None:
        super().__init__(inference)
        self.torch = torch
        self.names = set[tuple[str, ast.AST]]()
        """The variables, each with the scope of its optimizer."""

    def write(self) -> None:
        """``torch.nn.Parameter(torch.zeros(3))`` for each of them. Raises Stays where one is made otherwise."""
        for name, scope in self.names:
            stores = [n for n in self.source.names.get(name, ()) if not isinstance(n.ctx, ast.Load)]
            stores = [n for n in stores if _scope(self.inference, n) is scope]
            if not stores:
                raise Stays
            for store in stores:
                match self.parents.get(store):
                    case ast.Assign(targets=[_], value=ast.Call() as made):
                        self._write(made)
                    case _:
                        raise Stays

    def _write(self, made: ast.Call) -> None:
        if isinstance(with_this_memory(made, self.inference.fact), ast.Name | ast.Attribute | ast.Subscript):
            raise Stays  # which an update writes into, too
        self.make_parameter(made, self.torch)
