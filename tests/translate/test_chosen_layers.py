"""Layers by a name that the code around it says: ``getattr(nn, kind)`` is a table of the classes that it may be."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp import convert

MODULE = """\
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--cell-kind", default="GRU", choices=["LSTM", "GRU"])
args = parser.parse_args([])


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        {code}

    def forward(self, x):
        return self.rnn(x)[0]
"""
IN = 'if kind in ["LSTM", "GRU"]:\n            self.rnn = getattr(nn, kind)(3, 4, 2, batch_first=True)'
OR = 'if kind == "LSTM" or kind == "GRU":\n            self.rnn = getattr(nn, kind)(3, 4, 2, batch_first=True)'
ASSERTED = 'assert kind in ("LSTM", "GRU"), kind\n        self.rnn = getattr(nn, kind)(3, 4, 2, batch_first=True)'
ELSE = 'if not kind in ["LSTM", "GRU"]:\n            raise ValueError\n        else:\n            self.rnn = ' + (
    "getattr(nn, kind)(3, 4, 2, batch_first=True)"
)
RAISED = 'if kind != "LSTM" and kind != "GRU":\n            raise ValueError\n        self.rnn = ' + (
    "getattr(nn, kind)(3, 4, 2, batch_first=True)"
)
PARSED = "self.rnn = getattr(nn, args.cell_kind)(3, 4, 2, batch_first=True)"


@pytest.mark.parametrize("code", [IN, OR, ASSERTED, ELSE, RAISED, PARSED])
def test_a_layer_by_its_name_is_looked_up_in_a_table(code: str) -> None:
    done = convert(MODULE.format(code=code))
    assert not done.gaps, done.gaps
    assert '{"LSTM": LSTM, "GRU": GRU}[' in done.code
    made: dict[str, Any] = {}
    exec(done.code, made)
    for kind in ("LSTM", "GRU"):
        model = made["Model"](kind, rngs=nnx.Rngs(0))
        expected = "GRU" if "args." in code else kind
        assert type(model.rnn).__name__ == expected
        assert jax.eval_shape(model, jnp.ones((2, 5, 3))).shape == (2, 5, 4)


@pytest.mark.parametrize(
    "code",
    [
        "self.rnn = getattr(nn, kind)(3, 4)",
        'if kind in ["LSTM", "GRU"]:\n            kind = kind + "Cell"\n            self.rnn = getattr(nn, kind)(3, 4)',
        'if kind not in ["LSTM", "GRU"]:\n            self.rnn = getattr(nn, kind)(3, 4)',
        'if kind not in ["LSTM", "GRU"]:\n            print(kind)\n        self.rnn = getattr(nn, kind)(3, 4)',
        'if kind in ["LSTM", "Own"]:\n            self.rnn = getattr(nn, kind)(3, 4)',
    ],
    ids=["unknown", "changed", "others", "goes on", "no layer"],
)
def test_a_name_that_nothing_tells_stays_marked(code: str) -> None:
    assert convert(MODULE.format(code=code)).gaps


def test_keywords_of_few_layers_tell_which_it_may_be() -> None:
    """Found in torchaudio: ``getattr(nn, rnn_type)(..., bidirectional=True)``."""
    done = convert(MODULE.format(code="self.rnn = getattr(nn, kind)(3, 4, batch_first=True, bidirectional=True)"))
    assert not done.gaps, done.gaps
    made: dict[str, Any] = {}
    exec(done.code, made)
    for kind in ("RNN", "LSTM", "GRU"):
        model = made["Model"](kind, rngs=nnx.Rngs(0))
        assert type(model.rnn).__name__ == kind
        assert jax.eval_shape(model, jnp.ones((2, 5, 3))).shape == (2, 5, 8)


def test_no_other_layer_of_pytorch_takes_such_keywords() -> None:
    nn = pytest.importorskip("torch.nn")
    takes = {
        name
        for name, cls in vars(nn).items()
        if isinstance(cls, type) and "bidirectional" in inspect.signature(cls).parameters
    }
    assert takes - {"RNNBase"} <= {"RNN", "LSTM", "GRU"}


@pytest.mark.parametrize("spelling", ["getattr(nn, kind)", "nn.__dict__[kind]"])
def test_a_layer_that_nothing_tells_is_named_in_the_reason(spelling: str) -> None:
    (gap,) = convert(MODULE.format(code=f"self.rnn = {spelling}(3, 4)")).gaps
    assert f"what {spelling} is isn't known here" in gap.reason


@pytest.mark.parametrize(
    "callee", ['(nn.LSTM if kind == "LSTM" else nn.GRU)', '( nn.LSTM if kind == "LSTM"\n  else nn.GRU )']
)
def test_a_callee_in_brackets_is_called_with_random_numbers(callee: str) -> None:
    """The brackets are no part of the callee's own place in the text."""
    done = convert(MODULE.format(code=f"self.rnn = {callee}(3, 4, batch_first=True)"))
    assert not done.gaps, done.gaps
    made: dict[str, Any] = {}
    exec(done.code, made)
    for kind in ("LSTM", "GRU"):
        model = made["Model"](kind, rngs=nnx.Rngs(0))
        assert type(model.rnn).__name__ == kind
        assert jax.eval_shape(model, jnp.ones((2, 5, 3))).shape == (2, 5, 4)


