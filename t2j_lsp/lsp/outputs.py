"""Texts that a conversion puts at a path: by an edit of the client's, or written here where the client can't."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from t2j_lsp.contract import T2JError
from t2j_lsp.files.helper_modules import NAME
from t2j_lsp.files.sources import encode, write_atomically
from t2j_lsp.files.written import remember
from t2j_lsp.lsp.analysis.model import ConversionRefused
from t2j_lsp.lsp.analysis.service import AnalysisService

from .documents import Document
from .edits import new_file_edit, whole_text_edit
from .paths import to_uri
from .session import Session
from .targets import Standing, is_saved, real, standing_at


@dataclass(frozen=True)
class Output:
    """A whole text for a path, made for what stands there."""

    standing: Standing
    text: str
    base: str
    """What t2j made of it by itself: the base of the next merge."""


async def helper_module(
    session: Session, service: AnalysisService, folder: Path, names: Iterable[str]
) -> Output | None:
    """The helper module of a folder with these helpers; None where it has them all.

    What t2j wrote there is made anew with what it had and these; to an edited one, what it lacks is added behind what
    stands there. Raises ConversionRefused where it is not t2j's.
    """
    standing = standing_at(session, folder / f"{NAME}.py")
    if standing.problem is not None and not standing.edited:
        raise ConversionRefused(standing.problem)
    present = standing.text or ""
    made = await service.ask_plain("helpers", names=sorted(names), present=present)
    if not standing.edited or made.as_written:
        present = present.replace("\r\n", "\n")
        return Output(standing, made.fresh, made.fresh) if made.fresh != present else None
    if made.complete:
        return None
    if standing.problem is not None:
        raise ConversionRefused(standing.problem)
    return Output(standing, made.kept, made.fresh)


def by_client(session: Session, output: Output) -> bool:
    """Whether the client writes it: it has the buffer, or it can create files."""
    client = session.client
    return client.apply_edit and (client.create_files or output.standing.opened is not None)


def still_standing(session: Session, output: Output) -> None:
    """Raises ConversionRefused where something else stands there than when the text was made."""
    if standing_at(session, output.standing.path) != output.standing:
        raise ConversionRefused(f"{output.standing.path.name} was edited meanwhile")


def output_edit(session: Session, output: Output, caveats: Iterable[str] = ()) -> types.WorkspaceEdit:
    """The edit that puts a text where it goes. A new file needs a client that can create files.

    What is there already is edited and not made anew, so that it comes back where the user takes it back. Raises
    Refused where something else stands there by now.
    """
    still_standing(session, output)
    standing, caveats = output.standing, tuple(caveats)
    if standing.opened is not None:
        return whole_text_edit(session, standing.opened, output.text, caveats)
    if standing.text:
        on_disk = Document(to_uri(standing.path), standing.text, None)
        return whole_text_edit(session, on_disk, output.text, caveats)
    return new_file_edit(session, standing.path, output.text, caveats)


def note_written(output: Output) -> None:
    """Remember a text that the client writes: it is ours to replace, and the base of the next merge."""
    remember(real(output.standing.path), output.base.encode())


def write(session: Session, output: Output) -> None:
    """Write a text, for clients that can't create a file. Raises ConversionRefused where something is in the way."""
    still_standing(session, output)
    standing = output.standing
    path = real(standing.path)
    if standing.opened is not None and not is_saved(path, standing.opened.text):
        raise ConversionRefused(f"{path.name} is open and not saved; save it first")
    try:
        write_atomically(path, encode(output.text))
        remember(path, encode(output.base))
    except T2JError as error:
        raise ConversionRefused(str(error)) from None
