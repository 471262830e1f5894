"""Programs on disk, slices of them, and what these define when they run."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

from t2j_lsp.check.program.slice import Slice, Slicer
from t2j_lsp.check.workers.loading import loaded


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))


def cut(folder: Path, file: str, name: str, *extra: str) -> Slice:
    part = Slicer(folder / file).cut(name, extra)
    return Slice.from_plain(part.to_plain())


def value(part: Slice) -> Any:
    with loaded(part) as module:
        result = getattr(module, part.name)
        return result() if callable(result) else result
