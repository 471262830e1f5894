"""Lazy layers, ``nn.Sequential(nn.Linear(4, 8), nn.LazyLinear(2))``: with the sizes that they take.

The layers in front of one say it, together with the input of a first call, ``net(torch.randn(1, 1, 28, 28))``, or with
what annotations say of it; of the attributes of a module (`lazy_children`) what its ``forward`` hands them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.containers import SEQUENTIAL
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.sizes import UNKNOWN_SIZES, Sizes
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText

from .lazy_children import lazy_children
from .lazy_sizes import SizedLayers, agree, bound_by, follow, is_changed, made_sizes, named


def with_sizes_of_lazy_layers(inference: Inference, gaps: Sequence[Finding]) -> RearrangedText | None:
    """The text in which lazy layers whose sizes are known are others; None if there are none."""
    source = inference.source
    if not gaps or "Lazy" not in source.text:
        return None
    sized: SizedLayers = {}
    for node in source.nodes:
        if isinstance(node, ast.Call) and named(inference, node) == SEQUENTIAL and not _is_inner(inference, node):
            sized |= _agreed(inference, node)
    for node, (eager, size) in lazy_children(inference).items():
        if size is not None:
            sized[node] = eager, size
    return RearrangedText.of(source.text, _edits(inference, sized))


def _is_inner(inference: Inference, node: ast.Call) -> bool:
    parent = inference.source.parents[node]
    return isinstance(parent, ast.Call) and named(inference, parent) == SEQUENTIAL


def _agreed(inference: Inference, node: ast.Call) -> SizedLayers:
    """The lazy layers of a Sequential, as far as all the inputs that are in sight say the same of them."""
    sized: SizedLayers = {}
    name = _own_name(inference, node)
    if name is not None and is_changed(inference, name):
        return sized
    inputs = [] if name is None else list(_inputs(inference, name))
    for sizes in [*inputs, UNKNOWN_SIZES]:
        one: SizedLayers = {}
        follow(inference, node, sizes, one)
        if not agree(sized, one):
            return {}
    return sized


def _own_name(inference: Inference, node: ast.Call) -> str | None:
    """The name that holds a Sequential, and nothing else anywhere in the file."""
    match inference.source.parents[node]:
        case ast.Assign(targets=[ast.Name(id=name)]) as made if bound_by(inference, name) is made:
            return name
    return None


def _inputs(inference: Inference, name: str) -> Iterator[Sizes]:
    """The sizes of what a Sequential is called with, by its name."""
    for call in inference.source.nodes:
        match call:
            case ast.Call(func=ast.Name(id=called), args=[given, *_]) if called == name:
                sizes = made_sizes(inference, given)
                if sizes is not None:
                    yield sizes


def _edits(inference: Inference, sized: SizedLayers) -> Edits:
    edits: Edits = []
    for node, (eager, size) in sized.items():
        if size is None or not isinstance(node.func, ast.Attribute):
            continue
        start, end = inference.source.span(node)
        stop = inference.source.span(node.func)[1]
        head = inference.source.text[start:stop].rpartition(".")[0]
        rest = inference.source.text[stop:end]
        inside = rest.lstrip()[1:]
        given = f"{size}" if inside.strip() == ")" else f"{size}, "
        text = f"{head}.{eager}({given}{inside.lstrip(' ')}"
        edits.append((start, end, [Fragment(text, start, end)]))
    return edits
