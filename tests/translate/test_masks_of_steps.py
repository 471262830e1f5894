"""Masks that select what a loss is computed with: the positions are passed, or the loop stays."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp import convert
from t2j_lsp.contract import Finding, Severity, Span
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.inference.constant_masks import constant_masks
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rewrites.marked_rows import with_rows_filled_by_masks
from t2j_lsp.translate.source.text import Source
from t2j_lsp.translate.training.data.roles import with_training_facts

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
        "chosen(out).mean()",
    ],
)
def test_steps_that_select_by_other_masks_are_not_compiled(loss: str) -> None:
    function = "def selected(values, mask):\n    return values[mask].mean()\n\n\n" + MODULES
    done = convert(SOURCE.format(loss=loss, after="pass").replace("# train", function))
    assert not [gap.reason for gap in done.gaps]
    assert "@nnx.jit" not in done.code
    assert any("isn't compiled" in one.reason and "isn't known under jit" in one.reason for one in done.findings)


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


SMOOTHED = """\
import torch
import torch.nn as nn

y = torch.tensor([0, 1, 1, 0, 2, 0, 0, 1])

class Smoothed(nn.Module):
    def __init__(self, pad=0):
        super().__init__()
        self.pad = pad
        self.loss = nn.KLDivLoss(reduction="sum")

    def forward(self, x, target):
        wanted = torch.full_like(x, 0.2).scatter_(1, target.unsqueeze(1), 0.6)
        {rows}
        {fill}
        return self.loss(x, wanted)

model = nn.Linear(3, 3)
smoothed = Smoothed()
x = torch.arange(24.0).reshape(8, 3).sin()
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
losses = []
for i in range(2):
    optimizer.zero_grad()
    loss = smoothed(model(x).log_softmax(1), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
FILL = "wanted.index_fill_(0, rows.squeeze(), 0.0)"
ROWS = "rows = torch.nonzero(target == self.pad)"
NESTED = "\n            "


def test_rows_that_are_looked_up_to_be_filled_are_filled_by_the_mask() -> None:
    translation = convert(SMOOTHED.format(rows=ROWS, fill=f"if rows.dim() > 0:{NESTED}{FILL}"))
    assert not translation.gaps
    assert "rows = target == self.pad\n        wanted = set_where(wanted, rows, 0.0)\n" in translation.code


def _filled(rows: str, fill: str) -> str:
    """The text in which the rows are filled by their mask; "" where it stays."""
    load_rules()
    gap = Finding(Span(1, 0, 1, 0), "training loop", "training-loop", Severity.GAP, "")
    text = with_rows_filled_by_masks(Inference(Source(SMOOTHED.format(rows=rows, fill=fill))), [gap])
    return text.text if text is not None else ""


@pytest.mark.parametrize(
    ("rows", "fill", "becomes"),
    [
        ("rows = torch.nonzero(target == 0, as_tuple=False)", f"if len(rows) > 0: {FILL}", "target == 0"),
        ("rows = (target == 0).nonzero().squeeze()", "wanted.index_fill_(0, rows, 0.0)", "target == 0"),
        (
            "rows = (torch.arange(8) > 5).nonzero().view(-1)",
            f"if rows.numel():{NESTED}wanted[rows] = 0.0",
            "torch.arange(8) > 5",
        ),
        ("rows = (torch.arange(8) > 5).nonzero(as_tuple=True)[0]", "wanted[rows] = 0.0", "torch.arange(8) > 5"),
    ],
)
def test_rows_have_many_spellings(rows: str, fill: str, becomes: str) -> None:
    assert f"rows = {becomes}\n        wanted[rows] = 0.0\n        return" in _filled(rows, fill)


@pytest.mark.parametrize(
    ("rows", "fill"),
    [
        (ROWS, f"{FILL}\n        self.seen = rows"),
        (ROWS, f"if rows.dim() > 2:{NESTED}{FILL}"),
        (f"{ROWS}.squeeze()", f"if rows.dim() > 0:{NESTED}wanted.index_fill_(0, rows, 0.0)"),  # not for a single row
        (ROWS, f"if rows.dim() > 0:{NESTED}{FILL}\n        else:{NESTED}x = x * 2"),
        (f"{ROWS}.view(-1)", "wanted.index_fill_(0, rows, 0.0)"),  # the target may have axes
        ("rows = torch.nonzero(target)", FILL),
        (ROWS, "wanted.index_fill_(1, rows.squeeze(), 0.0)"),
        (ROWS, "wanted.index_fill_(0, rows, 0.0)"),
        (ROWS, "wanted[rows.squeeze()] = x[0]"),
        ("rows = torch.nonzero(torch.ones(8, 3) > 0.5)", FILL),
    ],
)
def test_rows_that_are_read_otherwise_stay(rows: str, fill: str) -> None:
    assert not _filled(rows, fill)


CONSTANT = """\
import torch
import torch.nn as nn

def loss_of(z, n, flag=True):
    {made}
    {used}

model = nn.Linear(3, 4)
x = torch.arange(12.0).reshape(4, 3).sin()
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
losses = []
for i in range(3):
    optimizer.zero_grad()
    loss = loss_of(model(x), x.shape[0] // 2)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
PICKS = "return (z @ z.T)[~mask].view(4, -1).logsumexp(1).mean()"
EYE = "mask = torch.eye(2 * n, dtype=torch.bool)"
PAIRS = """\
labels = torch.cat([torch.arange(n) for _ in range(2)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    labels = labels[~torch.eye(labels.shape[0], dtype=torch.bool)].view(labels.shape[0], -1)
    mask = ~labels.bool()"""


def test_masks_that_only_sizes_decide_are_of_numpy() -> None:
    used = "z = (z @ z.T)[~torch.eye(z.shape[0], dtype=torch.bool)].view(4, -1)\n    return z[~mask].mean()"
    run = trained(CONSTANT.format(made=PAIRS, used=used))
    assert "labels = np.concatenate([np.arange(n) for _ in range(2)])" in run.translation.code
    assert not any("what a mask picks" in finding.reason for finding in run.translation.findings)


@pytest.mark.parametrize(
    ("made", "used", "masks", "values"),
    [
        (EYE, PICKS, ["~mask"], ["torch.eye(2 * n, dtype=torch.bool)"]),
        (f"{EYE}.to(z.device)", PICKS, ["~mask"], ["torch.eye(2 * n, dtype=torch.bool).to(z.device)"]),
        (EYE, f"z = z * mask\n    {PICKS}", [], []),  # more than the mask reads it
        (EYE, f"if flag:\n        mask = z > 0\n    {PICKS}", [], []),
        (EYE, f"mask[0] = True\n    {PICKS}", [], []),
        (EYE, f"mask.fill_diagonal_(False)\n    {PICKS}", [], []),
        ("mask = z @ z.T > 0", PICKS, [], []),
        ("mask = torch.eye(4) > torch.rand(4, 4)", PICKS, [], []),
        (f"{EYE} & (z > 0)", PICKS, [], []),
    ],
)
def test_which_masks_only_sizes_decide(made: str, used: str, masks: list[str], values: list[str]) -> None:
    load_rules()
    result = constant_masks(with_training_facts(Inference(Source(CONSTANT.format(made=made, used=used)))))
    assert [*map(ast.unparse, result.masks)] == masks
    assert [*map(ast.unparse, result.values)] == values
