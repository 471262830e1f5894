"""Loops that take batches from several loaders at once, or from one behind the other."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

HEAD = """\
import itertools
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.linspace(-1, 1, 24).reshape(8, 3)
few = DataLoader(TensorDataset(x, torch.arange(8) % 2), batch_size=4)
many = DataLoader(TensorDataset(x + 1), batch_size=2)
model = nn.Linear(3, 2)
for p in model.parameters():
    nn.init.constant_(p, 0.1)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
criterion = nn.CrossEntropyLoss()

"""
LOSS = "criterion(model({a}), {b}) + {rate} * model({c}).pow(2).mean()"
LOOP = """\
for {targets} in {walked}:
    {first}loss = {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(round(loss.item(), 5))
"""
WALKED = {
    "two loaders": ("(a, b), (c,)", "zip(few, many)", "", "0.5"),
    "the shorter one again": ("(a, b), c", "zip(few, itertools.cycle(many))", "(c,) = c\n    ", "0.5"),
    "counted": ("i, ((a, b), (c,))", "enumerate(zip(few, many))", "", "(i + 1)"),
    "beside numbers": ("(a, b), rate, (c,)", "zip(few, [0.5, 0.25], many)", "", "rate"),
    "whole batches": ("one, other", "zip(few, many)", "a, b = one\n    c = other[0]\n    ", "0.5"),
}


@pytest.mark.parametrize("name", WALKED)
def test_batches_of_several_loaders_become_arrays(name: str) -> None:
    targets, walked, first, rate = WALKED[name]
    loss = LOSS.format(a="a", b="b", c="c", rate=rate)
    source = HEAD + LOOP.format(targets=targets, walked=walked, first=first, loss=loss)
    result = convert(source)
    assert not result.gaps
    assert printed(result.code) == printed(source)


def test_one_loader_behind_the_other() -> None:
    loop = LOOP.format(targets="a, b", walked="itertools.chain(few, few)", first="", loss="criterion(model(a), b)")
    result = convert(HEAD + loop)
    assert not result.gaps
    assert printed(result.code) == printed(HEAD + loop)


def test_loaders_that_a_function_is_given() -> None:
    loss = LOSS.format(a="a", b="b", c="c", rate="0.5")
    body = LOOP.format(targets="(a, b), (c,)", walked="zip(label_loader, free_loader)", first="", loss=loss)
    source = HEAD + "def train(label_loader, free_loader):\n    " + body.replace("\n", "\n    ").rstrip() + "\n\n"
    result = convert(source + "train(few, many)\n")
    assert not result.gaps
    assert printed(result.code) == printed(source + "train(few, many)\n")


def test_lists_of_numbers_that_are_walked_together_stay() -> None:
    loop = "for i, j in zip([1, 2], [3, 4]):\n    print(i + j)\n"
    assert loop in convert(HEAD + loop).code


TAKEN = {
    "in a comprehension": "print([model(a).shape[0] + model(c).shape[1] for (a, b), (c,) in zip(few, many)])",
    "all in columns": "a, b = zip(*few)\nprint(torch.cat(a).shape[0], model(b[0].float().view(1, 4)[:, :3]).shape[1])",
    "joined": "a, b = map(torch.cat, zip(*few))\nprint(model(a).shape[0], b.tolist())",
    "a list": "batches = list(few)\nprint(model(batches[1][0]).shape[0], len(list(many)))",
    "a part of a list": "for a, b in list(few)[1:]:\n    print(round(model(a).sum().item(), 4))",
    "a list that a loop walks": "for a, b in list(few):\n    print(round(model(a).sum().item(), 4))",
    "its data set": "print(torch.stack([a for a, b in few.dataset]).shape, round(model(x).sum().item(), 4))",
    "counted": "print({i: model(a).shape[0] for i, (a, b) in enumerate(few)})",
}


@pytest.mark.parametrize("name", TAKEN)
def test_batches_that_no_loop_takes_become_arrays(name: str) -> None:
    source = HEAD + TAKEN[name].replace(".shape,", ".shape[0],") + "\n"
    result = convert(source)
    assert not result.gaps
    assert printed(result.code) == printed(source)
    assert convert(result.code).code == result.code


def test_a_list_for_the_data_pipeline_stays() -> None:
    source = (
        HEAD + "again = DataLoader(list(few.dataset), batch_size=2)\nfor a, b in again:\n    print(model(a).shape[0])\n"
    )
    result = convert(source)
    assert "DataLoader(list(few.dataset), batch_size=2)" in result.code
    assert printed(result.code) == printed(source)


@pytest.mark.parametrize(
    "taken",
    [
        "j, (x, y) = next(enumerate(loader))",
        "j, batch = next(enumerate(loader, 0))\nx, y = batch",
        "x, y = list(itertools.islice(loader, 1))[0]",
        "numbered = enumerate(loader)\nfor _, (x, y) in numbered:\n    pass",
        "x, y = max(loader, key=len)",
    ],
)
def test_what_goes_over_a_loader_outside_of_loops_gets_arrays(taken: str) -> None:
    source = f"""import itertools
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.arange(12.0).view(4, 3), torch.arange(4)), batch_size=4)
{taken}
print(x.sum().item(), y.sum().item(), type(x).__module__.split(".")[0])
"""
    result = convert(source)
    assert not result.gaps
    assert printed(source) == "66.0 6 torch\n" and printed(result.code) == "66.0 6 jaxlib\n"
