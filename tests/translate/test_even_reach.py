"""Steps that go one of two ways, by a draw or by an array's value.

Both must reach the same parameters, or Adam moves on those that PyTorch leaves as they are.
"""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import random
import torch
import torch.nn.functional as F
from torch import nn

def penalty(out, seen, y):
    count = (y > 0).sum()
    {penalty}
    return out.square().mean() + extra

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x, y):
        h = self.a(x)
        {forward}
        return self.out(h)

net = Net()
optimizer = torch.optim.{optimizer}
for i in range(5):
    x, y = torch.ones(4, 3) * (i + 1), torch.ones(4, 3) * (2 - i)
    out = net(x, y)
    seen = out.detach()
    loss = penalty(out, seen, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ADAM = "Adam(net.parameters())"
NONE = "extra = 0.0"
KEEP = "h = h"


def reasons(forward: str = KEEP, penalty: str = NONE, optimizer: str = ADAM) -> list[str]:
    done = convert(TEXT.format(forward=forward, penalty=penalty, optimizer=optimizer))
    assert "@nnx.jit" not in done.code
    return [gap.reason for gap in done.gaps]


EVEN_FORWARDS = [
    "h = h if random.random() < 0.5 else 2 * h",
    "h = self.b(h) if random.random() < 0.5 else self.b(2 * h)",
    "if h.sum() > 0:\n            h = h.clamp(max=5)",
    "if random.random() < 0.5:\n            x = y\n        h = h + self.b(x)",
    "h = h + (y if random.random() < 0.5 else h.detach())",
    "rate = random.random()\n        h = h * rate if rate > 0.5 else h",
    "if (h > 9).any():\n            raise ValueError\n        h = 2 * h",
    "if (h > 9).any():\n            raise ValueError\n        else:\n            h = self.b(h)",
    "for t in range(3):\n            h = self.b(h)\n            if h[0, 0].item() > 5:\n                break",
]
UNEVEN_FORWARDS = [
    "h = self.b(h) if random.random() < 0.5 else h",
    "if h.sum() > 0:\n            h = self.b(h)",
    "h = h if random.random() < 0.5 else torch.zeros_like(y)",
    "if random.random() < 0.5:\n            h = y",
    "rate = random.random()\n        keep = rate > 0.5\n        if keep:\n            h = self.b(h)",
    "h = random.choice(self.layers)(h)",
    "h = self.layers[random.randint(0, 1)](h)",
    "for _ in range(random.randint(0, 2)):\n            h = self.b(h)",
    "if h.sum() > 0:\n            return h\n        h = self.b(h)",
    "for layer in [one for one in self.layers if random.random() < 0.5]:\n            h = layer(h)",
    "for t in range(3):\n            if h[0, 0].item() > 5:\n                break\n            h = self.b(h)",
]
EVEN_PENALTIES = [
    "extra = F.l1_loss(out, y) if count > 0 else 0.0",
    "if count > 0:\n        extra = F.l1_loss(out, y) / count\n    else:\n        extra = torch.tensor(0.0)",
    "if seen.sum() > 0:\n        extra = (out * seen).sum()\n    else:\n        extra = seen.sum()",
]


@pytest.mark.parametrize("forward", EVEN_FORWARDS)
def test_ways_that_reach_the_same_parameters_are_gone_in_a_step_that_is_not_compiled(forward: str) -> None:
    assert not reasons(forward)


@pytest.mark.parametrize("forward", UNEVEN_FORWARDS)
def test_ways_that_leave_parameters_out_are_gaps_for_optimizers_that_remember(forward: str) -> None:
    assert any("drawn once" in one or "decides" in one or "takes values out" in one for one in reasons(forward))


@pytest.mark.parametrize("forward", [one for one in UNEVEN_FORWARDS if "[h" not in one])
def test_an_optimizer_that_remembers_nothing_leaves_them_as_they_are(forward: str) -> None:
    assert not reasons(forward, optimizer="SGD(net.parameters(), lr=0.1)")


@pytest.mark.parametrize("penalty", EVEN_PENALTIES)
def test_a_loss_may_add_what_other_parts_of_it_reach_too(penalty: str) -> None:
    assert not reasons(penalty=penalty)


def test_what_only_one_way_of_a_loss_reads_is_a_gap() -> None:
    only = "extra = seen.sum()\n    out = out.square() if count > 0 else seen"
    assert any("decides" in one for one in reasons(penalty=only))


@pytest.mark.parametrize(
    ("more", "is_even"),
    [
        ("if (y > 0).sum() > 0:\n        loss = loss + out.abs().mean()", True),
        ("if random.random() < 0.5:\n        loss = 2 * loss", True),
        ("if (y > 0).sum() > 0:\n        loss = loss + net.b(y).mean()", False),
        ("if (y > 0).sum() > 0:\n        loss = seen.sum() * out.mean()", False),
    ],
)
def test_what_a_step_adds_to_its_loss(more: str, is_even: bool) -> None:
    text = TEXT.format(forward=KEEP, penalty=NONE, optimizer=ADAM)
    loss = "loss = penalty(out, seen, y)"
    gaps = convert(text.replace(loss, f"{loss}\n    {more}")).gaps
    assert (not gaps) == is_even, [gap.reason for gap in gaps]
