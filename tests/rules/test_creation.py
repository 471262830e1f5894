"""Conversions of ``rules/creation.py`` and ``rules/legacy.py``, in text and in numbers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch

from t2j_lsp import convert
from t2j_lsp.translate import translate

from .conversion import agrees, converted, left_alone, refused

ROWS = [
    ("torch.zeros(2, 3)", "jnp.zeros((2, 3), dtype=jnp.float32)", ""),
    ("torch.zeros((2, 3))", "jnp.zeros((2, 3), dtype=jnp.float32)", ""),
    ("torch.zeros([2, 3], device='cpu')", "jnp.zeros((2, 3), dtype=jnp.float32)", ""),
    ("torch.zeros(size=(2,))", "jnp.zeros((2,), dtype=jnp.float32)", ""),
    ("torch.ones(x.shape, dtype=x.dtype)", "jnp.ones(x.shape, dtype=x.dtype)", "x"),
    ("torch.ones(*x.shape)", "jnp.ones(x.shape, dtype=jnp.float32)", "x"),
    ("torch.zeros(3, dtype=torch.long)", "jnp.zeros(3, dtype=jnp.int64)", ""),
    ("torch.full((2, 3), 7)", "jnp.full((2, 3), 7)", ""),
    ("torch.full((2, 3), 0.5)", "jnp.full((2, 3), 0.5, dtype=jnp.float32)", ""),
    ("torch.full((2,), True)", "jnp.full((2,), True)", ""),
    ("torch.full((2,), 1, dtype=torch.float64)", "jnp.full((2,), 1, dtype=jnp.float64)", ""),
    ("torch.zeros_like(x)", "jnp.zeros_like(x)", "x"),
    ("torch.ones_like(x, dtype=torch.int32)", "jnp.ones_like(x, dtype=jnp.int32)", "x"),
    ("torch.full_like(i, 2.9)", "jnp.full_like(i, 2.9)", "i"),
    ("torch.arange(5)", "jnp.arange(5)", ""),
    ("torch.arange(0, 5)", "jnp.arange(5)", ""),
    ("torch.arange(1, 9, 3, device=x.device)", "jnp.arange(1, 9, 3)", "x"),
    ("torch.arange(5, 0, -2)", "jnp.arange(5, 0, -2)", ""),
    ("torch.arange(5, dtype=torch.float32)", "jnp.arange(5, dtype=jnp.float32)", ""),
    ("torch.arange(0.0, 1.0, 0.1)", "jnp.arange(0.0, 1.0, 0.1, dtype=jnp.float32)", ""),
    ("torch.linspace(-1, 1, 7)", "jnp.linspace(-1, 1, 7, dtype=jnp.float32)", ""),
    ("torch.linspace(0, 1, steps=1)", "jnp.linspace(0, 1, 1, dtype=jnp.float32)", ""),
    (
        "torch.logspace(0, 2, 3, base=2.0, dtype=torch.float64)",
        "jnp.logspace(0, 2, 3, base=2.0, dtype=jnp.float64)",
        "",
    ),
    ("torch.eye(3)", "jnp.eye(3, dtype=jnp.float32)", ""),
    ("torch.eye(2, 4, dtype=torch.bool)", "jnp.eye(2, 4, dtype=jnp.bool_)", ""),
    ("torch.meshgrid(u, v)", 'jnp.meshgrid(u, v, indexing="ij")', "uv"),
    ("torch.meshgrid([u, v], indexing='xy')", "jnp.meshgrid(u, v)", "uv"),
    ("torch.tril(x, diagonal=-1)", "jnp.tril(x, k=-1)", "x"),
    ("x.triu()", "jnp.triu(x)", "x"),
    ("torch.tril_indices(3, 4, offset=1)", "jnp.stack(jnp.tril_indices(3, 1, 4))", ""),
    ("torch.triu_indices(3, 4)", "jnp.stack(jnp.triu_indices(3, 0, 4))", ""),
    ("torch.vander(u, 3, increasing=True)", "jnp.vander(u, N=3, increasing=True)", "U"),
    ("torch.tensor([1, 2])", "jnp.array([1, 2])", ""),
    ("torch.tensor([[1.0, 2.0]])", "jnp.array([[1.0, 2.0]], dtype=jnp.float32)", ""),
    ("torch.tensor(0.5, dtype=torch.float64)", "jnp.array(0.5, dtype=jnp.float64)", ""),
    ("torch.tensor([x.sum(), x.mean()])", "jax.lax.stop_gradient(jnp.array([x.sum(), x.mean()]))", "x"),
    ("torch.tensor([[1, 0], [0, x.sum()]])", "jax.lax.stop_gradient(jnp.array([[1, 0], [0, x.sum()]]))", "x"),
    ("torch.as_tensor([1.5, 2])", "jnp.asarray([1.5, 2], dtype=jnp.float32)", ""),
    ("torch.as_tensor(x) * 2", "jnp.asarray(x) * 2", "x"),
    ("torch.as_tensor([x.sum(), x.max()])", "jax.lax.stop_gradient(jnp.asarray([x.sum(), x.max()]))", "x"),
    ("torch.asarray([x.sum(), x.max()])", "jax.lax.stop_gradient(jnp.asarray([x.sum(), x.max()]))", "x"),
    ("torch.as_tensor([x.argmax(), 1])", "jnp.asarray([x.argmax(), 1])", "x"),
    ("torch.from_numpy(np.ones(3))", "jnp.asarray(np.ones(3))", ""),
    ("x.new_zeros(2, 5)", "jnp.zeros((2, 5), dtype=x.dtype)", "x"),
    ("h.new_ones((2, 5))", "jnp.ones((2, 5), dtype=h.dtype)", "h"),
    ("x.new_full((2,), 3, dtype=torch.int32)", "jnp.full((2,), 3, dtype=jnp.int32)", "x"),
    ("x.new_tensor([1, 2])", "jnp.array([1, 2], dtype=x.dtype)", "x"),
    ("torch.complex(u, u)", "jax.lax.complex(u, u)", "u"),
    ("torch.complex(x[0:1], x[0:3])", "jax.lax.complex(*jnp.broadcast_arrays(x[0:1], x[0:3]))", "x"),
    ("torch.polar(p, p + 1)", "angle = p + 1; jax.lax.complex(p * jnp.cos(angle), p * jnp.sin(angle))", "p"),
    ("torch.view_as_real(c)", "jnp.stack((c.real, c.imag), axis=-1)", "c"),
    ("torch.Tensor([1, 2])", "jnp.array([1, 2], dtype=jnp.float32)", ""),
    ("torch.LongTensor([1, 2])", "jnp.array([1, 2], dtype=jnp.int64)", ""),
    ("torch.cuda.FloatTensor([1, 2]) if False else 0", "jnp.array([1, 2], dtype=jnp.float32) if False else 0", ""),
    ("torch.FloatTensor(2, 3).shape", "jnp.empty((2, 3), dtype=jnp.float32).shape", ""),
    ("torch.FloatTensor(np.array([1, 2]))", "jnp.array(np.array([1, 2]), dtype=jnp.float32)", ""),
    (
        "torch.LongTensor(np.ones((2, 3))[:, 1:].astype(int))",
        "jnp.array(np.ones((2, 3))[:, 1:].astype(int), dtype=jnp.int64)",
        "",
    ),
    (
        "torch.FloatTensor(np.random.uniform(-1, 1, size=(2, 3))).shape",
        "jnp.array(np.random.uniform(-1, 1, size=(2, 3)), dtype=jnp.float32).shape",
        "",
    ),
    ("torch.LongTensor(np.zeros(3))", "jnp.array(np.zeros(3), dtype=jnp.int64)", ""),
    ("torch.FloatTensor(np.array(5)).shape", "of_size_or_values(np.array(5), dtype=jnp.float32).shape", ""),
    (
        "torch.FloatTensor(np.array([n for n in range(3)]))",
        "jnp.array(np.array([n for n in range(3)]), dtype=jnp.float32)",
        "",
    ),
    ("torch.LongTensor(np.arange(7) % 3)", "jnp.array(np.arange(7) % 3, dtype=jnp.int64)", ""),
    ("torch.FloatTensor(np.int64(3)).shape", "of_size_or_values(np.int64(3), dtype=jnp.float32).shape", ""),
    ("torch.Tensor(5).shape", "jnp.empty(5, dtype=jnp.float32).shape", ""),
    ("torch.Tensor(x.shape).shape", "jnp.empty(x.shape, dtype=jnp.float32).shape", "x"),
    ("x.new(2, 3).shape", "jnp.empty((2, 3), dtype=x.dtype).shape", "x"),
    ("x.new([1, 2])", "jnp.array([1, 2], dtype=x.dtype)", "x"),
    ("x.new(y)", "y", "xy"),
    ("torch.autograd.Variable(x) * 2", "x * 2", "x"),
    ("torch.autograd.Variable(x * 2)", "jax.lax.stop_gradient(x * 2)", "x"),
]


@pytest.mark.parametrize(("torch", "jax", "inputs"), ROWS, ids=[row[0] for row in ROWS])
def test_a_constructor_gives_what_pytorch_gives(torch: str, jax: str, inputs: str) -> None:
    agrees(torch, jax, inputs)


DEFAULT = [
    ("torch.zeros(2, 3)", "jnp.zeros((2, 3))"),
    ("torch.full((2,), 0.5)", "jnp.full((2,), 0.5)"),
    ("torch.tensor([0.5])", "jnp.array([0.5])"),
    ("torch.linspace(0, 1, 3)", "jnp.linspace(0, 1, 3)"),
    ("torch.zeros(3, dtype=torch.long)", "jnp.zeros(3, dtype=jnp.int32)"),
    ("torch.eye(3)", "jnp.eye(3)"),
    ("torch.Tensor(2, 3)", "jnp.empty((2, 3))"),
]


@pytest.mark.parametrize(("torch", "jax"), DEFAULT)
def test_the_default_dtype_is_not_spelled_without_x64(torch: str, jax: str) -> None:
    assert converted(torch, x64=False)[0] == jax


def test_requires_grad_is_dropped_with_a_note() -> None:
    text, translation = converted("torch.zeros(2, requires_grad=True)", x64=False)
    assert text == "jnp.zeros(2)"
    assert ["requires_grad" in note.reason for note in translation.notes] == [True]


def test_float64_arrays_from_numpy_are_noted_without_x64() -> None:
    assert ["64 bits" in note.reason for note in converted("torch.from_numpy(np.ones(3))", x64=False)[1].notes] == [
        True
    ]
    assert converted("torch.from_numpy(np.ones(3))")[1].notes == ()


def test_what_is_made_new_of_a_tensor_shares_its_memory() -> None:
    body = "    y = x.new(x)\n    y.add_(1)\n    return x\n"
    result = translate(f"import torch\n\n\ndef f(x: torch.Tensor):\n{body}")
    assert ["shares the memory" in gap.reason for gap in result.gaps] == [True]


REFUSED = [
    ("x.new(flag)", "x.new() takes sizes or data", "x"),
    ("torch.range(0, 3)", "includes its end", ""),
]


@pytest.mark.parametrize(("torch", "reason", "inputs"), REFUSED)
def test_what_is_not_sure_stays(torch: str, reason: str, inputs: str) -> None:
    refused(torch, reason, inputs)


ALONE = [
    "a = np.zeros((2, 3))",
    "b = np.arange(5).reshape(5, 1)",
    "c = zeros(3)",
    "def zeros(n):\n    return [0] * n\n\n\nd = zeros(3)",
    "e = [0.0].copy()",
    "class Grid:\n    def meshgrid(self, n):\n        return n\n\n\ng = Grid().meshgrid(2)",
    "import tensorflow as tf\n\nh = tf.zeros((2, 3))",
    "k = 'linspace'.full if False else None",
]


@pytest.mark.parametrize("source", ALONE)
def test_code_of_other_libraries_stays(source: str) -> None:
    left_alone(source)


BATCHES = """\
import torch

