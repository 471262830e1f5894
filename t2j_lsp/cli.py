"""The ``t2j`` command: parses arguments, runs one command, and turns errors into one line and an exit code.

Exit codes: 0 all converted, or equivalent; 1 converted with gaps, or different; 2 usage, or input that can't be read
or parsed; 3 unchecked.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from t2j_lsp import __version__
from t2j_lsp.contract import T2JError

COMMANDS = (
    *("convert", "check", "run", "explain", "coverage", "fixes", "prompt", "eval", "dialogues", "tests", "serve"),
    "rule",
)
USAGE_ERROR = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    words, of_program = _divided(sys.argv[1:] if argv is None else argv)
    arguments = build_parser(words).parse_args(words)
    arguments.of_program = of_program
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except T2JError as error:
        print(f"t2j: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`t2j convert x.py | head`); keep the interpreter from flushing into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the outermost guard: the user gets a line, and a traceback when asked
        if os.environ.get("T2J_DEBUG"):
            traceback.print_exc()
        name = type(error).__name__
        print(f"t2j: an error inside t2j, {name}: {error} (T2J_DEBUG=1 shows where)", file=sys.stderr)
        return USAGE_ERROR


def _divided(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words for t2j, and those behind ``--``, which are for the program that ``t2j run`` runs."""
    end = list(words).index("--") if list(words[:1]) == ["run"] and "--" in words else len(words)
    return [*words[:end]], [*words[end + 1 :]]


def build_parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The argument parser, with one subparser for each module in ``commands``.

    Where the first of ``argv`` is a command, only that one is loaded: a server has to start fast.
    """
    parser = argparse.ArgumentParser(
        prog="t2j",
        description="Convert PyTorch code to Flax NNX by rules, and check the result by running both.",
    )
    parser.add_argument("--version", action="version", version=f"t2j {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in argv[:1] if argv and argv[0] in COMMANDS else COMMANDS:
        import_module(f".commands.{name}", __package__).add_parser(commands)
    return parser
