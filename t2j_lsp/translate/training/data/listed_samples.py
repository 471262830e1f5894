"""The samples in a list that a loader is given, as expressions: ``[{"x": x, "text": t} for x, t in rows]``.

A list is followed to where it is made, through names, functions, slices and what is appended to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.inference.batch_sources import DEPTH, BatchSources
from t2j_lsp.translate.inference.file import Inference

_SAME_ITEMS = frozenset({"list", "tuple", "sorted", "reversed"})


class ListedSamples:
    """Follows lists of samples in one file. What can't be followed has no samples."""

    def __init__(self, inference: Inference) -> None:
        self.source = inference.source
        self._sources = BatchSources(inference)

    def of(self, node: ast.expr, depth: int = 0) -> Iterator[ast.expr]:
        """The expressions that give a list its items."""
        if depth > DEPTH:
            return
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                for item in items:
                    yield from self.of(item.value, depth + 1) if isinstance(item, ast.Starred) else [item]
            case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
                yield item
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                yield from self.of(left, depth + 1)
                yield from self.of(right, depth + 1)
            case ast.Subscript(value=value, slice=ast.Slice()):
                yield from self.of(value, depth + 1)
            case ast.Call(func=ast.Name(id=name), args=[value, *_]) if name in _SAME_ITEMS:
                yield from self.of(value, depth + 1)
            case ast.Name() | ast.Attribute() | ast.Call():
                for value in self._sources.values(node):
                    yield from self.of(value, depth + 1)
                yield from self._added(node, depth)

    def values(self, sample: ast.expr) -> list[ast.expr]:
        """The values that a sample may have, where it is a variable or made by a function."""
        return self._sources.values(sample)

    def stores(self, sample: ast.expr) -> Iterator[ast.Assign]:
        """The statements that give a sample of a name another item: ``sample["text"] = text``."""
        for node in self.source.nodes if isinstance(sample, ast.Name) else ():
            match node:
                case ast.Assign(targets=[ast.Subscript(value=ast.Name() as owner)]) if self._is_same(owner, sample):
                    yield node

    def _added(self, node: ast.expr, depth: int) -> Iterator[ast.expr]:
        """What a list of a name gets besides: ``rows.append(row)``."""
        for method in ("append", "extend") if isinstance(node, ast.Name) else ():
            for named in self.source.attributes.get(method, ()):
                match self.source.parents[named]:
                    case ast.Call(func=ast.Attribute(value=ast.Name() as owner), args=[given]) if self._is_same(
                        owner, node
                    ):
                        yield from [given] if method == "append" else self.of(given, depth + 1)

    def _is_same(self, name: ast.Name, other: ast.expr) -> bool:
        """Whether two names are one variable."""
        return isinstance(other, ast.Name) and name.id == other.id and self.source.home(name) is self.source.home(other)
