"""Conversions of ``rules/joining.py``, in text and in numbers."""

from __future__ import annotations

from typing import Any

import pytest

from t2j_lsp.translate import translate

from .conversion import agrees, converted, left_alone

JOINED = [
    ("torch.cat([x, y])", "jnp.concatenate([x, y])", "xy"),
    ("torch.cat((x, z), dim=1)", "jnp.concatenate((x, z), axis=1)", "xz"),
    ("torch.concat([x, y], -1)", "jnp.concatenate([x, y], axis=-1)", "xy"),
    ("torch.concatenate([x, y], axis=1)", "jnp.concatenate([x, y], axis=1)", "xy"),
    (
        "torch.cat([x, i.unsqueeze(2).repeat(1, 1, 4)])",
        "jnp.concatenate([x, jnp.tile(i[:, :, None], (1, 1, 4))])",
        "xi",
    ),
    ("torch.stack([x, y])", "jnp.stack([x, y])", "xy"),
    ("torch.stack((x, y), dim=-1)", "jnp.stack((x, y), axis=-1)", "xy"),
    ("torch.hstack([x, y]), torch.vstack((x, y))", "jnp.hstack([x, y]), jnp.vstack((x, y))", "xy"),
    ("torch.dstack([a, b]), torch.column_stack([a, b])", "jnp.dstack([a, b]), jnp.column_stack([a, b])", "ab"),
    ("torch.block_diag(a, b)", "jax.scipy.linalg.block_diag(a, b)", "ab"),
    (
        "torch.cartesian_prod(u, v)",
        'jnp.stack(jnp.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2)',
        "uv",
    ),
]

SPLIT = [
    ("e.split(3, dim=1)", "split(e, 3, axis=1)", "e"),
    ("torch.split(e, [2, 4, 1], 1)", "jnp.split(e, [2, 6], axis=1)", "e"),
    ("e.split([1, 6], dim=-2)", "jnp.split(e, [1], axis=-2)", "e"),
    ("e.split(e.shape[1] // 2, 1)", "split(e, e.shape[1] // 2, axis=1)", "e"),
    ("p, q, r = e.split(3, dim=1); p, q, r", "p, q, r = jnp.split(e, [3, 6], axis=1); p, q, r", "e"),
    ("n = e.size(1) - 1; p, q = e.split(n, 1); q", "n = e.shape[1] - 1; p, q = jnp.split(e, [n], axis=1); q", "e"),
    ("n = 2; p, q = e.split([n, 5], 1); q", "n = 2; p, q = jnp.split(e, [n], axis=1); q", "e"),
    ("n = 2; e.split([n // 2, n, 4], 1)", "n = 2; jnp.split(e, np.cumsum([n // 2, n, 4])[:-1], axis=1)", "e"),
    ("n = 2; e.split([n, 1 if n else 0, 4], 1)", "n = 2; jnp.split(e, [n, n + (1 if n else 0)], axis=1)", "e"),
    ("e.split_with_sizes([2, 5], dim=1)", "jnp.split(e, [2], axis=1)", "e"),
    ("sizes = [3, 4]; e.split(sizes, 1)", "sizes = [3, 4]; jnp.split(e, np.cumsum(sizes)[:-1], axis=1)", "e"),
    ("e.chunk(3, dim=1)", "chunk(e, 3, axis=1)", "e"),
    ("torch.chunk(e, 4)", "chunk(e, 4)", "e"),
    ("p, q = e.chunk(2, dim=1); p, q", "p, q = jnp.array_split(e, 2, axis=1); p, q", "e"),
    ("p, q, r = e.chunk(3, 1); r", "p, q, r = chunk(e, 3, axis=1); r", "e"),
    ("e.tensor_split(3, dim=1)", "jnp.array_split(e, 3, axis=1)", "e"),
    ("torch.tensor_split(e, (2, 3), dim=1)", "jnp.array_split(e, (2, 3), axis=1)", "e"),
    ("torch.tensor_split(e, indices=(1,), dim=2)", "jnp.array_split(e, (1,), axis=2)", "e"),
    ("torch.hsplit(e, [1, 3]), e.vsplit(2)", "jnp.hsplit(e, [1, 3]), jnp.vsplit(e, 2)", "e"),
    ("x.unbind(1)", "jnp.unstack(x, axis=1)", "x"),
    ("p, q = torch.unbind(x); q", "p, q = jnp.unstack(x); q", "x"),
]

