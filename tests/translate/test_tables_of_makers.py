"""Tables of classes of modules, of which one stands in a library: what is looked up in them makes a module."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """from torch import nn
from {library} import {name}

TABLE = dict(batch=nn.BatchNorm1d, group=nn.GroupNorm, other={name})


def looked_up(norm):
    if norm is None:
        return None
    if isinstance(norm, str):
        norm = TABLE[norm]
    return norm


class Net(nn.Module):
    def __init__(self, norm=nn.BatchNorm1d):
        super().__init__()
        norm = looked_up(norm)
        self.norm = norm(4)
        self.net = nn.Sequential(nn.Linear(4, 4), norm(4))

    def forward(self, x):
        return self.net(self.norm(x))
"""


@pytest.mark.parametrize(("library", "name"), [("torchvision.ops.misc", "FrozenBatchNorm2d"), ("norms", "Norm")])
def test_it_asks_for_rngs_as_the_others_do(library: str, name: str) -> None:
    result = convert(SOURCE.format(library=library, name=name))
    assert not [gap for gap in result.gaps if gap.name == "norm"]
    assert result.code.count("norm(4, rngs=rngs)") == 2


@pytest.mark.parametrize("name", ["normalize", "NORM"])
def test_a_function_or_a_constant_may_be_no_maker(name: str) -> None:
    result = convert(SOURCE.format(library="norms", name=name))
    assert [gap for gap in result.gaps if gap.name == "norm"]
