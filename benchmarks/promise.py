"""Claims against truth: of the classes and functions that a conversion calls converted, how many are what they were.

    python -m benchmarks.promise FOLDER... [--classes N] [--functions N] [--files N] [--seed S] [--timeout SECONDS]
        [--json FILE]

Each FOLDER is a package or a part of one, installed or unpacked (`benchmarks.wild` unpacks them); only its sources are
read. Every file is converted, or as many as ``--files`` says, drawn by the seed. What the last reading finds in an
output is a defect and is listed. Then module classes and tensor functions at the top level of files are drawn, in an
order that the seed decides before anything is looked at; one that has no gap in its lines, and no note that it fails
under jit, claims to be converted, and is checked in all stages until N of its kind have a verdict; what takes code
with a gap or such a note isn't counted. Printed for each folder: files, lines a second, gaps, defects; objects that
claim, that have a verdict, and that don't hold, each with its reason. The exit status is 0 if all claims hold and
there are no defects.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.wild import drawn
from t2j_lsp.api import CONVERSIONS, convert_expression, convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.program.objects import find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import Finding, ObjectVerdict, Options, Severity, Span, T2JError, Translation, VerdictKind

EAGER_ONLY = ("tensor-branch", "value-needed")
"""Codes of notes that say of a conversion that it doesn't run under jit."""


def is_eager_only(finding: Finding) -> bool:
    """Whether a note says that what it is about doesn't run under jit."""
    return finding.code in EAGER_ONLY or re.search(r"\bjit\b", finding.reason) is not None


@dataclass
class Corpus:
    """What one folder gave."""

    folder: str
    files: int = 0
    lines: int = 0
    seconds: float = 0.0
    converted: int = 0
    gaps: int = 0
    refused: list[str] = field(default_factory=list)
    """Files that could not be converted at all."""
    defects: list[str] = field(default_factory=list)
    claimed: int = 0
    leaning: int = 0
    """Objects that take code with a gap, whose user has been told there; not counted further."""
    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    """How many classes, and how many functions, have a verdict."""
    broken: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    """Why objects have no verdict."""

    def __str__(self) -> str:
        rate = self.lines / self.seconds if self.seconds else 0.0
        held = self.verdicts[VerdictKind.EQUIVALENT]
        return (
            f"{self.folder:34} {self.files:5} {rate:7.0f} {self.converted:7} {self.gaps:6} {len(self.defects):7}"
            f" {self.claimed:7} {held + len(self.broken):8} {held:6} {len(self.broken):6}"
        )

    def figures(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**vars(self), "verdicts": {str(kind): count for kind, count in self.verdicts.items()}}


def converted(folder: Path, corpus: Corpus, files: int | None, seed: int) -> Iterator[tuple[Path, Translation]]:
    """The files of a folder that use PyTorch, converted."""
    for path in [folder] if folder.is_file() else drawn(folder, files, seed):
        text = path.read_text(encoding="utf-8", errors="replace")
        start = time.process_time()
        try:
            translation = convert_file(path, Options()).translation
        except T2JError as error:
            corpus.refused.append(f"{path}: {error}")
            continue
        except Exception as error:  # noqa: BLE001 - a failure of t2j counts, and must not end the run
            corpus.defects.append(f"{path}: {type(error).__name__}: {error}")
            continue
        corpus.seconds += time.process_time() - start
        corpus.files += 1
        corpus.lines += text.count("\n")
        corpus.converted += translation.converted
        corpus.gaps += len(translation.gaps)
        corpus.defects += [f"{path}:{f.span.line}: {f.reason}" for f in translation.findings if f.code == "defect"]
        yield path, translation


@dataclass(frozen=True)
class Claim:
    """A class or function of a file that is called converted: nothing was left in its lines, or said to fail."""

    path: Path
    translation: Translation
    name: str
    is_class: bool


def told_of(translation: Translation) -> list[Finding]:
    """What a user was told of that isn't converted, or doesn't run under jit."""
    return [f for f in translation.findings if f.severity is Severity.GAP or is_eager_only(f)]


def overlaps(node: ast.stmt, span: Span) -> bool:
    """Whether a span has a line of the statement, its decorators' among them."""
    first = min(n.lineno for n in (node, *getattr(node, "decorator_list", ())))
    return span.line <= (node.end_lineno or 0) and span.end_line >= first


def claims(path: Path, translation: Translation) -> Iterator[Claim]:
    """The module classes and tensor functions of a file that are called converted."""
    reasons = told_of(translation)
    for item in find_objects(Slicer(path, translation.source.lstrip("\ufeff")), None):
        kept = any(f.code == "kept" and f.span.line == item.node.lineno for f in translation.findings)
        if not kept and not any(overlaps(item.node, finding.span) for finding in reasons):
            yield Claim(path, translation, item.name, item.is_class)


def converted_text(path: Path) -> str:
    """A file that an object under check imports from, converted; each once."""
    return CONVERSIONS.of(path).code


def leans(claim: Claim) -> bool:
    """Whether the object takes code that its user was told of: with a gap, or a note that it fails under jit."""
    try:
        return next(told_in(claim), None) is not None
    except Exception:  # noqa: BLE001 - a failure of t2j is counted with the file itself
        return True


