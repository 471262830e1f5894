"""Changes of training programs: they change nothing in PyTorch, and a program that they change converts as it did.

A fixed slice of ``benchmarks/metamorphic --programs``, every kind of change on one program.
"""

from __future__ import annotations

import contextlib
import io
from functools import cache
from pathlib import Path

import pytest

from benchmarks.metamorphic import program_trial
from benchmarks.metamorphic.change import CHANGES, Changed
from benchmarks.metamorphic.corpora import Program
from benchmarks.metamorphic.program_trial import ProgramTrial
from benchmarks.metamorphic.trial import DIFFERENT, EQUIVALENT, INVALID, NO_VERDICT
from t2j_lsp.check.messages import Failure, Printed, ProgramRun
from t2j_lsp.contract import Options, ProgramReport, VerdictKind
from t2j_lsp.translate import translate

SOURCE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(4, width)
        self.second = nn.Linear(width, 2)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


def scale_of(step):
    if step > 2:
        return 0.5
    return 1.0


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


torch.manual_seed(0)
x = torch.linspace(-1, 1, 48).reshape(12, 4).cos()
y = (x.sum(1) > 3).long()
data = DataLoader(TensorDataset(x, y), batch_size=4)
model = Net(8)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
names = [name.upper() for name in ("train", "test")]
best, count = 0.0, 0
for epoch in range(2):
    model.train()
    total = 0.0
    for step, (xb, yb) in enumerate(data):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * scale_of(step)
    for index, part in enumerate(x):
        count += len(part) + index
    for xb, yb in data:
        count += len(xb)
    with torch.no_grad():
        error = F.mse_loss(model(x).softmax(1)[:, 1], y.float()).item()
    result = accuracy(model, x, y)
    if result > best:
        best = result
    else:
        best = best + 0.0
    print(f"{names[0]} {epoch} {total:.4f}")
    if epoch > 0:
        print(names[1], round(error, 4), count)
print("best", best)
"""
GUARDED = {"guard removed": "guard added", "main() moved out": "a script moved into main()"}
"""Changes that need what another one makes."""
KINDS = [change.name for change in CHANGES.values() if change.programs]


def changed(name: str) -> tuple[str, str]:
    """A program, and what a change makes of it."""
    text = CHANGES[GUARDED[name]].of(SOURCE, "").text if name in GUARDED else SOURCE
    return text, CHANGES[name].of(text, "").text


@cache
def printed(text: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, "<program>", "exec"), {"__name__": "__main__"})
    return out.getvalue()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_a_changed_program_prints_the_same_in_pytorch(name: str) -> None:
    before, after = changed(name)
    assert after != before, "it finds no place for itself"
    assert printed(after) == printed(SOURCE) != ""


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_program_converts(name: str) -> None:
    assert not [gap.reason for gap in translate(changed(name)[1], Options(helpers="import")).gaps]


CLOSURE = """\
import torch


def train(x):
    net = torch.nn.Linear(2, 1)
    torch.nn.init.ones_(net.weight)
    torch.nn.init.zeros_(net.bias)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def loss_of(x):
        return net(x).pow(2).mean()

    def epoch():
        optimizer.zero_grad()
        loss = loss_of(x)
        loss.backward()
        optimizer.step()
        print(loss.item())

    epoch()


train(torch.ones(3, 2))
"""


@pytest.mark.parametrize("name", ["the update in a function", "the loss from a function"])
def test_a_function_is_given_what_functions_around_it_have(name: str) -> None:
    after = CHANGES[name].of(CLOSURE, "").text
    assert after != CLOSURE and printed(after) == printed(CLOSURE) != ""


def test_a_function_stands_in_front_of_what_calls_it() -> None:
    source = SOURCE + "\n\ndef last():\n    return 0\n\n\nprint(last())\n"
    after = CHANGES["the model from a function"].of(source, "").text
    assert after != source and printed(after) == printed(source)


def test_tensors_that_are_changed_by_hand_stay_the_same_ones() -> None:
    text = "for p in params:\n    p -= 0.1 * p.grad\n    total += p\n"
    after = CHANGES["augmented assignments spelled out"].of(text, "").text
    assert after == text.replace("total += p", "total = total + p")


# --- the benchmark itself ---------------------------------------------------------------------------------------------


def run_of(*texts: str, failure: Failure | None = None) -> ProgramRun:
    return ProgramRun(printed=[Printed(text, "", 1) for text in texts], failure=failure)


@pytest.mark.parametrize(
    ("after", "verdict", "wanted"),
    [
        (run_of("loss 1.5"), VerdictKind.EQUIVALENT, EQUIVALENT),
        (run_of("loss 1.5"), VerdictKind.DIFFERENT, DIFFERENT),
        (run_of("loss 2.5"), VerdictKind.DIFFERENT, INVALID),
        (run_of(failure=Failure("NameError", ["NameError"], "x", [])), VerdictKind.EQUIVALENT, INVALID),
    ],
)
def test_a_change_is_blamed_before_the_conversion(
    after: ProgramRun, verdict: VerdictKind, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import torch\n\nprint('loss', torch.ones(1).item())\n"
    trial = ProgramTrial(Program("p", Path("p.py"), text, runs=True), None)
    runs = {text: (ProgramReport(VerdictKind.EQUIVALENT), run_of("loss 1.5")), "": (ProgramReport(verdict), after)}
    monkeypatch.setattr(trial, "_run", lambda source, translation: runs[source])
    monkeypatch.setattr(trial, "pool", object())
    assert trial._checked(Changed(""), trial.original, [program_trial.PROGRAM])[0] == wanted


def test_a_program_that_is_no_verdict_before_is_none_after(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = ProgramTrial(Program("p", Path("p.py"), "", runs=True), None)
    report = ProgramReport(VerdictKind.UNCHECKED, "chaotic")
    monkeypatch.setattr(trial, "_run", lambda source, translation: (report, run_of()))
    monkeypatch.setattr(trial, "pool", object())
    assert trial._checked(Changed("x"), trial.original, [])[0] == NO_VERDICT
