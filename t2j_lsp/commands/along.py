"""``--with PACKAGE``: what the code uses of installed libraries is converted along."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from t2j_lsp.contract import Options, T2JError
from t2j_lsp.files.sources import read_source
from t2j_lsp.libraries.along import Along, known_libraries, libraries_along
from t2j_lsp.libraries.known import KNOWN

from .output import counted, print_findings


def add_libraries(parser: argparse.ArgumentParser, what: str) -> None:
    """``--with``, and what a command does with the libraries that it names."""
    parser.add_argument("--with", dest="libraries", metavar="PACKAGE", action="append", default=[], help=what)


def along_with(
    arguments: argparse.Namespace, files: Sequence[Path], options: Options, folder: Path
) -> AbstractContextManager[Along]:
    """What files use of the libraries that ``--with`` names, for a folder in which more of it may be already."""
    if arguments.libraries and not arguments.output:
        raise T2JError("--with needs -o OUT: what is converted along is written beside it")
    return along_counted(arguments, files, options, folder)


def along_counted(
    arguments: argparse.Namespace, files: Sequence[Path], options: Options, folder: Path | None = None
) -> AbstractContextManager[Along]:
    """The same where nothing is written."""
    if arguments.libraries and options.target == "jax":
        raise T2JError("--with is for --target nnx: functions of a dict of parameters have no such form")
    return libraries_along(files, options, arguments.libraries, arguments.torch_python, folder)


def along_by_itself(arguments: argparse.Namespace, options: Options) -> AbstractContextManager[Along]:
    """What a file that is converted to be run uses of libraries that are known; nothing of it is written."""
    if arguments.converted is not None or options.target == "jax":
        return libraries_along([], options, [])
    files, python = [arguments.source], arguments.torch_python
    return libraries_along(files, options, known_libraries(files, python), python)


def along_notes(along: Along) -> list[str]:
    """What a report says of what was converted along."""
    return [f"converted along: what is used of {one}" for one in along.libraries]


def missing_packages(source: Path, converted: Path | None) -> list[str]:
    """What a report says of packages of known libraries that a converted file imports, and that don't lie beside it."""
    if converted is None:
        return []
    text = read_source(converted).text
    missing = [
        one for one in KNOWN.values() if one.is_imported(text) and not (converted.parent / one.converted).is_dir()
    ]
    return [
        f"{one.converted} is not beside {converted}: t2j convert {source} -o {converted} --with {one.package} writes it"
        for one in missing
    ]


def show_along(along: Along) -> int:
    """Say what was converted of libraries, and what was not; the number of gaps."""
    gaps = 0
    for conversion in along.conversions.values():
        print_findings(conversion, notes=False)
        gaps += len(conversion.translation.gaps)
    for package in along.packages:
        files = [c for place, c in along.conversions.items() if place.startswith(f"{package}/")]
        places = sum(c.translation.converted for c in files)
        print(f"{package}: {counted(places, 'place')} converted in {counted(len(files), 'file')}", file=sys.stderr)
    return gaps


def along_to_json(along: Along) -> dict[str, Any]:
    """The field ``libraries`` of a report: that of each file that was converted along."""
    return {"libraries": [c.to_json(place) for place, c in along.conversions.items()]}
