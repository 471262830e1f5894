"""The work of a translation grows as the file does: what is asked per statement must not read the whole file again."""

import ast
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.convert_speed import source_of
from t2j_lsp import symbols
from t2j_lsp.translate import translate
from t2j_lsp.translate.inference.file import Inference

SHORT, LONG = 500, 2000


@contextmanager
def counted(patch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """How often facts and children of nodes are asked for."""
    counts = {"fact": 0, "children": 0}
    fact, children = Inference.fact, symbols.children

    def counted_fact(inference: Inference, node: ast.AST) -> object:
        counts["fact"] += 1
        return fact(inference, node)

    def counted_children(node: ast.AST) -> list[ast.AST]:
        counts["children"] += 1
        return children(node)

    with patch.context() as inner:
        inner.setattr(Inference, "fact", counted_fact)
        inner.setattr(symbols, "children", counted_children)
        yield counts


def test_work_for_each_line_stays_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    works: list[dict[str, float]] = []
    for length in (SHORT, LONG):
        source = source_of(length)
        with counted(monkeypatch) as counts:
            translate(source)
        works.append({name: count / source.count("\n") for name, count in counts.items()})
    short, long = works
    print(short, long)
    assert min(short.values()) > 1
    for name, work in long.items():
        assert work < 1.3 * short[name], name
