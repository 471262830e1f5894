"""Scripts that start from torchvision's models under `t2j run`, which converts along what they use of it.

    python -m benchmarks.library_scripts [FILE...] [--timeout SECONDS] [--torch-python PYTHON] [--jax-python PYTHON]

Without a file, those of benchmarks/transfer_learning. One line each: the verdict, the largest difference, the seconds,
and what there is to say. The exit status is 0 if none is different, and 3 where torchvision is not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from t2j_lsp.cli import main as t2j
from t2j_lsp.libraries.installed import is_installed

SCRIPTS = Path(__file__).parent / "transfer_learning"


def report_of(path: Path, words: list[str]) -> dict[str, Any]:
    """The JSON report on a script."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        t2j(["run", str(path), "--json", "-", *words])
    report: dict[str, Any] = json.loads(out.getvalue())
    return report


def row(path: Path, report: dict[str, Any], seconds: float) -> str:
    """A line: what was compared, and what there is to say."""
    values = report["values"].values()
    worst = max((one["max_rel_err"] for one in values if one["count"]), default=0.0)
    numbers = sum(one["numbers"] for one in values)
    about = report["reason"] or ""
    if report["gaps"]:
        about = f"gaps in lines {', '.join(map(str, report['gaps']))}"
    return f"{path.stem:20} {report['verdict']:11} {numbers:>10} {worst:8.1e} {seconds:6.1f} s  {about}".rstrip()


def main(arguments: list[str] | None = None) -> int:
    """Run the scripts; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Run scripts that start from torchvision's models on both sides.")
    parser.add_argument("files", nargs="*", type=Path, default=sorted(SCRIPTS.glob("*.py")))
    parser.add_argument("--timeout", default="600", help="seconds for each run (600)")
    parser.add_argument("--torch-python", help="the interpreter that has torch and torchvision (default: this one)")
    parser.add_argument("--jax-python", help="the interpreter that has jax and flax (default: this one)")
    options = parser.parse_args(arguments)
    if not is_installed("torchvision", options.torch_python):
        print("torchvision is not installed: name an interpreter that has it with --torch-python", file=sys.stderr)
        return 3
    words = ["--timeout", options.timeout]
    for name in ("torch_python", "jax_python"):
        if value := getattr(options, name):
            words += [f"--{name.replace('_', '-')}", value]
    verdicts: Counter[str] = Counter()
    for path in options.files:
        start = time.perf_counter()
        report = report_of(path, words)
        verdicts[report["verdict"]] += 1
        print(row(path, report, time.perf_counter() - start), flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return 1 if verdicts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
