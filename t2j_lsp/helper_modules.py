"""The module beside converted files that holds their helpers: where it stands, how it is imported, and its text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .translate.helpers import closure
from .translate.imports import sort_imports

NAME = "torch_helpers"
DOCSTRING = '"""PyTorch behaviour that Flax has no layer for; written by t2j, yours to edit."""'


def home(path: Path, top: Path) -> tuple[Path, str]:
    """The folder for the helper module of the file at ``path``, and its name in the file's import.

    Files of one package share a module in the outermost folder of the package, at most ``top``, and import it
    relatively; files outside of packages import the module that stands beside them.
    """
    folder = path.parent
    if not (folder / "__init__.py").exists():
        return folder, NAME
    dots = "."
    while folder != top and (folder.parent / "__init__.py").exists():
        folder = folder.parent
        dots += "."
    return folder, dots + NAME


def module_source(names: Iterable[str]) -> str:
    """The text of a module that defines these helpers and all they use."""
    helpers = closure(set(names))
    imports = "\n".join(sort_imports({line for helper in helpers for line in helper.imports}))
    blocks = [f"{DOCSTRING}\n\n{imports}", *(helper.text.rstrip("\n") for helper in helpers)]
    return "\n\n\n".join(blocks) + "\n"
