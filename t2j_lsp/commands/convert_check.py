"""``t2j convert --check``: what was converted is checked at once, and the verdicts are shown and kept."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2j_lsp.api import FileConversion
from t2j_lsp.contract import CheckReport, Options, T2JError, VerdictKind

from .check import EXIT_CODES, checked, show
from .output import progress

SEVERITY = (0, 3, 1, 2)
"""Exit codes, the worst last."""
_ORDER = (VerdictKind.EQUIVALENT, VerdictKind.UNCHECKED, VerdictKind.DIFFERENT)


@dataclass(frozen=True)
class Verdict:
    """The report on one file that was converted, or why there is none."""

    path: Path
    report: CheckReport | None = None
    reason: str | None = None

    @property
    def verdict(self) -> VerdictKind:
        return self.report.verdict if self.report is not None else VerdictKind.UNCHECKED

    def to_json(self) -> dict[str, Any]:
        return self.report.to_json() if self.report is not None else {"verdict": self.verdict, "reason": self.reason}


class Verdicts(list[Verdict]):
    """Those on all files that hold something to check."""

    @property
    def exit_code(self) -> int:
        return worse(*(EXIT_CODES[one.verdict] for one in self))

    @property
    def verdict(self) -> VerdictKind:
        """The worst of them."""
        return max((one.verdict for one in self), key=_ORDER.index, default=VerdictKind.UNCHECKED)

    def to_json(self, folder: bool) -> dict[str, Any]:
        """The field ``check`` of a report: of a file that of `t2j check`, of a folder one for each of its ``files``."""
        if not folder:
            return {"check": self[0].to_json() if self else None}
        return {"check": {"verdict": self.verdict, "files": [{"file": str(one.path), **one.to_json()} for one in self]}}


def worse(*codes: int) -> int:
    """The worst of exit codes; 0 without any."""
    return max(codes, key=SEVERITY.index, default=0)


def check_all(
    pairs: Sequence[tuple[FileConversion, Path | None]], arguments: argparse.Namespace, options: Options
) -> Verdicts:
    """Checks conversions with the files they were written to, or None where they were printed, and shows the reports.

    They go to standard output, or to standard error where that has the code or the JSON report.
    """
    verdicts = Verdicts()
    to_check = [(c, target) for c, target in pairs if c.translation.converted or c.translation.gaps]
    free = arguments.output and arguments.json != "-"
    with progress("checking", total=len(to_check)) as shown, _workers(to_check, arguments) as pool:
        for conversion, target in to_check:
            shown.step(f"checking {conversion.path}")
            verdicts.append(_one(conversion, target, arguments, options, pool))
            shown.advance()
    with contextlib.redirect_stdout(sys.stdout if free else sys.stderr):
        for one in verdicts:
            if len(pairs) > 1:
                print(f"{one.path}:")
            if one.report is not None:
                show(one.report)
            else:
                print(f"{one.reason}\n{one.verdict}")
        if len(pairs) > 1:
            counts = Counter(one.verdict for one in verdicts)
            print(f"{len(verdicts)} checked: " + ", ".join(f"{counts[kind]} {kind}" for kind in _ORDER if counts[kind]))
    return verdicts


def _one(
    conversion: FileConversion, target: Path | None, arguments: argparse.Namespace, options: Options, pool: Any
) -> Verdict:
    try:
        return Verdict(conversion.path, checked(conversion.path, target, arguments, options=options, pool=pool))
    except T2JError as error:
        return Verdict(conversion.path, None, str(error))


@contextlib.contextmanager
def _workers(pairs: Sequence[tuple[FileConversion, Path | None]], arguments: argparse.Namespace) -> Iterator[Any]:
    """Workers that all checks of a folder share; None for a single file, whose check has its own."""
    files = [path for c, target in pairs for path in (c.path, target) if path is not None]
    if len(pairs) < 2 or not files:
        yield None
        return
    # Imported here so that a conversion doesn't load numpy.
    from t2j_lsp.check.process.compile_cache import project_of
    from t2j_lsp.check.process.containment import projects
    from t2j_lsp.check.process.pool import Pool

    readable = [*arguments.readable, *projects(*files)]
    pythons = arguments.torch_python, arguments.jax_python
    with Pool(*pythons, arguments.device, project=project_of(files[0]), readable=readable) as pool:
        pool.start()
        yield pool
