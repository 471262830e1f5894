"""Module classes of PyTorch libraries, drawn by seed: converted, run beside their sources, and every one listed.

    python -m benchmarks.library_classes --path FOLDER --out FILE [--packages timm,...] [--classes N] [--seed S]
        [--again PATTERN] [--python PYTHON] [--with PACKAGE,...]

FOLDER holds the packages, installed or unpacked; only their sources are read. Of each package's module classes that
have a ``forward``, wherever they stand in it, some are taken in an order that the seed decides before anything is
looked at, until N of them run in PyTorch; so those that do not convert are among them. For one that doesn't run, no
constructor arguments and inputs were found, or it asks for packages that are not installed, or for the network: it is
listed, and another is drawn. Libraries that t2j knows are converted along, as ``t2j check`` does, and those that
``--with`` names, as ``t2j convert --with`` does. ``--out`` has a line of JSON for each class; a run goes on where an
earlier one with the same file stopped, and ``--again`` checks those anew whose name, verdict or reason has the pattern,
with what converts now. The exit status is 0 if all that run are equivalent.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.promise import Claim, told_in, was_given
from t2j_lsp.api import CONVERSIONS, convert_expression
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.program.objects import find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import Options, SourceError, T2JError, VerdictKind
from t2j_lsp.libraries.along import Along, known_libraries, libraries_along

PACKAGES = {
    "timm": "timm",
    "vit-pytorch": "vit_pytorch",
    "x-transformers": "x_transformers",
    "segmentation-models-pytorch": "segmentation_models_pytorch",
    "denoising-diffusion-pytorch": "denoising_diffusion_pytorch",
    "torchaudio": "torchaudio/models",
}
"""Where the module classes of each package are, below the folder that holds all of them."""
EQUIVALENT, DIFFERENT, GAP, UNCHECKED, NOT_RUN = "equivalent", "different", "gap", "unchecked", "not run"
_NOT_RUN = re.compile(
    r"no working inputs were found|no module named|not installed|refuses what the PyTorch code does", re.IGNORECASE
)
"""Reasons of classes that PyTorch was not brought to run."""


@dataclass(frozen=True)
class Outcome:
    """What became of one class. ``reason``: why it isn't equivalent."""

    package: str
    file: str
    name: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.outcome:10} {self.seconds:6.1f} s  {self.file}: {self.name}  {self.reason[:300]}".rstrip()


