"""Jupyter notebooks: the code cells are translated as one program and put back cell by cell.

Names that one cell defines are known in the next ones. Lines for the notebook alone (``%magic``, ``!shell``, ``name?``)
and cells in other languages (``%%bash``) stay as they are. Outputs are cleared, since they show the PyTorch run;
metadata and Markdown cells stay. A notebook without anything to convert is returned as it was.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from t2j_lsp.contract import Finding, Severity, SourceError, SourceMapEntry, Span, Translation

from .cells import CellLines, NotebookProgram

PYTHON_CELL_MAGICS = frozenset({"%%time", "%%timeit", "%%capture", "%%prun"})
"""Cell magics whose body is Python of this notebook's own names."""

_MAGIC_LINE = re.compile(r"\s*(?:[%!?]|[\w.,\s]+=\s*[%!]|[\w.]+\?{1,2}\s*$)")


@dataclass(frozen=True)
class NotebookTranslation:
    """A converted notebook: ``translation`` holds the JSON texts; lines of findings count inside their cell."""

    translation: Translation
    cells: tuple[int, ...]
    """For each finding, the number of its cell, counted from 1 over all cells."""
    program: NotebookProgram
    """The cells' Python as one program, with the lines for the notebook masked."""
    converted: NotebookProgram
    """What that became."""
    source_map: tuple[SourceMapEntry, ...]
    """Which lines of ``converted`` became of which of ``program``."""


@dataclass(frozen=True)
class _Cell:
    """A code cell that parses as Python once the lines for the notebook are masked."""

    index: int
    text: str
    first_line: int
    """Line of its marker in the joined program; the cell's own line 1 is the next one."""


def translate_notebook(text: str, translate: Callable[[str], Translation]) -> NotebookTranslation:
    """Convert the JSON text of a notebook. ``translate`` converts the joined Python text.

    Raises SourceError where the text is not a Python notebook of format 4.
    """
    joined = _joined(text)
    cells, token = joined.cells, joined.token
    translation = translate(joined.text)
    texts = _split(translation.code, token, cells)
    new_sources = {index: _unmask(part, token, joined.masked) for index, part in texts.items()}
    findings = [_place(finding, cells) for finding in translation.findings] + joined.broken
    code = text
    if any(new_sources[cell.index] != cell.text for cell in cells):
        code = _render(joined.notebook, new_sources, text)
    result = replace(translation, source=text, code=code, findings=tuple(f for _, f in findings), source_map=())
    programs = joined.program, NotebookProgram(translation.code, _converted_lines(translation.code, token, cells))
    return NotebookTranslation(result, tuple(index + 1 for index, _ in findings), *programs, translation.source_map)


def notebook_program(text: str) -> NotebookProgram:
    """The Python of a notebook's cells as one program. Raises SourceError as `translate_notebook` does."""
    return _joined(text).program


@dataclass(frozen=True)
class _Joined:
    """A notebook, and its cells' Python as one program."""

    notebook: dict[str, Any]
    token: str
    text: str
    cells: list[_Cell]
    masked: list[str]
    broken: list[tuple[int, Finding]]
    """Cells that don't parse, by index."""

    @property
    def program(self) -> NotebookProgram:
        pieces = ((cell.first_line, cell.index + 1, cell.first_line) for cell in self.cells)
        return NotebookProgram(self.text, CellLines(tuple(pieces)))


def _joined(text: str) -> _Joined:
    notebook = _parse(text)
    token = _unused_token(text)
    masked: list[str] = []
    program: list[str] = []
    cells: list[_Cell] = []
    broken: list[tuple[int, Finding]] = []
    line = 1
    for index, cell in enumerate(notebook["cells"]):
        source = _source(cell)
        if cell.get("cell_type") != "code" or not source.strip() or _is_foreign(source):
            continue
        try:
            python = _mask(source, token, masked)
        except SyntaxError as error:
            broken.append((index, _not_python(error)))
            continue
        cells.append(_Cell(index, source, line))
        program.append(f"# {token}-cell:{index}\n{python}\n")
        line += python.count("\n") + 2

    return _Joined(notebook, token, "".join(program), cells, masked, broken)


def _parse(text: str) -> dict[str, Any]:
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(f"not a notebook: {error.msg} at line {error.lineno}", error.lineno) from None
    except RecursionError:
        raise SourceError("not a notebook: the JSON is nested too deeply") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise SourceError("not a notebook of format 4: there is no list of cells")
    if not all(isinstance(cell, dict) and isinstance(cell.get("source", ""), str | list) for cell in notebook["cells"]):
        raise SourceError("not a notebook of format 4: a cell has no source text")
    metadata = notebook.get("metadata")
    kernel = metadata.get("kernelspec", {}) if isinstance(metadata, dict) else {}
    language = kernel.get("language", "python") if isinstance(kernel, dict) else "python"
    if str(language).lower() != "python":
        raise SourceError(f"a notebook in {language}, not in Python")
    return notebook


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(map(str, source))


def _unused_token(text: str) -> str:
    """A word that no cell holds, so that markers can't be confused with the user's comments."""
    token, number = "t2j", 0
    while f"{token}-cell" in text or f"{token}-line" in text:
        number += 1
        token = f"t2j{number}"
    return token


def _is_foreign(source: str) -> bool:
    """Whether a cell magic hands the cell to another language or interpreter."""
    words = source.split(maxsplit=1)
    return words[0].startswith("%%") and words[0] not in PYTHON_CELL_MAGICS


