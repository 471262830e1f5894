"""What the constructor of a layer is given by classes that derive from it, and by who makes these.

``super().__init__(weight, None, None)``; ``FocalLoss(reduce=False)`` of a class without a constructor of its own.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.layer import LAYERS, LayerRule
from t2j_lsp.translate.rule.pieces import ARGUMENT, ATOM, Piece, bracket
from t2j_lsp.translate.rule.reductions import SWITCHES, is_said, reduction_said
from t2j_lsp.translate.source.helpers import constructor_parameters, positional_parameters

from .context import Context
from .copying import Copier
from .handlers import ExpressionRenderer
from .rngs import rngs_expression

_NOT_PASSED = "what stands for {} in JAX has no {}: where it is given, and not None, the layer differs"


class BaseConstructors:
    """Calls of the constructors of layers that stand for PyTorch's: some arguments they take by name, or not at all."""

    def __init__(self, ctx: Context, renderer: ExpressionRenderer, copier: Copier) -> None:
        self.ctx = ctx
        self.renderer = renderer
        self.copier = copier

    def call(self, node: ast.Call, base: str, layer: LayerRule | None, rngs: str | None) -> Piece:
        """``super().__init__(...)`` with what the constructor takes; ``base`` is the text of ``super()``."""
        return self._called(node, f"{base}.__init__", layer, rngs)

    def made(self, node: ast.Call, info: ClassInfo) -> Piece:
        """The call of a class, whose constructor may be that of a layer that it derives from."""
        layer = LAYERS.get(info.layer_base or "") if info.method("__init__") is None else None
        if layer is None or any(k.arg == "rngs" for k in node.keywords):
            return self.copier.append_rngs(node)
        return self._called(node, None, layer, rngs_expression(self.ctx))

    def _called(self, node: ast.Call, head: str | None, layer: LayerRule | None, rngs: str | None) -> Piece:
        if layer is None or (taken := constructor_parameters(layer.helper)) is None:
            return self.copier.rebuilt(node, head, [], rngs)
        if (named := self._by_name(node, layer, taken)) is not None:
            if rngs is not None:
                named.append(f"rngs={rngs}")
            return Piece(f"{head or bracket(self.renderer.render(node.func), ATOM)}({', '.join(named)})")
        return self.copier.rebuilt(node, head, self._untaken(node, layer, taken), rngs)

    def _by_name(self, node: ast.Call, layer: LayerRule, taken: tuple[str, ...]) -> list[str] | None:
        """The arguments, where those by position are not the ones that the constructor takes in these places."""
        bound = bind(layer.signature, node, None)
        places = positional_parameters(layer.helper)
        if bound is None or places is None or any(k.arg is None for k in node.keywords):
            return None
        values = {name: given[0] for name, given in bound.items() if len(given) == 1}
        by_place = [name for name, value in values.items() if value in node.args]
        if len(by_place) != len(node.args):
            return None
        switches = {name: _constant(values[name]) for name in SWITCHES if name in values}
        if not is_said(switches):
            switches = {}
            if tuple(by_place) == places[: len(by_place)]:
                return None
        texts: list[str] = []
        for name, value in values.items():
            if switches and name in (*SWITCHES, "reduction"):
                continue
            if name in taken:
                text = bracket(self.renderer.argument(value), ARGUMENT)
                placed = len(texts) < len(places) and places[len(texts)] == name and value in node.args
                texts.append(text if placed else f"{name}={text}")
            else:
                self._leave_out(node, layer, name, value)
        return [*texts, f'reduction="{reduction_said(switches)}"'] if switches else texts

    def _untaken(self, node: ast.Call, layer: LayerRule, taken: tuple[str, ...]) -> list[ast.keyword]:
        """What goes of a base's constructor: where and of what dtype PyTorch makes its parameters."""
        unknown = [k for k in node.keywords if k.arg is not None and k.arg not in taken]
        return [k for k in unknown if self._leave_out(node, layer, k.arg or "", k.value)]

    def _leave_out(self, node: ast.Call, layer: LayerRule, name: str, value: ast.expr) -> bool:
        """Whether an argument that the constructor doesn't take can go; else, that it can't is said."""
        if name in ("device", "dtype", *layer.ignore) or isinstance(value, ast.Constant) and value.value is None:
            return True
        if isinstance(value, ast.Name) and self._is_none_by_default(value.id):
            self.ctx.report.note(node, layer.name, "note", _NOT_PASSED.format(layer.name, repr(name)))
            return True
        self.ctx.report.gap(node, layer.name, "arguments", f"what stands for {layer.name} in JAX has no {name!r}")
        return False

    def _is_none_by_default(self, name: str) -> bool:
        """Whether a name is a parameter of the function at hand that is None by default, and is never assigned."""
        function = self.ctx.scope.function
        if function is None:
            return False
        defaults = [
            p.arg for p, d in symbols.defaults(function.node.args) if isinstance(d, ast.Constant) and d.value is None
        ]
        stored = (n.id for n in symbols.walk(function.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        return name in defaults and name not in stored


def _constant(value: ast.expr) -> object:
    """The value of a constant; of anything else its node."""
    return value.value if isinstance(value, ast.Constant) else value
