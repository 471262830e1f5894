"""Parts of weights, in PyTorch's axes, are stored into the kernels that stand for them."""

from __future__ import annotations

import numpy as np
from flax import nnx

from t2j_lsp.weights import load_torch_state, torch_state

from .side_by_side import randomized, sides

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.conv = nn.Conv2d(3, 5, (2, 3))
        self.up = nn.ConvTranspose2d(3, 4, 2)
        self.emb = nn.Embedding(5, 3)

    def reset(self, k: int, value: torch.Tensor):
        self.fc.weight.data[:, 2] = -1 * 2.0
        self.fc.weight.data[1] = value
        self.conv.weight.data[self.conv.weight.data < 0] = 0.0
        with torch.no_grad():
            self.fc.weight[k, 1] += 3.0
            self.conv.weight[0, :, 1, 1] = 0.5
            self.conv.weight[k, 2] *= 1.5
            self.conv.weight[2:4].mul_(2)
            self.up.weight[1, :, 0] = 0.25
            self.emb.weight[2, 1:] -= 1.0

    def forward(self, x):
        return self.up(x).sum() + self.conv(x).sum() + self.fc(x[..., :3]).sum() + self.emb.weight.sum()
"""


def test_what_is_stored_is_where_pytorch_has_it() -> None:
    both = sides(NET, "Net")
    assert not both.gaps()
    reference, module = randomized(both.torch.Net()), both.jax.Net(rngs=nnx.Rngs(0))
    load_torch_state(module, reference.state_dict())
    value = np.arange(3, dtype=np.float32)
    reference.reset(2, both.torch.torch.from_numpy(value))
    module.reset(2, value)
    got = torch_state(module)
    for name, want in reference.state_dict().items():
        np.testing.assert_allclose(got[name], want.numpy(), rtol=1e-6, err_msg=name)


RESCALED = """
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim + 1)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = Attention(dim)
        self.conv = nn.Conv1d(dim, 2, 3)


class Stack(nn.Module):
    def __init__(self, block, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList([block(4) for _ in range(depth)])

    def fix(self):
        def rescale(param, layer_id):
            with torch.no_grad():
                param.div_(math.sqrt(2.0 * layer_id))

        def first(param: torch.Tensor):
            param[0] = 0.5
            return param.mul_(2)

        for layer_id, layer in enumerate(self.blocks):
            rescale(layer.attn.proj.weight, layer_id + 1)
            rescale(layer.conv.weight.data, layer_id + 1)
            first(layer.attn.proj.weight.data)


class Net(Stack):
    def __init__(self):
        super().__init__(Block)
"""


def test_functions_write_into_weights_of_layers_that_are_not_known() -> None:
    both = sides(RESCALED, "Net")
    assert not both.gaps()
    reference, module = randomized(both.torch.Net()), both.jax.Net(rngs=nnx.Rngs(0))
    load_torch_state(module, reference.state_dict())
    reference.fix()
    module.fix()
    got = torch_state(module)
    for name, want in reference.state_dict().items():
        np.testing.assert_allclose(got[name], want.numpy(), rtol=1e-6, err_msg=name)
