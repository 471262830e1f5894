"""Workspace edits in the form that the client understands: versioned, annotated and creating files where it can."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types

from t2j_lsp.lsp.analysis.model import ConversionRefused, Hunk

from .documents import Document, Program
from .paths import to_uri
from .positions import content
from .session import Session

_ANNOTATION = "t2j.differs"


def edit_of(
    session: Session, program: Program, hunks: Sequence[Hunk], caveats: Sequence[str], in_place: str | None = None
) -> types.WorkspaceEdit:
    """The edit that replaces lines of a program. Raises ConversionRefused where a line is not Python of the program.

    ``in_place`` says what is rewritten, where the client is to ask about that too.
    """
    edits: dict[str, list[types.TextEdit]] = {}
    for hunk in hunks:
        uri, edit = _text_edit(session, program, hunk)
        edits.setdefault(uri, []).append(edit)
    if not session.client.document_changes:
        return types.WorkspaceEdit(changes=edits)
    annotated = bool(caveats or in_place) and session.client.annotations
    changes: list[types.TextDocumentEdit] = []
    for uri, text_edits in edits.items():
        document = session.store.document(uri)
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri, document.version if document else None)
        listed = (
            [types.AnnotatedTextEdit(_ANNOTATION, e.range, e.new_text) for e in text_edits] if annotated else text_edits
        )
        changes.append(types.TextDocumentEdit(identifier, list(listed)))
    annotations = {_ANNOTATION: annotation(caveats, in_place)} if annotated else None
    return types.WorkspaceEdit(document_changes=list(changes), change_annotations=annotations)


def annotation(caveats: Sequence[str], in_place: str | None = None) -> types.ChangeAnnotation:
    """What the client shows beside an edit that it is to ask about, before it is applied."""
    label = "Not the same in every case" if caveats else "Rewrites your file in place"
    return types.ChangeAnnotation(label, True, "\n".join([*([in_place] if in_place else []), *caveats]))


def _text_edit(session: Session, program: Program, hunk: Hunk) -> tuple[str, types.TextEdit]:
    lines = program.lines
    first, last = hunk.first - 1, hunk.last - 1
    uri, own = program.place(min(first, len(lines) - 1))
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if last < first and first and program.place(first - 1)[0] != uri:
        # At the end of a notebook's cell, and not at the start of the next one.
        uri, own = program.place(first - 1)
        end = session.store.position(program, first - 1, len(lines[first - 1]))
        return uri, types.TextEdit(types.Range(end, end), "".join(f"{newline}{line}" for line in hunk.lines))
    if last < first:
        start = types.Position(own, 0)
        return uri, types.TextEdit(types.Range(start, start), "".join(f"{line}{newline}" for line in hunk.lines))
    document = session.store.document(uri)
    for line in range(first, last + 1):
        home, number = program.place(line)
        masked = document is None or home != uri or content(document.lines[number]) != content(lines[line])
        if program.is_notebook and masked:
            raise ConversionRefused("the change reaches over a line that is for the notebook alone")
    if not hunk.lines and last + 1 < len(lines):
        return uri, types.TextEdit(types.Range(types.Position(own, 0), types.Position(own + last - first + 1, 0)), "")
    where = types.Range(types.Position(own, 0), session.store.position(program, last, len(lines[last])))
    return uri, types.TextEdit(where, newline.join(hunk.lines))


def new_file_edit(session: Session, path: Path, text: str, caveats: Sequence[str]) -> types.WorkspaceEdit:
    """The edit that creates a file, or replaces one that may be replaced."""
    uri = to_uri(path)
    annotated = bool(caveats) and session.client.annotations
    identity = _ANNOTATION if annotated else None
    create = types.CreateFile(uri, options=types.CreateFileOptions(overwrite=True), annotation_id=identity)
    start = types.Range(types.Position(0, 0), types.Position(0, 0))
    insert = types.AnnotatedTextEdit(_ANNOTATION, start, text) if annotated else types.TextEdit(start, text)
    document = types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, None), [insert])
    annotations = {_ANNOTATION: annotation(caveats)} if annotated else None
    return types.WorkspaceEdit(document_changes=[create, document], change_annotations=annotations)


def whole_text_edit(
    session: Session, document: Document, text: str, caveats: Sequence[str] = ()
) -> types.WorkspaceEdit:
    """The edit that replaces all of a document; it may be one on disk, without a version."""
    last = len(document.lines) - 1
    where = types.Range(types.Position(0, 0), session.store.position(document, last, len(document.lines[last])))
    if not session.client.document_changes:
        return types.WorkspaceEdit(changes={document.uri: [types.TextEdit(where, text)]})
    annotated = bool(caveats) and session.client.annotations
    edit = types.AnnotatedTextEdit(_ANNOTATION, where, text) if annotated else types.TextEdit(where, text)
    identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    annotations = {_ANNOTATION: annotation(caveats)} if annotated else None
    changes = [types.TextDocumentEdit(identifier, [edit])]
    return types.WorkspaceEdit(document_changes=list(changes), change_annotations=annotations)


def text_edit(session: Session, document: Document, edit: types.TextEdit) -> types.WorkspaceEdit:
    """One edit of a document; it may be one on disk, without a version."""
    if not session.client.document_changes:
        return types.WorkspaceEdit(changes={document.uri: [edit]})
    identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, [edit])])


def joined(edits: Sequence[types.WorkspaceEdit]) -> types.WorkspaceEdit:
    """Edits of different files as one, which the user takes back at once."""
    changes = [change for edit in edits for change in edit.document_changes or ()]
    plain = {uri: text_edits for edit in edits for uri, text_edits in (edit.changes or {}).items()}
    annotations = [note for edit in edits for note in (edit.change_annotations or {}).values()]
    notes = sorted({note.description or "" for note in annotations})
    label = annotations[0].label if annotations else ""
    return types.WorkspaceEdit(
        changes=plain or None,
        document_changes=changes or None,
        change_annotations={_ANNOTATION: types.ChangeAnnotation(label, True, "\n".join(notes))} if notes else None,
    )


async def apply_edit(
    session: Session, label: str, edit: types.WorkspaceEdit, refactoring: bool = False
) -> dict[str, Any]:
    """Let the client apply an edit; whether it did, and its reason where it did not.

    Of a ``refactoring``, VS Code saves the files, and opens no editor for each.
    """
    marked = refactoring and session.client.edit_metadata
    metadata = types.WorkspaceEditMetadata(is_refactoring=True) if marked else None
    params = types.ApplyWorkspaceEditParams(edit, label, metadata)
    answer = await session.protocol.ask(types.WORKSPACE_APPLY_EDIT, params)
    applied = bool(answer is not None and answer.applied)
    reason = getattr(answer, "failure_reason", None)
    return {"applied": applied, **({"reason": reason} if reason else {})}
