"""Layers that stay channels-first and get Flax's arguments: where a file builds all of their kind in plain sight.

A class with PyTorch's constructor is needed where a layer's class travels (``norm_layer=nn.BatchNorm2d``), or where
code may ask a layer for what PyTorch's has. Elsewhere a subclass of Flax's with other axes is all there is to write.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import UNKNOWN, AnyModule, Layer, Qual, Tensor
from t2j_lsp.translate.rule.layer import LAYERS

from .chains import exact_constructors
from .uses import is_asked

OUTPUT_SIZE = "output_size"
"""What a transposed convolution may be called with, and Flax's can't."""


def channels_first(inference: Inference) -> set[ast.Call]:
    """The constructor calls that take Flax's arguments and PyTorch's axes."""
    kinds = {name for name in inference.mentioned if name in LAYERS and LAYERS[name].channels_first is not None}
    if not kinds:
        return set()
    exact = set(exact_constructors(inference, "channels_first"))
    gone = {name for name in kinds & inference.isinstance_classes if shared_base(name, inference) is None}
    gone |= set(_travelling(inference, kinds, exact))
    if words := _asked_of_anything(inference):
        gone |= {name for name in kinds - gone if words & _own_words(name)}
    return {node for node in exact if isinstance(fact := inference.facts[node], Layer) and fact.name in kinds - gone}


def shared_base(name: str, inference: Inference) -> str | None:
    """``nnx.Conv`` where ``isinstance`` asks for the only kind of convolution in the file; likewise batch norms.

    So where it asks for all kinds in the file at once: ``isinstance(m, (nn.Conv1d, nn.Conv2d))``.
    """
    flax = LAYERS[name].flax if name in LAYERS else None
    alike = {other for other in inference.mentioned if other in LAYERS and LAYERS[other].flax == flax}
    asked = [question & alike for question in inference.state.uses.isinstance_questions if question & alike]
    return flax if alike == {name} or name in alike and asked and all(one == alike for one in asked) else None


def _travelling(inference: Inference, kinds: set[str], exact: set[ast.Call]) -> Iterator[str]:
    """The kinds that are named otherwise than to build one with arguments that Flax has too."""
    parents = inference.source.parents
    for node, fact in inference.facts.items():
        if isinstance(fact, Qual) and fact.name in kinds:
            call = parents.get(node)
            built = isinstance(call, ast.Call) and call.func is node
            if built and call not in exact or not built and not _is_import(node) and not is_asked(node, parents):
                yield fact.name


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.alias | ast.Import | ast.ImportFrom)


def _own_words(name: str) -> set[str]:
    """What a layer of PyTorch may be asked for, or called with, and Flax's can't."""
    rule = LAYERS[name]
    return {*rule.signature.by_name, *rule.attributes, OUTPUT_SIZE} - {"bias", "device", "dtype", "inplace"}


def _asked_of_anything(inference: Inference) -> set[str]:
    """The attributes that code reads of values that may be any module, and the names that its strings say."""
    names: set[str] = set()
    parents = inference.source.parents
    for node in inference.source.nodes:
        match node:
            case ast.Constant(value="weight") if _is_question(parents.get(node)):
                pass  # `flax_name` is asked, which knows Flax's layers and what derives from them
            case ast.Attribute(ctx=ast.Load()):
                if not isinstance(
                    inference.facts.get(node.value, UNKNOWN), Instance | Layer | AnyModule | Tensor | Qual
                ):
                    names.add(node.attr)
            case ast.Constant(value=str() as text):
                names.add(text)
            case ast.keyword(arg="output_size"):
                names.add(OUTPUT_SIZE)
    return names


def _is_question(node: ast.AST | None) -> bool:
    """Whether it is ``hasattr(m, "weight")``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"
