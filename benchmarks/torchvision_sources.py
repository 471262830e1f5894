"""Finds torchvision's Python sources without importing torchvision, and cuts out what one model needs.

A torchvision built for CUDA fails to register its C++ operators beside a CPU torch, so ``import torchvision`` may not
work. The classification models need none of these operators: the checker's slicer collects the definitions that a
model depends on over its imports, and its loader runs just these under torchvision's own module names.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tokenize
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.program.workspace import read_text

PACKAGE = "torchvision"


class SourcesNotFound(Exception):
    """No torchvision to read. The text says what was tried and what to do."""


def find_sources(given: Path | None = None) -> Path:
    """The folder that holds ``torchvision/``.

    ``given`` is a wheel, or a folder with ``torchvision/`` in it. Without it: the installed torchvision; else the one
    that an earlier call downloaded; else one from the package index, without its dependencies.

    Raises:
        SourcesNotFound: there is none.
    """
    if given is not None:
        if given.suffix == ".whl" and given.is_file():
            return _unpacked(given)
        if (given / PACKAGE / "models").is_dir():
            return given
        raise SourcesNotFound(f"{given} is neither a torchvision wheel nor a folder that holds torchvision/.")
    try:
        installed = Path(str(metadata.distribution(PACKAGE).locate_file("")))
        if (installed / PACKAGE / "models").is_dir():
            return installed
    except metadata.PackageNotFoundError:
        pass
    wheels = sorted(_cache().glob(f"{PACKAGE}-*.whl")) or _downloaded()
    return _unpacked(wheels[-1])


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "t2j" / PACKAGE


def _downloaded() -> list[Path]:
    print("torchvision is not installed: downloading its wheel to read the sources", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    run = subprocess.run([*command, "--dest", str(_cache()), PACKAGE], capture_output=True, text=True)
    wheels = sorted(_cache().glob(f"{PACKAGE}-*.whl"))
    if not wheels:
        raise SourcesNotFound(
            "torchvision is not installed, and pip could not download it:\n"
            f"{run.stderr.strip()}\n"
            "Pass the path of a torchvision wheel with --wheel, or install torchvision."
        )
    return wheels


def _unpacked(wheel: Path) -> Path:
    """The Python files of a wheel, unpacked once."""
    folder = _cache() / wheel.stem
    if not (folder / PACKAGE / "__init__.py").is_file():
        with zipfile.ZipFile(wheel) as archive:
            # __init__.py last: its presence says that the rest is there.
            names = [n for n in archive.namelist() if n.startswith(f"{PACKAGE}/") and n.endswith(".py")]
            archive.extractall(folder, sorted(names, key=lambda n: n == f"{PACKAGE}/__init__.py"))
    return folder


def narrowed(text: str, divisor: int) -> str:
    """The text with every integer literal that ``divisor`` divides made smaller by it.

    Some models have their channel counts written into the code; AlexNet has 61 million parameters at any input size.
    Dividing all of the counts keeps the architecture, and both sides read the same text. Floats, and integers that
    are no multiple (kernel sizes, strides), stay.
    """
    if divisor == 1:
        return text
    lines = text.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(text).readline))):
        if token.type == tokenize.NUMBER and token.string.isdecimal() and int(token.string):
            quotient, rest = divmod(int(token.string), divisor)
            if not rest:
                (row, start), (_, end) = token.start, token.end
                lines[row - 1] = lines[row - 1][:start] + str(quotient) + lines[row - 1][end:]
    return "".join(lines)


def slicer(root: Path, file: str, text: str) -> Slicer:
    """The slicer of ``root/file`` with ``text`` in the place of its content."""
    path = (root / file).resolve()

    def read(other: Path) -> str:
        return text if other == path else read_text(other)

    return Slicer(path, text, read)


def package_files(root: Path, file: Path) -> Iterator[Path]:
    """The ``__init__.py`` of every package around ``file``, below ``root``."""
    folder = file.parent
    while folder != root:
        yield folder / "__init__.py"
        folder = folder.parent
