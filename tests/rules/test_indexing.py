"""Conversions of ``rules/indexing.py`` and ``rules/scattering.py``, in text and in numbers."""

from __future__ import annotations

import pytest

from .conversion import agrees, converted, left_alone, refused

READ = [
    ("torch.gather(x, 1, k)", "gather(x, k, axis=1)", "xk"),
    ("torch.gather(x, 2, k[:1, :2])", "gather(x, k[:1, :2], axis=2)", "xk"),
    ("x.reshape(2, 12).gather(1, i)", "jnp.take_along_axis(x.reshape(2, 12), i, axis=1)", "xi"),
    ("x.gather(index=k, dim=1)", "gather(x, k, axis=1)", "xk"),
    ("torch.take_along_dim(x, k, dim=1)", "jnp.take_along_axis(x, k, axis=1)", "xk"),
    ("torch.take_along_dim(x, i)", "x.ravel()[i.ravel()]", "xi"),
    ("x.index_select(1, j)", "jnp.take(x, j, axis=1)", "xj"),
    ("torch.index_select(x, dim=-1, index=j)", "jnp.take(x, j, axis=-1)", "xj"),
    ("torch.unravel_index(i, (2, 3, 4))", "jnp.unravel_index(i, (2, 3, 4))", "i"),
    ("torch.take(x, i)", "jnp.take(x, i)", "xi"),
    ("x.select(1, -1)", "x[:, -1]", "x"),
    ("at = tuple(i - 1 for i in range(3)); x[at]", "at = tuple(i - 1 for i in range(3)); x[at]", "x"),
    ("at = [slice(None)] + 2 * [None]; x[tuple(at)]", "at = [slice(None)] + 2 * [None]; x[tuple(at)]", "x"),
    ("at = [i for i in range(2)]; x[at]", "at = [i for i in range(2)]; x[jnp.array(at)]", "x"),
    ("at = sorted([1, 0]); x[at]", "at = sorted([1, 0]); x[jnp.array(at)]", "x"),
    ("torch.select(x, -1, 2)", "x[..., 2]", "x"),
    ("(x + y).select(0, 1)", "(x + y)[1]", "xy"),
    ("x.narrow(1, 1, 2)", "x[:, 1:3]", "x"),
    ("x.narrow(-1, 0, 2)", "x[..., :2]", "x"),
    ("torch.narrow(x, 1, -2, 2)", "jax.lax.dynamic_slice_in_dim(x, -2, 2, axis=1)", "x"),
    ("n = x.size(0); x.narrow(2, n, 2)", "n = x.shape[0]; jax.lax.dynamic_slice_in_dim(x, n, 2, axis=2)", "x"),
    ("x.masked_select(x > 0)", "masked_select(x, x > 0)", "x"),
    ("torch.masked_select(s, u > 0)", "masked_select(s, u > 0)", "su"),
    ("torch.nonzero(n)", "jnp.argwhere(n)", "n"),
    ("m.nonzero()", "jnp.argwhere(m)", "m"),
    ("torch.nonzero(m, as_tuple=True)", "jnp.nonzero(m)", "m"),
    ("m.nonzero(as_tuple=False), torch.argwhere(n)", "jnp.argwhere(m), jnp.argwhere(n)", "mn"),
    ("torch.diagonal(x)", "jnp.diagonal(x)", "x"),
    ("x.diagonal(1, dim1=-2, dim2=-1)", "jnp.diagonal(x, offset=1, axis1=-2, axis2=-1)", "x"),
    ("torch.diag(u), torch.diag(s, 1)", "jnp.diag(u), jnp.diag(s, k=1)", "us"),
    ("torch.diagflat(a, offset=-1)", "jnp.diagflat(a, k=-1)", "a"),
    ("torch.diag_embed(x)", 'jnp.vectorize(jnp.diag, signature="(n)->(m,m)")(x)', "x"),
    (
        "u.diag_embed(offset=1)",
        'jnp.vectorize(functools.partial(jnp.diag, k=1), signature="(n)->(m,m)")(u)',
        "u",
    ),
    ("x.unfold(2, 2, 1)", "sliding_window(x, 2, 2, 1)", "x"),
    ("e.unfold(1, 3, 2).unfold(-2, 3, 3)", "sliding_window(sliding_window(e, 1, 3, 2), -2, 3, 3)", "e"),
]

