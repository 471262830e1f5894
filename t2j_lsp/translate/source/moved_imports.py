"""Imports of modules that stand elsewhere: ``from torchvision import datasets, models`` where ``models`` moved.

Names that the text binds stay as they are; ``torchvision.models.vgg16`` behind ``import torchvision`` is written as
what it is called now. A module that is used as a value, as in ``getattr(models, name)``, isn't moved: what is asked of
it isn't known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from t2j_lsp.contract import SourceError
from t2j_lsp.symbols import bound_as

from .literal_names import NO_MAKERS, Makers, Moves, literal_names
from .rearranged import Edits, Fragment, Rearranged, RearrangedText
from .scopes import Resolve
from .text import Source

_Edit = tuple[int, int, list[Fragment]]
_MODULE = re.compile(r"from\s+([.\w][.\w\s]*?)\s*\bimport\b|from\s*(\.+)\s*import\b")

_COMMENT = re.compile(r"#[^\r\n]*")
_COMMA = re.compile(r"[ \t]*,?")


def moved_prefixes(modules: tuple[tuple[str, str], ...]) -> Moves:
    """Modules with all that is in them, by their names and new names."""

    def moves(level: int, name: str) -> str | None:
        for old, new in modules if not level else ():
            if name == old or name.startswith(f"{old}."):
                return new + name[len(old) :]
        return None

    return moves


def moved_imports(source: Source, moves: Moves, package: str = "") -> Edits:
    """The edits of a text after which it imports what moved.

    ``package`` is where relative imports of a library's own file count from, of which everything is known.
    """
    edits: Edits = []
    roots: dict[str, tuple[ast.Import, ast.alias]] = {}
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom):
            edits += _moved_from(source, node, moves, package)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                new = moves(0, alias.name) if alias.asname else None
                if new is None:
                    roots.setdefault(bound_as(alias), (node, alias))
                elif package or not _is_value(source, bound_as(alias)):
                    start = source.span(alias)[0]
                    edits.append(_instead(start, start + len(alias.name), new))
    for bound, (node, alias) in roots.items():
        edits += _moved_chains(source, node, alias, bound, moves)
    return sorted(edits, key=lambda edit: edit[:2])


def moved_text(source: Source, moves: Moves, makers: Makers = NO_MAKERS) -> RearrangedText | None:
    """A text that imports what moved, and what it asks of it by written names; None where that is nothing."""
    made: list[Rearranged] = []
    if edits := literal_names(source, moves, makers):
        made.append(Rearranged.of(source.text, edits))
        source = Source(made[-1].new, placed=False)
    if edits := moved_imports(source, moves):
        made.append(Rearranged.of(source.text, edits))
    return RearrangedText(tuple(made)) if made else None


def reads_moved(resolve: Resolve, moves: Moves, makers: Makers = NO_MAKERS) -> Resolve:
    """Texts of other files as they import what moved."""

    def read(level: int, name: str) -> str | None:
        text = resolve(level, name)
        return text if text is None else with_moved_imports(text, moves, makers)

    return read


def uses_any(text: str, modules: tuple[tuple[str, str], ...]) -> bool:
    """Whether a text imports a module by its new name."""
    return any(new.partition(".")[0] in text for _, new in modules)


def with_moved_imports(text: str, moves: Moves, makers: Makers = NO_MAKERS) -> str:
    """A text that imports what moved; one that isn't Python stays as it is."""
    try:
        source = Source(text, placed=False)
    except SourceError:
        return text
    moved = moved_text(source, moves, makers)
    return source.bom + moved.text if moved is not None else text


def absolute(package: str, level: int, module: str | None) -> str:
    """The whole name of what ``from {level dots}{module}`` means in a file of a package."""
    if not level:
        return module or ""
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])


