"""``a.weight is b.weight`` asks for Variables: the arrays that these give are never the same object."""

from __future__ import annotations

from t2j_lsp import convert

from .side_by_side import sides

SOURCE = """\
import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part
        self.out = nn.Linear(3, 3)


part = nn.Linear(3, 3)
one, other = Tied(part), Tied(part)
pair = nn.Sequential(part, nn.ReLU(), nn.Linear(3, 3))
seen = [
    one.out.weight is one.out.weight,
    pair[0].bias is part.bias,
    part.weight is pair[0].weight,
    one.out.weight is other.out.weight,
    one.out.weight is not part.weight,
    part.bias is None,
]
"""


def test_the_same_parameter_is_the_same_variable() -> None:
    found = sides(SOURCE, "same_parameters")
    assert not found.gaps()
    assert found.jax.seen == found.torch.seen == [True, True, True, False, True, False]


def test_a_weight_that_is_transposed_in_flax_is_told() -> None:
    text = "import torch\nfrom torch import nn\n\nrows, head = nn.Embedding(4, 3), nn.Linear(3, 4)\n"
    done = convert(f"{text}print(head.weight is rows.weight)\n")
    assert any("never the same Variable" in gap.reason for gap in done.gaps)
