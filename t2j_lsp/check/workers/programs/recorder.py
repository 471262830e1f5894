"""What a program prints and logs, with the line of the program that did it."""

from __future__ import annotations

import builtins
import io
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from t2j_lsp.check.messages import Printed

Shown = Callable[[Any], str | None]
"""The text of a framework's own value, the same on both sides; None for any other value."""
MAX_TEXT = 100_000
"""Characters kept of one thing printed."""


class OutputRecorder:
    """The texts that a program puts out, in order. ``files`` are the program's own."""

    def __init__(self, files: set[str], shown: Shown) -> None:
        self.files = files
        self.shown = shown
        self.printed: list[Printed] = []

    def place(self) -> tuple[str, int]:
        """Where the program is: the innermost line of its own files."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in self.files:
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return "", 0

    def add(self, text: str) -> None:
        self.printed.append(Printed(text[:MAX_TEXT], *self.place()))

    def text(self, value: Any) -> str:
        """A value as it is printed."""
        shown = self.shown(value)
        return str(value) if shown is None else shown

    def display(self, *values: Any) -> None:
        """What a notebook does with values: those that both sides have alike are shown."""
        for value in values:
            shown = self.shown(value)
            if isinstance(value, str | int | float | np.ndarray | np.generic) or shown and not shown.startswith("<"):
                self.add(f"{value if shown is None else shown}\n")


class _Output(io.TextIOBase):
    """Standard output. What is written by parts of a line counts as one text."""

    def __init__(self, recorder: OutputRecorder) -> None:
        self.recorder = recorder
        self.open = False
        """Whether the last text has no end of line yet."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text and self.open:
            last = self.recorder.printed[-1]
            self.recorder.printed[-1] = Printed((last.text + text)[:MAX_TEXT], last.file, last.line)
        elif text:
            self.recorder.add(text)
        self.open = bool(text) and not text.endswith("\n")
        return len(text)


@contextmanager
def recording(recorder: OutputRecorder) -> Iterator[None]:
    """What the program puts out goes to the recorder, and nowhere else."""
    output, printing, handling = _Output(recorder), builtins.print, logging.Logger.handle
    before = sys.stdout

    def printed(*values: Any, sep: str | None = None, end: str | None = None, file: Any = None, **more: Any) -> None:
        if file is None or file is output:
            text = (" " if sep is None else sep).join(map(recorder.text, values))
            output.write(text + ("\n" if end is None else end))
        else:
            printing(*values, sep=sep, end=end, file=file, **more)

    def handled(logger: logging.Logger, record: logging.LogRecord) -> None:
        if record.pathname in recorder.files:
            recorder.printed.append(Printed(f"{record.getMessage()[:MAX_TEXT]}\n", record.pathname, record.lineno))
        else:
            handling(logger, record)

    sys.stdout, builtins.print, logging.Logger.handle = output, printed, handled  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        sys.stdout, builtins.print, logging.Logger.handle = before, printing, handling  # type: ignore[method-assign]
