"""The Python functions ``t2j_lsp.convert`` and ``t2j_lsp.check``, and the conversion of a file that commands share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2j_lsp.contract import (
    STAGES,
    AxisOrder,
    CheckReport,
    HelperPlacement,
    InitialValues,
    Options,
    Severity,
    SourceError,
    SourceMapEntry,
    Target,
    Translation,
)
from t2j_lsp.files.cells import Cells, NotebookProgram, with_displays
from t2j_lsp.files.helper_modules import own_module
from t2j_lsp.files.importers import used_elsewhere
from t2j_lsp.files.notebook import NotebookTranslation, notebook_program, translate_notebook
from t2j_lsp.files.sources import SourceFile, decode, neighbours, read_source
from t2j_lsp.translate import translate

if TYPE_CHECKING:
    from t2j_lsp.check.process.pool import Pool


def convert(
    source: str,
    *,
    target: Target = "nnx",
    x64: bool = False,
    helpers: HelperPlacement = "inline",
    init: InitialValues = "torch",
    scan: bool = False,
    layout: AxisOrder = "nchw",
    path: str | None = None,
    resolve: Callable[[int, str], str | None] | None = None,
    used_elsewhere: Callable[[Collection[str]], Collection[str]] | None = None,
) -> Translation:
    """Convert PyTorch source text to JAX.

    ``target`` is ``"nnx"`` (Flax NNX); ``"jax"`` are functions of a dict of parameters. ``x64`` keeps 64-bit dtypes.
    ``helpers`` says where helper functions go: ``"inline"``, a sibling ``"module"``, or an ``"import"``; ``"auto"`` is
    inline where they are short, else a module, the translation's ``helper_source``. ``init`` says
    whose default initial values layers get, ``"torch"`` or ``"flax"``. ``scan`` has layers that are alike and run one
    behind the other compiled once, by ``nnx.scan``. ``layout`` says what the outermost modules take and give:
    PyTorch's axes (``"nchw"``), or channels-last values (``"nhwc"``). ``resolve`` gives the source text of modules that
    the text imports, as ``Options.resolve`` describes; ``used_elsewhere`` says which of the text's names other files
    use. Raises SourceError where the text is not Python.
    """
    options = Options(target, x64, helpers, init, scan=scan, layout=layout, path=path, resolve=resolve)
    return translate(source, replace(options, used_elsewhere=used_elsewhere))


@dataclass(frozen=True)
class FileConversion:
    """A file and what it became."""

    path: Path
    source: SourceFile
    translation: Translation
    notebook: NotebookTranslation | None = None
    helper_module: Path | None = None
    """Where its helpers stand, ``translation.helper_source``; None where they are in the file itself."""

    @property
    def python(self) -> str:
        """The Python that was translated: the text, or a notebook's cells as one program."""
        return self.source.text if self.notebook is None else self.notebook.program.text

    @property
    def cells(self) -> tuple[int, ...] | None:
        """In a notebook, the number of each finding's cell, counted from 1."""
        return None if self.notebook is None else self.notebook.cells

    @property
    def data(self) -> bytes:
        """The converted file, in the encoding of its source."""
        return self.source.encode(self.translation.code)

    def to_json(self, target: str) -> dict[str, Any]:
        """The ``--json`` form; in a notebook each finding has its ``cell``, and lines count inside it."""
        form = self.translation.to_json(str(self.path), target)
        if self.helper_module is not None:
            form["helper_module"] = str(self.helper_module)
        if self.cells is not None:
            places = list(zip(self.translation.findings, self.cells, strict=True))
            for key, severity in (("gaps", Severity.GAP), ("notes", Severity.NOTE)):
                form[key] = [{"cell": cell, **f.to_json()} for f, cell in places if f.severity is severity]
        return form


