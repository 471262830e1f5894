"""Rewrites assignments: into arrays, attributes and variables; weight tying; names that only held a device."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.render import Renderer
from t2j_lsp.translate.expressions.site import used_of_pair
from t2j_lsp.translate.rule.facts import (
    Instance,
    Layer,
    ListOf,
    Object,
    Partial,
    Qual,
    Scalar,
    Tensor,
    Tuple,
    is_module,
    is_tensor,
)
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.precedence import ATOM, UNARY, Part, bracket
from t2j_lsp.translate.rule.record import REGISTRY

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_AT: dict[type[ast.operator], str] = {ast.Add: "add", ast.Mult: "multiply", ast.Div: "divide"}


class Stores:
    """Assignments, for the statement pass."""

    ctx: Context
    renderer: Renderer

    if TYPE_CHECKING:

        def header(self, node: ast.AST) -> None: ...
        def expression(self, parent: ast.AST, field: str, child: ast.expr) -> None: ...
        def annotation(self, node: ast.expr | None) -> None: ...

    def _assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if node in self.ctx.plan.factory_dicts:
            self.ctx.edits.delete(node)
            reason = "device and dtype of new parameters go: JAX's default device, float32; nnx layers take param_dtype"
            self.ctx.report.note(node, "dtype", "note", reason)
            return
        if isinstance(target, ast.Attribute):
            owner = self.ctx.fact(target.value)
            rule = REGISTRY.get(f"{owner.name}.{target.attr}") if isinstance(owner, Qual) else None
            if rule is not None and rule.drop:
                self.ctx.edits.delete(node)
                self.ctx.report.converted += 1
                return
        if len(node.targets) == 1 and self._used_part(node, target):
            return
        if len(node.targets) == 1 and self._only_moves(node, target):
            return
        if len(node.targets) == 1 and self._device(node, target):
            return
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and self._store(node, target, node.value, None):
            return
        if len(node.targets) == 1 and isinstance(target, ast.Attribute) and self._attribute_store(node, target):
            return
        self.header(node)

    def _only_moves(self, node: ast.Assign, target: ast.expr) -> bool:
        """``model = model.to(device)`` and ``x, y = x.to(device), y.to(device)`` go: they would say ``x = x``."""
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        moves = all(isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) for v in values)
        if not moves or self.renderer.render(node.value).text != self.ctx.source.segment(target):
            return False
        self.ctx.edits.delete(node)
        return True

    def _used_part(self, node: ast.Assign, target: ast.expr) -> bool:
        """``_, indices = x.max(1)``: only the part that is used."""
        used = used_of_pair(target)
        if used is None or not isinstance(node.value, ast.Call) or not isinstance(target, ast.Tuple):
            return False
        piece = self.renderer.render(node.value)
        if not isinstance(piece, Part):
            return False
        self.ctx.edits.replace(node, f"{self.ctx.source.segment(target.elts[used])} = {piece.text}")
        return True

    def _device(self, node: ast.Assign, target: ast.expr) -> bool:
        """``device = torch.device(...)`` goes when nothing in the output reads it."""
        if not isinstance(target, ast.Name):
            return False
        fact = self.ctx.fact(node.value)
        if (
            isinstance(fact, Partial)
            and isinstance(fact.function, Qual)
            and REGISTRY.get(fact.function.name) is not None
        ):
            self.header(node)
            self.ctx.edits.removable[node] = target.id
            return True
        if isinstance(node.value, ast.Attribute) and isinstance(fact, Object) and fact.kind == "device":
            self.header(node)
            self.ctx.edits.removable[node] = target.id
            return True
        mentions = any(
            isinstance(f := self.ctx.fact(n), Qual)
            and (
                f.name.startswith(("torch.cuda.is_available", "torch.backends.mps.is_available"))
                or f.name == "torch.device"
            )
            for n in ast.walk(node.value)
            if isinstance(n, ast.expr)
        )
        if not mentions or not (
            isinstance(fact, Object) and fact.kind == "device" or isinstance(fact, Scalar) and fact.kind == "str"
        ):
            return False
        self.ctx.edits.replace(node.value, f"{self.renderer.need('jax')}.devices()[0]")
        self.ctx.edits.removable[node] = target.id
        self.ctx.report.converted += 1
        return True

    def _store(self, node: ast.stmt, target: ast.Subscript, value: ast.expr, operator: ast.operator | None) -> bool:
        """``x[i] = v`` and ``x[i] += v`` on an array: ``x = x.at[i].set(v)``."""
        base = self.ctx.fact(target.value)
        if not isinstance(base, Tensor):
            return False
        variable = self.renderer.variables.parameter(target.value)
        if variable is not None and variable[1]:
            reason = f"{variable[0]} has Flax's layout; assign to its part explicitly"
            self.ctx.report.gap(node, "Tensor.__setitem__", "in-place", reason)
            return True
        holder = bracket(self.renderer.render(target.value), ATOM) if variable is None else variable[0]
        index = self.renderer.subscripts.index(target)
        right = self.renderer.argument(value)
        if base.variable or variable is not None:
            sign = _SIGNS[type(operator)] if operator is not None else ""
            self.ctx.edits.replace(node, f"{holder}[{index}] {sign}= {right.text}")
            return True
        if not isinstance(target.value, ast.Name) and not _attribute_of_name(target.value):
            self.ctx.report.gap(
                node,
                "Tensor.__setitem__",
                "in-place",
                "a write into a view or temporary array is not seen by its owner in JAX",
            )
            return True
        if self._whole_mask(target, value):
            amount = bracket(self.renderer.render(value), UNARY)
            text = right.text if operator is None else f"{holder} {_SIGNS[type(operator)]} {amount}"
            self.ctx.edits.replace(node, f"{holder} = {self.renderer.need('jnp')}.where({index}, {text}, {holder})")
            self.ctx.report.converted += 1
            return True
        if operator is None:
            new = f"{holder}.at[{index}].set({right.text})"
        elif type(operator) in _AT and _unique(target.slice):
            new = f"{holder}.at[{index}].{_AT[type(operator)]}({right.text})"
        else:
            symbol = _SIGNS[type(operator)]
            new = f"{holder}.at[{index}].set({holder}[{index}] {symbol} {bracket(right, ATOM)})"
        self.ctx.edits.replace(node, f"{holder} = {new}")
        self.ctx.report.converted += 1
        return True

    def _whole_mask(self, target: ast.Subscript, value: ast.expr) -> bool:
        """``x[x > 1] = 1``: one number in the places of a mask of x's shape. ``x.at[mask]`` doesn't run under jit."""
        mask, held = self.ctx.fact(target.slice), self.ctx.fact(target.value)
        if not isinstance(mask, Tensor) or mask.dtype != "bool" or not isinstance(held, Tensor):
            return False
        number = self.ctx.fact(value)
        if not (isinstance(number, Scalar) or isinstance(number, Tensor) and number.rank == 0):
            return False
        kind = number.kind if isinstance(number, Scalar) else number.dtype
        if held.dtype == "bool" and kind != "bool" or held.dtype == "int" and kind not in ("int", "bool"):
            return False  # jnp.where would widen the dtype, where a store rounds
        match target.slice:
            case ast.Compare(left=left, comparators=[other]):
                while isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute) and left.func.attr == "abs":
                    left = left.func.value
                own = ast.unparse(target.value)
                if ast.unparse(left) == own and (isinstance(self.ctx.fact(other), Scalar) or ast.unparse(other) == own):
                    return True
        return mask.rank is not None and mask.rank == held.rank

    def _attribute_store(self, node: ast.Assign, target: ast.Attribute) -> bool:
        """Assignments to attributes that hold variables, and weight tying."""
        owner = self.ctx.fact(target.value)
        asks = isinstance(node.value, ast.Constant) and node.value.value is True
        if target.attr == "requires_grad" and isinstance(owner, Tensor) and asks and not owner.variable:
            self.ctx.edits.delete(node)
            return True
        if target.attr == "requires_grad" and isinstance(owner, Tensor):
            self.ctx.report.gap(
                node,
                "Tensor.requires_grad",
                "refused",
                "freeze parameters with nnx.DiffState and an optimizer mask instead",
            )
            return True
        if isinstance(owner, Tensor) and target.attr == "data":
            return self._data_store(node, target)
        if is_module(owner) and target.attr == "training":
            self.ctx.report.gap(node, "Module.training", "refused", "call model.train() or model.eval() instead")
            return True
        value = self.ctx.fact(node.value)
        if not isinstance(owner, Instance):
            return self._tie(node, target)
        if owner.cls.info.layer_base in ("torch.nn.Sequential", "torch.nn.ModuleDict") and is_module(value):
            return self._child_of_container(node, target, owner.cls.info.layer_base)
        old = owner.cls.info.attribute(target.attr)
        is_new_variable = isinstance(value, Tensor) and value.variable
        if isinstance(old, Tensor) and old.variable and not is_new_variable and isinstance(value, Tensor):
            self.ctx.edits.replace(
                node, f"{self.ctx.source.segment(target)}[...] = {self.renderer.argument(node.value).text}"
            )
            return True
        if self._none_first(node, target, owner):
            self.ctx.edits.replace(node.value, f"{self.renderer.need('nnx')}.data(None)")
            return True
        if self._empty_first(node, target, owner):
            text = self.ctx.source.segment(node.value)
            self.ctx.edits.replace(node.value, f"{self.renderer.need('nnx')}.data({text})")
            return True
        if isinstance(value, Tuple | ListOf) and owner.cls.info.is_module:
            return self._container_attribute(node, target, element(value))
        return False

    def _child_of_container(self, node: ast.Assign, target: ast.Attribute, base: str) -> bool:
        """``self.norm = layer`` in a subclass of Sequential makes the layer one of its steps."""
        holder, value = self.renderer.render(target.value).text, self.renderer.render(node.value).text
        if base == "torch.nn.Sequential":
            self.ctx.edits.replace(node, f'{holder}.add_module("{target.attr}", {value})')
        else:
            self.ctx.edits.replace(node, f'{holder}["{target.attr}"] = {value}')
        return True

    def _container_attribute(self, node: ast.Assign, target: ast.Attribute, item: object) -> bool:
        """A Python list of modules or arrays as an attribute: NNX wants it marked as data."""
        if is_module(item):  # type: ignore[arg-type]
            wrapper = f"{self.renderer.need('nnx')}.List"
            if isinstance(node.value, ast.Dict):
                wrapper = f"{self.renderer.need('nnx')}.Dict"
            self.ctx.report.note(
                node, "list", "note", "modules in a plain list are not registered in PyTorch, and are in NNX"
            )
        elif is_tensor(item):  # type: ignore[arg-type]
            wrapper = f"{self.renderer.need('nnx')}.data"
        else:
            return False
        piece = self.renderer.render(node.value)
        self.ctx.edits.replace(node.value, f"{wrapper}({piece.text})")
        return True

    def _none_first(self, node: ast.Assign | ast.AnnAssign, target: ast.Attribute, owner: Instance) -> bool:
        """``self.x = None`` that a later statement overwrites with a module or array."""
        if not (isinstance(node.value, ast.Constant) and node.value.value is None) or not owner.cls.info.is_module:
            return False
        attribute = owner.cls.info.attribute(target.attr)
        if not (is_tensor(attribute) or is_module(attribute)):
            return False
        return isinstance(self.ctx.source.parents.get(node), ast.FunctionDef)

    def _empty_first(self, node: ast.Assign, target: ast.Attribute, owner: Instance) -> bool:
        """``self.x = []`` in a module's constructor, where another method assigns an array to the attribute."""
        value, info = node.value, owner.cls.info
        empty = (
            isinstance(value, ast.List | ast.Tuple) and not value.elts or isinstance(value, ast.Dict) and not value.keys
        )
        function = self.ctx.scope.function
        if not empty or not info.is_module or function is None or function.name != "__init__":
            return False
        said = info.said.get(target.attr, {})
        return any(is_tensor(fact) for author, fact in said.items() if author is not function)

    def _data_store(self, node: ast.Assign, target: ast.Attribute) -> bool:
        parameter = self.renderer.variables.parameter(target.value)
        if parameter is None:
            self.ctx.report.gap(node, "Tensor.data", "in-place", "which parameter this writes into is not known here")
            return True
        value = self.renderer.argument(node.value)
        right = self.renderer.variables.in_flax_layout(target.value, value) if parameter[1] else value.text
        if right is None:
            self._unknown_layout(node, parameter[0])
            return True
        self.ctx.edits.replace(node, f"{parameter[0]}[...] = {right}")
        return True

    def _tie(self, node: ast.Assign, target: ast.Attribute) -> bool:
        """``self.head.weight = self.embed.weight``: one parameter under two names."""
        if target.attr != "weight" or not isinstance(node.value, ast.Attribute) or node.value.attr != "weight":
            return False
        into, source = self.ctx.fact(target.value), self.ctx.fact(node.value.value)
        if not isinstance(into, Layer) or not isinstance(source, Layer):
            self.ctx.report.gap(node, "weight tying", "unsure", "which layers share this weight is not known here")
            return True
        names = {into.name, source.name}
        if names == {"torch.nn.Embedding", "torch.nn.Linear"}:
            if into.name == "torch.nn.Embedding":
                if not self.renderer.layers.is_linears_table(into.node):
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
        bias = layer.node is not None and any(
            k.arg == "bias" and isinstance(k.value, ast.Constant) and k.value.value is False
            for k in layer.node.keywords
        )
        if not bias or not isinstance(linear, ast.Attribute):
            self.ctx.report.gap(
                node, "weight tying", "unsure", "tying a Linear with a bias, or one whose constructor is not in sight"
            )
            return True
        built = self.ctx.source.parents.get(layer.node) if layer.node is not None else None
        if (
            isinstance(built, ast.Assign)
            and self.ctx.source.block_of(built) is self.ctx.source.block_of(node)
            and built is not node
        ):
            start, end = self.ctx.source.span(built)
            self.ctx.edits.drop(start, end)
            self.ctx.edits.delete(built)
        head, table = self.renderer.render(linear).text, self.renderer.render(embedding).text
        self.ctx.edits.replace(node, f"{head} = {self.renderer.need('TiedLinear')}({table}.embedding)")
        self.ctx.report.converted += 1
        return True

    def _annotated(self, node: ast.AnnAssign) -> None:
        self.annotation(node.annotation)
        target = node.target
        if node.value is not None and isinstance(target, ast.Attribute):
            owner = self.ctx.fact(target.value)
            if isinstance(owner, Instance) and self._none_first(node, target, owner):
                self.ctx.edits.replace(node.value, f"{self.renderer.need('nnx')}.data(None)")
                return
        if node.value is not None:
            self.expression(node, "value", node.value)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript) and self._store(node, target, node.value, node.op):
            return
        variable = self.renderer.variables.parameter(target)
        if variable is not None:
            self._augmented_variable(node, variable)
            return
        self.expression(node, "value", node.value)

    def _unknown_layout(self, node: ast.stmt, text: str) -> None:
        reason = f"whether {text} is a kernel in Flax's layout is not known here"
        self.ctx.report.gap(node, "in-place", "in-place", reason)

    def _augmented_variable(self, node: ast.AugAssign, variable: tuple[str, bool]) -> None:
        """``self.weight *= 0.5`` on a parameter or buffer; into a kernel a tensor goes in Flax's layout."""
        text, flax_layout = variable
        value = self.renderer.argument(node.value)
        right = value.text
        if flax_layout and not isinstance(self.ctx.fact(node.value), Scalar):
            moved = self.renderer.variables.in_flax_layout(node.target, value)
            if moved is None:
                self._unknown_layout(node, text)
                return
            right = moved
        self.ctx.edits.replace(node, f"{text}[...] {_SIGNS[type(node.op)]}= {right}")


def _unique(index: ast.expr) -> bool:
    """Whether an index names every element at most once (``at[].add`` would count repeated ones twice)."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, ast.Slice | ast.Constant | ast.UnaryOp) for p in parts)


def _attribute_of_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
