"""``t2j check``: runs a PyTorch file and its conversion side by side and prints the verdict on each object."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2j_lsp import __version__
from t2j_lsp.api import check, convert_file
from t2j_lsp.contract import STAGES, CheckReport, ObjectVerdict, Options, SourceError, T2JError, VerdictKind
from t2j_lsp.files.sources import read_source
from t2j_lsp.fixes.offers import case_of_verdict, counted, rows, text
from t2j_lsp.fixes.record import SimilarPair
from t2j_lsp.migration.verdict_store import asked_of, digests_of, kept, record

from .along import along_by_itself, along_notes, missing_packages
from .output import CommandProgress, Subparsers, print_table, progress, write_json

if TYPE_CHECKING:
    from t2j_lsp.check.process.pool import Pool

EXIT_CODES = {VerdictKind.EQUIVALENT: 0, VerdictKind.DIFFERENT: 1, VerdictKind.UNCHECKED: 3}


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "check",
        help="run a file and its conversion and compare them",
        description="Run a PyTorch file and its conversion side by side and compare what they compute. This runs code "
        "of the file. Exit code 0: equivalent; 1: different; 2: input that can't be read or parsed; 3: unchecked.",
    )
    parser.add_argument("source", metavar="SRC", type=Path, help="the PyTorch file or notebook")
    parser.add_argument(
        "converted", metavar="CONVERTED", type=Path, nargs="?", help="its conversion (default: convert)"
    )
    parser.add_argument("--object", metavar="NAME", action="append", help="check this class or function (repeatable)")
    parser.add_argument("--explain", action="store_true", help="show the values of both sides, statement by statement")
    add_options(parser)
    add_target(parser)
    add_init(parser)
    add_scan(parser)
    add_layout(parser)
    parser.add_argument(
        "--json", metavar="FILE", help="write the report as JSON (- for standard output, without the table)"
    )
    parser.set_defaults(run=run)


def add_target(parser: argparse.ArgumentParser) -> None:
    """What the conversion is written for."""
    parser.add_argument(
        "--target",
        choices=("nnx", "jax"),
        default="nnx",
        help="nnx: Flax NNX (default); jax: functions of a dict of parameters, without Flax",
    )


def add_init(parser: argparse.ArgumentParser) -> None:
    """Whose initial values the conversion has."""
    parser.add_argument(
        "--init",
        choices=("torch", "flax"),
        default="torch",
        help="initial values of layers: PyTorch's (default), or left to Flax, which is shorter",
    )


def add_scan(parser: argparse.ArgumentParser) -> None:
    """Whether layers that are alike become one that is scanned."""
    parser.add_argument(
        "--scan",
        action="store_true",
        help="stack layers that are alike and run one behind the other: JAX compiles one of them (nnx.scan)",
    )


def add_layout(parser: argparse.ArgumentParser) -> None:
    """What the outermost modules take and give."""
    parser.add_argument(
        "--layout",
        choices=("nchw", "nhwc"),
        default="nchw",
        help="axes of what the outermost modules take and give: PyTorch's (default), or channels last",
    )


def check_target(arguments: argparse.Namespace) -> None:
    """Raises T2JError where an option speaks of Flax's modules, and functions of a dict are asked for."""
    given = [name for name, said in (("--scan", arguments.scan), ("--layout", arguments.layout != "nchw")) if said]
    if arguments.target == "jax" and given:
        raise T2JError(f"{given[0]} is for --target nnx: functions of a dict of parameters have no such form")


def add_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """What can be said of a check, wherever it is made."""
    parser.add_argument("--stage", choices=STAGES, default=STAGES[-1], help="the last stage to run")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=120.0, help="for each object (120)")
    add_worker_options(parser, "the code may read, besides its project")


def add_worker_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, readable: str) -> None:
    """Where workers run, by which interpreters, and what they may read."""
    parser.add_argument(
        "--device", choices=("auto", "cpu", "gpu"), default="auto", help="where to run: auto is the CPU (default: auto)"
    )
    parser.add_argument("--torch-python", metavar="PYTHON", help="the interpreter that has torch (default: this one)")
    parser.add_argument(
        "--jax-python", metavar="PYTHON", help="the interpreter that has jax and flax (default: this one)"
    )
    parser.add_argument(
        "--readable",
        metavar="DIR",
        type=folder,
        action="append",
        default=[],
        help=f"a folder or file that {readable} (repeatable)",
    )


def folder(text: str) -> Path:
    """A path that code may read."""
    path = Path(text).expanduser()
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{text} does not exist")
    if path.resolve() == path.resolve().parent:
        raise argparse.ArgumentTypeError(f"{text} is everything: name the folders that the code needs")
    return path


