"""Lazy layers get the sizes that the layers in front of them, or a first call, say; others stay, with a reason."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\nimport torch.nn as nn\n\n"
SIZED = [
    ("nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LazyLinear(3))", "inear(8, 3"),
    ("nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Tanh(), nn.LazyLinear(3, bias=False)))", "inear(8, 3"),
    (
        "nn.Sequential(nn.Conv2d(1, 6, 3), nn.LazyBatchNorm2d(), nn.LazyConv2d(out_channels=8, kernel_size=1))",
        "(6, 8, ",
    ),
    (
        "nn.Sequential(nn.LazyConv2d(6, 5, padding=2), nn.AvgPool2d(2), nn.Flatten(), nn.LazyLinear(9))\nnet(x)",
        "(1176, 9",
    ),
    ("nn.Sequential(nn.Flatten(), nn.LazyLinear(\n    9,  # classes\n))\nnet(torch.rand(2, 3, 4))", "nnx.Linear(12, 9"),
    (
        "nn.Sequential(nn.Conv1d(2, 4, 3, stride=2), nn.Flatten(), nn.LazyLinear(5))\nnet(torch.ones((1, 2, 9)))",
        "(16, 5",
    ),
    ("nn.Sequential(nn.Flatten(), nn.LazyBatchNorm1d())\nnet(torch.zeros(size=(2, 3, 4)))", "BatchNorm(12"),
]
UNKNOWN = [
    "nn.Sequential(nn.Flatten(), nn.LazyLinear(9))",
    "nn.Sequential(nn.Linear(2, 4), nn.LazyBatchNorm1d())",
    "nn.Sequential(nn.Flatten(), nn.LazyLinear(9))\nnet(torch.rand(2, 3))\nnet(torch.rand(2, 4))",
    "nn.Sequential(nn.Flatten(), nn.LazyLinear(9))\ndef f(net):\n    return net(torch.rand(2, 3))",
    "nn.Sequential(nn.Linear(2, 4), nn.LazyLinear(9))\nnet.insert(1, nn.Linear(4, 5))",
    "nn.Sequential(nn.MaxPool2d(2, ceil_mode=True), nn.Flatten(), nn.LazyLinear(9))\nnet(x)",
    "nn.Sequential(nn.Linear(2, 4), *more, nn.LazyLinear(9))",
]


@pytest.mark.parametrize(("made", "wanted"), SIZED)
def test_a_size_that_the_file_shows_is_given(made: str, wanted: str) -> None:
    translation = convert(f"{HEAD}x = torch.randn(1, 1, 28, 28)\nnet = {made}\n")
    assert not translation.gaps
    assert wanted in translation.code and "Lazy" not in translation.code


@pytest.mark.parametrize("made", UNKNOWN)
def test_a_size_that_nothing_shows_is_asked_for(made: str) -> None:
    translation = convert(f"{HEAD}x = torch.randn(1, 1, 28, 28)\nnet = {made}\n")
    assert any("from its first input" in gap.message for gap in translation.gaps)
    assert "nn.Lazy" in translation.code
