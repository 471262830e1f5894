"""What a Python file holds, seen cheaply: its top-level classes and functions, which of them use torch, and the marks
that t2j left. Nothing is executed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["class", "function"]

_GAP = re.compile(r"^[ \t]*# TODO\(t2j\):? ?(.*)$", re.MULTILINE)
_IGNORED = re.compile(r"^[ \t]*#[ \t]*t2j:[ \t]*ignore-file[ \t]*$", re.MULTILINE)
_TORCH_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+torch\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Definition:
    """A class or function at the top level. Lines from 1; ``first`` counts decorators and comments right above."""

    name: str
    kind: Kind
    line: int
    first: int
    last: int
    torch: bool
    """Whether it uses torch: names that torch is imported under, or a base class of the file that does."""


@dataclass(frozen=True, slots=True)
class Outline:
    """One file. ``digest`` is the SHA-256 of its text."""

    digest: str
    torch: bool = False
    """Whether torch is imported."""
    ignored: bool = False
    """Whether ``# t2j: ignore-file`` stands in it."""
    definitions: tuple[Definition, ...] = ()
    gaps: tuple[tuple[int, str], ...] = ()
    """The lines with ``# TODO(t2j)``, and their reasons."""
    problem: str | None = None
    """Why the text can't be parsed."""


def text_digest(text: str) -> str:
    """The SHA-256 of a text, whatever its file's encoding."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def outline(text: str, *, definitions: bool = True) -> Outline:
    """The outline of a Python text. ``definitions`` False leaves them out, and nothing is parsed then."""
    digest = text_digest(text)
    torch = "torch" in text and _TORCH_IMPORT.search(text) is not None
    ignored = "t2j:" in text and _IGNORED.search(text) is not None
    gaps = tuple(todo_marks(text))
    if not definitions or ignored:
        return Outline(digest, torch, ignored, (), gaps)
    try:
        tree = ast.parse(text.removeprefix("\ufeff"))
    except SyntaxError as error:
        return Outline(digest, torch, ignored, (), gaps, f"line {error.lineno}: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return Outline(digest, torch, ignored, (), gaps, str(error) or type(error).__name__)
    names, every = torch_names(tree)
    return Outline(digest, bool(names) or every, ignored, tuple(_definitions(tree, text, names, every)), gaps)


def notebook_outline(text: str) -> Outline:
    """The outline of a notebook's JSON text: whether it uses torch, and its marks, with lines of all code together."""
    digest = text_digest(text)
    try:
        cells = json.loads(text)["cells"]
        sources = [cell["source"] for cell in cells if cell.get("cell_type") == "code"]
        code = "\n".join(source if isinstance(source, str) else "".join(source) for source in sources)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Outline(digest, problem="it is no notebook of format 4")
    return Outline(
        digest, _TORCH_IMPORT.search(code) is not None, bool(_IGNORED.search(code)), (), tuple(todo_marks(code))
    )


def todo_marks(text: str) -> Iterator[tuple[int, str]]:
    """The lines (from 1) of a text with ``# TODO(t2j)``, and their reasons."""
    if "# TODO(t2j)" not in text:
        return
    line, at = 1, 0
    for match in _GAP.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield line, match[1].strip()


def _definitions(tree: ast.Module, text: str, names: set[str], every: bool) -> Iterator[Definition]:
    lines = text.splitlines() if "# TODO(t2j)" in text else []
    torch_classes: set[str] = set()
    for node in _top_level(tree.body):
        kind: Kind = "class" if isinstance(node, ast.ClassDef) else "function"
        uses = every or any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))
        if isinstance(node, ast.ClassDef):
            uses = uses or any(isinstance(base, ast.Name) and base.id in torch_classes for base in node.bases)
            if uses:
                torch_classes.add(node.name)
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        yield Definition(node.name, kind, node.lineno, _with_comments(lines, first), node.end_lineno or first, uses)


def _with_comments(lines: Sequence[str], first: int) -> int:
    """The first line of the comments right above a line."""
    while 1 < first <= len(lines) and lines[first - 2].startswith("#"):
        first -= 1
    return first


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Definitions at the top level, also those under ``if`` and ``try``."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.If):
            yield from _top_level([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            handlers = [statement for handler in node.handlers for statement in handler.body]
            yield from _top_level([*node.body, *handlers, *node.orelse, *node.finalbody])


def torch_names(tree: ast.Module) -> tuple[set[str], bool]:
    """The names that torch and what is in it are imported under; True where it is imported with a star."""
    names: set[str] = set()
    every = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.asname or "torch" for a in node.names if a.name.partition(".")[0] == "torch"}
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == "torch":
            names |= {a.asname or a.name for a in node.names}
            every = every or any(a.name == "*" for a in node.names)
    return names, every
