"""What is written into the tensors of a module's state dict goes into the module; what is seen otherwise is a gap."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """\
import torch
from torch import nn

net, other = nn.Linear(2, 2), nn.Linear(2, 2)


def f(given, out):
"""
END = "\n\nf({}, [])\n"
WRITTEN = {
    "a copy": (
        "    for k, v in net.state_dict().items():\n        v.copy_(given[k])\n",
        "    for k, v in state.items():\n        state.write(k, given[k])\n",
    ),
    "two operators": (
        "    for k, v in net.state_dict().items():\n        v *= 2\n        v += given[k] - 1\n",
        "        v = v * 2\n        state.write(k, v + (given[k] - 1))\n",
    ),
    "a chain": (
        "    for k, v in net.state_dict().items():\n        v.mul_(0.5).add_(given[k], alpha=2)\n",
        "        state.write(k, v * 0.5 + 2 * given[k])\n",
    ),
    "in branches": (
        "    for k, v in net.state_dict().items():\n        if v.ndim > 1:\n            v.mul_(2)\n"
        "        else:\n            v.data.copy_(given[k])\n",
        "            state.write(k, v * 2)\n        else:\n            state.write(k, given[k])\n",
    ),
    "pairs": (
        "    for a, b in zip(net.state_dict().values(), other.state_dict().values()):\n        a.lerp_(b, 0.1)\n",
        "    for name, a, b in zip(state, state.values(), StateDict(other).values()):\n"
        "        state.write(name, a + 0.1 * (b - a))\n",
    ),
    "a name that changes": (
        "    for k, v in net.state_dict().items():\n        k = 'module.' + k\n        v.copy_(given[k])\n",
        "    for name, v in state.items():\n        k = name\n        k = 'module.' + k\n"
        "        state.write(name, given[k])\n",
    ),
    "an item": (
        "    own = net.state_dict()\n    for k in given:\n        if k in own:\n            own[k].copy_(given[k])\n",
        "    own = StateDict(net)\n    for k in given:\n        if k in own:\n            own.write(k, given[k])\n",
    ),
    "an item at once": ("    net.state_dict()['bias'].copy_(given)\n", '    StateDict(net).write("bias", given)\n'),
}
SEEN = {
    "read behind": "    for k, v in net.state_dict().items():\n        v.mul_(0.5)\n        out.append(v.sum())\n",
    "the other is written": (
        "    for a, b in zip(net.state_dict().values(), other.state_dict().values()):\n        b.copy_(a)\n"
    ),
    "kept": "    for k, v in net.state_dict().items():\n        out.append(v)\n        v.mul_(0.5)\n",
    "under another name": "    for k, v in net.state_dict().items():\n        w = v\n        v.mul_(2)\n    f(w, 1)\n",
    "an item of its own": "    own = net.state_dict()\n    own['a'] = given\n    own['a'].copy_(given)\n",
    "handed on": "    own = net.state_dict()\n    own['weight'].copy_(given)\n    return own\n",
    "a part": "    net.state_dict()['weight'][0].copy_(given)\n",
    "drawn": "    for k, v in net.state_dict().items():\n        v.normal_()\n",
    "it ends before": "    for k, v in net.state_dict().items():\n        v.mul_(2)\n        break\n",
    "a loop inside": "    for k, v in net.state_dict().items():\n        for i in range(3):\n            v.mul_(2)\n",
    "a copy that casts": "    for k, v in net.state_dict().items():\n        v.copy_(given)\n        v.mul_(2)\n",
    "beside others": "    for k, v in net.state_dict().items():\n        v.mul_(2)\n        print(k)\n",
}


@pytest.mark.parametrize("case", WRITTEN)
def test_what_is_written_into_a_state_goes_into_the_module(case: str) -> None:
    body, wanted = WRITTEN[case]
    done = convert(HEAD + body + END)
    assert not done.gaps
    assert wanted.replace('"bias"', "'bias'") in done.code


@pytest.mark.parametrize("case", SEEN)
def test_what_is_seen_otherwise_is_a_gap(case: str) -> None:
    assert convert(HEAD + SEEN[case] + END).gaps


LIBRARY = """\
from copy import deepcopy

import torch


class Average:
    def __init__(self, {name}, decay=0.9):
        self.ema = deepcopy({name})
        {evaluates}
        self.decay = decay

    def update(self, {name}):
        for e, m in zip(self.ema.state_dict().values(), {name}.state_dict().values()):
            e.copy_(self.decay * e + (1 - self.decay) * m)
"""


def test_a_copy_of_a_model_that_evaluates_is_a_module() -> None:
    assert not convert(LIBRARY.format(name="model", evaluates="self.ema.eval()")).gaps
    assert not convert(LIBRARY.format(name="model", evaluates="pass").replace("(model)", "(model).eval()")).gaps
    assert convert(LIBRARY.format(name="agent", evaluates="self.ema.eval()")).gaps
    assert convert(LIBRARY.format(name="model", evaluates="pass")).gaps


OWN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def state_dict(self):
        return {'fc': self.fc.weight}

    def forward(self, x):
        return self.fc(x)


def load(given):
    own = Net().state_dict()
    own['fc'].copy_(given)
"""


def test_a_state_of_a_class_s_own_has_no_such_form() -> None:
    assert ".write(" not in convert("import torch\nfrom torch import nn\n\n" + OWN).code


def test_a_state_in_a_file_of_tests_is_a_dict() -> None:
    text = "import torch\nfrom torch import nn\n\n\ndef test_load():\n    net = nn.Linear(2, 2)\n"
    done = convert(text + "    net.state_dict()['bias'].copy_(torch.ones(2))\n    assert net.bias.sum() == 2\n")
    assert done.gaps or "StateDict" in done.code
