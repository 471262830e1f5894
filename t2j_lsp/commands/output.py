"""What the commands share in showing results: findings, tables, progress, and JSON files.

Results go to standard output; findings, progress and errors go to standard error. Colour and progress appear on a
terminal only.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from t2j_lsp.api import FileConversion
from t2j_lsp.contract import Severity, T2JError
from t2j_lsp.files.sources import write_atomically


class Subparsers(Protocol):
    """What ``argparse.ArgumentParser.add_subparsers`` returns; each command adds its parser to it."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser: ...


def print_findings(conversion: FileConversion, *, notes: bool = True) -> None:
    """One line for each gap and note, in the order of the source: ``net.py:12:5: gap: torch.foo: reason``."""
    cells = conversion.cells or [None] * len(conversion.translation.findings)
    for finding, cell in zip(conversion.translation.findings, cells, strict=True):
        if finding.severity is Severity.NOTE and not notes:
            continue
        where = f"{conversion.path}:{f'cell {cell}:' if cell else ''}{finding.span.line}:{finding.span.column + 1}"
        print(f"{where}: {finding.severity}: {finding.message}", file=sys.stderr)


def counted(number: int, noun: str) -> str:
    """``1 gap``, ``2 gaps``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Iterable[int] = ()) -> None:
    """A table on standard output: drawn on a terminal, plain columns in a pipe. ``numeric`` columns align right."""
    right = set(numeric)
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table()
        for index, header in enumerate(headers):
            table.add_column(header, justify="right" if index in right else "left", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        Console().print(table)
        return
    for line in plain_table(headers, rows, right):
        print(line)


def plain_table(headers: Sequence[str], rows: Sequence[Sequence[str]], numeric: Iterable[int] = ()) -> Iterator[str]:
    """The lines of a table in plain columns. ``numeric`` columns align right."""
    right = set(numeric)
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        cells = [
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


@contextmanager
def progress(description: str, total: int | None = None) -> Iterator[CommandProgress]:
    """Shows progress on standard error while the block runs, if that is a terminal."""
    if not sys.stderr.isatty():
        yield CommandProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    counts = [BarColumn(), MofNCompleteColumn()] if total is not None else []
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), *counts, TimeElapsedColumn()]
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _TerminalProgress(bar, bar.add_task(description, total=total))


class CommandProgress:
    """Progress that nobody watches."""

    def step(self, description: str) -> None:
        """Show what is being done now."""

    def advance(self) -> None:
        """Count one piece as done."""


class _TerminalProgress(CommandProgress):
    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task

    def step(self, description: str) -> None:
        self._bar.update(self._task, description=description)

    def advance(self) -> None:
        self._bar.advance(self._task)


def write_json(target: str, value: dict[str, Any]) -> None:
    """Write a report to a file, or to standard output for ``-``. Only an earlier report is written over."""
    text = json.dumps(value, indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    path = Path(target)
    if path.exists() and not _is_report(path):
        raise T2JError(f"{path} exists and is not a report of t2j; choose another name for --json")
    write_atomically(path, text.encode())


def _is_report(path: Path) -> bool:
    try:
        data = path.read_bytes()
        return not data.strip() or "version" in json.loads(data)
    except (OSError, ValueError, TypeError):
        return False
