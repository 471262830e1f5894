"""Where a file's neighbours are: the dotted names of the modules around it, found on disk without importing any."""

from __future__ import annotations

import tokenize
from dataclasses import dataclass
from pathlib import Path

from t2j_lsp.files.projects import is_installed, project_folders

_NEVER = frozenset({"torch", "jax", "jaxlib", "flax", "optax", "numpy", "scipy"})
"""Frameworks: a folder of this name beside the user's file does not stand for them in a check."""


@dataclass(frozen=True)
class Workspace:
    """The package that a file belongs to. ``root`` is the folder that would be on ``sys.path``.

    ``beside`` are folders of the project around it whose packages are installed, as a rule: a script of ``examples``
    imports them.
    """

    root: Path
    main: str
    only: str | None
    """The one top-level package whose modules count, where ``root`` is a folder of installed libraries."""
    beside: tuple[Path, ...] = ()
    packages: tuple[tuple[str, Path], ...] = ()
    """The folders of packages that stand elsewhere, by the names under which they are imported."""

    def find(self, module: str) -> Path | None:
        """The file of a module of the workspace, or None for a module that is none of its own."""
        top = module.partition(".")[0]
        is_own = self.only in (None, top) or any(name == top for name, _ in self.packages)
        if not module or top in _NEVER or not is_own:
            return None
        for base in self._places(module):
            for file in (base.with_name(base.name + ".py"), base / "__init__.py"):
                if file.is_file():
                    return file
        return None

    def _places(self, module: str) -> list[Path]:
        """Where a module may be, without the end of its file's name."""
        top, *rest = module.split(".")
        elsewhere = [folder.joinpath(*rest) for name, folder in self.packages if name == top]
        return elsewhere or [root.joinpath(top, *rest) for root in (self.root, *self.beside)]

    def folder(self, module: str) -> Path:
        """The folder of a package, with or without an ``__init__.py``."""
        folders = self._places(module)
        return next((folder for folder in folders if folder.is_dir()), folders[0])

    def absolute(self, module: str, package: bool, level: int, target: str | None) -> str | None:
        """The dotted name that ``from {level dots}{target} import ...`` means inside ``module``."""
        if level == 0:
            return target
        parts = module.split(".") if package else module.split(".")[:-1]
        if level - 1 > len(parts):
            return None
        base = parts[: len(parts) - (level - 1)]
        return ".".join([*base, *([target] if target else [])]) or None


def find_workspace(path: Path) -> Workspace:
    """The workspace of a file: its package's parent folder, or its own folder."""
    folder = path.parent
    names = [] if path.name == "__init__.py" else [path.stem]
    while (folder / "__init__.py").is_file() and folder.name.isidentifier() and folder != folder.parent:
        names.insert(0, folder.name)
        folder = folder.parent
    installed = is_installed(folder)
    beside = () if installed else tuple(f for f in project_folders(folder) if f != folder)
    return Workspace(folder, ".".join(names), names[0] if installed else None, beside)


def read_text(path: Path) -> str:
    """The text of a Python file in its declared encoding."""
    with tokenize.open(path) as file:
        return file.read()
