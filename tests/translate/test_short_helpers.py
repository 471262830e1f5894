"""Copied helpers without the parameters that no call of an object passes, and with few statements."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp.translate.source.folding.merging import merged

from .test_cut_helpers import definitions, parameters

# --- what no call passes ----------------------------------------------------------------------------------------------

RECURRENT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 5)

    def forward(self, x, h):
        {}
"""
PROGRAM = "\n\nnet = Net()\nprint(net)\n"
CALLS = {
    "a call": ("return self.rnn(x)", ["self", "x"]),
    "attributes beside it": ("return self.rnn(x)[0] + self.rnn.hidden_size", ["self", "x"]),
    "a call that passes it": ("return self.rnn(x)[0] + self.rnn(x, h)[0]", ["self", "x", "hx"]),
    "handed on": ("return self.other(self.rnn, x)", ["self", "x", "hx"]),
    "a list": ("return [self.rnn][0](x)", ["self", "x", "hx"]),
    "a name": ("rnn = self.rnn\n        return rnn(x, h)", ["self", "x", "hx"]),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_parameter_of_call_goes_where_every_call_of_the_object_is_seen(case: str) -> None:
    body, wanted = CALLS[case]
    other = "\n    def other(self, rnn, x):\n        return rnn(x, x[:1])[0]\n"
    assert parameters(definitions(RECURRENT.format(body) + other + PROGRAM)["GRU"], "__call__") == wanted


def test_objects_in_a_list_keep_the_parameters_of_their_call() -> None:
    source = RECURRENT.replace("nn.GRU(3, 5)", "nn.ModuleList([nn.GRU(3, 5)])")
    code = source.format("return self.rnn[0](x)") + PROGRAM
    assert parameters(definitions(code)["GRU"], "__call__") == ["self", "x", "hx"]


def test_other_files_may_call_the_layers_of_a_file_that_is_no_program() -> None:
    code = RECURRENT.format("return self.rnn(x)")
    assert parameters(definitions(code)["GRU"], "__call__") == ["self", "x", "hx"]


GIVEN = "class Net(nn.Module):\n    def __init__(self, pad=None):\n        super().__init__()\n" + " " * 8


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("self.e = nn.Embedding(9, 3, padding_idx=1)\n", "padding_idx, *"),
        ("self.e = nn.Embedding(9, 3, padding_idx=pad)\n", "padding_idx=None, *"),
        ("self.e, self.f = nn.Embedding(9, 3, 1), nn.Embedding(9, 3, pad)\n", "padding_idx=None, *"),
    ],
)
def test_a_parameter_that_is_never_none_has_no_default_and_no_test(made: str, wanted: str) -> None:
    code = ast.unparse(definitions(GIVEN + made)["Embedding"])
    assert wanted in code and ("is None" in code) == ("=None" in wanted)


MERGED = {
    "x = a @ b\n    x += c": "x = a @ b + c",
    "x = a @ b\n    x += c * x": None,
    "x = a\n    x += c": None,
    "x = []\n    y = a\n    x.append(y)": "x = [a]",
    "x = []\n    y = len(x)\n    x.append(y)": "x = []\n    x.append(len(x))",
    "x = jnp.sin(a)\n    return jnp.mean(x)": "return jnp.mean(jnp.sin(a))",
    "x = a + b\n    return jnp.mean(x)": "return jnp.mean(a + b)",
    "x = a + b\n    return x * c": "return (a + b) * c",
    "x = a, b\n    return f(x)": "return f((a, b))",
    "x = a\n    return x + x": None,
    "x = g(a)\n    return f(x)": "return f(g(a))",
    "x = g(a)\n    return f(h(b), x)": None,
    "x = g(a)\n    return self.var[...] + x": None,
    "x = a @ b\n    y = jnp.sin(x)": "y = jnp.sin(a @ b)",
    "x = a @ b\n    a.of = x": "a.of = a @ b",
    "x = a @ b\n    c.add(x)": "c.add(a @ b)",
    "x = g(a)\n    y[x] = b": None,
    "x = g(a)\n    y, z = x": None,
    "x = [g(a), b]\n    return f(*x)": "return f(g(a), b)",
    "x = g(a)\n    return lambda: x": None,
    "x = g(a)\n    return [x for _ in b]": None,
    "x = g(a)\n    return x if b else c": None,
    f"x = {'a' * 40}(b)\n    return {'c' * 40}(x)": None,
}


@pytest.mark.parametrize("before", MERGED)
def test_neighbouring_statements_that_are_one(before: str) -> None:
    head = "def f(a, b, c):\n    "
    after = MERGED[before]
    assert merged(f"{head}{before}\n", 88) == f"{head}{before if after is None else after}\n"
