"""The generator that a seed gives, kept in an attribute or a variable."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert
from tests.translate.side_by_side import sides

HEAD = "import random\nimport torch\nimport torch.nn as nn\n\n\n"
NET = """class Net(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.seed = torch.manual_seed(seed)
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)
"""
AGENT = "\n\nclass Agent:\n    def __init__(self, seed):\n        self.seed = seed\n        random.seed(self.seed)\n"
UNREAD = "nothing in this file reads the generator that self.seed keeps, and it isn't kept"


@pytest.mark.parametrize("other", ["", AGENT], ids=["alone", "another class reads its own"])
def test_a_generator_that_nothing_reads_is_not_kept(other: str) -> None:
    done = convert(HEAD + NET + other)
    assert not done.gaps and [f.reason for f in done.findings] == [UNREAD]
    assert "        rngs = nnx.Rngs(seed)\n        self.fc = nnx.Linear(" in done.code


@pytest.mark.parametrize(
    "reader",
    [
        "\n    def draw(self):\n        return self.seed.initial_seed()\n",
        "\n    def draw(self):\n        return vars(self)\n",
        "\n\ndef draw(net):\n    return net.seed\n",
        "\n\ndef draw(net):\n    return getattr(net, 'seed')\n",
        "\n\nclass More(Net):\n    def draw(self):\n        return self.seed\n",
    ],
    ids=["a method", "all attributes", "whatever it is", "by its name", "a class that derives from it"],
)
def test_one_that_something_may_read_is_a_gap(reader: str) -> None:
    done = convert(HEAD + NET + reader)
    assert any(gap.name == "torch.manual_seed" for gap in done.gaps)
    assert "self.seed = torch.manual_seed(seed)" in done.code


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("_ = torch.manual_seed(3)\nx = torch.randn(2)\n", False),
        ("def f(n):\n    g = torch.manual_seed(3)\n    return torch.randn(n)\n\n\ng = 1\nprint(g)\n", False),
        ("g = torch.manual_seed(3)\nprint(g.initial_seed())\n", True),
        ("def f():\n    global g\n    g = torch.manual_seed(3)\n\n\nprint(g)\n", True),
    ],
    ids=["a name for nothing", "of a function", "read", "of the file"],
)
def test_so_it_is_with_variables(source: str, kept: bool) -> None:
    done = convert(HEAD + source)
    assert ("= torch.manual_seed(3)" in done.code) is kept is bool(done.gaps)
    assert ("rngs = nnx.Rngs(3)" in done.code) is not kept


def test_a_module_that_seeds_itself_is_the_same_each_time() -> None:
    pair = sides(HEAD + NET, "kept_generators")
    same = [pair.torch.Net(4).fc.weight.detach().numpy() for _ in range(2)]
    np.testing.assert_array_equal(*same)
    same = [np.asarray(pair.jax.Net(4, rngs=nnx.Rngs(n)).fc.kernel[...]) for n in range(2)]
    np.testing.assert_array_equal(*same)
    assert not np.array_equal(same[0], np.asarray(pair.jax.Net(5, rngs=nnx.Rngs(0)).fc.kernel[...]))
