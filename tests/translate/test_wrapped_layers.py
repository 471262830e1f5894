"""Layers inside of another module in Flax: ``spectral_norm(nn.Linear(3, 4))`` changes the layer itself in PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from flax import nnx

from t2j_lsp import convert, torch_state

MODULE = """\
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils import spectral_norm


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = spectral_norm(nn.Conv2d(1, 4, 3, bias=False))
        self.fc = spectral_norm(nn.Linear(4, 1), n_power_iterations=2)
        {built}

    def forward(self, x):
        {called}
        return self.fc(self.conv(x).mean((2, 3)))
"""


def converted(built: str = "pass", called: str = "pass") -> tuple[str, list[str]]:
    done = convert(MODULE.format(built=built, called=called))
    return " ".join(done.code.split()).replace("( ", "(").replace(" )", ")").replace(",)", ")"), [
        gap.name for gap in done.gaps
    ]


def test_the_layer_is_built_inside_of_the_module_around_it() -> None:
    code, gaps = converted()
    assert not gaps
    assert (
        "self.conv = SpectralNorm(ChannelsFirstConv(1, 4, (3, 3), padding=0, use_bias=False, rngs=rngs), rngs=rngs)"
        in code
    )
    assert (
        "self.fc = SpectralNorm(nnx.Linear(4, 1, **uniform_init(4), rngs=rngs), n_power_iterations=2, rngs=rngs)"
        in code
    )
    assert "torch" not in code.partition("# PyTorch behaviour")[0]


def test_its_parameters_are_initialised_inside_while_it_is_built() -> None:
    code, gaps = converted("nn.init.xavier_uniform_(self.fc.weight); nn.init.zeros_(self.fc.bias)")
    assert not gaps
    assert "self.fc.layer_instance.kernel[...] = nnx.initializers.xavier_uniform()(" in code
    assert "self.fc.layer_instance.bias[...] = " in code


@pytest.mark.parametrize(
    ("built", "called"),
    [
        ("pass", "x = x + self.fc.weight.norm()"),
        ("pass", "print(self.fc.weight_u)"),
        ("pass", "nn.init.zeros_(self.fc.weight)"),
        ("print(self.fc.weight_orig)", "pass"),
        ("spectral_norm(self.fc)", "pass"),
        ("self.up = spectral_norm(nn.ConvTranspose2d(1, 2, 3))", "pass"),
        ("self.rnn = spectral_norm(nn.LSTM(1, 2), name='weight_hh_l0')", "pass"),
        ("self.more = spectral_norm(nn.Linear(1, 2), dim=1)", "pass"),
        ("self.more = nn.utils.parametrizations.spectral_norm(nn.Linear(1, 2))", "pass"),
        ("for part in self.modules():\n            spectral_norm(part)", "pass"),
    ],
)
def test_what_is_asked_of_the_divided_weight_or_done_to_a_layer_in_place_is_a_gap(built: str, called: str) -> None:
    assert converted(built, called)[1]


NORMED = """\
import torch
from torch import nn
from torch.nn.utils import parametrizations, weight_norm


class Block(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.conv = weight_norm(nn.Conv1d(n, n, 3, padding=1, bias={bias}))
        self.fc = nn.Linear(n, 5)
        self.n = n
        self.fc = parametrizations.weight_norm(self.fc, dim=1)
        {built}

    def forward(self, x):
        {called}
        return self.fc(self.conv(x).transpose(1, 2))
"""


def normed(built: str = "pass", called: str = "pass", bias: bool = True) -> tuple[str, list[str]]:
    done = convert(NORMED.format(built=built, called=called, bias=bias))
    return " ".join(done.code.split()).replace("( ", "(").replace(" )", ")"), [gap.reason for gap in done.gaps]


def test_a_layer_with_a_length_and_a_direction_is_built_in_the_call() -> None:
    code, gaps = normed("nn.init.zeros_(self.fc.bias)")
    assert not gaps
    assert "self.conv = WeightNorm(" in code and "parametrized=False)" in code
    assert "self.fc = WeightNorm(nnx.Linear(n, 5, **uniform_init(n), rngs=rngs), dim=1)" in code
    assert "self.fc.layer_instance.bias[...] = " in code
    assert code.count("self.fc = ") == 1


def test_what_is_asked_of_the_layer_has_its_name_in_flax() -> None:
    code, gaps = normed("self.sizes = self.conv.in_channels, self.conv.bias")
    assert not gaps
    assert "self.conv.layer_instance.in_features, self.conv.layer_instance.bias" in code


def test_a_hook_of_torchscript_goes() -> None:
    body = "nn.utils.remove_weight_norm(self.conv)\n        return self"
    hook = f"pass\n\n    def __prepare_scriptable__(self):\n        {body}"
    code, gaps = normed(hook)
    assert not gaps
    assert "__prepare_scriptable__" not in code
    assert normed(hook + "\n\n    def prepared(self):\n        return self.__prepare_scriptable__()")[1]


@pytest.mark.parametrize(
    ("built", "called"),
    [
        ("pass", "x = x * self.fc.weight.mean()"),
        ("print(self.conv.weight_g)", "pass"),
        ("weight_norm(self.fc)", "pass"),
        ("self.rnn = weight_norm(nn.LSTM(1, 2), 'weight_hh_l0')", "pass"),
        ("self.whole = weight_norm(nn.Linear(1, 2), dim=None)", "pass"),
        ("self.up = weight_norm(nn.ConvTranspose1d(1, 2, 3), dim=2)", "pass"),
        ("self.one = nn.Linear(1, 2); self.two = self.one\n        self.one = weight_norm(self.one)", "pass"),
        ("torch.nn.utils.remove_weight_norm(self.conv)", "pass"),
    ],
)
def test_what_is_done_with_the_weight_of_such_a_layer_is_a_gap(built: str, called: str) -> None:
    assert normed(built, called)[1]


def test_another_file_knows_that_a_module_stands_around_a_layer() -> None:
    asks = "import block\nfrom torch import nn\n\n\ndef init(net):\n    if isinstance(net, block.Block):\n        {}\n"
    files = {"block": NORMED.format(built="pass", called="pass", bias=True)}
    for layer in ("conv", "fc"):
        bias, weight = (
            convert(asks.format(f"nn.init.zeros_(net.{layer}.{name})"), resolve=lambda _, name: files.get(name))
            for name in ("bias", "weight")
        )
        assert f"net.{layer}.layer_instance.bias[...] = " in bias.code
        assert not bias.gaps and not weight.gaps
        assert any("computes this weight anew" in note.reason for note in weight.notes)


@pytest.mark.parametrize("module", ["torch.nn.utils", "torch.nn.utils.parametrizations"])
def test_what_only_the_names_in_state_dicts_follow_from_stays_in_the_helper(module: str) -> None:
    text = (
        f"from torch import nn\nfrom {module} import weight_norm\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
    )
    text += "        super().__init__()\n        self.fc = weight_norm(nn.Linear(3, 4))\n\n"
    code = convert(text + "    def forward(self, x):\n        return self.fc(x)\n").code
    sides: list[dict[str, Any]] = [{}, {}]
    for side, program in zip(sides, (text, code), strict=True):
        exec(program, side)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        names = set(sides[0]["Net"]().state_dict())
    assert set(torch_state(sides[1]["Net"](rngs=nnx.Rngs(0)))) == names