def test_a_callee_in_brackets_that_stays_keeps_them() -> None:
    done = convert(
        "import torch\n\ndef f(x: torch.Tensor, c):\n"
        "    return (torch.ops.aten.cumsum if c else torch.ops.aten.cumprod)(torch.abs(x), 0)\n"
    )
    assert done.gaps
    compile(done.code, "converted", "exec")
    assert "(torch.ops.aten.cumsum if c else torch.ops.aten.cumprod)(" in done.code


CALLED = """\
from torch import nn


class Net(nn.Module):
    def __init__(self, size, act="ReLU", *, rnn="GRU"):
        super().__init__()
        self.act = getattr(nn, act)()
        self.rnn = getattr(nn, rnn)(3, size)


def head(act):
    return getattr(nn, act)(0.2)


net = Net(4)
other = {other}
last = head("LeakyReLU")
print(net)
"""


def test_what_a_programs_calls_give_to_a_parameter_tells_which_layer_it_may_be() -> None:
    done = convert(CALLED.format(other='Net(2, "Tanh", rnn="LSTM")'))
    assert not done.gaps, done.gaps
    assert '{"ReLU": ReLU, "Tanh": Tanh}[act](rngs=rngs)' in done.code
    assert '{"GRU": GRU, "LSTM": LSTM}[rnn](3, size, rngs=rngs)' in done.code
    assert '{"LeakyReLU": LeakyReLU}[act](0.2, rngs=rngs)' in done.code


@pytest.mark.parametrize(
    "other",
    ["Net(2, name, rnn=name)", "Net(*sizes)", "Net(2, **options)", "map(Net, (1, 2))", "Net(2, 'Own', rnn='Own')"],
)
def test_calls_that_may_give_other_names_tell_nothing(other: str) -> None:
    assert len(convert(CALLED.format(other=other)).gaps) == 2


def test_a_library_may_be_called_from_anywhere() -> None:
    assert len(convert(CALLED.format(other="None").partition("\n\n\nnet =")[0]).gaps) == 3


def test_a_class_that_is_named_and_not_called_gets_no_other_names() -> None:
    source = CALLED.format(other='Deep(2, "Tanh", rnn="LSTM") if isinstance(net, Net) else None')
    source = source.replace("super()", "super(Net, self)")
    source = source.replace(
        "def head(", "class Deep(Net):\n    pass\n\n\ndef same(net: Net) -> Net:\n    return net\n\n\ndef head("
    )
    done = convert(source)
    assert not done.gaps, done.gaps
    assert '{"ReLU": ReLU, "Tanh": Tanh}[act](rngs=rngs)' in done.code


def test_a_class_below_with_a_constructor_may_give_any_name() -> None:
    below = (
        "class Deep(Net):\n    def __init__(self, name):\n        super().__init__(2, name, rnn=name)\n\n\ndef head("
    )
    assert len(convert(CALLED.format(other="Deep('Own')").replace("def head(", below)).gaps) == 2
