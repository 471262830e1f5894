"""``t2j convert``: one file, a notebook, a folder, or standard input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from t2j_lsp.api import FileConversion, convert_file
from t2j_lsp.contract import HELPER_LINES, JSON_VERSION, HelperPlacement, Options, SourceError, T2JError
from t2j_lsp.files import helper_modules
from t2j_lsp.files.repointing import conversions_beside, repointed
from t2j_lsp.files.sources import decode, python_files, refuse_to_write, write_output
from t2j_lsp.libraries.along import Along

from . import llm
from .along import add_libraries, along_to_json, along_with, show_along
from .check import add_init, add_layout, add_options, add_scan, add_target, check_target
from .convert_check import check_all, worse
from .many_files import convert_all
from .output import Subparsers, counted, print_findings, progress, write_json

STDIN = "-"


def _place(text: str) -> str | None:
    """Where to write; None for standard output."""
    return None if text == "-" else text


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "convert",
        help="convert a file, a notebook or a folder",
        description="Convert PyTorch code to JAX. Exit code 0: all converted; 1: with gaps, each marked "
        "'# TODO(t2j): reason' and listed; 2: input that can't be read or parsed. With --check the worse of "
        "that and of the verdict's: 0 equivalent, 3 unchecked, 1 different.",
    )
    parser.add_argument(
        "source", metavar="SRC", help="a .py file, an .ipynb notebook, a folder, or - for standard input"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=_place,
        help="the file or folder to write (default, and -: standard output)",
    )
    add_target(parser)
    parser.add_argument("--json", metavar="FILE", help="write a report as JSON")
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument(
        "--merge", action="store_true", help="merge into files that were edited since t2j wrote them (1 with conflicts)"
    )
    existing.add_argument("--force", action="store_true", help="replace files that t2j did not write")
    parser.add_argument(
        "--helpers",
        choices=("auto", "inline", "module", "import"),
        help="auto (default): helper functions of a file go into the output, or if they are long into a module beside "
        "it, net_helpers.py for net.py; those of a folder into one module. inline: into the output. module: whole, "
        "into one module beside what imports it. import: from t2j",
    )
    parser.add_argument(
        "--helper-lines",
        metavar="N",
        type=int,
        default=HELPER_LINES,
        help=f"the lines of code of helpers that stay in a file by --helpers auto ({HELPER_LINES})",
    )
    add_libraries(
        parser,
        "convert along what the code uses of an installed library, as torchvision's models, into a package beside "
        "the output (repeatable)",
    )
    add_init(parser)
    add_scan(parser)
    add_layout(parser)
    parser.add_argument("--x64", action="store_true", help="keep 64-bit dtypes (for JAX with jax_enable_x64)")
    parser.add_argument(
        "--check", action="store_true", help="check what was converted, too; this runs code of the files"
    )
    add_options(parser.add_argument_group("with --check"))
    llm.add_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert what the arguments name and return the exit code."""
    source = Path(arguments.source)
    is_folder = arguments.source != STDIN and source.is_dir()
    arguments.helpers = _placement(arguments, is_folder)
    check_target(arguments)
    options = Options(
        target=arguments.target,
        x64=arguments.x64,
        helpers=arguments.helpers,
        helper_lines=arguments.helper_lines,
        init=arguments.init,
        scan=arguments.scan,
        layout=arguments.layout,
    )
    if not arguments.output and arguments.json == STDIN:
        raise T2JError("--json - needs -o OUT: standard output takes the code")
    if not arguments.output and not is_folder and arguments.helpers == "module":
        raise T2JError("--helpers module needs -o OUT: the module is written beside it")
    if arguments.check and arguments.source == STDIN:
        raise T2JError("--check needs a file: standard input has no place where its imports are found")
    files = _files(source, arguments) if is_folder else [source]
    folder = Path(arguments.output or "") if is_folder else _target(source, arguments).parent
    with along_with(arguments, files, options, folder) as along:
        if is_folder:
            return _convert_folder(source, files, arguments, along)
        return _convert_one(source, arguments, along)


def _placement(arguments: argparse.Namespace, is_folder: bool) -> HelperPlacement:
    """Where helpers go. They stay in what is printed, and in what a model is asked about, which is run by itself."""
    placement: HelperPlacement = arguments.helpers or "auto"
    if placement != "auto":
        return placement
    if is_folder:
        return "module"
    return "auto" if arguments.output and arguments.llm == "off" else "inline"


