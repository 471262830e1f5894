"""A notebook's file with the cells as they are in the editor: what is synced is not all that stands in the file.

VS Code syncs the Python cells alone, and no outputs and no metadata: those are the file's. They belong to the cell that
they were saved with, so texts are only put in where the cells are still those of the file, in its order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2j_lsp.contract import T2JError
from t2j_lsp.files.sources import read_source
from t2j_lsp.lsp.analysis.model import ConversionRefused

from .documents import Document, Notebook

MOVED = "save the notebook first: cells were added, removed or moved since it was saved"

Cells = list[dict[str, Any]]


def notebook_bytes(path: Path, notebook: Notebook) -> bytes:
    """The notebook's file with the texts of the editor's cells. Raises ConversionRefused where the two don't fit."""
    try:
        data = json.loads(read_source(path).text)
        _put_in(data["cells"], notebook)
    except (T2JError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConversionRefused(f"the notebook's file can't be read: {error}") from None
    return json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")


def cells_alone(text: str | bytes) -> str:
    """A notebook's file without outputs, counts and metadata; as it is where it can't be read."""
    try:
        data = json.loads(text)
        cells = [{"cell_type": cell["cell_type"], "source": _source(cell)} for cell in data["cells"]]
        kernel = (data.get("metadata") or {}).get("kernelspec") or {}
        return json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}}, ensure_ascii=False, indent=1)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return text if isinstance(text, str) else text.decode("utf-8", "replace")


def documents_of_cells(path: Path, notebook: Notebook) -> dict[int, str]:
    """The URIs of the cells by their numbers in the file, from 1; none where the two don't fit."""
    try:
        cells: Cells = json.loads(read_source(path).text)["cells"]
        saved, documents = _matched(cells, notebook)
    except (T2JError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    if len(saved) != len(documents):
        return {}
    numbers = {id(cell): number for number, cell in enumerate(cells, 1)}
    return {numbers[id(cell)]: document.uri for cell, document in zip(saved, documents, strict=True)}


def _matched(cells: Cells, notebook: Notebook) -> tuple[Cells, list[Document]]:
    """The cells of the file that are synced, and the documents that are."""
    all_synced = [kind for kind, _ in notebook.cells] == [
        "code" if cell.get("cell_type") == "code" else "markup" for cell in cells
    ]
    if all_synced:
        return cells, [document for _, document in notebook.cells]
    return [c for c in cells if _is_python(c)], notebook.python_cells


def _put_in(cells: Cells, notebook: Notebook) -> None:
    saved, documents = _matched(cells, notebook)
    texts = [document.text for document in documents]
    before = [_source(cell) for cell in saved]
    if before == texts:
        notebook.note_saved()
        return
    if len(before) != len(texts) or notebook.is_rearranged or _is_moved(before, texts):
        raise ConversionRefused(MOVED)
    for cell, old, new in zip(saved, before, texts, strict=True):
        if old != new:
            cell["source"] = new
            if "outputs" in cell:
                # They show what another text did.
                cell["outputs"], cell["execution_count"] = [], None


def _is_moved(before: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether a text that stood in one cell stands in another one now, and no longer in its own."""
    gone = {old for old, new in zip(before, texts, strict=True) if old != new and old.strip()}
    return any(new in gone for old, new in zip(before, texts, strict=True) if old != new)


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _is_python(cell: dict[str, Any]) -> bool:
    """Whether a cell of the file is code in the notebook's own language, as editors note it."""
    metadata = cell.get("metadata") or {}
    language = (metadata.get("vscode") or {}).get("languageId", "python")
    return cell.get("cell_type") == "code" and language == "python"
