"""The programs that are changed: the project's own, torchvision's families, and models of vit_pytorch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.library_cases import CASES as LIBRARY
from benchmarks.torchvision_cases import CASES as TORCHVISION
from benchmarks.torchvision_cases import MODEL, Case

ROOT = Path(__file__).parents[2]
OWN = ("tests/translate/models", "tests/translate/scripts", "examples")
TRAINING = ("tests/programs", "tests/translate/scripts")


@dataclass(frozen=True)
class Program:
    """A program. ``path`` is where it stands, for what it imports; ``objects`` are those to check, None for all."""

    name: str
    path: Path
    text: str
    objects: tuple[str, ...] | None = None
    runs: bool = False
    """Whether it is run as a whole, and not checked object by object."""


def own(only: str = "") -> Iterator[Program]:
    """The project's own programs."""
    for folder in OWN:
        for path in sorted((ROOT / folder).glob("*.py")):
            name = str(path.relative_to(ROOT))
            if only in name and path.stem != "__init__":
                yield Program(name, path, path.read_text(encoding="utf-8"))


def training(only: str = "") -> Iterator[Program]:
    """The project's own training programs, which are run from their start to their end."""
    for folder in TRAINING:
        for path in sorted((ROOT / folder).glob("*.py")):
            name = str(path.relative_to(ROOT))
            if only in name:
                yield Program(name, path, path.read_text(encoding="utf-8"), runs=True)


def torchvision(root: Path, only: str = "") -> Iterator[Program]:
    """Torchvision's families, each file with a small configuration of its model as a class at its end."""
    yield from _of_cases(TORCHVISION, root, only)


def vit_pytorch(root: Path, only: str = "") -> Iterator[Program]:
    """The files of vit_pytorch, in the same way."""
    yield from _of_cases([case for case in LIBRARY if case.family.startswith("vit_pytorch/")], root, only)


def _of_cases(cases: list[Case] | tuple[Case, ...], root: Path, only: str) -> Iterator[Program]:
    for case in cases:
        path = root / case.file
        name = f"{case.file} {case.variant}".rstrip()
        if only in name and path.is_file():
            text = _imported(case.with_model(path.read_text(encoding="utf-8")))
            yield Program(name, path, text, (MODEL,))


def _imported(text: str) -> str:
    """The text with the imports that the class at its end needs."""
    nn_known = "\nimport torch.nn as nn\n" in text or "\nfrom torch import nn" in text
    torch_known = "\nimport torch\n" in f"\n{text}"
    lines = [*([] if torch_known else ["import torch\n"]), *([] if nn_known else ["from torch import nn\n"])]
    future = "from __future__ import annotations\n"
    head, mark, rest = text.rpartition(future)
    return head + mark + "".join(lines) + rest
