"""Classes of a file hand each other channels-last values: the axes are turned where the outermost module begins."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.api import convert_file
from t2j_lsp.contract import Options, channels_last_of
from t2j_lsp.files.importers import used_elsewhere
from t2j_lsp.translate import translate

from .convert import body
from .side_by_side import compare, randomized, sides

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
BLOCK = """
class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1)
        self.norm = nn.BatchNorm2d(cout)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))
"""
GATE = """
class Gate(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, channels)

    def forward(self, x):
        b, c, _, _ = x.size()
        y = self.fc(self.pool(x).view(b, c)).view(b, c, 1, 1)
        return x * y.expand_as(x)
"""


def net(made: str, *lines: str) -> str:
    """A network of blocks; its constructor's line and the lines of ``forward``."""
    body = "\n".join(f"    {line.removeprefix('<')}" if line[:1] == "<" else f"        {line}" for line in lines)
    head = f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {made}\n\n"
    return f"{BLOCK}{GATE}\n\n{head}    def forward(self, x):\n{body}\n"


TWO = "self.a, self.b = Block(3, 4), Block(4, 4)"
NETS = {
    "one behind the other": ("self.a = Block(3, 4)\n        self.b = Block(4, 5)", ["return self.b(self.a(x))"], 2),
    "a residual": (
        "self.a = Block(3, 4)\n        self.b = Block(4, 4)",
        ["x = self.a(x)", "out = self.b(x) * 2", "out += x", "return out * 0.5"],
        2,
    ),
    "in a Sequential": ("self.net = nn.Sequential(Block(3, 4), nn.ReLU(), Block(4, 5))", ["return self.net(x)"], 2),
    "in a list": (
        "self.stem = Block(3, 4)\n        self.blocks = nn.ModuleList([Block(4, 4) for _ in range(2)])",
        ["x = self.stem(x)", "for block in self.blocks:", "    x = block(x)", "return x"],
        2,
    ),
    "in a list that is filled": (
        "self.stem = Block(3, 4)\n        self.blocks = nn.ModuleList()\n"
        "        for _ in range(2):\n            self.blocks.append(Block(4, 4))",
        ["x = self.stem(x)", "for block in self.blocks:", "    x = block(x)", "return x"],
        None,
    ),
    "in a list of several kinds": (
        "self.stem = Block(3, 4)\n        self.blocks = nn.ModuleList([Block(4, 4), nn.Conv2d(4, 4, 1)])",
        ["x = self.stem(x)", "for i, block in enumerate(self.blocks):", "    x = block(x) + i", "return x"],
        None,
    ),
    "in lists that run together": (
        "self.a = nn.ModuleList([Block(3, 4), Block(4, 4)])\n        self.b = nn.ModuleList([Block(4, 4), Gate(4)])",
        ["for one, two in zip(self.a, self.b):", "    x = two(one(x))", "return self.a[1](x)"],
        None,
    ),
    "in a list that becomes one": (
        "self.stem = Block(3, 4)\n        parts = [Block(4, 4)]\n        for _ in range(2):\n"
        "            parts.append(Block(4, 4))\n        self.blocks = nn.ModuleList(parts)",
        ["x = self.stem(x)", "for block in self.blocks:", "    x = block(x)", "return x"],
        2,
    ),
    "features at the end": (
        "self.a = Block(3, 4)\n        self.fc = nn.Linear(4, 2)",
        ["x = F.adaptive_avg_pool2d(self.a(x), 1)", "return self.fc(torch.flatten(x, 1))"],
        1,
    ),
    "windows of all there is": (
        "self.a = Block(3, 4)\n        self.gate = nn.Conv2d(4, 4, 1)\n        self.b = Block(4, 2)",
        [
            "y = self.a(x)",
            "y = y * self.gate(F.avg_pool2d(y, y.size()[2:])) + F.max_pool2d(y, kernel_size=(y.size(2), y.size(3)))",
            "z = F.max_pool2d(y, y.shape[-1] // 2).mean(dim=[2, 3], keepdim=True)",
            "y = y * z + F.avg_pool2d(y, y.size(2) // 2, stride=1).mean(dim=[2, 3], keepdim=True)",
            "return self.b(y)",
        ],
        2,
    ),
    "parts of the channels": (
        "self.a = Block(3, 4)\n        self.b = Block(2, 2)\n        self.c = Block(4, 3)",
        [
            "n = x.size(1) - 1",
            "y = self.a(x)",
            "u, v = y.chunk(2, dim=1)",
            "p, q = torch.split(y, [1, 3], 1)",
            "y = torch.cat([self.b(y[:, :n]), self.b(y[:, n:, :, :]) * torch.sigmoid(v) + u], 1) * p * q[:, 1:2]",
            "return self.c(y)",
        ],
        2,
    ),
    "parts of the image": (
        "self.a = Block(3, 4)\n        self.b = Block(12, 3)",
        [
            "y = self.a(x)[:, :, :6, :4]",
            "y = torch.cat([y[:, :, ::2, ::2], y[:, :, 1::2, ::2], y[..., ::2, 1::2]], dim=1)",
            "return self.b(y) * y[:, :, 0, 0].mean() + y[:, 1].sum() + y[..., -1, 1:].sum() + y[0].std()",
        ],
        None,
    ),
    "a loop of activations": (
        "self.a = Block(3, 4)\n        self.b = Block(4, 3)",
        ["x = self.a(x)", "for _ in range(2):", "    x = F.relu(x)", "    x = F.relu(x) - x", "return self.b(x)"],
        2,
    ),
    "the mean at the end": (
        "self.a = Block(3, 4)\n        self.fc = nn.Linear(4, 2)",
        ["return self.fc(self.a(x).mean(dim=[2, 3]))"],
        1,
    ),
    "values joined": (
        "self.a = Block(3, 4)\n        self.b = Block(3, 2)\n        self.c = Block(6, 3)",
        ["return self.c(torch.cat([self.a(x), self.b(x)], dim=1))"],
        3,
    ),
    "sizes": (
        "self.a = Block(3, 4)\n        self.b = Block(4, 5)",
        [
            "y = self.a(x)",
            "n, c, h, w = y.shape",
            "assert (n, c, h, w) == (y.size(0), y.size(1), y.shape[2], y.shape[-1])",
            "return self.b(y) * (c + 10 * h + 100 * w)",
        ],
        2,
    ),
    "a gate for each channel": (
        "self.a = Block(3, 4)\n        self.gate = Gate(4)\n        self.b = Block(4, 2)",
        ["return self.b(self.gate(self.a(x)))"],
        2,
    ),
    "resized and padded": (
        "self.a = Block(3, 4)\n        self.b = Block(8, 2)\n"
        "        self.up = nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)",
        [
            "y = self.a(x)",
            "z = F.interpolate(self.up(F.max_pool2d(y, 2)), size=y.shape[2:], mode='nearest')",
            "z = F.pad(z, [1, 2, 0, 1])[:, :, :-1, :-3]",
            "return self.b(torch.cat([y, F.pad(y, (0, 0, 0, 0))], 1)) + z.sum()",
        ],
        2,
    ),
    "other norms and pads": (
        "self.a = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4), nn.GELU(),"
        " nn.ZeroPad2d((1, 0, 2, 1)), nn.Conv2d(4, 4, 2))\n        self.norm = nn.GroupNorm(2, 4)\n"
        "        self.b = Block(4, 2)",
        ["return self.b(self.norm(self.a(x)))"],
        2,
    ),
    "a method between": (
        "self.a = Block(3, 4)\n        self.b = Block(4, 4)",
        ["return self.b(self._twice(self.a(x)))", "", "<def _twice(self, y):", "<    return self.b(self.b(y))"],
        2,
    ),
    "branches that part": (
        "self.a = Block(3, 4)\n        self.b = Block(4, 4)",
        ["y = self.a(x)", "if y.shape[0] > 1:", "    y = y.flip(0)", "else:", "    y = self.b(y)", "return self.b(y)"],
        None,
    ),
    "changed in place": (
        "self.a = Block(3, 4)\n        self.b = Block(4, 4)",
        ["y = self.a(x) * 2", "y[:, 0] = 0.5", "return self.b(y)"],
        None,
    ),
    "arrays and modes that are asked for": (
        "self.a = Block(3, 4)\n        self.b = Block(4, 4)\n        nn.init.zeros_(self.a.conv.bias)",
        [
            "self.a.norm.eval()",
            "y = self.b(self.a(x))",
            "return y + self.b.conv.weight.sum() + (self.b.conv.weight[0, 1] * self.a.norm.running_var[2]).mean()",
        ],
        4,
    ),
    "read later": (
        "self.a = Block(3, 4)\n        self.b = Block(4, 4)",
        ["y = self.a(x)", "again = lambda: self.b(y)", "return again() + self.b(y).cumsum(1)"],
        None,
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_classes_hand_channels_last_values_on(name: str) -> None:
    made, lines, turns = NETS[name]
    source = net(made, *lines)
    pair = sides(f"{HEADER}{source}", f"across_{name.replace(' ', '_')}")
    code = pair.translation.code
    if turns is not None:
        assert code.partition("class Net")[2].partition("# PyTorch behaviour")[0].count("jnp.moveaxis(") == turns, code
        assert "# Channels last, (N, H, W, C): x and the result" in code
        assert "class ChannelsFirst" not in code and "class Conv2d" not in code
    reference = randomized(pair.torch.Net())
    with jax.enable_x64(True):
        compare(reference, pair.jax.Net(rngs=nnx.Rngs(0)), [np.random.default_rng(0).normal(size=(2, 3, 6, 9))])


OPEN = {
    "the file's own code": "block = Block(3, 4)",
    "a value": "KINDS = [Block]",
    "a subclass": "class Other(Block):\n    pass",
    "an attribute that is read": "def first(net):\n    return Net().a",
    "a list that is kept": "def lists():\n    parts = [Block(3, 4)]\n    return parts",
    "a hook": "def watched():\n    Net().a.register_forward_hook(print)",
}


@pytest.mark.parametrize("name", OPEN)
def test_a_class_that_is_used_otherwise_keeps_pytorchs_axes(name: str) -> None:
    code = body(net("self.a = Block(3, 4)", "return self.a(x)") + "\n\n" + OPEN[name] + "\n")
    assert "# Channels last" not in code.partition("class Gate")[0]


@pytest.mark.parametrize(
    ("other", "kept"),
    {
        "from blocks import Block\n": True,
        "from .blocks import (\n    Net,\n    Block,\n)\n": True,
        "import blocks\nblocks.Block(1, 2)\n": True,
        "from blocks import *\nBlock(1, 2)\n": True,
        "from blocks import Net\n": False,
        "from others import Block\n": False,
    }.items(),
)
def test_a_class_that_other_files_use_keeps_pytorchs_axes(other: str, kept: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "other.py").write_text(other)
    path = tmp_path / "blocks.py"
    path.write_text(HEADER + net("self.a = Block(3, 4)", "return self.a(x)"))
    code = translate(path.read_text(), Options(used_elsewhere=used_elsewhere(path))).code
    assert ("# Channels last" not in code) == kept


@pytest.mark.parametrize("imported", [True, False])
def test_a_layer_that_a_function_makes_for_other_files_keeps_pytorchs_axes(tmp_path: Path, imported: bool) -> None:
    maker = "\n\ndef conv1x1(n):\n    return nn.Conv2d(n, n, kernel_size=1)\n"
    built = net("self.conv = conv1x1(n)", "return self.conv(x)").replace("__init__(self)", "__init__(self, n)")
    other, path = tmp_path / "other.py", tmp_path / "layers.py"
    (tmp_path / "pyproject.toml").write_text("")
    path.write_text(HEADER + maker + built)
    other.write_text(HEADER + ("from layers import conv1x1\n" if imported else maker) + built)
    for one in (path, other):
        code = convert_file(one, Options()).translation.code
        assert (
            "    def __call__(self, x):\n        return self.conv(x)\n" in code
            if imported
            else "moveaxis(x, -3, -1)" in code
        )


def test_a_part_of_a_file_keeps_pytorchs_axes() -> None:
    source = HEADER + net("self.a = Block(3, 4)", "return self.a(x)")
    assert "# Channels last" not in translate(source, Options(in_parts=True)).code


def test_the_outermost_module_hands_its_axes_on_if_asked_to() -> None:
    source = HEADER + net("self.a = Block(3, 4)", "return self.a(x)")
    code = translate(source, Options(layout="nhwc")).code
    assert code.count("# Channels last, (N, H, W, C): x and the result") == 3 and "jnp.moveaxis(" not in code


def test_what_a_comment_says_is_read_again() -> None:
    text = convert(HEADER + net("self.a = Block(3, 4)", "return self.a(x)")).code
    said = channels_last_of(text.partition("class Block")[2].partition("class Gate")[0])
    assert said is not None and (said.rank, said.takes, said.gives) == (2, ("x",), True)
    assert channels_last_of(text.partition("class Net")[2]) is None
