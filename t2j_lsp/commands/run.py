"""``t2j run``: runs a whole PyTorch program and its conversion and compares all that comes out."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from t2j_lsp.api import CONVERSIONS, both_sides
from t2j_lsp.contract import (
    Options,
    ProgramReport,
    SourceError,
    T2JError,
)

from .along import along_by_itself, along_notes
from .check import EXIT_CODES, add_init, add_layout, add_scan, add_target, add_worker_options, check_target
from .output import Subparsers, counted, print_findings, print_table, progress, write_json

_WHAT = {
    "printed": "printed texts",
    "collected": "lists of numbers",
    "saved": "saved files",
    "parameters": "last parameters",
}


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "run",
        help="run a whole program and its conversion and compare what comes out",
        description="Run a PyTorch program and its conversion with the same random numbers and first weights, and "
        "compare what they print and save, and their last parameters. This runs the whole program, shut in like every "
        "check. Its own arguments go behind --. Exit code 0: equivalent; 1: different; 2: input that can't be read or "
        "parsed; 3: unchecked.",
    )
    parser.add_argument("source", metavar="SRC", type=Path, help="the PyTorch program, a file or a notebook")
    parser.add_argument(
        "positional", metavar="CONVERTED", type=Path, nargs="?", help="its conversion (default: convert)"
    )
    parser.add_argument("--converted", metavar="FILE", type=Path, help="the same")
    parser.add_argument("--steps", metavar="N", type=_count, help="stop both after N optimizer steps")
    parser.add_argument(
        "--data",
        choices=("own", "synthetic"),
        default="own",
        help="synthetic: make up data sets of torchvision and texts that are not there, and end each pass over a "
        "loader after a few batches",
    )
    parser.add_argument("--float64", action="store_true", help="run both in float64")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=600.0, help="for each run (600)")
    add_target(parser)
    add_init(parser)
    add_scan(parser)
    add_layout(parser)
    add_worker_options(parser, "the program may read, besides its own")
    parser.add_argument(
        "--json", metavar="FILE", help="write the report as JSON (- for standard output, without the table)"
    )
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of steps")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Run both, show the report, and return the exit code of the verdict."""
    if arguments.positional and arguments.converted:
        raise T2JError("the conversion is named twice")
    arguments.converted = arguments.converted or arguments.positional
    for path in (arguments.source, arguments.converted):
        if path is not None and path.is_dir():
            raise SourceError(f"{path} is a folder; run takes one program")
    report = _report(arguments)
    if arguments.json:
        write_json(arguments.json, {**report.to_json(), "source": str(arguments.source)})
    if arguments.json != "-":
        show(report)
    return EXIT_CODES[report.verdict]


def _report(arguments: argparse.Namespace) -> ProgramReport:
    # Imported here so that the command line's other commands don't load numpy.
    from t2j_lsp.check.programs.run import RunSettings, not_converted, run_program

    check_target(arguments)
    options = Options(target=arguments.target, init=arguments.init, scan=arguments.scan, layout=arguments.layout)
    with ExitStack() as stack:
        along = stack.enter_context(along_by_itself(arguments, options))
        options = along.options
        sides = both_sides(arguments.source, arguments.converted, options, displays=True)
        if sides.conversion is not None and (gaps := sides.conversion.translation.gaps):
            print_findings(sides.conversion, notes=False)
            return not_converted(gaps)
        shown = stack.enter_context(progress("starting"))
        report = run_program(
            arguments.source,
            sides.converted,
            RunSettings(
                arguments.of_program,
                arguments.steps,
                arguments.timeout,
                arguments.float64,
                arguments.data == "synthetic",
            ),
            device=arguments.device,
            torch_python=arguments.torch_python,
            jax_python=arguments.jax_python,
            readable=arguments.readable,
            neighbour=lambda path: along.converted_text(path) or CONVERSIONS.of(path, options).code,
            packages=along.packages,
            source_map=sides.source_map,
            on_progress=shown.step,
            source_text=sides.source_text,
            converted_text=sides.converted_text,
        )
    report.notes += along_notes(along)
    return sides.cells.program(report) if sides.cells is not None else report


def show(report: ProgramReport) -> None:
    """Print the report, the verdict in the last line."""
    rows = [
        (_WHAT[kind], str(one.count), str(one.numbers), f"{one.max_rel_err:.1e}", f"{one.tolerance:.1e}")
        for kind, one in report.values.items()
        if one.count
    ]
    if rows:
        print_table(("compared", "count", "numbers", "max rel error", "tolerance"), rows, numeric=(1, 2, 3, 4))
    for line in report.notes:
        print(f"note: {line}")
    for line in report.synthetic:
        print(f"synthetic: {line}")
    chaotic = sum(one.chaotic for one in report.values.values())
    if chaotic:
        print(f"note: {counted(chaotic, 'number')} left out, which PyTorch itself does not settle")
    if report.stopped:
        print(f"stopped after {counted(report.steps, 'optimizer step')}")
    for side, times in report.times.items():
        each = "" if times.step_seconds is None else f", {1000 * times.step_seconds:.2f} ms from step to step"
        print(f"{side}: {times.seconds:.2f} s{each}")
    if report.reason:
        places = _places(report)
        print(f"{report.precision}: {report.reason}{places}" if report.divergence else report.reason)
    print(f"{report.verdict} (synthetic data)" if report.synthetic else report.verdict)


def _places(report: ProgramReport) -> str:
    one = report.divergence
    sides = {"torch": one.torch, "jax": one.jax} if one else {}
    places = ", ".join(f"{side} {place}" for side, place in sides.items() if place)
    return f" ({places})" if places else ""
