"""Branches that differ in the device alone, or in what is recomputed, are one; others stay."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """import torch
from torch.autograd import Variable

cuda = torch.cuda.is_available()


def f(x: torch.Tensor, net, asks):
    {lines}
    return x
"""


def converted(lines: str) -> str:
    return convert(TEXT.format(lines=lines.replace("\n", "\n    "))).code


SAME = {
    "if cuda:\n    x = torch.cuda.FloatTensor(x.size()).zero_()\nelse:\n    x = torch.FloatTensor(x.size()).zero_()",
    "if torch.cuda.is_available():\n    x = net(Variable(x).cuda())\nelse:\n    x = net(Variable(x))",
    "if cuda and asks is None:\n    x = (x + 1).cuda()\nelse:\n    x = (x + 1).cpu()",
    "x = torch.cuda.FloatTensor([1, 2]) if cuda else torch.FloatTensor([1, 2])",
}
OTHER = {
    "if cuda:\n    x = x.cuda() * 2\nelse:\n    x = x * 3": "* 3",
    "if asks():\n    x = x.cuda() + 1\nelse:\n    x = x + 1": "asks()",
    "if asks:\n    x = x + 1\nelse:\n    x = x + 1": "if asks",
    "x = torch.cuda.FloatTensor([1]) if cuda else torch.LongTensor([1])": "if cuda else",
}


@pytest.mark.parametrize("lines", sorted(SAME))
def test_branches_that_say_the_same_are_one(lines: str) -> None:
    body = converted(lines).partition("def f")[2].partition("\n\n\n")[0]
    assert "cuda" not in body and "if " not in body and "x = " in body


@pytest.mark.parametrize(("lines", "kept"), OTHER.items())
def test_branches_that_say_something_else_stay(lines: str, kept: str) -> None:
    body = converted(lines).partition("def f")[2]
    assert kept in body and "if " in body


CHOSEN = 'import torch\n\ndevice = torch.device("cuda" if torch.cuda.is_available() else "cpu")\nrate = 0.1\n'
BRANCHES = (
    "import torch\n\nif torch.cuda.is_available():\n    device = torch.device('cuda')\n"
    "else:\n    device = torch.device('cpu')\nrate = 0.1\n"
)


@pytest.mark.parametrize("source", [CHOSEN, BRANCHES])
def test_a_device_that_other_files_import_stays(source: str) -> None:
    alone = convert(source, used_elsewhere=lambda names: frozenset(names) - {"device"})
    assert alone.code.strip() == "rate = 0.1"
    used = convert(source, used_elsewhere=frozenset)
    assert not used.gaps
    assert "device = jax.devices()[0]\n" in used.code


BLOCKS = """import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self, saves=True):
        super().__init__()
        self.block, self.saves = nn.Linear(2, 2), saves

    def forward(self, x, asks):
        {}
        return x
"""
RECOMPUTED = [
    "if self.saves and self.training:\n            x = checkpoint(self.block, x, use_reentrant=False)\n"
    "        else:\n            x = self.block(x)",
    "if not self.saves:\n            x = self.block(x)\n        else:\n            x = checkpoint(self.block, x)",
    "x = checkpoint(self.block, x) if self.training and self.saves else self.block(x)",
]
OTHERWISE = [
    "if self.training:\n            x = checkpoint(self.block, x + 1)\n        else:\n            x = self.block(x)",
    "if asks():\n            x = checkpoint(self.block, x)\n        else:\n            x = self.block(x)",
    "if self.training:\n            x = self.block(x)\n        else:\n            x = self.block(x)",
]


@pytest.mark.parametrize("lines", RECOMPUTED)
def test_what_is_recomputed_to_save_memory_says_the_same(lines: str) -> None:
    done = convert(BLOCKS.format(lines))
    assert "x = self.block(x)\n        return x" in done.code and "if " not in done.code.partition("def __call__")[2]
    assert "deterministic" not in done.code and not done.gaps


def test_a_word_is_said_about_memory() -> None:
    assert any("nnx.remat" in finding.message for finding in convert(BLOCKS.format(RECOMPUTED[0])).findings)


@pytest.mark.parametrize("lines", OTHERWISE)
def test_what_may_be_another_value_stays_a_branch(lines: str) -> None:
    assert "if " in convert(BLOCKS.format(lines)).code.partition("def __call__")[2]
