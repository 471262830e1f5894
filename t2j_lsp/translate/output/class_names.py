"""Layers that a program tells by the names of their classes, where Flax's layers bear others.

``m.__class__.__name__ == "Conv2d"`` is False for every layer of Flax: what it guards would be left out in silence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.rule.layer import LAYERS

NEEDS = Gate(words=frozenset({"__name__", "__class__", "type", "str", "repr"}))
_ASKING = frozenset({"find", "startswith", "endswith", "count", "index"})
_TEXTS = frozenset({"str", "repr"})
REASON = "Flax's layers have other class names than {}: ask with isinstance"


def asked_by_full_names(inference: Inference) -> frozenset[str]:
    """The layers by whose names a program asks, which short forms of them have not: `Conv2d` of `nnx.Conv`."""
    if not inference.has(NEEDS):
        return frozenset()
    nodes = (n for n in inference.source.nodes if isinstance(n, ast.Compare | ast.Call))
    asked = {text for node in nodes for text, whole in _asked(inference, node) if whole or text[-1:] == "d"}
    spatial = [name for name in LAYERS if name[-2:] in ("1d", "2d", "3d")]
    return frozenset(name for name in spatial if any(text in name.rpartition(".")[2] for text in asked))


def report_class_names(context: Context) -> None:
    """Report what asks for a part of a class name that is another one after the conversion."""
    for node in context.source.nodes:
        if isinstance(node, ast.Compare | ast.Call):
            lost = [text for text, whole in _asked(context.inference, node) if _is_lost(text, whole)]
            lost += [text for text in _of_modules(context.inference, node) if any(text in name for name in LAYERS)]
            if lost:
                context.report.gap(node, "class name", "unsure", REASON.format(", ".join(map(repr, lost))))


def _asked(inference: Inference, node: ast.Compare | ast.Call) -> Iterator[tuple[str, bool]]:
    """The texts that a class's name is compared with, and whether with the whole name."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            for name, text in ((left, right), (right, left)):
                if _is_name(inference, name):
                    yield from ((one, True) for one in _texts(text))
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
            if _is_name(inference, right) or _is_description(inference, right):
                yield from ((one, False) for one in _texts(left))
            elif _is_name(inference, left):
                yield from ((one, True) for one in _texts(right))
        case ast.Call(func=ast.Attribute(attr=attr, value=name), args=[text, *_]) if attr in _ASKING:
            if _is_name(inference, name) or _is_description(inference, name):
                yield from ((one, attr == "startswith") for one in _texts(text))


def _texts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            for item in items:
                yield from _texts(item)


def _is_name(inference: Inference, node: ast.expr) -> bool:
    fact = inference.fact(node)
    return isinstance(fact, Object) and fact.kind == "class name"


def _is_description(inference: Inference, node: ast.expr) -> bool:
    """Whether it is ``str(type(m))``."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[ast.Call(func=ast.Name(id="type"))]) if name in _TEXTS:
            return True
        case ast.Call(func=ast.Name(id=name), args=[ast.Attribute(attr="__class__")]) if name in _TEXTS:
            return True
    return False


def _of_modules(inference: Inference, node: ast.Compare | ast.Call) -> Iterator[str]:
    """The texts that are looked for in a module's own text, which names all of its parts: `"Conv" in str(m)`."""
    match node:
        case ast.Compare(left=text, ops=[ast.In() | ast.NotIn()], comparators=[described]):
            pass
        case ast.Call(func=ast.Attribute(attr=attr, value=described), args=[text, *_]) if attr in _ASKING:
            pass
        case _:
            return
    match described:
        case ast.Call(func=ast.Name(id=name), args=[given]) if name in _TEXTS and is_module(inference.fact(given)):
            yield from _texts(text)


def _is_lost(text: str, whole: bool) -> bool:
    """Whether layers of PyTorch's have such a name that Flax's, or the helpers in their place, have not."""
    for name, layer in LAYERS.items():
        own = name.rpartition(".")[2]
        if text != own if whole else text not in own:
            continue
        others = (layer.base.rpartition(".")[2], layer.helper)
        if layer.function or not all(text == other if whole else text in other for other in others):
            return len(text) > 2
    return False
