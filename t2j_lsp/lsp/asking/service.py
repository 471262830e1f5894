"""The server's side of asking a model: one process for each request, killed with its workers to cancel it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from t2j_lsp.child.process import Cancelled, Child, ChildFailed
from t2j_lsp.contract import T2JError

NEEDED = ("openai", "numpy")

Progress = Callable[[str, int], None]
"""Called with the step of the loop, and the tokens that have come so far."""


class AskingProcess:
    """Runs one request in a process of its own. Everything here happens on the event loop."""

    def __init__(self) -> None:
        self._process = Child("t2j_lsp.lsp.asking.process")
        self._busy = False

    @property
    def busy(self) -> bool:
        return self._busy

    @property
    def pid(self) -> int | None:
        return self._process.pid

    async def run(self, operation: str, request: dict[str, Any], progress: Progress = lambda step, tokens: None) -> Any:
        """The answer; None where it was cancelled. Raises T2JError with what went wrong."""
        if self._busy:
            raise T2JError("a model is being asked already: wait for its answer, or cancel it")
        self._busy = True
        try:
            report = lambda message: progress(message["step"], message["tokens"])  # noqa: E731
            return await self._process.ask(operation, {"request": request}, report)
        except Cancelled:
            return None
        except ChildFailed as error:
            raise T2JError(f"the process that asks models failed; the server's log says why ({error})") from None
        finally:
            await self._process.end()
            self._busy = False

    def cancel(self) -> None:
        """End what runs, at once: the request, the check of an answer, and its workers, whose pipes close."""
        self._process.cancel(grace=None)
        self._process.kill()


def missing() -> str | None:
    """Why no model can be asked from this interpreter; None where one can."""
    importlib.invalidate_caches()
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if not lacking:
        return None
    return f"asking a model needs {' and '.join(lacking)} in {sys.executable}: pip install {' '.join(lacking)}"