batch = [([1, 2], [3, 4], True), ([5, 6], [7, 8], False)]
a, b, c = map(torch.LongTensor, zip(*batch))
d, e, f = map(torch.Tensor, zip(*batch))
print(a.tolist(), b.tolist(), c.tolist(), d.tolist(), e.sum().item(), f.tolist(), isinstance(a, torch.Tensor))
"""


def test_the_class_of_tensors_that_map_is_given_makes_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    translation = translate(BATCHES)
    assert not translation.gaps
    assert "map(lambda values: jnp.array(values, dtype=jnp.int32), zip(*batch))" in translation.code
    exec(compile(BATCHES, "torch", "exec"), {})
    wanted = capsys.readouterr().out
    exec(compile(translation.code, "jax", "exec"), {})
    assert capsys.readouterr().out == wanted != ""
    [gap] = translate("import torch\n\n\ndef f(xs):\n    return list(map(torch.FloatTensor, xs))\n").gaps
    assert "sizes or values" in gap.reason


def test_rows_of_what_is_not_known_to_be_numbers_carry_no_gradient() -> None:
    text = "import torch\n\n\ndef f(x: torch.Tensor, scale):\n    n = x.shape[0]\n"
    rows = "    return torch.stack([torch.tensor([[1, 0, 0], [0, {}, {}]]) for s in scale]) + x\n"
    assert "jax.lax.stop_gradient(jnp.array([[1, 0, 0], [0, s, s]]))" in translate(text + rows.format("s", "s")).code
    assert "stack([jnp.array([[1, 0, 0], [0, n, 2 * n]])" in translate(text + rows.format("n", "2 * n")).code


@pytest.mark.parametrize("steps", ["torch.linspace(x.min(), x.max(), 4)", "torch.logspace(0, x.max(), 4)"])
def test_no_gradient_flows_through_ends_that_are_tensors(steps: str) -> None:
    text = f"import torch\n\n\ndef f(x: torch.Tensor):\n    return ({steps} * x.sum()).sum()\n"
    sides: list[dict[str, Any]] = [{}, {}]
    exec(text, sides[0])
    exec(convert(text).code, sides[1])
    x = np.linspace(-1, 2, 5)
    given = torch.tensor(x, requires_grad=True)
    (wanted,) = torch.autograd.grad(sides[0]["f"](given), given)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.grad(sides[1]["f"])(jax.numpy.asarray(x)), wanted.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "count", "stopped"),
    [("n", "n", False), ("n", "n + 1", False), ("end, n", "n", True), ("end, n", "n + 1", True)],
)
def test_an_end_that_counts_the_steps_too_is_a_number(parameters: str, count: str, stopped: bool) -> None:
    end = parameters.split(",")[0]
    text = f"import torch\n\n\ndef f({parameters}):\n    m = {count}\n    return torch.linspace(0, {end}, m).cos()\n"
    assert (f"jax.lax.stop_gradient({end})" in convert(text).code) is stopped
