"""Parts of what a function returns, ``x.max(1).values``: they are tensors; without a gradient ties don't matter."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

FUNCTION = """import torch


{decorator}def f(x: torch.Tensor, net):
{lines}
"""


def converted(lines: str, decorator: str = "") -> str:
    text = FUNCTION.format(decorator=decorator, lines="\n".join(f"    {line}" for line in lines.splitlines()))
    done = translate(text, Options(helpers="import"))
    assert not done.gaps
    return done.code


WITHOUT = [
    ("with torch.no_grad():\n    y = x.max(1)[0]\nreturn y", ""),
    ("with torch.inference_mode():\n    y = torch.max(x, dim=1).values\nreturn y", ""),
    ("y, _ = x.max(1)\nreturn y", "@torch.no_grad()\n"),
    ("return x.max(1)[0].detach()", ""),
    ("return x.max(1).values.detach()", ""),
]


@pytest.mark.parametrize(("lines", "decorator"), WITHOUT)
def test_a_maximum_without_gradient_is_that_of_jax(lines: str, decorator: str) -> None:
    code = converted(lines, decorator)
    assert "max(axis=1)" in code or "jnp.max(x, axis=1)" in code
    assert "stop_gradient" in code


WITH = [
    "return x.max(1)[0]",
    "with torch.no_grad():\n    with torch.enable_grad():\n        y = x.max(1).values\nreturn y",
    "with torch.no_grad():\n    def g(x: torch.Tensor):\n        return x.max(1)[0]\nreturn g(x)",
]


@pytest.mark.parametrize("lines", WITH)
def test_a_maximum_with_a_gradient_gives_it_to_one_of_several(lines: str) -> None:
    assert "max_with_indices(x, axis=1)" in converted(lines)


@pytest.mark.parametrize(
    ("call", "field"), [("x.sort(1)", "values"), ("torch.max(x, 1)", "values"), ("x.topk(2)", "values")]
)
def test_a_part_by_its_name_carries_no_gradient_out_of_a_block(call: str, field: str) -> None:
    code = converted(f"with torch.no_grad():\n    y = {call}.{field}\nreturn x.sum(1, keepdim=True) + y.sum(-1)")
    assert "y = jax.lax.stop_gradient(y)" in code
    assert "y.sum(axis=-1)" in code


PACKED = """import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths)
        out, h = self.rnn(packed)
        return {}
"""


@pytest.mark.parametrize(
    "read", ["out[0]", "out.data", "packed.batch_sizes", "pack_padded_sequence(x, lengths)[0]", "packed.data.sum()"]
)
def test_what_a_packed_sequence_stores_is_none_of_the_padded_one(read: str) -> None:
    """PyTorch's data has no padding, a loss of it neither; it was read as the padded array without a word."""
    done = translate(PACKED.format(read))
    assert ["stores a packed sequence without padding" in gap.reason for gap in done.gaps] == [True]


def test_a_packed_sequence_that_is_unpacked_by_position_is_left() -> None:
    text = PACKED.format("h").replace("packed = pack", "packed, sizes = pack")
    assert any("without padding" in gap.reason for gap in translate(text).gaps)


@pytest.mark.parametrize("read", ["pad_packed_sequence(out)[0]", "h[-1]", "self.rnn(packed)[1][0]"])
def test_a_packed_sequence_that_is_padded_converts(read: str) -> None:
    assert not translate(PACKED.format(read)).gaps