def _moved_from(source: Source, node: ast.ImportFrom, moves: Moves, package: str) -> Edits:
    whole = absolute(package, node.level, node.module)
    start, end = source.span(node)
    match = _MODULE.match(source.text, start, end)
    if match is None:
        return []
    place = match.span(1) if match[1] else match.span(2)
    if (new := moves(node.level, whole)) is not None:
        return [_instead(*place, new)]
    moved: dict[str, list[ast.alias]] = {}
    for alias in node.names:
        new = moves(node.level, f"{whole}.{alias.name}")
        if new is not None and (package or not _is_value(source, bound_as(alias))):
            moved.setdefault(new.rpartition(".")[0], []).append(alias)
    gone = [alias for aliases in moved.values() for alias in aliases]
    if len(moved) == 1 and len(gone) == len(node.names):
        return [_instead(*place, next(iter(moved)))]
    if not moved:
        return []
    if len(gone) == len(node.names):
        home, first = moved.popitem()
        moved_first: Edits = [_instead(*place, home)]
        gone = [alias for alias in gone if alias not in first]
    else:
        moved_first = []
    texts = [f"from {home} import {', '.join(map(ast.unparse, aliases))}" for home, aliases in moved.items()]
    return [*moved_first, *_without(source, node.names, gone), _behind(source, node, texts)]


def _without(
    source: Source, names: list[ast.alias], gone: list[ast.alias]
) -> Iterator[tuple[int, int, list[Fragment]]]:
    """The edits that take names out of an import; one stays at least."""
    kept = [index for index, alias in enumerate(names) if alias not in gone]
    for index, alias in enumerate(names):
        if alias in gone and index < kept[-1]:
            yield source.span(alias)[0], source.span(names[index + 1])[0], []
    if kept[-1] < len(names) - 1:
        start, end = source.span(names[kept[-1]])[1], source.span(names[-1])[1]
        comments = _COMMENT.findall(source.text, start, end)
        if comments:
            end = _COMMA.match(source.text, end).end()  # type: ignore[union-attr]
            comments.append("" if source.text[end : end + 1] in "\r\n" else source.newline)
        yield start, end, [Fragment(",  " + "  ".join(comments[:-1]) + comments[-1], start, end)] if comments else []


def _behind(source: Source, node: ast.stmt, statements: list[str]) -> _Edit:
    """The edit that puts statements behind an import."""
    start, end = source.span(node)
    line = source.line_of(start)
    alone = source.starts_line(node) and not source.text[end:].lstrip(" \t\\").startswith(";")
    between = f"{source.newline}{source.indent(line)}" if alone else "; "
    return end, end, [Fragment("".join(between + one for one in statements), start, end)]


def _is_value(source: Source, name: str) -> bool:
    """Whether a module's name is used for anything but to read what is in it."""
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and not (isinstance(above := source.parents.get(node), ast.Attribute) and above.attr != "__dict__")
        for node in source.nodes
    )


def _moved_chains(source: Source, node: ast.Import, alias: ast.alias, bound: str, moves: Moves) -> Edits:
    """``torchvision.models.vgg16`` behind ``import torchvision``, and the import."""
    names = [one for one in source.nodes if isinstance(one, ast.Name) and one.id == bound]
    is_bound_again = any(isinstance(one, ast.arg) and one.arg == bound for one in source.nodes)
    if is_bound_again or any(not isinstance(one.ctx, ast.Load) for one in names):
        return []
    edits: Edits = []
    modules: dict[str, None] = {}
    for name in names:
        chain: ast.AST = name
        dotted = alias.name if alias.asname else bound
        while (new := moves(0, dotted)) is None and isinstance(above := source.parents.get(chain), ast.Attribute):
            chain, dotted = above, f"{dotted}.{above.attr}"
        if new is not None:
            read = source.parents.get(chain)
            if not isinstance(read, ast.Attribute) or read.attr == "__dict__":
                return []
            edits.append(_instead(source.span(name)[0], source.span(chain)[1], new))
            modules[moves(0, alias.name) or new] = None
    if not edits:
        return []
    texts = [f"import {module}" for module in modules]
    if len(edits) < len(names):
        return [*edits, _behind(source, node, texts)]
    if len(node.names) > 1:
        return [*edits, *_without(source, node.names, [alias]), _behind(source, node, texts)]
    start, end = source.span(node)
    between = f"{source.newline}{source.indent(node.lineno)}" if source.starts_line(node) else "; "
    return [*edits, _instead(start, end, between.join(texts))]


def _instead(start: int, end: int, new: str) -> _Edit:
    return start, end, [Fragment(new, start, end)]
