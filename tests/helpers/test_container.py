"""Containers and buffers: names, order, list methods as in torch, also after Flax has rebuilt the module."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers.container import Buffer, IndexedSequential, ModuleDict, ModuleList, Sequential
from tests.helpers.compare import array, same_module, torch_names


def linear(i: int, o: int) -> nnx.Linear:
    return nnx.Linear(i, o, rngs=nnx.Rngs(0))


def names(module: nnx.Module) -> list[str]:
    return sorted(torch_names(module))


def test_sequential_by_position_has_torch_names_and_values() -> None:
    module = Sequential(linear(3, 4), nnx.relu, linear(4, 2))
    reference = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    same_module(module, reference, array(5, 3))
    same_module(module, reference, array(5, 3), jit=True)
    assert isinstance(module, nnx.Sequential)


def test_sequential_of_named_modules_keeps_names_and_order_when_rebuilt() -> None:
    module = Sequential(OrderedDict([("second", linear(3, 4)), ("first", linear(4, 2))]))
    reference = torch.nn.Sequential(
        OrderedDict([("second", torch.nn.Linear(3, 4)), ("first", torch.nn.Linear(4, 2))])
    )  # fmt: skip
    same_module(module, reference, array(5, 3), jit=True)
    rebuilt = nnx.clone(module)
    assert [m.in_features for m in rebuilt] == [3, 4]
    assert module.first is module[1]


def test_an_indexed_sequential_is_read_and_changed_like_pytorchs() -> None:
    module = IndexedSequential(linear(3, 4), nnx.relu, linear(4, 2))
    reference = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    same_module(module, reference, array(5, 3), jit=True)
    same_module(module[:2], reference[:2], array(5, 3))
    assert (
        len(module) == 3 and next(iter(module)) is module[0] and module[-1].out_features == 2 and len(module[1:]) == 2
    )
    for index, layers in ((-1, (linear(4, 5), torch.nn.Linear(4, 5))), (1, (linear(4, 4), torch.nn.Linear(4, 4)))):
        module[index], reference[index] = layers
        same_module(module, reference, array(5, 3), jit=True)


def test_sequential_passes_a_tuple_on_as_one_argument() -> None:
    assert Sequential(lambda x: (x, x + 1), lambda pair: pair[1] * 2)(jnp.ones(())) == 4
    assert Sequential()(3) == 3


class TorchSwap(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.p = torch.nn.Parameter(torch.zeros(size))


class FlaxSwap(nnx.Module):
    def __init__(self, size: int) -> None:
        self.size = size
        self.p = nnx.Param(jnp.zeros(size))


Change = Callable[[Any, Callable[[int], Any]], Any]
SEQUENTIAL_CHANGES: dict[str, Change] = {
    "append": lambda s, make: s.append(make(9)),
    "extend": lambda s, make: s.extend([make(8), make(9)]),
    "insert": lambda s, make: s.insert(1, make(9)),
    "assign": lambda s, make: s.__setitem__(-1, make(9)),
    "delete": lambda s, make: s.__delitem__(0),
    "delete a slice": lambda s, make: s.__delitem__(slice(1, 3)),
    "add a named module": lambda s, make: s.add_module("extra", make(9)),
    "replace a named module": lambda s, make: s.add_module("1", make(9)),
}


@pytest.mark.parametrize("change", SEQUENTIAL_CHANGES)
def test_sequential_changes_as_in_torch(change: str) -> None:
    module, reference = Sequential(*map(FlaxSwap, range(1, 5))), torch.nn.Sequential(*map(TorchSwap, range(1, 5)))
    SEQUENTIAL_CHANGES[change](module, FlaxSwap)
    SEQUENTIAL_CHANGES[change](reference, TorchSwap)
    for got in (module, nnx.clone(module)):
        assert [m.size for m in got] == [m.size for m in reference]
        assert names(got) == sorted(reference.state_dict())
        assert len(got) == len(reference)


def test_slice_of_a_sequential_shares_its_modules_and_keeps_their_names() -> None:
    module, reference = Sequential(*map(FlaxSwap, range(1, 5))), torch.nn.Sequential(*map(TorchSwap, range(1, 5)))
    part = module[1:3]
    assert part[0] is module[1]
    assert module[-1].size == 4
    assert names(part) == sorted(reference[1:3].state_dict())
    with pytest.raises(IndexError):
        module[4]


def test_functions_and_modules_replace_each_other() -> None:
    module = Sequential(linear(2, 3), nnx.relu)
    module[1] = linear(3, 1)
    module[0] = nnx.relu
    assert nnx.jit(lambda m, x: m(x))(module, jnp.ones(3)).shape == (1,)


LIST_CHANGES: dict[str, Change] = {
    **{k: v for k, v in SEQUENTIAL_CHANGES.items() if "named" not in k},
    "pop": lambda s, make: s.pop(0),
    "add a list in place": lambda s, make: s.__iadd__([make(9)]),
}  # fmt: skip


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_module_list_changes_as_in_torch(change: str) -> None:
    module, reference = ModuleList(map(FlaxSwap, range(1, 5))), torch.nn.ModuleList(map(TorchSwap, range(1, 5)))
    LIST_CHANGES[change](module, FlaxSwap)
    LIST_CHANGES[change](reference, TorchSwap)
    for got in (module, nnx.clone(module)):
        assert [m.size for m in got] == [m.size for m in reference]
        assert names(got) == sorted(reference.state_dict())
        leaves = jax.tree.leaves(nnx.state(got, nnx.Param))
        assert len(leaves) == len(jax.tree.leaves(got)) == len(reference)


def test_slices_and_sums_of_module_lists_are_module_lists() -> None:
    class Net(nnx.Module):
        def __init__(self) -> None:
            self.blocks = ModuleList(map(FlaxSwap, range(1, 5)))
            self.tail = self.blocks[2:]
            self.all = self.blocks + self.tail

    net = Net()
    assert [m.size for m in net.tail] == [3, 4]
    assert net.tail[0] is net.blocks[2]
    assert [m.size for m in net.all] == [1, 2, 3, 4, 3, 4]


def test_module_dict_keeps_its_order_when_rebuilt() -> None:
    module = ModuleDict({"z": FlaxSwap(1), "a": FlaxSwap(2)})
    module["m"] = FlaxSwap(3)
    module.update({"a": FlaxSwap(4)})
    assert [(k, m.size) for k, m in nnx.clone(module).items()] == [("z", 1), ("a", 4), ("m", 3)]
    assert nnx.jit(lambda m: jnp.array([x.size for x in m.values()]))(module).tolist() == [1, 4, 3]
    assert names(module) == ["a.p", "m.p", "z.p"]


def test_module_dict_holds_its_children_only() -> None:
    module = ModuleDict([("z", FlaxSwap(1)), ("a", FlaxSwap(2))])
    assert "train" not in module
    assert "z" in module
    with pytest.raises(KeyError):
        module["train"]
    assert module.pop("z").size == 1
    assert list(module.keys()) == ["a"]
    assert len(module) == 1


def test_buffer_is_neither_a_parameter_nor_lost() -> None:
    class Net(nnx.Module):
        def __init__(self) -> None:
            self.count = Buffer(jnp.zeros((), jnp.int32))
            self.mask = Buffer(jnp.ones(3), persistent=False)
            self.weight = nnx.Param(jnp.ones(3))

        def __call__(self, x: jax.Array) -> jax.Array:
            self.count[...] += 1
            return x * self.weight[...] * self.mask[...]

    net = Net()
    nnx.jit(lambda net, x: net(x))(net, jnp.ones(3))
    assert net.count[...] == 1
    rebuilt = nnx.clone(net)
    assert [b.get_metadata("persistent", True) for b in (rebuilt.count, rebuilt.mask)] == [True, False]
    grads = nnx.grad(lambda net: net(jnp.ones(3)).sum())(net)
    assert list(nnx.to_pure_dict(nnx.state(grads))) == ["weight"]
    assert set(nnx.to_pure_dict(nnx.state(net, Buffer))) == {"count", "mask"}
