"""Which names of a file the other files of its project use.

A class that only its own file uses may hand channels-last values on; one that others import keeps PyTorch's axes, and
so do the layers that a function makes.
"""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from .projects import DEEPEST, is_installed, project_folders
from .sources import python_files

MOST = 3000
"""Files that are looked through; a project with more is taken to use every name."""
_SECONDS = 10.0
"""How long the list of a project's files is good for."""
_lists: dict[Path, tuple[float, list[Path]]] = {}
_uses: dict[tuple[Path, str], tuple[tuple[int, int], frozenset[str]]] = {}
"""What files import from a module, with the time and size at which they were read."""


def used_elsewhere(path: Path) -> Callable[[Collection[str]], frozenset[str]]:
    """A function that answers which of some names the project around ``path`` uses in other files.

    ``.name`` asks for an attribute that files which import this one read, and not only call.
    """
    path = path.resolve()
    stem = path.parent.name if path.stem == "__init__" else path.stem

    def used(names: Collection[str]) -> frozenset[str]:
        files = _files(path)
        if len(files) > MOST:
            return frozenset(names)
        uses = (_used(other, stem) for other in files if other != path) if names else ()
        return frozenset(names).intersection(frozenset().union(*uses))

    return used


def _files(path: Path) -> list[Path]:
    """The Python files of the project: of the outermost package and the folders around it that are its project's."""
    top = path.parent
    while (top / "__init__.py").exists() and top.parent != top:
        top = top.parent
    if is_installed(top):
        root, deep = top / path.relative_to(top).parts[0], True
    else:
        roots = project_folders(top)
        root, deep = (roots[0], True) if roots else (top, top != path.parent)
    kept = _lists.get(root)
    if kept is None or kept[0] < time.monotonic() - _SECONDS:
        paths = python_files(root) if deep else iter(sorted(root.glob("*.py")))
        kept = _lists[root] = (time.monotonic(), list(_first(paths)))
    return kept[1]


def _first(files: Iterator[Path]) -> Iterator[Path]:
    for count, file in enumerate(files):
        yield file
        if count > MOST:
            return


def _used(other: Path, stem: str) -> frozenset[str]:
    """The names that a file imports from a module, or reads of it, and the attributes that it reads of anything.

    A file that didn't change isn't read again.
    """
    try:
        status = other.stat()
    except OSError:
        return frozenset()
    if not stat.S_ISREG(status.st_mode):
        return frozenset()  # to read a pipe waits for someone who writes
    version = (status.st_mtime_ns, status.st_size)
    kept = _uses.get((other, stem))
    if kept is None or kept[0] != version:
        kept = _uses[other, stem] = (version, _read(other, stem))
    return kept[1]


def imported_through_its_folder(path: Path) -> bool:
    """Whether a file of the project, or one in the folders above, imports a module by its folder: ``models.net``."""
    path = path.resolve()
    stem, folder = re.escape(path.stem), re.escape(path.parent.name)
    dotted = re.compile(
        rf"^[ \t]*(?:from|import)[ \t]+(?:[\w.]*\b{folder}\.{stem}\b"
        rf"|[\w.]*\b{folder}[ \t]+import[ \t]*(?:\([^)]*\b{stem}\b|[^(\n]*\b{stem}\b))",
        re.M,
    )
    above = (file for up in path.parents[1 : DEEPEST + 2] for file in sorted(up.glob("*.py"))[:MOST])
    others = {*_files(path)[:MOST], *above} - {path}
    return any(dotted.search(_text(other, path.stem)) for other in others)


def imported_elsewhere(path: Path) -> bool:
    """Whether a file of the project around a module may import it, or looks it up by its name."""
    path = path.resolve()
    _lists.clear()  # a file that came meanwhile counts: who asks removes the module
    files = _files(path)
    return len(files) > MOST or any(_text(other, path.stem) for other in files if other != path)


def _text(path: Path, word: str) -> str:
    """The text of a file that has a word in it; empty where it can't be read, or doesn't."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return ""  # to read a pipe waits for someone who writes
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text if word in text else ""


def _read(other: Path, stem: str) -> frozenset[str]:
    text = _text(other, stem)
    if not text:
        return frozenset()
    names = set(re.findall(rf"\b{re.escape(stem)}\.(\w+)", text))
    for imported in re.findall(
        rf"^[ \t]*from[ \t]+[\w.]*\b{re.escape(stem)}[ \t]+import[ \t]*(\([^)]*\)|.*)", text, re.M
    ):
        names |= set(re.findall(r"\w+", text if "*" in imported else imported))
    return frozenset(names | set(re.findall(r"\.[^\W\d]\w*\b(?!\s*\()", text)) if names else names)
