"""Masks that select what a loss is computed with: the positions are passed, or the loop stays."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

SOURCE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Linear(3, 2)
x = torch.arange(24.0).reshape(8, 3).sin()
y = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1])
kept = x[:, 0] > 0
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
losses = []
for i in range(4):
    optimizer.zero_grad()
    out = model(x)
    loss = {loss}
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    {after}
"""


@pytest.mark.parametrize(
    ("loss", "after"),
    [
        ("F.cross_entropy(out[kept], y[kept])", "pass"),
        ("F.cross_entropy(model(x[kept]), y[kept])", "kept = out[:, 0] > i * 0.1 - 0.2"),
        ("(out - out.flip(0))[spots].square().mean()", "pass"),
    ],
)
def test_a_mask_from_outside_is_passed_as_positions(loss: str, after: str) -> None:
    source = SOURCE.format(loss=loss, after=after).replace("# train", "spots = x[:, :2] > 0.3\n# train")
    run = trained(source)
    assert "jnp.nonzero(" in run.translation.code


MODULES = """\
class Picked(nn.Module):
    def forward(self, values):
        return self.picked(values)

    def picked(self, values):
        return values[(values[:, 0] > 0).nonzero()[:, 0]]


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Picked()

    def forward(self, values):
        return self.part(values)


chosen = Chosen()
# train"""


@pytest.mark.parametrize(
    "loss",
    [
        "F.cross_entropy(out, y, reduction='none')[y == 1].mean()",
        "out[out > 0].mean()",
        "out[kept].mean() + kept.float().mean() * out.mean()",
        "out.masked_select(out > 0).mean()",
        "out[kept, 0].mean()",
        "selected(out, kept)",
        "out[torch.nonzero(out[:, 0] > 0).squeeze(1)].mean()",
        "torch.unique(out).sum()",
        "Chosen()(out).mean()",
        "chosen(out).mean()",
    ],
)
def test_other_masks_are_told(loss: str) -> None:
    function = "def selected(values, mask):\n    return values[mask].mean()\n\n\n" + MODULES
    done = convert(SOURCE.format(loss=loss, after="pass").replace("# train", function))
    assert any("isn't known under jit" in gap.reason for gap in done.gaps), [gap.reason for gap in done.gaps]


def test_what_is_written_by_a_mask_stays_in_the_step() -> None:
    done = convert(SOURCE.format(loss="out.where(kept[:, None], 0).mean()", after="pass"))
    assert not done.gaps and "nonzero" not in done.code


SHARED = {
    "a row": "rows = torch.zeros(4, 3)\nrow = rows[1]\nrow += 1\nprint(rows)\n",
    "two names": "a = b = torch.zeros(2)\na += 1\nprint(b)\n",
    "a part of the data": (
        "rows = torch.zeros(4, 3)\nfor i in range(4):\n    part = rows[i:i + 1]\n    part.add_(1)\nprint(rows)\n"
    ),
    "what a function reads": (
        "rows = torch.zeros(4, 3)\n\n\ndef total():\n    return rows.sum()\n\n\n"
        "part = rows[1:]\npart += 1\nprint(total())\n"
    ),
}


@pytest.mark.parametrize("case", SHARED)
def test_writes_that_other_names_of_a_script_see_are_told(case: str) -> None:
    done = convert(f"import torch\n\n{SHARED[case]}")
    assert any("shares the memory" in gap.reason for gap in done.gaps), [gap.reason for gap in done.gaps]


def test_a_scripts_own_writes_are_not_accused() -> None:
    text = (
        "import torch\n\nrows = torch.zeros(4, 3)\npart = rows[1].clone()\npart += 1\ntotal = rows.sum()\n"
        "total += 1\nrows[0] = 2\nrows += 1\nlast = rows[-1]\nlast = last + 1\nprint(rows, part, total, last)\n"
    )
    assert not convert(text).gaps
