"""Assignments that give a layer another parameter or setting: ``fc.weight = nn.Parameter(w)``, ``fc.bias = None``.

Flax's layers hold them under other names and in other layouts; under PyTorch's name they would stand beside the layer's
own without a word. ``setattr``, ``register_parameter`` and ``del`` say the same.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.variables import Variables
from t2j_lsp.translate.rule.binding import argument, bind
from t2j_lsp.translate.rule.definitions import Instance, is_module, layer_names
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Layer, Qual, Scalar, Tensor
from t2j_lsp.translate.rule.layer import LAYERS, flax_names
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import ATOM, bracket

from .weight_tying import WeightTying

VARIABLES = frozenset({"weight", "bias", "running_mean", "running_var"})
"""Parameters and buffers that PyTorch's layers have."""

SAID_ONLY = frozenset({
    "in_features", "out_features", "in_channels", "out_channels", "num_features", "num_embeddings", "embedding_dim",
    "normalized_shape", "inplace", "training",
})  # fmt: skip
"""Attributes that a layer of PyTorch keeps for its reader; nothing that it computes depends on them."""


class LayerParameters:
    """Stores into the attributes of layers."""

    def __init__(
        self, context: Context, renderer: ExpressionRenderer, variables: Variables, tying: WeightTying
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.variables = variables
        self.tying = tying

    def assigned(self, node: ast.Assign) -> bool:
        """``layer.weight = value``."""
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Attribute):
            return False
        value = self.tying.shared(node)
        if isinstance(value, ast.Attribute) and target.attr == value.attr == "weight":
            return self.tying.tie(node, target, value)
        return self._store(node, target.value, target.attr, node.value)

    def by_name(self, node: ast.Expr) -> bool:
        """``setattr(layer, "weight", value)``, ``delattr`` and ``layer.register_parameter("bias", None)``."""
        match node.value:
            case ast.Call(func=ast.Name(id="setattr"), args=[layer, ast.Constant(value=str() as name), value]):
                return self._store(node, layer, name, value)
            case ast.Call(func=ast.Name(id="setattr"), args=[layer, _, value]):
                return self._under_some_name(node, layer, value)
            case ast.Call(func=ast.Name(id="delattr"), args=[layer, name]):
                known = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
                return self._removed(node, layer, known)
            case ast.Call(func=ast.Attribute(value=layer, attr="register_parameter" | "register_buffer")) as call:
                key, held = argument(call, 0, "name"), argument(call, 1, "param") or argument(call, 1, "tensor")
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and held is not None:
                    return self._store(node, layer, key.value, held)
        return False

    def deleted(self, node: ast.Delete) -> bool:
        """``del layer.bias``."""
        attributes = [t for t in node.targets if isinstance(t, ast.Attribute)]
        return any(self._removed(node, target.value, target.attr) for target in attributes)

    def _store(self, node: ast.stmt, layer: ast.expr, name: str, value: ast.expr) -> bool:
        """One value under one name; whether it was one for a layer."""
        owner = self.ctx.fact(layer)
        forms = {LAYERS[n].attributes.get(name, name) for n in layer_names(owner) if n in LAYERS}
        if not forms:
            return self._of_unknown_class(node, owner, name, value)
        if len(forms) > 1:
            return self._left(node, name, f".{name} has another name in each of these layers")
        form = forms.pop()
        if isinstance(owner, Instance) and form == name and not self._switch(owner, name):
            return False
        if name in VARIABLES:
            return self._variable(node, layer, name, form, value)
        settings = {n for n in layer_names(owner) if n in LAYERS and name in LAYERS[n].signature.by_name}
        if not settings or name in SAID_ONLY:
            return False
        if (setting := self._setting(owner, name, value)) is not None:
            self._write(node, [f"{self._text(layer)}.{setting} = {self.renderer.argument(value).text}"])
            return True
        if form == name:
            return self._left(node, name, f"the layer in Flax doesn't read .{name} again: give it where it is built")
        self._write(node, [f"{self._text(layer)}.{form} = {self.renderer.argument(value).text}"])
        return True

    def _setting(self, owner: Fact, name: str, value: ast.expr) -> str | None:
        """Flax's name of a setting by numbers that the layer reads at each call, where nothing else keeps or reads it.

        A convolution that pads by other values than zeros keeps its border, as in PyTorch, and would be padded twice.
        """
        source = self.ctx.source
        names = {LAYERS[n].settable.get(name) for n in layer_names(owner) if n in LAYERS}
        read = any(
            isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Load) for n in source.nodes
        )
        if len(names) != 1 or isinstance(owner, Instance) or read or "padding_mode" in source.words:
            return None
        if isinstance(value, ast.Tuple) and name != "padding":  # which alone may be a text
            return None if any(isinstance(self.ctx.fact(size), Tensor) for size in value.elts) else names.pop()
        sizes = value.elts if isinstance(value, ast.Tuple) else [value]
        return names.pop() if all(self._is_number(size) for size in sizes) else None

    def _is_number(self, node: ast.expr) -> bool:
        """Whether it is surely a number, and no text like ``"same"``: it is computed with."""
        fact = self.ctx.fact(node)
        number = isinstance(fact, Scalar) and fact.kind == "int" or isinstance(node, ast.BinOp)
        return number or isinstance(node, ast.Constant) and isinstance(node.value, int)

    def _variable(self, node: ast.stmt, layer: ast.expr, name: str, form: str, value: ast.expr) -> bool:
        """A parameter or buffer of a layer, under Flax's name and in its layout."""
        holder = self._text(layer)
        if isinstance(value, ast.Constant) and value.value is None:
            return self._without(node, layer, name, form)
        fact = self.ctx.fact(value)
        made = self._made(value)
        other = self.variables.parameter(value) if isinstance(value, ast.Attribute) else None
        if made is not None:
            wrapper, data = made
            piece = self.renderer.argument(data)
            text = self.variables.in_flax_layout(ast.Attribute(layer, name), piece) if form == "kernel" else piece.text
            lines = [f"{holder}.{form} = {self.renderer.need(wrapper)}({text})"]
            self._write(node, [*lines, *self._switched(layer, name, "True")])
        elif other is not None and form != "kernel" and not other[1]:
            self._write(node, [f"{holder}.{form} = {other[0]}"])
        elif form == "kernel":
            return self._left(node, name, "the kernel has another layout in Flax: assign nnx.Param of it, transposed")
        elif isinstance(fact, Tensor) and not fact.variable:
            self._write(node, [f"{holder}.{form}[...] = {self.renderer.argument(value).text}"])
        elif form != name or not isinstance(node, ast.Assign):
            self._write(node, [f"{holder}.{form} = {self.renderer.render(value).text}"])
        else:
            return False
        return True

    def _made(self, value: ast.expr) -> tuple[str, ast.expr] | None:
        """The kind of Variable that a call like ``nn.Parameter(data)`` makes, and its data."""
        fact = self.ctx.fact(value.func) if isinstance(value, ast.Call) else None
        if not isinstance(fact, Qual) or fact.name not in names_with(Trait.PARAMETER):
            return None
        assert isinstance(value, ast.Call)
        data, trained = argument(value, 0, "data"), argument(value, 1, "requires_grad")
        if data is None or len(value.args) + len(value.keywords) > 1 + (trained is not None):
            return None
        if trained is None or isinstance(trained, ast.Constant) and trained.value is True:
            return ("Buffer" if fact.name.endswith("Buffer") else "nnx.Param"), data
        return ("Buffer", data) if isinstance(trained, ast.Constant) and trained.value is False else None

    def _without(self, node: ast.stmt, layer: ast.expr, name: str, form: str) -> bool:
        """``layer.bias = None``."""
        lines = self._switched(layer, name, "False")
        if not lines:
            return self._left(node, name, f"the layer in Flax needs its {form}: build it without")
        self._write(node, [f"{self._text(layer)}.{form} = None", *lines])
        return True

    def _switched(self, layer: ast.expr, name: str, value: str) -> list[str]:
        """The statement that tells a layer in Flax whether it has a parameter, where it isn't so already."""
        owner = self.ctx.fact(layer)
        switch = self._switch(owner, name)
        if switch is None or value == "True" and self._surely_has(layer, owner, name):
            return []
        return [f"{self._text(layer)}.{switch} = {value}"]

    def _surely_has(self, layer: ast.expr, owner: Fact, name: str) -> bool:
        """Whether the layer was built with the parameter: one constructor is in sight, and says so."""
        if not isinstance(owner, Layer) or owner.node is None or owner.name not in LAYERS:
            return False
        text = ast.unparse(layer)
        assigned = [
            node
            for node in symbols.walk(self.ctx.source.tree)
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and text in map(ast.unparse, node.targets if isinstance(node, ast.Assign) else [node.target])
        ]
        given = bind(LAYERS[owner.name].signature, owner.node, None)
        built_with = given is not None and [ast.unparse(n) for n in given.get(name, [])] in ([], ["True"])
        return built_with and len(assigned) == 1

    @staticmethod
    def _switch(owner: Fact, name: str) -> str | None:
        """The flag of a layer in Flax that says whether it has a parameter."""
        switches = {LAYERS[n].switches.get(name) for n in layer_names(owner) if n in LAYERS}
        return switches.pop() if len(switches) == 1 else None

    def _of_unknown_class(self, node: ast.stmt, owner: Fact, name: str, value: ast.expr) -> bool:
        """``module.weight = nn.Parameter(w)`` where the module may be a layer of any kind."""
        renamed = name in VARIABLES - {"bias"} or name == "bias" and self._is_none(value)
        anything = owner == AnyModule() or isinstance(value, ast.Call) and self._made(value) and not is_module(owner)
        if not renamed or not anything or isinstance(owner, Instance):
            return False
        return self._left(node, name, "the class of this layer isn't known here, and Flax's layers call it otherwise")

    def _under_some_name(self, node: ast.stmt, layer: ast.expr, value: ast.expr) -> bool:
        """``setattr(layer, name, nn.Parameter(w))``: which of the layer's parameters it is, isn't known."""
        owner, fact = self.ctx.fact(layer), self.ctx.fact(value)
        is_layer = bool(layer_names(owner)) and not isinstance(owner, Instance) or owner == AnyModule()
        if not is_layer or not (isinstance(fact, Tensor) and fact.variable):
            return False
        return self._left(
            node, "__setattr__", "which parameter this is isn't known here, and Flax calls them otherwise"
        )

    def _removed(self, node: ast.stmt, layer: ast.expr, name: str | None) -> bool:
        """``del layer.weight``: a layer in Flax can't be without what it was built with."""
        owner = self.ctx.fact(layer)
        own = isinstance(owner, Instance) and not (name and flax_names(owner, name))
        if own or not is_module(owner) or not layer_names(owner) and owner != AnyModule():
            return False
        if name is not None and name not in VARIABLES:
            return False
        reason = "a layer in Flax can't be without the parameter it was built with: build it without, or replace it"
        return self._left(node, name or "__delattr__", reason)

    # --- texts ----------------------------------------------------------------------------------------------------

    def _text(self, layer: ast.expr) -> str:
        return bracket(self.renderer.render(layer), ATOM)

    def _write(self, node: ast.stmt, lines: list[str]) -> None:
        """Statements in the place of one."""
        alone = self.ctx.source.starts_line(node)
        self.ctx.edits.replace(node, lines[0] if alone else "; ".join(lines))
        if alone and lines[1:]:
            self.ctx.edits.insert_after(node, lines[1:])
        self.ctx.report.count_converted()

    def _left(self, node: ast.stmt, name: str, reason: str) -> bool:
        self.ctx.report.gap(node, f"torch.nn.Module.{name}", "unsure", reason)
        return True

    @staticmethod
    def _is_none(value: ast.expr) -> bool:
        return isinstance(value, ast.Constant) and value.value is None
