"""What a module of a library has under a name that is written out, read as an attribute.

    getattr(models, "resnet18")(weights=None)           models.resnet18(weights=None)
    models.__dict__["resnet18"](weights=None)           models.resnet18(weights=None)
    models.get_model("resnet18", weights=None)          models.resnet18(weights=None)

A name that isn't written out, ``getattr(models, arch)``, stays: what it is, isn't known before it runs.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Iterator, Mapping

from t2j_lsp.symbols import bound_as

from .rearranged import Edits, Fragment
from .text import Source

Moves = Callable[[int, str], "str | None"]
"""What a module, or a name of one, is called now, by the dots of the import and the whole name; None: as before."""
Makers = Mapping[str, Mapping[str, str]]
"""Functions that make what is registered under a name, by their whole names, with what they call for each name."""
NO_MAKERS: Makers = {}


def literal_names(source: Source, moves: Moves, makers: Makers) -> Edits:
    """The edits of a text after which it reads such names as attributes."""
    if not any(isinstance(node, ast.Import | ast.ImportFrom) for node in source.nodes):
        return []
    reader = _NameReader(source, moves, makers)
    return [edit for node in source.nodes for edit in reader.edits(node)]


class _NameReader:
    def __init__(self, source: Source, moves: Moves, makers: Makers) -> None:
        self.source = source
        self.moves = moves
        self.makers = makers
        self.imported = _imported(source)

    def edits(self, node: ast.AST) -> Edits:
        """The edit of an expression; none if it reads nothing by a written name."""
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[module, ast.Constant(value=str() as name)], keywords=[]):
                return self._read(node, module, name)
            case ast.Subscript(
                value=ast.Attribute(value=module, attr="__dict__")
                | ast.Call(func=ast.Name(id="vars"), args=[module], keywords=[]),
                slice=ast.Constant(value=str() as name),
                ctx=ast.Load(),
            ):
                return self._read(node, module, name)
            case ast.Call(func=ast.Attribute(value=module, attr=called), args=[ast.Constant(value=str() as name)]):
                whole = self._whole(module)
                made = self.makers.get(f"{whole}.{called}", {}).get(name.lower()) if whole is not None else None
                if made is not None and made.startswith(f"{whole}."):
                    text = f"{self.source.segment(module)}{made.removeprefix(whole or '')}"
                    start, end = self.source.span(node)[0], self.source.span(node)[1] - 1
                    if node.keywords:
                        end = self.source.span(node.keywords[0])[0]
                    return [(start, end, [Fragment(f"{text}(", start, end)])]
        return []

    def _read(self, node: ast.expr, module: ast.expr, name: str) -> Edits:
        if self._whole(module) is None or not name.isidentifier() or keyword.iskeyword(name):
            return []
        start, end = self.source.span(node)
        return [(start, end, [Fragment(f"{self.source.segment(module)}.{name}", start, end)])]

    def _whole(self, node: ast.expr) -> str | None:
        """The whole name of a module that moves; None for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        root = self.imported.get(node.id) if isinstance(node, ast.Name) else None
        whole = ".".join([root, *reversed(parts)]) if root is not None else None
        return whole if whole is not None and self.moves(0, whole) is not None else None


def _imported(source: Source) -> dict[str, str]:
    """The whole names of modules that names mean which nothing but one import binds."""
    bound: dict[str, list[str]] = {}
    for node in source.nodes:
        for name, whole in _bound(node):
            bound.setdefault(name, []).append(whole)
    return {name: wholes[0] for name, wholes in bound.items() if len(set(wholes)) == 1 and wholes[0]}


def _bound(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a node binds, with what imports bind them to."""
    match node:
        case ast.Import():
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        case ast.ImportFrom():
            for alias in node.names:
                yield bound_as(alias), f"{node.module}.{alias.name}" if not node.level else ""
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name, ""
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, ""
