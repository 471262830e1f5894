"""Copied helpers stand behind the code that can be loaded without them, and in front of what runs them."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp import convert
from t2j_lsp.translate.output.helper_place import first_user

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
NET = '''
class Net(nn.Module):
    """A user's."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 2)

    def forward(self, x):
        return self.rnn(x)[0]

'''
PLACES = {
    "nothing runs": (NET, None),
    "a main": (
        f"{NET}\n# Trains.\nif __name__ == '__main__':\n    print(Net()(torch.ones(1, 2, 3)).shape)\n",
        "# Trains.",
    ),
    "an instance": (f"{NET}\nWIDTH = 3\n\nnet = Net()\n\n\ndef f(x):\n    return net(x)\n", "rngs = "),
    "a main that looks names up": (
        f"{NET}\n# Prints.\nif __name__ == '__main__':\n    print(globals()['Net'])\n",
        "# Prints.",
    ),
    "an alias": ("SIZE = 2\n\nloss = nn.MSELoss()\n", "loss = "),
    "a decorator": (
        "def made(f):\n    nn.MSELoss()(torch.ones(1), 1)\n    return f\n\n\n@made\ndef g(x):\n    return x\n",
        "@made",
    ),
    "a default": (f"{NET}\n\ndef g(x, net=Net()):\n    return net(x)\n", "rngs = nnx.Rngs(0)\n\n\ndef g"),
    "an attribute": (f"{NET}\n\nclass All:\n    net = Net()\n", "rngs = "),
    "a base": (f"{NET}\n\nclass Own(nn.GRU):\n    pass\n", "class Own"),
    "a base inside of a class": (f"{NET}\n\nclass All:\n    class Own(nn.GRU):\n        pass\n", "class All"),
    "a derived class": (f"{NET}\n\nclass Own(Net):\n    pass\n", None),
    "a registry": (
        "KINDS = {}\n\n\ndef register(cls):\n    KINDS[cls.__name__] = cls\n    return cls\n\n"
        f"@register{NET}\nfor Kind in KINDS.values():\n    print(Kind()(torch.ones(1, 2, 3)).shape)\n",
        "rngs = ",
    ),
    "a decorator that keeps nothing": (
        f"COUNT = 3\n\n\ndef register(cls):\n    return cls\n\n\n@register{NET}\nprint(COUNT)\n",
        None,
    ),
    "a train step": (
        f"{NET}\n\ndef train(net, x, optimizer):\n    for _ in range(2):\n        optimizer.zero_grad()\n"
        "        loss = net(x).sum()\n        loss.backward()\n        optimizer.step()\n",
        None,
    ),
}


@pytest.mark.parametrize("case", PLACES)
def test_helpers_stand_where_the_file_can_be_loaded(case: str) -> None:
    source, place = PLACES[case]
    done = convert(HEAD + source)
    assert not done.gaps, done.gaps
    exec(compile(done.code, case, "exec"), {"__name__": "loaded"})
    before, header, behind = done.code.partition("# PyTorch behaviour that")
    assert header and ("class Net" in before) == ("class Net" in source)
    assert "def train" not in behind if place is None else f"\n\n\n{place}" in behind
    assert convert(done.code).code == done.code


def test_a_base_that_runs_something_when_it_is_derived_from() -> None:
    text = "class Base:\n    def __init_subclass__(cls):\n        cls.net = gru()\n\n\nclass Own(Base):\n    pass\n"
    own = first_user(ast.parse(text), {"gru"})
    assert isinstance(own, ast.ClassDef) and own.name == "Own"
    assert first_user(ast.parse(text.replace("__init_subclass__", "make")), {"gru"}) is None