ROWS = [*JOINED, *SPLIT]


@pytest.mark.parametrize(("torch", "jax", "inputs"), ROWS, ids=[row[0] for row in ROWS])
def test_joins_and_splits_as_pytorch_does(torch: str, jax: str, inputs: str) -> None:
    agrees(torch, jax, inputs)


QKV = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.qkv = nn.Linear(dim, {width}, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim={dim})
        return q + k + v
"""


@pytest.mark.parametrize("width", ["inner * 3", "3 * inner", "96"])
def test_chunks_of_a_linear_layer_that_was_built_for_them_are_equal_parts(width: str) -> None:
    assert "q, k, v = jnp.split(self.qkv(x), 3, axis=-1)" in translate(QKV.format(width=width, dim=-1)).code


@pytest.mark.parametrize(("width", "dim"), [("inner * 2", "-1"), ("inner", "-1"), ("97", "-1"), ("inner * 3", "1")])
def test_other_chunks_keep_their_last_part_smaller(width: str, dim: str) -> None:
    assert f"q, k, v = chunk(self.qkv(x), 3, axis={dim})" in translate(QKV.format(width=width, dim=dim)).code


GPT = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, {width})
        self.n_embd = config.n_embd

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        return q + k + v
"""


@pytest.mark.parametrize("width", ["3 * config.n_embd", "config.n_embd * 3"])
def test_a_linear_layer_split_into_the_width_it_was_built_from_gives_equal_parts(width: str) -> None:
    assert "q, k, v = jnp.split(self.c_attn(x), 3, axis=2)" in translate(GPT.format(width=width)).code


@pytest.mark.parametrize("width", ["4 * config.n_embd", "3 * config.n_head", "config.width"])
def test_other_splits_of_a_linear_layer_go_by_size(width: str) -> None:
    assert "q, k, v = split(self.c_attn(x), self.n_embd, axis=2)" in translate(GPT.format(width=width)).code


def test_a_split_of_unknown_kind_takes_the_helper_that_knows_both() -> None:
    source = "def f(x: torch.Tensor, how):\n    return x.split(how, dim=1)\n"
    assert "split(x, how, axis=1)" in translate("import torch\n\n\n" + source).code


WINDOWS = """\
import torch

data = torch.arange(50) * 2
n = 4
at = torch.tensor([3, 0, 7])
x = torch.stack([data[i : i + n] for i in at])
y = torch.stack([data[i + 1 : i + n + 1] for i in at])
"""


def test_windows_that_begin_where_an_array_says_are_one_index() -> None:
    done = translate(WINDOWS)
    assert "x = data[at[:, None] + jnp.arange(n)]" in done.code
    assert "y = data[at[:, None] + jnp.arange(1, n + 1)]" in done.code
    both: list[dict[str, Any]] = [{}, {}]
    exec(WINDOWS, both[0])
    exec(done.code, both[1])
    for name in ("x", "y"):
        assert both[0][name].tolist() == both[1][name].tolist()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.tensor([3, 0, 7])", "[3, 0, 7]"),  # numbers, which are known under jit
        ("for i in at])\ny", "for i in at], dim=1)\ny"),
        ("data[i : i + n] for", "data[i : i * 1 + n] for"),
        ("data[i : i + n] for", "data[i : i + i + n] for"),
        ("data[i : i + n] for i in at", "data[i : i + n] for i in at if i > 0"),
    ],
)
def test_other_lists_of_slices_are_stacked(old: str, new: str) -> None:
    assert old in WINDOWS
    assert "x = jnp.stack([data[" in translate(WINDOWS.replace(old, new)).code


ROWS_OF_NUMPY = """\
import numpy as np
import torch

data = np.arange(50, dtype=np.uint16) * 2
other = torch.arange(50)
n = 4
at = torch.tensor([3, 0, 7])
x = torch.stack([torch.from_numpy(data[i : i + n].astype(np.int64)) for i in at])
y = torch.stack([torch.from_numpy(data[at : at + n].astype(np.float32)) for at in range(3)], dim=1)
"""


