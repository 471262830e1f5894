"""``module.forward`` that is handed on or asked for, and not called."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import inspect\nimport torch\nfrom torch import nn\n\n\n"
OWN = "class Net(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n\n\n"
OWN_CALL = OWN.replace(
    "    def forward", "    def __call__(self, x):\n        return self.forward(x)\n\n    def forward"
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (OWN + "def f(x):\n    return map(Net().forward, x)\n", "map(Net().__call__, x)"),
        (OWN + "class Other(Net):\n    pass\n\n\ndef f(x):\n    return map(Other().forward, x)\n", "Other().__call__"),
        ("def f(net: nn.Module, x):\n    return map(net.forward, x)\n", "map(net.__call__, x)"),
        ("def f(x):\n    net = nn.Linear(3, 4)\n    return map(net.forward, x)\n", "map(net.__call__, x)"),
        (OWN + "def f():\n    return inspect.signature(Net().forward)\n", "inspect.signature(Net().__call__)"),
        (OWN_CALL + "def f(x):\n    return map(Net().forward, x)\n", "map(Net().forward, x)"),
        ("def f(frame, x):\n    return map(frame.forward, x)\n", "map(frame.forward, x)"),
    ],
)
def test_what_a_module_computes_as_a_value(text: str, wanted: str) -> None:
    translation = convert(HEAD + text)
    assert wanted in translation.code.replace("rngs=rngs", "")
    assert not translation.gaps


def test_the_parameters_of_a_layer_are_called_otherwise() -> None:
    translation = convert(HEAD + "def f(net: nn.Module):\n    return inspect.getfullargspec(net.forward).args\n")
    assert [gap.reason for gap in translation.gaps] == ["Flax's layers have other names for what they are called with"]
