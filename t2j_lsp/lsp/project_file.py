"""What is wrong with the settings in a ``pyproject.toml``, shown in that file whether it is open or not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

from t2j_lsp.contract import editor_code

from .documents import Document
from .links import finding_page
from .paths import to_path
from .positions import content, split_lines
from .session import Session
from .settings import SECTION, SETTING, SettingsProblem, find_pyproject, from_toml

NAME = "pyproject.toml"
_PART = r"""(?:"[^"]*"|'[^']*'|[\w-]+)"""
_PATH = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"\s*\[\[?\s*({_PATH})\s*\]")
_KEY = re.compile(rf"\s*({_PATH})\s*=")


class ProjectFiles:
    """The diagnostics of the project files that hold for the workspace and the open documents."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}

    def refresh(self) -> list[str]:
        """Look at the files again; the URIs of those of which something is or was wrong."""
        files = {}
        for path in self._paths():
            uri = self.session.pairs.spelled(path)
            diagnostics = self._diagnostics(uri, path)
            if diagnostics:
                files[uri] = diagnostics
        before, self.diagnostics = self.diagnostics, files
        return [*{**before, **files}]

    def _paths(self) -> set[Path]:
        opened = [path for uri in self.session.store.documents if (path := to_path(uri)) is not None]
        nearest = [find_pyproject(path, self.session.folders) for path in opened]
        return {*(path for path in nearest if path), *(root / NAME for root in self.session.folders)}

    def _diagnostics(self, uri: str, path: Path) -> list[types.Diagnostic]:
        document = self.session.store.document(uri)
        try:
            text = document.text if document is not None else path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            return []  # The log says so when the settings are read.
        if SECTION not in text:
            return []
        document = document or Document(uri, text, None)
        places = {name: place for place, name in _keys(text)}
        page = finding_page(self.session, SETTING) if self.session.client.code_description else None
        return [
            types.Diagnostic(
                self._range(document, problem, places),
                problem.text,
                types.DiagnosticSeverity.Warning,
                editor_code(SETTING),
                types.CodeDescription(page) if page else None,
                "t2j",
            )
            for problem in from_toml(text, str(path)).problems
        ]

    def _range(
        self, document: Document, problem: SettingsProblem, places: dict[str, tuple[int, int, int]]
    ) -> types.Range:
        """Where a problem is: its key, the place that the parser names, or the table."""
        line, start, end = places.get(problem.key) or places.get("") or (0, 0, 0)
        if problem.line is not None:
            line = min(problem.line, len(document.lines)) - 1
            text = content(document.lines[line])
            start = min(problem.column, max(len(text) - 1, 0))
            end = max(len(text.rstrip()), start)
        position = self.session.store.position
        return types.Range(position(document, line, start), position(document, line, end))


def _keys(text: str) -> Iterator[tuple[tuple[int, int, int], str]]:
    """Line (from 0), start and end of each key under ``tool.t2j``, with the name it has there; empty for the table."""
    table: tuple[str, ...] = ()
    quoted = ""
    for number, line in enumerate(split_lines(text)):
        if quoted:
            quoted = "" if line.count(quoted) % 2 else quoted
            continue
        head, key = _TABLE.match(line), _KEY.match(line)
        if head:
            table = _parts(head[1])
        named = (*table, *_parts(key[1])) if key and not head else table
        match = head or key
        if match and named[:2] == ("tool", SECTION):
            yield (number, match.start(1), match.end(1)), ".".join(named[2:])
        quoted = next((q for q in ('"""', "'''") if line.count(q) % 2), "")


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, path))
