"""Converting what was converted changes nothing: every program of the project's own corpora."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.api import convert, convert_file
from t2j_lsp.contract import Options
from t2j_lsp.files.sources import neighbours

ROOT = Path(__file__).parents[2]
CORPORA = (
    "examples", "tests/translate/models", "tests/translate/scripts", "benchmarks/mutants_corpus",
    "benchmarks/volumes_corpus", "benchmarks/transfer_learning", "tests/programs",
)  # fmt: skip
PROGRAMS = [path for folder in CORPORA for path in sorted((ROOT / folder).glob("*.py")) if path.stem != "__init__"]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_converted_program_converts_to_itself(path: Path) -> None:
    once = convert_file(path, Options()).translation
    again = convert(once.code, path=str(path), resolve=neighbours(path))
    assert once.code != once.source
    assert again.code == once.code
