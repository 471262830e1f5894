"""Batches that compiled functions alone read are handed to them as NumPy's arrays."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

PROGRAM = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.linspace(-1, 1, 24).reshape(8, 3), torch.arange(8) % 2)
loader = DataLoader(data, batch_size=3)
device = "cpu"
losses = []
model = nn.Linear(3, 2)
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / len(x))
with torch.no_grad():
    for x, y in loader:
        losses.append((model(x).argmax(dim=1) == y).sum().item() * x.size(0))
"""
HANDED, ARRAYS = "x, y = np.asarray(x), np.asarray(y)\n", "x, y = jnp.asarray(x), jnp.asarray(y)\n"
ZERO = "        optimizer.zero_grad()\n"


@pytest.mark.jax
def test_handed_batches_train_as_those_of_pytorch() -> None:
    code = trained(PROGRAM).translation.code
    assert code.count(HANDED) == 2 and ARRAYS not in code


def test_what_is_moved_is_handed_on_too() -> None:
    code = convert(PROGRAM.replace(ZERO, f"        x, y = x.to(device), y.to(device)\n{ZERO}", 1)).code
    assert f"        {HANDED}" in code


@pytest.mark.parametrize(
    "read",
    ["        losses.append(x.mean().item())\n", "        last = x\n", "        print(y)\n", "        show(x)\n"],
)
def test_batches_that_python_computes_with_are_arrays_of_jax(read: str) -> None:
    code = convert(PROGRAM.replace(ZERO, f"{read}{ZERO}", 1)).code
    assert code.count(HANDED) == code.count(ARRAYS) == 1  # the second loop reads its own


def test_batches_that_may_be_on_a_card_are_arrays_of_jax() -> None:
    code = convert(PROGRAM.replace("torch.arange(8) % 2)", "(torch.arange(8) % 2).to(device))")).code
    assert HANDED not in code and ARRAYS in code


UNSEEN = PROGRAM.replace("data = TensorDataset", "from elsewhere import data\nunused = TensorDataset")
MOVED = "        x, y = x.to(device), y.to(device)\n"


def test_batches_of_a_data_set_that_is_not_seen_may_be_on_a_card_unless_the_loop_moves_them() -> None:
    code = convert(UNSEEN).code
    assert HANDED not in code and ARRAYS in code
    code = convert(UNSEEN.replace(ZERO, f"{MOVED}{ZERO}", 1)).code
    assert code.count(HANDED) == code.count(ARRAYS) == 1


@pytest.mark.jax
@pytest.mark.parametrize(
    "loss",
    [
        "nn.CrossEntropyLoss()(model(x), y.data)",
        "F.nll_loss(F.log_softmax(model(x), dim=1), y.to(device), reduction='sum')",
        "F.cross_entropy(model(x), y, weight=torch.tensor([0.3, 1.0]))",
        "F.nll_loss(F.log_softmax(model(x), dim=1), y, weight=torch.tensor([0.3, 1.0]))",
        "F.l1_loss(model(x).sum(dim=1), y)",
    ],
)
def test_losses_take_batches_of_numpy(loss: str) -> None:
    counted = "(model(x).argmax(dim=1) == y).sum()"
    assert trained(PROGRAM.replace(counted, loss)).translation.code.count(HANDED) == 2


def test_a_converted_program_stays_as_it_is() -> None:
    code = convert(PROGRAM).code
    assert convert(code).code == code


UNPACKED = PROGRAM.replace(
    "    for x, y in loader:\n        optimizer", "    for batch in loader:\n        x, y = batch\n        optimizer"
)


@pytest.mark.jax
def test_batches_that_the_loop_takes_apart_are_handed_over() -> None:
    code = trained(UNPACKED).translation.code
    assert "        x, y = jax.tree.map(np.asarray, batch)\n" in code


def test_parts_that_python_computes_with_are_arrays_of_jax() -> None:
    code = convert(UNPACKED.replace(ZERO, f"        losses.append(x.mean().item())\n{ZERO}", 1)).code
    assert "x, y = jax.tree.map(jnp.asarray, batch)" in code


NAMED = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.x = torch.linspace(-1, 1, 24).reshape(8, 3)
        self.y = torch.arange(8) % 2

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i]}


loader = DataLoader(Rows(), batch_size=4)
device = "cpu"
losses = []
model = nn.Linear(3, 2)
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(batch["x"]), batch["y"])
    loss.backward()
    optimizer.step()
    losses.append(loss.item() * batch["x"].size(0))
for data in loader:
    x, y = data["x"].to(device), data["y"].to(device)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item() / len(x))
"""
NAMED_HANDED = ["batch = jax.tree.map(np.asarray, batch)", 'x, y = np.asarray(data["x"]), np.asarray(data["y"])']
LAST = '    losses.append(loss.item() * batch["x"].size(0))\n'


@pytest.mark.jax
def test_dicts_and_what_is_taken_out_of_them_are_handed_over() -> None:
    code = trained(NAMED).translation.code
    assert all(line in code for line in NAMED_HANDED)


@pytest.mark.parametrize(
    "read",
    [
        '    losses.append(batch["x"].mean().item())\n',
        "    last = batch\n",
        '    batch["y"] = batch["y"] + 1\n',
        "    show(batch)\n",
        '    batch["x"][0] = 0.0\n',
    ],
)
def test_dicts_that_python_computes_with_are_arrays_of_jax(read: str) -> None:
    code = convert(NAMED.replace(LAST, f"{LAST}{read}")).code
    assert "batch = jax.tree.map(jnp.asarray, batch)" in code and NAMED_HANDED[1] in code


def test_a_part_that_python_computes_with_is_an_array_of_jax() -> None:
    code = convert(f"{NAMED}    losses.append(y.float().mean().item())\n").code
    assert 'x, y = np.asarray(data["x"]), jnp.asarray(data["y"])' in code
    code = convert(NAMED.replace("self.y = torch.arange(8) % 2", "self.y = (torch.arange(8) % 2).to(device)")).code
    assert "np.asarray" not in code.replace("jnp.asarray", "")
