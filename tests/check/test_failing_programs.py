"""Whole programs that fail are equivalent only to those that fail there; what needs what isn't here is unchecked."""

from __future__ import annotations

import os

import pytest

from t2j_lsp.contract import VerdictKind

from .conftest import Run
from .test_programs import DRAWING, LINEAR


def test_a_program_that_fails_is_equivalent_only_to_one_that_fails_there(run: Run) -> None:
    failing = LINEAR.replace(
        "if epoch % 5 == 0:", "if epoch == 6:\n        raise ValueError(epoch)\n    if epoch % 5 == 0:"
    )
    report = run(failing)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert report.failed == "line 17: ValueError: 6"
    report = run(failing, mistake=("raise ValueError(epoch)", "pass"))
    assert report.verdict is VerdictKind.DIFFERENT
    assert report.reason == "the original fails: line 17: ValueError: 6, and the conversion does not"


FAILING = {
    "a check of the user's own": ("    losses.append(loss.item())", "    assert loss.item() > 0.5, loss.shape"),
    "shapes that don't fit": (
        "    if epoch % 5 == 0:",
        "    if epoch == 3:\n        model(torch.ones(2, 3))\n    if True:",
    ),
    "a step that doesn't fit": ("criterion(model(x), y)", "criterion(model(x) @ torch.ones(epoch, 1), y)"),
    "a key that is missing": ("    losses.append(loss.item())", "    print(model.state_dict()['bias2'])"),
    "a state that doesn't fit": (
        "losses = []",
        "model.load_state_dict({'weight': torch.ones(1, 3), 'bias': torch.ones(1)})",
    ),
}
"""What is put into a program's place of something else, so that PyTorch fails."""


@pytest.mark.parametrize("name", FAILING)
def test_a_program_whose_original_fails_fails_there(name: str, run: Run) -> None:
    report = run(LINEAR.replace(*FAILING[name]))
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert report.failed is not None


def test_a_program_that_needs_what_is_not_here_is_unchecked(run: Run) -> None:
    report = run(f"{LINEAR}open('missing.csv')\n")
    assert report.verdict is VerdictKind.UNCHECKED
    assert report.reason is not None and "missing.csv" in report.reason and "line 18" in report.reason


OPERATOR = "def operator(name):\n    raise RuntimeError(name)\n\n\nNMS = operator('lib::nms')\n"


@pytest.mark.parametrize(
    ("imported", "read"), [("from nets import NMS", "NMS"), ("from math import nms", "nms"), ("import nms", "nms.x")]
)
def test_what_can_not_be_loaded_leaves_a_program_unchecked(imported: str, read: str, run: Run) -> None:
    report = run(f"{imported}\n{LINEAR}print({read})\n", nets=OPERATOR)
    assert report.verdict is VerdictKind.UNCHECKED, report
    assert report.reason is not None and "needs what is not here (line 1)" in report.reason


@pytest.mark.skipif(os.environ.get("T2J_TEST_DEVICE") == "gpu", reason="there it does not lack a GPU")
def test_a_program_that_needs_a_gpu_is_unchecked(run: Run) -> None:
    """PyTorch fails where there is none, and JAX runs on what there is: that accuses nobody."""
    report = run(
        LINEAR.replace("nn.Linear(2, 1)", "nn.Linear(2, 1)\nraise AssertionError('Torch not compiled with CUDA')")
    )
    assert report.verdict is VerdictKind.UNCHECKED
    assert report.reason is not None and "needs a GPU (line 7)" in report.reason


def test_a_program_without_its_arguments_is_unchecked(run: Run) -> None:
    report = run(DRAWING)
    assert report.verdict is VerdictKind.UNCHECKED
    assert report.reason is not None and "behind --" in report.reason


MADE_ANEW = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)

    def forward(self, x):
        return nn.Linear(3, 3)(self.first(x))


net = Net()
x = torch.linspace(-1, 1, 12).reshape(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def test_layers_that_a_forward_pass_makes_are_unchecked_with_the_reason(run: Run) -> None:
    """Their weights are random ones at each call: what their tracers are asked for is no fault of the conversion."""
    report = run(MADE_ANEW, steps=2)
    assert report.verdict is VerdictKind.UNCHECKED
    assert report.reason is not None and "each call makes a Linear within compiled code" in report.reason
