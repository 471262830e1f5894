"""Where an interpreter has a library, and what it says of itself. Nothing of the library is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from t2j_lsp.contract import T2JError

_ASK = """
import importlib.metadata, importlib.util, json, sys
sys.path = [path for path in sys.path if path]
name = sys.argv[1]
spec = importlib.util.find_spec(name)
folders = list(spec.submodule_search_locations or ()) if spec is not None else []
names = importlib.metadata.packages_distributions().get(name, [name])
try:
    found = importlib.metadata.distribution(names[0])
    of_license = [str(f.locate()) for f in found.files or () if f.name.upper().startswith(("LICENSE", "COPYING"))]
    license = found.metadata["License-Expression"] or found.metadata["License"] or ""
    version = found.version
except importlib.metadata.PackageNotFoundError:
    of_license, license, version = [], "", ""
print(json.dumps([folders[:1], version, license, of_license]))
"""


@dataclass(frozen=True)
class Installed:
    """A library as it is installed."""

    folder: Path
    version: str = ""
    license: str = ""
    license_files: tuple[Path, ...] = ()


@cache
def find_installed(package: str, python: str | None = None) -> Installed:
    """The library of an interpreter (default: this one). Raises T2JError where it has none."""
    interpreter = python or sys.executable
    try:
        run = subprocess.run([interpreter, "-c", _ASK, package], capture_output=True, text=True, timeout=60, check=True)
        folders, version, license_name, files = json.loads(run.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise T2JError(f"can't ask {interpreter} for {package}: {error}") from None
    if not folders:
        named = f"{python} has no package {package}" if python else f"no package {package} is installed beside t2j"
        raise T2JError(f"{named}: --torch-python names the interpreter that has it")
    is_short = license_name and "\n" not in license_name
    return Installed(Path(folders[0]), version, license_name if is_short else "", tuple(map(Path, files)))


def is_installed(package: str, python: str | None = None) -> bool:
    """Whether an interpreter (default: this one) has a library."""
    try:
        find_installed(package, python)
    except T2JError:
        return False
    return True
