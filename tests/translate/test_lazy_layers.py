"""Lazy layers get the sizes that layers in front, a first call or annotations say; others stay, with a reason."""

from __future__ import annotations

import jax
import pytest
import torch
from flax import nnx

from t2j_lsp import convert

from .side_by_side import compare, randomized, sides

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


CLASS = """from jaxtyping import Float
import torch
from torch import Tensor, nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.LazyConv2d(6, 5, padding=2)
        self.norm = nn.LazyBatchNorm2d()
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Sequential(nn.LazyLinear(16), nn.ReLU(), nn.LazyLinear(3))

    def forward(self, x{annotation}):
        x = self.pool(F.relu(self.norm(self.conv(x))))
        x = {flat}
        return self.head(x)


"""
TOLD = ': Float[Tensor, "batch 2 8 12"]'
CALLED = "net = Net()\nx = torch.randn(5, 2, 8, 12)\nprint(net(x))\n"


@pytest.mark.parametrize("flat", ["x.flatten(1)", "torch.flatten(x, start_dim=1)", "x.view(x.size(0), -1)"])
@pytest.mark.parametrize(
    ("annotation", "called"), [(TOLD, ""), ("", CALLED), ("", "print(Net()(torch.zeros(5, 2, 8, 12)))\n")]
)
def test_the_attributes_of_a_module_have_the_sizes_that_forward_hands_them(
    flat: str, annotation: str, called: str
) -> None:
    translation = convert(CLASS.format(annotation=annotation, flat=flat) + called)
    assert not translation.gaps and "Lazy" not in translation.code
    for wanted in ("nnx.Conv(2, 6, ", "BatchNorm(6", "nnx.Linear(144, 16", "nnx.Linear(16, 3"):
        assert wanted in translation.code, wanted


def test_sizes_that_are_given_compute_what_lazy_layers_do() -> None:
    source = CLASS.format(annotation="", flat="x.flatten(1)").partition("\n")[2]
    both = sides(f"{source}def main():\n    x = torch.randn(5, 2, 8, 12)\n    Net()(x)\n", "lazy")
    net, x = both.torch.Net(), torch.randn(5, 2, 8, 12)
    net(x)
    assert not both.gaps()
    with jax.enable_x64(True):
        compare(randomized(net), both.jax.Net(rngs=nnx.Rngs(0)), [x.double().numpy()], train=True)


@pytest.mark.parametrize(
    ("annotation", "changed", "called"),
    [
        ("", "", ""),
        (': Float[Tensor, "*batch channels 8 12"]', "", ""),
        (': Float[Tensor, "batch 2 8 12"]', "", "Net()(torch.zeros(5, 3, 8, 12))\n"),
        ("", "", "Net()(torch.zeros(5, 2, 8, 12))\nother = Net()\n"),
        (TOLD, "x = x.unsqueeze_(0)", ""),
        (TOLD, "if x.sum() > 0:\n            x = x[:, :1]", ""),
        (TOLD, "self.conv = nn.Identity()", ""),
        (TOLD, "self.conv(F.max_pool2d(self.conv(x), 2))", ""),
        (TOLD, "", "\nclass Other(Net):\n    pass\n"),
        (TOLD, "", "net = Net()\nnet.conv = nn.Identity()\n"),
    ],
)
def test_sizes_that_are_not_sure_are_asked_for(annotation: str, changed: str, called: str) -> None:
    text = CLASS.format(annotation=annotation, flat="x.flatten(1)")
    text = text.replace("        x = self.pool", f"        {changed or 'pass'}\n        x = self.pool")
    translation = convert(text + called)
    assert "nn.LazyConv2d" in translation.code
    assert any("from its first input" in gap.message for gap in translation.gaps)
