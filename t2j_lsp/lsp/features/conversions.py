"""Commands that convert whole files: ``t2j.convertFile``, ``t2j.previewFile`` and ``t2j.convertFiles``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from t2j_lsp.child.process import ChildFailed
from t2j_lsp.contract import T2JError
from t2j_lsp.files.sources import read_source
from t2j_lsp.lsp import rewriting
from t2j_lsp.lsp.analysis.model import ConversionRefused, Landmarks, SyntaxProblem
from t2j_lsp.lsp.analysis.service import AnalysisService
from t2j_lsp.lsp.convert import OfferedConversion, PartConversion, convert_file, file_edit
from t2j_lsp.lsp.documents import Notebook
from t2j_lsp.lsp.edits import apply_edit, joined
from t2j_lsp.lsp.outputs import Output, by_client, helper_module, note_written, output_edit, write
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.progress import Progress

from .actions import RequestFailed

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

LABEL = "Convert to JAX"
UP_TO_DATE = "its conversion is up to date"


def register(server: Server) -> None:
    @server.command("t2j.convertFile")
    async def convert(*arguments: Any) -> dict[str, Any]:
        """``[uri, confirmed?]``: convert a document into a new file beside it, or merge into the one that was edited.

        ``confirmed``: the user saw the conversion, and is not asked about what differs.
        """
        uri, confirmed = (*arguments, None, None)[:2]
        return (await convert_document(server, str(uri), confirmed is True))[1]

    @server.command("t2j.previewFile")
    async def preview(*arguments: Any) -> dict[str, Any]:
        """``[uri]``: what ``t2j.convertFile`` would write, without writing it."""
        try:
            conversion = await convert_file(server, str((*arguments, None)[0]))
            marks = await _landmarks(server, conversion)
        except (ConversionRefused, SyntaxProblem, ChildFailed) as error:
            raise RequestFailed(message=str(error)) from None
        standing = conversion.standing
        return {
            "uri": conversion.uri,
            "target": conversion.target_uri if standing is not None else None,
            "code": conversion.code,
            "exists": standing is not None and standing.exists,
            "first": marks.first,
            "places": dict(marks.places),
            "helpers": [list(lines) for lines in marks.helpers],
            **conversion.to_json(),
        }

    @server.command("t2j.convertFiles")
    async def convert_many(*arguments: Any) -> dict[str, Any]:
        """``[[uris], confirmed?]``: convert files, open or not, in one edit. What can't be is skipped."""
        uris, confirmed = (*arguments, None, None)[:2]
        if not isinstance(uris, list | tuple):
            raise RequestFailed(message="the argument is not a list of URIs")
        return await _Bulk(server, [str(uri) for uri in uris], confirmed is True).run()


async def convert_document(server: Server, uri: str, confirmed: bool) -> tuple[OfferedConversion, dict[str, Any]]:
    """Convert a document into its file, and show that; the conversion, and the answer to the command."""
    try:
        conversion = await convert_file(server, uri)
        if conversion.standing is None and not confirmed:
            program = server.store.program(conversion.uri)
            assert program is not None
            if server.client.asks_before_rewriting:
                return conversion, rewriting.as_answer(server, program, None, conversion.caveats)
            if not await rewriting.allowed(server, program, None, conversion.caveats):
                return conversion, {"applied": False, "reason": "it was not confirmed"}
        answer = await write_conversion(server, conversion, confirmed)
    except (ConversionRefused, SyntaxProblem, ChildFailed) as error:
        raise RequestFailed(message=str(error)) from None
    target = conversion.target_uri
    if answer["applied"] and server.client.show_document and conversion.standing is not None:
        server.spawn(server.protocol.ask(types.WINDOW_SHOW_DOCUMENT, types.ShowDocumentParams(target)))
    return conversion, {**answer, "uri": target, **conversion.to_json()}


async def _landmarks(server: Server, conversion: OfferedConversion) -> Landmarks:
    """Where a reader starts in a conversion; at its top where it is a notebook's."""
    program = server.store.program(conversion.uri)
    path = to_path(conversion.uri)
    if isinstance(program, Notebook) or (path is not None and path.suffix == ".ipynb"):
        return Landmarks()
    source = program.text if program is not None else ""
    if program is None and path is not None:
        try:
            source = read_source(path).text
        except T2JError:
            return Landmarks()
    marks: Landmarks = await server.service.ask_plain("landmarks", source=source, code=conversion.code)
    return marks


async def write_conversion(server: Server, conversion: OfferedConversion, confirmed: bool = True) -> dict[str, Any]:
    """Let the client make or change the files, or do it here where the client can't. Raises ConversionRefused."""
    output = conversion.output
    if output is None:
        return await apply_edit(server, LABEL, file_edit(server, conversion, confirmed), refactoring=True)
    if conversion.is_there:
        note_written(output)
    elif not by_client(server, output):
        await _module_first(server, conversion.module)
        await _write_here(server, output)
        server.checks.edited(conversion.uri, wait=False)
        return {"applied": True}
    left = await _module_first(server, conversion.module)
    if left is None and conversion.own is None and conversion.is_there:
        return {"applied": True}
    edit = file_edit(server, replace(conversion, module=left), confirmed)
    answer = await apply_edit(server, LABEL, edit, refactoring=True)
    if answer["applied"]:
        _note_all([output, *(one for one in (left, conversion.own) if one is not None)])
    return answer


async def apply_part(server: Server, part: PartConversion) -> dict[str, Any]:
    """Let the client convert a part of a document in place. Raises ConversionRefused."""
    left = await _module_first(server, part.module)
    edits = [part.edit, *([output_edit(server, left)] if left is not None else [])]
    answer = await apply_edit(server, LABEL, joined(edits))
    if answer["applied"] and left is not None:
        note_written(left)
    return answer


