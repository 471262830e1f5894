"""``t2j coverage``: what of a code base converts, what does not, and why."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..api import convert_file
from ..contract import Options, T2JError
from ..coverage import Coverage
from ..files import python_files
from .output import Subparsers, counted, print_table, progress, write_json

SHOWN_REASON = 90


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "coverage",
        help="count what of a code base converts",
        description="Convert files without writing them, and count torch names that convert, that do not, and why. "
        "Exit code 0: no gaps; 1: gaps; 2: nothing could be read.",
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="files and folders")
    parser.add_argument(
        "--json", metavar="FILE", help="write the counts as JSON (- for standard output, without the table)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count, show, and return the exit code."""
    files: list[Path] = []
    for path in arguments.paths:
        found = list(python_files(path)) if path.is_dir() else [path]
        if not found:
            raise T2JError(f"{path} holds no .py or .ipynb files")
        files += found
    result = Coverage()
    with progress("reading", total=len(files)) as shown:
        for path in dict.fromkeys(files):
            shown.step(path.name)
            _count(path, result)
            shown.advance()
    for reason in result.errors.values():
        print(f"t2j: {reason}", file=sys.stderr)
    if not result.files:
        return 2
    if arguments.json:
        write_json(arguments.json, result.to_json())
    if arguments.json != "-":
        _show(result)
    return 1 if result.gaps else 0


def _count(path: Path, result: Coverage) -> None:
    try:
        conversion = convert_file(path, Options())
        result.add(conversion.translation, conversion.python)
    except T2JError as error:
        result.errors[str(path)] = str(error)
    except Exception as error:  # the guard of one file: a bad one never stops the rest
        result.errors[str(path)] = f"{path}: an error inside t2j, {type(error).__name__}: {error}"


def _show(result: Coverage) -> None:
    rows = []
    for usage in result.ranked:
        reason = usage.reasons.most_common(1)[0][0] if usage.reasons else ""
        more = f" (+{len(usage.reasons) - 1} more reasons)" if len(usage.reasons) > 1 else ""
        short = reason if len(reason) <= SHOWN_REASON else reason[: SHOWN_REASON - 1] + "…"
        rows.append((usage.name, str(usage.uses), str(usage.gaps), short + more))
    if rows:
        print_table(("name", "uses", "gaps", "reason"), rows, numeric=(1, 2))
    failed = f", {counted(len(result.errors), 'file')} failed" if result.errors else ""
    print(
        f"{counted(result.files, 'file')}{failed}: {counted(result.converted, 'place')} converted, "
        f"{counted(result.gaps, 'gap')}, {counted(result.notes, 'note')}"
    )
