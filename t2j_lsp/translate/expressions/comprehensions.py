"""Lambdas, comprehensions and f-strings: nothing that they hold can be put in front of the statement."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager

from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.pieces import Piece, bracket, slot

from .context import Context
from .copying import Copier
from .handlers import ExpressionRenderer
from .hashed_arrays import report_hashed
from .known_values import KnownValues

PICKED = Gate(words=frozenset({"filter"}))
"""Parameters of which some are picked by a function."""
_ALWAYS = "always_true_"
"""Stands for a condition that goes."""


@contextmanager
def not_hoistable(ctx: Context) -> Iterator[None]:
    """Inside a lambda or comprehension nothing can be put in front of the statement."""
    current = ctx.scope.statement
    saved = current.hoistable if current is not None else False
    if current is not None:
        current.hoistable = False
    try:
        yield
    finally:
        if current is not None:
            current.hoistable = saved


_STRING = re.compile(r"""(?<![\w"'])(?:"(?!"")[^"\n]*"|'(?!'')[^'\n]*')""")
"""A string on one line, in single or double quotes."""


class Comprehensions:
    """Copies lambdas, comprehensions and f-strings."""

    def __init__(self, context: Context, renderer: ExpressionRenderer, copier: Copier, values: KnownValues) -> None:
        self.ctx = context
        self.renderer = renderer
        self.copier = copier
        self.values = values

    def function(self, node: ast.Lambda) -> Piece:
        """A lambda."""
        with not_hoistable(self.ctx):
            piece = self.copier.generic(node)
        if node not in self.ctx.inference.state.uses.called_as_classes:
            return piece
        body, given = self.renderer.render(node.body).text, node.args
        parameters = [] if not ast.unparse(given) else [ast.unparse(given)]
        if given.kwarg is None:
            parameters.append("rngs" if given.kwonlyargs or given.vararg else "*, rngs")
        return Piece(f"lambda {', '.join(parameters)}: {body}", piece.precedence)

    def display(self, node: ast.Dict | ast.Set) -> None:
        """``{x: 1}``."""
        report_hashed(self.ctx, node)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Piece:
        """A comprehension, without conditions that always hold in JAX."""
        report_hashed(self.ctx, node)
        with not_hoistable(self.ctx):
            for condition in (c for generator in node.generators for c in generator.ifs):
                if self._always_trained(condition):
                    self.renderer.put(condition, Piece(_ALWAYS))
            piece = self.copier.generic(node)
        return Piece(re.sub(rf"\s+if {_ALWAYS}\b", "", piece.text), piece.precedence)

    def dict_of_arrays(self, node: ast.DictComp) -> Piece | None:
        """A comprehension over a dict of a module's arrays; its order stays through JAX, which sorts plain dicts."""
        match node:
            case ast.DictComp(key=key, value=value, generators=[ast.comprehension(target, walked, ifs=[])]):
                if walked not in self.ctx.inference.state.named_arrays:
                    return None
            case _:
                return None
        with not_hoistable(self.ctx):
            pairs = self.renderer.render(walked).text
            name, array = self.renderer.render(key).text, self.renderer.render(value).text
        match target:
            case ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]) if name == first:
                if array == second:
                    return Piece(pairs.removesuffix(".items()"))
                if array == f"jax.lax.stop_gradient({second})":
                    return Piece(f"jax.lax.stop_gradient({pairs.removesuffix('.items()')})")
        made = self.renderer.need("OrderedDict")
        return Piece(f"{made}(({name}, {array}) for {ast.unparse(target)} in {pairs})")

    def trained(self, node: ast.Call) -> Piece | None:
        """``filter(lambda p: p.requires_grad, parameters)``: all of them."""
        match node:
            case ast.Call(func=ast.Name(id="filter"), args=[ast.Lambda(body=body), walked], keywords=[]):
                parent = self.ctx.source.parents.get(node)
                taken = isinstance(parent, ast.Call) and ast.unparse(parent.func) == "next"
                return self.renderer.render(walked) if not taken and self._always_trained(body) else None
        return None

    def _always_trained(self, node: ast.expr) -> bool:
        """``p.requires_grad`` of a module's parameter, in a file that freezes none."""
        if not isinstance(node, ast.Attribute) or node.attr != "requires_grad" or self.ctx.inference.freezes:
            return False
        fact = self.ctx.fact(node.value)
        if not isinstance(fact, Tensor) or not fact.any_layout:
            return False
        reason = "every nnx.Param counts as trained; frozen ones are picked where the gradient is taken"
        self.ctx.report.note(node, "torch.Tensor.requires_grad", "note", reason)
        return True

    def fstring(self, node: ast.JoinedStr) -> Piece:
        """Only expressions that keep the literal's quotes intact are put back."""
        self.values.text(node)
        segment = self.ctx.source.segment(node)
        start, end = self.ctx.source.span(node)
        out: list[str] = []
        position = start
        with not_hoistable(self.ctx):
            for value in _formatted(node):
                begin, stop = self.ctx.source.span(value.value)
                piece = self.copier.render_in(value, "value", value.value)
                changed = piece.text != self.ctx.source.text[begin:stop]
                put = _requoted(bracket(piece, slot(value, "value")), segment) if changed else piece.text
                out += [self.ctx.source.text[position:begin], put]
                position = stop
        text = "".join(out) + self.ctx.source.text[position:end]
        if text == segment:
            return Piece(segment)
        try:
            ast.parse(f"({text})", mode="eval")  # it may go over several lines
        except SyntaxError:
            self.ctx.report.gap(
                node, "f-string", "unsure", "the converted expression does not fit into the f-string's quotes"
            )
            return Piece(segment)
        return Piece(text)


def _requoted(text: str, literal: str) -> str:
    """Code for the inside of an f-string, its own strings in the quotes that the f-string's literal leaves over."""
    taken = next(character for character in literal if character in "\"'")
    other = "'" if taken == '"' else '"'
    out: list[str] = []
    at = 0
    for match in _STRING.finditer(text):
        if match[0][0] == taken and other not in match[0] and "\\" not in match[0]:
            out += [text[at : match.start()], other, match[0][1:-1], other]
            at = match.end()
    return "".join([*out, text[at:]])


def _formatted(node: ast.JoinedStr) -> Iterator[ast.FormattedValue]:
    """The replacement fields of an f-string in order, those in format specifications among them."""
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            yield value
            if isinstance(value.format_spec, ast.JoinedStr):
                yield from _formatted(value.format_spec)
