"""Copied classes are cut to the methods and strings that a file uses, their bases among them."""

from __future__ import annotations

import ast

import jax
import numpy as np
import pytest

from t2j_lsp import convert
from t2j_lsp.translate.source.folding.hierarchy import merged_class

from .side_by_side import compare, randomized, sides
from .test_cut_helpers import HEAD, LIBRARY, PROGRAM, definitions, parameters


def test_a_container_keeps_the_methods_that_its_file_uses() -> None:
    source = LIBRARY.format("layers = nn.Sequential(nn.ReLU(), nn.ReLU())", "self.layers[0](x){0}")
    read = definitions(source.replace("{0}", "") + PROGRAM)["IndexedSequential"]
    assert isinstance(read, ast.ClassDef)
    methods = {s.name: ast.unparse(s) for s in read.body if isinstance(s, ast.FunctionDef)}
    assert methods.keys() == {"__len__", "__iter__", "__getitem__"} and "slice" not in methods["__getitem__"]
    sliced = definitions(source.replace("[0](x){0}", "[:1](x)"))["IndexedSequential"]
    assert "IndexedSequential(*" in ast.unparse(sliced) and "__setitem__" not in ast.unparse(sliced)
    unread = definitions(
        "class Net(nn.Sequential):\n    def __init__(self):\n        layers = []\n        layers.append(nn.ReLU())\n"
        "        super().__init__(*layers)\n"
    )["Sequential"]
    assert isinstance(unread, ast.ClassDef)
    assert {s.name for s in unread.body if isinstance(s, ast.FunctionDef)} == {"__init__", "__call__"}
    again = source.replace(
        "{0}", "\n\n    def cut(self):\n        del self.layers[1]\n        self.layers.insert(0, nn.ReLU())"
    )
    defined = {s.name for s in definitions(again)["Sequential"].body if isinstance(s, ast.FunctionDef)}
    assert {"insert", "__delitem__", "_assign"} <= defined


DICTS = {
    "given": ("self.parts = nn.ModuleDict({'z': nn.Linear(5, 4), 'a': nn.Linear(5, 4)})", "self.parts['a'](x)"),
    "updated": (
        "self.parts = nn.ModuleDict()\n        self.parts.update({'z': nn.Linear(5, 4), 'a': nn.Linear(5, 4)})",
        "sum(part(x) * i for i, part in enumerate(self.parts.values()))",
    ),
    "shortened": (
        "self.parts = nn.ModuleDict({'z': nn.Linear(5, 4), 'a': nn.Linear(5, 4)})\n        self.parts.pop('z')",
        "self.parts['a'](x) * len(self.parts)",
    ),
    "given an item": (
        "self.parts = nn.ModuleDict({'z': nn.Linear(5, 4)})\n        self.parts['a'] = nn.Linear(5, 4)",
        "self.parts['a'](x) * len(self.parts)",
    ),
}


def test_a_dict_whose_children_are_read_by_name_is_flax_own() -> None:
    head = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {}\n\n"
    for result, stock in [
        ("self.parts.z(x) + self.parts['a'](x)", True),
        ("self.parts[list(self.state_dict())[0][6]](x)", False),
        ("sum(self.parts[name](x) for name in self.parts)", False),
        ("sum(part(x) for part in self.parts.values())", False),
        ("getattr(self, 'parts').z(x)", False),
    ]:
        source = head.format(DICTS["given"][0]) + f"    def forward(self, x):\n        return {result}\n"
        code = convert(HEAD + source).code
        assert ("self.parts = nnx.Dict(" in code, "class ModuleDict" not in code) == (stock, stock), result


