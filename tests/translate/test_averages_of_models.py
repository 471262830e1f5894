"""Loops over the parameters of two modules in pairs: what treats all elements alike is the same in Flax's layouts."""

from __future__ import annotations

import ast
import re
import textwrap

import numpy as np
import pytest

from t2j_lsp import convert
from t2j_lsp.weights import load_torch_state, torch_state

from .side_by_side import randomized, sides

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)


def mixed(old, new, d):
    if old is None:
        return new
    return old * d + (1 - d) * new


a, b, d = Net(), Net(), 0.9
"""


def body(code: str) -> tuple[str, int]:
    """The last line of what becomes of the statements behind the head, and how many gaps they have."""
    done = convert(HEAD + textwrap.dedent(code))
    last = ast.unparse(ast.parse(done.code).body[-1]).rpartition("\n")[2].strip()
    return re.sub(r"jax\.lax\.stop_gradient\((\w+(?:\[k\])?\[\.\.\.\])\)", r"\1", last), len(done.gaps)


OF_AN_OBJECT = """class EMA:
    def __init__(self, beta):
        self.beta = beta

    def average(self, old, new):
        return old * self.beta + (1 - self.beta) * new


class Turn:
    def average(self, old, new):
        return torch.flip(new, (0,))


ema = EMA(0.9)


def update(updater, a, b):
    for p, q in zip(a.parameters(), b.parameters()):
        p.data = updater.average(p.data, q.data)


update({}, a, b)
"""


def test_what_computes_an_average_may_be_given_to_a_function() -> None:
    """BYOL's `update_moving_average(ema_updater, ma_model, current_model)`."""
    done = convert(HEAD + OF_AN_OBJECT.format("ema"))
    assert "p[...] = updater.average(" in done.code
    assert done.gaps == ()
    for other in ("Turn()", "Turn() if d else ema"):
        assert "whether p is a kernel" in convert(HEAD + OF_AN_OBJECT.format(other)).gaps[0].reason


PAIRS = "for p, q in zip(a.parameters(), b.parameters()):\n    "


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("p.lerp_(q, d)", "p[...] = p + d * (q - p)"),
        ("old, new = p.data, q.data\n    p.data = mixed(old, new, d)", "p[...] = mixed(old, new, d)"),
    ],
)
def test_an_average_is_taken_in_flaxs_layouts(code: str, expected: str) -> None:
    assert body(PAIRS + code) == (expected, 0)


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for k in kept.keys():\n    kept[k].data.mul_(d).add_(new[k].data, alpha=1 - d)",
         "kept[k][...] = kept[k][...] * d + (1 - d) * new[k][...]"),
        ("for k in kept:\n    kept[k].data = kept[k].data * d + new[k].data",
         "kept[k][...] = kept[k][...] * d + new[k][...]"),
        ("for k, p in kept.items():\n    p.data.copy_(new[k].data)", "p[...] = new[k][...]"),
        ("for k, p in a.named_parameters():\n    kept[k].data.mul_(d).add_(p.data, alpha=1 - d)",
         "kept[k][...] = kept[k][...] * d + (1 - d) * p[...]"),
    ],
)  # fmt: skip
def test_parameters_by_their_names_come_in_pairs_too(loop: str, expected: str) -> None:
    """StyleGAN's `accumulate`: they were no parameters of the dict, and the average died."""
    made = "kept = dict(b.named_parameters())\nnew = dict(a.named_parameters())\n"
    assert body(made + loop) == (expected, 0)
    other = made.replace("dict(a.", "dict(nn.Sequential(nn.Linear(3, 2)).")
    if "new[k]" in loop:
        assert body(other + loop)[1]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(PAIRS + "p.data = q.data @ q.data", id="a product of matrices"),
        pytest.param(PAIRS + "p.data = q.data.T.contiguous()", id="a transpose"),
        pytest.param("w = torch.ones(2, 3)\n" + PAIRS + "p.data = q.data * w", id="a tensor in PyTorch's layout"),
        pytest.param("c = nn.Linear(3, 2)\nfor p, q in zip(a.parameters(), c.parameters()):\n    p.data.copy_(q.data)",
                     id="modules of two classes"),
        pytest.param("def of(old, new):\n    return old.flip(0)\n\n\n" + PAIRS + "p.data = of(p.data, q.data)",
                     id="a function that moves elements"),
    ],
)  # fmt: skip
def test_what_needs_pytorchs_layouts_is_a_gap(code: str) -> None:
    assert body(code)[1]


WHOLE = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.z, self.bn, self.a = nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(5, 5)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x):
        return self.a(self.bn(self.z(x)))


@torch.no_grad()
def average(target: nn.Module, source: nn.Module, d: float):
"""
PARAMETERS = "    for p, q in zip(target.parameters(), source.parameters()):\n        {}\n"
BUFFERS = "    for p, q in zip(target.buffers(), source.buffers()):\n        {}\n"


@pytest.mark.parametrize(
    "text",
    [
        PARAMETERS.format("p.mul_(d).add_(q, alpha=1 - d)"),
        PARAMETERS.format("p.data.mul_(d).add_(q.data, alpha=1 - d)"),
        PARAMETERS.format("p.mul_(d)\n        p.add_(q * (1 - d))"),
        PARAMETERS.format("p.lerp_(q, 1 - d)"),
        "    for p in target.parameters():\n        p.mul_(2).add_(1)\n",
        "    for p in target.parameters():\n        p *= 2\n        p += 1\n",
        PARAMETERS.format("p.copy_(q)") + BUFFERS.format("p.copy_(q)"),
        BUFFERS.format("p.data.copy_(q.data)"),
        "    for (n, p), (k, q) in zip(target.named_parameters(), source.named_parameters()):\n"
        "        p.mul_(d).add_((1 - d) * q)\n",
    ],
)
def test_averages_are_written_into_the_model(text: str) -> None:
    both = sides(WHOLE + text, "averages")
    assert both.gaps() == []
    wanted = randomized(both.torch.Net(), 0).float(), randomized(both.torch.Net(), 1).float()
    got = [both.jax.Net(rngs=both.jax.nnx.Rngs(0)) for _ in wanted]
    for module, reference in zip(got, wanted, strict=True):
        load_torch_state(module, reference.state_dict())
    both.torch.average(*wanted, 0.9)
    both.jax.average(*got, 0.9)
    state = torch_state(got[0])
    for name, value in wanted[0].state_dict().items():
        if not name.endswith("num_batches_tracked"):
            np.testing.assert_allclose(state[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "text",
    [
        "    new, old = source.state_dict(), target.state_dict()\n    for k, v in old.items():\n"
        "        v.mul_(d).add_(new[k], alpha=1 - d)\n",
        "    old = target.state_dict()\n    old['z.weight'].mul_(d)\n",
    ],
)
def test_what_is_written_through_a_state_dict_is_told(text: str) -> None:
    gaps = sides(WHOLE + text, "averages").translation.gaps
    assert any("the module whose state dict this is" in gap.reason for gap in gaps)
