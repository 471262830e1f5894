"""Dicts of a device and a dtype never reach a layer: spreads go, also where the dict is kept; else a gap says so."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .test_regressions import equal

HEAD = "import torch\nfrom torch import nn\n\n\n"
NET = """class A(nn.Module):
    def __init__(self, layer=nn.Linear, device=None, dtype=None):
        super().__init__()
        {}

    def make(self):
        return nn.Linear(4, 4, bias=False, **self.options)

    def forward(self, x):
        return {}
"""
DICT = "options = {'device': device, 'dtype': dtype}\n        "
KEPT = [
    (DICT + "self.options = options\n        self.fc = nn.Linear(4, 4, **options)", "self.fc(x)"),
    (DICT + "self.options = options\n        self.fc = self.make()", "self.fc(x)"),
    ("self.options = {'device': device, 'dtype': dtype}\n        self.fc = self.make()", "self.fc(x)"),
    (DICT + "self.where = options['device']\n        self.fc = layer(4, 4, **options)", "self.fc(x)"),
    ("self.fc = layer(4, 4, device=device, dtype=dtype)", "self.fc(x)"),
    ("self.options = dict(device=device)\n        self.w = nn.Parameter(torch.ones(4, **self.options))", "x * self.w"),
]


@pytest.mark.parametrize(("made", "result"), KEPT)
def test_a_dict_that_is_kept_or_read_does_not_reach_a_layer(made: str, result: str) -> None:
    equal(HEAD + NET.format(made, result), "kept_dict", 2, 4)


@pytest.mark.parametrize(
    "made",
    [
        DICT + "options['bias'] = False\n        self.fc = nn.Linear(4, 4, **options)",
        DICT + "options.update(bias=False)\n        self.fc = nn.Linear(4, 4, **options)",
        DICT + "self.fc = build(options)",
        DICT + "layers = [options]\n        self.fc = nn.Linear(4, 4, **layers[0])",
    ],
)
def test_a_dict_that_is_changed_or_handed_on_is_said(made: str) -> None:
    build = "def build(options):\n    return nn.Linear(4, 4, **options)\n\n\n"
    assert any("handed on" in gap.reason for gap in convert(HEAD + build + NET.format(made, "self.fc(x)")).gaps)


def test_a_class_that_must_be_given_a_device_gets_it() -> None:
    own = "class Own(nn.Linear):\n    def __init__(self, a, b, device):\n        super().__init__(a, b)\n\n\n"
    code = convert(HEAD + own + NET.format("self.fc = layer(4, 4, device=device)", "self.fc(x)")).code
    assert "layer(4, 4, device=device, rngs=rngs)" in code
