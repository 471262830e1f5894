"""PyTorch's names of what stands at a path of a module."""

from collections import OrderedDict

import jax.numpy as jnp
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers.checkpoints import StateDict
from t2j_lsp.rules.helpers.container import Sequential
from t2j_lsp.rules.helpers.names import get_submodule, in_torch_order, named_children, named_contents, torch_name


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


class Unsorted(nnx.Module):
    """Parts whose names are in no order, a list of more than ten, parameters behind parts."""

    def __init__(self, *, rngs: nnx.Rngs):
        self.q = nnx.Linear(2, 2, rngs=rngs)
        self.net = nnx.Sequential(*[nnx.Linear(2, 2, rngs=rngs) for _ in range(12)])
        self.k = nnx.LayerNorm(2, rngs=rngs)
        self.w = nnx.Param(jnp.ones(3))


class TorchUnsorted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = torch.nn.Linear(2, 2)
        self.net = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(12)])
        self.k = torch.nn.LayerNorm(2)
        self.w = torch.nn.Parameter(torch.ones(3))


def test_walks_come_in_pytorchs_order_also_behind_jit() -> None:
    module, reference = Unsorted(rngs=nnx.Rngs(0)), TorchUnsorted()
    nnx.jit(lambda m: m.w.set_value(2 * m.w[...]))(module)
    result = in_torch_order(module, nnx.to_flat_state(nnx.state(module, nnx.Param)))
    assert [torch_name(module, path) for path, _ in result] == [name for name, _ in reference.named_parameters()]
    names = [torch_name(module, path) for path, m in in_torch_order(module, nnx.iter_modules(module))]
    assert list(dict.fromkeys(names)) == [name for name, _ in reference.named_modules()]


def test_apply_comes_to_a_module_behind_its_parts() -> None:
    module, reference, applied = Unsorted(rngs=nnx.Rngs(0)), TorchUnsorted(), []
    own = {one: name for name, one in reference.named_modules()}
    reference.apply(lambda one: applied.append(own[one]))
    walk = in_torch_order(module, nnx.iter_modules(module), parts_first=True)
    assert list(dict.fromkeys(torch_name(module, path) for path, _ in walk)) == applied


class Parts(nnx.Module):
    """A child of each kind, one of them under two names."""

    def __init__(self, *, rngs: nnx.Rngs):
        self.q = nnx.Linear(2, 2, rngs=rngs)
        self.net = nnx.Sequential(nnx.Linear(2, 2, rngs=rngs), nnx.relu, nnx.LayerNorm(2, rngs=rngs))
        self.blocks = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(12)])
        self.again = self.q
        self.scale = nnx.Param(jnp.ones(2))
        self.b = nnx.Dict(x=nnx.Linear(2, 2, rngs=rngs), a=nnx.Linear(2, 2, rngs=rngs))


class TorchParts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = torch.nn.Linear(2, 2)
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.LayerNorm(2))
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(12)])
        self.again = self.q
        self.scale = torch.nn.Parameter(torch.ones(2))
        self.b = torch.nn.ModuleDict({"x": torch.nn.Linear(2, 2), "a": torch.nn.Linear(2, 2)})


def test_children_have_pytorchs_names_and_order_also_behind_jit() -> None:
    module, reference = Parts(rngs=nnx.Rngs(0)), TorchParts()
    nnx.jit(lambda m: m.scale.set_value(2 * m.scale[...]))(module)
    for part in ("", "net", "blocks", "b", "q"):
        own, wanted = (getattr(one, part) if part else one for one in (module, reference))
        layers = [n for n, child in wanted.named_children() if not isinstance(child, torch.nn.ReLU)]
        assert [name for name, _ in named_children(own)] == layers
        assert all(isinstance(child, nnx.Module) for _, child in named_children(own))


def test_a_sequential_of_names_may_have_a_part_named_layers() -> None:
    parts = {"layers": nnx.Linear(2, 3, rngs=nnx.Rngs(0)), "1": nnx.Linear(3, 2, rngs=nnx.Rngs(0))}
    own = Sequential(parts)
    wanted = torch.nn.Sequential(OrderedDict(layers=torch.nn.Linear(2, 3)))
    wanted.add_module("1", torch.nn.Linear(3, 2))
    assert [name for name, _ in named_children(own)] == [name for name, _ in wanted.named_children()]
    assert list(StateDict(own)) == list(wanted.state_dict())
    assert torch_name(own, ("layers", "kernel")) == "layers.weight"
    assert torch_name(nnx.Sequential(*parts.values()), ("layers", 0, "kernel")) == "0.weight"


def test_a_container_has_what_pytorch_counts_as_children() -> None:
    same = torch.nn.Linear(2, 2)
    made = torch.nn.Sequential(OrderedDict(z=same, act=torch.nn.ReLU(), a=torch.nn.Linear(2, 2), again=same))
    linear = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    sequential = Sequential(OrderedDict(z=linear, act=nnx.relu, a=nnx.Linear(2, 2, rngs=nnx.Rngs(0)), again=linear))
    assert [name for name, _ in named_contents(sequential)] == [name for name, _ in made.named_children()]
    assert [name for name, _ in named_contents(nnx.clone(sequential))] == ["z", "act", "a"]
    listed = [linear, nnx.relu, nnx.relu, linear, nnx.Linear(2, 2, rngs=nnx.Rngs(0))]
    assert [name for name, _ in named_contents(nnx.List(listed))] == ["0", "1", "2", "4"]
    assert [name for name, _ in named_contents(nnx.Sequential(*listed))] == ["0", "1", "2", "4"]


def test_a_part_is_found_by_pytorchs_name_of_it() -> None:
    block, module = Block(rngs=nnx.Rngs(0)), TorchBlock()
    assert get_submodule(block, "") is block and get_submodule(block, "net.1") is nnx.relu
    assert get_submodule(block, "net.2") is block.net.layers[2] and get_submodule(block, "layers.0") is block.layers[0]
    named = Sequential(OrderedDict(z=nnx.Linear(2, 2, rngs=nnx.Rngs(0)), layers=nnx.Linear(2, 2, rngs=nnx.Rngs(0))))
    assert get_submodule(named, "layers") is named.layers
    for missing in ("net.3", "net.x", "gain", "layers.-1", "other", "net.0.weight"):
        with pytest.raises(AttributeError):
            get_submodule(block, missing)
        with pytest.raises(AttributeError):
            module.get_submodule(missing)
