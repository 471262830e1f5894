"""Conversions asked for in the editor: of a part in place, and of a file as a new file beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lsprotocol import types

from t2j_lsp.contract import HELPERS_DOCSTRING, Span, editor_code, own_helpers
from t2j_lsp.files.merge import Merged
from t2j_lsp.files.written import has_base
from t2j_lsp.lsp.analysis.model import ConversionRefused, ConversionScope, Converted, ConvertedPart, Hunk
from t2j_lsp.lsp.analysis.service import AnalysisService

from .documents import Document, Notebook, Program
from .edits import edit_of, joined, whole_text_edit
from .notebook_file import notebook_bytes
from .outputs import Output, helper_module, output_edit
from .paths import to_path, to_uri
from .session import Session
from .targets import UNSAVED_NOTEBOOK, Standing, real, standing_at, target_of


def scope_of(data: Any) -> ConversionScope:
    """A scope as it was sent to a client. Raises ConversionRefused for anything else."""
    try:
        span = data.get("span")
        return ConversionScope(
            data["kind"], Span(*span) if span else None, int(data.get("first", 0)), int(data.get("last", 0))
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConversionRefused("the request names nothing to convert") from None


def scope_data(scope: ConversionScope) -> dict[str, Any]:
    """A scope as it is sent to a client."""
    span = scope.span
    place = [span.line, span.column, span.end_line, span.end_column] if span else None
    return {"kind": scope.kind, "span": place, "first": scope.first, "last": scope.last}


@dataclass(frozen=True)
class PartConversion:
    """The edit that converts a part of a program in place, and the module with its helpers where that changes."""

    edit: types.WorkspaceEdit
    module: Output | None = None
    caveats: tuple[str, ...] = ()


async def convert_part(
    session: Session, program: Program, scope: ConversionScope, in_place: str | None = None, confirmed: bool = False
) -> PartConversion:
    """Convert a part of a program in place. Nothing is written. Raises ConversionRefused with the reason.

    ``in_place`` is what the client is to ask about; ``confirmed``: the user was asked about everything.
    """
    revision = program.revision
    done: ConvertedPart = await session.service.ask("part", program, scope=scope)
    module = await _module(session, session.service, program.uri, done.helpers)
    if program.revision != revision:
        raise ConversionRefused("the text was edited meanwhile")
    caveats = () if confirmed else done.caveats
    return PartConversion(edit_of(session, program, done.hunks, caveats, in_place), module, done.caveats)


async def restore_edit(session: Session, source: Program, converted: Document, line: int) -> types.WorkspaceEdit:
    """The edit that writes a line of a conversion as the rules have it."""
    revision = converted.revision
    done: ConvertedPart = await session.service.ask("restore", source, other=converted.text, line=line)
    if converted.revision != revision:
        raise ConversionRefused("the text was edited meanwhile")
    return edit_of(session, converted, done.hunks, ())


def ignore_edit(session: Session, program: Program, line: int, code: str) -> types.WorkspaceEdit:
    """The edit that puts ``# t2j: ignore[CODE]`` behind a line (from 0)."""
    text = program.lines[line].rstrip("\r\n")
    return edit_of(session, program, [Hunk(line + 1, line + 1, (f"{text}  # t2j: ignore[{editor_code(code)}]",))], ())


@dataclass(frozen=True)
class OfferedConversion:
    """A file's conversion and where it goes. ``standing`` None: into the buffer itself, which is no file."""

    uri: str
    standing: Standing | None
    done: Converted
    merged: Merged | None = None
    """The conversion merged into what stands there, where that was edited."""
    module: Output | None = None
    """The module with its helpers, where that changes."""
    own: Output | None = None
    """The module of its own helpers, where that changes."""
    own_conflicts: int = 0

    @property
    def code(self) -> str:
        """The whole text that the target gets."""
        return self.merged.text if self.merged is not None else self.done.code

    @property
    def target_uri(self) -> str:
        return to_uri(self.standing.path) if self.standing is not None else self.uri

    @property
    def conflicts(self) -> int:
        return (self.merged.conflicts if self.merged is not None else 0) + self.own_conflicts

    @property
    def is_there(self) -> bool:
        """Whether exactly this stands there already."""
        return self.standing is not None and self.standing.text == self.code

    @property
    def output(self) -> Output | None:
        """What goes to the target; None for a buffer that is no file."""
        return Output(self.standing, self.code, self.done.code) if self.standing is not None else None

    @property
    def outputs(self) -> list[Output]:
        """What is not there yet."""
        output = self.output if not self.is_there else None
        return [one for one in (output, self.module, self.own) if one is not None]

    @property
    def caveats(self) -> tuple[str, ...]:
        counts = (
            (self.conflicts, "edited where the new conversion differs, each marked <<<<<<<"),
            (self.done.gaps, "left as it is, each marked # TODO(t2j)"),
            (self.done.notes, "that differ from PyTorch in a way that is reported"),
        )
        return tuple(f"{count} place{'s' if count > 1 else ''} {what}" for count, what in counts if count)

    def to_json(self) -> dict[str, Any]:
        """What the commands answer about it."""
        merged = self.merged is not None
        return {"merged": merged, "conflicts": self.conflicts, "gaps": self.done.gaps, "notes": self.done.notes}


