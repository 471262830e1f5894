"""Which method of a class is the one that a call of its instances runs."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\nfrom abc import ABC, abstractmethod\nfrom torch import nn\n\n\n"
ASKED = "class Asked(ABC):\n    @abstractmethod\n    def __call__(self, x):\n        ...\n\n\n"
MIXED = "class Mixed:\n    def __call__(self, x):\n        return self.forward(x) + 1\n\n\n"
OWN = MIXED.replace("class Mixed:", "class Own(nn.Module):")
NET = "class Net({}):\n    def forward(self, x):\n        return torch.relu(x)\n"


@pytest.mark.parametrize(
    ("bases", "name"),
    [
        ("nn.Module, Asked", "__call__"),
        ("nn.Module, Mixed", "__call__"),
        ("Mixed, nn.Module", "forward"),
        ("Own", "forward"),
    ],
)
def test_what_comes_before_the_module_decides(bases: str, name: str) -> None:
    code = convert(HEAD + ASKED + MIXED + OWN + NET.format(bases)).code
    assert f"def {name}(self, x)" in code[code.index("class Net") :]


@pytest.mark.parametrize(("line", "gap"), [("made.kept = kwargs", True), ("cls.kept = kwargs", False), ("pass", False)])
def test_what_new_keeps_has_no_place_in_nnx(line: str, gap: bool) -> None:
    text = (
        "class Base(nn.Module):\n    def __new__(cls, *args, **kwargs):\n"
        f"        made = super().__new__(cls)\n        {line}\n        return made\n"
    )
    assert [g.name for g in convert(HEAD + text).gaps] == ["torch.nn.Module.__new__"] * gap
