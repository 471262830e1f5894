"""Conversions of ``rules/dtypes.py``, ``attributes.py`` and ``memory.py``, in text and in numbers."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .conversion import agrees, converted, left_alone, refused

CAST = [
    ("x.float()", "x.astype(jnp.float32)", "X"),
    ("h.double()", "h.astype(jnp.float64)", "h"),
    ("x.long(), x.int(), x.short()", "x.astype(jnp.int64), x.astype(jnp.int32), x.astype(jnp.int16)", "x"),
    ("i.bool(), i.char()", "i.astype(jnp.bool_), i.astype(jnp.int8)", "i"),
    ("x.half()", "x.astype(jnp.float16)", "X"),
    ("x.bfloat16().float()", "x.astype(jnp.bfloat16).astype(jnp.float32)", "X"),
    ("x.float().float()", "x.astype(jnp.float32)", "x"),
    ("(x + y.float()).float()", "(x + y.astype(jnp.float32)).astype(jnp.float32)", "xy"),
    ("x.half().float().float()", "x.astype(jnp.float16).astype(jnp.float32)", "x"),
    ("x.to(torch.float32)", "x.astype(jnp.float32)", "X"),
    ("i.to(dtype=torch.float64)", "i.astype(jnp.float64)", "i"),
    ("x.to('cpu')", "x", "x"),
    ("x.to(y.device)", "x", "xy"),
    ("x.to(torch.device('cpu'), torch.float64, non_blocking=True)", "x.astype(jnp.float64)", "x"),
    ("x.to(device='cpu', dtype=torch.int32)", "x.astype(jnp.int32)", "x"),
    ("i.to(x)", "i.astype(x.dtype)", "ix"),
    ("i.to(x.dtype) * x[0, :2, :3]", "i.astype(x.dtype) * x[0, :2, :3]", "ix"),
    ("(x + y).to(h.dtype)", "(x + y).astype(h.dtype)", "XYH"),
    ("x.type(torch.int64)", "x.astype(jnp.int64)", "x"),
    ("x.type(torch.FloatTensor)", "x.astype(jnp.float32)", "X"),
    ("x.type('torch.LongTensor')", "x.astype(jnp.int64)", "x"),
    ("i.type(x.dtype)", "i.astype(x.dtype)", "ix"),
    ("i.type_as(x)", "i.astype(x.dtype)", "ix"),
    ("i.type_as(x.data) + i.to(x.detach().dtype)", "i.astype(x.dtype) + i.astype(x.dtype)", "ix"),
    ("torch.zeros_like(x.detach()) + x.data.new_ones(1)", "jnp.zeros_like(x) + jnp.ones(1, dtype=x.dtype)", "x"),
    ("x.detach().view(x.data.size(0), -1)", "jax.lax.stop_gradient(x).reshape(x.shape[0], -1)", "x"),
    ("(-x).trunc().to(torch.int32) // 2", "jnp.trunc(-x).astype(jnp.int32) // 2", "X"),
]

ASKED = [
    ("x.dtype == torch.float64", "x.dtype == jnp.float64", "x"),
    ("h.dtype in (torch.float16, torch.float32)", "h.dtype in (jnp.float16, jnp.float32)", "h"),
    ("x.is_floating_point()", "jnp.issubdtype(x.dtype, jnp.floating)", "x"),
    ("torch.is_floating_point(i)", "jnp.issubdtype(i.dtype, jnp.floating)", "i"),
    ("torch.is_complex(c), c.is_complex()", "jnp.iscomplexobj(c), jnp.iscomplexobj(c)", "c"),
    ("i.is_signed()", 'not jnp.isdtype(i.dtype, ("bool", "unsigned integer"))', "i"),
    ("torch.finfo(x.dtype).min", "jnp.finfo(x.dtype).min", "x"),
    ("torch.finfo(torch.float32).eps", "jnp.finfo(jnp.float32).eps", ""),
    ("torch.iinfo(torch.int32).max", "jnp.iinfo(jnp.int32).max", ""),
    (
        "x.to(torch.promote_types(torch.int32, torch.float32))",
        "x.astype(jnp.promote_types(jnp.int32, jnp.float32))",
        "X",
    ),
    ("torch.can_cast(torch.float64, torch.int32)", "jnp.can_cast(jnp.float64, jnp.int32)", ""),
    ("x.element_size(), x.itemsize, x.nbytes", "x.itemsize, x.itemsize, x.nbytes", "x"),
    ("c.real, c.imag, torch.real(c), torch.imag(c)", "c.real, c.imag, c.real, c.imag", "c"),
    ("x.is_sparse", "False", "x"),
    ("torch.is_tensor(x), torch.is_tensor(3)", "isinstance(x, jax.Array), isinstance(3, jax.Array)", "x"),
]

MEMORY = [
    ("x.clone()", "x", "x"),
    ("torch.clone(x + y)", "x + y", "xy"),
    ("t = x.clone(); t[0] = 1; t, x", "t = x; t = t.at[0].set(1); t, x", "x"),
    ("x.detach() * x", "jax.lax.stop_gradient(x) * x", "x"),
    ("x.data * x", "jax.lax.stop_gradient(x) * x", "x"),
    ("torch.detach(x + y).mul(x)", "jax.lax.stop_gradient(x + y) * x", "xy"),
    ("x.cpu().cuda() if False else x.cpu()", "x", "x"),
    ("x.pin_memory() if False else 0", "x if False else 0", "x"),
    ("x.detach().cpu().numpy()", "np.asarray(x)", "x"),
    ("(x + y).detach().numpy()", "np.asarray(x + y)", "xy"),
    ("i.numpy()", "np.asarray(i)", "i"),
    ("x.sum().item() > 0", "x.sum().item() > 0", "X"),
    ("(x - y).detach().sum().item()", "jax.lax.stop_gradient(x - y).sum().item()", "XY"),
    ("x.mean().detach().item()", "x.mean().item()", "X"),
    ("i.tolist()", "i.tolist()", "i"),
    ("t = x * 1; t.fill_(3); t", "t = x * 1; t = jnp.full_like(t, 3); t", "x"),
    ("t = x * 1; t.zero_(); t", "t = x * 1; t = jnp.zeros_like(t); t", "x"),
    ("torch.empty(2, 3).fill_(4)", "jnp.full((2, 3), 4, dtype=jnp.float32)", ""),
    ("torch.empty(2).fill_(0.5)", "jnp.full(2, 0.5, dtype=jnp.float32)", ""),
    ("torch.zeros(2, dtype=torch.long).fill_(4)", "jnp.full(2, 4, dtype=jnp.int64)", ""),
    ("torch.empty((2, 1)).zero_()", "jnp.zeros((2, 1), dtype=jnp.float32)", ""),
    ("t = x * 1; t.copy_(z); t", "t = x * 1; t = t.at[...].set(z); t", "xz"),
    ("t = x * 1; t[0].copy_(y[1]); t", "t = x * 1; t = t.at[0].set(y[1]); t", "xy"),
    ("t = [x * 1]; t[0].fill_(3); t", "t = [x * 1]; t[0] = jnp.full_like(t[0], 3); t", "x"),
    ("t = s * 1; t.fill_diagonal_(7); t", "t = s * 1; t = jnp.fill_diagonal(t, 7, inplace=False); t", "s"),
]

ROWS = [*CAST, *ASKED, *MEMORY]


@pytest.mark.parametrize(("torch", "jax", "inputs"), ROWS, ids=[row[0] for row in ROWS])
def test_dtypes_and_copies_are_those_of_pytorch(torch: str, jax: str, inputs: str) -> None:
    agrees(torch, jax, inputs)


def test_a_condition_on_the_names_of_types_is_none_on_values() -> None:
    source = "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    if x.type() != y.type():\n"
    done = translate(source + "        x = x.type_as(y)\n    return x\n")
    assert "if x.dtype != y.dtype:" in done.code and not done.findings


def test_64_bit_dtypes_are_32_bit_without_x64_and_floats_are_noted() -> None:
    text, translation = converted("x.long(), x.double()", "x", x64=False)
    assert text == "x.astype(jnp.int32), x.astype(jnp.float32)"
    assert ["torch.float64 is float32" in note.reason for note in translation.notes] == [True]


MODULE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("steps", torch.zeros(3))
        self.scale.data.normal_(0, 0.02)

    def forward(self, x):
        self.steps.zero_()
        self.steps.fill_(2)
        self.steps.copy_(x.mean(0))
        old = self.scale.clone()
        fixed = self.scale.detach()
        return x * old + fixed.to(x.dtype) + self.scale.float()
"""


