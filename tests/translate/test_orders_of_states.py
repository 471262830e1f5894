"""States that are only saved and loaded by name need not be in PyTorch's order; whoever walks one gets it so."""

from __future__ import annotations

import ast

import pytest

from .test_cut_helpers import definitions, parameters

NET = """net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
{}
"""
SAVE = "torch.save(net.state_dict(), 'net.pt')\n"
DICT = "torch.save({'net': net.state_dict(), 'epoch': 3}, 'net.pt')\n"
FUNCTION = "def save(state, path):\n    torch.save(state, path)\n\n\nsave({'net': net.state_dict()}, 'net.pt')\n"
ANY_ORDER = {
    "saved": SAVE,
    "saved in a dict": DICT,
    "saved by a name": "state = {'net': net.state_dict()}\ntorch.save(state, 'net.pt')\n",
    "saved by a function": FUNCTION,
    "saved and loaded": f"{SAVE}net.load_state_dict(torch.load('net.pt'))\n",
    "loaded from a dict": f"{DICT}all = torch.load('net.pt')\nnet.load_state_dict(all['net'])\nprint(all['epoch'])\n",
    "handed to another": f"other = nn.Sequential(nn.Linear(2, 3))\nother.load_state_dict(net.state_dict())\n{SAVE}",
    "asked for one array": f"{SAVE}print(net.state_dict()['0.bias'])\n",
}
IN_ORDER = {
    "walked": f"{SAVE}for name, x in net.state_dict().items():\n    print(name, x.shape)\n",
    "walked when it is read": f"{SAVE}for name in torch.load('net.pt'):\n    print(name)\n",
    "walked behind a key": f"{DICT}kept = torch.load('net.pt')\nfor name in kept['net']:\n    print(name)\n",
    "printed by a function": FUNCTION.replace("    torch", "    print(list(state['net']))\n    torch"),
    "beside parameters that are walked": f"{SAVE}for name, p in net.named_parameters():\n    print(name, p.shape)\n",
}


def is_sorted(source: str) -> bool:
    """Whether the states of a converted program are in PyTorch's order."""
    return "_pytree__nodes" in ast.unparse(definitions(NET.format(source))["saved_places"])


@pytest.mark.parametrize("case", ANY_ORDER)
def test_states_that_are_saved_and_loaded_are_in_any_order(case: str) -> None:
    assert not is_sorted(ANY_ORDER[case])


@pytest.mark.parametrize("case", IN_ORDER)
def test_states_that_are_walked_are_in_pytorchs(case: str) -> None:
    assert is_sorted(IN_ORDER[case])


def test_one_order_serves_all_who_ask() -> None:
    walked = definitions(NET.format(IN_ORDER["walked"] + "net.load_state_dict(torch.load('net.pt'))\n"))
    assert parameters(walked["saved_places"]) == ["module", "prefix"]
    assert "ordered" not in ast.unparse(walked["load_state_dict"])


@pytest.mark.parametrize("case", ["saved", "saved and loaded", "asked for one array"])
def test_files_of_states_alone_need_no_pickler(case: str) -> None:
    made = definitions(NET.format(ANY_ORDER[case]))
    assert "ArrayPickler" not in made and "pickle.dump(jax.device_get(value), file)" in ast.unparse(made["save_pickle"])


@pytest.mark.parametrize("source", [DICT, ANY_ORDER["saved by a name"], FUNCTION, IN_ORDER["walked"]])
def test_files_with_anything_else_or_in_pytorchs_order_have_one(source: str) -> None:
    assert "ArrayPickler" in definitions(NET.format(source))
