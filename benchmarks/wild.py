"""Packages of PyTorch code that nobody here wrote: how fast they convert, how much of them, and what is wrong with it.

    python -m benchmarks.wild [--into FOLDER] [--only NAME,...] [--files N] [--seed S] [--twice] [--json FILE]

The sources of each package of `packages.SUBJECTS` are downloaded once into FOLDER (``~/.cache/t2j/wild``) and read
there; nothing of them is run. Every file that mentions torch is converted, or N of each package, drawn by seed before
any is looked at. Printed for each package: files, lines, lines of source for each second of processor time, places that
converted, gaps, defects (what the last reading of an output finds, names and arguments that the installed jax, flax
and optax don't have, and failures of t2j) and files that were refused, with ``--twice`` also the outputs that change
when they are converted again. At the end: the slowest files, the reasons of gaps that are most frequent, and every
defect. The exit status is 0 if there are no defects.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

from benchmarks.installed_names import unknown_names
from benchmarks.packages import SUBJECTS, fetched
from t2j_lsp.api import FileConversion, convert
from t2j_lsp.commands.many_files import converted_or_error
from t2j_lsp.contract import Options, SourceError, T2JError
from t2j_lsp.files.sources import neighbours

SHOWN = 12
"""Slowest files, and reasons of gaps, that are printed."""


@dataclass(frozen=True)
class Converted:
    """What became of one file. ``defects``: what is wrong with its output, or how t2j failed; ``refused``: why."""

    path: str
    lines: int
    seconds: float
    places: int = 0
    gaps: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    refused: str = ""
    again: str = ""
    """The first line that changes when the output is converted again."""


@dataclass
class Package:
    """What became of a package's files."""

    name: str
    subject: str
    files: list[Converted] = field(default_factory=list)

    def __str__(self) -> str:
        lines, seconds = sum(f.lines for f in self.files), sum(f.seconds for f in self.files)
        return (
            f"{self.name:28} {self.subject:24} {len(self.files):6} {lines:8} {lines / max(seconds, 1e-9):8.0f}"
            f" {sum(f.places for f in self.files):7} {sum(len(f.gaps) for f in self.files):7}"
            f" {sum(len(f.defects) for f in self.files):8} {sum(bool(f.refused) for f in self.files):8}"
            f" {sum(bool(f.again) for f in self.files):6}"
        )


HEADING = (
    f"{'package':28} {'subject':24} {'files':>6} {'lines':>8} {'lines/s':>8} {'places':>7} {'gaps':>7}"
    f" {'defects':>8} {'refused':>8} {'again':>6}"
)


def look_at(path: Path, twice: bool) -> Converted:
    """Convert one file, and its output again if ``twice``."""
    start = time.process_time()
    done = converted_or_error((path, Options()))
    seconds = time.process_time() - start
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.count("\n")
    if isinstance(done, T2JError):
        failed = not isinstance(done, SourceError)
        return Converted(str(path), lines, seconds, defects=(str(done),) * failed, refused=str(done) * (not failed))
    translation = done.translation
    defects = [f"{path}:{f.span.line}: {f.reason}" for f in translation.gaps if f.code == "defect"]
    if translation.code != translation.source:
        own = unknown_names(translation.source)
        defects += [f"{path}: {name}" for name in unknown_names(translation.code) if name not in own]
    return Converted(
        str(path),
        lines,
        seconds,
        translation.converted,
        tuple(f.reason for f in translation.gaps),
        tuple(defects),
        again=changes_again(done) if twice else "",
    )


def changes_again(done: FileConversion) -> str:
    """The first line of an output that another conversion changes; empty if none does."""
    code = done.translation.code
    try:
        again = convert(code, path=str(done.path), resolve=neighbours(done.path)).code
    except T2JError as error:
        return f"refused: {error}"
    pairs = zip(code.splitlines(), again.splitlines(), strict=False)
    return "" if again == code else next((f"{a.strip()}  ->  {b.strip()}" for a, b in pairs if a != b), "its length")


def drawn(sources: Path, count: int | None, seed: int) -> list[Path]:
    """The files of a package that mention torch, or ``count`` of them."""
    files = [path for path in sorted(sources.rglob("*.py")) if b"torch" in path.read_bytes()]
    if count is not None and count < len(files):
        files = sorted(random.Random(f"{seed} {sources.parent.name}").sample(files, count))
    return files


def report(packages: Sequence[Package]) -> int:
    """Print what is behind the table; the number of defects."""
    files = [file for package in packages for file in package.files]
    reasons = Counter(reason for file in files for reason in file.gaps)
    whole = Package("all", "", files)
    print(whole)
    _list("slowest files", (f"{f.seconds:6.1f} s {f.lines:6} lines  {f.path}" for f in slowest(files)))
    _list("most frequent gaps", (f"{n:6}  {reason}" for reason, n in reasons.most_common(SHOWN)))
    _list("refused", (f.refused for f in files if f.refused))
    _list("changed by another conversion", (f"{f.path}: {f.again}" for f in files if f.again))
    defects = [defect for f in files for defect in f.defects]
    _list("defects", defects)
    return len(defects)


def slowest(files: Iterable[Converted]) -> list[Converted]:
    return sorted(files, key=lambda f: -f.seconds)[:SHOWN]


def _list(heading: str, lines: Iterable[str]) -> None:
    print(f"\n{heading}:", *(f"  {line}" for line in lines), sep="\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Convert packages of PyTorch code.")
    parser.add_argument("--into", type=Path, default=Path.home() / ".cache/t2j/wild", help="where sources are kept")
    parser.add_argument("--only", default="", help="these packages, with commas between")
    parser.add_argument("--files", type=int, help="this many files of each package (all)")
    parser.add_argument("--seed", type=int, default=1, help="decides which files are drawn (1)")
    parser.add_argument("--twice", action="store_true", help="convert outputs again")
    parser.add_argument("--jobs", type=int, help="processes (as many as there are cores)")
    parser.add_argument("--json", type=Path, help="write what became of each file to this file, too")
    options = parser.parse_args(arguments)
    wanted = set(filter(None, options.only.split(",")))
    packages: list[Package] = []
    print(HEADING)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as executor:
        for subject, names in SUBJECTS.items():
            for name in (n for n in names if not wanted or n in wanted):
                try:
                    paths = drawn(fetched(name, options.into), options.files, options.seed)
                except OSError as error:
                    print(f"{name:28} {error}")
                    continue
                package = Package(name, subject)
                package.files += executor.map(look_at, paths, [options.twice] * len(paths), chunksize=4)
                packages.append(package)
                print(package, flush=True)
    defects = report(packages)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(package) for package in packages], indent=1), encoding="utf-8")
    return 0 if defects == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
