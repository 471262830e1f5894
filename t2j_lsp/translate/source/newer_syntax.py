"""Names the syntax that a text uses and the interpreter is too old for, so that it is refused by its name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import libcst as cst

from .concrete import Concrete, Unreadable

MAX_LINES = 2000
MAX_NESTING = 100
"""libcst's parser is recursive: what is nested more deeply isn't looked at."""
_DEEP = re.compile(r"(?:(?:\bnot\b|\blambda\b\s*:|[-+~]|\belif\b[^\n]*)\s*){100}")
_FREE_FSTRING = "an f-string whose expressions hold its own quotes, a backslash or a comment"
_STARTS = re.compile(r"[^\s)\]}#]")

Version = tuple[int, int]
Newer = tuple[int, str, Version]
"""The line, what stands there, and the Python that has it first."""


def newer_syntax(text: str, line: int, running: Version = sys.version_info[:2]) -> Newer | None:
    """What of the top-level statement around a line, where ``ast`` fails, is newer than the interpreter."""
    lines = re.split(r"\r\n|\r|\n", text)
    first, last = _statement(lines, line)
    code = "\n".join(lines[first:last]) + "\n"
    if last - first > MAX_LINES or _nesting(code) > MAX_NESTING or _DEEP.search(code):
        return None
    try:
        concrete = Concrete(code)
    except Unreadable:
        return None
    newer = [one for one in _newer(concrete) if one[2] > running]
    if not newer:
        return None
    at, what, version = min(newer)
    return first + code.count("\n", 0, at) + 1, what, version


def _statement(lines: list[str], line: int) -> tuple[int, int]:
    """The lines, from 0, of the top-level statement that line ``line``, from 1, is in, with its decorators."""
    starts = [index for index, one in enumerate(lines) if _STARTS.match(one)]
    first = max((index for index in starts if index < line), default=0)
    while first and lines[first - 1].startswith("@") or re.match(r"(?:except|finally|else|elif|case)\b", lines[first]):
        first = max((index for index in starts if index < first), default=0)
        if not first:
            break
    joined = re.compile(r"(?:except|finally|else|elif)\b")
    last = next((index for index in starts if index >= line and not joined.match(lines[index])), len(lines))
    return first, last


def _nesting(code: str) -> int:
    depth = deepest = 0
    for char in code:
        if char in "([{":
            depth += 1
            deepest = max(depth, deepest)
        elif char in ")]}":
            depth -= 1
    return deepest


def _newer(concrete: Concrete) -> Iterator[tuple[int, str, Version]]:
    """Index, name and first Python of each piece of syntax that some supported interpreter lacks."""
    for node, (start, _) in concrete.spans.items():
        match node:
            case cst.TypeAlias():
                yield start, "a type statement", (3, 12)
            case cst.FunctionDef() | cst.ClassDef() if node.type_parameters is not None:
                kind = "function" if isinstance(node, cst.FunctionDef) else "class"
                yield start, f"a {kind} with type parameters", (3, 12)
                if any(one.default is not None for one in node.type_parameters.params):
                    yield start, "a type parameter with a default", (3, 13)
            case cst.TemplatedString():
                yield start, "a t-string", (3, 14)
            case cst.ExceptHandler(type=cst.Tuple(lpar=[])) | cst.ExceptStarHandler(type=cst.Tuple(lpar=[])):
                yield start, "except with several exceptions and no brackets", (3, 14)
            case cst.FormattedString() if _nested_freely(concrete, node):
                yield start, _FREE_FSTRING, (3, 12)


def _nested_freely(concrete: Concrete, node: cst.FormattedString) -> bool:
    """Whether an expression in an f-string needs the grammar of Python 3.12."""
    quote = node.end
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            start, end = concrete.spans[part]
            text = concrete.text[start:end]
            if quote in text or "\\" in text or len(quote) == 1 and "\n" in text:
                return True
            if any(start <= at < end for at, _ in concrete.comments):
                return True
    return False