def test_arrays_of_numpy_are_stacked_as_such() -> None:
    """Each operation of JAX takes longer than all of that."""
    done = translate(ROWS_OF_NUMPY)
    assert "x = jnp.asarray(np.stack([data[i : i + n].astype(np.int64) for i in np.asarray(at)]))" in done.code
    assert "y = jnp.asarray(np.stack([data[at : at + n].astype(np.float32) for at in range(3)], axis=1))" in done.code
    both: list[dict[str, Any]] = [{}, {}]
    exec(ROWS_OF_NUMPY, both[0])
    exec(done.code, both[1])
    for name in ("x", "y"):
        assert both[0][name].tolist() == both[1][name].tolist()
        assert str(both[0][name].dtype).replace("torch.int64", "int32") in (f"torch.{both[1][name].dtype}", "int32")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("data[i : i + n].astype(np.int64)", "other.numpy()[i : i + n]"),
        ("torch.from_numpy(data[i : i + n].astype(np.int64))", "torch.as_tensor(data[i : i + n].astype(np.int64))"),
        ("for i in at]", "for i in at if i > 0]"),
        ("data[i : i + n].astype(np.int64)", "read(i)"),
        ("data[i : i + n].astype(np.int64)", "data[i : i + n].astype(np.int64)) + torch.ones(1"),
    ],
)
def test_what_may_be_an_array_of_jax_is_stacked_by_jax(old: str, new: str) -> None:
    assert old in ROWS_OF_NUMPY
    assert "x = jnp.stack([" in translate(ROWS_OF_NUMPY.replace(old, new)).code


ALONE = [
    "def f(line):\n    return line.split(',')",
    "words = 'a b'.split()",
    "def f(xs: list, ys: list):\n    return xs + ys",
    "pairs = np.split(np.arange(4), 2)",
    "both = np.concatenate([np.ones(2), np.zeros(1)])",
    "import pandas as pd\n\nframe = pd.concat([])",
    "def stack(items):\n    return items\n\n\nz = stack([1])",
    "from itertools import chain\n\nflat = list(chain([1], [2]))",
]


@pytest.mark.parametrize("source", ALONE)
def test_joins_and_splits_of_other_objects_stay(source: str) -> None:
    left_alone(source)


def test_a_cartesian_product_of_unknown_length_is_reported() -> None:
    assert converted("torch.cartesian_prod(*[u])", "u")[1].gaps != ()


COLLECTED = """\
import torch


def collect(model, batches):
    found = {empty}
    for x in batches:
        found = torch.cat({joined})
    return found
"""


@pytest.mark.parametrize("empty", ["torch.tensor([])", "torch.FloatTensor()", "torch.empty(0)", "torch.Tensor([])"])
@pytest.mark.parametrize("joined", ["(found, model(x)), dim=0", "[found, model(x)]"])
def test_what_starts_from_an_empty_vector_is_joined_without_it(empty: str, joined: str) -> None:
    code = translate(COLLECTED.format(empty=empty, joined=joined)).code
    assert "found = joined(" in code and "x.shape != (0,)" in code


HANDED = """
import torch


class A(torch.nn.Module):
    def inner(self, memory, x):
        return torch.cat([memory, x])

    def forward(self, x, other):
        memory = {made}
        return self.inner(memory, x)
"""


@pytest.mark.parametrize(
    ("made", "written"),
    [
        ("torch.empty(0).to(x.device)", "joined([memory, x])"),
        ("x.mean(0, keepdim=True) if len(x) > 2 else torch.empty(0).to(dtype=x.dtype)", "joined([memory, x])"),
        ("x[:1]", "jnp.concatenate([memory, x])"),
    ],
)
def test_what_a_method_is_given_may_be_an_empty_vector(made: str, written: str) -> None:
    """By its name: methods hand on what is called the same."""
    assert f"return {written}" in translate(HANDED.format(made=made)).code


@pytest.mark.parametrize("start", ["torch.zeros(3)", "torch.tensor([1.0])", "torch.tensor(batches[0])"])
def test_what_starts_from_values_is_joined_as_it_is(start: str) -> None:
    code = translate(COLLECTED.format(empty=start, joined="(found, model(x))")).code
    assert "found = jnp.concatenate((found, model(x)))" in code
