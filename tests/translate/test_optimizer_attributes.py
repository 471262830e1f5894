"""What programs read and write of an optimizer's groups: learning rates convert, all else is a gap at its line."""

from __future__ import annotations

import pytest
import torch

from t2j_lsp import convert

HEAD = """import torch
import torch.nn as nn

net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
rates = []
for i in range(3):
    opt.zero_grad()
    net(torch.ones(4, 2)).sum().backward()
    opt.step()
"""
RETURNED = """def now(optimizer):
        for group in optimizer.param_groups:
            return group['lr']

    rates.append(now(opt))"""
RATES = {
    "set": "opt.param_groups[0]['lr'] = 0.05",
    "multiplied": "opt.param_groups[0]['lr'] *= 0.5",
    "divided in a loop": "for group in opt.param_groups:\n        group['lr'] /= 2",
    "looked at in a loop": "for group in opt.param_groups:\n        # now\n        rates.append(group['lr'])",
    "added in a line": "for g in opt.param_groups: rates += [g['lr'] / 2]",
    "listed": "rates += [g['lr'] for g in opt.param_groups]",
    "returned in a loop": RETURNED,
    "how many there are": "rates.append(0.05 * len(opt.param_groups))",
    "shown": "rates.append(f\"{opt.param_groups[0]['lr']:.5f}\")",
}
REFUSED = {
    "another option": "opt.param_groups[0]['weight_decay'] += 0.1",
    "a power": "opt.param_groups[0]['lr'] **= 2",
    "an option that is read": "rates.append(opt.param_groups[0]['weight_decay'])",
    "a loop that looks at more": "for g in opt.param_groups:\n        rates.append(g['lr'] + g['weight_decay'])",
    "a loop that ends": "for g in opt.param_groups:\n        rates.append(g['lr'])\n        break",
    "a group that is read behind": "for g in opt.param_groups:\n        rates.append(g['lr'])\n    len(g)",
    "some groups": "rates += [g['lr'] for g in opt.param_groups if g]",
    "its state": "rates.append(opt.state)",
}


@pytest.mark.parametrize("name", RATES)
def test_learning_rates_follow(name: str) -> None:
    source = f"{HEAD}    {RATES[name]}\n    rates.append(float(opt.param_groups[0]['lr']))\n"
    done = convert(source)
    assert not done.gaps
    spaces: list[dict[str, list[float]]] = [{}, {}]
    for code, space in zip((source, done.code), spaces, strict=True):
        exec(compile(code, "program", "exec"), space)
    numbers = [[float(rate) for rate in space["rates"]] for space in spaces]
    assert numbers[1] == pytest.approx(numbers[0], rel=1e-6)
    assert torch.tensor(numbers[0]).max() <= 0.1 + 1e-6


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_nnx_optimizer_has_not_is_a_gap(name: str) -> None:
    done = convert(f"{HEAD}    {REFUSED[name]}\n")
    line = HEAD.count("\n") + 1
    assert {gap.span.line - line for gap in done.gaps} <= {0, 1} and done.gaps
    assert all(gap.name.startswith("torch.optim.Optimizer.") for gap in done.gaps)


def test_a_loop_over_several_groups_goes_over_their_labels() -> None:
    groups = "[{'params': [net.weight]}, {'params': [net.bias]}]"
    done = convert(f"{HEAD.replace('net.parameters()', groups)}    {RATES['looked at in a loop']}\n")
    assert not done.gaps and 'for group in ("group0", "group1"):\n' in done.code


def test_of_an_optimizer_that_another_file_makes_the_first_groups_rate_is_returned() -> None:
    source = "import torch\n\n\ndef now(optimizer: torch.optim.Optimizer):\n    for group in optimizer.param_groups:\n"
    done = convert(f"{source}        return group['lr']\n")
    assert not done.gaps
    assert '    return optax.tree.get(optimizer.opt_state, "learning_rate").item()\n' in done.code
    done = convert(f"{source}        print(group['lr'])\n")
    assert [gap.name for gap in done.gaps] == ["torch.optim.Optimizer.param_groups"]


def test_an_optimizer_of_spread_options_is_a_gap() -> None:
    """What it updates, nothing tells: a schedule and a walk over its groups must not fall over it."""
    text = (
        "import torch\n\n\nclass Schedule:\n    def __init__(self, optimizer):\n"
        "        self.s = torch.optim.lr_scheduler.ExponentialLR(optimizer=optimizer, gamma=0.9)\n\n\n"
        "def make(options):\n    opt = torch.optim.Adam(**options)\n"
        "    for g in opt.param_groups:\n        g['lr'] = 0.01\n    return opt, Schedule(opt)\n"
    )
    assert any("the arguments do not fit" in gap.reason for gap in convert(text).gaps)
