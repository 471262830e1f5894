"""What a test needs is read off what it names: `make quick` runs no framework."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch


def runs_torch() -> None:
    assert torch.ones(1).item() == 1


def runs_it_inside() -> None:
    assert [(lambda: runs_torch())() for _ in range(2)]


def executes_a_text() -> None:
    exec("import torch")


def starts_a_process() -> None:
    subprocess.run([sys.executable, "-c", "pass"], check=True)


def reads_text() -> None:
    assert "torch.ones(1)" in Path(__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (runs_torch, "jax"),
        (runs_it_inside, "jax"),
        (executes_a_text, "jax"),
        (starts_a_process, "worker"),
        (reads_text, "unit"),
    ],
)
def test_a_test_that_runs_a_framework_or_starts_a_process_is_found(
    function: Callable[[], None], kind: str, request: pytest.FixtureRequest
) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    assert conftest is not None
    assert conftest.runs(function) == kind
    assert request.node.get_closest_marker("unit")
