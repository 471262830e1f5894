"""Methods that take their instance by position alone (``self, /``), or among all that they are given."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

SOURCE = """from typing import overload
import torch
from torch import nn


class Net(nn.Module):
    @overload
    def __init__(self, /, n: int) -> None: ...

    @overload
    def __init__(self, /) -> None: ...

    def __init__({parameters}):
        {first}
        self.fc = nn.Linear(3, 3)

    def forward(self, x, /):
        return self.fc(x) + torch.randn(3)
"""


@pytest.mark.parametrize(
    ("parameters", "first"),
    [
        ("self, /, n: int = 3", "super().__init__()"),
        ("self, /, n: int = 3", "nn.Module.__init__(self)"),
        ("self, n=3, /", "nn.Module.__init__(self)"),
        ("*args", "self = args[0]\n        super(Net, self).__init__()"),
    ],
)
def test_its_generator_is_kept(parameters: str, first: str) -> None:
    done = convert(SOURCE.format(parameters=parameters, first=first))
    assert not done.gaps
    assert "        self.rngs = rngs.fork()\n        self.fc = nnx.Linear(3, 3, " in done.code
    assert "Module.__init__" not in done.code and "super()" not in done.code


@pytest.mark.parametrize("parameters", ["n=3, /", "n: int = (3), m=4, /", "n: int, /, m=4", "n: int,\n      /,\n"])
def test_rngs_stand_behind_what_is_given_by_position_alone(parameters: str) -> None:
    done = convert(f"import torch\n\n\ndef f({parameters}):\n    return torch.randn(n)\n")
    assert not done.gaps and "rngs.normal((n,))" in done.code
