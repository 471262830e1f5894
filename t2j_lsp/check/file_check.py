"""The check of one object after the other, within the time that each may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from t2j_lsp.check.difference.locate import Locator
from t2j_lsp.check.messages import Prepared
from t2j_lsp.check.process.budget import SHARE, TimeBudget
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.recall import Recall
from t2j_lsp.check.process.worker import OutOfMemory, TimedOut, WorkerError
from t2j_lsp.check.program.counterparts import Counterpart, counterpart, given_from_outside
from t2j_lsp.check.program.objects import CheckedObject
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.verdict.coverage import Covered
from t2j_lsp.contract import ObjectVerdict, SourceMapEntry

from .attempt import Attempt, unchecked
from .inputs import CommentError
from .preparing import Less, Preparing, cut_jax, pairing_of
from .requests import JaxRequest, TorchRequest
from .session import CheckSession, CheckSettings

FIRST_RUN = 0.4
"""Of the time limit, for each request of a first run; the rest is for a second one with smaller inputs."""
_EITHER = "with smaller inputs and nothing repeated either"
GIVEN = "its conversion is given what it reads from outside ({}): `t2j run` compares it in use"
SHORT = 20.0
"""Seconds for each request of a first run at least: with a time limit as short as that there is no second one."""


class FileCheck:
    """The check of the objects of one file, in an order in which one tells how to call the next."""

    def __init__(
        self,
        pool: Pool,
        torch_side: Slicer,
        jax_side: Slicer,
        settings: CheckSettings,
        cancelled: Callable[[], bool],
        source_map: Sequence[SourceMapEntry] = (),
        recall: Recall | None = None,
        expression: Callable[[str], str] | None = None,
    ) -> None:
        self.session = CheckSession(pool, torch_side, jax_side, settings, cancelled, recall, expression)
        self.preparing = Preparing(self.session)
        self.locator = Locator(torch_side, jax_side, source_map, self.session.requests)
        self.covered = Covered(torch_side, jax_side)

    def object(self, item: CheckedObject) -> ObjectVerdict:
        """The verdict on one object."""
        session = self.session
        if session.cancelled():
            return unchecked(item.name, "the check was cancelled")
        session.begin()
        try:
            other = counterpart(session.jax_side, item)
            if other is None:
                return unchecked(item.name, f"the converted file has no {item.name}")
            if given := given_from_outside(session.torch_side, session.jax_side, item, other):
                return unchecked(item.name, GIVEN.format(", ".join(given)))
            verdict = self._within_limits(item, other)
            verdict.ran = self.covered.ran(session.marks["torch"], session.marks["jax"])
            return verdict
        except (CommentError, WorkerError) as error:
            return unchecked(item.name, str(error))
        except Exception as error:  # noqa: BLE001 - the outermost guard of a check: a fault of ours is no verdict either
            return unchecked(item.name, f"the checker itself failed: {type(error).__name__}: {error}")

    def settle(self, verdicts: dict[str, ObjectVerdict]) -> None:
        """Gives a class that was checked as part of another that one's verdict."""
        self.preparing.settle(verdicts)

    def inputs_for(self, item: CheckedObject) -> Prepared:
        """How an object is built and called; or ``problems``, where nothing runs.

        Raises CommentError, WorkerError, and RemoteError where the PyTorch code does not load.
        """
        return self.preparing.of(item, self.session.settings.seed).prepared

    def run_time(self, item: CheckedObject, other: Counterpart) -> dict[str, float] | None:
        """Seconds of one call of each side, and those that JAX compiles; None where there are no inputs.

        Raises WorkerError and RemoteError.
        """
        session = self.session
        preparation = self.preparing.of(item, session.settings.seed)
        plan = preparation.prepared
        if plan.problems is not None:
            return None
        pairing, seed = pairing_of(session.torch_side, item, other), session.settings.seed
        call = TorchRequest(slice=preparation.torch_slice, init=plan.init, inputs=plan.inputs, seed=seed)
        torch = session.requests.clock(call)
        part = cut_jax(session.jax_side, other, preparation)
        jax = session.requests.clock(call.as_a(JaxRequest, slice=part, pairing=pairing, state=torch.state))
        first, median = jax.seconds["first"], jax.seconds["median"]
        return {"torch": torch.seconds["median"], "jax": median, "compile": max(first - median, 0.0)}

    def _within_limits(self, item: CheckedObject, other: Counterpart) -> ObjectVerdict:
        """The verdict, if need be by a second run with smaller inputs, in which nothing is repeated."""
        session, start, timeout = self.session, time.monotonic(), self.session.settings.timeout
        seconds = timeout * SHARE if session.settings.budget is None else session.settings.budget
        session.limit = max(timeout * FIRST_RUN, min(timeout, SHORT))
        try:
            return self._attempt(item, other, TimeBudget(seconds))
        except (TimedOut, OutOfMemory) as error:
            if session.limit == timeout and isinstance(error, TimedOut):
                raise
            session.limit = max(timeout - (time.monotonic() - start), timeout * (1 - FIRST_RUN))
            return self._again(item, other, Less.TIME if isinstance(error, TimedOut) else Less.MEMORY)
        finally:
            session.limit = timeout

    def _again(self, item: CheckedObject, other: Counterpart, less: Less) -> ObjectVerdict:
        try:
            return self._attempt(item, other, TimeBudget(0.0), less)
        except TimedOut as error:
            text = f"the {error.kind} side did not finish in {self.session.settings.timeout:.0f} s"
            return unchecked(item.name, f"{text}, {_EITHER}")
        except OutOfMemory as error:
            return unchecked(item.name, f"{error}, {_EITHER}")

    def _attempt(
        self, item: CheckedObject, other: Counterpart, budget: TimeBudget, less: Less = Less.NOTHING
    ) -> ObjectVerdict:
        return Attempt(self.session, self.preparing, self.locator, item, other, budget, less).verdict()
