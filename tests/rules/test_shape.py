"""Conversions of ``rules/shape.py``, ``axes.py`` and ``broadcasting.py``, in text and in numbers."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .conversion import agrees, converted, left_alone, refused

ASKED = [
    ("x.shape", "x.shape", "x"),
    ("x.size()", "x.shape", "x"),
    ("x.size(-1)", "x.shape[-1]", "x"),
    ("x.size(dim=1)", "x.shape[1]", "x"),
    ("x.dim(), x.ndim, x.ndimension()", "x.ndim, x.ndim, x.ndim", "x"),
    ("x.numel(), torch.numel(x), x.nelement()", "x.size, x.size, x.size", "x"),
    ("x.shape.numel()", "math.prod(x.shape)", "x"),
    ("x.is_contiguous()", "True", "x"),
    ("x.contiguous()", "x", "x"),
    (
        "x.stride(0), x.stride(1), x.stride(2)",
        "math.prod(x.shape[1:]), math.prod(x.shape[2:]), math.prod(x.shape[3:])",
        "x",
    ),
    ("x.stride(-1), x.stride(dim=-3)", "math.prod(x.shape[-1:][1:]), math.prod(x.shape[-3:][1:])", "x"),
    ("x[None].contiguous(memory_format=torch.channels_last)", "x[None]", "x"),
]

RESHAPED = [
    ("x.view(2, -1)", "x.reshape(2, -1)", "x"),
    ("x.view((4, 6))", "x.reshape((4, 6))", "x"),
    ("x.view(x.size(0), -1)", "x.reshape(x.shape[0], -1)", "x"),
    ("x.view(*x.shape[:2], 2, 2)", "x.reshape(*x.shape[:2], 2, 2)", "x"),
    ("n.view(torch.float64)", "n.view(jnp.float64)", "N"),
    ("x.reshape(-1)", "x.reshape(-1)", "x"),
    ("torch.reshape(x, (3, 8))", "x.reshape((3, 8))", "x"),
    ("torch.reshape(x + y, [-1])", "(x + y).reshape([-1])", "xy"),
    ("a.view_as(b)", "a.reshape(b.shape)", "ab"),
    ("a.reshape_as(b)", "a.reshape(b.shape)", "ab"),
    ("torch.ravel(x), x.ravel()", "x.ravel(), x.ravel()", "x"),
    ("x.flatten()", "x.ravel()", "x"),
    ("x.flatten(1)", "x.reshape(x.shape[0], -1)", "x"),
    ("torch.flatten(x, 1)", "x.reshape(x.shape[0], -1)", "x"),
    ("torch.flatten(x + y, 1)", "jax.lax.collapse(x + y, 1)", "xy"),
    ("x.flatten(start_dim=-2)", "jax.lax.collapse(x, -2)", "x"),
    ("x.flatten(0, 1)", "jax.lax.collapse(x, 0, 2)", "x"),
    ("x.flatten(0, -2)", "jax.lax.collapse(x, 0, -1)", "x"),
    ("x.flatten(1, 1)", "jax.lax.collapse(x, 1, 2)", "x"),
    ("torch.tensor(3.0).flatten()", "jnp.array(3.0, dtype=jnp.float32).ravel()", ""),
    ("x.unflatten(-1, (2, 2))", "x.reshape(*x.shape[:-1], 2, 2)", "x"),
    ("x.unflatten(0, (1, -1))", "x.reshape(1, -1, *x.shape[1:])", "x"),
    ("x.unflatten(1, [3, 1])", "x.reshape(x.shape[0], 3, 1, *x.shape[2:])", "x"),
    ("s.unflatten(0, s.shape[:0] + (2, 2))", "s.reshape(*s.shape[:0] + (2, 2), *s.shape[1:])", "s"),
]

ORDERED = [
    ("x.permute(0, 2, 1)", "x.transpose(0, 2, 1)", "x"),
    ("x.permute((2, 0, 1))", "x.transpose((2, 0, 1))", "x"),
    ("x[0].permute(1, 0)", "x[0].T", "x"),
    ("x[0].permute(0, -1)", "x[0].transpose((0, -1))", "x"),
    ("torch.permute(x, (-1, 0, 1))", "jnp.transpose(x, (-1, 0, 1))", "x"),
    ("x.transpose(1, 2)", "x.swapaxes(1, 2)", "x"),
    ("torch.transpose(x, 0, -1)", "jnp.swapaxes(x, 0, -1)", "x"),
    ("(x * y).transpose(-2, -1)", "(x * y).swapaxes(-2, -1)", "xy"),
    ("x.swapaxes(0, 1), x.swapdims(0, 1)", "x.swapaxes(0, 1), x.swapaxes(0, 1)", "x"),
    ("torch.movedim(x, 0, -1)", "jnp.moveaxis(x, 0, -1)", "x"),
    ("x.movedim((0, 1), (1, 2))", "jnp.moveaxis(x, (0, 1), (1, 2))", "x"),
    ("a.t(), torch.t(u), a.T", "a.T, u.T, a.T", "au"),
    ("x.mT", "x.mT", "x"),
    ("c.H, c.mH, torch.adjoint(c)", "c.conj().T, c.conj().mT, c.conj().mT", "c"),
    ("x.flip(0)", "jnp.flip(x, axis=0)", "x"),
    ("x.flip(0, 2)", "jnp.flip(x, axis=(0, 2))", "x"),
    ("x.flip([1])", "jnp.flip(x, axis=(1,))", "x"),
    ("torch.flip(x, [0, -1])", "jnp.flip(x, axis=(0, -1))", "x"),
    ("x.fliplr(), torch.flipud(x)", "jnp.fliplr(x), jnp.flipud(x)", "x"),
    ("torch.rot90(x)", "jnp.rot90(x)", "x"),
    ("torch.rot90(x, 3, [1, 2])", "jnp.rot90(x, k=3, axes=(1, 2))", "x"),
    ("torch.roll(x, 1)", "jnp.roll(x, 1)", "x"),
    ("x.roll((1, -2), dims=(0, 2))", "jnp.roll(x, (1, -2), axis=(0, 2))", "x"),
]

SINGLE = [
    ("x.unsqueeze(0)", "x[None]", "x"),
    ("x.unsqueeze(1)", "x[:, None]", "x"),
    ("x.unsqueeze(dim=2)", "x[:, :, None]", "x"),
    ("x.unsqueeze(-1)", "x[..., None]", "x"),
    ("x.unsqueeze(-2)", "x[..., None, :]", "x"),
    ("torch.unsqueeze(x + y, 3)", "jnp.expand_dims(x + y, 3)", "xy"),
    ("z.squeeze()", "z.squeeze()", "z"),
    ("z.squeeze(1)", "squeeze(z, axis=1)", "z"),
    ("x.squeeze(1)", "squeeze(x, axis=1)", "x"),
    ("z.squeeze((0, 1))", "squeeze(z, axis=(0, 1))", "z"),
    ("torch.squeeze(z, dim=-2)", "squeeze(z, axis=-2)", "z"),
    ("x.gather(1, i.unsqueeze(1)).squeeze(1)", "gather(x, i[:, None], axis=1).squeeze(axis=1)", "xi"),
    ("x.gather(1, i[:, None]).squeeze(1)", "gather(x, i[:, None], axis=1).squeeze(axis=1)", "xi"),
    ("x.gather(-1, i.unsqueeze(-1)).squeeze(-1)", "gather(x, i[..., None], axis=-1).squeeze(axis=-1)", "xi"),
    ("x.gather(1, i.unsqueeze(0)).squeeze(1)", "squeeze(gather(x, i[None], axis=1), axis=1)", "xi"),
    ("x.gather(1, i[None, :]).squeeze(1)", "squeeze(gather(x, i[None, :], axis=1), axis=1)", "xi"),
    ("x.gather(1, i[0:1, None]).squeeze(0)", "squeeze(gather(x, i[0:1, None], axis=1), axis=0)", "xi"),
    ("torch.atleast_1d(u), torch.atleast_2d(u)", "jnp.atleast_1d(u), jnp.atleast_2d(u)", "u"),
    ("torch.atleast_3d(a)", "jnp.atleast_3d(a)", "a"),
    ("torch.atleast_2d([u, v])", "jnp.atleast_2d(u, v)", "uv"),
]

REPEATED = [
    ("z.expand(2, 3, 4)", "jnp.broadcast_to(z, (2, 3, 4))", "z"),
    ("z.expand(-1, 3, -1)", "jnp.broadcast_to(z, (z.shape[-3], 3, z.shape[-1]))", "z"),
    ("z.expand(5, -1, -1, -1)", "jnp.broadcast_to(z, (5, *z.shape[-3:]))", "z"),
    ("u.expand(3, -1)", "jnp.broadcast_to(u, (3, u.shape[-1]))", "u"),
    ("z.expand(x.shape)", "jnp.broadcast_to(z, x.shape)", "zx"),
    ("z.expand(*x.size())", "jnp.broadcast_to(z, x.shape)", "zx"),
    ("z.expand((-1, 3, 4))", "jnp.broadcast_to(z, (z.shape[-3], 3, 4))", "z"),
    ("(z * 2).expand(-1, 3, -1)", "x = z * 2; jnp.broadcast_to(x, (x.shape[-3], 3, x.shape[-1]))", "z"),
    ("z.expand_as(x)", "jnp.broadcast_to(z, x.shape)", "zx"),
    ("torch.broadcast_to(u, (3, 4))", "jnp.broadcast_to(u, (3, 4))", "u"),
    ("torch.broadcast_tensors(x, z, u)", "jnp.broadcast_arrays(x, z, u)", "xzu"),
    ("torch.broadcast_shapes((2, 1), (3,))", "jnp.broadcast_shapes((2, 1), (3,))", ""),
    ("u.repeat(2)", "jnp.tile(u, 2)", "u"),
    ("u.repeat(3, 2)", "jnp.tile(u, (3, 2))", "u"),
    ("x.repeat((1, 2, 1))", "jnp.tile(x, (1, 2, 1))", "x"),
    ("x.tile(2, 1), torch.tile(x, (2,))", "jnp.tile(x, (2, 1)), jnp.tile(x, (2,))", "x"),
    ("x.repeat_interleave(2)", "jnp.repeat(x, 2)", "x"),
    ("torch.repeat_interleave(x, 2, dim=1)", "jnp.repeat(x, 2, axis=1)", "x"),
    ("x.repeat_interleave(j, 1)", "jnp.repeat(x, j, axis=1)", "xj"),
    (
        "torch.repeat_interleave(x, j, dim=1, output_size=4)",
        "jnp.repeat(x, j, axis=1, total_repeat_length=4)",
        "xj",
    ),
    ("torch.repeat_interleave(j)", "jnp.repeat(jnp.arange(j.shape[0]), j)", "j"),
]

ROWS = [*ASKED, *RESHAPED, *ORDERED, *SINGLE, *REPEATED]


@pytest.mark.parametrize(("torch", "jax", "inputs"), ROWS, ids=[row[0] for row in ROWS])
def test_a_shape_comes_out_as_in_pytorch(torch: str, jax: str, inputs: str) -> None:
    agrees(torch, jax, inputs)


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        ("n = [-1] * 3; n[1] = 3; z.expand(*n)", "n = [-1] * 3; n[1] = 3; expand(z, (*n,))"),
        ("n = (2, 3); z.expand(2, -1, *x.shape[2:])", "n = (2, 3); expand(z, (2, -1, *x.shape[2:]))"),
        ("z.expand(*x.shape[:1], *x.shape[1:])", "jnp.broadcast_to(z, (*x.shape[:1], *x.shape[1:]))"),
    ],
)
def test_sizes_that_are_not_written_out_may_keep_an_axis(torch: str, jax: str) -> None:
    text, _ = converted(torch, "zx")
    assert text == jax


def test_an_expanded_tensor_of_known_rank_counts_its_axes_from_the_front() -> None:
    text, _ = converted("b, c, d = z.shape; z.expand(-1, 3, -1)", "z")
    assert text == "b, c, d = z.shape; jnp.broadcast_to(z, (z.shape[0], 3, z.shape[-1]))"


def test_an_expanded_parameter_is_asked_for_its_shape_without_reading_it() -> None:
    source = (
        "import torch\nfrom torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.token = nn.Parameter(torch.zeros(1, 1, 8))\n\n"
        "    def forward(self, x):\n"
        "        return self.token.expand(x.shape[0], -1, -1)\n"
    )
    code = translate(source).code
    assert "jnp.broadcast_to(self.token[...], (x.shape[0], *self.token.shape[1:]))" in code


def test_parameters_are_asked_for_their_shape_without_reading_them() -> None:
    source = (
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.ones(3))\n\n"
        "    def forward(self, x):\n"
        "        return x.view(-1, self.scale.size(0)) + self.scale.numel() + self.scale.dim()\n"
    )
    code = translate("import torch\nfrom torch import nn\n\n\n" + source).code
    assert "x.reshape(-1, self.scale.shape[0]) + self.scale.size + self.scale.ndim" in code


REFUSED = [
    ("x.stride()", "do not fit torch.Tensor.stride", "x"),
    ("x.data_ptr()", "no strides", "x"),
    ("x.untyped_storage()", "no strides", "x"),
    ("x.flatten(0, d)", "end_dim", "x"),
    ("x.unflatten(d, (2, 2))", "dim of unflatten", "x"),
]


@pytest.mark.parametrize(("torch", "reason", "inputs"), REFUSED)
def test_what_is_not_sure_stays(torch: str, reason: str, inputs: str) -> None:
    refused(torch, reason, inputs)


ALONE = [
    "def f(array: np.ndarray):\n    return array.transpose(1, 0), array.reshape(2, -1), array.flatten()",
    "def f(frame):\n    return frame.T, frame.shape, frame.size, frame.squeeze()",
    "def f(text: str):\n    return text.split(','), text.expandtabs()",
    "def f(path, values: list):\n    values.reverse()\n    return path.view, values.index(3)",
    "def f(image):\n    return image.size, image.transpose(0), image.rotate(90)",
    "import numpy\n\nx = numpy.flip(numpy.roll(numpy.ones(3), 1))",
    "def flatten(nested):\n    return [x for row in nested for x in row]\n\n\ny = flatten([[1], [2]])",
    "class Tree:\n    def flatten(self, depth):\n        return depth\n\n\nleaves = Tree().flatten(1)",
]


@pytest.mark.parametrize("source", ALONE)
def test_shapes_of_other_objects_stay(source: str) -> None:
    left_alone(source)
