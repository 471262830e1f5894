"""A state dict that does not fit is refused with every reason, and the module stays as it was."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from t2j_lsp.contract import T2JError
from t2j_lsp.weights import WeightsError, load_torch_state, torch_names, torch_state

from .pairs import MLP, Tied, TorchMLP, TorchTied, randomized


def refused(module: nnx.Module, state: dict[str, object]) -> WeightsError:
    """The error of loading ``state``, after a look that ``module`` did not change."""
    before = torch_state(module)
    with pytest.raises(WeightsError) as caught:
        load_torch_state(module, state)
    for name, value in torch_state(module).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    return caught.value


def test_everything_wrong_is_listed_at_once() -> None:
    state = dict(randomized(TorchMLP).state_dict())
    del state["fc1.bias"], state["mask"]
    state["fc2.weight"] = state["fc2.weight"].T
    state["scale"] = torch.ones(3)
    state["head.weight"] = torch.ones(1)
    state["epoch"] = 3
    error = refused(MLP(rngs=nnx.Rngs(0)), state)
    assert error.missing == ("fc1.bias", "mask")
    assert error.unexpected == ("head.weight", "epoch")
    assert error.misshapen == {
        "fc2.weight": "has shape (5, 2), the module needs (2, 5)",
        "scale": "has shape (3,), the module needs (2, 3)",
    }
    for name in ("fc1.bias", "mask", "head.weight", "fc2.weight", "(2, 5)", "MLP"):
        assert name in str(error)


def test_values_that_a_dtype_can_t_hold_are_refused() -> None:
    state = dict(randomized(TorchMLP).state_dict())
    state["steps"] = torch.tensor(2**40)
    state["mask"] = torch.tensor([0.5, 1.0])
    error = refused(MLP(rngs=nnx.Rngs(0)), state)
    assert set(error.misshapen) == {"steps", "mask"}
    assert "int32" in error.misshapen["steps"] and "bool" in error.misshapen["mask"]


def test_two_values_for_one_tied_variable_are_refused() -> None:
    state = dict(randomized(TorchTied).state_dict())
    state["head.weight"] = state["head.weight"] + 1
    error = refused(Tied(rngs=nnx.Rngs(0)), state)
    assert error.misshapen == {"head.weight": "differs from embedding.weight, with which the module ties it"}


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod."])
def test_names_with_a_wrapper_s_prefix_are_explained(prefix: str) -> None:
    state = {prefix + name: value for name, value in randomized(TorchMLP).state_dict().items()}
    error = refused(MLP(rngs=nnx.Rngs(0)), state)
    assert len(error.unexpected) == len(state)
    assert f"start with '{prefix}'" in str(error)


def test_a_whole_checkpoint_is_explained() -> None:
    error = refused(nnx.Sequential(nnx.Linear(1, 1, rngs=nnx.Rngs(0))), {"0.weight": {"a": 1}, "0.bias": [1.0]})
    assert "pass the state dict inside it" in error.misshapen["0.weight"]
    assert set(error.misshapen) == {"0.weight", "0.bias"}


def test_two_variables_for_one_name_are_refused() -> None:
    class Clash(nnx.Linear):
        def __init__(self) -> None:
            super().__init__(2, 3, rngs=nnx.Rngs(0))
            self.weight = nnx.Param(jnp.ones(2))

    with pytest.raises(T2JError, match="two variables for the state dict entry 'weight'"):
        torch_names(Clash())


def test_an_optimizer_that_a_module_holds_is_not_in_its_state_dict() -> None:
    model = MLP(rngs=nnx.Rngs(0))
    names = {*torch_names(model)}
    model.optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)
    assert {*torch_names(model)} == names
