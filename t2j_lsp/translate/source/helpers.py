"""The helper sources as text: which helper stands where, what it needs, how it is copied."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from t2j_lsp import symbols
from t2j_lsp.plugins import helper_sources

from .positions import first_line
from .text import Edit, Source, apply_edits

IMPORT_ROOTS = ("jax", "jnp", "np", "nnx", "optax", "functools", "math", "einops")
"""Names that templates and helpers import under."""

HEADER = "# PyTorch behaviour that Flax has no layer for; written by t2j, yours to edit."
"""What stands above helpers in a converted file."""


@dataclass(frozen=True)
class Helper:
    """One top-level definition of ``rules/helpers``."""

    name: str
    file: str
    line: int
    text: str
    uses: tuple[str, ...]
    """Other helpers it names."""
    imports: tuple[str, ...]
    """Import lines it needs."""


class Helpers(Mapping[str, Helper]):
    """All helpers by name, in the order of their files. A file is parsed when one of its helpers is asked for."""

    def __init__(self) -> None:
        self._files = {name: file for file, text in helper_sources().items() for name in _defined_in(text)}
        self._read: dict[str, Helper] = {}

    def __getitem__(self, name: str) -> Helper:
        if name not in self._read:
            self._read |= _helpers_of(self._files[name])
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


_DEFINED = re.compile(r"^(?:(?:def|class) (?P<definition>\w+)|(?P<variable>\w+)(?:: [^=\n]+)? = )", re.MULTILINE)
"""A statement at the top level of a helper file that defines a name, as :func:`defined` reads it."""


_IMPORT = re.compile(r"^(?:import|from) (?:[^(\n]*|[^(\n]*\([^)]*\))\n", re.MULTILINE)


@cache
def helpers() -> Helpers:
    """All helpers."""
    return Helpers()


def _defined_in(text: str) -> list[str]:
    """The names that a helper file defines, read without parsing it."""
    definitions = _DEFINED.finditer(text, len(_head(text)))
    return [names["definition"] or names["variable"] for names in definitions]


def _head(text: str) -> str:
    """A helper file up to its last import."""
    return text[: max(last.end() for last in _IMPORT.finditer(text))]


def _helpers_of(file: str) -> dict[str, Helper]:
    """The helpers of one file."""
    out: dict[str, Helper] = {}
    text = helper_sources()[file]
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    imports = _import_lines(tree)
    for node in tree.body:
        name = defined(node)
        if name is None:
            continue
        first = first_line(node)
        while first > 1 and lines[first - 2].startswith("#"):
            first -= 1
        assert node.end_lineno is not None
        body = "".join(lines[first - 1 : node.end_lineno]).rstrip() + "\n"
        out[name] = _described(Helper(name, file, first, body, (), ()), node, imports)
    return out


def _described(helper: Helper, node: ast.stmt, imports: Mapping[str, str]) -> Helper:
    """A helper with what its definition uses."""
    loaded = {n.id for n in symbols.walk(node) if isinstance(n, ast.Name)} - {helper.name} | _string_annotations(node)
    lines = sorted({line for bound, line in imports.items() if bound in loaded})
    return replace(helper, uses=tuple(sorted(loaded)), imports=tuple(lines))


def described(helper: Helper) -> Helper:
    """A helper whose text was changed, with what it uses now; parts of it may have come from other files."""
    uses, imports = _uses(helper.name, helper.text)
    return replace(helper, uses=uses, imports=imports)


@cache
def _uses(name: str, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the definition of a name uses, and the import lines that it needs."""
    one = _described(Helper(name, "", 1, text, (), ()), ast.parse(text).body[0], all_imports())
    return one.uses, one.imports


@cache
def all_imports() -> dict[str, str]:
    """What the imports of all helper files bind, and the lines that do it. A name means the same in all of them."""
    heads = map(_head, helper_sources().values())
    return {name: line for head in heads for name, line in _import_lines(ast.parse(head)).items()}


@cache
def helper_names() -> frozenset[str]:
    return frozenset(helpers())


@cache
def constructor_parameters(name: str) -> tuple[str, ...] | None:
    """What the constructor of a helper takes, in order, its own or its base's; None where it takes all."""
    arguments = _constructor(name)
    every = [*arguments.posonlyargs, *arguments.args[1:], *arguments.kwonlyargs] if arguments is not None else []
    return None if arguments is None or arguments.kwarg is not None else tuple(a.arg for a in every)


def positional_parameters(name: str) -> tuple[str, ...] | None:
    """What the constructor of a helper takes by position; None where that isn't known."""
    arguments = _constructor(name)
    if arguments is None or arguments.vararg is not None:
        return None
    return tuple(a.arg for a in [*arguments.posonlyargs, *arguments.args[1:]])


def _constructor(name: str) -> ast.arguments | None:
    """The parameters of a helper's constructor, its own or its base's."""
    node = ast.parse(helpers()[name].text).body[0] if name in helpers() else None
    if not isinstance(node, ast.ClassDef):
        return None
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return statement.args
    return next((_constructor(base.id) for base in node.bases if isinstance(base, ast.Name)), None)


def closure(names: set[str]) -> list[Helper]:
    """The helpers with everything they use, each before its users where definition order matters."""
    known = helpers()
    ordered: list[str] = []
    visiting: set[str] = set()

    def visit(name: str) -> None:
        if name in ordered or name in visiting or name not in known:
            return
        visiting.add(name)
        for used in known[name].uses:
            visit(used)
        ordered.append(name)

    for name in sorted(names, key=lambda n: (known[n].file, known[n].line) if n in known else ("", 0)):
        visit(name)
    return [known[name] for name in ordered]


def renamed(text: str, renames: Mapping[str, str]) -> str:
    """A helper's text with other names for itself, other helpers and imports; its own variables keep theirs."""
    if not renames or not any(name in text for name in renames):
        return text
    source = Source(text)
    edits: list[Edit] = []
    for node in source.nodes:
        start, end = source.span(node) if hasattr(node, "lineno") else (0, 0)
        match node:
            case ast.Name() if node.id in renames:
                if source.home(node) is None:
                    edits.append(Edit(start, end, 0, renames[node.id]))
            case ast.FunctionDef() | ast.ClassDef() if node in source.tree.body and node.name in renames:
                at = text.index(node.name, text.index(" ", start))
                edits.append(Edit(at, at + len(node.name), 0, renames[node.name]))
    return apply_edits(text, edits, 0, len(text))


def written_helpers(source: Source) -> list[ast.stmt]:
    """The helpers that an earlier conversion put into a text: what has a helper's name, behind their header."""
    header = next((start for start, text in source.comments if text == HEADER), None)
    if header is None:
        return []
    behind = (node for node in source.tree.body if source.span(node)[0] > header)
    return [node for node in behind if defined(node) in helper_names()]


def defined(node: ast.stmt) -> str | None:
    """The name that a statement defines."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return node.name
        case ast.Assign(targets=[ast.Name() as target]) if target.id != "__all__":
            return target.id
        case ast.AnnAssign(target=ast.Name() as target):
            return target.id
        case _:
            return None


def _import_lines(tree: ast.Module) -> dict[str, str]:
    """What each import of a helper file binds, and the line that does it. Imports of other helpers are left out."""
    out: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                line = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
                out[symbols.bound_as(alias)] = line
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module != "__future__":
            for alias in node.names:
                line = f"from {node.module} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
                out[symbols.bound_as(alias)] = line
    return out


def _string_annotations(node: ast.stmt) -> set[str]:
    names: set[str] = set()
    for inner in symbols.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.isidentifier():
            names.add(inner.value)
    return names & set(IMPORT_ROOTS)