async def _module_first(server: Server, module: Output | None) -> Output | None:
    """Write a helper module that the client can't; what is left for the client. Raises ConversionRefused."""
    if module is None or by_client(server, module):
        return module
    # Before what imports from it.
    await _write_here(server, module)
    return None


async def _write_here(server: Server, output: Output) -> None:
    await asyncio.get_running_loop().run_in_executor(None, write, server, output)
    server.survey.touch()


def _note_all(outputs: Iterable[Output]) -> None:
    for one in outputs:
        note_written(one)


class _Bulk:
    """One conversion of many files, in a process of its own: whoever edits meanwhile does not wait for it."""

    def __init__(self, server: Server, uris: Sequence[str], confirmed: bool) -> None:
        self.server = server
        self.confirmed = confirmed
        self.service = AnalysisService(server.conversion_settings)
        self.uris = list(dict.fromkeys(uris))
        self.skipped: list[dict[str, str]] = []
        self.modules: dict[Path, Output] = {}
        """The helper modules that change, by their folders."""
        self._cancelled = False

    async def run(self) -> dict[str, Any]:
        progress = Progress(self.server, "Converting to JAX", self._cancel)
        made: list[OfferedConversion] = []
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
            await self._find_modules(made)
        finally:
            progress.end()
            await self.service.close()
        written = await self._write(made)
        return {"converted": [one.uri for one in written], "skipped": self.skipped}

    def _cancel(self) -> None:
        self._cancelled = True

    def _skip(self, uri: str, reason: str) -> None:
        self.skipped.append({"uri": uri, "reason": reason})

    async def _convert(self, uri: str) -> OfferedConversion | None:
        """The conversion of one file, if it is to be written."""
        if self.server.pairs.source_of(uri) not in (uri, None):
            self._skip(uri, "it is a conversion itself")
            return None
        try:
            conversion = await convert_file(self.server, uri, self.service)
        except (ConversionRefused, SyntaxProblem, ChildFailed) as error:
            self._skip(uri, str(error))
            return None
        if conversion.standing is None:
            self._skip(uri, "it is no file")
        elif conversion.conflicts:
            name, count = conversion.standing.path.name, conversion.conflicts
            self._skip(uri, f"{name} was edited where the new conversion differs, in {count} places: convert it alone")
        elif not conversion.outputs:
            self._skip(uri, UP_TO_DATE)
        else:
            return conversion
        return None

    async def _find_modules(self, made: list[OfferedConversion]) -> None:
        """One module for all the files of a folder that import from it."""
        for folder in dict.fromkeys(one.module.standing.path.parent for one in made if one.module is not None):
            beside = [one for one in made if one.output is not None and one.output.standing.path.parent == folder]
            names = {name for one in beside for name in one.done.helpers}
            try:
                module = await helper_module(self.server, self.service, folder, names)
                if module is not None:
                    self.modules[folder] = module
            except (ConversionRefused, SyntaxProblem, ChildFailed) as error:
                made[:] = [one for one in made if one not in beside]
                self._skip_all(beside, str(error))

    async def _write(self, made: list[OfferedConversion]) -> list[OfferedConversion]:
        """Write what was made: by one edit as far as the client writes files, here otherwise."""
        made = [replace(one, module=None) for one in made]
        edits = await self._write_modules(made)
        by_server = [one for one in made if one.output is not None and not by_client(self.server, one.output)]
        by_editor = [one for one in made if one not in by_server]
        for one in by_editor[:]:
            try:
                edits += [file_edit(self.server, one, self.confirmed)] if one.outputs else []
            except ConversionRefused as error:
                by_editor.remove(one)
                self._skip(one.uri, str(error))
            # Each looked at a file: other requests get their turn in between.
            await asyncio.sleep(0)
        if edits:
            answer = await apply_edit(self.server, LABEL, joined(edits), refactoring=True)
            if not answer["applied"]:
                self._skip_all(by_editor, answer.get("reason", "the editor did not apply the edit"))
                return await self._write_files(by_server)
        written = [o for one in by_editor for o in (one.output, one.own) if o is not None] + list(self.modules.values())
        await asyncio.get_running_loop().run_in_executor(None, _note_all, written)
        return by_editor + await self._write_files(by_server)

    async def _write_modules(self, made: list[OfferedConversion]) -> list[types.WorkspaceEdit]:
        """The edits of helper modules; those that the client can't make are written. Without its module, no file is."""
        edits: list[types.WorkspaceEdit] = []
        for folder, module in list(self.modules.items()):
            try:
                left = await _module_first(self.server, module)
                edits += [output_edit(self.server, left)] if left is not None else []
            except (ConversionRefused, T2JError) as error:
                del self.modules[folder]
                lost = [o for o in made if o.done.helpers and o.output and o.output.standing.path.parent == folder]
                made[:] = [one for one in made if one not in lost]
                self._skip_all(lost, str(error))
        return edits

    def _skip_all(self, conversions: Iterable[OfferedConversion], reason: str) -> None:
        for one in conversions:
            self._skip(one.uri, reason)

    async def _write_files(self, made: list[OfferedConversion]) -> list[OfferedConversion]:
        written = []
        for one in made:
            assert one.output is not None
            try:
                await _write_here(self.server, one.output)
            except (ConversionRefused, T2JError) as error:
                self._skip(one.uri, str(error))
            else:
                written.append(one)
                self.server.checks.edited(one.uri, wait=False)
        return written