def classes(root: Path, package: str) -> Iterator[tuple[Path, str]]:
    """The module classes of a package, in the order of files."""
    for path in sorted((root / PACKAGES[package]).rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "torch" in text and "class " in text:
            yield from ((path, item.name) for item in find_objects(Slicer(path, text), None) if item.is_class)


def drawn(root: Path, package: str, seed: int) -> list[tuple[Path, str]]:
    """All of them, in the order in which they are taken."""
    every_class = list(classes(root, package))
    random.Random(f"{seed} {package}").shuffle(every_class)
    return every_class


@dataclass(frozen=True)
class Setting:
    """How classes are checked: the folder of packages, workers, seconds for each, and what is converted along."""

    root: Path
    pool: Pool
    timeout: float
    python: str | None
    libraries: Sequence[str]
    stack: ExitStack
    """Ends with the run."""
    made: dict[Path, Along] = field(default_factory=dict)

    def convert_along(self, files: Sequence[Path]) -> None:
        """Convert what files of one package use of libraries, of none that they are a part of: of all of them at once,
        so that a file which many of them import is converted once, or of each if one of them fails.
        """
        own = files[0].relative_to(self.root).parts[0]
        libraries = dict.fromkeys((*known_libraries(files, self.python), *self.libraries))
        wanted = [one for one in libraries if one != own]
        try:
            along = self.stack.enter_context(libraries_along(files, Options(), wanted, self.python))
        except T2JError:
            if len(files) == 1:
                raise
            return
        self.made.update(dict.fromkeys(files, along))

    def along(self, path: Path) -> Along:
        """What is converted along with a file. Raises T2JError where it can't be."""
        if path not in self.made:
            self.convert_along([path])
        return self.made[path]


def looked_at(setting: Setting, package: str, path: Path, name: str) -> Outcome:
    """Convert and check one class."""
    start = time.perf_counter()
    try:
        outcome, reason = _verdict(setting, path, name, setting.along(path))
    except (SourceError, T2JError) as error:
        outcome, reason = UNCHECKED, str(error)
    except Exception as error:  # noqa: BLE001 - a failure of t2j is this class's outcome, and must not end the run
        outcome, reason = DIFFERENT, f"t2j fails: {type(error).__name__}: {error}"
    seconds = round(time.perf_counter() - start, 1)
    return Outcome(package, str(path.relative_to(setting.root)), name, outcome, reason, seconds)


def _verdict(setting: Setting, path: Path, name: str, along: Along) -> tuple[str, str]:
    translation = CONVERSIONS.of(path, along.options)

    def converted_text(other: Path) -> str:
        return along.converted_text(other) or CONVERSIONS.of(other, along.options).code

    report = check_files(
        path, translation.code, [name], pool=setting.pool, source_map=translation.source_map, timeout=setting.timeout,
        neighbour=converted_text, expression=convert_expression, packages=along.packages,
    )  # fmt: skip
    verdict = next(v for v in report.objects if v.name == name)
    reason = verdict.reason or ""
    if verdict.verdict is VerdictKind.EQUIVALENT:
        return EQUIVALENT, ""
    if _NOT_RUN.search(reason):
        return NOT_RUN, reason
    claim = Claim(path, translation, name, True)
    finding = next((f"{Path(file).name}:{f.span.line}: {f.reason}" for file, f in told_in(claim)), None)
    if verdict.verdict is VerdictKind.DIFFERENT and finding is None and not was_given(claim, verdict.ran):
        return DIFFERENT, reason
    if finding is not None or verdict.verdict is VerdictKind.DIFFERENT or "the conversion is not complete" in reason:
        return GAP, f"{finding or 'in what it was given'} | {reason}"
    return UNCHECKED, reason


def report(outcomes: Iterable[Outcome]) -> int:
    """Print the table and every class that isn't equivalent; how many of those that run are not."""
    outcomes = list(outcomes)
    kinds = (EQUIVALENT, DIFFERENT, GAP, UNCHECKED)
    print(f"\n{'package':30} {'run':>5}" + "".join(f" {kind:>11}" for kind in kinds) + f" {NOT_RUN:>9}")
    for package in (*PACKAGES, "all"):
        counts = Counter(one.outcome for one in outcomes if package in ("all", one.package))
        row = "".join(f" {counts[kind]:11}" for kind in kinds)
        print(f"{package:30} {sum(counts[kind] for kind in kinds):5}{row} {counts[NOT_RUN]:9}")
    for kind in (*kinds[1:], NOT_RUN):
        print(f"\n{kind}:", *(f"  {one}" for one in outcomes if one.outcome == kind), sep="\n")
    return sum(one.outcome in kinds[1:] for one in outcomes)


def known(file: Path, again: str) -> dict[tuple[str, str], Outcome]:
    """What an earlier run wrote, but for what is to be checked anew."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    outcomes = {(one.file, one.name): one for one in (Outcome(**json.loads(line)) for line in lines)}
    pattern = re.compile(again) if again else None
    return {
        key: one
        for key, one in outcomes.items()
        if pattern is None or not pattern.search(f"{one.file} {one.name} {one.outcome} {one.reason}")
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Convert and check module classes of libraries, drawn by seed.")
    parser.add_argument("--path", type=Path, required=True, help="the folder that holds the packages")
    parser.add_argument("--out", type=Path, required=True, help="where each outcome is written")
    parser.add_argument("--packages", default=",".join(PACKAGES), help="these, with commas between them")
    parser.add_argument("--classes", type=int, default=26, help="classes of each package that run (26)")
    parser.add_argument("--seed", type=int, default=1, help="decides the order in which classes are taken (1)")
    parser.add_argument("--timeout", type=float, default=120.0, help="as of t2j check (120)")
    parser.add_argument("--again", default="", help="check classes anew that have this pattern")
    parser.add_argument("--python", help="the interpreter of both sides, with packages that the libraries need (this)")
    parser.add_argument("--with", dest="libraries", default="", help="convert these along, with commas between them")
    options = parser.parse_args(arguments)
    root, earlier = options.path.resolve(), known(options.out, options.again)
    outcomes: list[Outcome] = []
    with (
        tempfile.TemporaryDirectory() as cache,
        Pool(options.python, options.python, "cpu") as pool,
        ExitStack() as stack,
    ):
        os.environ["T2J_CACHE"] = cache
        pool.start()
        libraries = [one for one in options.libraries.split(",") if one]
        setting = Setting(root, pool, options.timeout, options.python, libraries, stack)
        for package in options.packages.split(","):
            wanted, order = options.classes, drawn(root, package, options.seed)
            if order:
                setting.convert_along(list(dict.fromkeys(path for path, _ in order[: 2 * wanted])))
            for path, name in order:
                if not wanted:
                    break
                one = earlier.get((str(path.relative_to(root)), name))
                if one is None:
                    one = looked_at(setting, package, path, name)
                    with options.out.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(asdict(one)) + "\n")
                    print(one, flush=True)
                outcomes.append(one)
                wanted -= one.outcome != NOT_RUN
    return 0 if report(outcomes) == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
