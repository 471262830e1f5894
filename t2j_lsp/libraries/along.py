"""What files use of installed libraries, converted: `libraries_along`."""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from t2j_lsp.api import FileConversion, convert_file
from t2j_lsp.check.program.slice import SlicedModule, Slicer
from t2j_lsp.check.program.workspace import read_text
from t2j_lsp.contract import LibrarySources, Options, SourceError, T2JError
from t2j_lsp.files import helper_modules
from t2j_lsp.files.notebook import notebook_program
from t2j_lsp.files.sources import read_source
from t2j_lsp.symbols import bound_as
from t2j_lsp.translate.source.moved_imports import moved_prefixes, with_moved_imports
from t2j_lsp.translate.source.syntax import parse

from .installed import Installed, find_installed, is_installed
from .known import KNOWN, Library, library
from .prepared import prepared, pruned, registered


@dataclass
class Along:
    """What is converted of libraries, and how the files that use them are converted with it."""

    options: Options
    libraries: list[str] = field(default_factory=list)
    conversions: dict[str, FileConversion] = field(default_factory=dict)
    """By their places: ``torchvision_jax/models/resnet.py``."""
    texts: dict[str, str] = field(default_factory=dict)
    """What else belongs to them, by its place: helpers and licenses."""
    packages: dict[str, Path] = field(default_factory=dict)
    """The folders that hold them converted, by the names under which they are imported."""

    def converted_text(self, path: Path) -> str | None:
        """The text of a file of the packages; None for other files."""
        return read_text(path) if any(map(path.is_relative_to, self.packages.values())) else None

    @property
    def written(self) -> dict[str, str]:
        """The text of each file, by its place."""
        return {place: c.translation.code for place, c in self.conversions.items()} | self.texts


@contextmanager
def libraries_along(
    files: Sequence[Path],
    options: Options,
    packages: Sequence[str],
    python: str | None = None,
    beside: Path | None = None,
) -> Iterator[Along]:
    """Convert what files use of libraries; it lies in a folder as long as the context lasts.

    ``python`` is the interpreter that has the libraries (default: this one). What was converted before into the folder
    ``beside``, for other files, is converted again. Raises T2JError where there is no such library.
    """
    if not packages:
        yield Along(options)
        return
    libraries = {name: (library(name), find_installed(name, python)) for name in dict.fromkeys(packages)}
    with tempfile.TemporaryDirectory(prefix="t2j-along-") as folder:
        sources = Path(folder) / "sources"
        makers = {one: registered(installed.folder, one) for one, installed in libraries.values()}
        modules = _used(files, list(libraries.values()), makers, beside)
        for name, module in modules.items():
            place = _place(sources, name, module.package)
            place.parent.mkdir(parents=True, exist_ok=True)
            one, installed = next((o, i) for o, i in libraries.values() if name.split(".")[0] == o.converted)
            place.write_text(pruned(module, _head(one, installed, module)), encoding="utf-8")
        used = [one for one, _ in libraries.values() if one.converted in modules]
        along = Along(options)
        if used:
            moved = tuple(pair for one in used for pair in one.modules)
            made = tuple(maker for one in used for maker in makers[one])
            along.options = replace(options, libraries=LibrarySources(moved, str(sources), made))
        for one in used:
            _convert(along, sources, one, libraries[one.package][1])
            along.libraries.append(f"{one.package} {libraries[one.package][1].version}".strip())
            along.packages[one.converted] = Path(folder) / "converted" / one.converted
        for written, text in along.written.items():
            target = Path(folder) / "converted" / written
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        yield along


def known_libraries(files: Sequence[Path], python: str | None = None) -> list[str]:
    """The libraries of `KNOWN` that files may use the converted part of, as far as the interpreter has them."""
    texts = [module.text for path in files for module in _modules(path)]
    named = [one for one in KNOWN if any(re.search(rf"\b{one}\b", text) for text in texts)]
    return [one for one in named if is_installed(one, python)]


