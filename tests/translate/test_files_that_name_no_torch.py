"""Files without a word of PyTorch that make or derive from modules of their project: they give them ``rngs``."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp import convert
from t2j_lsp.files.sources import neighbours

NET = """import torch.nn as nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return self.fc(x)
"""
BUILD = "from net import Net\n\n\ndef build(n):\n    return Net(n)\n"
NEXT = "from build import build\n\n\ndef deeper(n):\n    return build(n)\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (BUILD, "return Net(n, rngs=rngs)"),
        ("import net\n\n\ndef build(n):\n    return net.Net(n)\n", "return net.Net(n, rngs=rngs)"),
        (NEXT, "return build(n, rngs=rngs)"),
        ("from deep import deeper\n\n\ndef run(x):\n    return deeper(3)(x)\n", "return deeper(3, rngs=rngs)(x)"),
        ("from net import Net\n\n\nclass Sub(Net):\n    def forward(self, x):\n        return x * 2\n", "__call__"),
        (
            "from net import Net\n\n\nclass Sub(Net):\n    def __init__(self):\n        super().__init__(3)\n",
            "super().__init__(3, rngs=rngs)",
        ),
        ("from net import Net\n\nMADE = {'net': Net}\n\n\ndef make(n):\n    return MADE['net'](n)\n", "(n, rngs=rngs)"),
    ],
)
def test_modules_of_other_files_are_given_rngs(text: str, written: str, tmp_path: Path) -> None:
    for name, content in {"net": NET, "build": BUILD, "deep": NEXT}.items():
        (tmp_path / f"{name}.py").write_text(content)
    done = convert(text, resolve=neighbours(tmp_path / "user.py"))
    assert not done.gaps and written in done.code


@pytest.mark.parametrize(
    "text",
    [
        "from plain import add\n\n\ndef run(x):\n    return add(x, 2).sum(axis=0)\n",
        "import plain\n\n\nclass Sub(plain.Base):\n    def forward(self, x):\n        return plain.add(x, 1)\n",
        "from plain import Base\n\n\ndef run(x):\n    return Base().forward(x)\n",
        "import json\nimport numpy as np\n\n\ndef run(x):\n    return np.sum(x), json.dumps({})\n",
    ],
)
def test_what_meets_no_module_stays(text: str, tmp_path: Path) -> None:
    plain = "class Base:\n    def forward(self, x):\n        return x\n\n\ndef add(a, b):\n    return a + b\n"
    (tmp_path / "plain.py").write_text(plain)
    assert convert(text, resolve=neighbours(tmp_path / "user.py")).code == text