def convert_file(path: Path, options: Options, data: bytes | None = None, target: Path | None = None) -> FileConversion:
    """Convert a ``.py`` file or a notebook; imports of its own project are looked up on disk.

    ``data`` stands for the file's bytes where they don't come from disk. ``target`` is where the conversion will be
    written: with ``options.helpers`` ``"auto"``, long helpers go into a module of its own beside it. Without, and in
    notebooks, they stay in the file. Raises SourceError, naming the file and the line, where it can't be read, decoded
    or parsed.
    """
    options = replace(
        options,
        path=str(path),
        resolve=options.resolve or neighbours(path, options.libraries),
        used_elsewhere=options.used_elsewhere or used_elsewhere(path),
    )
    try:
        source = read_source(path) if data is None else decode(data)
        options, module = with_own_module(path, source.text, options, target)
        if path.suffix == ".ipynb":
            notebook = translate_notebook(source.text, lambda text: translate(text, options))
            return FileConversion(path, source, notebook.translation, notebook)
        translation = translate(source.text, options)
        return FileConversion(path, source, translation, helper_module=module if translation.helper_source else None)
    except SourceError as error:
        raise SourceError(f"{path}: {error}", error.line, error.column) from error


def with_own_module(path: Path, text: str, options: Options, target: Path | None) -> tuple[Options, Path | None]:
    """The options with the module that long helpers of a file go to, where there may be one, and where it stands."""
    if options.helpers != "auto":
        return options, None
    module = own_module(path, text, target) if target is not None and path.suffix != ".ipynb" else None
    if module is None:
        return replace(options, helpers="inline"), None
    return replace(options, helper_module=module.name), module.path


@cache
def convert_expression(text: str) -> str:
    """A module whose function ``value`` returns what an expression of a PyTorch file becomes, with what it needs.

    What a function returns may be used in any way: helpers are whole.
    """
    names = "import functools\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
    return convert(f"{names}def value():\n    return {text}\n").code


