"""Where the project around a folder keeps its packages."""

from __future__ import annotations

from pathlib import Path

_INSTALLED = ("site-packages", "dist-packages")

_TEST_FOLDERS = ("tests", "test", "testing")
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
DEEPEST = 4
"""Folders between a file's package and the root of its project."""


def is_installed(folder: Path) -> bool:
    """Whether a folder is one of installed packages, which belong to no project: pip notes there what it installs."""
    return folder.name in _INSTALLED or any(folder.glob("*.dist-info"))


def project_folders(top: Path) -> list[Path]:
    """Where a project around a folder, like its ``examples``, keeps packages: its root and the ``src`` in it, if any.

    The root is known by its files; the folder around tests is one without them, also inside of a larger project.
    """
    if is_installed(top):
        return []
    roots = [top.parent] if top.name in _TEST_FOLDERS else []
    near = [top, *top.parents][: DEEPEST + 1]
    roots += [root for root in near if any((root / name).exists() for name in _PROJECT_FILES)][:1]
    return [folder for root in dict.fromkeys(roots) for folder in (root, root / "src")]
