"""A name that is given another batch between the passes of one update: that batch has names of its own."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cpu")
data = TensorDataset(torch.ones(32, 6), torch.arange(32) % 2)
l1, l2 = DataLoader(data, batch_size=8), DataLoader(data, batch_size=8)
model = nn.Linear(6, 2)
opt = optim.Adam(model.parameters(), lr=1e-2)
crit = nn.CrossEntropyLoss()
it2 = iter(l2)
for b1, b2 in zip(l1, l2):
    {first}
    opt.zero_grad()
    loss = crit(model(x), y)
    loss.backward()
    {second}
    loss = crit(model(x), y)
    loss.backward()
    opt.step()
{behind}
"""
FIRST = "x, y = b1[0].to(device), b1[1].to(device)"
FORMS = {
    "items": ("x, y = b2[0].to(device), b2[1].to(device)", "x_2, y_2 = np.asarray(b2[0]), np.asarray(b2[1])"),
    "a list": ("x, y = [t.to(device) for t in b2]", "x_2, y_2 = [np.asarray(t) for t in b2]"),
    "the batch": ("x, y = b2", "x_2, y_2 = jax.tree.map(np.asarray, b2)"),
    "statements": (
        "x = b2[0].to(device)\n    y = b2[1].to(device)",
        "x_2 = np.asarray(b2[0])\n    y_2 = np.asarray(b2[1])",
    ),
    "the next": ("x, y = next(it2)", "x_2, y_2 = jax.tree.map(np.asarray, next(it2))"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("behind", ["", "for x, y in l2:\n    print(crit(model(x), y).item())"])
def test_the_other_batch_has_names_of_its_own(form: str, behind: str) -> None:
    second, converted = FORMS[form]
    done = convert(TEXT.format(first=FIRST, second=second, behind=behind))
    assert not done.gaps
    assert converted.replace("np.", "jnp.") in done.code.replace(" np.", " jnp.").replace("(np.", "(jnp.")
    assert "train_step(" in done.code
    assert "x_2, y_2)" in done.code.partition("def train_step")[2]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_read_behind_the_loop_is_left(form: str) -> None:
    done = convert(TEXT.format(first=FIRST, second=FORMS[form][0], behind="print(x.sum())"))
    assert len(done.gaps) == 1
    assert "Another batch takes the names x, y between the passes of one update" in done.gaps[0].reason


def test_the_variable_of_a_loop_is_a_name_of_the_first_batch() -> None:
    text = TEXT.replace("for b1, b2 in zip(l1, l2):\n    {first}\n", "for x, y in l1:\n")
    done = convert(text.format(second="x, y = next(it2)", behind=""))
    assert not done.gaps
    assert "x_2, y_2 = jax.tree.map(" in done.code


def test_a_name_that_another_function_reads_is_left() -> None:
    text = TEXT.replace("crit = nn", "def last():\n    return x.sum()\n\n\ncrit = nn")
    done = convert(text.format(first=FIRST, second="x, y = b2", behind=""))
    assert any("Another batch takes the names x, y" in gap.reason for gap in done.gaps)


def test_a_name_that_the_next_round_of_an_outer_loop_reads_is_left() -> None:
    head, _, loop = TEXT.format(first=FIRST, second="x, y = b2", behind="").partition("for b1, b2")
    inner = "".join(f"    {line}\n" for line in f"for b1, b2{loop}".splitlines())
    done = convert(f"{head}x = y = torch.zeros(1)\nfor epoch in range(2):\n    print(x.sum())\n{inner}")
    assert any("Another batch takes the names x, y" in gap.reason for gap in done.gaps)
