"""What `ast` and the text itself say: its tree, or why it has none, and what is plain of statements and comments.

Most statements have their lines for themselves. What is plain is what `Concrete` would say of them, and libcst isn't
asked, which takes long; where it isn't plain, there is no answer.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from t2j_lsp import symbols
from t2j_lsp.contract import SourceError

from .concrete import Statement
from .newer_syntax import newer_syntax

MAX_DEPTH = 200
"""Nesting beyond which a file is refused: recursion over its tree would not be safe."""
STORED, IN_PLACE = "[]=", "_()"
"""Stand among the words of a text for an assignment to elements and for a method whose name ends with ``_``."""
TEST_FRAMEWORKS = ("pytest", "unittest", "torch.testing")

_WORD = re.compile(r"[A-Za-z_]\w*")
_SIMPLE = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Return | ast.Pass | ast.Import | ast.ImportFrom
_BLANK = " \t\f\r\n\\"


def parse(text: str) -> ast.Module:
    """The syntax tree of a text. Raises SourceError if it isn't Python, is too new for this interpreter or too deep."""
    tree = syntax_tree(text)
    nodes_and_parents(tree)
    return tree


def syntax_tree(text: str) -> ast.Module:
    """The tree of a text. Raises SourceError if it isn't Python, or is too new for this interpreter."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        newer = newer_syntax(text, error.lineno or 1)
        if newer is not None:
            line, what, version = newer
            running, since = (".".join(map(str, one)) for one in (sys.version_info[:2], version))
            raise SourceError(
                f"line {line}: {what} needs Python {since}, and t2j runs in Python {running}", line
            ) from None
        where = f"line {error.lineno}: " if error.lineno else ""
        raise SourceError(f"{where}{error.msg}", error.lineno, (error.offset or 1) - 1) from None
    except ValueError as error:
        raise SourceError(str(error)) from None
    except (RecursionError, MemoryError):
        raise SourceError("the code is nested too deeply to be parsed") from None


def nodes_and_parents(tree: ast.Module) -> tuple[list[ast.AST], dict[ast.AST, ast.AST]]:
    """Every node, level by level, and the node around each. Raises SourceError where code is nested too deeply."""
    nodes: list[ast.AST] = []
    parents: dict[ast.AST, ast.AST] = {}
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH + 1):
        nodes += level
        inside: list[ast.AST] = []
        for node in level:
            for name in node._fields:
                value = getattr(node, name, None)
                for child in value if isinstance(value, list) else (value,):
                    if isinstance(child, ast.AST):
                        inside.append(child)
                        parents[child] = node
        if not inside:
            return nodes, parents
        level = inside
    deep: ast.AST = level[0]
    while not hasattr(deep, "lineno"):
        deep = parents[deep]
    raise SourceError(f"line {deep.lineno}: the code is nested more than {MAX_DEPTH} levels deep", deep.lineno)


def words(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every name that code writes down, in strings that may be annotations too, and the marks of writes."""
    for node in nodes:
        match node:
            case ast.Name():
                yield node.id
            case ast.Call(func=ast.Name(id=name)) if name.endswith("_") and not name.endswith("__"):
                yield IN_PLACE
            case ast.Attribute():
                yield node.attr
                if node.attr.endswith("_") and not node.attr.endswith("__"):
                    yield IN_PLACE
            case ast.Subscript(ctx=ast.Store()):
                yield STORED
            case ast.keyword(arg=str() as name) | ast.arg(arg=name):
                yield name
            case ast.alias():
                yield from node.name.split(".")
            case ast.ImportFrom():
                yield from (node.module or "").split(".")
            case ast.Constant(value=str() as text) if len(text) < 80:
                yield from _WORD.findall(text)


class TextWithSpans(Protocol):
    """What is asked of the text that a statement stands in."""

    text: str
    starts: list[int]

    def span(self, node: ast.AST) -> tuple[int, int]: ...