class Conversions:
    """Conversions of files that others import, each made once, while what it was made from stays as it was."""

    LIMIT = 500
    """Files that are remembered; a translation holds a few times its text."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[Path, Options], _Made] = OrderedDict()

    def of(self, path: Path, options: Options | None = None) -> Translation:
        """What a file becomes. Raises SourceError as `convert_file` does."""
        options, path = options or Options(), path.resolve()
        resolve = options.resolve or neighbours(path, options.libraries)
        key = (path, replace(options, resolve=None, used_elsewhere=None))
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SourceError(f"{path}: {(error.strerror or str(error)).lower()}") from None
        made = self._made.get(key)
        if made is None or made.data != data or any(hash(resolve(*name)) != text for name, text in made.read.items()):
            read: dict[tuple[int, str], int] = {}

            def remembered(level: int, name: str) -> str | None:
                text = resolve(level, name)
                read[level, name] = hash(text)
                return text

            made = _Made(data, read, convert_file(path, replace(options, resolve=remembered), data).translation)
            self._made[key] = made
        self._made.move_to_end(key)
        while len(self._made) > self.LIMIT:
            self._made.popitem(last=False)
        return made.translation


@dataclass(frozen=True)
class _Made:
    """A conversion, the bytes of its file, and the hashes of what it read of others."""

    data: bytes
    read: dict[tuple[int, str], int]
    translation: Translation


CONVERSIONS = Conversions()
"""Those of this process: what is imported by many files, or by many objects that are checked, is converted once."""


def check(
    source: Path | str,
    converted: Path | str | None = None,
    *,
    objects: Sequence[str] | None = None,
    stage: str = STAGES[-1],
    device: str = "auto",
    torch_python: str | None = None,
    jax_python: str | None = None,
    timeout: float = 120.0,
    readable: Sequence[Path | str] = (),
    explain: bool = False,
    on_progress: Callable[[str], None] | None = None,
    options: Options | None = None,
    pool: Pool | None = None,
    packages: Mapping[str, Path] | None = None,
) -> CheckReport:
    """Run a PyTorch file and its conversion side by side and compare what they compute.

    ``source`` and ``converted`` are paths; without ``converted``, the file is converted first. ``objects`` names the
    classes and functions to check, ``stage`` the last stage to run, the two ``_python`` the interpreters to run them
    in, ``timeout`` the seconds for each object, and ``readable`` folders that the code may read besides its project.
    With ``explain``, each verdict has the values of both sides, statement by statement. ``options`` say how the file
    is, or was, converted (with ``init="flax"``, initial values are not compared), ``pool`` holds workers to use, and
    ``packages`` are folders of converted packages, by the names under which what a source becomes imports them.
    Runs code of the file. Raises SourceError where a file can't be read or parsed, and T2JError where ``objects`` names
    what the file has not.
    """
    # Imported here so that a conversion doesn't load numpy.
    from t2j_lsp.check.program.workspace import read_text
    from t2j_lsp.check.run import check_files

    source = Path(source)
    for path in (source, Path(converted or source)):
        if path.is_dir():
            raise SourceError(f"{path} is a folder; check compares one file with its conversion")
    sides = both_sides(source, None if converted is None else Path(converted), options or Options())

    def neighbour(path: Path) -> str:
        is_converted = any(map(path.is_relative_to, (packages or {}).values()))
        return read_text(path) if is_converted else CONVERSIONS.of(path, options).code

    report = check_files(
        source,
        sides.converted,
        objects,
        stage=stage,
        device=device,
        torch_python=torch_python,
        jax_python=jax_python,
        timeout=timeout,
        readable=readable,
        explain=explain,
        on_progress=on_progress,
        source_map=sides.source_map,
        neighbour=neighbour,
        expression=convert_expression,
        packages=packages,
        initial=options is None or options.init == "torch",
        pool=pool,
        source_text=sides.source_text,
        converted_text=sides.converted_text,
    )
    return sides.cells.check(report) if sides.cells is not None else report


@dataclass(frozen=True)
class Sides:
    """A source and its conversion as the checker takes them: texts stand for files where these are notebooks."""

    converted: Path | str
    """Its file, or its text where it was converted here."""
    source_map: tuple[SourceMapEntry, ...] | None = None
    source_text: str | None = None
    converted_text: str | None = None
    cells: Cells | None = None
    conversion: FileConversion | None = None


def both_sides(
    source: Path,
    converted: Path | None,
    options: Options,
    displays: bool = False,
    data: bytes | None = None,
    converted_data: bytes | None = None,
) -> Sides:
    """A file or notebook and its conversion, made here where there is none. Raises SourceError.

    ``displays``: the cells of notebooks show the value of their last expression. ``data`` and ``converted_data`` stand
    for the bytes of notebooks that are not those on disk.
    """
    if converted is None:
        conversion = convert_file(source, options, data)
        if conversion.notebook is None:
            return Sides(conversion.translation.code, conversion.translation.source_map, conversion=conversion)
        programs = conversion.notebook.program, conversion.notebook.converted
        source_text, code = with_displays(*programs) if displays else (one.text for one in programs)
        cells = Cells(*(one.lines for one in programs))
        return Sides(code, conversion.notebook.source_map, source_text, cells=cells, conversion=conversion)
    given = ((source, data), (converted, converted_data))
    torch, jax = (_program(path, own) if path.suffix == ".ipynb" else None for path, own in given)
    texts = [None if one is None else one.text for one in (torch, jax)]
    if displays and torch is not None and jax is not None:
        texts = [*with_displays(torch, jax)]
    lines = [None if one is None else one.lines for one in (torch, jax)]
    return Sides(converted, None, texts[0], texts[1], Cells(lines[0], lines[1]) if any(lines) else None)


def _program(path: Path, data: bytes | None) -> NotebookProgram:
    try:
        return notebook_program((read_source(path) if data is None else decode(data)).text)
    except SourceError as error:
        raise SourceError(f"{path}: {error}", error.line, error.column) from error
