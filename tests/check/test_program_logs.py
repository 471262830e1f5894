"""What a program logs to TensorBoard is compared; neither writer has to be installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.programs.run import RunSettings, run_program
from t2j_lsp.contract import Options, ProgramReport, VerdictKind

PROGRAM = """\
import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 3), torch.randn(8, 1)


def record(writer, model, step):
    for name, parameter in model.named_parameters():
        writer.add_histogram(f"weights/{name}", parameter, step)


with SummaryWriter(log_dir="runs/one", comment="first") as writer:
    for step in range(6):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        writer.add_scalar("loss", loss, global_step=step)
        writer.add_scalars("sizes", {"first": model[0].weight.norm(), "last": model[2].bias.norm()}, step)
        record(writer, model, step)
    writer.add_histogram("bias", model[0].bias)
    writer.add_hparams({"lr": 0.1}, {"loss": loss.item()}, run_name="last")
"""

Run = Callable[..., ProgramReport]


@pytest.fixture
def run(pool: Pool, tmp_path: Path) -> Run:
    """Runs the program and its conversion, in which a text was replaced by another."""

    def run_both(old: str = "", new: str = "", steps: int | None = None) -> ProgramReport:
        source = tmp_path / "program.py"
        source.write_text(PROGRAM)
        converted = convert_file(source, Options()).translation
        assert not converted.gaps and "torch" not in converted.code.replace("torch_name", "").split("import")[1]
        assert old in converted.code
        settings = RunSettings((), steps, 300.0, False)
        return run_program(source, converted.code.replace(old, new), settings, pool=pool)

    return run_both


def test_what_is_logged_is_compared(run: Run) -> None:
    report = run()
    assert (report.verdict, report.reason) == (VerdictKind.EQUIVALENT, None)
    assert report.values["saved"].count == 8
    stopped = run(steps=3)
    assert (stopped.verdict, stopped.stopped) == (VerdictKind.EQUIVALENT, True)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"loss", loss, global_step=step', '"loss", 1.01 * loss, global_step=step', "'loss' as logged"),
        ('"loss", loss, global_step=step', '"loss", loss, global_step=step + 1', "other steps"),
        ('"loss", loss, global_step=step', '"losses", loss, global_step=step', "logs 'loss' 7 times, JAX 1 times"),
        ("parameter[...], step", "parameter[...] + 0.1, step", "as logged"),
        ("parameter[...], step", "parameter[...].ravel()[:1], step", "other steps or shapes"),
        ("parameter[...], step", "parameter, step", "NotImplementedError"),
    ],
)
def test_a_mistake_in_what_is_logged_is_found(old: str, new: str, what: str, run: Run) -> None:
    report = run(old, new)
    assert report.verdict is VerdictKind.DIFFERENT and what in report.reason