def plain_statement(source: TextWithSpans, node: ast.stmt) -> Statement | None:
    """A simple statement that has its lines for itself and no comment above or behind it; None for any other."""
    if not isinstance(node, _SIMPLE) or node.end_lineno is None:
        return None
    text, starts = source.text, source.starts
    start, end = source.span(node)
    first = starts[node.lineno - 1]
    past = starts[node.end_lineno] if node.end_lineno < len(starts) else len(text)
    if text[first:start].strip(" ") or text[end:past].strip(" \r\n"):
        return None
    above = text[starts[node.lineno - 2] : first].strip(" \t\r\n") if node.lineno > 1 else ""
    if above.startswith("#") or above.endswith("\\"):
        return None
    return Statement(None, start, end, end, True, None, (), None)


def comments_of(text: str, starts: list[int]) -> tuple[tuple[int, str], ...] | None:
    """Every comment as (index, text), in order; None where the lines of a text aren't plain."""
    if "#" not in text:
        return ()
    if "\f" in text or "\r" in text:
        return None
    try:
        tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except (tokenize.TokenError, SyntaxError):
        return None
    comments = (one for one in tokens if one.type == tokenize.COMMENT)
    return tuple((starts[one.start[0] - 1] + one.start[1], one.string) for one in comments)


def may_be_in_brackets(text: str, start: int, end: int) -> bool:
    """Whether brackets may stand around ``text[start:end]``, with white space and comments between."""
    before, behind = start, end
    while before and text[before - 1] in _BLANK:
        before -= 1
    while behind < len(text) and text[behind] in _BLANK:
        behind += 1
    if text[behind : behind + 1] not in (")", "]", "}", "#"):
        return False
    line = text[text.rfind("\n", 0, before) + 1 : before]
    return line.endswith(("(", "[", "{")) or "#" in line


def holds_tests(tree: ast.Module, nodes: Iterable[ast.AST]) -> bool:
    """Whether a text imports a framework for unit tests, or has functions that pytest collects."""
    for node in nodes:
        if isinstance(node, ast.Import) and any(a.name.split(".")[0] in TEST_FRAMEWORKS for a in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(TEST_FRAMEWORKS):
            return True
    tests = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
    return any(isinstance(n, ast.Assert) for test in tests for n in symbols.walk(test))


def imported_names(
    nodes: Iterable[ast.AST], parents: dict[ast.AST, ast.AST], is_library: Callable[[str], bool]
) -> dict[str, str]:
    """The names of the module level that imports of a library may bind, and what each means there."""
    imports = (n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) and not symbols.scopes_around(n, parents))
    return {name: target for node in imports for name, target in symbols.imported(node) if is_library(target)}


def names_by_text(nodes: Iterable[ast.AST]) -> dict[str, list[ast.Name]]:
    """The places that name each variable, in the order of the nodes."""
    out: dict[str, list[ast.Name]] = {}
    for node in nodes:
        if isinstance(node, ast.Name):
            out.setdefault(node.id, []).append(node)
    return out


def places_of_names(nodes: Iterable[ast.AST]) -> dict[str, list[ast.AST]]:
    """The places that bind each name: assignments, parameters and imports."""
    places: dict[str, list[ast.AST]] = {}
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                places.setdefault(name, []).append(node)
            case ast.alias():
                for name in {node.name, node.asname or node.name}:
                    places.setdefault(name, []).append(node)
    return places


def calls_by_target(nodes: Iterable[ast.AST]) -> dict[str, list[ast.Call]]:
    """The calls whose values variables are given, by the variables as they are written."""
    calls: dict[str, list[ast.Call]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.IfExp):
            ways = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
            given = [one for one in ways if isinstance(one, ast.Call)]
            for target in node.targets if given else ():
                if isinstance(target, ast.Name | ast.Attribute):
                    calls.setdefault(ast.unparse(target), []).extend(given)
    return calls


def past_blank(starts: Sequence[int], line_text: Callable[[int], str], first: int, last: int, after: int) -> int:
    """The end of as many blank lines behind removed ones as stand in front of these: all at a file's head."""
    before = first - 1
    while before and not line_text(before).strip():
        before -= 1
    many, line = first - 1 - before if before else len(starts), last + 1
    while many and line < len(starts) and not line_text(line).strip():
        after, line, many = starts[line], line + 1, many - 1
    return after
