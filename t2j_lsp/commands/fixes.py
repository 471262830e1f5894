"""``t2j fixes``: fixed bugs like this one: what went wrong in other conversions, and what holds instead."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..contract import JSON_VERSION, T2JError
from ..files import decode
from ..fixed_bugs import Found, Query
from ..plugins import load_fixed_bugs
from .output import Subparsers, write_json


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "fixes",
        help="find bugs of JAX conversions that were fixed",
        description="Find fixed bugs that are like yours: by words, by an error message, by code. Each was run: the "
        "faulty code fails as it says, the fixed code is equivalent to PyTorch.",
    )
    parser.add_argument("search", metavar="SEARCH", nargs="*", help="words, a torch or jax name, an error message")
    parser.add_argument("--code", metavar="FILE", help="JAX code that fails")
    parser.add_argument("--source", metavar="FILE", help="the PyTorch code that it came from")
    parser.add_argument("--limit", metavar="N", type=int, default=3, help="how many (default: 3)")
    parser.add_argument("--json", metavar="FILE", help="write them as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the bugs that fit best. T2JError where nothing is asked or nothing fits."""
    words = " ".join(arguments.search)
    if not (words or arguments.code or arguments.source):
        raise T2JError("say what to look for: words, an error message, or --code FILE")
    query = Query(_read(arguments.source), _read(arguments.code), words, words)
    found = load_fixed_bugs().search(query, limit=arguments.limit, distinct=True)
    if not found:
        raise T2JError("no fixed bug is like this")
    if arguments.json:
        write_json(arguments.json, report(found))
    print("\n\n".join(_text(one) for one in found))
    return 0


def report(found: list[Found]) -> dict[str, Any]:
    """The ``--json`` form: the published fields of each pair, its category, and what running it showed."""
    rows = [{"id": one.pair.id, "score": round(one.score, 3), **one.pair.bug.to_json()} for one in found]
    return {"version": JSON_VERSION, "fixes": rows}


def _read(path: str | None) -> str:
    if path is None:
        return ""
    try:
        return decode(Path(path).read_bytes()).text
    except OSError as error:
        raise T2JError(f"{path} can't be read: {error.strerror}") from error


def _text(found: Found) -> str:
    bug = found.pair.bug
    lines = [f"{bug.root_cause.replace('-', ' ')}  ({bug.category}: {bug.sub_category})", "", bug.fix_info, ""]
    lines += [f"  - {line}" for line in bug.error_code.rstrip("\n").split("\n")]
    lines += [f"  + {line}" for line in bug.fixed_code.rstrip("\n").split("\n")]
    return "\n".join([*lines, "", f"  it said: {bug.error.splitlines()[0]}", f"  in {found.pair.example.title}"])
