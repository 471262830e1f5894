"""Programs of several files: each file converts whole, also those that compute with tensors and don't import torch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.files.sources import neighbours
from t2j_lsp.translate import translate

PROJECTS = Path(__file__).parents[1] / "projects"
FILES = sorted(PROJECTS.rglob("*.py"))
OF_TENSORS = re.compile(r"(?<!nn)\.(?:topk|expand_as|size|backward|zero_grad|mul_|sigmoid|float|to)\(")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PROJECTS).as_posix())
def test_every_file_of_a_project_converts(path: Path) -> None:
    done = translate(path.read_text(encoding="utf-8"), Options(helpers="import", resolve=neighbours(path)))
    assert not done.gaps
    assert not OF_TENSORS.search(done.code)


def translated(text: str) -> str:
    return translate(text, Options(helpers="import")).code


@pytest.mark.parametrize(
    "telling", ["x.unsqueeze(0)", "x.size(0)", "x.view(-1, 2)", "x.float()", "x.sum(1, keepdim=True)"]
)
def test_what_only_tensors_have_is_code_for_torch(telling: str) -> None:
    text = f"def f(x, m):\n    return {telling}\n"
    assert telling not in translated(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x.size()\n",
        "def f(ax):\n    ax.scatter([1], [2])\n    return ax.view\n",
        "import tensorflow as tf\n\ndef f(x):\n    return x.unsqueeze(0)\n",
        "import paddle\n\ndef f(x):\n    return x.unsqueeze(0)\n",
        "def f(view):\n    return view.size('all')\n",
        "def f(column):\n    return column.float(2)\n",
    ],
)
def test_other_code_stays_as_it_is(text: str) -> None:
    assert translated(text) == text
