"""``t2j coverage``: what of a code base converts, what does not, and why; and how far its migration is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2j_lsp import __version__
from t2j_lsp.contract import Options, T2JError
from t2j_lsp.files.helper_modules import home
from t2j_lsp.files.sources import python_files, source_path, write_atomically
from t2j_lsp.lsp.settings import from_pyproject, settings_of
from t2j_lsp.migration.coverage import CoverageCounts
from t2j_lsp.migration.coverage_page import MARK, page
from t2j_lsp.migration.state import SUFFIX, Migration, Surveyor

from .along import add_libraries, along_counted
from .check import add_target
from .many_files import convert_all
from .output import Subparsers, counted, print_table, progress, write_json

SHOWN_REASON = 90


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "coverage",
        help="count what of a code base converts",
        description="Convert files without writing them, and count torch names that convert, that do not, and why; and "
        "how many files have a conversion, and what checks said of it. Exit code 0: no gaps; 1: gaps; 2: nothing could "
        "be read.",
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="files and folders")
    add_target(parser)
    add_libraries(
        parser,
        "count what the code uses of an installed library too, converted along as by convert --with (repeatable)",
    )
    parser.add_argument("--torch-python", metavar="PYTHON", help="the interpreter that has it (default: this one)")
    parser.add_argument(
        "--json", metavar="FILE", help="write the counts as JSON (- for standard output, without the table)"
    )
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page that needs nothing but a browser")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count, show, and return the exit code."""
    folders: dict[Path, str] = {path: suffix_at(path) for path in arguments.paths}
    files: list[Path] = []
    for path, suffix in folders.items():
        sources = [p for p in python_files(path) if not _is_conversion(p, suffix)] if path.is_dir() else [path]
        if not sources:
            raise T2JError(f"{path} holds no .py or .ipynb files")
        files += sources
    result = counts(list(dict.fromkeys(files)), arguments, [path for path in folders if path.is_dir()])
    for reason in result.errors.values():
        print(f"t2j: {reason}", file=sys.stderr)
    if not result.files:
        return 2
    migration = Surveyor().survey(folders)
    if arguments.json:
        write_json(arguments.json, result.to_json() | {"migration": _to_json(migration)})
    if arguments.html:
        write_page(arguments.html, page(arguments.paths, result, migration, arguments.html.parent, __version__))
    if arguments.json != "-":
        _show(result)
        _show_migration(migration)
    return 1 if result.gaps else 0


def counts(paths: list[Path], arguments: argparse.Namespace, folders: Sequence[Path] = ()) -> CoverageCounts:
    """Convert files, those in ``folders`` as ``t2j convert`` does those of a folder, and what is converted along of
    libraries, and count.
    """
    result, options = CoverageCounts(), Options(target=arguments.target)
    with along_counted(arguments, paths, options) as along, progress("reading", total=len(paths)) as shown:
        jobs = [(path, _options_in(path, folders, along.options)) for path in paths]
        for path, done in zip(paths, convert_all(jobs), strict=True):
            shown.step(path.name)
            if isinstance(done, T2JError):
                result.errors[str(path)] = str(done)
            else:
                result.add(path, done.translation, done.python, done.cells)
            shown.advance()
        for place, done in along.conversions.items():
            result.add(Path(place), done.translation, done.python, done.cells)
    return result


def _options_in(path: Path, folders: Sequence[Path], options: Options) -> Options:
    """The options for a file: the helpers of a folder's files are in one module."""
    top = next((folder for folder in folders if path.is_relative_to(folder)), None)
    return options if top is None else replace(options, helpers="module", helper_module=home(path, top)[1])


def suffix_at(path: Path) -> str:
    """What a conversion's name has more than its source's, in the project that a path belongs to."""
    home = path.resolve()
    for folder in (home, *home.parents):
        if (folder / "pyproject.toml").is_file():
            return settings_of(from_pyproject(folder / "pyproject.toml")).suffix
    return SUFFIX


def write_page(path: Path, text: str) -> None:
    """Write a page. Only an earlier page of t2j is written over. Raises T2JError."""
    try:
        if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
            raise T2JError(f"{path} exists and is not a page of t2j; choose another name for --html")
    except OSError as error:
        raise T2JError(f"can't write {path}: {(error.strerror or str(error)).lower()}") from None
    write_atomically(path, text.encode("utf-8", "backslashreplace"))


def _is_conversion(path: Path, suffix: str) -> bool:
    origin = source_path(path, suffix)
    return origin is not None and origin.is_file()


def _to_json(migration: Migration) -> dict[str, Any]:
    files = [
        {
            "file": str(file.path),
            "state": file.state,
            "converted": str(file.converted) if file.converted is not None else None,
            "gaps": file.gaps,
            "coverage": file.coverage.to_json() if file.coverage is not None else None,
            "symbols": [symbol.to_json() for symbol in file.symbols],
        }
        for file in migration.files
    ]
    return {"files": files, "counts": migration.counts, "symbol_counts": migration.symbol_counts}


def _show(result: CoverageCounts) -> None:
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


def _show_migration(migration: Migration) -> None:
    """Where a migration has begun: how many PyTorch files are in which state."""
    if any(file.converted is not None for file in migration.files):
        counts = ", ".join(f"{count} {state}" for state, count in migration.counts.items() if count)
        print(f"{counted(len(migration.files), 'PyTorch file')}: {counts}")
