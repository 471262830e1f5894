"""What the samples of a file's loaders hold: tensors, or texts, of which a loader makes lists and no tensors."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import TypeGuard

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import (
    STR,
    TENSOR,
    UNKNOWN,
    Fact,
    ListOf,
    MixedDict,
    MixedTuple,
    Partial,
    Qual,
    Scalar,
    Tuple,
)
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.training.program.kept_values import knows_parts

from .batch_loops import batch_targets
from .batch_uses import BatchUses
from .listed_samples import ListedSamples

TEXTS = ListOf(STR)
_LOADERS = names_with(Trait.STACKS_ROWS)
Key = int | str
"""Where a part stands in a sample that is a tuple, or in one that is a dict."""


class SampleParts:
    """Reads the functions that make samples and batches: ``__getitem__`` of data sets, and ``collate_fn``."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference

    def part(self, key: Key) -> Fact:
        """What stands in a part of a batch: `TEXTS`, an array, or UNKNOWN if it may be both.

        It is taken for an array where no function of the file says what it is.
        """
        return self._joined.get(key, TENSOR)

    @cached_property
    def may_hold_texts(self) -> bool:
        """Whether a part of something that the file's loaders give may be texts."""
        return any(part != TENSOR for part in self._joined.values())

    @property
    def are_unknown(self) -> bool:
        """Whether no function of the file says what samples hold."""
        return not self._parts

    @cached_property
    def has_loaders(self) -> bool:
        """Whether the file makes a loader."""
        return any(True for _ in self._loaders())

    def texts(self, keys: Collection[str]) -> MixedDict | None:
        """A batch with the texts of the file's dicts that have one of these names, too; None if these have none."""
        texts: dict[str, Fact] = {}
        for node in self.inference.source.nodes:
            named = {str(key): fact for key, fact in self._named(node)} if isinstance(node, ast.Dict) else {}
            if not named.keys().isdisjoint(keys):
                texts |= {key: TEXTS for key, fact in named.items() if _is_text(fact)}
        return MixedDict(tuple(texts.items())) if texts else None

    def batch(self, is_dict: bool) -> Fact:
        """A batch of which some part may be texts."""
        places = [part for key, part in self._joined.items() if isinstance(key, int)]
        if is_dict or not places:
            return MixedDict(tuple((key, part) for key, part in self._joined.items() if isinstance(key, str)))
        return MixedTuple(tuple(places))

    @cached_property
    def _joined(self) -> dict[Key, Fact]:
        return {key: self._join(key, facts) for key, facts in self._parts.items()}

    def _join(self, key: Key, facts: list[Fact]) -> Fact:
        if all(map(_is_text, facts)):
            return TEXTS
        texts = any(_is_text(fact) for fact in facts)
        unclear = not all(map(knows_parts, facts)) and not self._is_computed_with(key)
        return UNKNOWN if texts or unclear else TENSOR

    @cached_property
    def _parts(self) -> dict[Key, list[Fact]]:
        parts: dict[Key, list[Fact]] = {}
        made = (part for info in dict.fromkeys(self._makers()) for part in self._made(info))
        for key, fact in (*made, *self._listed()):
            parts.setdefault(key, []).append(fact)
        return parts

    def _listed(self) -> Iterator[tuple[Key, Fact]]:
        """The parts of samples that stand in lists, which loaders are given without a function that makes batches."""
        listed = ListedSamples(self.inference)
        for node in self._loaders():
            data = argument(node, 0, "dataset")
            if _collated_by(node) is None and data is not None and not isinstance(self._fact(data), Instance):
                for sample in listed.of(data):
                    yield from self._parts_of(sample, listed)

    def _parts_of(self, sample: ast.expr, listed: ListedSamples, depth: int = 0) -> Iterator[tuple[Key, Fact]]:
        """The parts of one sample of a list."""
        match sample:
            case ast.Tuple(elts=items):
                yield from enumerate(map(self._fact, items))
            case ast.Dict():
                yield from self._named(sample)
            case ast.Name() | ast.Call() if depth < 4:
                for value in listed.values(sample):
                    yield from self._parts_of(value, listed, depth + 1)
                for statement in listed.stores(sample):
                    yield from self._named(statement)

    def _loaders(self) -> Iterator[ast.Call]:
        """The calls that make loaders."""
        for node in self.inference.source.nodes:
            func = self._fact(node.func) if isinstance(node, ast.Call) else UNKNOWN
            if isinstance(node, ast.Call) and isinstance(func, Qual) and func.name in _LOADERS:
                yield node

    def _makers(self) -> Iterator[FunctionInfo]:
        """The functions that make what the file's loaders give."""
        for node in self._loaders():
            if (collate := _collated_by(node)) is not None:
                if (info := _run_by(self._fact(collate))) is not None:
                    yield info
                continue
            data = argument(node, 0, "dataset")
            held = self._fact(data) if data is not None else UNKNOWN
            classes = [held.cls.info] if isinstance(held, Instance) else self.inference.classes.values()
            yield from (c.methods["__getitem__"] for c in classes if "__getitem__" in c.methods)

    def _made(self, info: FunctionInfo) -> Iterator[tuple[Key, Fact]]:
        """The parts that a function gives a tuple or a dict."""
        given = list(self._returned(info))
        if not given and isinstance(info.result, Tuple):
            given = list(enumerate(info.result.items))
        yield from given
        for node in symbols.walk(info.node):
            yield from self._named(node)

    def _returned(self, info: FunctionInfo) -> Iterator[tuple[int, Fact]]:
        """The parts of tuples that a function gives: ``return x, y`` where it trains, and ``return x, name``."""
        for node in symbols.walk(info.node):
            if not isinstance(node, ast.Return) or node.value is None:
                continue
            if symbols.nearest(ast.FunctionDef, node, self.inference.source.parents) is not info.node:
                continue
            for way in _ways(node.value):
                if isinstance(way, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in way.elts):
                    yield from ((at, self._fact(one)) for at, item in enumerate(way.elts) for one in _ways(item))
                elif isinstance(fact := self._fact(way), Tuple):
                    yield from enumerate(fact.items)

    def _named(self, node: ast.AST) -> Iterator[tuple[Key, Fact]]:
        """What a dict that is written out, or the assignment of an item, has under names."""
        match node:
            case ast.Dict(keys=keys, values=values):
                named = zip(keys, values, strict=True)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(), slice=index)], value=value):
                named = zip([index], [value], strict=True)
            case _:
                return
        for key, given in named:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, self._fact(given)

    def _is_computed_with(self, key: Key) -> bool:
        """Whether the file reads a part and computes with it, as with an array."""
        if isinstance(key, str):
            return any(_reads(node, key) and self._takes_arrays(node) for node in self.inference.source.nodes)
        uses = BatchUses(self.inference)
        for loop in self.inference.source.nodes:
            if isinstance(loop, ast.For):
                names = [target.id for target in batch_targets(loop)]
                if len(names) == 1:
                    parts = (n for n in symbols.walk(loop) if _reads(n, key) and ast.unparse(n.value) == names[0])
                    if any(map(self._takes_arrays, parts)):
                        return True
                    names = _unpacked(loop, names[0])
                if key < len(names) and uses.is_tensor(loop, names[key]):
                    return True
        return False

    def _takes_arrays(self, part: ast.Subscript) -> bool:
        """Whether what is done with a part is done with tensors only."""
        match self.inference.source.parents.get(part):
            case ast.Attribute(attr=attr):
                return attr not in _OF_TEXTS
            case ast.Call(func=ast.Name(id=name)):
                return name not in _OF_ANY
            case ast.Call(func=ast.Attribute(attr=attr)):
                return attr not in _OF_LISTS
            case ast.keyword() as keyword:
                call = self.inference.source.parents.get(keyword)
                return not isinstance(call, ast.Call) or ast.unparse(call.func) != "dict"
            case ast.BinOp():
                return True
        return False

    def _fact(self, node: ast.AST) -> Fact:
        return self.inference.facts.get(node, UNKNOWN)


