"""Where the project around a folder keeps its packages."""

from __future__ import annotations

from pathlib import Path

INSTALLED = ("site-packages", "dist-packages")
"""Folders of packages that belong to no project."""

_TEST_FOLDERS = ("tests", "test", "testing")
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
DEEPEST = 4
"""Folders between a file's package and the root of its project."""


def project_folders(top: Path) -> list[Path]:
    """Where a project around a folder, like its ``examples``, keeps packages: its root and the ``src`` in it, if any.

    The root is known by its files; the folder around tests is one without them, also inside of a larger project.
    """
    if top.name in INSTALLED:
        return []
    roots = [top.parent] if top.name in _TEST_FOLDERS else []
    near = [top, *top.parents][: DEEPEST + 1]
    roots += [root for root in near if any((root / name).exists() for name in _PROJECT_FILES)][:1]
    return [folder for root in dict.fromkeys(roots) for folder in (root, root / "src")]
