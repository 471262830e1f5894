"""The survey process: reads the workspace's files with low priority, remembers what it saw, ends with its parent.

``python -P -m t2j_lsp.lsp.survey.process``. Requests and answers are lines of JSON. It executes nothing of the
workspace.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from t2j_lsp.lsp.paths import to_uri
from t2j_lsp.migration.state import Migration, SourceState, Surveyor


def form_of(migration: Migration) -> dict[str, Any]:
    """The answer to ``t2j/workspace``."""
    return {
        "files": [_file(one) for one in migration.files],
        "counts": migration.counts,
        "problems": list(migration.problems),
        "complete": migration.complete,
    }


def _file(one: SourceState) -> dict[str, Any]:
    return {
        "uri": to_uri(one.path),
        "path": one.name,
        "folder": to_uri(one.folder),
        "state": one.state,
        "converted": to_uri(one.converted) if one.converted is not None else None,
        "gaps": one.gaps,
        "coverage": one.coverage.text if one.coverage is not None else None,
        "symbols": [symbol.to_json() for symbol in one.symbols],
    }


def main() -> None:
    """Answer requests until standard input ends."""
    if hasattr(os, "nice"):
        # Whoever types comes first.
        os.nice(10)
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    surveyor = Surveyor()
    for line in source:
        try:
            answer = _answer(surveyor, json.loads(line))
        except Exception as error:  # noqa: BLE001 - the outermost guard of a request
            # Only the type and the place: a message may hold the user's code.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            answer = {"error": f"an error inside t2j: {type(error).__name__} at {place}"}
        sink.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")


def _answer(surveyor: Surveyor, request: dict[str, Any]) -> dict[str, Any]:
    for path in request["closed"]:
        surveyor.buffers.pop(Path(path), None)
    surveyor.buffers |= {Path(path): text for path, text in request["opened"].items()}
    folders = {Path(path): suffix for path, suffix in request["folders"].items()}
    return form_of(surveyor.survey(folders, walk=request["walk"]))


if __name__ == "__main__":
    main()
