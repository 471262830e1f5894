"""The survey process, ``python -P -m t2j_lsp.lsp.survey.process``: reads the workspace's files, and remembers them.

It executes nothing of the workspace.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from t2j_lsp.child.serve import Requests, step_back
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
    """Answer the server's requests."""
    requests = Requests()
    step_back()
    surveyor = Surveyor()

    def survey(folders: dict[str, str], walk: bool, opened: dict[str, str], closed: list[str]) -> dict[str, Any]:
        for path in closed:
            surveyor.buffers.pop(Path(path), None)
        surveyor.buffers |= {Path(path): text for path, text in opened.items()}
        return form_of(surveyor.survey({Path(path): suffix for path, suffix in folders.items()}, walk=walk))

    requests.answer({"survey": survey})


if __name__ == "__main__":
    main()