def _mask(source: str, token: str, masked: list[str]) -> str:
    """Replace each line for the notebook by a ``pass`` that names its place in ``masked``.

    A line is taken for one only where Python stops at it: ``%`` also starts the second line of a
    modulo, and ``!`` may stand in a string. Raises SyntaxError where the rest is not Python.
    """
    lines = source.split("\n")
    while True:
        try:
            ast.parse("\n".join(lines))
        except SyntaxError as error:
            row = (error.lineno or 0) - 1
            if not 0 <= row < len(lines) or not _MAGIC_LINE.match(lines[row]) or f"# {token}-line:" in lines[row]:
                raise
            indent = lines[row][: len(lines[row]) - len(lines[row].lstrip())]
            masked.append(lines[row].strip())
            lines[row] = f"{indent}pass  # {token}-line:{len(masked) - 1}"
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from None
        else:
            return "\n".join(lines)


def _unmask(text: str, token: str, masked: list[str]) -> str:
    return re.sub(rf"pass  # {token}-line:(\d+)", lambda match: masked[int(match[1])], text)


def _split(code: str, token: str, cells: list[_Cell]) -> dict[int, str]:
    """The text of each cell, by index. What stands before the first marker goes to the first cell that imports."""
    pieces = re.split(rf"^# {token}-cell:(\d+)\n", code, flags=re.MULTILINE)
    texts = {int(index): part.removesuffix("\n") for index, part in zip(pieces[1::2], pieces[2::2], strict=True)}
    if cells and pieces[0].strip():
        home = _home(cells)
        text = texts[home.index].lstrip("\n")
        # A cell magic has to stay the first line of its cell.
        magic, _, text = text.partition("\n") if home.text.lstrip().startswith("%%") else ("", "", text)
        texts[home.index] = "\n".join([*([magic] if magic else []), pieces[0].rstrip("\n"), "", text])
    return texts


def _home(cells: list[_Cell]) -> _Cell:
    """The cell that gets what stands before the first marker."""
    return next((cell for cell in cells if re.search(r"^\s*(?:import|from)\s", cell.text, re.MULTILINE)), cells[0])


def _converted_lines(code: str, token: str, cells: list[_Cell]) -> CellLines:
    """Where the lines of a converted program stand once `_split` put them into cells."""
    lines = code.split("\n")
    marker = re.compile(rf"# {token}-cell:(\d+)$")
    markers = [(number, int(match[1])) for number, line in enumerate(lines, 1) if (match := marker.match(line))]
    head = "\n".join(lines[: markers[0][0] - 1]) if markers else ""
    home = _home(cells) if cells and head.strip() else None
    pieces: list[tuple[int, int, int]] = []
    for number, index in markers:
        if home is None or index != home.index:
            pieces.append((number, index + 1, number))
            continue
        magic = home.text.lstrip().startswith("%%")
        blank = next((i for i, line in enumerate(lines[number:]) if line), 0)
        more = head.rstrip("\n").count("\n") + 2
        pieces.append((number, index + 1, number + blank - (0 if magic else more)))
        if magic:
            pieces.append((number + blank + 2, index + 1, number + blank - more))
        pieces.insert(0, (1, index + 1, -1 if magic else 0))
    return CellLines(tuple(sorted(pieces)))


def _place(finding: Finding, cells: list[_Cell]) -> tuple[int, Finding]:
    """The finding's cell, and the finding with lines counted inside it."""
    span = finding.span
    cell = next((cell for cell in reversed(cells) if cell.first_line < span.line), cells[0])
    shift = cell.first_line
    inside = Span(span.line - shift, span.column, span.end_line - shift, span.end_column)
    return cell.index, replace(finding, span=inside)


def _not_python(error: SyntaxError) -> Finding:
    line = error.lineno or 1
    reason = f"The cell is not Python ({error.msg}), so it is left as it was."
    return Finding(Span(line, 0, line, 0), "cell", "not-python", Severity.GAP, reason)


def _render(notebook: dict[str, Any], sources: dict[int, str], text: str) -> str:
    cells = [_rendered_cell(cell, sources.get(index)) for index, cell in enumerate(notebook["cells"])]
    indent = re.match(r"\{\s*\n([ \t]+)\"", text)
    code = json.dumps({**notebook, "cells": cells}, indent=indent[1] if indent else 1, ensure_ascii=False)
    return code + "\n" if text.endswith("\n") else code


def _rendered_cell(cell: dict[str, Any], source: str | None) -> dict[str, Any]:
    if cell.get("cell_type") != "code":
        return cell
    cleared = {**cell, "outputs": [], "execution_count": None}
    if source is not None:
        cleared["source"] = source if isinstance(cell.get("source"), str) else list(_lines(source))
    return cleared


def _lines(source: str) -> Iterator[str]:
    parts = source.split("\n")
    yield from (part + "\n" for part in parts[:-1])
    if parts[-1]:
        yield parts[-1]


def python_lines(source: str) -> str | None:
    """A code cell's text with every line for the notebook masked by ``pass``, line by line; None if it isn't Python."""
    if not source.strip():
        return source
    if _is_foreign(source):
        return None
    try:
        return re.sub(r"(?m)pass  # t2j-line:\d+$", "pass", _mask(source, "t2j", []))
    except SyntaxError:
        return None
