"""Which calls of ``state_dict()`` on a parameter that is called a model are those of a module, and which read names."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

READS = {
    "a shape": "    return {k: v.reshape(model.state_dict()[k].shape) for k, v in given.items()}\n",
    "a shape through a name": "    own = model.state_dict()\n    return [k for k in given if own[k].ndim == 1]\n",
    "a dotted name": "    return 'head.fc.weight' in model.state_dict() and torch.relu(given['x'])\n",
}
UNSURE = {
    "any name": "    return 'step' in model.state_dict()\n",
    "a name that has two values": "    own = model.state_dict()\n    own = own or given\n    return own['x'].shape\n",
    "values in a dict of dicts": "    return model.state_dict()['state']['x'].shape\n",
    "nothing": "    return model.state_dict()\n",
}
OWN = """

class Average:
    def __init__(self, x):
        self.x = torch.ones(x)

    def state_dict(self):
        return {'x': self.x}
"""


def _convert(body: str, name: str = "model", more: str = "") -> list[str]:
    done = convert(f"import torch\n\n\ndef f(given, {name}):\n{body.replace('model', name)}{more}")
    assert done.gaps or f"{name}.state_dict" not in done.code
    return [gap.reason for gap in done.gaps]


@pytest.mark.parametrize("case", READS)
def test_what_has_tensors_in_its_state_is_a_module(case: str) -> None:
    assert not _convert(READS[case])
    assert any("isn't known" in reason for reason in _convert(READS[case], "optimizer"))


@pytest.mark.parametrize("case", READS)
def test_a_class_of_the_file_may_have_a_state_of_its_own(case: str) -> None:
    own = f"import torch\n\n\ndef f(given, model):\n{READS[case]}{OWN}"
    assert "model.state_dict()" in convert(own).code


@pytest.mark.parametrize("case", UNSURE)
def test_what_may_have_anything_is_a_gap(case: str) -> None:
    assert _convert(UNSURE[case])


NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.biases = nn.Parameter(torch.zeros(3))
        self.fc = nn.Linear(2, 3)

    def names(self):
        return {names}
"""


@pytest.mark.parametrize(
    "names",
    [
        "{k for k in self.state_dict().keys() if 'bias' in k}",
        "{k for k, v in self.state_dict().items() if v.ndim == 1}",
        "sorted(k for k, _ in self.state_dict().items())",
    ],
)
def test_names_of_a_state_are_no_tensors(names: str) -> None:
    done = convert(NET.replace("{names}", names))
    assert not done.gaps
    assert "self.state_dict()" not in done.code


@pytest.mark.parametrize(
    "kept", ["{k: v for k, v in self.state_dict().items()}", "[v for v in self.state_dict().values()]"]
)
def test_tensors_of_a_state_that_are_kept_are_a_gap(kept: str) -> None:
    assert convert(NET.replace("{names}", kept)).gaps
