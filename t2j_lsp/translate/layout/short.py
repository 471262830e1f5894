"""Layers whose initial values make their lines too long: a function has these then, ``linear(3, 4, rngs=rngs)``.

An argument at each layer is what PyTorch's initial values cost. Where several layers of a file don't fit into their
lines for it, one short function that makes them costs less.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.facts import Layer
from t2j_lsp.translate.rule.layer import LAYERS, Build, LayerRule
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.width import lines_with

from .chains import silent_call
from .marks import Layout

COST = 3
"""Lines of such a function."""


def short_layers(inference: Inference, layout: Layout) -> frozenset[str]:
    """The kinds of layers that a function makes in this file."""
    made = {
        node: LAYERS[fact.name]
        for node, fact in inference.facts.items()
        if isinstance(node, ast.Call) and isinstance(fact, Layer) and fact.node is node
    }
    last = {node for node, layer in made.items() if layer.channels_last is None or node in layout.channels_last}
    count = Counter(layer.name for node, layer in made.items() if layer.short is not None and node in last)
    if all(number < 2 for number in count.values()):
        return frozenset()
    forms = {node: _long(inference, node, layer, layout) for node, layer in made.items()}
    saved: Counter[str] = Counter()
    for whole, inside in _written_together(inference, made).items():
        for name in {made[node].name for node in inside} & {name for name, number in count.items() if number > 1}:
            short = {
                node: _text(inference, node, made[node], made[node].short)
                for node in inside
                if made[node].name == name and node in last
            }
            saved[name] += _lines(inference, whole, forms, inside) - _lines(inference, whole, forms | short, inside)
    return frozenset(name for name, gain in saved.items() if gain >= COST)


def _long(inference: Inference, node: ast.Call, layer: LayerRule, layout: Layout) -> str | None:
    """The form that a layer has otherwise; None where its helper has PyTorch's arguments."""
    first = layer.channels_first if node in layout.channels_first and node not in layout.channels_last else None
    text = _text(inference, node, layer, first or layer.channels_last or layer.direct)
    if text is None and layer.random:
        call = inference.source.segment(node)
        call = ast.unparse(node) if "\n" in call else call  # a comma or a comment may stand behind the last argument
        return f"{call[:-1]}{', ' * (node.args != [] or node.keywords != [])}rngs=rngs)"
    return text


def _written_together(inference: Inference, made: Collection[ast.Call]) -> dict[ast.Call, list[ast.Call]]:
    """The layers that stand in one line of the source, by the outermost call around them: that of a Sequential."""
    together: dict[ast.Call, list[ast.Call]] = {}
    parents = inference.source.parents
    for node in made:
        whole, outer = node, parents.get(node)
        while isinstance(outer, ast.Call | ast.Starred | ast.List | ast.Tuple) and outer.lineno == outer.end_lineno:
            if isinstance(outer, ast.Call):
                whole = outer
            outer = parents.get(outer)
        together.setdefault(whole, []).append(node)
    return together


def _lines(
    inference: Inference, whole: ast.Call, forms: Mapping[ast.Call, str | None], inside: Sequence[ast.Call]
) -> int:
    """On how many lines a call stands with layers in these forms, as far as the text around them stays as it is."""
    source = inference.source
    start, end = source.span(whole)
    text, at = "", start
    for node in sorted((n for n in inside if forms[n] is not None), key=source.span):
        first, last = source.span(node)
        if first >= at:  # a layer that is made with another one stands in its text
            text, at = f"{text}{source.text[at:first]}{forms[node]}", last
    return lines_with(source.lines, whole, text + source.text[at:end], source.line_limit)


def _text(inference: Inference, node: ast.Call, layer: LayerRule, form: Build | None) -> str | None:
    bound = bind(layer.signature, node, None)
    if bound is None or form is None:
        return None
    piece = form(silent_call(inference, layer.signature, bound, node))
    return piece.text if isinstance(piece, Piece) else None