def run(arguments: argparse.Namespace) -> int:
    """Check, show the report, and return the exit code of the verdict."""
    check_target(arguments)
    options = Options(target=arguments.target, init=arguments.init, scan=arguments.scan, layout=arguments.layout)
    with along_by_itself(arguments, options) as along:
        report = checked(
            arguments.source,
            arguments.converted,
            arguments,
            objects=arguments.object,
            explain=arguments.explain,
            options=along.options,
            packages=along.packages,
        )
        offers = offered(report, arguments.source, arguments.converted, along.options)
    report.notes += [*along_notes(along), *missing_packages(arguments.source, arguments.converted)]
    if arguments.json:
        write_json(arguments.json, with_offers(report, offers))
    if arguments.json != "-":
        show(report, offers, explain=arguments.explain)
    return EXIT_CODES[report.verdict]


def offered(
    report: CheckReport, source: Path, converted: Path | None, options: Options
) -> dict[str, list[SimilarPair]]:
    """The fixed bugs that are like what went wrong, by object; only those that differ are there."""
    different = [one for one in report.objects if one.verdict is VerdictKind.DIFFERENT]
    if not different or _notebooks(source, converted):
        return {}
    # Imported here so that a check that finds nothing wrong doesn't read them.
    from t2j_lsp.fixes.own_fixes import similar_with_own

    torch = read_source(source).text
    code = read_source(converted).text if converted else convert_file(source, options).translation.code
    known = similar_with_own()
    cases = {o.name: case_of_verdict(o.to_json(), (source, torch), (converted or source, code)) for o in different}
    return {name: known.similar(case) if case is not None else [] for name, case in cases.items()}


def _notebooks(source: Path, converted: Path | None) -> bool:
    """Whether one of a pair is a notebook, of which no verdicts are kept."""
    return ".ipynb" in (source.suffix, (converted or source).suffix)


def with_offers(report: CheckReport, offers: dict[str, list[SimilarPair]]) -> dict[str, Any]:
    """The report as JSON; each object that differs has ``similar``, the fixed bugs that are like it."""
    form = report.to_json()
    for one in form["objects"]:
        if one["name"] in offers:
            one["similar"] = rows(offers[one["name"]])
    return form


def checked(
    source: Path,
    converted: Path | None,
    arguments: argparse.Namespace,
    *,
    objects: list[str] | None = None,
    explain: bool = False,
    options: Options | None = None,
    pool: Pool | None = None,
    packages: Mapping[str, Path] | None = None,
) -> CheckReport:
    """Checks a pair of files as the options say and keeps the verdicts; without ``converted``, what a source becomes.

    ``options`` are those of the conversion, ``pool`` workers to use, ``packages`` folders of what was converted along.
    """
    texts = _texts(source, converted)
    with progress("checking") if pool is None else contextlib.nullcontext(CommandProgress()) as shown:
        report = check(
            source,
            converted,
            objects=objects,
            stage=arguments.stage,
            device=arguments.device,
            torch_python=arguments.torch_python,
            jax_python=arguments.jax_python,
            timeout=arguments.timeout,
            readable=arguments.readable,
            explain=explain,
            on_progress=shown.step,
            options=options,
            pool=pool,
            packages=packages,
        )
    if (
        converted is not None
        and texts is not None
        and texts == _texts(source, converted)
        and not _notebooks(source, converted)
    ):
        _keep((source, converted), arguments, texts, report)
    return report


def _keep(files: tuple[Path, Path], arguments: argparse.Namespace, texts: tuple[str, str], report: CheckReport) -> None:
    """Note the verdicts on two files, so that other commands and the editor know them."""
    # Imported here so that the command line's other commands don't load numpy.
    from t2j_lsp.check.program.objects import find_objects
    from t2j_lsp.check.program.slice import Slicer
    from t2j_lsp.check.verdict.coverage import Covered, decided_by

    source, converted = files
    sides = Slicer(source, texts[0]), Slicer(converted, texts[1])
    names = [item.name for item in find_objects(sides[0], None)]
    for side in sides:
        for name in names:
            if side.modules.defines(side.main, name):
                side.cut(name)
    known = kept(source, texts[0], converted, texts[1])
    decided = decided_by(report.objects)
    record(
        source,
        texts[0],
        converted,
        texts[1],
        [one.to_json() for one in report.objects],
        device=report.device,
        version=__version__,
        asked=asked_of(arguments.stage, arguments.device, arguments.torch_python, arguments.jax_python, arguments.init),
        names=names,
        neighbours=digests_of(sides[0].modules.neighbours | sides[1].modules.neighbours),
        ran={one.name: one.ran for one in report.objects},
        coverage=Covered(*sides).coverage(*(known.beside(*decided) if known is not None else decided)),
    )


