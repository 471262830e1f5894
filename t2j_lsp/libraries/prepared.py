"""Files of a library as they stand in the package that is converted: still PyTorch, without what stays the library's.

What stays is imported from the library by its whole name; what only registers a model with the library goes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2j_lsp.check.program.slice import SlicedModule
from t2j_lsp.check.program.trimming import trimmed
from t2j_lsp.check.program.workspace import read_text
from t2j_lsp.translate.source.moved_imports import moved_imports
from t2j_lsp.translate.source.positions import first_line
from t2j_lsp.translate.source.rearranged import Fragment, Rearranged
from t2j_lsp.translate.source.text import Source

from .known import Library

_WIDTH = 120


def prepared(text: str, module: str, is_package: bool, library: Library) -> str:
    """The text of a library's module, by its name in the library. Raises SourceError if it isn't Python."""
    source = Source(text, placed=False)
    package = module if is_package else module.rpartition(".")[0]

    def moves(level: int, name: str) -> str | None:
        if not library.is_converted(name):
            # It leads out of what is converted: by its whole name.
            return name if level else None
        return None if level else library.moved(name)

    own = [node for node in source.tree.body if _stays(node, module, library)]
    cut = [_cut(source, first_line(node), node) for node in own]
    others = [*moved_imports(source, moves, package), *_registrations(source, library)]
    edits = [*cut, *(edit for edit in others if not any(one[0] <= edit[0] < one[1] for one in cut))]
    names = [node.name for node in own if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    if names:
        place = source.starts[min(source.import_block_end, len(source.starts) - 1)]
        edits.append((place, place, [Fragment(_import(module, names) + "\n", place, place)]))
    return source.bom + Rearranged.of(source.text, edits).new


def registered(folder: Path, library: Library) -> tuple[tuple[str, str, str], ...]:
    """Each function of a library in a folder that makes what is registered, with a name and what is called for it."""
    makers = []
    for maker in library.makers:
        space = maker.rpartition(".")[0]
        base = folder.joinpath(*space.split(".")[1:])
        for path in sorted(base.rglob("*.py")):
            inside = path.relative_to(base).parts[:-1]
            for node in ast.parse(read_text(path)).body:
                if isinstance(node, ast.FunctionDef) and not {*map(_called, node.decorator_list)}.isdisjoint(
                    library.registers
                ):
                    name = _registered_name(node, library)
                    makers.append((maker, name, ".".join((space, *inside, node.name))))
    return tuple(makers)


def _registered_name(node: ast.FunctionDef, library: Library) -> str:
    """The name under which a decorator registers a function: the one that it is given, or the function's."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _called(decorator) in library.registers:
            for given in (*decorator.args, *(k.value for k in decorator.keywords if k.arg == "name")):
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    return given.value
    return node.name


def pruned(module: SlicedModule, head: str) -> str:
    """What a slice keeps of a module, behind the comments and the docstring that the file begins with."""
    body = ast.parse(module.text).body
    lines = module.text.splitlines(keepends=True)
    keep = dict(module.keep)
    docstring = bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    if docstring:
        keep[0] = None
    begin = min((first_line(node) for node in body[:1]), default=len(lines) + 1)
    parts = [head, *([comments] if (comments := "".join(lines[: begin - 1]).strip("\n")) else [])]
    text, at, behind_import = "\n".join(parts), begin - 1, False
    for index, node in enumerate(body):
        end = node.end_lineno or node.lineno
        if index in keep and end > at:
            own = _statement(lines, at, node, keep[index])
            is_import = isinstance(node, ast.Import | ast.ImportFrom)
            between = "\n\n" if behind_import and not is_import and not own.startswith("\n") else "\n"
            text, behind_import = f"{text}{between}{own}", is_import
        at = max(at, end)
    return text.rstrip("\n") + "\n"


def _statement(lines: list[str], at: int, node: ast.stmt, names: tuple[str, ...] | None) -> str:
    """A statement with what stands above it, of its imports only some names."""
    first = first_line(node)
    above, own = re.sub(r"\n{3,}", "\n\n", "".join(lines[at : first - 1])), "".join(lines[first - 1 : node.end_lineno])
    if names is not None:
        short = trimmed(ast.parse(own).body[0], names)
        if isinstance(short, ast.ImportFrom):
            own = _import("." * short.level + (short.module or ""), short.names)
        else:
            own = ast.unparse(short)
    return above + own.rstrip("\n")


def _import(module: str, names: Iterable[str | ast.alias]) -> str:
    texts = [name if isinstance(name, str) else ast.unparse(name) for name in names]
    line = f"from {module} import {', '.join(texts)}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in texts), ")"])


def _stays(node: ast.stmt, module: str, library: Library) -> bool:
    if not isinstance(node, ast.ClassDef | ast.FunctionDef):
        return False
    return library.stays.fullmatch(f"{module}.{node.name}") is not None


def _registrations(source: Source, library: Library) -> Iterator[tuple[int, int, list[Fragment]]]:
    """The edits that take decorators and statements out which tell the library of its models."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            for decorator in node.decorator_list:
                if _called(decorator) in library.registers:
                    yield _cut(source, decorator.lineno, decorator)
        elif isinstance(node, ast.Expr) and _called(node.value) in library.registers:
            block = source.block_of(node) or []
            start, end = source.span(node)
            yield _cut(source, node.lineno, node) if len(block) > 1 else (start, end, [Fragment("pass", start, end)])


def _called(node: ast.expr) -> str:
    """The last part of the name of what is called, or named."""
    called = node.func if isinstance(node, ast.Call) else node
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _cut(source: Source, first: int, node: ast.stmt | ast.expr) -> tuple[int, int, list[Fragment]]:
    """The edit that takes out the lines of a node."""
    last = node.end_lineno or node.lineno
    stop = source.line_end(last)
    return source.starts[first - 1], stop, []