def _used(
    files: Sequence[Path],
    wanted: Sequence[tuple[Library, Installed]],
    registry: Mapping[Library, Sequence[tuple[str, str, str]]],
    beside: Path | None,
) -> dict[str, SlicedModule]:
    """What files use of the libraries, and what is converted already, by the names of modules in the conversion."""
    folders = {one.converted: installed.folder for one, installed in wanted}
    names = tuple(maker for one, _ in wanted for maker in registry[one])
    libraries = LibrarySources(tuple(pair for one, _ in wanted for pair in one.modules), "", names)
    moves, makers = moved_prefixes(libraries.modules), libraries.by_name

    def read(path: Path) -> str:
        for one, installed in wanted:
            if path.is_relative_to(installed.folder):
                inside = path.relative_to(installed.folder)
                is_package = inside.name == "__init__.py"
                parts = inside.parts[:-1] if is_package else inside.with_suffix("").parts
                return prepared(read_text(path), ".".join((one.package, *parts)), is_package, one)
        return with_moved_imports(read_text(path), moves, makers)

    modules: dict[str, SlicedModule] = {}
    texts = {path: text for path in files if (text := _text(path)) is not None}
    if beside is not None and texts:
        texts[beside / "_"] = "".join(_uses_of_all(beside, one) for one in folders)
    for path, text in texts.items():
        part = Slicer(path, with_moved_imports(text, moves, makers), read, folders, as_written=True).asked()
        for module in part.modules:
            if module.name.partition(".")[0] in folders:
                modules[module.name] = _both(modules.get(module.name), module)
    return modules


def _uses_of_all(folder: Path, package: str) -> str:
    """A text that uses all that a package in a folder defines, and imports from its own modules."""
    lines = []
    for path in sorted((folder / package).rglob("*.py")):
        inside = path.relative_to(folder)
        module = ".".join(inside.parent.parts if path.name == "__init__.py" else inside.with_suffix("").parts)
        for name in _defined(path, module) if path.name != f"{helper_modules.NAME}.py" else ():
            lines.append(f"from {module} import {name}\n{name}\n")
    return "".join(lines)


def _defined(path: Path, module: str) -> Iterator[str]:
    """What a file defines, and of a package also what it has of its modules."""
    text = _text(path)
    for node in parse(text.removeprefix("\ufeff")).body if text is not None else ():
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom) and path.name == "__init__.py" and node.module not in (None, module):
            yield from (bound_as(alias) for alias in node.names)


def _modules(path: Path) -> tuple[SlicedModule, ...]:
    """A file, and those of its project that it imports."""
    text = _text(path)
    return Slicer(path, text).whole().modules if text is not None else ()


def _text(path: Path) -> str | None:
    """The Python text of a file or notebook; None where it has none, which whoever converts it says."""
    try:
        text = read_source(path).text
        text = notebook_program(text).text if path.suffix == ".ipynb" else text
        parse(text.removeprefix("\ufeff"))
    except SourceError:
        return None
    return text


def _both(one: SlicedModule | None, other: SlicedModule) -> SlicedModule:
    """A module with what either slice keeps of it."""
    kept = dict(one.keep) if one is not None else {}
    for index, names in other.keep:
        before = kept.get(index, ())
        kept[index] = None if names is None or before is None else tuple(sorted({*before, *names}))
    return replace(other, keep=tuple(sorted(kept.items())))


def _place(folder: Path, module: str, is_package: bool) -> Path:
    base = folder.joinpath(*module.split("."))
    return base / "__init__.py" if is_package else base.with_name(f"{base.name}.py")


def _head(one: Library, installed: Installed, module: SlicedModule) -> str:
    """The first line of a file: where it comes from."""
    inside = Path(module.path).relative_to(installed.folder.parent).as_posix() if module.text else module.name
    release = f"{one.package} {installed.version}".strip()
    terms = f", {installed.license}" if installed.license else ""
    beside = f" (see {one.converted}/LICENSE)" if installed.license_files else ""
    return f"# From {inside} of {release}{terms}{beside}: what is used of it, converted to JAX by t2j."


def _convert(along: Along, sources: Path, one: Library, installed: Installed) -> None:
    """Convert a library's package."""
    top = sources / one.converted
    names: set[str] = set()
    placement = along.options.helpers if along.options.helpers == "import" else "module"
    for path in sorted(top.rglob("*.py")):
        home = helper_modules.home(path, top)[1]
        own = replace(along.options, libraries=None, taken_apart=True, layout="nchw", helpers=placement)
        try:
            conversion = convert_file(path, replace(own, alone=False, helper_module=home))
        except SourceError as error:
            raise T2JError(f"{one.package} can't be converted along: {error}") from error
        place = path.relative_to(sources).as_posix()
        shown = Path(*Path(place).parts[1:])
        along.conversions[place] = replace(conversion, path=Path(one.package) / shown)
        names.update(conversion.translation.needs.helpers)
    if names and placement == "module":
        along.texts[f"{one.converted}/{helper_modules.NAME}.py"] = helper_modules.module_source(names)
    if installed.license_files:
        licenses = [file.read_text(encoding="utf-8", errors="replace") for file in installed.license_files]
        along.texts[f"{one.converted}/LICENSE"] = "\n\n".join(licenses)
