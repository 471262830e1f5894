"""Models of libraries that are only asked what they are: they stay PyTorch's, and that is no gap."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """import timm
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, name):
        super().__init__()
        with torch.device("meta"):
            probe = timm.create_model(name, features_only=True)
        self.sizes = {read}
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize(
    "read",
    [
        "len(probe.feature_info.reduction())",
        "getattr(probe, 'output_fmt', None) == 'NHWC'",
        "probe.default_cfg['mean']",
    ],
)
def test_a_model_that_is_asked_what_it_is_takes_no_arrays(read: str) -> None:
    done = convert(SOURCE.format(read=read))
    assert not done.gaps
    assert any("asked for what describes it" in note.reason for note in done.notes)
    assert "with jax.default_device(jax.devices()[0]):" in done.code


@pytest.mark.parametrize(
    "read",
    [
        "probe(torch.ones(1, 3, 8, 8)).shape",
        "probe",
        "[probe]",
        "probe.state_dict()",
        "probe.conv1.weight",
        "getattr(probe, name)",
        "(probe.feature_info, sum(1 for p in probe.parameters()))",
        "(lambda: probe)",
    ],
)
def test_one_of_which_anything_else_is_read_is_a_gap(read: str) -> None:
    assert any("makes a PyTorch module" in gap.reason for gap in convert(SOURCE.format(read=read)).gaps)


def test_a_model_that_others_may_read_is_a_gap() -> None:
    text = 'import timm\nimport torch\n\nprobe = timm.create_model("a")\nprint(probe.default_cfg, torch.ones(3))\n'
    assert convert(text).gaps
    text = SOURCE.replace("        with torch", "        global probe\n        with torch")
    assert convert(text.format(read="probe.default_cfg")).gaps


def test_a_model_behind_a_none_is_one_gap() -> None:
    text = (
        "import timm\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, name=None):\n"
        "        super().__init__()\n        self.model = None\n        if name:\n"
        "            self.model = timm.create_model(name)\n\n    def forward(self, x):\n        return self.model(x)\n"
    )
    (gap,) = convert(text).gaps
    assert gap.name == "timm.create_model"