def _convert_one(source: Path, arguments: argparse.Namespace, along: Along) -> int:
    options = along.options
    if arguments.source == STDIN:
        place = _target(source, arguments) if arguments.output else None
        conversion = convert_file(Path("<stdin>"), options, sys.stdin.buffer.read(), place)
    else:
        place = _target(source, arguments)
        conversion = _noted(convert_file(source, _placed(replace(options, alone=True), place), target=place), place)
    conversion = llm.completed(conversion, arguments)
    target, conflicts = _write(conversion, arguments)
    conflicts += _write_along(_target(source, arguments).parent, along, arguments)
    print_findings(conversion)
    translation = conversion.translation
    print(
        _summary(str(conversion.path), translation.converted, len(translation.gaps), len(translation.notes)),
        file=sys.stderr,
    )
    if conversion.helper_module is not None:
        print(f"{conversion.path}: its helpers are in {conversion.helper_module}", file=sys.stderr)
    left = show_along(along)
    written = Path(target) if arguments.output else None
    verdicts = check_all([(conversion, written)], arguments, options) if arguments.check else None
    if arguments.json:
        report = conversion.to_json(target) | ({"conflicts": conflicts} if arguments.merge else {})
        report |= along_to_json(along) if arguments.libraries else {}
        write_json(arguments.json, report | (verdicts.to_json(folder=False) if verdicts is not None else {}))
    return worse(1 if translation.gaps or left or conflicts else 0, verdicts.exit_code if verdicts is not None else 0)


def _target(source: Path, arguments: argparse.Namespace) -> Path:
    """The file to write; a folder as ``-o`` takes the source's name."""
    target = Path(arguments.output or source.name)
    return target / source.name if target.is_dir() else target


def _noted(conversion: FileConversion, target: Path) -> FileConversion:
    """Without notes of files whose conversions the converted one imports."""
    translation = conversion.translation
    converted = conversions_beside(conversion.path, target, translation.code)
    kept = tuple(f for f in translation.findings if f.code != "along" or f.name.lstrip(".") not in converted)
    return replace(conversion, translation=replace(translation, findings=kept))


def _placed(options: Options, path: Path, top: Path | None = None) -> Options:
    """The options with the name under which the file at ``path`` imports its helper module."""
    return replace(options, helper_module=helper_modules.home(path, top or path.parent)[1])


def _write(conversion: FileConversion, arguments: argparse.Namespace) -> tuple[str, int]:
    """Write one conversion where the arguments say; the name of the target, and the conflicts that are marked in it."""
    if not arguments.output:
        if sys.stdout.isatty():
            sys.stdout.write(conversion.translation.code)
        else:
            # Bytes, so that a redirected file has the encoding that its first line may name.
            sys.stdout.buffer.write(conversion.data)
        return STDIN, 0
    target = _target(conversion.path, arguments)
    if conversion.path.suffix == ".py":
        code = conversion.translation.code
        code = repointed(code, conversions_beside(conversion.path, target, code))
        conversion = replace(conversion, translation=replace(conversion.translation, code=code))
    conflicts = 0
    if conversion.helper_module is not None and conversion.translation.helper_source is not None:
        # Both or none.
        refuse_to_write(target, conversion.data, force=arguments.force, merging=arguments.merge)
        conflicts += _write_file(conversion.helper_module, conversion.translation.helper_source.encode(), arguments)
    conflicts += _write_file(target, conversion.data, arguments)
    idle = helper_modules.idle_module(target) if conversion.helper_module is None else None
    if idle is not None:
        idle.unlink()
        print(f"{idle}: removed, since {target} has its helpers in it or needs none", file=sys.stderr)
    names = conversion.translation.needs.helpers
    if arguments.helpers == "module" and names:
        conflicts += _write_helpers(helper_modules.home(target, target.parent)[0], names, arguments)
    return str(target), conflicts


def _write_file(path: Path, data: bytes, arguments: argparse.Namespace) -> int:
    """Write or merge one file, say so where it was merged, and return the number of conflicts."""
    merged = write_output(path, data, force=arguments.force, merging=arguments.merge)
    if merged is None:
        return 0
    marked = f"; {counted(merged.conflicts, 'conflict')} marked <<<<<<<" if merged.conflicts else ""
    print(f"{path}: merged with what was edited there{marked}", file=sys.stderr)
    return merged.conflicts


def _write_helpers(folder: Path, names: Iterable[str], arguments: argparse.Namespace) -> int:
    path = folder / f"{helper_modules.NAME}.py"
    if path.is_file():
        # Files that were converted before import theirs from it.
        names = {*names, *helper_modules.helpers_in(decode(path.read_bytes()).text)}
    return _write_file(path, helper_modules.module_source(names).encode(), arguments)


def _write_along(folder: Path, along: Along, arguments: argparse.Namespace) -> int:
    """Write what was converted of libraries into a folder; the number of conflicts that are marked in it."""
    return sum(_write_file(folder / place, text.encode(), arguments) for place, text in along.written.items())


