"""Whole programs: what they save and read, the layers that share a state, and float64."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import VerdictKind

from .conftest import Run
from .test_programs import LINEAR

TIED = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class LanguageModel(nn.Module):
    def __init__(self, tokens, width, tie):
        super().__init__()
        self.encoder = nn.Embedding(tokens, width)
        self.mixer = nn.Linear(width, width)
        self.decoder = nn.Linear(width, tokens)
        if tie:
            self.decoder.weight = self.encoder.weight

    def forward(self, ids):
        return self.decoder(torch.tanh(self.mixer(self.encoder(ids))))


ids = torch.randint(0, 9, (6, 5))
model = LanguageModel(9, 4, True)
nn.init.constant_(model.decoder.bias, 0.3)
print(model.decoder.bias[0].item())
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(5):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(ids).reshape(-1, 9), ids.reshape(-1))
    loss.backward()
    optimizer.step()
    print(f"step {step} {loss.item():.6f}")
"""


def test_a_decoder_with_a_bias_shares_the_table_of_its_encoder(run: Run) -> None:
    report = run(TIED)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    for mistake in (("9, 4, True", "9, 4, False"), ("bias, 0.3", "bias, 0.2")):
        assert run(TIED, mistake=mistake).verdict is VerdictKind.DIFFERENT, mistake


SAVE = """\
    if epoch == 6:
        torch.save({"epoch": epoch, "net": model.state_dict()}, "net.pt")
    if epoch % 5 == 0:"""


SAVING = LINEAR.replace("    if epoch % 5 == 0:", SAVE)


LOADING = "saved = torch.load('net.pt')\nmodel.load_state_dict(saved['net'])\nprint(saved['epoch'], model(x)[0])\n"


def test_checkpoints_are_compared_by_their_keys(run: Run) -> None:
    report = run(SAVING + LOADING)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert (report.values["saved"].count, report.values["saved"].numbers) == (3, 4)
    for mistake in (("== 6", "== 7"), ('"net.pt"', '"other.pt"')):
        report = run(SAVING, mistake=mistake)
        assert report.verdict is VerdictKind.DIFFERENT, report
        assert report.reason is not None and "net.pt" in report.reason


def test_numbers_of_numpy_in_a_table_are_numbers(run: Run) -> None:
    report = run(LINEAR + "import numpy as np\nwords = {'a': np.int64(3), 'b': np.int64(4)}\n")
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert report.values["collected"].count == 2


def test_a_whole_module_that_pytorch_saves_is_its_state(run: Run) -> None:
    whole = LINEAR + 'torch.save(model, "net.pt")\n'
    report = run(whole)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert (report.values["saved"].count, report.values["saved"].numbers) == (2, 3)
    report = run(whole, mistake=("torch.save(model,", "torch.save(nn.Linear(2, 1),"))
    assert report.verdict is VerdictKind.DIFFERENT and "net.pt" in (report.reason or ""), report


INTEGERS = """\
import torch

a = torch.LongTensor(6).random_(0, 3)
b = torch.zeros(4).random_(5)
c = torch.randint_like(b, 2, 9)
print(a.sum().item(), b.sum().item(), c.sum().item())
"""


def test_integers_that_are_drawn_in_place_are_the_same_on_both_sides(run: Run) -> None:
    report = run(INTEGERS)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert not report.notes
    for mistake in (("random_(5)", "random_(7)"), ("random_(0, 3)", "random_(4, 9)"), ("(b, 2, 9)", "(b, 20, 90)")):
        assert run(INTEGERS, mistake=mistake).verdict is VerdictKind.DIFFERENT, mistake


def test_draws_of_one_side_alone_are_noted(run: Run) -> None:
    report = run("import torch\n\nprint(torch.randn(3))\n", mistake=("torch.randn(3)", "torch.randn(3, 4)[:, 0]"))
    assert report.verdict is VerdictKind.DIFFERENT
    assert report.notes == ["JAX draws normal numbers of shape (3, 4) 1 times, and PyTorch 0 times"]


LISTED = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.fcs = []
        for i in range(depth):
            fc = nn.Linear(2, 2)
            setattr(self, "fc%i" % i, fc)
            self.fcs.append(fc)
        self.out = nn.Linear(2, 1)

    def forward(self, x):
        for fc in self.fcs:
            x = fc(x).tanh()
        return self.out(x)


net = Net(3)
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
x, y = torch.randn(6, 2), torch.randn(6, 1)
for step in range(4):
    loss = ((net(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""


def test_layers_that_a_list_holds_beside_their_names_have_one_state(run: Run) -> None:
    """In NNX each has two paths, of one variable; a copy in the list is a mistake."""
    assert run(LISTED).verdict is VerdictKind.EQUIVALENT
    report = run(LISTED, mistake=("self.fcs.append(fc)", "self.fcs.append(nnx.clone(fc))"))
    assert report.verdict is VerdictKind.DIFFERENT


def test_float64_is_held_to_a_tighter_bound(run: Run) -> None:
    report = run(LINEAR, wide=True)
    assert (report.verdict, report.precision) == (VerdictKind.EQUIVALENT, "float64")
    assert report.values["parameters"].max_rel_err < 1e-12


FLOATS = LINEAR.replace("x = torch.linspace(-1, 1, 40)", "x = torch.FloatTensor([i / 20 - 1 for i in range(40)])")


@pytest.mark.parametrize("source", [FLOATS, LINEAR.replace("40)", "40).type('torch.FloatTensor')", 1)])
def test_old_constructors_of_float32_are_of_float64_there(run: Run, source: str) -> None:
    report = run(source, wide=True)
    assert (report.verdict, report.precision) == (VerdictKind.EQUIVALENT, "float64"), report.reason
    report = run(source, mistake=("lr=0.1", "lr=0.10001"))
    assert (report.verdict, report.precision) == (VerdictKind.DIFFERENT, "float64")


def test_a_program_that_runs_in_float32_alone_is_decided_there(run: Run) -> None:
    narrow = LINEAR.replace("+ 0.5", "+ 0.5\nassert x.element_size() == 4")
    assert run(narrow).verdict is VerdictKind.EQUIVALENT
    report = run(narrow, mistake=("lr=0.1", "lr=0.12"))
    assert (report.verdict, report.precision) == (VerdictKind.DIFFERENT, "float32")
    assert "fails" not in report.reason
    assert any("not decided in float64: the original fails there" in note for note in report.notes)
