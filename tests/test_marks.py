"""What a test needs is read off what it names: `make quick` runs no framework."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch


def runs_torch() -> None:
    assert torch.ones(1).item() == 1


def runs_it_inside() -> None:
    assert [(lambda: runs_torch())() for _ in range(2)]


def reads_text() -> None:
    assert "torch.ones(1)" in Path(__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize(("function", "runs"), [(runs_torch, True), (runs_it_inside, True), (reads_text, False)])
def test_a_test_that_runs_a_framework_is_found(
    function: Callable[[], None], runs: bool, request: pytest.FixtureRequest
) -> None:
    conftest = request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    assert conftest is not None
    assert conftest.runs_frameworks(function) is runs
    assert request.node.get_closest_marker("unit")
