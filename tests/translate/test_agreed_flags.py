"""Flags that all calls of a file pass alike go from the calls into the helper; where one call differs, all stay."""

from __future__ import annotations

import ast

import jax
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.translate.source.folding.agreements import with_agreement, without_agreed

from .side_by_side import compare, randomized, sides

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
NET = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {}\n\n"
NET += "    def forward(self, x):\n        return {}\n"
UP = "def f():\n    return nn.Upsample(scale_factor=2, mode='bicubic')\n"

AGREED = {
    "an order of axes": (
        NET.format("self.attend = nn.MultiheadAttention(4, 2, batch_first=True)", "self.attend(x, x, x)[0]"),
        "MultiheadAttention(4, 2, rngs=rngs)",
        (2, 3, 4),
    ),
    "a mode and None": (
        NET.format("self.up = nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)", "self.up(x)"),
        "Upsample(scale_factor=2)",
        (1, 2, 3, 4),
    ),
    "directions": (
        NET.format("self.rnn = nn.LSTM(4, 5, bidirectional=True)", "self.rnn(x)[0]"),
        "LSTM(4, 5, rngs=rngs)",
        (3, 2, 4),
    ),
    "every call of two": (
        NET.format("self.up, self.more = nn.Upsample(None, 2, mode='bicubic'), up()", "self.up(x) + self.more(x + 1)")
        + "\n\ndef up():\n    return nn.Upsample(None, 2, mode='bicubic')\n",
        "Upsample(None, 2)",
        (1, 2, 3, 4),
    ),
}


@pytest.mark.parametrize("name", AGREED)
def test_what_all_calls_say_is_in_the_helper_and_in_no_call(name: str) -> None:
    source, call, shape = AGREED[name]
    both = sides(HEAD + source, f"agreed_{list(AGREED).index(name)}")
    assert not both.gaps() and call in both.translation.code
    with jax.enable_x64(True):
        made = both.jax.Net(rngs=nnx.Rngs(0))
        compare(randomized(both.torch.Net()), made, [np.random.default_rng(0).normal(size=shape)])


ASKED = {
    **{mode: f"return F.interpolate(x, (3, 7), mode='{mode}')" for mode in ("area", "nearest-exact", "bicubic")},
    "corners": "return F.interpolate(x, (3, 7), mode='bicubic', align_corners=True)",
    "two calls": "return F.interpolate(F.interpolate(x, 7, mode='area'), 3, mode='area')",
    "a partial": "return functools.partial(F.interpolate, size=4, mode='area')(x)",
    "a partial that is handed on": "return run(functools.partial(F.interpolate, size=4, mode='area'), x)",
    "a partial in a list": "return [functools.partial(F.interpolate, size=4, mode='area')][0](x)",
    "a border": "return F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), padding_mode='border', align_corners=True)",
}
RUN = "def run(g, x):\n    return g(x)\n\n\ndef f(x):\n    "


@pytest.mark.parametrize("name", ASKED)
def test_what_all_calls_ask_of_a_function_is_what_it_does(name: str) -> None:
    both = sides(f"import functools\n{HEAD}{RUN}{ASKED[name]}\n", f"asked_{list(ASKED).index(name)}")
    assert not both.gaps()
    x = np.random.default_rng(0).normal(size=(1, 3, 5, 5))
    with jax.enable_x64(True):
        np.testing.assert_allclose(both.jax.f(jax.numpy.array(x)), both.torch.f(torch.tensor(x)).numpy(), atol=1e-10)


KEPT = {
    "calls that differ": UP + "\n\ndef g():\n    return nn.Upsample(scale_factor=2)\n",
    "a value that is computed": "def f(how):\n    return nn.Upsample(None, 2, mode='bicubic' if how else 'nearest')\n",
    "a class that is handed on": UP + "\n\nlayers = [nn.Upsample]\n",
    "a call by another name": UP + "\n\nup = nn.Upsample\n\n\ndef g():\n    return up(scale_factor=2)\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_where_a_call_may_differ_the_flag_stays(name: str) -> None:
    code = convert(HEAD + KEPT[name]).code
    assert "def __init__(" in code and "mode" in code[code.index("def __init__(") :].partition(":")[0]
    assert "mode=" in code.partition("# PyTorch behaviour")[0]


@pytest.mark.parametrize("call", ["F.kl_div(x, y, reduction='batchmean')", "x.topk(2, largest=False)[0]"])
def test_what_a_function_is_asked_stays_in_its_call(call: str) -> None:
    code = convert(HEAD + f"def f(x: torch.Tensor, y: torch.Tensor):\n    return {call}\n").code
    assert call.rpartition(", ")[2] in code.partition("# PyTorch behaviour")[0]


def test_a_number_is_no_flag() -> None:
    source = NET.format("self.rnn = nn.LSTM(4, 5, num_layers=2)", "self.rnn(x)[0]")
    assert "LSTM(4, 5, num_layers=2, rngs=rngs)" in convert(HEAD + source).code


def test_a_flag_that_cuts_nothing_stays_where_it_is() -> None:
    source = NET.format("self.both = nn.Bilinear(3, 4, 5, bias=False)", "self.both(x, x)")
    assert "Bilinear(3, 4, 5, bias=False, rngs=rngs)" in convert(HEAD + source).code


def test_one_statement_less_is_enough() -> None:
    source = NET.format("self.rnn = nn.GRU(4, 5, batch_first=True)", "self.rnn(x)[0]")
    code = convert(HEAD + source).code
    assert "GRU(4, 5, rngs=rngs)" in code
    assert "return jnp.moveaxis(x, 0, -2), jnp.stack([final])" in code


def test_whole_helpers_are_called_with_every_flag() -> None:
    assert 'mode="bicubic"' in convert(HEAD + UP, helpers="import").code.replace("'", '"')


def test_what_is_converted_later_does_not_use_a_helper_that_was_cut_otherwise() -> None:
    converted = convert(HEAD + UP).code
    code = convert(converted + "\n\nfrom torch import nn\n\n\ndef g():\n    return nn.Upsample(scale_factor=2)\n").code
    assert "return Upsample_(scale_factor=2)" in code and code.count("class Upsample") == 2


def test_a_helper_says_what_was_agreed() -> None:
    text = 'def f(x):\n    """One thing."""\n    return x\n'
    assert with_agreement(text, (("flag", "True"),)) == text.replace("thing.", "thing. Here `flag=True`.")
    long = text.replace("thing", "thing" * 25)
    assert ast.get_docstring(ast.parse(with_agreement(long, (("flag", "True"),))).body[0]) == (  # type: ignore[arg-type]
        f"One {'thing' * 25}.\n\nHere `flag=True`."
    )
    bare = "def f(x):\n    return x\n"
    assert with_agreement(bare, (("flag", "True"),)) == bare


def test_only_calls_of_the_helper_lose_the_argument() -> None:
    agreed = {"f": (("flag", "True"),)}
    assert without_agreed("f(x, flag=True) + g(x, flag=True)", agreed, {}) == "f(x) + g(x, flag=True)"
    assert without_agreed("f_(x, flag=True)", agreed, {"f": "f_"}) == "f_(x)"
    assert without_agreed("functools.partial(f, flag=True)", agreed, {}) == "f"
    assert without_agreed("functools.partial(f, a=1, flag=True)", agreed, {}) == "functools.partial(f, a=1)"
    assert without_agreed("functools.partial(g, flag=True)", agreed, {}) == "functools.partial(g, flag=True)"
