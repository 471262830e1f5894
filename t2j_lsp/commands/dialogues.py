"""``t2j dialogues``: what was asked of models and answered, counted, or exported as training data."""

from __future__ import annotations

import argparse
import json
from pathlib import Path, PurePath
from typing import Any

from t2j_lsp.assist.alike import same_program
from t2j_lsp.assist.dialogue import Dialogue, Format, read
from t2j_lsp.assist.exporting import Exported, exported
from t2j_lsp.contract import T2JError
from t2j_lsp.files.sources import write_atomically
from t2j_lsp.plugins import brought_fixed_bugs

from .output import Subparsers, counted, print_table

FORMATS: dict[str, Format] = {"code-pair": "code pair", "dialogue": "dialogue", "qs-pair": "qs pair"}
SIDES = ("train", "test")


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "dialogues",
        help="count dialogues with models, or export them for fine-tuning",
        description="Read files of --dialogues: count what is in them, or, with -o, write verified answers as "
        "examples in chat format, train.jsonl and test.jsonl. All dialogues about a program, and about programs like "
        "it, are on one side. Nothing is written where something of the test side is found on the training side.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="files that --dialogues wrote")
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, help="where to write the examples")
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="dialogue",
        help="dialogue (default): all turns; code-pair: both programs; qs-pair: each question with its verified answer",
    )
    parser.add_argument("--test", metavar="SHARE", type=float, default=0.2, help="share of programs (default: 0.2)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count or export. T2JError where a file holds something else, or where something would leak."""
    if not 0 <= arguments.test <= 1:
        raise T2JError(f"--test takes a share from 0 to 1, not {arguments.test}")
    dialogues = [dialogue for file in arguments.files for dialogue in _read(file)]
    if arguments.output is None:
        _print_counts(arguments.files, dialogues)
        return 0
    examples = brought_fixed_bugs()
    export = exported(
        dialogues,
        FORMATS[arguments.format],
        arguments.test,
        lambda source: same_program(PurePath(), source, examples),
    )
    if export.leaks.total:
        raise T2JError(f"nothing is written: {_leaks(export)}")
    _write(arguments.output, export)
    rows = [
        [side, str(count), str(len(rows))]
        for side, count, rows in zip(SIDES, export.dialogues, (export.train, export.test), strict=True)
    ]
    print_table(["side", "dialogues", f"examples ({arguments.format})"], rows, numeric=(1, 2))
    print(_leaks(export))
    return 0


def _read(file: Path) -> list[Dialogue]:
    try:
        return read(file)
    except OSError as error:
        raise T2JError(f"{file} can't be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise T2JError(f"{file} holds no dialogues: {type(error).__name__}: {error}") from error


def _print_counts(files: list[Path], dialogues: list[Dialogue]) -> None:
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    verified = [dialogue for dialogue in dialogues if dialogue.verified]
    tokens = sum(turn.tokens_in + turn.tokens_out for turn in turns)
    rows = [
        ["dialogues", str(len(dialogues))],
        ["  verified", str(len(verified))],
        ["  failed", str(len(dialogues) - len(verified))],
        ["programs", str(len({dialogue.source_id for dialogue in dialogues}))],
        ["turns", str(len(turns))],
        ["  verified", str(sum(turn.verified for turn in turns))],
        ["tokens", str(tokens)],
    ]
    print_table([counted(len(files), "file"), "count"], rows, numeric=(1,))


def _leaks(exported: Exported) -> str:
    leaks = exported.leaks
    return (
        f"found on the training side of the test side: {counted(leaks.dialogues, 'dialogue')}, "
        f"{counted(leaks.sources, 'program')}, {counted(leaks.answers, 'answer')}, {leaks.fixed_bugs} of its fixed bugs"
    )


def _write(folder: Path, exported: Exported) -> None:
    for side in SIDES:
        if (folder / f"{side}.jsonl").exists():
            raise T2JError(f"{folder / side}.jsonl exists; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for side, rows in zip(SIDES, (exported.train, exported.test), strict=True):
        write_atomically(folder / f"{side}.jsonl", "".join(map(_line, rows)).encode())


def _line(example: dict[str, Any]) -> str:
    return json.dumps(example, ensure_ascii=False) + "\n"
