"""Puts new imports among those that a file has: each in its group, in alphabetical order, joined where one is there."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.heads import head_end, preamble
from t2j_lsp.translate.source.imported_names import import_code, import_node, with_names


def insert_imports(ctx: Context, lines: list[str]) -> None:
    """Record the edits that add import ``lines``, which are sorted, with an empty one between the groups.

    A line goes in front of the first import of its group that sorts behind it. Where its group has no import yet the
    lines stand at the first torch import; in a file without imports, at its head.
    """
    existing = list(_top_imports(ctx))
    standard, others = _groups(lines)
    at_torch: list[str] = []
    for group, is_standard in ((standard, True), (others, False)):
        peers = [
            n
            for n in existing
            if _is_standard(n) == is_standard and n not in ctx.edits.deleted and ctx.source.starts_line(n)
        ]
        peers = [n for n in peers if not _imports_torch(n)] if is_standard else _beside_torch(peers, existing)
        group = [line for line in group if not _join(ctx, line, peers)]
        if peers:
            _among(ctx, group, peers)
        else:
            at_torch += ["", *group] if at_torch and group else group
    if at_torch:
        _at_torch(ctx, at_torch, existing)


def _groups(lines: list[str]) -> tuple[list[str], list[str]]:
    named = [line for line in lines if line]
    standard = [line for line in named if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    return standard, [line for line in named if line not in standard]


def _top_imports(ctx: Context) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports at the head of the file, without ``__future__``."""
    for node in preamble(ctx.source.tree.body):
        if isinstance(node, ast.Import) or isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield node


def _module(node: ast.Import | ast.ImportFrom) -> str:
    return node.names[0].name if isinstance(node, ast.Import) else "." * node.level + (node.module or "")


def _is_standard(node: ast.Import | ast.ImportFrom) -> bool:
    return _module(node).partition(".")[0] in sys.stdlib_module_names


def _imports_torch(node: ast.Import | ast.ImportFrom) -> bool:
    return is_torch(_module(node)) or isinstance(node, ast.Import) and any(is_torch(a.name) for a in node.names)


def _beside_torch(
    peers: list[ast.Import | ast.ImportFrom], existing: list[ast.Import | ast.ImportFrom]
) -> list[ast.Import | ast.ImportFrom]:
    """Imports of other packages in the lines next to torch's: new ones belong among them."""
    torch = next((n for n in existing if _imports_torch(n)), None)
    if torch is None:
        return []
    block = [torch]
    place = existing.index(torch)
    for direction in (existing[place + 1 :], existing[:place][::-1]):
        edge = torch
        for node in direction:
            low, high = sorted((edge, node), key=lambda n: n.lineno)
            if high.lineno != (low.end_lineno or low.lineno) + 1 or _module(node).startswith("."):
                break
            block.append(node)
            edge = node
    return [n for n in peers if n in block and not _imports_torch(n)]


def _key(statement: ast.Import | ast.ImportFrom | str) -> tuple[bool, str]:
    """``import x`` before ``from x import y``, each alphabetical."""
    if isinstance(statement, str):
        words = statement.split()
        return words[0] == "from", words[1].lower()
    return isinstance(statement, ast.ImportFrom), _module(statement).lower()


def _join(ctx: Context, line: str, peers: list[ast.Import | ast.ImportFrom]) -> bool:
    """Add the names of ``from x import y`` to an import from the same module; whether that could be done."""
    module, _, names = line.removeprefix("from ").partition(" import ")
    if not line.startswith("from ") or " as " in names:
        return False
    for node in peers:
        if isinstance(node, ast.ImportFrom) and _module(node) == module:
            joined = with_names(import_node(ctx.source, node), names.split(", "))
            if joined is not None:
                ctx.edits.replace(node, import_code(ctx.source, node, joined))
                return True
    return False


def _among(ctx: Context, lines: list[str], peers: list[ast.Import | ast.ImportFrom]) -> None:
    """Put each line in front of the first of ``peers`` that sorts behind it."""
    before: dict[ast.stmt, list[str]] = defaultdict(list)
    behind: list[str] = []
    for line in sorted(lines, key=_key):
        following = next((n for n in peers if _key(n) > _key(line)), None)
        if following is None:
            behind.append(line)
        else:
            before[following].append(line)
    for node, found in before.items():
        ctx.edits.insert_before(node, found, priority=-5)
    if behind:
        ctx.edits.insert_after(peers[-1], behind)


def _at_torch(ctx: Context, lines: list[str], existing: list[ast.Import | ast.ImportFrom]) -> None:
    source, newline = ctx.source, ctx.source.newline
    anchor = next((n for n in existing if _imports_torch(n)), None)
    if anchor is not None and ctx.source.starts_line(anchor):
        ctx.edits.insert_before(anchor, lines, priority=-5)
        return
    head = head_end(source.tree.body)
    at = source.starts[head] if head < len(source.starts) else len(source.text)
    lead = newline if at and not source.text[:at].endswith(("\n", "\r")) else ""
    ctx.edits.add(at, at, lead + "".join(line + newline for line in lines), -5)
