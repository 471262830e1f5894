"""Blocks that are handed to a network, exchanged, or derived from: which of them keep PyTorch's axes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp.api import convert_file
from t2j_lsp.contract import Options

from .convert import body
from .side_by_side import compare, randomized, sides
from .test_layout_across_classes import BLOCK, HEADER

RESNET = """
class Small(nn.Module):
    expansion = 1

    def __init__(self, cin, cout, downsample=None):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1)
        self.downsample = downsample

    def forward(self, x):
        out = self.conv(x)
        if self.downsample is not None:
            x = self.downsample(x)
        return F.relu(out + x)


class Large(nn.Module):
    expansion = 2

    def __init__(self, cin, cout, downsample=None):
        super().__init__()
        self.conv = nn.Conv2d(cin, 2 * cout, 1)
        self.downsample = downsample

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        return torch.tanh(self.conv(x) + identity)


class Net(nn.Module):
    def __init__(self, block=Large, sizes=(4, 3)):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.size = 4
        self.first = self._layer(block, sizes[0])
        self.second = self._layer(block=block, planes=sizes[1])

    def _layer(self, block, planes):
        downsample = None
        if self.size != planes * block.expansion:
            size = planes * block.expansion
            downsample = nn.Sequential(nn.Conv2d(self.size, size, 1), nn.BatchNorm2d(size))
        layers = [block(self.size, planes, downsample)]
        self.size = planes * block.expansion
        layers.append(block(self.size, planes))
        return nn.Sequential(*layers)

    def forward(self, x):
        return self.second(self.first(self.stem(x)))


def small():
    return Net(Small)
"""


@pytest.mark.parametrize("made", ["Net()", "Net(Small)"])
def test_blocks_that_are_handed_to_a_network_are_followed(made: str) -> None:
    pair = sides(HEADER + RESNET, "across_blocks")
    code = pair.translation.code
    assert code.count("# Channels last, (N, H, W, C): x and the result") == 2
    assert code.partition("class Net")[2].partition("def small")[0].count("jnp.moveaxis(") == 2, code
    reference = randomized(eval(made, vars(pair.torch)))
    new = eval(made.replace(")", ", rngs=rngs)").replace("(, ", "("), vars(pair.jax) | {"rngs": nnx.Rngs(0)})
    with jax.enable_x64(True):
        compare(reference, new, [np.random.default_rng(0).normal(size=(2, 3, 6, 9))])


EXCHANGED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.conv2 = Block(4, 4)

    def forward(self, x):
        return self.conv2(self.pool(F.relu(self.norm(self.conv1(x)))))


def other():
    net = Net()
    {line}
    return net
"""


@pytest.mark.parametrize(
    "line",
    [
        "net.conv1 = nn.Conv2d(4, 4, 3)",
        "net.pool = nn.Identity()",
        "net.pool = nn.AvgPool2d(2)",
        "net.conv2 = Block(4, 4)",
        "setattr(net, 'conv1', nn.Conv2d(4, 4, 3))",
        "net.conv2 = nn.Conv2d(4, 4, 1)",
    ],
)
def test_a_layer_that_is_exchanged_stands_in_pytorchs_axes(line: str) -> None:
    pair = sides(HEADER + BLOCK + EXCHANGED.replace("{line}", line), "across_exchanged")
    reference = randomized(pair.torch.other())
    with jax.enable_x64(True):
        compare(reference, pair.jax.other(rngs=nnx.Rngs(0)), [np.random.default_rng(0).normal(size=(2, 4, 8, 8))])


GATED = """
class Gate(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return x * self.fc(self.pool(x))


class Gated(Bottleneck):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.gate = Gate(4)

    def forward(self, x):
        return self.conv(super().forward(x))
"""


BOTTLENECK = """
class Bottleneck(nn.Module):
    def forward(self, x):
        return self.gate(self.conv(x)) + x
"""


def test_what_a_base_calls_of_classes_that_derive_from_it_has_pytorchs_axes() -> None:
    """A base without a constructor knows nothing of its ``self.gate``, and gave it PyTorch's axes."""
    pair = sides(HEADER + BOTTLENECK + GATED, "across_bases")
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(2, 4, 8, 8))
        compare(randomized(pair.torch.Gated()), pair.jax.Gated(rngs=nnx.Rngs(0)), [x])


def test_so_it_has_where_the_base_stands_in_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"bottleneck": BOTTLENECK, "gated": f"from bottleneck import Bottleneck\n{GATED}"}.items():
        (tmp_path / f"{name}.py").write_text(HEADER + text)
    code = {name: convert_file(tmp_path / f"{name}.py", Options()).translation for name in ("bottleneck", "gated")}
    assert not any(one.gaps for one in code.values())
    pair = sides(HEADER + BOTTLENECK + GATED, "across_files")
    with monkeypatch.context() as patch:
        made = ModuleType("bottleneck")
        exec(code["bottleneck"].code, vars(made))
        patch.setitem(sys.modules, "bottleneck", made)
        names: dict[str, Any] = {}
        exec(code["gated"].code, names)
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(2, 4, 8, 8))
        compare(randomized(pair.torch.Gated()), names["Gated"](rngs=nnx.Rngs(0)), [x])


FROM_OUTSIDE = {
    "a block that is kept": (
        "self.stem = nn.Conv2d(3, 4, 3)",
        "self.stem = nn.Conv2d(3, 4, 3)\n        self.block = block",
    ),
    "a block of a list": ("return Net(Small)", "return [Net(b) for b in (Small, Large)]"),
    "a network that is a value": ("def small", "MODELS = {'net': Net}\n\n\ndef small"),
}


@pytest.mark.parametrize("name", FROM_OUTSIDE)
def test_blocks_that_may_come_from_anywhere_keep_pytorchs_axes(name: str) -> None:
    old, new = FROM_OUTSIDE[name]
    assert old in RESNET
    assert "# Channels last" not in body(RESNET.replace(old, new))
