"""Settings: defaults, then ``[tool.t2j]`` of the project, then the client's, which win where they are set.

A repository can't name programs to run, or folders to read: these are taken from the client alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..contract import STAGES, plain_code
from .analysis.model import Settings as Conversion

SECTION = "t2j"


@dataclass(frozen=True)
class Settings:
    """All settings, under their names in ``[tool.t2j]``; a client spells them as in ``CLIENT_NAMES``."""

    target: str = "nnx"
    x64: bool = False
    helpers: str = "inline"
    suffix: str = "_jax"
    """What a converted file's name gets: ``net.py`` becomes ``net_jax.py``."""
    hover: bool = True
    diagnostics: bool = True
    ignore: tuple[str, ...] = ()
    """Codes of findings that are not shown."""
    code_lens: bool = True
    inlay_hints: bool = False
    check: bool = True
    """Whether conversions are checked in the background, in a trusted workspace."""
    check_delay: float = 1.0
    """Seconds without an edit before a check starts."""
    check_stage: str = "behavioral"
    check_device: str = "auto"
    check_timeout: float = 120.0
    check_keep_warm: float = 300.0
    """Seconds that idle workers are kept."""
    check_on_battery: bool = False
    """Whether checks in the background run while the machine is on its battery."""
    docs_url: str = ""
    readable: tuple[str, ...] = ()
    """Folders that checked code may read, besides its project."""
    torch_python: str = ""
    jax_python: str = ""

    @property
    def conversion(self) -> Conversion:
        return Conversion(self.target, self.x64, self.helpers)


CLIENT_NAMES: dict[str, str] = {
    "target": "target",
    "x64": "x64",
    "helpers": "helpers",
    "convert.suffix": "suffix",
    "hover.enable": "hover",
    "diagnostics.enable": "diagnostics",
    "diagnostics.ignore": "ignore",
    "codeLens.enable": "code_lens",
    "inlayHints.enable": "inlay_hints",
    "check.enable": "check",
    "check.delay": "check_delay",
    "check.stage": "check_stage",
    "check.device": "check_device",
    "check.timeout": "check_timeout",
    "check.keepWarm": "check_keep_warm",
    "check.onBattery": "check_on_battery",
    "check.readable": "readable",
    "check.torchPython": "torch_python",
    "check.jaxPython": "jax_python",
    "docsUrl": "docs_url",
}
CLIENT_ONLY = frozenset({"torch_python", "jax_python", "check_on_battery", "readable"})
CHOICES: dict[str, tuple[str, ...]] = {
    "target": ("nnx",),
    "helpers": ("inline", "module", "import"),
    "check_stage": STAGES,
    "check_device": ("auto", "cpu", "gpu"),
}


@dataclass(frozen=True)
class Read:
    """Settings that were read, and one line for each entry that could not be used."""

    values: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def from_client(data: Any) -> Read:
    """The settings that a client sent as its ``t2j`` section, nested or with dots in their names."""
    if not isinstance(data, Mapping):
        return Read()
    flat: dict[str, Any] = dict(_flat(data))
    return _read({CLIENT_NAMES.get(name, name): value for name, value in flat.items()}, "the editor's settings")


def from_pyproject(path: Path) -> Read:
    """``[tool.t2j]`` of a ``pyproject.toml``; names with dashes or underscores."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get(SECTION, {})
    except FileNotFoundError:
        return Read()
    except (OSError, ValueError, AttributeError) as error:
        return Read(problems=(f"{path} can't be read: {error}",))
    named = {str(name).replace("-", "_"): value for name, value in table.items()} if isinstance(table, dict) else {}
    refused = tuple(f"{name} is not taken from {path}: set it in the editor" for name in named if name in CLIENT_ONLY)
    read = _read({k: v for k, v in named.items() if k not in CLIENT_ONLY}, str(path))
    return Read(read.values, refused + read.problems)


def settings_of(*layers: Read) -> Settings:
    """The defaults with each layer on top of the one before it."""
    settings = Settings()
    for layer in layers:
        settings = replace(settings, **layer.values)
    return settings


def find_pyproject(path: Path, roots: tuple[Path, ...]) -> Path | None:
    """The ``pyproject.toml`` nearest to a file, inside the workspace folder that holds it."""
    inside = [root for root in roots if root == path or root in path.parents]
    stop = max(inside, key=lambda root: len(root.parts), default=path.parent)
    for folder in path.parents:
        if (folder / "pyproject.toml").is_file():
            return folder / "pyproject.toml"
        if folder == stop:
            return None
    return None


def _flat(data: Mapping[str, Any], prefix: str = "") -> Any:
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name not in CLIENT_NAMES:
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _read(data: Mapping[str, Any], where: str) -> Read:
    known = {f.name: f for f in fields(Settings)}
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in data.items():
        if value is None or name not in known:
            continue
        default = getattr(Settings(), name)
        if isinstance(default, tuple):
            good = isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
            value = tuple(plain_code(v) for v in value) if good else value
        elif isinstance(default, bool):
            good = isinstance(value, bool)
        elif isinstance(default, float):
            good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        else:
            good = isinstance(value, str) and value in CHOICES.get(name, (value,))
        if name == "suffix" and good:
            good = bool(value) and not any(c in value for c in "/\\:")
        if good:
            values[name] = value
        else:
            wanted = f"one of {', '.join(CHOICES[name])}" if name in CHOICES else type(default).__name__
            problems.append(f"{name} in {where} is not {wanted}")
    return Read(values, tuple(problems))
