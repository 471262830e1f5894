"""What the statements around optimizers, decorators, ``with`` blocks and in-place operators became, for hovers."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.contract import Outcome, Translation
from t2j_lsp.translate import translate
from t2j_lsp.translate.output.outcomes import plain

HERE = Path(__file__).resolve().parent
FILES = sorted([*(HERE / "scripts").glob("*.py"), *(HERE.parents[1] / "examples").glob("*.py")])

LOOP = """import torch
import torch.nn as nn


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
"""


def outcome(translation: Translation, needle: str) -> Outcome:
    """The outcome of the place that begins where a text does."""
    index = translation.source.index(needle)
    line, column = translation.source[:index].count("\n") + 1, index - translation.source.rfind("\n", 0, index) - 1
    return next(o for o in translation.outcomes if (o.span.line, o.span.column) == (line, column))


@pytest.mark.parametrize("part", ["optimizer.zero_grad()", "loss.backward()", "optimizer.step()"])
def test_a_part_of_a_training_step_is_its_train_step_and_the_call_of_it(part: str) -> None:
    outcome_of_place = outcome(translate(LOOP), part)
    assert outcome_of_place.step.startswith(
        '@nnx.jit(static_argnames="criterion")\ndef train_step(model, optimizer, criterion, x, y):'
    )
    assert "optimizer.update(model, grads)" in outcome_of_place.step
    assert outcome_of_place.code.startswith("train_step(model, optimizer,")


def test_what_is_gone_is_removed_and_what_means_the_same_is_kept() -> None:
    translation = translate(
        "import torch\n\n\n@torch.no_grad()\ndef f(x: torch.Tensor):\n"
        "    x += 1\n    torch.manual_seed(0)\n    return x[None]\n"
    )
    removed = outcome(translation, "@torch.no_grad()")
    assert (removed.state, removed.code) == ("removed", "def f(x: jax.Array):")
    assert (outcome(translation, "x += 1").state, outcome(translation, "x += 1").code) == ("kept", "x += 1")
    assert outcome(translation, "torch.manual_seed").state == "removed"


def test_a_with_block_shows_what_leaves_it() -> None:
    source = (
        "import torch\n\n\ndef f(x: torch.Tensor):\n    with torch.no_grad():\n        y = x * 2\n    return y * x\n"
    )
    outcome_of_place = outcome(translate(source), "torch.no_grad()")
    assert (outcome_of_place.state, outcome_of_place.code) == ("removed", "y = x * 2\ny = jax.lax.stop_gradient(y)")


def test_what_stays_pytorch_says_why() -> None:
    source = LOOP.replace("optimizer.step()", "optimizer.step(lambda: loss)")
    outcome_of_place = outcome(translate(source), "optimizer.zero_grad()")
    assert outcome_of_place.state == "left" and "closure" in outcome_of_place.reason and not outcome_of_place.step


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_outcome_stands_in_the_output(path: Path) -> None:
    translation = translate(path.read_text())
    output = plain(translation.code)
    assert translation.outcomes
    for finding in translation.outcomes:
        assert plain(finding.code) in output and plain(finding.step) in output, finding
    for rewrite in translation.rewrites:
        assert not rewrite.written or plain(rewrite.jax or "") in output, rewrite