def test_parameters_and_buffers_are_read_and_written_as_variables() -> None:
    code = translate(MODULE).code
    for line in (
        "self.scale[...] = 0.02 * rngs.normal(self.scale.shape, self.scale.dtype)",
        "self.steps[...] = 0",
        "self.steps[...] = 2",
        "self.steps[...] = x.mean(axis=0)",
        "old = self.scale[...]",
        "fixed = jax.lax.stop_gradient(self.scale[...])",
        "self.scale[...].astype(jnp.float32)",
    ):
        assert line in code, code


REFUSED = [
    ("x.to(z)", "Can't tell", "x"),
    ("x.type()", "name of a torch type", "x"),
    ("torch.complex32", "half-precision complex", ""),
    ("torch.set_default_dtype(kind)", "jax_enable_x64", ""),
    ("x.grad", "JAX returns gradients", "x"),
    ("x.requires_grad", "no such flag", "x"),
    ("x.register_hook(print)", "no hooks", "x"),
    ("x.requires_grad_(False)", "Freeze parameters", "x"),
]


@pytest.mark.parametrize(("torch", "reason", "inputs"), REFUSED)
def test_what_has_no_jax_form_stays_with_its_reason(torch: str, reason: str, inputs: str) -> None:
    refused(torch, reason, inputs)


ALONE = [
    "def f(array: np.ndarray):\n    return array.astype(np.float32).copy()",
    "def f(frame):\n    return frame.to_numpy(), frame.clone(), frame.type",
    "def f(text: str):\n    return text.encode().hex()",
    "def f(request):\n    return request.real, request.type, request.item()",
    "kind = np.finfo(np.float32).eps",
    "import copy\n\nb = copy.deepcopy([1])",
    "def f(tree):\n    return tree.grad, tree.requires_grad",
    "class Money:\n    def to(self, currency):\n        return currency\n\n\ncash = Money().to('EUR')",
]


@pytest.mark.parametrize("source", ALONE)
def test_attributes_of_other_objects_stay(source: str) -> None:
    left_alone(source)
