"""PyTorch's names of what stands at a path of a module."""

import jax.numpy as jnp
import torch
from flax import nnx

from t2j_lsp.rules.helpers.names import torch_name


class Block(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.net = nnx.Sequential(nnx.Linear(2, 3, rngs=rngs), nnx.relu, nnx.LayerNorm(3, rngs=rngs))
        self.layers = nnx.List([nnx.Embed(4, 3, rngs=rngs)])
        self.gain = nnx.Param(jnp.ones(3))
        self.scale = nnx.Param(jnp.ones(3))


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.LayerNorm(3))
        self.layers = torch.nn.ModuleList([torch.nn.Embedding(4, 3)])
        self.gain = torch.nn.Parameter(torch.ones(3))


def test_parameters_have_pytorchs_names() -> None:
    block = Block(rngs=nnx.Rngs(0))
    names = {torch_name(block, path) for path, _ in nnx.to_flat_state(nnx.state(block, nnx.Param))}
    assert names == {name for name, _ in TorchBlock().named_parameters()} | {"scale"}


def test_modules_have_pytorchs_names_and_the_module_itself_none() -> None:
    block = Block(rngs=nnx.Rngs(0))
    names = {torch_name(block, path) for path, _ in nnx.iter_modules(block)}
    assert {"", "net", "net.0", "net.2", "layers", "layers.0"} <= names
