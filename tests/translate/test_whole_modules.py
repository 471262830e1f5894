"""Whole modules in files: they are saved as state dicts, and a file that is read as a module is a gap."""

from __future__ import annotations

import pytest

from .convert import body, run

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(x)

net = Net()
x = torch.ones(2, 3)
"""


def test_a_module_is_saved_as_its_state() -> None:
    result = run(NET + 'torch.save(net, "net.pth")\n')
    assert not result.gaps and 'save_pickle(torch_arrays(net), "net.pth")' in result.code
    assert any("not its class" in finding.message for finding in result.findings)


def test_a_module_in_a_dict_is_a_gap() -> None:
    assert [gap.name for gap in run(NET + 'torch.save({"net": net, "epoch": 3}, "net.pth")\n').gaps] == ["torch.save"]


def test_a_state_in_a_dict_is_saved() -> None:
    assert 'save_pickle({"net": torch_arrays(net)}, "net.pth")' in body(
        NET + 'torch.save({"net": net.state_dict()}, "net.pth")\n'
    )


@pytest.mark.parametrize(
    "use",
    [
        'm = torch.load("net.pth")\nm.eval()\n',
        'm = torch.load("net.pth")\nprint(m(x))\n',
        'm = torch.load("net.pth")["model"].to("cpu")\nprint(m(x))\n',
        'print(torch.load("net.pth")(x))\n',
        'def load(path):\n    m = torch.load(path)\n    return m\n\nm = load("net.pth")\nprint(m(x))\n',
        'class Held:\n    def __init__(self):\n        self.m = torch.load("net.pth")\n\n    def go(self):\n'
        "        return self.m(x)\n",
    ],
)
def test_a_file_that_is_read_as_a_module_is_a_gap(use: str) -> None:
    assert [gap.name for gap in run(NET + use).gaps] == ["torch.load"]


@pytest.mark.parametrize(
    "use",
    [
        'net.load_state_dict(torch.load("net.pth"))\n',
        'state = torch.load("net.pth")\nprint(state["epoch"], state["fc.weight"].mean())\n',
        'data = torch.load("data.pt")\nprint(net(data.to("cpu")))\n',
    ],
)
def test_states_and_tensors_of_a_file_are_read(use: str) -> None:
    result = run(NET + use)
    assert not result.gaps and "load_pickle(" in result.code
