"""Parameters that `torch.nn.init` fills: a line without a helper, and torch's distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert

SOURCE = """import math
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, std=0.3):
        super().__init__()
        self.w = nn.Parameter(torch.empty(300, 200))
        self.fc = nn.Linear(200, 300)
        nn.init.{fill}
"""
FAR = "2 / std"
FILLS = {
    "normal_(self.w)": "rngs.params.normal({})",
    "normal_(self.w, 0.0, 0.02)": "0.02 * rngs.params.normal({})",
    "normal_(self.w, mean=1.0, std=std / 2)": "1.0 + std / 2 * rngs.params.normal({})",
    "uniform_(self.w)": "rngs.params.uniform({})",
    "uniform_(self.w, -std, 2 * std)": "rngs.params.uniform({}, minval=-std, maxval=2 * std)",
    "trunc_normal_(self.w)": "rngs.params.truncated_normal(-2, 2, {})",
    "trunc_normal_(self.w, std=0.02)": "0.02 * rngs.params.truncated_normal(-100, 100, {})",
    "trunc_normal_(self.w, std=std)": f"std * rngs.params.truncated_normal(-{FAR}, {FAR}, {{}})",
    "trunc_normal_(self.w, std=3.0)": "3.0 * rngs.params.truncated_normal(-2 / 3.0, 2 / 3.0, {})",
    "trunc_normal_(self.w, std=std, b=0.4)": "trunc_normal(std=std, b=0.4)(rngs.params(), {})",
    "xavier_uniform_(self.w)": "nnx.initializers.xavier_uniform(in_axis=1, out_axis=0)(rngs.params(), {})",
    "xavier_uniform_(self.fc.weight)": "nnx.initializers.xavier_uniform()(rngs.params(), {})",
    "xavier_normal_(self.fc.weight, nn.init.calculate_gain('relu'))": (
        'nnx.initializers.variance_scaling(2.0, "fan_avg", "normal")(rngs.params(), {})'
    ),
    "xavier_normal_(self.fc.weight, nn.init.calculate_gain('tanh'))": (
        'nnx.initializers.variance_scaling(25 / 9, "fan_avg", "normal")(rngs.params(), {})'
    ),
    "xavier_normal_(self.fc.weight, std)": (
        'nnx.initializers.variance_scaling(std ** 2, "fan_avg", "normal")(rngs.params(), {})'
    ),
    "kaiming_uniform_(self.fc.weight)": "nnx.initializers.he_uniform()(rngs.params(), {})",
    "kaiming_uniform_(self.w, a=math.sqrt(5))": (
        'nnx.initializers.variance_scaling(1 / 3, "fan_in", "uniform", in_axis=1, out_axis=0)(rngs.params(), {})'
    ),
    "kaiming_normal_(self.fc.weight, mode='fan_out', nonlinearity='relu')": (
        'nnx.initializers.variance_scaling(2.0, "fan_out", "normal")(rngs.params(), {})'
    ),
    "kaiming_normal_(self.fc.weight, nonlinearity='selu')": (
        'nnx.initializers.variance_scaling(9 / 16, "fan_in", "normal")(rngs.params(), {})'
    ),
    "kaiming_uniform_(self.fc.weight, a=1, nonlinearity='sigmoid')": (
        'nnx.initializers.variance_scaling(1.0, "fan_in", "uniform")(rngs.params(), {})'
    ),
    "kaiming_normal_(self.fc.weight, a=0.5)": "kaiming_normal(a=0.5)(rngs.params(), {})",
}


@pytest.mark.parametrize("fill", FILLS)
def test_a_fill_is_the_line_that_is_wanted_and_has_the_distribution_of_torch(fill: str) -> None:
    source = SOURCE.format(fill=fill)
    translation = convert(source)
    assert not translation.gaps
    variable = "self.fc.kernel" if "self.fc" in fill else "self.w"
    line = f"{variable}[...] = {FILLS[fill].format(f'{variable}.shape, {variable}.dtype')}"
    assert "".join(line.split()) in "".join(translation.code.split())

    torch_side: dict[str, Any] = {}
    jax_side: dict[str, Any] = {}
    exec(source, torch_side)
    exec(translation.code, jax_side)
    torch.manual_seed(0)
    other, place = torch_side["Net"](), jax_side["Net"](rngs=nnx.Rngs(0))
    want = (other.fc.weight if "self.fc" in fill else other.w).detach().numpy()
    got = np.asarray(place.fc.kernel[...].T if "self.fc" in fill else place.w[...])
    assert got.shape == want.shape and got.dtype == want.dtype
    assert abs(got.mean() - want.mean()) < 5 * want.std() * (2 / want.size) ** 0.5
    for quantile in (0.001, 0.05, 0.25, 0.75, 0.95, 0.999):
        assert abs(np.quantile(got, quantile) - np.quantile(want, quantile)) < 0.15 * want.std()


@pytest.mark.parametrize("fill", ["xavier_uniform(self.w)", "normal(self.fc.weight, 0, std)", "constant(self.w, 0.1)"])
def test_old_names_of_fills_are_those_with_an_underscore(fill: str) -> None:
    done = convert(SOURCE.format(fill=fill))
    assert not done.gaps
    assert done.code == convert(SOURCE.format(fill=fill.replace("(", "_(", 1))).code


@pytest.mark.parametrize(("name", "gain"), [("relu", "math.sqrt(2.0)"), ("tanh", "5 / 3"), ("conv2d", "1.0")])
def test_the_gain_of_a_named_nonlinearity_is_written_out(name: str, gain: str) -> None:
    code = convert(f"from torch.nn import init\n\n\ndef f():\n    return init.calculate_gain('{name}')\n").code
    assert f"    return {gain}\n" in code and "calculate_gain" not in code


RECURRENT = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = {made}
        {statement}

    def forward(self, x):
        return self.rnn(x)[0]
"""


