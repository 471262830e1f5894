"""``self.head.weight = self.embed.weight``: one parameter under two names."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import nearest
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.layers import Layers
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.facts import Layer, Qual
from t2j_lsp.translate.rule.layer import LAYERS

_TABLE = "torch.nn.Embedding"


class WeightTying:
    """Ties the weights of two layers."""

    def __init__(self, context: Context, renderer: ExpressionRenderer, layers: Layers) -> None:
        self.ctx = context
        self.renderer = renderer
        self.layers = layers

    def tie(self, node: ast.Assign, target: ast.Attribute) -> bool:
        """``self.head.weight = self.embed.weight``: one parameter under two names."""
        if target.attr != "weight" or not isinstance(node.value, ast.Attribute) or node.value.attr != "weight":
            return False
        into, source = self.ctx.fact(target.value), self.ctx.fact(node.value.value)
        if not isinstance(into, Layer) or not isinstance(source, Layer):
            self.ctx.report.gap(node, "weight tying", "unsure", "which layers share this weight is not known here")
            return True
        names = {into.name, source.name}
        if names == {_TABLE, "torch.nn.Linear"}:
            if into.name == _TABLE:
                if not self.layers.is_linears_table(into.node):
                    reason = "the shared weight starts as an Embedding's here, and as a Linear's in PyTorch"
                    self.ctx.report.note(node, "weight tying", "note", reason)
                return self._tie_linear(node, node.value.value, target.value, source)
            return self._tie_linear(node, target.value, node.value.value, into)
        attribute = LAYERS[into.name].attributes.get("weight", "weight")
        if into.name != source.name or into.name not in LAYERS:
            self.ctx.report.gap(
                node, "weight tying", "unsure", "these two layers keep their weights in different layouts"
            )
            return True
        left, right = (self.renderer.render(n).text for n in (target.value, node.value.value))
        self.ctx.edits.replace(node, f"{left}.{attribute} = {right}.{attribute}")
        self.ctx.report.converted += 1
        return True

    def _tie_linear(self, node: ast.Assign, linear: ast.expr, embedding: ast.expr, layer: Layer) -> bool:
        """A Linear on an embedding's table: the layer is built on the table, which keeps PyTorch's layout."""
        if not isinstance(linear, ast.Attribute):
            self.ctx.report.gap(node, "weight tying", "unsure", "the Linear that is tied has no name of its own here")
            return True
        if self._has_other_uses(layer, linear):
            reason = "the Linear's own weight is used too, under a name that the layer on the table has not"
            self.ctx.report.gap(node, "weight tying", "unsure", reason)
            return True
        if self._is_initialised_as_a_linear(layer):
            reason = "the shared weight is initialised as a Linear's, and the layer on the table is none in Flax"
            self.ctx.report.gap(node, "weight tying", "unsure", reason)
            return True
        head, table = self.renderer.render(linear).text, self.renderer.render(embedding).text
        arguments = f"{table}.embedding"
        if not self._without_bias(layer):
            arguments += f", {head}.bias"
        elif layer.node is not None:
            self._drop_constructor(layer.node, node)
        self.ctx.edits.replace(node, f"{head} = {self.renderer.need('TiedLinear')}({arguments})")
        self.ctx.report.converted += 1
        return True

    def _has_other_uses(self, layer: Layer, linear: ast.Attribute) -> bool:
        """Whether the weight of a Linear is named elsewhere than where it is tied."""
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "weight" and node.value is not linear:
                fact = self.ctx.fact(node.value)
                if isinstance(fact, Layer) and fact.node is layer.node and layer.node is not None:
                    return True
        return False

    def _is_initialised_as_a_linear(self, linear: Layer) -> bool:
        """Whether the file fills the weights of all Linears, and not those of embeddings in the same way."""
        filled: dict[ast.AST | None, tuple[set[str], set[str]]] = {}
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.If) and (kinds := self._classes_asked_for(node.test)) & LAYERS.keys():
                fills = {ast.unparse(n) for n in node.body for part in ast.walk(n) if _is_weight(part)}
                function = nearest(ast.FunctionDef, node, self.ctx.source.parents)
                of_linears, of_tables = filled.setdefault(function, (set(), set()))
                of_linears.update(fills if linear.name in kinds else ())
                of_tables.update(fills if _TABLE in kinds else ())
        return any(of_linears - of_tables for of_linears, of_tables in filled.values())

    def _classes_asked_for(self, test: ast.expr) -> set[str]:
        """The layers that a condition names: ``isinstance(m, (nn.Linear, nn.Embedding))``."""
        facts = (self.ctx.fact(node) for node in ast.walk(test) if isinstance(node, ast.Name | ast.Attribute))
        return {fact.name for fact in facts if isinstance(fact, Qual)}

    def _without_bias(self, layer: Layer) -> bool:
        """Whether a Linear surely has no bias: its constructor says so."""
        given = bind(LAYERS[layer.name].signature, layer.node, None) if layer.node is not None else None
        return given is not None and [ast.unparse(node) for node in given.get("bias", [])] == ["False"]

    def _drop_constructor(self, constructor: ast.AST, node: ast.Assign) -> None:
        """The layer that is made and then tied in one block is only made tied."""
        built = self.ctx.source.parents.get(constructor)
        if not isinstance(built, ast.Assign) or built is node:
            return
        if self.ctx.source.block_of(built) is self.ctx.source.block_of(node):
            self.ctx.edits.drop(*self.ctx.source.span(built))
            self.ctx.edits.delete(built)


def _is_weight(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "weight"
