"""``t2j tests``: unit tests of a PyTorch file, written or given, on both programs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from t2j_lsp import __version__
from t2j_lsp.api import convert_file
from t2j_lsp.contract import JSON_VERSION, Options, T2JError, Translation
from t2j_lsp.files.repointing import repointed
from t2j_lsp.files.sources import decode, read_source, write_output

from .output import CommandProgress, Subparsers, counted, progress, write_json

if TYPE_CHECKING:
    from t2j_lsp.check.process.pool import Pool
    from t2j_lsp.check.unit_tests.compare import Programs, TestOutcome, TestReport

NO_TESTS = 3


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "tests",
        help="write unit tests of a file, and run them on the file and on its conversion",
        description="Write unit tests of a PyTorch file from what it computes, or take those of --tests. They run on "
        "the PyTorch file first; with --run those that pass are converted by the rules and run on the conversion. This "
        "runs code of the file. Exit code 0: all agree; 1: some differ or don't convert; 2: input that can't be read "
        "or run; 3: no tests.",
    )
    parser.add_argument("source", metavar="SRC", type=Path, help="the PyTorch file")
    parser.add_argument(
        "converted", metavar="CONVERTED", type=Path, nargs="?", help="its conversion (default: convert)"
    )
    parser.add_argument(
        "--tests", metavar="FILE", type=Path, help="a test file of SRC, instead of tests that are written"
    )
    parser.add_argument(
        "--object", metavar="NAME", action="append", help="only this class or function; may be repeated"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the PyTorch tests to FILE")
    parser.add_argument("--jax-output", metavar="FILE", type=Path, help="write the converted tests to FILE")
    parser.add_argument("--run", dest="both", action="store_true", help="run the converted tests on the conversion")
    parser.add_argument("--force", action="store_true", help="write over files that t2j did not write")
    parser.add_argument("--torch-python", metavar="PATH", help="the interpreter with torch and pytest")
    parser.add_argument("--jax-python", metavar="PATH", help="the interpreter with jax, flax and pytest")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=300.0, help="for each run (default: 300)")
    parser.add_argument("--json", metavar="FILE", help="write the counts, and the tests that don't agree, as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write or read the tests, run them, and print what became of them."""
    for path in (arguments.source, arguments.converted, arguments.tests):
        if path is not None and (path.suffix == ".ipynb" or path.is_dir()):
            raise T2JError(f"{path} is no .py file; tests takes one")
    # Imported here so that the command line's other commands don't load numpy.
    from t2j_lsp.check.process.compile_cache import project_of
    from t2j_lsp.check.process.containment import projects
    from t2j_lsp.check.process.pool import Pool
    from t2j_lsp.check.process.worker import RemoteError, WorkerError
    from t2j_lsp.check.unit_tests.compare import Programs, PytestMissing

    source: Path = arguments.source
    converted = arguments.converted
    text = decode(converted.read_bytes()).text if converted else convert_file(source, Options()).translation.code
    programs = Programs(source, text, lambda path: convert_file(path, Options()).translation.code)
    folders = projects(source, *([converted] if converted else []))
    with (
        Pool(
            arguments.torch_python, arguments.jax_python, project=project_of(source), readable=folders, quick=False
        ) as pool,
        progress("starting") as shown,
    ):
        try:
            return _run(arguments, pool, programs, shown)
        except PytestMissing as error:
            raise T2JError(str(error)) from error
        except (RemoteError, WorkerError) as error:
            raise T2JError(f"the tests can't be run: {error}") from error


def _run(arguments: argparse.Namespace, pool: Pool, programs: Programs, shown: CommandProgress) -> int:
    from t2j_lsp.check.program.slice import Slicer
    from t2j_lsp.check.unit_tests import compare as unit_tests
    from t2j_lsp.check.unit_tests.writer import write_tests

    source: Path = arguments.source
    path = arguments.tests or arguments.output or source.with_name(f"test_{source.stem}.py")
    if arguments.tests:
        text, notes = read_source(path).text, []
        programs.tests_at[path] = Slicer(source).workspace.root / path.name
    else:
        shown_path = path if path.resolve().parent == source.resolve().parent else source.with_name(path.name)
        path = shown_path if shown_path.resolve() != source.resolve() else source.with_name(f"test_{source.stem}.py")
        written = write_tests(pool, Slicer(source), path, arguments.object, arguments.timeout, shown.step)
        text, notes = written.code, [f"{name}: no tests: {why}" for name, why in written.skipped]
    _tell(notes)
    if not text:
        print(f"{source}: no tests", file=sys.stderr)
        return NO_TESTS
    if arguments.both or arguments.jax_output:
        report = unit_tests.compare_tests(pool, programs, path, text, _translate, arguments.timeout, shown.step)
    else:
        shown.step("running the tests on the PyTorch program")
        kept, dropped = unit_tests.on_source(pool, programs, path, text, arguments.timeout)
        report = unit_tests.TestReport(text, "", len(kept) + len(dropped), dropped)
    return _report(arguments, report, programs)


def _translate(path: Path, text: str) -> Translation:
    return convert_file(path, Options(), text.encode()).translation


def _report(arguments: argparse.Namespace, report: TestReport, programs: Programs) -> int:
    """Write the files, print what is not as it should be, and the counts."""
    from t2j_lsp.check.unit_tests.compare import function_of, without

    gone = [function_of(one.name) for one in report.dropped] if not arguments.tests else []
    torch_code = without(report.torch_code, gone) if gone else report.torch_code
    if arguments.output and not arguments.tests:
        write_output(arguments.output, torch_code.encode(), force=arguments.force)
    elif not arguments.tests and arguments.json != "-":
        print(torch_code, end="")
    if arguments.jax_output:
        code = without(report.jax_code, gone) if gone else report.jax_code
        if arguments.converted:
            code = repointed(code, {programs.source.stem: arguments.converted.stem})
        write_output(arguments.jax_output, code.encode(), force=arguments.force)
    _tell([f"dropped: {one}" for one in report.dropped])
    _tell([f"not converted: {name}: {reason}" for name, reason in report.untranslated])
    _tell([f"differs: {_shown(one)}" for one in report.differ])
    if arguments.json:
        write_json(
            arguments.json,
            {"version": JSON_VERSION, "t2j": __version__, "source": str(arguments.source), **report.to_json()},
        )
    if not report.kept:
        print(f"{arguments.source}: {counted(report.tests, 'test')}, none passes on the PyTorch file", file=sys.stderr)
        return NO_TESTS
    compared = arguments.both or arguments.jax_output
    counts = report.summary() if compared else f"{counted(report.tests, 'test')}, {report.kept} kept"
    print(f"{arguments.source}: {counts}", file=sys.stderr)
    return 1 if compared and (report.differ or report.untranslated) else 0


def _shown(one: TestOutcome) -> str:
    return f"{one.name}: passes on the PyTorch file; on the conversion {one.message or one.outcome}"


def _tell(lines: list[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)
