"""Names that a file gives to one thing after the other, as notebooks do: optimizers, functions, tensors."""

from __future__ import annotations

import textwrap

import pytest

from t2j_lsp.api import convert

from .printed import printed

TWO_OPTIMIZERS = """
import torch
from torch import nn

x, y = torch.linspace(0, 1, 6).unsqueeze(1), torch.linspace(1, 2, 6).unsqueeze(1)
first = nn.Linear(1, 1)
optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
for epoch in range(3):
    loss = nn.functional.mse_loss(first(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
second = nn.Linear(1, 1)
optimizer = torch.optim.SGD(second.parameters(), lr=0.1)
for epoch in range(3):
    loss = nn.functional.mse_loss(second(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

BY_HAND = """
import torch
import torch.nn.functional as F

w = torch.ones(3, 2, requires_grad=True)
b = torch.zeros(2, requires_grad=True)
x, y = torch.linspace(-1, 1, 12).reshape(4, 3), torch.tensor([0, 1, 1, 0])

def model(xb):
    return torch.tanh(xb @ w + b)

for epoch in range(3):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        w -= w.grad * 0.5
        b -= b.grad * 0.5
        w.grad.zero_()
        b.grad.zero_()
    print(round(loss.item(), 4))

def model(xb):
    return xb @ w + b

print(round(model(x).sum().item(), 4))
"""


def test_an_optimizer_that_is_given_the_name_of_another_trains_its_own_module() -> None:
    result = convert(TWO_OPTIMIZERS)
    assert not result.gaps
    assert result.code.count("optimizer.update(first, grads)") == 1
    assert result.code.count("optimizer.update(second, grads)") == 1


@pytest.mark.parametrize(
    "again",
    [
        "if x.mean() > 0:\n    optimizer = torch.optim.SGD(second.parameters(), lr=0.1)",
        "for lr in (0.1, 0.2):\n    optimizer = torch.optim.SGD(second.parameters(), lr=lr)",
        "try:\n    optimizer = torch.optim.SGD(second.parameters(), lr=0.1)\nexcept ValueError:\n    pass",
    ],
)
def test_where_it_is_one_of_two_the_loop_is_a_gap(again: str) -> None:
    text = TWO_OPTIMIZERS.replace("optimizer = torch.optim.SGD(second.parameters(), lr=0.1)\nfor", f"{again}\nfor")
    assert again in text
    assert [gap.code for gap in convert(text).gaps][-1:] == ["training-loop"]


def test_a_loop_that_gives_the_name_again_is_a_gap() -> None:
    # The second round steps by the other optimizer.
    text = TWO_OPTIMIZERS[: TWO_OPTIMIZERS.index("second")].replace(
        "    optimizer.step()\n",
        "    optimizer.step()\n    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)\n",
    )
    assert convert(text.replace("first = ", "other = nn.Linear(1, 1)\nfirst = ")).gaps


def test_a_function_that_is_defined_again_is_called_as_it_is_written() -> None:
    result = convert(BY_HAND)
    assert not result.gaps
    assert "model(x, w, b)" in result.code
    assert "print(round(model(x).sum().item(), 4))" in result.code
    assert printed(result.code) == printed(BY_HAND)


def test_functions_of_which_a_condition_chooses_are_a_gap() -> None:
    either = """
if len(x) > 3:
    def model(xb):
        return torch.tanh(xb @ w + b)
else:
    def model(xb):
        return xb @ w + b
"""
    text = BY_HAND.replace("\ndef model(xb):\n    return torch.tanh(xb @ w + b)\n", either, 1)
    assert either in text
    assert convert(text).gaps


@pytest.mark.parametrize("update", ["p.data -= 0.1 * p.grad", "p.data.sub_(0.1 * p.grad)"])
def test_tensors_of_a_list_that_a_loop_updates_reach_functions_that_read_them(update: str) -> None:
    text = textwrap.dedent(
        f"""
        import torch
        w = torch.ones(3, 1, requires_grad=True)
        b = torch.zeros(1, requires_grad=True)
        params = [w, b]
        x, y = torch.linspace(-1, 1, 12).reshape(4, 3), torch.ones(4, 1)
        def net(x):
            return x @ w + b
        for epoch in range(5):
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            for p in params:
                {update}
                p.grad.zero_()
            print(round(loss.item(), 4))
        print(round(net(x).mean().item(), 4))
        """
    )
    result = convert(text)
    assert not result.gaps
    assert printed(result.code) == printed(text)


def test_functions_that_make_tensors_of_values_are_handed_over_as_such() -> None:
    code = convert(
        "import torch\nimport numpy as np\na = np.ones(3)\nx, y = map(torch.tensor, (a, [1.0, 2.0]))\n"
        "z = torch.stack(list(map(torch.tensor, [[1.0, 2.0], [3.0, 4.0]])))\nprint(x.unsqueeze(0), z.view(-1))\n"
    ).code
    assert "map(jnp.array, (a, [1.0, 2.0]))" in code and "map(jnp.array, [[1.0, 2.0], [3.0, 4.0]])" in code


def test_tensors_that_map_makes_for_a_loader_are_arrays_where_they_are_computed_with() -> None:
    text = (
        "import numpy as np\nimport torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "x, y = map(torch.tensor, (np.ones((6, 2), 'float32'), np.arange(6)))\nw = torch.ones(2, 3)\n"
        "print((x[0:2] @ w).sum().item(), y.min().item())\n"
        "for a, b in DataLoader(TensorDataset(x, y), batch_size=3):\n    print((a @ w).mean().item())\n"
    )
    result = convert(text)
    assert not result.gaps
    assert printed(result.code) == printed(text)