def _summary(name: str, converted: int, gaps: int, notes: int) -> str:
    return f"{name}: {counted(converted, 'place')} converted, {counted(gaps, 'gap')}, {counted(notes, 'note')}"


@dataclass
class _Folder:
    """What a folder's conversion came to."""

    conversions: list[FileConversion] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    conflicts: int = 0

    def fail(self, path: Path, error: Exception) -> None:
        line, column = (error.line, error.column) if isinstance(error, SourceError) else (None, None)
        self.errors.append({"file": str(path), "line": line, "column": column, "reason": str(error)})

    def to_json(self, source: str, target: str) -> dict[str, Any]:
        """The form of a file's report, with the ``file`` on every finding, and the files that failed."""
        forms = [c.to_json("") for c in self.conversions]
        return {
            "version": JSON_VERSION,
            "source": source,
            "target": target,
            "converted": sum(form["converted"] for form in forms),
            "gaps": [{"file": form["source"], **row} for form in forms for row in form["gaps"]],
            "notes": [{"file": form["source"], **row} for form in forms for row in form["notes"]],
            "helpers": sorted({name for form in forms for name in form["helpers"]}),
            "files": len(self.conversions),
            "errors": self.errors,
        }


def _files(source: Path, arguments: argparse.Namespace) -> list[Path]:
    """The files of a folder."""
    if not arguments.output:
        raise T2JError(f"{source} is a folder; name the folder to write with -o OUT")
    target = Path(arguments.output)
    if target.exists() and not target.is_dir():
        raise T2JError(f"{target} is not a folder")
    files = list(python_files(source, outside=target))
    if not files:
        raise T2JError(f"{source} holds no .py or .ipynb files")
    return files


def _convert_folder(source: Path, files: list[Path], arguments: argparse.Namespace, along: Along) -> int:
    target, options = Path(arguments.output), along.options
    result = _Folder()
    helpers: dict[Path, set[str]] = {}
    with progress("converting", total=len(files)) as shown:
        jobs = [(path, _placed(options, path, source)) for path in files]
        for path, done in zip(files, convert_all(jobs), strict=True):
            inside = path.relative_to(source)
            shown.step(str(inside))
            with _guard(path, result):
                if isinstance(done, T2JError):
                    raise done
                conversion = llm.completed(done, arguments)
                result.conflicts += _write_file(target / inside, conversion.data, arguments)
                result.conversions.append(conversion)
                home = target / helper_modules.home(path, source)[0].relative_to(source)
                helpers.setdefault(home, set()).update(conversion.translation.needs.helpers)
            shown.advance()
    for home, names in helpers.items():
        if arguments.helpers == "module" and names:
            with _guard(home / f"{helper_modules.NAME}.py", result):
                result.conflicts += _write_helpers(home, names, arguments)
    result.conflicts += _write_along(target, along, arguments)
    status = _report_folder(source, result)
    status = max(status, 1 if show_along(along) else 0)
    pairs = [(c, target / c.path.relative_to(source)) for c in result.conversions]
    verdicts = check_all(pairs, arguments, options) if arguments.check else None
    if arguments.json:
        report = result.to_json(str(source), str(target)) | ({"conflicts": result.conflicts} if arguments.merge else {})
        report |= along_to_json(along) if arguments.libraries else {}
        write_json(arguments.json, report | (verdicts.to_json(folder=True) if verdicts is not None else {}))
    return worse(status, verdicts.exit_code if verdicts is not None else 0)


@contextmanager
def _guard(path: Path, result: _Folder) -> Iterator[None]:
    """Records what goes wrong with one file, so that it never stops the rest."""
    try:
        yield
    except T2JError as error:
        result.fail(path, error)
    except Exception as error:  # noqa: BLE001 - a defect of t2j: the file is reported, the others are converted
        result.fail(path, T2JError(f"{path}: an error inside t2j, {type(error).__name__}: {error}"))


def _report_folder(source: Path, result: _Folder) -> int:
    for conversion in result.conversions:
        print_findings(conversion, notes=False)
    for error in result.errors:
        print(f"t2j: {error['reason']}", file=sys.stderr)
    translations = [c.translation for c in result.conversions]
    gaps = sum(len(t.gaps) for t in translations)
    totals = _summary(
        str(source), sum(t.converted for t in translations), gaps, sum(len(t.notes) for t in translations)
    )
    files = f" in {counted(len(result.conversions), 'file')}"
    failed = f", {counted(len(result.errors), 'file')} failed" if result.errors else ""
    print(totals + files + failed, file=sys.stderr)
    return 2 if result.errors else 1 if gaps or result.conflicts else 0
