"""Forward passes outside of the steps are compiled in the loop that trains: eager ones cost more than the step."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

HEAD = """\
import torch
from torch import nn

net, other = nn.Linear(3, 3), nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(5, 3)
"""
STEP = "    optimizer.zero_grad()\n    loss = net(x).square().mean()\n    loss.backward()\n    optimizer.step()\n"


@pytest.mark.parametrize("loop", ["for step in range(9):\n", "while x.mean() > 0.1:\n"])
@pytest.mark.parametrize("call", ["other(x)", "other.forward(x)", "net(x)"])
def test_what_a_training_loop_calls_is_compiled(loop: str, call: str) -> None:
    done = translate(f"{HEAD}{loop}{STEP}    x = {call}.detach()\n    print(x.sum())\n")
    assert not done.gaps
    assert (
        f"forward({call.partition('(')[0].removesuffix('.forward')}, x)" in done.code.partition("train_step(net, ")[2]
    )


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("for step in range(9):\n    x = torch.cat([x, other(x)[-1:]])\n", id="in a loop without updates"),
        pytest.param(f"for step in range(9):\n{STEP}\nprint(other(x))\n", id="behind the loop"),
    ],
)
def test_what_is_called_elsewhere_is_not(rest: str) -> None:
    done = translate(HEAD + rest)
    assert not done.gaps
    assert "other(x)" in done.code
    assert "forward(" not in done.code