def _texts(source: Path, converted: Path | None) -> tuple[str, str] | None:
    """The texts of the pair that is checked; None without a file for the conversion, or where one can't be read."""
    if converted is None:
        return None
    try:
        return read_source(source).text, read_source(converted).text
    except SourceError:
        return None


def show(report: CheckReport, offers: dict[str, list[SimilarPair]] | None = None, *, explain: bool = False) -> None:
    """The table of objects, what is behind each verdict that is not ``equivalent``, and the verdict of all.

    ``found`` are fixed bugs like what went wrong, by object: they are counted, or shown with ``explain``.
    """
    if report.objects:
        rows = [_row(one) for one in report.objects]
        print_table(("object", "verdict", *STAGES, "max abs error", "max rel error"), rows, numeric=(5, 6))
    else:
        print("nothing to check: the file has no module class and no function of tensors at its top level")
    for one in report.objects:
        for line in _explanation(one):
            print(line)
        show_explanation(one)
        show_offers(one.name, (offers or {}).get(one.name, []), explain)
    for line in uncovered(report):
        print(line)
    for line in report.notes:
        print(f"note: {line}")
    why = f" (a GPU was asked for: {report.device_reason})" if report.device_reason else ""
    print(f"device: {report.device}{why}")
    if report.containment is not None and report.containment.not_held:
        print(f"not held here: {'; '.join(report.containment.not_held)}")
    if report.coverage is not None and report.objects:
        print(f"covered: {report.coverage.text}")
    print(report.verdict)


def uncovered(report: CheckReport) -> list[str]:
    """What the verdict on a file does not cover, by name and line, and what was compared of code that trains."""
    if report.coverage is None:
        return []
    lines = []
    trains = {one.name for one in report.not_run}
    places = [f"{_called(one.name)} ({one.lines})" for one in report.coverage.not_run if one.name not in trains]
    if places:
        lines.append(f"converted, but not run: {', '.join(places)}")
    if report.not_run:
        where = ", ".join(f"{_called(one.name)} ({one.lines})" for one in report.not_run)
        trained = [(o.name, text) for o in report.objects for text in o.stages["behavioral"].observed]
        parts = [f"{name} was trained with {text}" for name, text in trained if text.startswith("its own optimizer")]
        lines.append("; ".join([f"not run as a whole: {where}", *parts]))
    if report.coverage.branches:
        where = ", ".join(f"{one.lines} of {one.name}" for one in report.coverage.branches)
        lines.append(f"branches that did not run: {where}")
    return lines


def _called(name: str) -> str:
    """A definition as a report calls it."""
    return "top-level code" if name == "<script>" else name


def show_explanation(one: ObjectVerdict) -> None:
    """The values of both sides as a table, where there are any."""
    if one.explanation is None:
        return
    # Imported here so that the command line's other commands don't load numpy.
    from t2j_lsp.check.difference.explain import HEADERS, NUMERIC, closing, table

    print(f"{one.name}, statement by statement:")
    print_table(HEADERS, list(table(one.explanation)), numeric=NUMERIC)
    for line in closing(one.explanation):
        print(line)


def show_offers(name: str, offers: list[SimilarPair], explain: bool) -> None:
    """How many fixed bugs are like what went wrong; all of them side by side where that was asked for."""
    if not offers:
        return
    print(f"{name}: {counted(len(offers))}{':' if explain else ' (--explain shows them)'}")
    for one in offers if explain else ():
        print(f"\n{text(one.pair)}\n")


def _row(one: ObjectVerdict) -> tuple[str, ...]:
    results = [str(one.stages[stage].result) for stage in STAGES]
    absolute = [s.max_abs_err for s in one.stages.values() if s.max_abs_err is not None]
    relative = [s.max_rel_err for s in one.stages.values() if s.max_rel_err is not None]
    worst = [f"{max(errors):.1e}" if errors else "" for errors in (absolute, relative)]
    return (one.name, str(one.verdict), *results, *worst)


def _explanation(one: ObjectVerdict) -> list[str]:
    """Why this verdict, stage by stage, and where the two programs part; each sentence once."""
    given = [(stage, one.stages[stage].reason) for stage in STAGES]
    reasons = {reason: f"{stage}: {reason}" for stage, reason in given if reason}
    if one.reason:
        reasons[one.reason] = one.reason
    if one.divergence:
        sides = {"torch": one.divergence.torch, "jax": one.divergence.jax}
        places = ", ".join(f"{side} {place}" for side, place in sides.items() if place)
        what = one.divergence.what
        reasons[what] = reasons.get(what, what) + (f" ({places})" if places else "")
        if one.divergence.cause:
            reasons[one.divergence.cause] = f"likely cause: {one.divergence.cause}"
    return [f"{one.name}: {reason}" for reason in reasons.values()]
