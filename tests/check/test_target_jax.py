"""Conversions to the target ``jax``: right ones are equivalent in every stage, mistakes in them are found."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert
from t2j_lsp.contract import VerdictKind

from .conftest import TORCH, Check

NET = """
class Block(nn.Module):
    def __init__(self, width, stride=1, p=0.2):
        super().__init__()
        self.conv = nn.Conv2d(width, width + 1, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width + 1, momentum=0.3)
        self.drop = nn.Dropout(p)
        if stride != 1:
            self.shortcut = nn.Conv2d(width, width + 1, 1, stride=stride)
        else:
            self.shortcut = None
        self.gain = nn.Parameter(torch.ones(width + 1, 1, 1))

    def forward(self, x):
        y = self.drop(F.gelu(self.norm(self.conv(x)))) * self.gain
        if self.shortcut is not None:
            y = y + self.shortcut(x)
        return y


class Net(nn.Module):
    def __init__(self, width=4, classes=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(2, width, 3), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.ModuleList([Block(width, 2), Block(width + 1)])
        self.head = nn.Linear(width + 2, classes)

    def forward(self, x):
        x = self.blocks[1](self.blocks[0](self.stem(x)))
        return self.head(x.mean((2, 3)))
"""
ATTENTION = """
class Attention(nn.Module):
    def __init__(self, dim=12, heads=3):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.norm = nn.LayerNorm(dim)
        self.drop = nn.Dropout(0.1)
        self.position = nn.Parameter(torch.randn(1, 32, dim) * 0.02)

    def forward(self, x):
        b, n, d = x.shape
        x = self.norm(x) + self.position[:, :n]
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = self.drop((q @ k.transpose(-2, -1) * self.scale).softmax(-1))
        return (a @ v).transpose(1, 2).reshape(b, n, d)
"""
WORDS = """
class Words(nn.Module):
    def __init__(self, vocabulary=11, dim=4):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.layers = nn.ModuleList()
        for _ in range(2):
            self.layers.append(nn.Linear(dim, dim))
        self.norm = nn.GroupNorm(2, dim, eps=1e-3)

    def forward(self, ids):
        x = self.table(ids).mean(1)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.norm(x)
"""
VIT = """
def pair(t):
    return t if isinstance(t, tuple) else (t, t)


class Mix(nn.Module):
    def __init__(self, dim, heads=2, p=0.1):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=self.heads), self.qkv(x).chunk(3, dim=-1))
        return rearrange(self.drop((q @ k.mT * self.scale).softmax(-1)) @ v, "b h n d -> b n (h d)")


class Stack(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(nn.ModuleList([Mix(dim), nn.Sequential(nn.Linear(dim, dim), nn.BatchNorm1d(5))]))

    def forward(self, x):
        for mix, feed in self.layers:
            x = mix(x) + x
            x = feed(x) * 2 + x
        return x


class ViT(nn.Module):
    def __init__(self, patch=(2, 3), dim=6):
        super().__init__()
        self.size = height, width = pair(patch)
        self.embed = nn.Sequential(
            Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=height, q=width), nn.Linear(3 * height * width, dim)
        )
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.stack = Stack(dim, 2)
        self.pool = Reduce("b n d -> b d", "mean")
        self.head = nn.Linear(dim, 2)

    # t2j: x=f32[2, 3, 4, 6]
    def forward(self, x):
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), self.embed(x)), dim=1)
        return self.head(self.pool(self.stack(x))) * self.size[1]
"""
VIT = f"from einops import rearrange\nfrom einops.layers.torch import Rearrange, Reduce\n{VIT}"
METHODS = """
class Coder(nn.Module):
    def __init__(self, dim=6, heads=2, p=0.2):
        super().__init__()
        self.heads = heads
        self.fc = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)
        self.drop = nn.Dropout(p)
        self.register_buffer("shift", torch.linspace(0, 1, dim))

    def encode(self, x, scale=2.0):
        h = self.drop(F.relu(self.fc(x))) + self.shift
        return self.mix(h.view(x.shape[0], self.heads, -1)) * scale

    def mix(self, h):
        return h.softmax(1) if self.heads > 1 else h

    # t2j: x=f32[3, 6]
    def forward(self, x):
        return self.out(self.encode(x, scale=3.0).flatten(1) + self.encode(x * 2).flatten(1))
"""
RIGHT = {
    "a network with states": NET,
    "attention": ATTENTION,
    "an embedding and square layers": WORDS,
    "lists of lists": VIT,
    "methods": METHODS,
}
WRONG = {
    "the biased variance": (NET, "(count / (count - 1))", "1.0"),
    "a state that is dropped": (NET, 'stem, state["stem"]["1"] = batchnorm', "stem, _ = batchnorm"),
    "no stride": (NET, "x, stride=stride)", "x, stride=1)"),
    "another momentum": (NET, "momentum=0.3", "momentum=0.4"),
    "dropout without a scale": (NET, "x / (1 - rate)", "x"),
    "dropout in evaluation": (NET, "p, train=train)", "p, train=True)"),
    "other initial values": (ATTENTION, "* 0.02", "* 0.2"),
    "another scale": (ATTENTION, "** -0.5", "** -0.6"),
    "a transposed square weight": (WORDS, 'x @ params["weight"].T', 'x @ params["weight"]'),
    "a gradient of the padding": (WORDS, "jax.lax.stop_gradient(rows)", "rows"),
    "a setting that a method is not given": (METHODS, "heads=heads, p=p, key=subkey1", "heads=1, p=p, key=subkey1"),
    "a mode that a method is not given": (METHODS, "key=subkey2, train=train", "key=subkey2, train=False"),
    "another argument of a method": (METHODS, "scale=3.0", "scale=2.0"),
    "another patch": (VIT, "p=pair(patch)[0], q=pair(patch)[1]", "p=pair(patch)[1], q=pair(patch)[0]"),
    "a state of another layer": (VIT, 'feed_, state["layers"][i][1]', 'feed_, state["layers"][0][1]'),
    "another reduction": (VIT, '"mean"', '"max"'),
    "another epsilon": (WORDS, "eps=1e-3", "eps=1e-5"),
}


def code(source: str) -> str:
    """The conversion, of which nothing stays."""
    result = convert(TORCH + source, target="jax")
    assert not result.gaps
    return result.code


@pytest.mark.parametrize("what", RIGHT)
def test_right_code_is_equivalent(what: str, check: Check) -> None:
    verdict = check(RIGHT[what], code(RIGHT[what]))
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert {name: stage.result for name, stage in verdict.stages.items()} == {
        "spec": "pass", "numeric": "pass", "behavioral": "pass",
    }  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_mistake_is_different(what: str, check: Check) -> None:
    source, right, wrong = WRONG[what]
    converted = code(source)
    assert right in converted, converted
    verdict = check(source, converted.replace(right, wrong), stage="numeric", causes=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason
