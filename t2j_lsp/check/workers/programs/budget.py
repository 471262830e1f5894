"""How many optimizer steps a program makes: counted, timed, and stopped before one too many."""

from __future__ import annotations

import time


class StopProgram(BaseException):
    """The program made all the steps that it was to make. No program catches it as an error of its own."""


class StepBudget:
    """The optimizer steps of a run, at most ``steps``; none further begins after ``seconds``."""

    def __init__(self, steps: int | None, seconds: float | None) -> None:
        self.steps = steps
        self.until = None if seconds is None else time.monotonic() + seconds
        self.times: list[float] = []

    @property
    def is_spent(self) -> bool:
        if self.steps is not None and len(self.times) >= self.steps:
            return True
        return self.until is not None and bool(self.times) and time.monotonic() > self.until

    def before(self) -> None:
        """A step is about to be made. Raises StopProgram where it is one too many."""
        if self.is_spent:
            raise StopProgram

    def after(self, count: int = 1) -> None:
        """Steps were made."""
        self.times += [time.perf_counter()] * count