@pytest.mark.parametrize(
    ("made", "statement", "becomes"),
    [
        (
            "nn.LSTM(3, 4)",
            "nn.init.orthogonal_(self.rnn.weight_hh_l0)",
            "self.rnn.weight_hh_l0[...] = nnx.initializers.orthogonal(1, column_axis=0)(",
        ),
        ("nn.GRU(3, 4, num_layers=2)", "self.rnn.bias_ih_l1.data.fill_(0)", "self.rnn.bias_ih_l1[...] = 0\n"),
        ("nn.LSTMCell(3, 4)", "self.rnn.bias_ih.data[4:8].fill_(1.0)", "self.rnn.bias_ih[4:8] = 1.0\n"),
    ],
)
def test_parameters_of_a_recurrent_layer_are_filled(made: str, statement: str, becomes: str) -> None:
    done = convert(RECURRENT.format(made=made, statement=statement))
    assert not done.gaps
    assert becomes in done.code


WALK = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n=40):
        super().__init__()
        self.own = nn.Parameter(torch.empty{shape})
        self.rest = {rest}
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.{fill}_(p)
"""
OWN = "nn.Parameter(torch.empty(n, 3 * n))"
LAYERS = "nn.Sequential(nn.Linear(n, 3 * n), nn.Conv1d(n, 2 * n, 5))"


@pytest.mark.parametrize("fill", ["xavier_uniform", "xavier_normal", "kaiming_uniform", "orthogonal"])
@pytest.mark.parametrize("shape", ["(n, 2 * n)", "(2, n, n)"])
def test_a_walk_over_parameters_of_ones_own_counts_their_fans(fill: str, shape: str) -> None:
    text = WALK.format(fill=fill, shape=shape, rest=OWN)
    translation = convert(text)
    assert not translation.gaps
    sides: list[dict[str, Any]] = [{}, {}]
    exec(text, sides[0])
    exec(translation.code, sides[1])
    torch.manual_seed(0)
    reference, net = sides[0]["Net"](), sides[1]["Net"](rngs=nnx.Rngs(0))
    for name in ("own", "rest"):
        got, wanted = np.std(getattr(net, name)[...]), getattr(reference, name).std().item()
        assert abs(got / wanted - 1) < 0.1


@pytest.mark.parametrize(
    ("fill", "shape", "gaps"),
    [
        ("xavier_uniform", "(n, 2 * n)", 0),
        ("xavier_uniform", "(2, n, n)", 1),
        ("kaiming_uniform", "(n, 2 * n)", 1),
        ("orthogonal", "(n, 2 * n)", 1),
        ("kaiming_uniform", "(n)", 0),
    ],
)
def test_a_walk_over_kernels_and_parameters_of_ones_own_is_said(fill: str, shape: str, gaps: int) -> None:
    """Fans of two axes have one sum, in any order."""
    translation = convert(WALK.format(fill=fill, shape=shape, rest=LAYERS))
    assert len(translation.gaps) == gaps


def test_a_walk_over_parameters_meets_no_buffers() -> None:
    layers = "self.fc = nn.Linear(n, n)\n        self.register_buffer('kept', torch.zeros(2, n, n))"
    translation = convert(WALK.format(fill="xavier_uniform", shape="(n)", rest=layers))
    assert not translation.gaps


@pytest.mark.parametrize("scale", [10, 0.5])
def test_an_array_that_is_filled_keeps_its_dtype_whatever_number_is_given(scale: float) -> None:
    source = (
        "import torch\nfrom torch import nn\n\n\n"
        "class Norm(nn.Module):\n    def __init__(self, n, scale: float = 1.0):\n"
        "        super().__init__()\n        self.scale = scale\n"
        "        self.weight = nn.Parameter(torch.empty(n).fill_(self.scale))\n"
    )
    space: dict[str, Any] = {}
    exec(convert(source).code, space)
    weight = space["Norm"](3, scale=scale, rngs=nnx.Rngs(0)).weight[...]
    assert weight.dtype == np.float32
    assert weight.tolist() == [scale] * 3
