"""What of the output changed since another revision: every corpus converted by both, and the differences.

    python -m benchmarks.outputs --since REVISION [FILE_OR_FOLDER ...] [--wheel PATH] [--helpers import] [--keep FOLDER]
        [--counts]

The sources are those of this checkout, the same for both: without paths, the corpora of `CORPORA` and torchvision's
sources. The revision's files are unpacked into a temporary folder, and each side converts in a process of its own,
which imports t2j from there. Printed are a unified diff for each file whose output differs, from the revision's to the
present one, with the findings and what a side failed on, and how many files differ. ``--helpers import`` leaves copied
helpers out, so that what differs is what became of the user's own lines. ``--counts`` prints a line for each file
instead of its diff, for revisions too far apart to be read: its gaps and its lines of code, before and after. The exit
status is 0 if no output differs.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .torchvision_sources import PACKAGE, SourcesNotFound, find_sources

ROOT = Path(__file__).parent.parent
CORPORA = (
    "examples",
    "tests/programs",
    "tests/projects",
    "tests/translate/models",
    "tests/translate/scripts",
    "benchmarks/mutants_corpus",
    "benchmarks/transfer_learning",
    "benchmarks/volumes_corpus",
)
CONVERT = """
import json, sys
from pathlib import Path
from t2j_lsp.api import convert_file
from t2j_lsp.contract import Options, SourceError

for line in sys.stdin:
    try:
        done = convert_file(Path(line.rstrip("\\n")), Options(helpers=sys.argv[1])).translation
        said = (f"# {f.severity.name.lower()}: line {f.span.line}: {f.reason}\\n" for f in done.findings)
        text = done.code + "".join(said)
    except SourceError as error:
        text = f"# refused: {error}\\n"
    except Exception as error:
        text = f"# failed: {type(error).__name__}: {error}\\n"
    print(json.dumps(text), flush=True)
"""
"""What a side runs: paths come in, a line each, and what they become goes out, with the findings behind it."""


def unpack(revision: str, folder: Path, repository: Path = ROOT) -> None:
    """Write the files of a revision of a repository into a folder.

    Raises:
        CalledProcessError: git knows no such revision; its message was printed.
    """
    archive = subprocess.run(["git", "archive", revision], cwd=repository, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def outputs(checkout: Path, paths: Sequence[Path], helpers: str = "inline") -> list[str]:
    """What the t2j of a checkout makes of each file."""
    run = subprocess.run(
        [sys.executable, "-c", CONVERT, helpers],
        input="".join(f"{path}\n" for path in paths),
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def differences(paths: Iterable[Path], before: Iterable[str], after: Iterable[str]) -> Iterator[tuple[Path, str]]:
    """Each file that became something else, and the diff."""
    for path, old, new in zip(paths, before, after, strict=True):
        if old != new:
            lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), "before", "after", n=2)
            yield path, "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def gaps_and_lines(output: str) -> tuple[int, int]:
    """How many gaps an output was handed over with, and how many of its lines are neither blank nor a comment."""
    lines = output.splitlines()
    return sum(line.startswith("# gap: ") for line in lines), sum(
        bool(line.strip()) and line.lstrip()[0] != "#" for line in lines
    )


def print_counts(paths: Iterable[Path], before: Iterable[str], after: Iterable[str]) -> None:
    """Print gaps and lines of each file that became something else, more gaps first, and their sums over all files."""
    rows = [
        (path, gaps_and_lines(old), gaps_and_lines(new))
        for path, old, new in zip(paths, before, after, strict=True)
        if old != new
    ]
    for path, (old_gaps, old_lines), (new_gaps, new_lines) in sorted(rows, key=lambda row: row[1][0] - row[2][0]):
        print(f"{old_gaps:4} -> {new_gaps:4} gaps {old_lines:5} -> {new_lines:5} lines  {path}")
    for name, which in (("gaps", 0), ("lines", 1)):
        print(
            f"{name} of files that differ: {sum(row[1][which] for row in rows)} -> {sum(row[2][which] for row in rows)}"
        )


def sources(folders: Iterable[Path]) -> Iterator[Path]:
    """The Python files of folders, and files that are named themselves."""
    for path in folders:
        yield from sorted(path.resolve().rglob("*.py")) if path.is_dir() else [path.resolve()]


def default_folders(wheel: Path | None) -> Iterator[Path]:
    """The corpora, with torchvision's sources where there are any."""
    yield from (ROOT / name for name in CORPORA)
    try:
        yield find_sources(wheel) / PACKAGE
    except SourcesNotFound as error:
        print(f"Without torchvision: {error}", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Show which outputs changed since another revision.")
    parser.add_argument("paths", type=Path, nargs="*", metavar="FILE_OR_FOLDER")
    parser.add_argument("--since", required=True, metavar="REVISION", help="the other side, as git names it")
    parser.add_argument("--wheel", type=Path, help="a torchvision wheel, or a folder that holds torchvision/")
    parser.add_argument("--helpers", choices=("inline", "import"), default="inline", help="where helpers stand")
    parser.add_argument("--keep", type=Path, help="unpack the revision here, and leave it there")
    parser.add_argument("--counts", action="store_true", help="gaps and lines of each file instead of its diff")
    options = parser.parse_args(arguments)
    paths = list(sources(options.paths or default_folders(options.wheel)))
    with tempfile.TemporaryDirectory(prefix="t2j-outputs-") as temporary:
        folder = options.keep or Path(temporary)
        try:
            unpack(options.since, folder)
        except subprocess.CalledProcessError:
            return 2
        before, after = (outputs(side, paths, options.helpers) for side in (folder.resolve(), ROOT))
    changed = dict(differences(paths, before, after))
    if options.counts:
        print_counts(paths, before, after)
    for path, diff in () if options.counts else changed.items():
        print(f"== {path}\n{diff}")
    print(f"{len(changed)} of {len(paths)} files differ")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
