"""What a loop does between the loss and the update, with the weights from before it: it keeps the best of them."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

from .printed import printed

LOOP = """
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
net, other = nn.Linear(3, 1), nn.Linear(3, 1)
for p in [*net.parameters(), *other.parameters()]:
    nn.init.constant_(p, 0.3)
first = {k: v.clone() for k, v in net.state_dict().items()}
mse = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
lowest = 1e9
for i in range(5):
    loss = mse(net(x), y)
    BETWEEN
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 4), round(net.weight.abs().sum().item(), 4), round(other.weight.sum().item(), 4))
"""
BETWEEN = {
    "the best weights": """if loss.item() < lowest:
        lowest = loss.item()
        best = {k: v.clone() for k, v in net.state_dict().items()}
        print({k: round(v.sum().item(), 4) for k, v in best.items()})""",
    "a copy": "if loss.item() > 0.1:\n        other.load_state_dict(net.state_dict())",
    "put back": "if i in (2, 3):\n        net.load_state_dict(first)",
    "put back by the loss": "if loss.item() < 0.2:\n        net.load_state_dict(first)",
    "changed by hand": """if i == 2:
        with torch.no_grad():
            for p in net.parameters():
                p.mul_(0.5)""",
    "a rate by the loss": "if loss.item() < 0.3:\n        optimizer.param_groups[0]['lr'] = 0.01",
}


@pytest.mark.parametrize("between", BETWEEN.values(), ids=BETWEEN)
def test_it_is_done_before_the_update(between: str) -> None:
    source = LOOP.replace("BETWEEN", between)
    result = convert(source)
    assert not result.gaps
    assert printed(result.code) == printed(source)


def test_what_only_tells_of_the_loss_leaves_the_step_whole() -> None:
    code = convert(LOOP.replace("BETWEEN", "lowest = min(lowest, loss.item())")).code
    assert "optimizer.update(net, grads)\n    return loss" in code


MADE = """
import torch
from torch import nn

base, x, y = nn.Linear(3, 1), torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
for p in base.parameters():
    nn.init.constant_(p, 0.3)
mse = nn.MSELoss()
for i in range(3):
    local = nn.Linear(3, 1)
    local.load_state_dict(base.state_dict())
    local.train()
    optimizer = torch.optim.SGD(local.parameters(), lr=0.1)
    loss = mse(local(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    after = local.state_dict()
    base.load_state_dict({k: (v + after[k]) / 2 for k, v in base.state_dict().items()})
    print(round(loss.item(), 4), round(base.weight.sum().item(), 4))
"""


def test_a_module_that_a_loop_makes_takes_the_weights_of_another() -> None:
    result = convert(MADE)
    assert not result.gaps
    assert printed(result.code) == printed(MADE)
