"""A layer whose weight is another module's is a module of its own where a program asks for no linear layer of it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

PROGRAM = """import torch
from torch import nn
{imports}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(5, 3), nn.Linear(3, 5{bias})
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


net = Net()
{more}
print(net(torch.arange(4)))
"""


def base(imports: str = "", bias: str = "", more: str = "", source: str = PROGRAM) -> str:
    """What the helper for the tied layer derives from."""
    code = convert(source.format(imports=imports, bias=bias, more=more)).code
    assert ("class Transposed" in code) == ("class TiedLinear(nnx.Linear)" in code)
    return code.partition("class TiedLinear(")[2].partition(")")[0]


@pytest.mark.parametrize(
    "more",
    [
        "torch.save(net.state_dict(), 'net.pt')",
        "print([(name, p.shape) for name, p in net.named_parameters()])",
        "other = nn.Linear(2, 2)",
    ],
)
@pytest.mark.parametrize("bias", ["", ", bias=False"])
def test_a_program_that_only_calls_and_saves_it_has_the_short_form(more: str, bias: str) -> None:
    assert base(more=more, bias=bias) == "nnx.Module"


@pytest.mark.parametrize(
    ("imports", "more"),
    [
        ("", "print(net.head.in_features)"),
        ("", "print(net.head.weight.shape)"),
        ("", "print([m for m in net.modules() if isinstance(m, nn.Linear)])"),
        ("", "print(type(net.head) is nn.Linear)"),
        ("", "print(getattr(net.head, 'out_features'))"),
        ("from .layers import Layer", ""),
        ("import timm", ""),
    ],
)
def test_one_that_may_be_asked_for_is_a_linear_layer(imports: str, more: str) -> None:
    assert base(imports, more=more) == "nnx.Linear"


def test_in_a_file_that_is_no_program_it_is_one() -> None:
    assert base(source=PROGRAM[: PROGRAM.index("net = Net")]) == "nnx.Linear"
