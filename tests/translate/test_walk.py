"""What a conversion goes through: passes that would find nothing are left out, parts that nobody asks aren't made."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from t2j_lsp import convert
from t2j_lsp.translate import pipeline
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.output import reading
from t2j_lsp.translate.training.gate import LOSSES

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("t2j_lsp", "rules")
CAT = "import torch\n\n\ndef f(a, b):\n    return torch.cat([a, b], dim=1)\n"
MOST = 27
"""Files of t2j that run for ``CAT``."""
CORPORA = [
    path
    for folder in ("examples", "tests/translate/models", "tests/translate/scripts")
    for path in sorted((ROOT / folder).glob("*.py"))
]


def files_that_run(text: str) -> list[str]:
    """The files of t2j in which anything runs for a conversion, in the order in which they are entered."""
    convert(text)  # rules and helpers are read, and templates compiled, with the first one
    homes = {ROOT / part for part in PARTS}
    names: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and not homes.isdisjoint(path.parents):
            names[path.relative_to(ROOT).as_posix()] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        convert(text)
    finally:
        sys.setprofile(before)
    return list(names)


def test_one_call_is_followed_through_few_files() -> None:
    walk = files_that_run(CAT)
    print(f"{len(walk)} files:", *walk, sep="\n")
    assert len(walk) <= MOST


def test_the_way_of_a_call_is_described() -> None:
    """docs/architecture.md lists the files of the walk in their order."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## The walk of one call")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w/.]+)` \|", table, re.MULTILINE) == [
        f.removeprefix("t2j_lsp/") for f in files_that_run(CAT)
    ]


@pytest.mark.parametrize("path", CORPORA, ids=lambda path: path.stem)
def test_a_pass_that_is_left_out_would_have_found_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text(encoding="utf-8")
    gated = convert(text)
    has = Inference.has
    # LOSSES is no want of work: it says which files' loops are training loops.
    monkeypatch.setattr(Inference, "has", lambda self, gate: gate is not LOSSES or has(self, gate))
    monkeypatch.setattr(Inference, "draws", True)
    monkeypatch.setattr(Inference, "torch_names", frozenset({"jnp", "nnx", "jax", "self"}))
    monkeypatch.setattr(pipeline, "MIN_WIDTH", 0)
    monkeypatch.setattr(reading, "reads_what_it_assigns", lambda code, nodes: True)
    assert convert(text) == gated
