"""How many files are written more than once, and what for: what only writing a file shows is known from then on.

    python -m benchmarks.renders [FOLDER ...]

Counts the files that use torch in some folders (without any, those of this repository), how many of them were
written again, by reason, and the share of the time that this took.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from unittest import mock

from t2j_lsp.contract import Options, Translation
from t2j_lsp.files.sources import neighbours
from t2j_lsp.translate import pipeline, translate
from t2j_lsp.translate.expressions.needs import Known
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.names import may_use_torch

ROOT = Path(__file__).parent.parent
OWN = ("examples", "benchmarks", "docs", "tests")
REASONS = {
    "renames": "names that are taken inside a function",
    "drawing": "functions that turn out to draw",
    "left": "steps that turn out to be none",
    "untouched": "functions that turn out to stay PyTorch",
    "agreements": "arguments of helpers that all calls agree on",
}


class Renders:
    """Notes what became known by each time that one file was written."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.seconds = 0.0
        self._convert = pipeline._convert

    def __call__(self, inference: Inference, options: Options, known: Known, lines: None) -> Translation | None:
        before, start = self._sizes(known), time.process_time()
        translation = self._convert(inference, options, known, lines)
        if translation is None:
            grew = [name for name, size in self._sizes(known).items() if size > before[name]]
            self.reasons.append(REASONS[grew[0]])
            self.seconds += time.process_time() - start
        return translation

    @staticmethod
    def _sizes(known: Known) -> dict[str, int]:
        sizes = {name: getattr(known, name) for name in REASONS}
        return {name: size if isinstance(size, int) else len(size) for name, size in sizes.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    folders = parser.parse_args().folders or [ROOT / name for name in OWN]
    files = again = 0
    spent = repeated = 0.0
    reasons: Counter[str] = Counter()
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not may_use_torch(text):
            continue
        renders, start = Renders(), time.process_time()
        with mock.patch.object(pipeline, "_convert", renders):
            translate(text, Options(resolve=neighbours(path)))
        files, spent, repeated = files + 1, spent + time.process_time() - start, repeated + renders.seconds
        again += bool(renders.reasons)
        reasons.update(set(renders.reasons))
        for reason in dict.fromkeys(renders.reasons):
            print(f"{path}: {reason}")
    print(f"{files} files, {again} written again, {100 * repeated / max(spent, 1e-9):.1f} % of the time")
    for reason, count in reasons.most_common():
        print(f"  {count:4} {reason}")


if __name__ == "__main__":
    main()
