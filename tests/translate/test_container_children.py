"""The children of a Sequential and of a list of modules, asked for where their order matters."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """from torch import nn


class Net(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
        self.blocks = nn.ModuleList([nn.Linear(2, 2) for _ in range(wide)])
        self.act = nn.ReLU()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(self.act(self.stem(x)))


"""
OF_CONTAINERS = {
    "print([name for name, _ in net.stem.named_children()])": "[name for name, _ in named_contents(net.stem)]",
    "at = [name for name, _ in net.stem.named_children()].index('2')\nprint(at)": "in named_contents(net.stem)]",
    "kept = list(net.blocks.named_children())[:1]\nprint(kept)": "list(named_contents(net.blocks))[:1]",
    "for i, (name, block) in enumerate(net.blocks.named_children()):\n    print(i, name)": "named_contents(net.blocks)",
    "for i, block in enumerate(net.blocks.children()):\n    print(i, block.bias)": "enumerate(net.blocks)",
    "kept = list(net.blocks.children())[:-1]\nprint(kept)": "list(net.blocks)[:-1]",
    "parts = net.blocks.children()\nprint(next(parts))": "parts = iter(net.blocks)",
}


@pytest.mark.parametrize("asked", OF_CONTAINERS)
def test_they_are_what_it_holds(asked: str) -> None:
    result = convert(f"{HEAD}net = Net(3)\n{asked}\n")
    assert not result.gaps and OF_CONTAINERS[asked] in result.code


@pytest.mark.parametrize(
    "asked",
    [
        "print([name for name, _ in net.named_children()])",  # its activation is a function in Flax
        "def names(module: nn.Module):\n    return [name for name, _ in module.named_children()]",
        "def names(module):\n    return [n for n, _ in module.named_children()] if isinstance(module, nn.ReLU) else []",
    ],
)
def test_others_may_have_functions_among_their_parts(asked: str) -> None:
    assert convert(f"{HEAD}net = Net(3)\n{asked}\n").gaps


@pytest.mark.parametrize(
    "held",
    [
        "act = nn.Tanh()\nnet = nn.Sequential(nn.Linear(4, 4), act, nn.Linear(4, 4), act)",
        "fc = nn.Linear(4, 4)\nnet = nn.ModuleList([fc, nn.Linear(4, 4), fc])",
        "net = nn.ModuleList([nn.Linear(4, 4), None])",
    ],
)
@pytest.mark.parametrize(
    "asked",
    ["print(len(list(net.children())))", "for layer in net.children():\n    x = layer(x)", "list(net.children())"],
)
def test_one_that_holds_a_child_twice_or_none_is_said(held: str, asked: str) -> None:
    """PyTorch tells of a child once, and of no None."""
    assert convert(f"import torch\nfrom torch import nn\n\nx = torch.ones(2, 4)\n{held}\n{asked}\n").gaps


WITH_FUNCTION = "net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))"


@pytest.mark.parametrize(
    "asked",
    [
        "for name, child in net.named_children():\n    print(name, sum(p.numel() for p in child.parameters()))",
        "for i, child in enumerate(reversed(list(net.children()))):\n    print(i, child.training)",
        "part = net[1:]\nprint([name for name, _ in part.named_children()])",  # PyTorch keeps the names
    ],
)
def test_what_is_asked_of_one_that_may_be_a_function_is_said(asked: str) -> None:
    assert convert(f"import torch\nfrom torch import nn\n\n{WITH_FUNCTION}\n{asked}\n").gaps