SORTED = [
    ("torch.bucketize(x, v)", "jnp.searchsorted(v, x).astype(jnp.int64)", "xv"),
    ("torch.bucketize(v, v)", "jnp.searchsorted(v, v).astype(jnp.int64)", "v"),
    ("torch.bucketize(v, v, right=True)", 'jnp.searchsorted(v, v, side="right").astype(jnp.int64)', "v"),
    ("torch.searchsorted(v, x)", "searchsorted(v, x).astype(jnp.int64)", "vx"),
    ("torch.searchsorted(v, v, side='right')", "searchsorted(v, v, side='right').astype(jnp.int64)", "v"),
    ("torch.searchsorted(v, x, out_int32=True)", "searchsorted(v, x)", "vx"),
]

WRITTEN = [
    ("x.scatter(1, k, y[:, 1:2])", "x.at[along_axis(k, 1)].set(y[:, 1:2])", "XKY"),
    ("torch.scatter(x, 1, k, 0.5)", "x.at[along_axis(k, 1)].set(0.5)", "xk"),
    ("x.scatter(1, k, value=2.0)", "x.at[along_axis(k, 1)].set(2.0)", "xk"),
    ("x.scatter(1, k, y[:, :1], reduce='add')", "x.at[along_axis(k, 1)].add(y[:, :1])", "XKY"),
    ("x.scatter_add(1, k, y[:, :1])", "x.at[along_axis(k, 1)].add(y[:, :1])", "xky"),
    (
        "torch.scatter_add(x, -1, k[:1, :, :2], y[:1, :1, :2])",
        "x.at[along_axis(k[:1, :, :2], -1)].add(y[:1, :1, :2])",
        "xky",
    ),
    (
        "torch.zeros(2, 3, dtype=torch.float64).scatter_(1, i, 1.0)",
        "jnp.zeros((2, 3), dtype=jnp.float64).at[along_axis(i, 1)].set(1.0)",
        "i",
    ),
    (
        "torch.scatter_reduce(x, 1, k, y[:, :1], 'amax')",
        "x.at[along_axis(k, 1)].max(y[:, :1])",
        "XKY",
    ),
    ("x.scatter_reduce(1, k, y[:, :1], reduce='sum')", "x.at[along_axis(k, 1)].add(y[:, :1])", "xky"),
    ("x.scatter_reduce(1, k, y[:, :1], 'prod')", "reduce_at(x, along_axis(k, 1), y[:, :1], 'prod')", "XKY"),
    ("x.index_add(1, j, y)", "x.at[:, j].add(y)", "xjy"),
    ("torch.index_add(x, -2, j, y, alpha=2)", "x.at[..., j, :].add(2 * y)", "xjy"),
    ("x.index_copy(1, j[:2], y[:, :2])", "x.at[:, j[:2]].set(y[:, :2])", "xjy"),
    ("x.index_fill(2, j, 0.5)", "x.at[:, :, j].set(0.5)", "xj"),
    ("a.index_put((i[0], j), u[:3])", "a.at[i[0], j].set(u[:3])", "aiju"),
    ("a.index_put((j,), b, accumulate=True)", "a.at[j].add(b)", "ajb"),
    ("torch.select_scatter(x, a[:2, :4], 1, 2)", "x.at[:, 2].set(a[:2, :4])", "xa"),
    ("torch.slice_scatter(x, y[:, 1:], 1, 1)", "x.at[:, 1:].set(y[:, 1:])", "xy"),
    ("torch.slice_scatter(x, y[:, :, ::2], 2, end=4, step=2)", "x.at[:, :, :4:2].set(y[:, :, ::2])", "xy"),
    ("a.put(j[:2], u[:2])", "a.ravel().at[j[:2]].set(u[:2]).reshape(a.shape)", "aju"),
    ("x.masked_fill(m, 0.5)", "jnp.where(m, 0.5, x)", "xm"),
    ("x.masked_fill(x > 0, float('-inf'))", "jnp.where(x > 0, float('-inf'), x)", "X"),
    ("x.masked_fill(m, torch.tensor(2))", "jnp.where(m, jnp.array(2).astype(x.dtype), x)", "xm"),
    ("torch.masked_fill(x, m[:1], value=-1e9)", "jnp.where(m[:1], -1e9, x)", "xm"),
    ("(n > 0).masked_fill(n == 5, 0)", "x = n > 0; jnp.where(n == 5, 0, x).astype(x.dtype)", "n"),
    ("(n > 0).masked_fill(n == 5, False)", "jnp.where(n == 5, False, n > 0)", "n"),
    ("x.masked_scatter(m, y)", "masked_scatter(x, m, y)", "xmy"),
    ("x.masked_scatter(m[:, :, :1], y.flatten())", "masked_scatter(x, m[:, :, :1], y.ravel())", "xmy"),
]

