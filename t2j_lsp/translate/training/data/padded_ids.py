"""Ids of a batch that only ``nn.EmbeddingBag`` reads: filled up to a power of two, as each length is compiled.

``for label, text, offsets in loader: model(text, offsets)``: the ids of all bags stand in one row, of another length in
every batch. Filled with -1, which is no id, they give the same bags. That holds where nothing else reads them, neither
in the loop's scope nor in the module.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.forward_hooks import HOOKS
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Layer
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.assignments import target_of

from .batch_loops import is_move


class PaddedIds:
    """Looks at what becomes of a variable that a loop over batches fills."""

    def __init__(self, context: Context) -> None:
        self.ctx = context
        self.inference, self.source = context.inference, context.source

    def are_ids(self, target: ast.Name) -> bool:
        """Whether all that reads a variable is bags of embeddings, of which other arrays say where each starts."""
        bags = {name.rpartition(".")[2] for name in names_with(Trait.BAGS)}
        if self.source.words.isdisjoint(bags) or not self.source.words.isdisjoint(HOOKS):
            return False
        home = self.source.home(target)
        named = [n for n in self.source.nodes if isinstance(n, ast.Name) and n.id == target.id]
        reads = [n for n in named if isinstance(n.ctx, ast.Load) and self.source.home(n) is home]
        return bool(reads) and all(self._is_moved(n) or self._is_for_bags(n, 0) for n in reads)

    def _is_moved(self, node: ast.Name) -> bool:
        """``text = text.to(device)``, also as one of several."""
        move = self.source.parents.get(self.source.parents[node])
        named = target_of(move, self.source.parents) if isinstance(move, ast.Call) and is_move(move) else None
        return isinstance(named, ast.Name) and named.id == node.id

    def _is_for_bags(self, node: ast.Name, depth: int) -> bool:
        """Whether a variable is handed to a layer as the ids of its bags, here or by the ``forward`` of a module."""
        call = self.source.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is node:
            return False
        match self.inference.fact(call.func):
            case Layer(name=name):
                one = call.args[:1] == [node] and not any(map(_is_spread, (*call.args, *call.keywords)))
                return name in names_with(Trait.BAGS) and one and self._has_offsets(call)
            case Instance(cls=cls) if depth == 0:
                forward = cls.info.method("forward")
                return forward is not None and not cls.info.external and self._takes_ids(forward, call, node)
        return False

    def _has_offsets(self, call: ast.Call) -> bool:
        """Whether a layer's call has offsets, which makes its ids one row, and no weight for each of them."""
        given = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "offsets")]
        known = all(k.arg == "offsets" for k in call.keywords)
        return known and len(given) == 1 and not isinstance(given[0], ast.Constant)

    def _takes_ids(self, forward: FunctionInfo, call: ast.Call, node: ast.Name) -> bool:
        """Whether a module's ``forward`` hands what a call gives it on to bags, with offsets that are given, too."""
        given = {parameter.arg: value for parameter, value in bound_arguments(call, forward)}
        taken = [name for name, value in given.items() if value is node]
        if len(taken) != 1 or any(isinstance(value, ast.Constant) for value in given.values()):
            return False
        inside = [n for n in symbols.walk(forward.node) if isinstance(n, ast.Name)]
        own = [n for n in inside if n.id == taken[0]]
        if not own or not all(isinstance(n.ctx, ast.Load) and self._is_for_bags(n, 1) for n in own):
            return False
        parameters = symbols.parameter_names(forward.node)
        starts = [n for one in own for n in symbols.walk(self.source.parents[one]) if n is not one]
        return all(n.id in given for n in starts if isinstance(n, ast.Name) and n.id in parameters - {"self"})


def _is_spread(node: ast.AST) -> bool:
    return isinstance(node, ast.Starred) or isinstance(node, ast.keyword) and node.arg is None
