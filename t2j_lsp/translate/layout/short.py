"""Layers whose initial values make their lines too long: a function has these then, ``linear(3, 4, rngs=rngs)``.

An argument at each layer is what PyTorch's initial values cost. Where several layers of a file don't fit into their
lines for it, one short function that makes them costs less.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

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
    lines, limit = inference.source.lines, inference.source.line_limit
    saved: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for node, fact in inference.facts.items():
        if isinstance(node, ast.Call) and isinstance(fact, Layer) and fact.node is node:
            layer = LAYERS[fact.name]
            if layer.short is not None and (layer.channels_last is None or node in layout.channels_last):
                saved[layer.name] += _saved(inference, node, layer, lines, limit)
                count[layer.name] += 1
    return frozenset(name for name, gain in saved.items() if gain >= COST and count[name] > 1)


def _saved(inference: Inference, node: ast.Call, layer: LayerRule, lines: Sequence[str], limit: int) -> int:
    """How many lines the short form of a constructor call saves, as far as the text around it stays as it is."""
    long = _text(inference, node, layer, layer.channels_last or layer.direct)
    short = _text(inference, node, layer, layer.short)
    if long is None or short is None:
        return 0
    return lines_with(lines, node, long, limit) - lines_with(lines, node, short, limit)


def _text(inference: Inference, node: ast.Call, layer: LayerRule, form: Build | None) -> str | None:
    bound = bind(layer.signature, node, None)
    if bound is None or form is None:
        return None
    piece = form(silent_call(inference, layer.signature, bound, node))
    return piece.text if isinstance(piece, Piece) else None