@pytest.mark.parametrize("name", DICTS)
def test_a_container_keeps_the_methods_that_inherited_ones_call(name: str) -> None:
    """``update`` and ``pop`` of the base set and delete items by the class's own methods, and no file names these."""
    made, result = DICTS[name]
    source = f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {made}\n\n"
    both = sides(HEAD + source + f"    def forward(self, x):\n        return {result}\n", "kept_methods")
    assert not both.gaps()
    with jax.enable_x64(True):
        module = both.jax.Net(rngs=both.jax.nnx.Rngs(0))
        compare(randomized(both.torch.Net()), module, [np.random.default_rng(0).normal(size=(2, 5))])


DRAWS = (
    "from torch.distributions import Categorical\nd = Categorical({})\nprint(d.sample(), d.log_prob(torch.tensor(1)))\n"
)


@pytest.mark.parametrize(
    ("given", "gone"), [("torch.ones(3)", "log_softmax"), ("logits=torch.ones(3)", "jnp.clip")], ids=["probs", "logits"]
)
def test_a_distribution_is_made_of_what_it_is_given(given: str, gone: str) -> None:
    text = ast.unparse(definitions(DRAWS.format(given))["Categorical"])
    assert gone not in text and "None.sum" not in text and "event_shape" not in text
    assert "rngs.categorical(jnp.log(self.probs))" in text and "batch_shape" not in text


HOOKED = (
    "net = nn.Linear(3, 2)\nhandle = net.register_forward_hook(lambda m, i, o: print(o.shape))\nnet(torch.ones(2, 3))\n"
)


@pytest.mark.parametrize("rest", ["handle.remove()\n", "with handle:\n    net(torch.ones(2, 3))\n"])
def test_what_a_with_block_calls_is_there_where_there_is_one(rest: str) -> None:
    text = ast.unparse(definitions(HOOKED + rest)["HookHandle"])
    assert ("__enter__" in text) == rest.startswith("with")


BASE = """class Low:
    def __init__(self, size, rate=1):
        self.size = size
        self.step(rate)

    def step(self, rate):
        def twice(x):
            return 2 * x
        self.rate = twice(rate)
"""


DERIVED = """class High(Low):
    def __init__(self, size, more):
        self.more = more
        super().__init__(size)
        self.made = True

    def step(self, rate):
        {}super().step(rate + self.more)
        self.last = rate
"""


def test_a_method_that_extends_the_bases_has_it_in_its_place() -> None:
    one = merged_class(BASE, DERIVED.format(""))
    assert one is not None and "super()" not in one
    scopes: list[dict[str, type]] = [{}, {}]
    exec(BASE + DERIVED.format(""), scopes[0])
    exec(one, scopes[1])
    both = [vars(scope["High"](3, 4)) for scope in scopes]
    assert both[0] == both[1] == {"more": 4, "size": 3, "rate": 10, "last": 1, "made": True}


@pytest.mark.parametrize(
    ("base", "derived"),
    [
        pytest.param(BASE, DERIVED.format("self.answer = "), id="a value that is used"),
        pytest.param(BASE + "        return self\n", DERIVED.format(""), id="a base that returns"),
        pytest.param(BASE, DERIVED.format("twice = 3\n        "), id="a name of both"),
        pytest.param(BASE, DERIVED.format("super().step(rate)\n        "), id="called twice"),
    ],
)
def test_what_cannot_be_put_in_its_place_stays_two_classes(base: str, derived: str) -> None:
    assert merged_class(base, derived) is None


ENCODER = """
layer = nn.TransformerEncoderLayer(4, 2, 8)
net = nn.TransformerEncoder(layer, 2)
print(net(torch.ones(3, 1, 4)).shape{})
"""


def test_what_a_layer_asks_of_another_one_is_all_that_this_has() -> None:
    cut = parameters(definitions(ENCODER.format(""))["MultiheadAttention"], "__call__")
    assert "need_weights" not in cut and "average_attn_weights" not in cut and "key_padding_mask" in cut
    asked = ENCODER.format(", layer.self_attn(*[torch.ones(3, 1, 4)] * 3, need_weights=True)[1]")
    assert "need_weights" in parameters(definitions(asked)["MultiheadAttention"], "__call__")
