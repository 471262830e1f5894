"""Parameters of layers whose class isn't known where they are read or written: a helper finds them as the code runs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.weights import load_torch_state, torch_state

from .side_by_side import compare, randomized, sides

SOURCE = """\
import torch
from torch import nn


def fused(bn, conv):
    gamma = bn.weight
    scale = (gamma / (bn.running_var + bn.eps).sqrt()).reshape(-1, 1, 1, 1)
    return conv.weight * scale, bn.bias - bn.running_mean * gamma


class Block(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d, layer=nn.Conv2d):
        super().__init__()
        self.conv = layer(3, 4, 3)
        self.bn = norm(4)
        self.parts = nn.ModuleList([nn.Linear(3, 4), nn.LayerNorm(4), nn.Conv1d(2, 3, 2), nn.Embedding(3, 2)])
        self.up = nn.ModuleList([nn.ConvTranspose1d(2, 3, 2), nn.GroupNorm(2, 4)])

    def change(self):
        with torch.no_grad():
            for i, part in enumerate(self.parts):
                {change}

    def forward(self, x):
        kernel, bias = fused(self.bn, self.conv)
        y = torch.nn.functional.conv2d(x, kernel, bias)
        rows = sum((part.weight[0] * torch.arange(1.0, 1.0 + part.weight[0].numel()).view(part.weight[0].shape)).sum()
                   for part in self.parts)
        return y * rows + sum(part.weight.sum(0).prod() for part in self.up)
"""


@pytest.mark.parametrize(
    "change", ["pass", "part.weight.mul_(i + 2)", "part.weight *= 3", "part.weight.data = part.weight.data * 2"]
)
def test_reads_and_writes_agree_whatever_the_class(change: str) -> None:
    both = sides(SOURCE.replace("{change}", change), "any_layer")
    assert not both.gaps()
    assert "torch_parameter(bn" in both.translation.code
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 6))
    with jax.enable_x64(True):
        module, reference = both.jax.Block(rngs=nnx.Rngs(0)), randomized(both.torch.Block())
        load_torch_state(module, reference.state_dict())
        module.change()
        reference.change()
        for name, value in torch_state(module).items():
            np.testing.assert_allclose(value, reference.state_dict()[name].numpy(), rtol=1e-12)
        compare(reference, module, [x])


def test_a_write_in_a_forward_pass_would_lose_its_gradient() -> None:
    source = SOURCE.replace("{change}", "part.weight.mul_(2)").replace(
        "(self, x):", "(self, x):\n        self.change()"
    )
    assert [gap.name for gap in convert(source).gaps][-1] == "in-place"


def test_layers_that_a_caller_hands_over_are_written() -> None:
    both = sides(WRITES, "any_layer_writes")
    assert not both.gaps()
    jax_side, torch_side = both.jax.Net(rngs=nnx.Rngs(0)), both.torch.Net().double()
    values = np.random.default_rng(1).normal(size=(4, 3))
    both.torch.move(torch_side, torch.as_tensor(values))
    both.jax.move(jax_side, jnp.asarray(values))
    state = torch_state(jax_side)
    for name in ("mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.weight"):
        np.testing.assert_allclose(state[name], torch_side.state_dict()[name].numpy(), rtol=1e-6)


HEAD = "import torch\nfrom torch import nn\n\n\n"
WRITES = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(3, 4), "fc2": nn.Linear(3, 4)})


def move(model, values):
    with torch.no_grad():
        getattr(model.mlp, "fc1").weight.copy_(values * 2)
        getattr(model.mlp, "fc1").bias.copy_(values[:, 0])
        model.mlp.fc2.weight.data = model.mlp.fc1.weight.data.clone().detach() * 3
"""


@pytest.mark.parametrize(
    "use",
    [
        "other.tied = layer.weight",
        "return layer.weight",
        "layer.weight.requires_grad_(False)",
        "layer.weight[0] = 1.0",
        "same = layer.weight is other.weight",
    ],
)
def test_a_parameter_that_is_more_than_a_value_is_not_looked_up(use: str) -> None:
    source = f"{HEAD}def f(model: nn.Module, other: nn.Module):\n    for layer in model.children():\n        {use}\n"
    translation = convert(source)
    assert "torch_parameter" not in translation.code
    assert translation.gaps


def test_target_jax_has_no_layers_to_look_into() -> None:
    source = f"{HEAD}def f(model: nn.Module):\n    return model.a.weight * 2\n"
    assert "torch_parameter(model.a" in convert(source).code
    translation = convert(source, target="jax")
    assert "torch_parameter" not in translation.code


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("return x @ model.fc.weight", 'return x @ torch_parameter(model.fc, "weight")'),
        ("w = net.blocks[0].fc.weight\n    return w.norm()", 'w = torch_parameter(net.blocks[0].fc, "weight")'),
        ("return model.fc.weight.norm()", 'optax.safe_norm(torch_parameter(model.fc, "weight"), 0)'),
        ("return F.linear(x, layer.weight)", 'x @ torch_parameter(layer, "weight").T'),
        ("return bn1.running_mean + x", 'torch_parameter(bn1, "running_mean") + x'),
        ("return self_conv.weight * x", 'torch_parameter(self_conv, "weight") * x'),
        ("conv.weight.data = conv.weight.data * 2", "set_torch_parameter("),
    ],
)
def test_what_is_called_a_layer_is_asked_by_name(read: str, written: str) -> None:
    """Nothing tells the class of a parameter's part, and PyTorch's `weight` is `kernel`, `scale` or `embedding`."""
    done = convert(f"{HEAD}import torch.nn.functional as F\n\n\ndef f({GIVEN}):\n    {read}\n")
    assert not done.gaps and written in done.code and ".norm()" not in done.code


GIVEN = "model, net, layer, bn1, conv, self_conv, x"


@pytest.mark.parametrize(
    "use",
    [
        "return model.fc.weight",
        "w = model.fc.weight\n    return w",
        "model.fc.weight.requires_grad = False",
        "nn.init.xavier_uniform_(model.fc.weight)",
        "return model.fc.weight.grad.norm()",
        "return torch.optim.SGD([model.fc.weight], lr=0.1)",
        "net.w = conv.weight",
        "return [layer.weight]",
    ],
)
def test_what_is_called_a_layer_is_no_more_than_its_values(use: str) -> None:
    done = convert(f"{HEAD}def f({GIVEN}):\n    {use}\n")
    assert done.gaps and "torch_parameter" not in done.code


@pytest.mark.parametrize("use", ["batch.weight * x", "criterion.weight + x", "x.weight[0]", "data.edge.weight + x"])
def test_weights_of_what_has_another_name_stay(use: str) -> None:
    done = convert(f"{HEAD}def f(batch, criterion, data, x):\n    return {use}\n")
    assert not done.gaps and use in done.code


def test_a_layer_that_another_file_hands_over_is_read_in_its_layout() -> None:
    both = sides(HANDED, "any_layer_handed")
    assert not both.gaps()
    x = np.random.default_rng(2).normal(size=(2, 3))
    with jax.enable_x64(True):
        reference = randomized(both.torch.Wrap(both.torch.Net()))
        module = both.jax.Wrap(both.jax.Net(rngs=nnx.Rngs(0)), rngs=nnx.Rngs(0))
        load_torch_state(module, reference.state_dict())
        compare(reference, module, [x])


HANDED = f"""{HEAD}class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.bn = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.bn(self.fc(x))


class Wrap(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        scale = self.model.bn.weight
        return (self.model(x) * scale) @ self.model.fc.weight + self.model.fc.weight.norm()
"""
