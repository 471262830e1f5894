"""``t2j prompt``: what a language model would be sent for a file. Nothing is sent."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from t2j_lsp.api import convert_file
from t2j_lsp.assist.prompts import VERSIONS, first_prompt
from t2j_lsp.assist.spans import with_all
from t2j_lsp.contract import JSON_VERSION, Options, T2JError
from t2j_lsp.plugins import load_fixed_bugs

from .output import Subparsers, counted, write_json


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "prompt",
        help="print what a language model would be sent for a file",
        description="Print the prompt for what the rules refuse in a file, with the fixed bugs found for it. Nothing "
        "is sent to anyone. Exit code 0 also where the rules refuse nothing: then there is nothing to print.",
    )
    parser.add_argument("source", metavar="SRC", help="a .py file")
    parser.add_argument(
        "--style", choices=tuple(VERSIONS), default="augmented", help="augmented (default): with fixed bugs; standard"
    )
    parser.add_argument(
        "--llm", choices=("auto", "always"), default="auto", help="always: as for t2j convert --llm always"
    )
    parser.add_argument("--json", metavar="FILE", help="write messages, spans and the ids of the bugs as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the prompt. T2JError where SRC is no file that converts."""
    path = Path(arguments.source)
    if path.suffix == ".ipynb" or path.is_dir():
        raise T2JError(f"{path} is no .py file; prompt takes one")
    translation = convert_file(path, Options()).translation
    if arguments.llm == "always":
        translation = with_all(translation)
    prompt = first_prompt(translation, arguments.style, load_fixed_bugs())
    if arguments.json:
        write_json(
            arguments.json,
            {
                "version": JSON_VERSION,
                "prompt": prompt.version,
                "messages": list(prompt.messages) if prompt.spans else [],
                "spans": [
                    {"line": s.source_line, "end_line": s.source_end_line, "names": s.names} for s in prompt.spans
                ],
                "fixes": [pair.id for pair in prompt.pairs],
            },
        )
    if not prompt.spans:
        print(f"{path}: the rules refuse nothing, so no model would be asked", file=sys.stderr)
        return 0
    if not arguments.json:
        print(prompt.text(), end="")
    asked, fixes = counted(len(prompt.spans), "span"), counted(len(prompt.pairs), "similar fixed bug")
    print(f"{path}: {asked}, {fixes}; nothing was sent", file=sys.stderr)
    return 0
