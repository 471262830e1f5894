"""The check process: in which interpreter it runs, and what it says when it can't."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from t2j_lsp.child.process import Cancelled, Child, ChildDied, ChildFailed
from t2j_lsp.contract import T2JError


def interpreter(jax_python: str | None) -> str:
    """Where the check process runs: what compares arrays needs numpy. The server's own interpreter where that has it.

    Else the JAX side's, since jax brings numpy: a server that comes with an extension carries no compiled package.
    Raises T2JError where neither is there.
    """
    importlib.invalidate_caches()
    if find_spec("numpy") is not None:
        return sys.executable
    if jax_python and jax_python != sys.executable:
        return jax_python
    raise T2JError(f"checks need numpy, torch, jax, flax and optax, and {sys.executable} has no numpy")


class CheckProcess(Child):
    """One process, which runs one check at a time."""

    def __init__(self, keep_warm: Callable[[], float]) -> None:
        super().__init__("t2j_lsp.lsp.checking.process", keep_warm=keep_warm)

    async def run(
        self, request: dict[str, Any], progress: Callable[[str], None], operation: str = "check"
    ) -> dict[str, Any] | None:
        """The answer to a request; None where it was stopped. Raises T2JError with what went wrong."""
        python = interpreter(request["jax_python"])
        # An interpreter that is not set is the server's, wherever the check process runs.
        sides = {name: request[name] or sys.executable for name in ("torch_python", "jax_python")}
        try:
            answer: dict[str, Any] = await self.ask(
                operation, {"request": {**request, "run_by": sides}}, progress, python
            )
        except Cancelled:
            return None
        except ChildDied as error:
            if python != sys.executable and error.code == 1:
                needs = "needs Python 3.11 or later, jax, flax and optax"
                raise T2JError(f"a check can't start in {python}: the JAX side's interpreter {needs}") from None
            raise T2JError("the check process ended; the next check starts another one") from None
        except ChildFailed as error:
            raise T2JError(f"the check failed: {error}") from None
        return answer
