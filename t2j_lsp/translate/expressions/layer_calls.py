"""Renders what concerns modules: building layers, their methods and attributes, parameters and in-place writes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from t2j_lsp.contract import NOTE_CODES
from t2j_lsp.translate.inference.state import dotted
from t2j_lsp.translate.rule.binding import arguments_of, bind
from t2j_lsp.translate.rule.factory import FactoryKeywords
from t2j_lsp.translate.rule.facts import TENSOR, Fact, Instance, Layer, Tensor, is_module
from t2j_lsp.translate.rule.layer import LAYERS, LayerRule
from t2j_lsp.translate.rule.precedence import ATOM, Piece, bracket
from t2j_lsp.translate.rule.record import Call, CannotHoist, Refusal

from .context import Context
from .module_methods import ModuleMethods
from .needs import Needs
from .site import CallSite, rngs_expression

_TABLE = ("num_embeddings", "embedding_dim", "device", "dtype")
LAYOUTS = {"kernel": ("torch.nn.Linear", "torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d")}


class LayerCalls(ModuleMethods):
    """Layers and modules, for the renderer."""

    ctx: Context
    needs: Needs

    if TYPE_CHECKING:

        def render(self, node: ast.expr) -> Piece: ...
        def argument(self, node: ast.expr) -> Piece: ...
        def need(self, name: str) -> str: ...
        def generic(self, node: ast.expr) -> Piece: ...
        def splice(self, node: ast.AST, start: int | None = None, end: int | None = None) -> str: ...
        def copy_arguments(self, node: ast.Call) -> Piece: ...

    # --- building -------------------------------------------------------------------------------------------------

    def layer_call(self, node: ast.Call, layer: LayerRule) -> Piece | None:
        """``nn.Linear(3, 4)``: the direct form where it is exact, else the helper with the same arguments."""
        if bind(layer.signature, node, None) is None and not _spreads(node):
            self.ctx.gap(node, layer.name, "arguments", f"the arguments do not fit {layer.signature.text}")
            return self.copy_arguments(node)
        piece = self._direct(node, layer)
        if piece is None:
            piece = self._helper_call(node, layer)
        self.ctx.converted += not self.ctx.quiet
        if layer.note is not None:
            self.ctx.note(node, layer.name, NOTE_CODES[layer.fidelity], layer.note)
        return piece

    def _direct(self, node: ast.Call, layer: LayerRule) -> Piece | None:
        asked = self.ctx.inference.isinstance_classes
        if layer.function and layer.name in asked:
            return None
        build = layer.direct
        if node in self.ctx.layout.channels_last and layer.channels_last is not None:
            build = layer.channels_last
        if layer.on_linear is not None and self.is_linears_table(node):
            build = layer.on_linear
        if layer.name == "torch.nn.Sequential":
            return self._sequential(node)
        if layer.name == "torch.nn.ModuleList" and len(node.args) == 1 and not node.keywords:
            return self._module_list(node, node.args[0])
        if build is None:
            return None
        bound = bind(layer.signature, node, None)
        if bound is None:
            return None
        site = CallSite(self, node, layer.name)  # type: ignore[arg-type]
        call = Call(layer.signature, arguments_of(layer.signature, bound, self.argument, self.ctx.fact), site, node)
        try:
            result = build(call)
        except CannotHoist:
            return None
        if isinstance(result, Refusal):
            self.ctx.gap(node, layer.name, "refused", result.reason)
            return self.copy_arguments(node)
        return result

    def is_linears_table(self, node: ast.Call | None) -> bool:
        """Whether a statement behind an Embedding's constructor, in its block, makes a Linear's parameter its table."""
        if node is None or len(node.args) > 2 or any(k.arg not in _TABLE for k in node.keywords):
            return False
        statement: ast.AST | None = node
        while statement is not None and not isinstance(statement, ast.stmt):
            if isinstance(statement, ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.Lambda):
                return False  # One of several.
            statement = self.ctx.parents.get(statement)
        block = self.ctx.block_of(statement) if statement is not None else None
        for other in block or []:
            match other:
                case ast.Assign(
                    targets=[ast.Attribute(value=into, attr="weight")],
                    value=ast.Attribute(value=ast.Attribute() as source, attr="weight"),
                ) if dotted(into):
                    table, linear = self.ctx.fact(into), self.ctx.fact(source)
                    if isinstance(table, Layer) and table.node is node and isinstance(linear, Layer):
                        return linear.name == "torch.nn.Linear"
        return False

    def _module_list(self, node: ast.Call, items: ast.expr) -> Piece:
        """nnx.List in the layout of the call. A generator's own text has the call's brackets."""
        head = f"{self.need('nnx')}.List"
        if isinstance(items, ast.GeneratorExp):
            return Piece(head + bracket(self.argument(items), ATOM))
        return self.rebuilt(node, head, [], None)

    def _sequential(self, node: ast.Call) -> Piece | None:
        """nnx.Sequential where the list is only called, and no child returns a tuple, which nnx would spread."""
        inference = self.ctx.inference
        if node in inference.indexed or inference.indexes_any or layer_named(inference, "torch.nn.Sequential"):
            return None
        if not node.args or node.keywords:
            return None
        for argument in node.args:
            fact = self.ctx.fact(argument)
            starred = isinstance(argument, ast.Starred)
            if not is_module(fact) or (isinstance(argument, ast.Starred) and len(node.args) > 1 and not starred):
                return None
            if not isinstance(self._called_fact(fact), Tensor):
                return None
        return self.rebuilt(node, f"{self.need('nnx')}.Sequential", [], None)

    def _called_fact(self, fact: Fact) -> Fact:
        """The fact of what a module returns."""
        match fact:
            case Layer() if fact.name in LAYERS:
                return LAYERS[fact.name].result
            case Instance():
                forward = fact.cls.info.method("forward")
                if forward is not None:
                    return self.ctx.inference.infer_function(forward)
                return TENSOR
            case _:
                return TENSOR

    def _helper_call(self, node: ast.Call, layer: LayerRule) -> Piece:
        dropped = [k for k in node.keywords if k.arg in ("device", "dtype")]
        rngs = rngs_expression(self.ctx) if layer.random else None
        return self.rebuilt(node, self.need(layer.helper), dropped, rngs)

    def append_rngs(self, node: ast.Call) -> Piece:
        """The call with its arguments rendered and ``rngs=...`` added at the end."""
        if any(k.arg == "rngs" for k in node.keywords):
            return self.generic(node)
        return self.rebuilt(node, None, [], rngs_expression(self.ctx))

    def rebuilt(self, node: ast.Call, head: str | None, dropped: list[ast.keyword], rngs: str | None) -> Piece:
        """The call in its own layout, with another callee, without some keywords, with ``rngs`` added."""
        source = self.ctx.source
        _, end = source.span(node)
        start, func_end = source.span(node.func)
        if head is None:
            head = bracket(self.render(node.func), ATOM)
        arguments: list[ast.expr | ast.keyword] = sorted(
            [*node.args, *(k for k in node.keywords)], key=lambda a: source.span(a)[0]
        )
        dropped = dropped + [k for k in node.keywords if isinstance(k, FactoryKeywords)]
        kept = [a for a in arguments if a not in dropped]
        opening = source.text.index("(", func_end, end)
        if not kept:
            inner = source.text[opening + 1 : end - 1] if not arguments else ""
            return Piece(f"{head}{source.text[func_end:opening]}({inner.rstrip()}{f'rngs={rngs}' if rngs else ''})")
        out = [head, source.text[func_end : opening + 1]]
        position = opening + 1
        for index, argument in enumerate(arguments):
            begin, stop = source.span(argument)
            if argument in dropped:
                if argument in arguments[:1] or all(a in dropped for a in arguments[:index]):
                    following = source.text.find(",", stop, end)
                    position = following + 1 if following >= 0 else stop
                    while position < end and source.text[position] in " ":
                        position += 1
                else:
                    position = stop
                    last_comma = "".join(out).rstrip()
                    if last_comma.endswith(","):
                        out = [last_comma[:-1]]
                continue
            gap = source.text[position:begin]
            if "".join(out[-1:]).rstrip().endswith(("(", ",")) and gap.lstrip().startswith(","):
                gap = gap.lstrip()[1:]
            out.append(gap)
            out.append(self._argument_text(node, argument))
            position = stop
        tail = source.text[position:end]
        if rngs:
            generator = len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp) and not node.keywords
            if generator and not out[-1].startswith("("):
                out[-1] = f"({out[-1]})"
            out.append(self._rngs_text(kept[-1], rngs))
        return Piece("".join(out) + tail)

    def _rngs_text(self, last: ast.expr | ast.keyword, rngs: str) -> str:
        """``, rngs=rngs``, on a line of its own where the arguments stand one to a line."""
        source = self.ctx.source
        begin, _ = source.span(last)
        line = source.line_of(begin)
        if source.text[source.starts[line - 1] : begin].strip():
            return f", rngs={rngs}"
        return f",{source.newline}{source.indent(line)}rngs={rngs}"

    def _argument_text(self, node: ast.Call, argument: ast.expr | ast.keyword) -> str:
        source = self.ctx.source
        if isinstance(argument, ast.keyword):
            begin, stop = source.span(argument)
            value_begin, value_stop = source.span(argument.value)
            prefix, suffix = source.text[begin:value_begin], source.text[value_stop:stop]
            return prefix + bracket(self.argument(argument.value), 1) + suffix
        if isinstance(argument, ast.Starred):
            return self.generic(argument).text
        return bracket(self.argument(argument), 1)

    # --- methods --------------------------------------------------------------------------------------------------

    # --- attributes -----------------------------------------------------------------------------------------------

    # --- in-place -------------------------------------------------------------------------------------------------


def layer_named(inference: object, name: str) -> bool:
    """Whether isinstance asks for this layer, so that its helper class has to be there."""
    return name in getattr(inference, "isinstance_classes", ())


def _spreads(node: ast.Call) -> bool:
    """Whether the call has ``*args`` or ``**kwargs``, which may hold anything."""
    unknown = any(k.arg is None and not isinstance(k, FactoryKeywords) for k in node.keywords)
    return unknown or any(isinstance(a, ast.Starred) for a in node.args)
