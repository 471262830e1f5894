"""Forward passes outside of train steps: what is computed around them is compiled with them."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .training_sides import trained

PROGRAM = """\
import torch
from torch import nn

data = torch.linspace(-1, 1, 36).reshape(12, 3)
labels = torch.arange(12) % 2
loader = [(data[:6], labels[:6]), (data[6:], labels[6:])]
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
losses = []
# train


def evaluate(model):
    model.eval()
    total, correct = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            total += criterion(out, y).item()
            pred = out.argmax(dim=1, keepdim=True)
            correct += pred.eq(y.view_as(pred)).sum().item()
    return total, correct


for epoch in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        after = model(data)
        val_loss = criterion(after, labels)
    losses.append(val_loss.item())
    losses += evaluate(model)
"""


def loop_of(code: str) -> str:
    return code[code.index("for epoch in range(3):") :]


@pytest.mark.jax
def test_a_validation_pass_beside_a_step_is_one_compiled_function_with_the_same_numbers() -> None:
    code = trained(PROGRAM, ("model",)).translation.code
    assert "    losses.append(bound_jit(eval_step, model)(data, labels).item())\n" in loop_of(code) or (
        "    val_loss = bound_jit(eval_step, model)(data, labels)\n" in loop_of(code)
    )
    assert "argmax" not in loop_of(code) and "    pass\n" not in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("val_loss = criterion(after, labels)", "labels = labels.flip(0)\n        val_loss = criterion(after, labels)"),
        ("val_loss = criterion(after, labels)", "model.train()\n        val_loss = criterion(model(data), labels)"),
    ],
    ids=["what is read changes in front of it", "another mode in between"],
)
def test_what_changes_in_between_is_computed_where_it_stands(old: str, new: str) -> None:
    assert old in PROGRAM
    code = loop_of(translate(PROGRAM.replace(old, new).replace("nn.Tanh()", "nn.Dropout()")).code)
    changed, used = ("labels = jnp.flip", "criterion(after") if "flip" in new else ("model.train()", ", model)(data")
    assert code.rindex(changed) < code.rindex(used)


KEPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.x, self.y = torch.randn(8, 3), torch.arange(8) % 2

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    @staticmethod
    def encode(a, b):
        return a * 2 + b + torch.zeros(1).item()


model = nn.Linear(3, 2)
model.eval()
seen = []
with torch.no_grad():
    for x, y in DataLoader(Rows(), batch_size=4):
        out = model(x)
        seen.append((Rows.encode(out.argmax(-1), y) == Rows.encode(y, y)).sum().item())
"""


def test_what_a_dataset_computes_is_given_whole_arrays() -> None:
    """What stays PyTorch's is written as a whole: nothing of it is computed elsewhere."""
    done = translate(KEPT)
    assert not done.gaps
