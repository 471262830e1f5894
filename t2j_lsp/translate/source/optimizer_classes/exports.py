"""``__all__`` of a file whose functions stand in the steps that handed them lists: it goes without these."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.source.rearranged import Edits
from t2j_lsp.translate.source.text import Source


def exported(source: Source) -> dict[str, ast.Constant]:
    """The names in ``__all__`` of a file, with where they stand."""
    nodes = [n for s in source.tree.body if _exports(s) for n in symbols.walk(s) if isinstance(n, ast.Constant)]
    return {str(n.value): n for n in nodes}


def is_listed(source: Source, node: ast.Constant) -> bool:
    """Whether a name is one of a list's that are written out."""
    around = source.parents.get(node)
    return isinstance(around, ast.List | ast.Tuple) and len(around.elts) > 1


def without_names(source: Source, names: Iterable[str]) -> Edits:
    """The edits that take names out of the lists in which they stand."""
    at = exported(source)
    gone = [at[name] for name in names if name in at]
    return [
        (start, end, [])
        for around in {source.parents[node] for node in gone}
        if isinstance(around, ast.List | ast.Tuple)
        for start, end in _ranges(source, around, gone)
    ]


def _ranges(source: Source, around: ast.List | ast.Tuple, gone: list[ast.Constant]) -> Iterator[tuple[int, int]]:
    """Each name that goes with what stands up to its neighbour: the next one, or the last that stays."""
    kept = [n for n in around.elts if n not in gone]
    for node, following in zip(around.elts, [*around.elts[1:], None], strict=True):
        if node in gone:
            start, end = source.span(node)
            before = [n for n in kept if source.span(n)[0] < start]
            if following is not None and any(source.span(n)[0] > start for n in kept):
                yield start, source.span(following)[0]
            else:
                previous = around.elts[around.elts.index(node) - 1] if before else None
                yield (source.span(previous)[1] if previous is not None else start), end


def _exports(node: ast.stmt) -> bool:
    """``__all__ = [...]``."""
    return isinstance(node, ast.Assign | ast.AugAssign) and any(
        isinstance(n, ast.Name) and n.id == "__all__" for n in symbols.walk(node)
    )
