"""Conversions asked for in the editor: of a part in place, and of a file as a new file beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from ..contract import Span, T2JError
from ..files import may_replace, read_source, remember, write_output
from .analysis.model import Conversion, Converted, Hunk, Refused, Scope
from .documents import Document, Notebook, Program
from .edits import edit_of, new_file_edit, whole_text_edit
from .paths import converted_path, to_path, to_uri

if TYPE_CHECKING:
    from .server import Server


def scope_of(data: Any) -> Scope:
    """A scope as it was sent to a client. Raises Refused for anything else."""
    try:
        span = data.get("span")
        return Scope(data["kind"], Span(*span) if span else None, int(data.get("first", 0)), int(data.get("last", 0)))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Refused("the request names nothing to convert") from None


def scope_data(scope: Scope) -> dict[str, Any]:
    """A scope as it is sent to a client."""
    span = scope.span
    place = [span.line, span.column, span.end_line, span.end_column] if span else None
    return {"kind": scope.kind, "span": place, "first": scope.first, "last": scope.last}


async def part_edit(server: Server, program: Program, scope: Scope) -> types.WorkspaceEdit:
    """The edit that converts a part of a program in place. Raises Refused with the reason."""
    revision = program.revision
    done: Conversion = await server.service.ask("part", program, scope=scope)
    if program.revision != revision:
        raise Refused("the text was edited meanwhile")
    return edit_of(server, program, done.hunks, done.caveats)


async def restore_edit(server: Server, source: Program, converted: Document, line: int) -> types.WorkspaceEdit:
    """The edit that writes a line of a conversion as the rules have it."""
    revision = converted.revision
    done: Conversion = await server.service.ask("restore", source, other=converted.text, line=line)
    if converted.revision != revision:
        raise Refused("the text was edited meanwhile")
    return edit_of(server, converted, done.hunks, ())


def ignore_edit(server: Server, program: Program, line: int, code: str) -> types.WorkspaceEdit:
    """The edit that puts ``# t2j: ignore[code]`` behind a line (from 0)."""
    text = program.lines[line].rstrip("\r\n")
    return edit_of(server, program, [Hunk(line + 1, line + 1, (f"{text}  # t2j: ignore[{code}]",))], ())


@dataclass(frozen=True)
class FileConversion:
    """A file's conversion and where it goes; ``target`` None is the buffer itself."""

    target: Path | None
    done: Converted

    @property
    def caveats(self) -> tuple[str, ...]:
        gaps, notes = self.done.gaps, self.done.notes
        left = [f"{gaps} places stay as they are, each marked # TODO(t2j)"] if gaps else []
        return (*left, *([f"{notes} places differ from PyTorch in a way that is reported"] if notes else []))


def target_of(server: Server, program: Program) -> Path | None:
    """Where the conversion of a program goes; None for buffers that are no file."""
    path = to_path(program.uri)
    return converted_path(path, server.settings_for(program.uri).suffix) if path is not None else None


def refusal(server: Server, program: Program) -> str | None:
    """Why a program's file can't be converted now, as far as that is known without trying."""
    target = target_of(server, program)
    if target is None and program.is_notebook:
        return "save the notebook first: its conversion goes beside it"
    if target is not None and _is_edited(server, target):
        return f"{target.name} exists and was edited; rename it, or delete it, to convert again"
    return None


def _is_edited(server: Server, target: Path) -> bool:
    document = server.store.document(to_uri(target))
    try:
        data = target.read_bytes() if target.exists() else b""
    except OSError:
        return True
    if document is not None and document.text.encode() != data:
        return bool(document.text.strip())
    # Any other content stands for the new conversion, which isn't made yet.
    return bool(data) and not may_replace(target, data + b"\n")


async def convert_file(server: Server, program: Program) -> FileConversion:
    """Convert a whole program. Raises Refused with the reason."""
    reason = refusal(server, program)
    if reason is not None:
        raise Refused(reason)
    target = target_of(server, program)
    if isinstance(program, Notebook):
        path = to_path(program.uri)
        assert path is not None
        settings = server.settings_for(program.uri).conversion
        data = notebook_bytes(path, program)
        return FileConversion(
            target, await server.service.ask_plain("convert_notebook", path=str(path), data=data, settings=settings)
        )
    return FileConversion(target, await server.service.ask("convert", program))


def notebook_bytes(path: Path, notebook: Notebook) -> bytes:
    """The notebook's file with the cells as they are in the editor. Raises Refused where the two don't fit."""
    try:
        data = json.loads(read_source(path).text)
        cells = data["cells"]
        if len(cells) == len(notebook.cells):
            for cell, (_, document) in zip(cells, notebook.cells, strict=True):
                cell["source"] = document.text
        elif [d.text for kind, d in notebook.cells if kind == "code"] != [_source(c) for c in cells if _is_code(c)]:
            raise Refused("save the notebook first: cells were added or removed since it was saved")
    except (T2JError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"the notebook's file can't be read: {error}") from None
    return json.dumps(data, ensure_ascii=False, indent=1).encode()


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _is_code(cell: dict[str, Any]) -> bool:
    return cell.get("cell_type") == "code"


def file_edit(server: Server, program: Program, conversion: FileConversion) -> types.WorkspaceEdit:
    """The edit that makes the converted file, for clients that can create files."""
    target, code = conversion.target, conversion.done.code
    if target is None:
        assert isinstance(program, Document)
        return whole_text_edit(server, program, code)
    # The client writes the file; what it will write is ours to replace the next time.
    remember(target, code.encode())
    opened = server.store.document(to_uri(target))
    if opened is not None:
        return whole_text_edit(server, opened, code)
    return new_file_edit(server, target, code, conversion.caveats)


def write_file(conversion: FileConversion) -> None:
    """Write the converted file, for clients that can't create one. Raises Refused where something is in the way."""
    assert conversion.target is not None
    try:
        write_output(conversion.target, conversion.done.code.encode())
    except T2JError as error:
        raise Refused(str(error)) from None
