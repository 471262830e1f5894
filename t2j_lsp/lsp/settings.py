"""Settings: defaults, then ``[tool.t2j]`` of the project, then the client's, which win where they are set.

A repository can't name programs to run, folders to read, or where code is sent: these are taken from the client alone.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from t2j_lsp.contract import HELPER_LINES, STAGES, plain_code
from t2j_lsp.lsp.analysis.model import ConversionSettings

SECTION = "t2j"
_TOML_PLACE = re.compile(r"\s*\(at line (\d+), column (\d+)\)")


@dataclass(frozen=True)
class Settings:
    """All settings, under their names in ``[tool.t2j]``; a client spells them as in ``CLIENT_NAMES``."""

    target: str = "nnx"
    x64: bool = False
    helpers: str = "auto"
    helper_lines: int = HELPER_LINES
    """Lines of code of helpers that stay in a file."""
    initial_values: str = "torch"
    """Whose initial values layers get."""
    scan: bool = False
    """Whether layers that are alike become one that is scanned."""
    layout: str = "nchw"
    """What the outermost modules of a file take and give: PyTorch's axes, or channels-last values."""
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
    run_steps: int = 50
    """Optimizer steps after which both programs are stopped."""
    run_timeout: float = 600.0
    """Seconds for each of the runs that a verdict takes."""
    run_arguments: tuple[str, ...] = ()
    """The command line of programs that are run."""
    run_data: str = "own"
    """Whether data sets that are not there are made up for programs that are run."""
    keep_fixes: bool = False
    """Whether the user's own fixes are kept as fixed bugs, on this machine."""
    docs_url: str = ""
    readable: tuple[str, ...] = ()
    """Folders that checked code may read, besides its project."""
    torch_python: str = ""
    jax_python: str = ""
    model_names: tuple[str, ...] = ()
    """The models that may be asked, cheap ones first; none is asked where there is none."""
    model_url: str = ""
    """Where they are; empty for OpenAI's own address."""
    model_rounds: int = 7
    model_tokens: int = 200_000

    @property
    def conversion(self) -> ConversionSettings:
        return ConversionSettings(
            self.target, self.x64, self.helpers, self.initial_values, self.scan, self.layout, self.helper_lines
        )


CLIENT_NAMES: dict[str, str] = {
    "target": "target",
    "x64": "x64",
    "helpers": "helpers",
    "helperLines": "helper_lines",
    "initialValues": "initial_values",
    "scan": "scan",
    "layout": "layout",
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
    "run.steps": "run_steps",
    "run.timeout": "run_timeout",
    "run.arguments": "run_arguments",
    "run.data": "run_data",
    "fixes.keep": "keep_fixes",
    "docsUrl": "docs_url",
    "model.names": "model_names",
    "model.baseUrl": "model_url",
    "model.rounds": "model_rounds",
    "model.tokens": "model_tokens",
}
CLIENT_ONLY = frozenset({
    "torch_python", "jax_python", "check_on_battery", "readable",
    "model_names", "model_url", "model_rounds", "model_tokens",
})  # fmt: skip
CHOICES: dict[str, tuple[str, ...]] = {
    "target": ("nnx", "jax"),
    "helpers": ("auto", "inline", "module", "import"),
    "initial_values": ("torch", "flax"),
    "layout": ("nchw", "nhwc"),
    "check_stage": STAGES,
    "check_device": ("auto", "cpu", "gpu"),
    "run_data": ("own", "synthetic"),
}


SETTING = "setting"
"""The code of what is wrong with a setting."""


@dataclass(frozen=True)
class SettingsProblem:
    """An entry that could not be used. ``key`` is as it was written, with dots; empty for the file as a whole."""

    key: str
    text: str
    where: str
    """The file, or whose settings these are."""
    line: int | None = None
    column: int = 0
    """The place (line from 1) in a file that is not TOML."""

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(frozen=True)
class Read:
    """Settings that were read, and what could not be used."""

    values: dict[str, Any] = field(default_factory=dict)
    problems: tuple[SettingsProblem, ...] = ()


