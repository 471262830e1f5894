"""Classes that derive from a convolution and keep a ``mask``, as PixelCNN's: Flax's convolution has one of its own.

It multiplies that with its kernel, in its own layout. The class's is called ``kernel_mask``, which the weights know.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import Layer, Tensor
from t2j_lsp.translate.rule.layer import OWN_MEANING, means_something_else
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText

_OLD, _NEW = "mask", "kernel_mask"


def with_masks_of_kernels_renamed(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which they are; None where there are none, or something may read one of them in another way."""
    source = inference.source
    if _OLD not in source.words or _NEW in source.words or not any(gap.reason == OWN_MEANING for gap in gaps):
        return None
    edits: Edits = []
    names = set[ast.Constant]()
    for node in source.nodes:
        match node:
            case ast.Attribute(value=owner, attr=name) if name == _OLD:
                if means_something_else(inference.fact(owner), _OLD):
                    end = source.span(node)[1]
                    edits.append((end - len(_OLD), end, [Fragment(_NEW, end - len(_OLD), end)]))
                elif not isinstance(inference.fact(owner), Instance | Layer | Tensor):
                    return None
            case ast.Call(
                func=ast.Attribute(value=owner, attr="register_buffer"), args=[ast.Constant(value=name) as key, *_]
            ) if name == _OLD:
                names.add(key)
                if means_something_else(inference.fact(owner), _OLD):
                    start, end = source.span(key)
                    edits.append((start, end, [Fragment(f'"{_NEW}"', start, end)]))
    if any(isinstance(n, ast.Constant) and n.value == _OLD and n not in names for n in source.nodes):
        return None
    return RearrangedText.of(source.text, edits)
