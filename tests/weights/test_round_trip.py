"""Values move between PyTorch and Flax without a change, and mean the same on both sides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.weights import load_torch_state, torch_layout, torch_names, torch_state

from .pairs import MLP, PAIRS, Buffer, ConvNet, Pair, Tied, TorchConvNet, TorchMLP, TorchTied, randomized

ROOT = Path(__file__).resolve().parents[2]
RUNNABLE = {name: pair for name, pair in PAIRS.items() if pair.shape}


def make_input(pair: Pair) -> np.ndarray:
    assert pair.shape
    rng = np.random.default_rng(1)
    return rng.integers(0, 7, pair.shape) if pair.integer else rng.normal(size=pair.shape)


def assert_close(got: jax.Array, want: np.ndarray, what: str) -> None:
    """Same shape, and equal to 1e-10 of the largest value."""
    assert got.shape == want.shape, what
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * np.abs(want).max(), err_msg=what)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_state_dict_comes_back_bit_for_bit(pair: Pair) -> None:
    source = randomized(pair.torch)
    module = load_torch_state(pair.empty(), source.state_dict())
    back = torch_state(module)
    target = randomized(pair.torch, seed=1)
    target.load_state_dict({name: torch.from_numpy(value) for name, value in back.items()}, strict=True)
    for name, value in source.state_dict().items():
        assert torch.equal(target.state_dict()[name], value), name


@pytest.mark.parametrize("pair", RUNNABLE.values(), ids=RUNNABLE)
def test_loaded_modules_agree_on_outputs_and_every_parameter_gradient(pair: Pair) -> None:
    source = randomized(pair.torch).double()
    x = make_input(pair)
    expected = source(torch.from_numpy(x))
    weight = np.random.default_rng(2).normal(size=expected.shape)
    expected.backward(torch.from_numpy(weight))
    with jax.enable_x64(True):
        module = load_torch_state(pair.empty(), source.state_dict())

        @nnx.jit
        @nnx.grad(has_aux=True)
        def gradient(module: nnx.Module) -> tuple[jax.Array, jax.Array]:
            output = module(jnp.asarray(x))
            return jnp.sum(output * weight), output

        state, output = gradient(module)
        grads = torch_layout(module, state)
        assert all(value.dtype == np.float64 for value in torch_state(module).values() if value.dtype.kind == "f")
    assert_close(output, expected.detach().numpy(), "output")
    parameters = dict(source.named_parameters(remove_duplicate=False))
    used = {name: p.grad for name, p in parameters.items() if p.grad is not None}
    assert set(grads) == set(parameters)
    for name, grad in used.items():
        assert_close(grads[name], grad.numpy(), name)


def test_names_tell_parameters_from_buffers_and_torch_s_shapes() -> None:
    names = torch_names(ConvNet(rngs=nnx.Rngs(0)))
    source = TorchConvNet()
    assert {n for n, e in names.items() if e.kind == "parameter"} == set(dict(source.named_parameters()))
    assert {n for n, e in names.items() if e.kind == "buffer"} == set(dict(source.named_buffers()))
    assert {n: e.shape for n, e in names.items()} == {n: tuple(v.shape) for n, v in source.state_dict().items()}
    assert names["conv.weight"].paths == (("conv", "kernel"),)
    assert names["bn.num_batches_tracked"].variables == ()


def test_a_tied_variable_has_each_of_its_names_and_stays_tied() -> None:
    source = randomized(TorchTied)
    module = load_torch_state(Tied(rngs=nnx.Rngs(0)), source.state_dict())
    assert set(torch_names(module)) == set(source.state_dict())
    assert module.head.weight is module.embedding.embedding
    assert "again.weight" in torch_state(module)


def test_one_name_is_enough_for_a_tied_variable() -> None:
    state = randomized(TorchTied).state_dict()
    for name in ("embedding.weight", "proj.weight", "again.bias"):
        del state[name]
    module = load_torch_state(Tied(rngs=nnx.Rngs(0)), state)
    np.testing.assert_array_equal(module.embedding.embedding[...], state["head.weight"].numpy())
    np.testing.assert_array_equal(module.proj.bias[...], state["proj.bias"].numpy())


def test_a_module_that_holds_its_parent_is_walked_once() -> None:
    class Child(nnx.Module):
        def __init__(self, parent: nnx.Module) -> None:
            self.parent = parent
            self.weight = nnx.Param(jnp.ones(2))

    class Parent(nnx.Module):
        def __init__(self) -> None:
            self.child = Child(self)

    assert list(torch_names(Parent())) == ["child.weight"]


def test_caches_random_states_and_plain_arrays_are_not_saved() -> None:
    module = MLP(rngs=nnx.Rngs(0))
    module.memory = nnx.Cache(jnp.ones(2))
    assert set(torch_state(module)) == set(TorchMLP().state_dict())


class Typed(nnx.Module):
    """One variable of each kind of dtype."""

    def __init__(self) -> None:
        self.weight = nnx.Param(jnp.zeros((2, 3)))
        self.index = Buffer(jnp.zeros(3, jnp.int32))
        self.mask = Buffer(jnp.zeros(3, bool))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn])
def test_floating_dtypes_are_kept(dtype: torch.dtype) -> None:
    values = torch.linspace(-3, 3, 6).reshape(2, 3).to(dtype)
    state = {"weight": values, "index": torch.tensor([1, 2, 3]), "mask": torch.tensor([True, False, True])}
    module = load_torch_state(Typed(), state)
    assert module.weight[...].dtype.name == str(dtype).removeprefix("torch.")
    assert module.index[...].dtype == jnp.int32 and module.mask[...].dtype == bool
    back = torch_state(module, tensors=True)
    assert back["weight"].dtype == dtype
    assert torch.equal(back["weight"].float(), values.float())
    assert torch.equal(back["mask"], state["mask"])


def test_sixty_four_bits_are_kept_where_jax_keeps_them() -> None:
    wide = {"weight": np.full((2, 3), 0.1), "index": np.array([1, 2, 2**40]), "mask": np.ones(3, bool)}
    with jax.enable_x64(True):
        state = torch_state(load_torch_state(Typed(), wide))
        assert {name: value.dtype for name, value in state.items()} == {n: v.dtype for n, v in wide.items()}
        np.testing.assert_array_equal(state["index"], wide["index"])
    narrow = load_torch_state(Typed(), {**wide, "index": np.array([1, 2, 3])})
    assert narrow.weight[...].dtype == jnp.float32 and narrow.index[...].dtype == jnp.int32


def test_dtype_casts_floating_values_only() -> None:
    state = {"weight": torch.ones(2, 3).bfloat16(), "index": torch.arange(3), "mask": torch.ones(3, dtype=torch.bool)}
    module = load_torch_state(Typed(), state, dtype=jnp.float32)
    assert module.weight[...].dtype == jnp.float32
    assert module.index[...].dtype == jnp.int32 and module.mask[...].dtype == bool


def test_another_kind_of_dtype_loads_where_nothing_is_lost() -> None:
    state = {"weight": np.ones((2, 3), np.int64), "index": np.array([1.0, 2.0, 3.0]), "mask": np.array([0, 1, 1])}
    module = load_torch_state(Typed(), state)
    assert module.weight[...].dtype == jnp.float32
    assert module.index[...].dtype == jnp.int32
    np.testing.assert_array_equal(module.mask[...], [False, True, True])


def test_values_are_copied_and_torch_may_go_on_writing() -> None:
    source = randomized(TorchMLP)
    module = load_torch_state(MLP(rngs=nnx.Rngs(0)), source.state_dict())
    before = torch_state(module)
    with torch.no_grad():
        for value in source.state_dict().values():
            value.zero_()
    after = torch_state(module)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
        assert value.flags.writeable


def test_jax_arrays_load_as_well() -> None:
    state = {name: jnp.asarray(value.numpy()) for name, value in randomized(TorchMLP).state_dict().items()}
    back = torch_state(load_torch_state(MLP(rngs=nnx.Rngs(0)), state))
    for name, value in state.items():
        np.testing.assert_array_equal(back[name], value, err_msg=name)


def test_an_abstract_module_is_filled() -> None:
    source = randomized(TorchConvNet)
    module = nnx.eval_shape(lambda: ConvNet(rngs=nnx.Rngs(0)))
    load_torch_state(module, source.state_dict())
    x = np.ones((1, 4, 5, 6), np.float32)
    expected = source(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(module(jnp.asarray(x)), expected, rtol=1e-4)


def test_a_nested_dict_has_torch_s_names_and_layouts() -> None:
    source = randomized(TorchConvNet)
    params = {
        "conv": {"weight": jnp.zeros((6, 2, 3, 2)), "bias": jnp.zeros(6)},
        "bn": {n: jnp.zeros(6) for n in ("weight", "bias", "running_mean", "running_var")},
        "plain": {"running_mean": jnp.zeros(3), "running_var": jnp.zeros(3)},
    }
    assert load_torch_state(params, source.state_dict()) is params
    assert isinstance(params["conv"]["weight"], jax.Array)
    back = torch_state(params, tensors=True)
    randomized(TorchConvNet, seed=1).load_state_dict(back, strict=True)
    assert torch.equal(back["conv.weight"], source.conv.weight)
    grads = {"conv": {"weight": jnp.ones((6, 2, 3, 2))}}
    assert list(torch_layout(params, grads)) == ["conv.weight"]


WITHOUT_TORCH = """
import sys
import numpy as np
from flax import nnx
from t2j_lsp import load_torch_state, torch_state
module = nnx.Sequential(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
state = {"0.weight": np.ones((3, 2), np.float32), "0.bias": np.zeros(3, np.float32)}
back = torch_state(load_torch_state(module, state))
assert all((back[name] == value).all() for name, value in state.items())
assert "torch" not in sys.modules
"""


def test_arrays_need_no_torch() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert run.returncode == 0, run.stderr