def told_in(claim: Claim) -> Iterator[tuple[str, Finding]]:
    """What the user was told of the code that an object takes, its own first: files, and findings in them."""
    sliced = Slicer(claim.path, claim.translation.source.lstrip("\ufeff")).cut(claim.name)
    for module in sorted(sliced.modules, key=lambda m: m.name != sliced.module):
        if not module.keep:
            continue
        translation = claim.translation if module.name == sliced.module else CONVERSIONS.of(Path(module.path))
        reasons = told_of(translation)
        body = ast.parse(module.text).body if reasons else []
        kept = [body[index] for index, _ in module.keep if reasons]
        for finding in reasons:
            if any(overlaps(node, finding.span) for node in kept):
                yield module.path, finding


def measured(
    folder: Path, pool: Pool, wanted: dict[bool, int], seed: int, timeout: float, files: int | None = None
) -> Corpus:
    """Convert one folder, and check claims until as many classes (True) and functions (False) have a verdict."""
    corpus = Corpus(str(folder))
    claimed = [
        claim for path, translation in converted(folder, corpus, files, seed) for claim in claims(path, translation)
    ]
    corpus.claimed = len(claimed)
    random.Random(seed).shuffle(claimed)
    left = dict(wanted)
    for claim in claimed:
        if not left[claim.is_class]:
            continue
        verdict = checked(claim, pool, timeout, corpus)
        if verdict is None:
            continue
        corpus.verdicts[verdict.verdict] += 1
        if verdict.verdict is not VerdictKind.UNCHECKED:
            left[claim.is_class] -= 1
            corpus.kinds["classes" if claim.is_class else "functions"] += 1
        if verdict.verdict is VerdictKind.UNCHECKED:
            corpus.unchecked.append(f"{claim.path}: {claim.name}: {verdict.reason}")
        if verdict.verdict is VerdictKind.DIFFERENT:
            corpus.broken.append(f"{claim.path}: {claim.name}: {verdict.reason}")
            print(f"  does not hold: {corpus.broken[-1]}", flush=True)
    return corpus


def checked(claim: Claim, pool: Pool, timeout: float, corpus: Corpus) -> ObjectVerdict | None:
    """The verdict on a claim; None where it takes code that isn't converted."""
    if leans(claim):
        corpus.leaning += 1
        return None
    report = check_files(
        claim.path, claim.translation.code, [claim.name], pool=pool, source_map=claim.translation.source_map,
        timeout=timeout, neighbour=converted_text, expression=convert_expression,
    )  # fmt: skip
    verdict = next((v for v in report.objects if v.name == claim.name), None)
    if verdict is not None and verdict.verdict is VerdictKind.DIFFERENT and was_given(claim, verdict.ran):
        corpus.leaning += 1
        return None
    return verdict


def was_given(claim: Claim, ran: Collection[str]) -> bool:
    """Whether code of the file ran that its user was told of: what a class is given as an argument."""
    names, reasons = {key.partition(".")[0].partition("+")[0] for key in ran}, told_of(claim.translation)
    body = ast.parse(claim.translation.source.lstrip("\ufeff")).body
    return any(
        overlaps(node, finding.span) for node in body if getattr(node, "name", None) in names for finding in reasons
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Check what conversions claim.")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--classes", type=int, default=25, help="verdicts on classes for each folder (25)")
    parser.add_argument("--functions", type=int, default=10, help="verdicts on functions for each folder (10)")
    parser.add_argument("--files", type=int, help="this many files of each folder (all)")
    parser.add_argument("--seed", type=int, default=1, help="decides the order in which classes are drawn (1)")
    parser.add_argument("--timeout", type=float, default=60.0, help="as of t2j check (60)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    corpora: list[Corpus] = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["T2J_CACHE"] = cache
        with Pool(device="cpu") as pool:
            pool.start()
            print(
                f"{'folder':34} {'files':>5} {'lines/s':>7} {'calls':>7} {'gaps':>6} {'defects':>7}"
                f" {'claimed':>7} {'verdicts':>8} {'hold':>6} {'broken':>6}"
            )
            for folder in options.folders:
                wanted = {True: options.classes, False: options.functions}
                corpus = measured(folder, pool, wanted, options.seed, options.timeout, options.files)
                corpora.append(corpus)
                print(corpus, flush=True)
                for line in [*corpus.defects, *corpus.refused]:
                    print(f"  {line}")
                if options.json is not None:
                    options.json.write_text(json.dumps([c.figures() for c in corpora], indent=1), encoding="utf-8")
    held = sum(c.verdicts[VerdictKind.EQUIVALENT] for c in corpora)
    broken = sum(len(c.broken) for c in corpora)
    unchecked = sum(c.verdicts[VerdictKind.UNCHECKED] for c in corpora)
    defects = sum(len(c.defects) for c in corpora)
    share = 100 * broken / (held + broken) if held + broken else 0.0
    classes, functions = (sum(c.kinds[kind] for c in corpora) for kind in ("classes", "functions"))
    print(
        f"{held + broken} verdicts ({classes} classes, {functions} functions), {unchecked} without one,"
        f" {defects} defects"
    )
    print(f"claims that do not hold: {broken}, {share:.1f} %")
    return 0 if broken + defects == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
