"""Converts models of other people's libraries, and compares them with their sources in float64.

    python -m benchmarks.library_models --path FOLDER [--only vit,cct] [--torch-only]

FOLDER holds the packages (``vit_pytorch/``, ``timm/``), installed or unpacked; only their sources are read. What is
compared, and what the columns say, is as in `torchvision_models`. The exit status is 0 if all are equal.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from .library_cases import CASES, LibraryCase
from .torchvision_models import add_options, measure_all


def selected(only: str, root: Path) -> list[LibraryCase]:
    """The cases whose package is below ``root``; ``only`` has files (``vit``) or packages, with commas between them."""
    names = {name for name in only.split(",") if name}
    present = [case for case in CASES if (root / case.file).is_file()]
    return [c for c in present if not names or names & {c.family, *c.family.split("/"), Path(c.family).name}]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Convert models of libraries and compare them with their sources.")
    parser.add_argument("--path", type=Path, required=True, help="the folder that holds the packages")
    parser.add_argument("--only", default="", help="files or packages, with commas between them")
    add_options(parser)
    options = parser.parse_args(arguments)
    cases = selected(options.only, options.path.resolve())
    if not cases:
        parser.error(f"{options.path} holds none of the models")
    outcomes = measure_all(cases, options.path.resolve(), options)
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    print(f"{len(outcomes)} models: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return 0 if set(verdicts) == {"runs" if options.torch_only else "equal"} else 1


if __name__ == "__main__":
    sys.exit(main())
