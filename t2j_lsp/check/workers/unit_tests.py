"""Runs the unit tests of a loaded module with pytest, and the functions that show what tests are to expect."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any

Outcomes = dict[str, dict[str, Any]]

_OPTIONS = (
    "-c", "pytest.ini", "--rootdir", ".", "--capture=no", "-p", "no:cacheprovider", "-p", "no:terminal",
    "-p", "no:faulthandler", "-p", "no:logging", "--import-mode=importlib",
)  # fmt: skip


class PytestMissingError(Exception):
    """The interpreter has no pytest."""


def run_tests(module: ModuleType, seed: Callable[[int], None], repeat: int) -> list[Outcomes]:
    """The outcomes of all tests of a module, in several runs with seeds of their own.

    An outcome has ``outcome`` (``passed``, ``failed``, ``skipped``), and where it did not pass ``message`` and
    ``line``, the line of the module that the error went through last. Raises PytestMissingError.
    """
    try:
        import pytest
    except ImportError as error:
        raise PytestMissingError("pytest is not installed") from error
    file = str(module.__file__)

    class Loaded(pytest.Module):
        def _getobj(self) -> ModuleType:
            return module

    class Plugin:
        def __init__(self) -> None:
            self.outcomes: Outcomes = {}

        def pytest_collect_file(self, file_path: Path, parent: Any) -> Any:
            return Loaded.from_parent(parent, path=file_path)

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:
            report = yield
            name = item.nodeid.partition("::")[2]
            if report.outcome != "passed":
                self.outcomes[name] = {"outcome": report.outcome, **_report_of(call, file)}
            elif report.when == "call":
                self.outcomes.setdefault(name, {"outcome": "passed"})
            return report

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    Path("pytest.ini").write_text("[pytest]\n")
    Path("test_module.py").write_text("")
    outcomes: list[Outcomes] = []
    for run in range(repeat):
        seed(run)
        plugin = Plugin()
        pytest.main([*_OPTIONS, "test_module.py"], plugins=[plugin])
        outcomes.append(plugin.outcomes)
    return outcomes


def _report_of(call: Any, file: str) -> dict[str, Any]:
    """What went wrong, in one line, and where in the test file."""
    if call.excinfo is None:
        return {"message": "", "line": None}
    error = call.excinfo.value
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    text = " ".join(str(error).split())[:300]
    return {
        "message": f"{type(error).__name__}: {text}" if text else type(error).__name__,
        "line": (lines or [None])[-1],
    }


def values_of(module: ModuleType, names: list[str], as_plain: Callable[[Any], Any]) -> dict[str, Any]:
    """What functions without parameters return, as plain data; ``{"error": text}`` for one that raises."""
    values: dict[str, Any] = {}
    for name in names:
        try:
            values[name] = {"value": as_plain(getattr(module, name)())}
        except Exception as error:  # noqa: BLE001 - the user's program may raise anything: then there is no such test
            values[name] = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    return values
