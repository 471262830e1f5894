"""A stack of layers has an entry of the state dict for each layer's part of each of its arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from t2j_lsp.weights import WeightsError, load_torch_state, torch_layout, torch_names, torch_state


class Block(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.fc = nnx.Linear(3, 2, rngs=rngs)
        self.again = self.fc.kernel


class Outer(nnx.Module):
    def __init__(self, depth: int, *, rngs: nnx.Rngs) -> None:
        @nnx.split_rngs(splits=depth)
        @nnx.vmap
        def create_layer(rngs: nnx.Rngs) -> Block:
            return Block(rngs=rngs)

        self.blocks = create_layer(rngs)
        self.blocks.stacked_layers = depth


class Nested(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        @nnx.split_rngs(splits=2)
        @nnx.vmap
        def create_layer(rngs: nnx.Rngs) -> Outer:
            return Outer(4, rngs=rngs)

        self.stages = create_layer(rngs)
        self.stages.stacked_layers = 2


def state_of(module: nnx.Module) -> dict[str, np.ndarray]:
    shapes = {name: entry.shape for name, entry in torch_names(module).items()}
    values = {
        n: np.arange(np.prod(s), dtype=np.float32).reshape(s) + 100 * i for i, (n, s) in enumerate(shapes.items())
    }
    return {n: values[n.replace("again", "fc.weight")].T if n.endswith("again") else v for n, v in values.items()}


def test_each_layer_has_its_part_under_pytorchs_name() -> None:
    module = Nested(rngs=nnx.Rngs(0))
    state = state_of(module)
    assert len(state) == 2 * 4 * 3 and state["stages.1.blocks.3.fc.weight"].shape == (2, 3)
    load_torch_state(module, state)
    kernel = module.stages.blocks.fc.kernel[...]
    np.testing.assert_array_equal(kernel[1, 3], state["stages.1.blocks.3.fc.weight"].T)
    assert {n: v.tolist() for n, v in torch_state(module).items()} == {n: v.tolist() for n, v in state.items()}
    gradients = torch_layout(module, nnx.grad(lambda m: (m.stages.blocks.fc.kernel[...] ** 2).sum())(module))
    np.testing.assert_array_equal(gradients["stages.0.blocks.2.fc.weight"], 2 * state["stages.0.blocks.2.fc.weight"])


def test_a_stack_without_values_takes_the_dtype_of_its_weights() -> None:
    module = nnx.eval_shape(lambda: Outer(3, rngs=nnx.Rngs(0)))
    state = {name: value.astype(jnp.bfloat16) for name, value in state_of(module).items()}
    load_torch_state(module, state)
    assert module.blocks.fc.kernel.dtype == jnp.bfloat16 and module.blocks.fc.kernel.shape == (3, 3, 2)


def test_a_layer_too_many_is_unexpected_and_one_too_few_missing() -> None:
    module = Outer(3, rngs=nnx.Rngs(0))
    state = state_of(module)
    state["blocks.3.fc.bias"] = state.pop("blocks.1.fc.bias")
    with pytest.raises(WeightsError) as caught:
        load_torch_state(module, state)
    assert caught.value.missing == ("blocks.1.fc.bias",) and caught.value.unexpected == ("blocks.3.fc.bias",)


def test_an_attribute_of_that_name_makes_no_stack_of_other_arrays() -> None:
    module = Outer(3, rngs=nnx.Rngs(0))
    module.blocks.stacked_layers = 2
    assert torch_names(module)["blocks.fc.bias"].shape == (3, 2)


def test_parts_are_replaced_while_jax_traces() -> None:
    module = Outer(3, rngs=nnx.Rngs(0))

    @jax.jit
    def doubled(bias: jax.Array) -> jax.Array:
        copy = nnx.clone(module)
        variable = torch_names(copy)["blocks.1.fc.bias"].variables[0]
        variable.set_value(variable.get_value() + bias)
        return copy.blocks.fc.bias[...]

    np.testing.assert_array_equal(doubled(jnp.ones(2)), [[0, 0], [1, 1], [0, 0]])
