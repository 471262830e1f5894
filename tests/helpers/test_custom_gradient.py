"""Functions with a gradient of their own, beside PyTorch's."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.rules.helpers import custom_gradient
from t2j_lsp.rules.helpers.custom_gradient import Function, FunctionOfOne
from t2j_lsp.translate.source.folding.own_gradients import SHORT, of_one_shape
from tests.helpers.compare import changed_helper


def scaled(base: Any, wide: Any, exp: Any) -> Any:
    """A function of two arrays and a number, whose gradient is not that of what it computes."""

    class Scaled(base):
        @staticmethod
        def forward(ctx, x, factor, y):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x, y)
            ctx.factor = factor
            ctx.large = x > 0
            return wide(x * y) * factor, exp(x)

        @staticmethod
        def backward(ctx, first, second):  # type: ignore[no-untyped-def]
            x, y = ctx.saved_tensors
            assert ctx.needs_input_grad[0] and not ctx.needs_input_grad[1]
            return first * y * 3 + second * ctx.large, None, first * ctx.factor * x

    return Scaled


def test_the_gradient_is_what_backward_gives() -> None:
    x, y = np.array([0.5, -1.0, 2.0]), np.array([2.0, 3.0, -1.0])
    reference = scaled(torch.autograd.Function, torch.round, torch.exp)
    tensors = [torch.tensor(a, requires_grad=True) for a in (x, y)]
    first, second = reference.apply(tensors[0], 0.7, tensors[1])
    (first.sum() + (second**2).sum()).backward()
    own = scaled(Function, jnp.round, jnp.exp)

    @jax.jit
    def total(x: jax.Array, y: jax.Array) -> jax.Array:
        first, second = own.apply(x, 0.7, y)
        return first.sum() + (second**2).sum()

    value, gradients = jax.value_and_grad(total, argnums=(0, 1))(jnp.array(x), jnp.array(y))
    np.testing.assert_allclose(value, (first.sum() + (second**2).sum()).item(), rtol=1e-12)
    for result, tensor in zip(gradients, tensors, strict=True):
        np.testing.assert_allclose(result, tensor.grad.numpy(), rtol=1e-12)


def test_a_number_of_arrays_that_has_no_gradient_is_left_out() -> None:
    class First(Function):
        @staticmethod
        def forward(ctx, x, index):  # type: ignore[no-untyped-def]
            return x[index]

        @staticmethod
        def backward(ctx, gradient):  # type: ignore[no-untyped-def]
            return jnp.full(3, gradient), None

    assert jax.grad(lambda x: First.apply(x, jnp.array(1)))(jnp.arange(3.0)).tolist() == [1, 1, 1]


def test_what_was_kept_is_read_under_its_old_name_too() -> None:
    text = (
        "import torch\n\n\nclass Cube(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return x**3\n\n    @staticmethod\n    def backward(ctx, grad):\n"
        "        (x,) = ctx.saved_variables\n        return 5 * x * grad\n"
    )
    translation = convert(text)
    assert not translation.gaps
    names: dict[str, Any] = {}
    exec(translation.code, names)
    assert float(jax.grad(names["Cube"].apply)(2.0 * jnp.ones(()))) == 10.0


def affine(base: Any) -> Any:
    """``x * scale + shift``, whose gradients have the shape of the product, in float64."""

    class Affine(base):
        @staticmethod
        def forward(ctx, x, scale, shift, index):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x, scale)
            return x * scale + shift + index.sum()

        @staticmethod
        def backward(ctx, gradient):  # type: ignore[no-untyped-def]
            x, scale = ctx.saved_tensors
            return gradient * scale, gradient * x, gradient, gradient

    return Affine


def test_gradients_are_summed_over_what_was_broadcast() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((4, 1, 3), (3,), (2, 1))]
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    (affine(torch.autograd.Function).apply(*tensors, torch.tensor([1, 2])) ** 2).sum().backward()

    def total(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
        return (affine(Function).apply(x, scale, shift, jnp.array([1, 2])) ** 2).sum()

    for gradients in (jax.grad(f, argnums=(0, 1, 2))(*map(jnp.asarray, arrays)) for f in (total, jax.jit(total))):
        for result, tensor in zip(gradients, tensors, strict=True):
            assert result.dtype == jnp.float32
            np.testing.assert_allclose(result, tensor.grad.numpy(), rtol=1e-5)


def test_a_variable_is_differentiated_by() -> None:
    class Layer(nnx.Module):
        def __init__(self) -> None:
            self.shift = nnx.Param(jnp.ones((2, 1)))

        def __call__(self, x: jax.Array) -> jax.Array:
            result: jax.Array = affine(Function).apply(x, 2 * jnp.ones(3), self.shift, jnp.array([1, 2]))
            return result

    gradients = nnx.jit(nnx.grad(lambda layer, x: layer(x).sum()))(Layer(), jnp.ones((4, 1, 3)))
    np.testing.assert_array_equal(gradients["shift"][...], np.full((2, 1), 12.0))


def rounded(base: Any, wide: Any) -> Any:
    """Rounds, with a gradient of its own, one for each row of what is broadcast."""

    class Rounded(base):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            kept = x * 2
            ctx.save_for_backward(x, kept)
            return wide(x) + wide(kept)

        @staticmethod
        def backward(ctx, gradient):  # type: ignore[no-untyped-def]
            x, kept = ctx.saved_tensors
            return gradient * (x + kept)

    return Rounded


@pytest.mark.parametrize("base", [FunctionOfOne, changed_helper(custom_gradient, SHORT, of_one_shape)])
@pytest.mark.parametrize("kind", [jnp.asarray, nnx.Param, np.asarray])
def test_a_function_of_one_array_has_the_gradient_that_backward_gives(kind: Any, base: Any) -> None:
    x = np.random.default_rng(1).normal(size=(3, 1))
    tensor = torch.tensor(x, requires_grad=True)
    (rounded(torch.autograd.Function, torch.round).apply(tensor) ** 2).sum().backward()

    def total(x: Any) -> jax.Array:
        return jnp.sum(rounded(base, jnp.round).apply(kind(x)) ** 2)

    function = total if kind is np.asarray else jax.jit(jax.grad(total))
    expected = (
        tensor.grad
        if kind is not np.asarray
        else (rounded(torch.autograd.Function, torch.round).apply(tensor) ** 2).sum()
    )
    np.testing.assert_allclose(function(jnp.asarray(x)), expected.detach().numpy(), rtol=1e-12)


def test_its_gradient_is_summed_over_what_was_broadcast() -> None:
    class Wide(FunctionOfOne):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * jnp.ones((2, 3))

        @staticmethod
        def backward(ctx, gradient):  # type: ignore[no-untyped-def]
            return gradient * 2

    x = jnp.ones((2, 1), jnp.float32)
    gradient = jax.grad(lambda x: Wide.apply(x).sum())(x)
    assert gradient.tolist() == [[6], [6]] and gradient.dtype == jnp.float32