def _ways(node: ast.expr) -> list[ast.expr]:
    """What an expression may give, by its conditions."""
    return [*_ways(node.body), *_ways(node.orelse)] if isinstance(node, ast.IfExp) else [node]


_OF_TEXTS = frozenset(dir(str)) | frozenset(dir(list))
_OF_LISTS = frozenset({"append", "extend", "join", "write", "print", "info", "add", "insert"})
_OF_ANY = frozenset(
    {"print", "len", "zip", "list", "tuple", "enumerate", "set", "sorted", "str", "repr", "type", "iter"}
)


def _run_by(collate: Fact) -> FunctionInfo | None:
    """The function of the file that a call of ``collate_fn`` runs: itself, or the ``__call__`` of an object."""
    if isinstance(collate, Partial):
        return _run_by(collate.function)
    return collate.cls.info.method("__call__") if isinstance(collate, Instance) else called_function(collate)


def _collated_by(loader: ast.Call) -> ast.expr | None:
    """What makes the batches of a loader, where it is given such a thing."""
    return next((k.value for k in loader.keywords if k.arg == "collate_fn"), None)


def is_mixed(batch: Fact) -> bool:
    """Whether a batch may hold texts beside its tensors."""
    return isinstance(batch, MixedDict | MixedTuple)


def _reads(node: ast.AST, key: Key) -> TypeGuard[ast.Subscript]:
    """Whether an expression is a part of something, by this number or name."""
    match node:
        case ast.Subscript(ctx=ast.Load(), slice=ast.Constant(value=value)):
            return value == key and type(value) is type(key)
    return False


def _unpacked(loop: ast.For, name: str) -> list[str]:
    """The names that ``x, y = batch`` in a loop gives the parts of what it iterates."""
    for node in symbols.walk(loop):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=parts) | ast.List(elts=parts)], value=ast.Name(id=source)):
                if source == name:
                    return [ast.unparse(part) for part in parts]
    return []


def _is_text(fact: Fact) -> bool:
    match fact:
        case Scalar(kind=kind):
            return kind == "str"
        case ListOf(item=item, keys=None):
            return _is_text(item)
        case Tuple(items=items):
            return bool(items) and all(map(_is_text, items))
    return False
