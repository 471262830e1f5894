"""Commands that convert whole files: ``t2j.convertFile``, ``t2j.previewFile`` and ``t2j.convertFiles``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from ...contract import T2JError
from ..analysis.model import Refused
from ..analysis.service import AnalysisService, Failed, SyntaxProblem
from ..convert import FileConversion, convert_file, file_edit, note_written, write_file
from ..edits import apply_edit, joined
from ..paths import to_path
from ..progress import Progress
from .actions import RequestFailed

if TYPE_CHECKING:
    from ..server import Server

LABEL = "Convert to JAX"
UP_TO_DATE = "its conversion is up to date"


def register(server: Server) -> None:
    @server.command("t2j.convertFile")
    async def convert(*arguments: Any) -> dict[str, Any]:
        """``[uri, confirmed?]``: convert a document into a new file beside it, or merge into the one that was edited.

        ``confirmed``: the user saw the conversion, and is not asked about what differs.
        """
        uri, confirmed = (*arguments, None, None)[:2]
        try:
            conversion = await convert_file(server, str(uri))
            answer = await _write(server, conversion, confirmed is True)
        except (Refused, SyntaxProblem, Failed) as error:
            raise RequestFailed(message=str(error)) from None
        target = conversion.target_uri
        if answer["applied"] and server.client.show_document and conversion.standing is not None:
            server.spawn(server.protocol.ask(types.WINDOW_SHOW_DOCUMENT, types.ShowDocumentParams(target)))
        return {**answer, "uri": target, **conversion.to_json()}

    @server.command("t2j.previewFile")
    async def preview(*arguments: Any) -> dict[str, Any]:
        """``[uri]``: what ``t2j.convertFile`` would write, without writing it."""
        try:
            conversion = await convert_file(server, str((*arguments, None)[0]))
        except (Refused, SyntaxProblem, Failed) as error:
            raise RequestFailed(message=str(error)) from None
        standing = conversion.standing
        return {
            "uri": conversion.uri,
            "target": conversion.target_uri if standing is not None else None,
            "code": conversion.code,
            "exists": standing is not None and standing.exists,
            **conversion.to_json(),
        }

    @server.command("t2j.convertFiles")
    async def convert_many(*arguments: Any) -> dict[str, Any]:
        """``[[uris], confirmed?]``: convert files, open or not, in one edit. What can't be is skipped."""
        uris, confirmed = (*arguments, None, None)[:2]
        if not isinstance(uris, list | tuple):
            raise RequestFailed(message="the argument is not a list of URIs")
        return await _Bulk(server, [str(uri) for uri in uris], confirmed is True).run()


async def _write(server: Server, conversion: FileConversion, confirmed: bool) -> dict[str, Any]:
    """Let the client make or change the file, or do it here where the client can't. Raises Refused."""
    if conversion.is_there:
        note_written(conversion)
        return {"applied": True}
    if _edits(server, conversion):
        answer = await apply_edit(server, LABEL, file_edit(server, conversion, confirmed), refactoring=True)
        if answer["applied"]:
            note_written(conversion)
        return answer
    await asyncio.get_running_loop().run_in_executor(None, write_file, server, conversion)
    server.checks.edited(conversion.uri, wait=False)
    server.survey.touch()
    return {"applied": True}


def _edits(server: Server, conversion: FileConversion) -> bool:
    """Whether the client writes a conversion: it has the buffer, or it can create files."""
    standing, client = conversion.standing, server.client
    return standing is None or (client.apply_edit and (client.create_files or standing.opened is not None))


def _note_all(conversions: Iterable[FileConversion]) -> None:
    for one in conversions:
        note_written(one)


class _Bulk:
    """One conversion of many files, in a process of its own: whoever edits meanwhile does not wait for it."""

    def __init__(self, server: Server, uris: Sequence[str], confirmed: bool) -> None:
        self.server = server
        self.confirmed = confirmed
        self.service = AnalysisService(server.conversion_settings)
        self.uris = list(dict.fromkeys(uris))
        self.skipped: list[dict[str, str]] = []
        self._cancelled = False

    async def run(self) -> dict[str, Any]:
        progress = Progress(self.server, "Converting to JAX", self._cancel)
        made: list[FileConversion] = []
        self.service.start()
        try:
            for number, uri in enumerate(self.uris, 1):
                path = to_path(uri)
                progress.report(f"{number} of {len(self.uris)}: {path.name if path is not None else uri}")
                conversion = await self._convert(uri)
                if conversion is not None:
                    made.append(conversion)
                if self._cancelled:
                    raise RequestFailed(message="the conversion was cancelled, and nothing was written")
        finally:
            progress.end()
            await self.service.close()
        written = await self._write(made)
        return {"converted": [one.uri for one in written], "skipped": self.skipped}

    def _cancel(self) -> None:
        self._cancelled = True

    def _skip(self, uri: str, reason: str) -> None:
        self.skipped.append({"uri": uri, "reason": reason})

    async def _convert(self, uri: str) -> FileConversion | None:
        """The conversion of one file, if it is to be written."""
        if self.server.checks.pairs.source_of(uri) not in (uri, None):
            self._skip(uri, "it is a conversion itself")
            return None
        try:
            conversion = await convert_file(self.server, uri, self.service)
        except (Refused, SyntaxProblem, Failed) as error:
            self._skip(uri, str(error))
            return None
        if conversion.standing is None:
            self._skip(uri, "it is no file")
        elif conversion.conflicts:
            name, count = conversion.standing.path.name, conversion.conflicts
            self._skip(uri, f"{name} was edited where the new conversion differs, in {count} places: convert it alone")
        elif conversion.is_there:
            self._skip(uri, UP_TO_DATE)
        else:
            return conversion
        return None

    async def _write(self, made: list[FileConversion]) -> list[FileConversion]:
        """Write what was made: by one edit as far as the client writes files, here otherwise."""
        by_client = [one for one in made if _edits(self.server, one)]
        edits = []
        for one in by_client[:]:
            try:
                edits.append(file_edit(self.server, one, self.confirmed))
            except Refused as error:
                by_client.remove(one)
                self._skip(one.uri, str(error))
            # Each looked at a file: other requests get their turn in between.
            await asyncio.sleep(0)
        if edits:
            answer = await apply_edit(self.server, LABEL, joined(edits), refactoring=True)
            if not answer["applied"]:
                self._skip_all(by_client, answer.get("reason", "the editor did not apply the edit"))
                by_client = []
        await asyncio.get_running_loop().run_in_executor(None, _note_all, by_client)
        return by_client + await self._write_here([one for one in made if not _edits(self.server, one)])

    def _skip_all(self, conversions: Iterable[FileConversion], reason: str) -> None:
        for one in conversions:
            self._skip(one.uri, reason)

    async def _write_here(self, made: list[FileConversion]) -> list[FileConversion]:
        written = []
        for one in made:
            try:
                await asyncio.get_running_loop().run_in_executor(None, write_file, self.server, one)
            except (Refused, T2JError) as error:
                self._skip(one.uri, str(error))
            else:
                written.append(one)
                self.server.checks.edited(one.uri, wait=False)
                self.server.survey.touch()
        return written
