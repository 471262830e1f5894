"""Layers that are asked what they have, or by parts of their names: ``if hasattr(m, "weight"):``.

Flax's layers have their parameters under other names, and other classes. Where a file that has gaps asks so, in a
function that is applied to the parts of a module that the file builds, it is read as if it asked for each class of
layers that the file builds and that answers yes: a branch for each.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from t2j_lsp.contract import Finding
from t2j_lsp.symbols import nearest, walk
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.type_comparisons import listed, part_of_name, type_comparison
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import Layer, Object
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText

WEIGHT = "weight"
_OF_SEVERAL_AXES = frozenset({"kernel", "embedding"})
"""Flax's names of weights that have two axes at least."""
_MOST = 5


def with_layers_asked_by_class(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such conditions ask for classes; None where none does, or what is asked isn't seen."""
    source, lines = inference.source, {gap.span.line for gap in gaps}
    if not lines or not {"hasattr", "type", "__name__"} & set(source.words):
        return None
    asked, edits = _Asked(inference), Edits()
    for node in source.nodes:
        inside = range(node.lineno, (node.end_lineno or 0) + 1) if isinstance(node, ast.If) else ()
        if isinstance(node, ast.If) and not lines.isdisjoint(inside) and node.body[0].lineno > node.test.lineno:
            edits += asked.branches(node) or []
    return RearrangedText.of(source.text, edits)


class _Asked:
    """What conditions ask of the layers that a file builds."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.source = inference.source

    def branches(self, node: ast.If) -> Edits | None:
        """The statement with a branch for each class; None where it asks for something else."""
        asked = self._asked(node.test)
        if asked is None or any(spans_lines(n) for s in (node.test, *node.body) for n in walk(s)):
            return None
        subject, layers, rest = asked
        texts = {layer: self._class(layer) for layer in layers}
        if not 1 <= len(texts) <= _MOST or not self.source.starts_line(node.body[0]):
            return None
        conditions = [" and ".join([f"isinstance({subject}, {texts[layer]})", *rest.get(layer, [])]) for layer in texts]
        start, end = self.source.span(node.test)
        edits: Edits = [(start, end, [Fragment(conditions[0], start, end)])]
        first, last = self.source.starts[node.body[0].lineno - 1], self.source.span(node.body[-1])[1]
        head = self.source.indent(node.lineno)
        more = [f"\n{head}elif {condition}:\n{self.source.text[first:last]}" for condition in conditions[1:]]
        return [*edits, (last, last, [Fragment("".join(more), last, last)])] if more else edits

    def _asked(self, test: ast.expr) -> tuple[str, list[str], dict[str, list[str]]] | None:
        """What a condition asks about, the layers that answer yes, and what else is asked of each of them."""
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        match parts[0]:
            case ast.Call(func=ast.Name(id="hasattr"), args=[ast.Name(id=subject), ast.Constant(value=attribute)]) if (
                attribute == WEIGHT
            ):
                layers = self._weighted
            case _:
                named = self._named(test)
                return None if named is None else (*named, {})
        if layers is None or not self._is_applied(test, subject):
            return None
        rest = {layer: [self.source.segment(p) for p in parts[1:] if not _holds(p, subject, layer)] for layer in layers}
        return subject, [layer for layer in layers if layer], rest

    def _named(self, test: ast.expr) -> tuple[str, list[str]] | None:
        """The variable and the layers of ``type(m) == nn.Linear or type(m) == nn.Embedding``."""
        asked = [self._one(part) for part in (test.values if isinstance(test, ast.BoolOp) else [test])]
        if isinstance(test, ast.BoolOp) and not isinstance(test.op, ast.Or):
            return None
        pairs = [pair for pair in asked if pair is not None]
        subjects = {subject for subject, _ in pairs}
        if len(pairs) < len(asked) or len(subjects) != 1 or not self._is_applied(test, next(iter(subjects))):
            return None
        return next(iter(subjects)), list(dict.fromkeys(layer for _, layers in pairs for layer in layers))

    def _one(self, test: ast.expr) -> tuple[str, list[str]] | None:
        built = self._built
        match test:
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=subject), ast.Tuple(elts=classes)]):
                names = [getattr(self.inference.fact(cls), "name", "") for cls in classes]
                return (subject, names) if all(name in LAYERS for name in names) else None
            case ast.Compare() if (named := part_of_name(test)) is not None:
                name, part = named
                fact = self.inference.fact(name)
                if not isinstance(fact, Object) or fact.kind != "class name" or not fact.name or built is None:
                    return None
                if any(part in cls.name for cls in self.inference.classes.values()):
                    return None
                return fact.name, [layer for layer in built if part in layer.rpartition(".")[2]]
            case ast.Compare() if (asked := type_comparison(test)) is not None and asked.holds:
                names = [getattr(self.inference.fact(cls), "name", "") for cls in listed(asked.classes)]
                plain = isinstance(asked.subject, ast.Name) and all(name in LAYERS for name in names)
                derived = any(info.layer_base in names for info in self.inference.classes.values())
                if plain and not derived and isinstance(asked.subject, ast.Name):
                    return asked.subject.id, names
        return None

    def _is_applied(self, test: ast.expr, subject: str) -> bool:
        """Whether a condition asks about the parameter of a function that ``net.apply`` runs on each part."""
        function = nearest(ast.FunctionDef, test, self.source.parents)
        if not isinstance(function, ast.FunctionDef) or [a.arg for a in function.args.args][-1:] != [subject]:
            return False
        for use in self.source.names.get(function.name, ()):
            match self.source.parents.get(use):
                case ast.Call(func=ast.Attribute(attr="apply"), args=[given]) if given is use:
                    return True
        return False

    @cached_property
    def _built(self) -> list[str] | None:
        """The layers that a file builds; None where it may have modules of other classes."""
        out: dict[str, None] = {}
        for node in (n for n in self.source.nodes if isinstance(n, ast.Call)):
            fact = self.inference.fact(node)
            if isinstance(fact, Layer) and fact.node is node:
                if fact.name not in LAYERS or LAYERS[fact.name].random and not self._is_plain(fact.name):
                    return None
                out[fact.name] = None
            elif is_module(fact) and not isinstance(fact, Layer) and isinstance(node.func, ast.Name | ast.Attribute):
                own = isinstance(fact, Instance) and fact.cls.info in self.inference.classes.values()
                if not own:
                    return None
        return list(out)

    def _is_plain(self, name: str) -> bool:
        """Whether a layer with parameters has no layers inside: those of attention are of classes of their own."""
        rule = LAYERS[name]
        return bool(rule.attributes) or not rule.helper or name.rpartition(".")[2] in ("RNN", "LSTM", "GRU")

    @cached_property
    def _weighted(self) -> list[str] | None:
        """Those of them that have a weight; None where a class of the file has one itself."""
        if self._built is None or any(WEIGHT in info.attributes for info in self.inference.classes.values()):
            return None
        return [name for name in self._built if WEIGHT in LAYERS[name].attributes]

    def _class(self, layer: str) -> str:
        """How the file names a class of layers."""
        for node in self.source.nodes:
            if isinstance(node, ast.Call) and isinstance(fact := self.inference.fact(node), Layer):
                if fact.name == layer and fact.node is node:
                    return self.source.segment(node.func)
        return layer


def _holds(part: ast.expr, subject: str, layer: str) -> bool:
    """Whether a layer's weight is known to answer yes: it is there, and has two axes at least."""
    weight = f"{subject}.{WEIGHT}"
    text = ast.unparse(part)
    if text == f"{weight} is not None":
        return True
    several = LAYERS[layer].attributes[WEIGHT] in _OF_SEVERAL_AXES
    asked = {f"{weight}{axes} {more}" for axes in (".dim()", ".ndim", ".ndimension()") for more in ("> 1", ">= 2")}
    return several and text in asked | {f"len({weight}.{size}) > 1" for size in ("shape", "size()")}
