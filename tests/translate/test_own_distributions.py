"""Classes that derive from PyTorch's distributions, and from other classes of which a copy is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.translate.convert import body, run

SHIFTED = """
from torch.distributions import Normal


class Shifted(Normal):
    def __init__(self, loc, scale, shift, validate_args=None):
        super().__init__(loc, scale, validate_args=validate_args)
        self.shift = shift

    def draw(self, shape):
        z = super().rsample(shape)
        return z + self.shift, z

    def rsample(self, shape=torch.Size()):
        moved, z = self.draw(shape)
        return moved


class Plain(Normal):
    def twice(self):
        return 2 * self.sample((3,))


def density(loc: Tensor, scale: Tensor, x: Tensor):
    return Shifted(loc, scale, 1.0).log_prob(x) + Plain(loc, scale, validate_args=False).log_prob(x)


def drawn(loc: Tensor, scale: Tensor):
    return Shifted(loc, scale, 100.0).rsample((4000,)), Plain(loc, scale).twice()
"""


def values(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "<converted>", "exec"), names)
    return names


def test_a_base_that_draws_is_given_the_generator() -> None:
    text = body(SHIFTED)
    assert "super().__init__(loc, scale)\n" in text
    assert "z = super().rsample(shape, rngs=rngs)" in text
    assert "def rsample(self, shape=(), *, rngs: nnx.Rngs):" in text
    assert "return 2 * self.sample((3,), rngs=rngs)" in text


def test_what_is_drawn_and_its_density_are_pytorchs() -> None:
    import jax.numpy as jnp
    from flax import nnx

    converted, source = run(SHIFTED), values(f"import torch\nfrom torch import Tensor\n{SHIFTED}")
    assert not converted.gaps
    target = values(converted.code)
    loc, scale, x = (np.array(one, np.float32) for one in ([0.5, -1.0], [1.0, 2.0], [0.1, 0.7]))
    expected = source["density"](*map(torch.tensor, (loc, scale, x)))
    np.testing.assert_allclose(target["density"](*map(jnp.asarray, (loc, scale, x))), expected, rtol=1e-5)
    moved, twice = target["drawn"](jnp.asarray(loc), jnp.asarray(scale), rngs=nnx.Rngs(0))
    assert moved.shape == (4000, 2) and twice.shape == (3, 2)
    np.testing.assert_allclose(moved.mean(0), loc + 100, atol=0.15)
    np.testing.assert_allclose(moved.std(0), scale, atol=0.1)


PARALLEL = """
from torch.nn.parallel import DistributedDataParallel


class Parallel(DistributedDataParallel):
    def extra(self):
        return 3


class Constructed(DistributedDataParallel):
    def __init__(self, net, ids):
        super().__init__(net, device_ids=ids)


def wrap(net: nn.Module):
    return Parallel(net, device_ids=[0], find_unused_parameters=True), Constructed(net, None)
"""


def test_arguments_that_the_copy_does_not_take_go() -> None:
    text = body(PARALLEL)
    assert "super().__init__(net)\n" in text
    assert "return Parallel(net), Constructed(net, None)" in text
    assert not run(PARALLEL).gaps


NARROWED = """
from torch.distributions import Normal


def check(other):
    assert isinstance(other, Normal)
    return other.sample().shape
"""


def test_what_is_asserted_to_be_a_distribution_draws() -> None:
    assert "return other.sample(rngs=rngs).shape" in body(NARROWED)


@pytest.mark.parametrize(
    ("written", "expected"), [("torch.Size()", "()"), ("torch.Size([2, 3])", "(2, 3)"), ("torch.Size(n)", "tuple(n)")]
)
def test_an_empty_size_is_an_empty_tuple(written: str, expected: str) -> None:
    assert body(f"def f(n):\n    return {written}\n").endswith(f"return {expected}")
