"""Methods that a class of the file has under the names of PyTorch's: they are called, as any other."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

SOURCE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.place = ""

    def forward(self, x):
        return self.fc(x)

    def {method}


net = Net()
{call}
"""


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("compile(self, scale):\n        self.scale = scale", "net.compile(2.0)"),
        ("apply(self, x):\n        return self(x) + 1", "y = net.apply(torch.ones(4, 3))"),
        ("float(self):\n        return 2.5", "y = net.float()"),
        ("cpu(self):\n        self.place = 'cpu'", "net.cpu()"),
        ("register_buffer(self, name, size):\n        self.place = name", "net.register_buffer('a', 3)"),
    ],
)
def test_a_method_of_the_file_is_called(method: str, call: str) -> None:
    translation = convert(SOURCE.format(method=method, call=call))
    assert not translation.gaps
    assert call.replace("torch", "jnp").replace("jnp.ones(4, 3)", "jnp.ones((4, 3))") in translation.code


@pytest.mark.parametrize("end", ["return super().to(place)", "super().to(place)\n        return self"])
def test_what_moves_the_base_goes(end: str) -> None:
    method = f"to(self, place):\n        self.place = place\n        {end}"
    translation = convert(SOURCE.format(method=method, call='net.to("cpu")'))
    assert not translation.gaps
    assert "        self.place = place\n        return self\n" in translation.code
    assert 'net.to("cpu")' in translation.code and "super().to" not in translation.code


OWN_OPTIMIZER = """\
import torch
from torch import nn


class Regression(nn.Module):
    def __init__(self, lr):
        super().__init__()
        self.fc = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=lr, momentum=0.9)
        self.loss = nn.MSELoss()

    def forward(self, x):
        return self.fc(x)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(self.fc(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


model = Regression(0.1)
x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
losses = []
# train
for _ in range(3):
    losses.append(model.step(x, y))
"""


def test_a_module_may_hold_the_optimizer_that_updates_it() -> None:
    """Flax's step is passed the module and, in it, the optimizer once more: a graph, and no tree."""
    code = trained(OWN_OPTIMIZER, modules=("model",), lists=("losses",)).translation.code
    assert "@nnx.jit\ndef train_step(" in code


def test_a_loss_that_is_made_behind_the_optimizer_replaces_no_parameters() -> None:
    assert not convert(OWN_OPTIMIZER).gaps
    assert convert(OWN_OPTIMIZER.replace("nn.MSELoss()", "nn.Linear(3, 1)")).gaps
