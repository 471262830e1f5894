"""Parameters that are made without gradient: they are counted and listed as PyTorch does."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = {frozen}
        {more}
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)


net = Net()
print({asked})
"""
FROZEN = "nn.Parameter(torch.ones(3), requires_grad=False)"
TABLE = "nn.Embedding.from_pretrained(torch.ones(4, 3))"
BOTH = "nnx.state(net, (nnx.Param, Buffer))"


@pytest.mark.parametrize("frozen", [FROZEN, TABLE])
@pytest.mark.parametrize("asked", ["sum(p.numel() for p in net.parameters())", "len(list(net.parameters()))"])
def test_they_count(frozen: str, asked: str) -> None:
    done = convert(SOURCE.format(frozen=frozen, more="pass", asked=asked))
    assert not done.gaps
    assert BOTH in done.code


def test_where_trained_ones_are_counted_they_do_not() -> None:
    asked = "sum(p.numel() for p in net.parameters() if p.requires_grad)"
    done = convert(SOURCE.format(frozen=FROZEN, more="pass", asked=asked))
    assert not done.gaps
    assert BOTH not in done.code


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ("self.register_buffer('mean', torch.zeros(3))", "sum(p.numel() for p in net.parameters())"),
        ("pass", "[name for name, _ in net.named_parameters()]"),
    ],
)
def test_where_they_can_not_be_told_from_buffers_or_named_it_is_said(more: str, asked: str) -> None:
    done = convert(SOURCE.format(frozen=FROZEN, more=more, asked=asked))
    assert [gap.span.line for gap in done.gaps] == [17]


def test_nothing_changes_where_all_are_trained() -> None:
    trained = FROZEN.replace(", requires_grad=False", "")
    done = convert(SOURCE.format(frozen=trained, more="pass", asked="sum(p.numel() for p in net.parameters())"))
    assert not done.gaps
    assert "nnx.state(net, nnx.Param)" in done.code
