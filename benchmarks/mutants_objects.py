"""The right conversions that are mutated: files of small PyTorch programs, converted by the rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from t2j_lsp import convert
from t2j_lsp.check.program.objects import find_objects
from t2j_lsp.check.program.slice import Slicer

CORPUS = Path(__file__).parent / "mutants_corpus"


@dataclass(frozen=True)
class Subject:
    """One class or function of a file of the corpus."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"{self.path.stem}.{self.name}"

    @property
    def converted(self) -> str:
        """The converted file."""
        return _converted(self.path)

    def statements(self) -> list[ast.stmt]:
        """The converted definitions that the object consists of, and no helpers."""
        wanted = {self.name}
        source = {n.name: n for n in ast.parse(self.path.read_text()).body if isinstance(n, _DEFINITION)}
        todo = [self.name]
        while todo:
            for node in ast.walk(source[todo.pop()]):
                if isinstance(node, ast.Name) and node.id in source and node.id not in wanted:
                    wanted.add(node.id)
                    todo.append(node.id)
        return [s for s in ast.parse(self.converted).body if isinstance(s, _DEFINITION) and s.name in wanted]


_DEFINITION = ast.ClassDef | ast.FunctionDef


@cache
def _converted(path: Path) -> str:
    return convert(path.read_text()).code


def subjects(only: str | None = None) -> list[Subject]:
    """Every object of the corpus, or those whose name holds a part of ``only``."""
    return [s for s in _all() if only is None or any(part in str(s) for part in only.split(","))]


def _all() -> Iterator[Subject]:
    for path in sorted(CORPUS.glob("*.py")):
        for item in find_objects(Slicer(path), None):
            yield Subject(path, item.name)