async def convert_file(session: Session, uri: str, service: AnalysisService | None = None) -> OfferedConversion:
    """Convert a whole program, open or on disk, and merge it into what stands where it goes.

    Nothing is written. ``service`` works it out, or the server's own. Raises ConversionRefused with the reason.
    """
    service = service or session.service
    program = session.store.program(uri)
    uri = program.uri if program is not None else uri
    target = target_of(session, uri)
    if target is None and (program is None or program.is_notebook):
        raise ConversionRefused(UNSAVED_NOTEBOOK if program is not None else "it is not open")
    standing = standing_at(session, target) if target is not None else None
    if standing is not None and standing.problem is not None:
        raise ConversionRefused(standing.problem)
    beside = own_standing(session, target) if target is not None else None
    done = await converted(session, service, uri, program, target if beside is not None else None)
    own, conflicts = None, 0
    if beside is not None and done.own_helpers is not None:
        own, conflicts = await _own(service, beside, done.own_helpers)
    module = await _module(session, service, uri, done.helpers)
    offered = OfferedConversion(uri, standing, done, module=module, own=own, own_conflicts=conflicts)
    if standing is None or not standing.edited:
        return offered
    return replace(offered, merged=await _merged(service, standing, done.code))


async def _merged(service: AnalysisService, standing: Standing, text: str) -> Merged:
    assert standing.text is not None
    merged: Merged = await service.ask_plain("merge", path=str(real(standing.path)), mine=standing.text, theirs=text)
    return merged


def own_standing(session: Session, target: Path) -> Standing | None:
    """What stands where a file's own helpers go; None where no file can be created, or one is somebody's."""
    path = own_helpers(target)
    if path is None or not (session.client.apply_edit and session.client.create_files):
        return None
    standing = standing_at(session, path)
    is_ours = not standing.edited or has_base(real(path)) or (standing.text or "").startswith(HELPERS_DOCSTRING)
    return standing if is_ours else None


async def _own(service: AnalysisService, standing: Standing, text: str) -> tuple[Output | None, int]:
    """What the module of a file's own helpers becomes, where it changes, and its conflicts."""
    if (standing.text or "").replace("\r\n", "\n") == text.replace("\r\n", "\n"):
        return None, 0
    if not standing.edited:
        return Output(standing, text, text), 0
    if standing.problem is not None:
        raise ConversionRefused(standing.problem)
    merged = await _merged(service, standing, text)
    changed = merged.text != standing.text
    return Output(standing, merged.text, text) if changed else None, merged.conflicts


async def _module(session: Session, service: AnalysisService, uri: str, names: Sequence[str]) -> Output | None:
    """The helper module beside a file, where it lacks what the file's conversion imports from it."""
    path = to_path(uri)
    return await helper_module(session, service, path.parent, names) if names and path is not None else None


async def converted(
    session: Session, service: AnalysisService, uri: str, program: Program | None, target: Path | None
) -> Converted:
    """What a program becomes; with a ``target`` its helpers may have a module of their own beside it."""
    path, place = to_path(uri), str(target) if target is not None else None
    if program is not None and not isinstance(program, Notebook):
        made: Converted = await service.ask("convert", program, target=place)
        return made
    assert path is not None
    data = notebook_bytes(path, program) if program is not None else None
    settings, _ = session.conversion_settings(uri)
    made = await service.ask_plain("convert_path", path=str(path), data=data, settings=settings, target=place)
    return made


def file_edit(session: Session, conversion: OfferedConversion, confirmed: bool = False) -> types.WorkspaceEdit:
    """The edit that makes or changes the converted file, and the module with its helpers.

    What differs asks for confirmation, unless the user saw it and confirmed it before. Raises ConversionRefused where
    something else stands there by now.
    """
    caveats = () if confirmed else conversion.caveats
    output = conversion.output
    if output is not None:
        edits = [output_edit(session, one, caveats if one == output else ()) for one in conversion.outputs or [output]]
        return joined(edits)
    document = session.store.document(conversion.uri)
    if document is None:
        raise ConversionRefused("the document was closed meanwhile")
    return whole_text_edit(session, document, conversion.code)