ROWS = [*READ, *SORTED, *WRITTEN]


@pytest.mark.parametrize(("torch", "jax", "inputs"), ROWS, ids=[row[0] for row in ROWS])
def test_an_index_reads_and_writes_as_in_pytorch(torch: str, jax: str, inputs: str) -> None:
    agrees(torch, jax, inputs)


IN_PLACE = [
    ("t = x.clone(); t.scatter_add_(1, k, y[:, :1]); t", "t = x; t = t.at[along_axis(k, 1)].add(y[:, :1]); t", "xky"),
    ("t = x * 1; t.index_add_(1, j, y); t", "t = x * 1; t = t.at[:, j].add(y); t", "xjy"),
    ("t = x * 1; t.masked_fill_(m, 0); t", "t = x * 1; t = jnp.where(m, 0, t).astype(t.dtype); t", "xm"),
    ("t = x * 1; t[:, 1].fill_(3); t", "t = x * 1; t = t.at[:, 1].set(3); t", "x"),
]


@pytest.mark.parametrize(("torch", "jax", "inputs"), IN_PLACE, ids=[row[0] for row in IN_PLACE])
def test_an_in_place_write_rebinds_its_target(torch: str, jax: str, inputs: str) -> None:
    agrees(torch, jax, inputs)


def test_values_that_decide_a_shape_are_noted() -> None:
    for expression, inputs in (("x.masked_select(m)", "xm"), ("torch.nonzero(n)", "n")):
        assert ["jit" in note.reason for note in converted(expression, inputs)[1].notes] == [True]


REFUSED = [
    ("x.scatter_reduce(1, k, y, how)", "in plain sight", "xky"),
    ("x.scatter(1, k, y, reduce=how)", "The reduce of scatter", "xky"),
    ("x.index_add(d, j, y)", "isn't a number", "xjy"),
    ("torch.nonzero(n, as_tuple=how)", "as_tuple", "n"),
]


@pytest.mark.parametrize(("torch", "reason", "inputs"), REFUSED)
def test_what_is_not_sure_stays(torch: str, reason: str, inputs: str) -> None:
    refused(torch, reason, inputs)


ALONE = [
    "def f(frame):\n    return frame.select('a'), frame.take([0]), frame.where(frame > 0)",
    "def f(db):\n    return db.select(1, 2).nonzero",
    "picked = np.take(np.arange(5), [1, 2])",
    "where = np.where(np.ones(3) > 0)",
    "found = np.nonzero(np.ones(3))",
    "def f(text: str):\n    return text.index('a')",
    "def f(image, box):\n    return image.put(box, 0)",
    "def gather(results):\n    return list(results)\n\n\nall_of_them = gather([])",
]


@pytest.mark.parametrize("source", ALONE)
def test_indexing_of_other_objects_stays(source: str) -> None:
    left_alone(source)
