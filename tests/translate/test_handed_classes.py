"""Classes of modules and plain classes that stand for one another: only modules are made with random keys."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp.api import convert

from .printed import printed

HEAD = """
import torch
from torch import nn

class Identity:
    def __init__(self, d):
        self.d = d

    def __call__(self, x):
        return x

class Proj(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)
        nn.init.constant_(self.fc.weight, 0.5)
        nn.init.constant_(self.fc.bias, 0.25)

    def forward(self, x):
        return self.fc(x)

x = torch.ones(2, 3)
"""
PARAMETER = (
    HEAD
    + """
def make(kind, d):
    return kind(d)

print(make(Identity, 3)(x).sum().item(), make(kind=Proj, d=3)(x).sum().item())
"""
)
TABLE = (
    HEAD
    + """
KINDS = {"id": Identity, "proj": Proj}
print(KINDS["id"](3)(x).sum().item(), KINDS["proj"](3)(x).sum().item())
"""
)
DEFAULT = (
    HEAD
    + """
class Block(nn.Module):
    def __init__(self, d, first=Proj):
        super().__init__()
        self.f = first(d)

    def forward(self, x):
        return self.f(x)

print(Block(3)(x).sum().item(), Block(3, Identity)(x).sum().item())
"""
)


@pytest.mark.parametrize("source", [PARAMETER, TABLE], ids=["parameter", "table"])
def test_a_module_class_beside_a_plain_one_brings_its_keys(source: str) -> None:
    result = convert(source)
    assert not result.gaps
    assert "functools.partial(Proj, rngs=rngs)" in result.code
    assert printed(result.code) == printed(source)


def test_a_plain_class_where_modules_are_made_is_said() -> None:
    (gap,) = convert(DEFAULT).gaps
    assert (gap.name, gap.span.line) == ("Identity", DEFAULT[: DEFAULT.index("Block(3, Identity)")].count("\n") + 1)


def test_where_only_modules_are_made_the_keys_are_given_there() -> None:
    code = convert(PARAMETER.replace("make(Identity, 3)(x).sum().item(), ", "")).code
    assert "kind(d, rngs=rngs)" in code
    assert "functools" not in code


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize(
    "made",
    [
        "norm = nn.LayerNorm if normalize else lambda n: None",
        "norm = (lambda n: None) if not normalize else nn.LayerNorm",
        "norm = (lambda n: nn.LayerNorm(n)) if normalize else (lambda n: None)",
        "norm = nn.LayerNorm\n        if not normalize:\n            norm = lambda n: None",
    ],
)
def test_a_lambda_that_makes_no_module_is_called_as_the_class_beside_it(made: str, norm: bool) -> None:
    source = f"""import torch
from torch import nn


class Net(nn.Sequential):
    def __init__(self, normalize):
        {made}
        layers = [nn.Linear(3, 3), norm(3), nn.Linear(3, 3), norm(3)]
        super().__init__(*filter(lambda layer: layer is not None, layers))
"""
    done = convert(source)
    assert not done.gaps
    space: dict[str, Any] = {}
    exec(done.code, space)
    net = space["Net"](norm, rngs=nnx.Rngs(0))
    assert net(jnp.ones((2, 3))).shape == (2, 3)
    assert any(isinstance(part, nnx.LayerNorm) for _, part in nnx.iter_children(net)) == norm


def test_a_table_of_an_earlier_conversion_stays() -> None:
    """Its calls give ``rngs``, also to a class of a file that isn't converted yet."""
    source = """import torch
from flax import nnx
from .parts import Shifted


class Tanh(nnx.Module):
    def __init__(self, *, rngs=None):
        pass


KINDS = {"tanh": Tanh, "shifted": Shifted}


def make(kind, *, rngs):
    return KINDS[kind](rngs=rngs)
"""
    part = "from torch import nn\n\n\nclass Shifted(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    assert convert(source, resolve=lambda level, name: part).code == source.replace("import torch\n", "")


def test_a_forward_pass_runs_what_its_parameter_is_given_to_though_a_default_is_a_class() -> None:
    """`Block(norm=Norm(3))`, where `norm=Norm` is the default that nobody takes."""
    source = """import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.full((d,), 2.0))

    def forward(self, x):
        return x * self.w

class Block(nn.Module):
    def __init__(self, norm=Norm, act=nn.ReLU):
        super().__init__()
        self.norm = norm
        self.act = act

    def forward(self, x):
        return self.act()(self.norm(x))

block = Block(Norm(3))
print(block(torch.ones(2, 3)).sum().item())
"""
    result = convert(source)
    assert not result.gaps
    assert "self.norm(x)" in result.code and "self.act(rngs=self.rngs)" in result.code
    assert printed(result.code) == printed(source)


COMPARED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n, activation=nn.ReLU):
        super().__init__()
        kind = nn.ReLU
        self.act = activation() if {condition} else nn.Identity()

    def forward(self, x):
        return self.act(x)
"""


@pytest.mark.parametrize(
    "condition", ["activation == nn.ReLU", "activation is not nn.PReLU", "activation in (nn.ReLU, nn.GELU)"]
)
def test_a_class_of_another_file_equals_none_of_this_ones_helpers(condition: str) -> None:
    """Each file has copies of its own, but where one module has those of all, and in a program."""
    source = COMPARED.format(condition=condition)
    assert any("of its own" in gap.reason for gap in convert(source).gaps)
    assert not convert(source, helpers="import").gaps
    assert not convert(source + "\n\nprint(Net(3)(torch.ones(2)))\n").gaps


@pytest.mark.parametrize("condition", ["kind == nn.ReLU", "activation is None", "n == 3"])
def test_what_this_file_names_itself_is_compared(condition: str) -> None:
    assert not convert(COMPARED.format(condition=condition)).gaps
