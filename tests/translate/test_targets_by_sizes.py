"""Targets of GANs: made of sizes that a trained module tells, and of a type that the device decides."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

GAN = """\
import numpy as np
import torch
from torch import nn
from torch.autograd import Variable


class Critic(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.output_shape = (1, shape[0] // 2)
        self.out = nn.Linear(4, shape[0] // 2)

    def forward(self, x):
        return self.out(x).unsqueeze(1)


{kind}
net, critic = nn.Linear(4, 4), Critic((6,))
for layer in (net, critic.out):
    nn.init.constant_(layer.weight, 0.1)
    nn.init.constant_(layer.bias, 0.1)
g_optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
d_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
loss_of = nn.MSELoss()
for real in torch.linspace(-1, 1, 24).view(3, 2, 4):
    valid = {valid}
    fake = torch.zeros((real.size(0), *critic.output_shape), requires_grad=False)
    g_optimizer.zero_grad()
    made = net(real)
    g_loss = loss_of(critic(made), valid)
    g_loss.backward()
    g_optimizer.step()
    d_optimizer.zero_grad()
    d_loss = loss_of(critic(real), valid) + loss_of(critic(made.detach()), fake)
    d_loss.backward()
    d_optimizer.step()
    print(f"{{g_loss.item():.5f}} {{d_loss.item():.5f}}")
"""
KINDS = ["torch.FloatTensor", "torch.Tensor"]
VALID = {
    "of sizes": "torch.ones((real.size(0), *critic.output_shape), requires_grad=False)",
    "of NumPy": "Variable(torch.Tensor(np.ones((real.size(0), *critic.output_shape))), requires_grad=False)",
    "of the device's type": "Variable(Tensor(np.ones((real.size(0), *critic.output_shape))), requires_grad=False)",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VALID)
def test_a_target_of_sizes_carries_no_gradient_of_the_module_that_tells_them(name: str, kind: str) -> None:
    chosen = f"Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else {kind}"
    source = GAN.format(kind=chosen, valid=VALID[name])
    result = convert(source)
    assert not result.gaps
    assert printed(result.code) == printed(source)


def test_a_cast_to_the_default_type() -> None:
    source = """import torch
Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.Tensor
x = torch.arange(3).type(Tensor)
print((x / 2).tolist(), torch.arange(2).type(torch.Tensor).sum().item())
"""
    result = convert(source)
    assert not result.gaps and ".astype(jnp.float32)" in result.code
    assert printed(result.code) == printed(source)