def from_client(data: Any) -> Read:
    """The settings that a client sent as its ``t2j`` section, nested or with dots in their names."""
    if not isinstance(data, Mapping):
        return Read()
    flat: dict[str, Any] = dict(_flat(data))
    names = {CLIENT_NAMES.get(name, name): name for name in flat}
    return _read({own: flat[name] for own, name in names.items()}, names, "the editor's settings")


def from_pyproject(path: Path) -> Read:
    """``[tool.t2j]`` of a ``pyproject.toml``; names with dashes or underscores."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Read()
    except (OSError, ValueError) as error:
        return Read(problems=(SettingsProblem("", f"it can't be read: {error}", str(path)),))
    return from_toml(text, str(path))


def from_toml(text: str, where: str) -> Read:
    """``[tool.t2j]`` of a text, which is that of ``where``."""
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        place = _TOML_PLACE.search(str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        what = _TOML_PLACE.sub("", str(error)).replace("(at end of document)", "").strip()
        column = int(place[2]) - 1 if place else 0
        return Read(problems=(SettingsProblem("", f"line {line}: {what}", where, line, column),))
    table = tool.get(SECTION, {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        return Read(problems=(SettingsProblem("", f"tool.{SECTION} is not a table", where),))
    known = {f.name for f in fields(Settings)}
    names: dict[str, str] = {}
    problems: list[SettingsProblem] = []
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in CLIENT_ONLY:
            problems.append(SettingsProblem(key, f"{key!r} is not taken from a project: set it in the editor", where))
        elif name in known and not isinstance(value, dict):
            names[name] = key
        else:
            flat = [dotted for dotted, _ in _flat({key: value})] or [key]
            problems += [SettingsProblem(dotted, _unknown(dotted), where) for dotted in flat]
    read = _read({name: table[key] for name, key in names.items()}, names, where)
    return Read(read.values, (*problems, *read.problems))


def _unknown(key: str) -> str:
    """What is said of a setting that there is none of this name."""
    own = {f.name.replace("_", "-") for f in fields(Settings)} - {name.replace("_", "-") for name in CLIENT_ONLY}
    named = CLIENT_NAMES.get(key, "").replace("_", "-")
    close = [named] if named in own else difflib.get_close_matches(key.replace("_", "-").lower(), sorted(own), 1)
    return f"there is no setting {key!r}" + (f": did you mean {close[0]!r}?" if close else "")


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


def _read(data: Mapping[str, Any], names: Mapping[str, str], where: str) -> Read:
    """The settings of ``data``; ``names`` says how each is written in ``where``."""
    known = {f.name: f for f in fields(Settings)}
    values: dict[str, Any] = {}
    problems: list[SettingsProblem] = []
    for name, value in data.items():
        if value is None or name not in known:
            continue
        default = getattr(Settings(), name)
        if isinstance(default, tuple):
            good = isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
            value = tuple(map(plain_code, value) if name == "ignore" else value) if good else value
        elif isinstance(default, bool):
            good = isinstance(value, bool)
        elif isinstance(default, int):
            good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        elif isinstance(default, float):
            good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        else:
            good = isinstance(value, str) and value in CHOICES.get(name, (value,))
        if name == "suffix" and good:
            good = bool(value) and not any(c in value for c in "/\\:")
        if good:
            values[name] = value
        else:
            written = names.get(name, name)
            problems.append(SettingsProblem(written, f"{written!r} has to be {_wanted(name, default)}", where))
    return Read(values, tuple(problems))


def _wanted(name: str, default: Any) -> str:
    """What a setting may be."""
    if name in CHOICES:
        return " or ".join(f'"{choice}"' for choice in CHOICES[name])
    if name == "suffix":
        return "a text without / \\ and :"
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, int):
        return "a whole number, 1 or more"
    if isinstance(default, float):
        return "a number of seconds, 0 or more"
    return "a list of texts" if isinstance(default, tuple) else "a text"
