"""``self.head.weight = self.embed.weight``: one parameter under two names."""

from __future__ import annotations

import ast
from itertools import takewhile

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension, ancestors, nearest, walk
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.layers import Layers
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.facts import Layer, Object, Qual
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with

_TABLE = "torch.nn.Embedding"


class WeightTying:
    """Ties the weights of two layers."""

    def __init__(self, context: Context, renderer: ExpressionRenderer, layers: Layers) -> None:
        self.ctx = context
        self.renderer = renderer
        self.layers = layers

    def shared(self, node: ast.Assign) -> ast.expr:
        """What is assigned, or the attribute that a variable for it was given in the same block."""
        block, home = self.ctx.source.block_of(node) or [], nearest(ast.FunctionDef, node, self.ctx.source.parents)
        if not isinstance(node.value, ast.Name) or home is None:
            return node.value
        named = [n for n in symbols.walk(home) if isinstance(n, ast.Name) and n.id == node.value.id]
        stored = [n for n in named if not isinstance(n.ctx, ast.Load)]
        given = self.ctx.source.parents.get(stored[0]) if len(stored) == 1 else None
        if not isinstance(given, ast.Assign) or given.targets != stored or given not in block[: block.index(node)]:
            return node.value
        held = {ast.unparse(n) for n in symbols.walk(given.value) if isinstance(n, ast.Attribute)}
        between = [n for s in block[block.index(given) : block.index(node)] for n in symbols.walk(s)]
        written = (n for n in between if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load))
        return node.value if any(ast.unparse(n) in held for n in written) else given.value

    def tie(self, node: ast.Assign, target: ast.Attribute, value: ast.Attribute) -> bool:
        """``self.head.weight = self.embed.weight``: one parameter under two names."""
        into, source = self.ctx.fact(target.value), self.ctx.fact(value.value)
        if not isinstance(into, Layer) or not isinstance(source, Layer):
            self.ctx.report.gap(node, "weight tying", "unsure", "which layers share this weight is not known here")
            return True
        names = {into.name, source.name}
        if names == {_TABLE, "torch.nn.Linear"}:
            if into.name == _TABLE:
                if not self.layers.is_linears_table(into.node):
                    reason = "the shared weight starts as an Embedding's here, and as a Linear's in PyTorch"
                    self.ctx.report.note(node, "weight tying", "note", reason)
                return self._tie_linear(node, value.value, target.value, source)
            return self._tie_linear(node, target.value, value.value, into)
        attribute = LAYERS[into.name].attributes.get("weight", "weight")
        if into.name != source.name or into.name not in LAYERS:
            self.ctx.report.gap(
                node, "weight tying", "unsure", "these two layers keep their weights in different layouts"
            )
            return True
        left, right = (self.renderer.render(n).text for n in (target.value, value.value))
        self.ctx.edits.replace(node, f"{left}.{attribute} = {right}.{attribute}")
        self.ctx.report.count_converted()
        return True

    def _tie_linear(self, node: ast.Assign, linear: ast.expr, embedding: ast.expr, layer: Layer) -> bool:
        """A Linear on an embedding's table: the layer is built on the table, which keeps PyTorch's layout."""
        if not isinstance(linear, ast.Attribute):
            self.ctx.report.gap(node, "weight tying", "unsure", "the Linear that is tied has no name of its own here")
            return True
        uses, called = self._other_uses(layer, linear), self._calls_before(node)
        early = any(self._may_run_before(use, node, called) for use in uses)
        onto_linear = linear is node.targets[0].value if isinstance(node.targets[0], ast.Attribute) else False
        reason = ""
        if any(self._keeps_parameter(use) for use in uses):
            reason = (
                "the Linear's own weight is kept elsewhere, as a parameter under a name that the shared one has not"
            )
        elif early and not onto_linear:
            reason = "the Linear's own weight may be written to before the table has it"
        elif self._is_initialised_as_a_linear(layer, alone=onto_linear or not called):
            reason = "the shared weight is initialised as a Linear's and as an Embedding's: which comes last isn't sure"
        if reason:
            self.ctx.report.gap(node, "weight tying", "unsure", reason)
            return True
        head, table = self.renderer.render(linear).text, self.renderer.render(embedding).text
        arguments = f"{table}.embedding"
        if not self._without_bias(layer):
            arguments += f", {head}.bias"
        elif layer.node is not None and not early:
            self._drop_constructor(layer.node, node)
        self.ctx.edits.replace(node, f"{head} = {self.renderer.need('TiedLinear')}({arguments})")
        self.ctx.report.count_converted()
        return True

    def _other_uses(self, layer: Layer, linear: ast.Attribute) -> list[ast.Attribute]:
        """Where the weight of a Linear is named elsewhere than where it is tied."""
        return [
            node
            for node in self.ctx.source.nodes
            if isinstance(node, ast.Attribute) and node.attr == "weight" and node.value is not linear
            if isinstance(fact := self.ctx.fact(node.value), Layer)
            if fact.node is layer.node and layer.node is not None
        ]

    def _calls_before(self, tie: ast.Assign) -> bool:
        """Whether a method may have been called that fills the Linear's weight before it is tied."""
        home = nearest(ast.FunctionDef, tie, self.ctx.source.parents)
        return (
            home is None
            or home.name != "__init__"
            or any(
                isinstance(one, ast.Call)
                and isinstance(one.func, ast.Attribute)
                and isinstance(one.func.value, ast.Name)
                for statement in home.body
                if isinstance(statement, ast.Expr) and statement.lineno < tie.lineno
                for one in walk(statement)
            )
        )

    def _may_run_before(self, use: ast.Attribute, tie: ast.Assign, called: bool) -> bool:
        """Whether a use of the Linear's weight stands in front of where it is tied, or in what is called there."""
        parents = self.ctx.source.parents
        together = nearest(ast.FunctionDef, tie, parents) is nearest(ast.FunctionDef, use, parents)
        return use.lineno < tie.lineno if together else called

    def _keeps_parameter(self, use: ast.Attribute) -> bool:
        """Whether a parameter is asked for itself and not its value: put into a list, trained, replaced."""
        parent = self.ctx.source.parents.get(use)
        if not isinstance(use.ctx, ast.Load) or isinstance(parent, ast.Compare) and not _of_values(parent):
            return True
        if isinstance(parent, ast.Attribute) and self._tells_of_gradients(parent.attr):
            return True
        if isinstance(parent, ast.Tuple) and isinstance(self.ctx.source.parents.get(parent), ast.Return):
            return False
        return any(
            isinstance(one, ast.List | ast.Tuple | ast.Set | ast.Dict | Comprehension)
            or isinstance(one, ast.Call)
            and isinstance(self.ctx.fact(one), Object)
            for one in takewhile(lambda one: not isinstance(one, ast.stmt), ancestors(use, self.ctx.source.parents))
        )

    @staticmethod
    def _tells_of_gradients(attribute: str) -> bool:
        read = f"torch.Tensor.{attribute}" in names_with(Trait.READS_GRADIENT)
        return read or attribute.startswith("requires_grad")

    def _is_initialised_as_a_linear(self, linear: Layer, alone: bool) -> bool:
        """Whether the file fills the weights of all Linears, and those of embeddings otherwise.

        Unless that may be ``alone``, also where it fills those of Linears only.
        """
        filled: dict[ast.AST | None, tuple[set[str], set[str]]] = {}
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.If) and (kinds := self._classes_asked_for(node.test)) & LAYERS.keys():
                fills = {ast.unparse(n) for n in node.body for part in symbols.walk(n) if _is_weight(part)}
                of_linears, of_tables = filled.setdefault(
                    nearest(ast.FunctionDef, node, self.ctx.source.parents), (set(), set())
                )
                of_linears.update(fills if linear.name in kinds else ())
                of_tables.update(fills if _TABLE in kinds else ())
        return any(linears - tables and (tables or not alone) for linears, tables in filled.values())

    def _classes_asked_for(self, test: ast.expr) -> set[str]:
        """The layers that a condition names: ``isinstance(m, (nn.Linear, nn.Embedding))``."""
        facts = (self.ctx.fact(node) for node in symbols.walk(test) if isinstance(node, ast.Name | ast.Attribute))
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


def _of_values(comparison: ast.Compare) -> bool:
    """Whether a comparison asks for values, and not whether two objects are one."""
    return not any(isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn) for operator in comparison.ops)
