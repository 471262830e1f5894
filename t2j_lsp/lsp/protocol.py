"""The JSON-RPC side: pygls' protocol with our own document store, answers to malformed messages, and silent logs.

pygls logs every payload at INFO, keeps texts in a store of its own, and answers nothing to what it can't read. Code
and keys don't belong in logs, its store splits lines where LSP doesn't, and a client that waits for an answer hangs.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcInvalidParams, JsonRpcMethodNotFound
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from .documents import DocumentStore, Program

log = logging.getLogger("t2j.lsp")

progress_token: ContextVar[int | str | None] = ContextVar("progress_token", default=None)
"""Under which the client of the running command shows its progress, if it said so."""

PARSE_ERROR, INVALID_REQUEST, NOT_INITIALIZED = -32700, -32600, -32002


class Host(LanguageServer):
    """Who keeps the texts that the client sends, and hears of them."""

    store: DocumentStore
    exit_code: int | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.ended = asyncio.Event()

    def opened(self, program: Program) -> None:
        """A document or notebook was opened."""
        raise NotImplementedError

    def changed(self, changed: Program) -> None:
        """A document or notebook has a new text."""
        raise NotImplementedError

    def closed(self, uri: str) -> None:
        """A document or notebook was closed."""
        raise NotImplementedError

    def cell_closed(self, uri: str) -> None:
        """A cell of a notebook is gone."""
        raise NotImplementedError


class Protocol(LanguageServerProtocol):
    """What pygls does, except for texts, errors and logs."""

    _server: Host

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        self.initialized = False

    # --- messages in ----------------------------------------------------------------------------------------------

    def receive(self, body: bytes) -> None:
        """Handle one message. Whatever is wrong with it, a request is answered and the server lives on."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(None, PARSE_ERROR, "the message is not JSON")
            return
        if not isinstance(data, dict) or data.get("jsonrpc") != "2.0" or not ("method" in data or "id" in data):
            self._refuse(None, INVALID_REQUEST, "the message is not JSON-RPC 2.0")
            return
        identity, method = data.get("id"), data.get("method")
        if "method" in data and not isinstance(method, str):
            self._refuse(identity, INVALID_REQUEST, "the method is not a string")
            return
        if method is not None and "id" in data and self._is_early_or_late(identity, method):
            return
        try:
            message = self.structure_message(data)
            self.handle_message(message)
        except JsonRpcException as error:
            if method is not None and "id" in data:
                self._refuse(identity, error.code, error.message)
            else:
                log.warning("a message (%s) could not be read: %s", method, error.message)

    def _is_early_or_late(self, identity: Any, method: str) -> bool:
        if method == types.INITIALIZE:
            if self.initialized:
                self._refuse(identity, INVALID_REQUEST, "the server is initialized already")
                return True
            self.initialized = True
        elif not self.initialized:
            self._refuse(identity, NOT_INITIALIZED, "the server is not initialized")
            return True
        elif self._shutdown:
            self._refuse(identity, INVALID_REQUEST, "the server is shutting down")
            return True
        return False

    def _refuse(self, identity: Any, code: int, message: str) -> None:
        self._send_data({"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}})

    def _handle_request(self, msg_id: str | int, method_name: str, params: Any) -> None:
        try:
            handler = self._get_handler(method_name)
        except JsonRpcMethodNotFound as error:
            self._send_response(msg_id, None, error.to_response_error())
            return
        self._ctx_msg_id.set(msg_id)
        self._execute_handler(msg_id, handler, lambda f: self._send_handler_result(f, msg_id=msg_id), (params,))

    def _handle_notification(self, method_name: str, params: Any) -> None:
        if method_name == types.CANCEL_REQUEST:
            future = self._request_futures.get(params.id)
            if future is not None:
                future.cancel()
            return
        try:
            handler = self._get_handler(method_name)
        except JsonRpcMethodNotFound:
            return
        self._execute_handler(f"notification-{id(params)}", handler, self._check_handler_result, (params,))

    def _execute_handler(self, msg_id: Any, handler: Any, callback: Any, args: Any = None, kwargs: Any = None) -> None:
        """Call a handler now. What it does before it returns an awaitable sees the texts as the client meant them."""
        if inspect.isgeneratorfunction(handler):
            super()._execute_handler(msg_id, handler, callback, args, kwargs)
            return
        future: Any = Future()
        try:
            result = handler(*(args or ()), **(kwargs or {}))
            if inspect.isawaitable(result):
                future = asyncio.ensure_future(result)
                self._request_futures[msg_id] = future
            else:
                future.set_result(result)
        except Exception as error:  # noqa: BLE001 - the outermost guard of a request
            future.set_exception(error)
        future.add_done_callback(callback)

    # --- results --------------------------------------------------------------------------------------------------

    def _send_handler_result(self, future: Future[Any], *, msg_id: str | int) -> None:
        self._request_futures.pop(msg_id, None)
        if future.cancelled():
            self._refuse(msg_id, types.LSPErrorCodes.RequestCancelled.value, "the request was cancelled")
            return
        error = future.exception()
        if error is None:
            self._send_response(msg_id, result=future.result())
        elif isinstance(error, JsonRpcException):
            self._send_response(msg_id, error=error.to_response_error())
        else:
            log.error("a request failed", exc_info=error)
            self._refuse(msg_id, JsonRpcInternalError.CODE, f"an error inside t2j: {type(error).__name__}")

    def _check_handler_result(self, future: Future[Any]) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            log.error("a notification failed", exc_info=error)

    def _handle_response(self, msg_id: str | int, result: Any = None, error: Any = None) -> None:
        future = self._request_futures.pop(msg_id, None)
        if future is None or future.cancelled():
            return
        if error is not None:
            future.set_exception(JsonRpcException.from_error(error))
        else:
            future.set_result(result)

    async def ask(self, method: str, params: Any = None, refused: Any = None) -> Any:
        """Send a request to the client and wait for its answer; ``refused`` where the client answers with an error."""
        future: asyncio.Future[Any] = asyncio.wrap_future(self.send_request(method, params))
        try:
            # Shielded: a cancelled wait must not cancel the future that the answer is put into.
            return await asyncio.shield(future)
        except JsonRpcException as error:
            log.warning("the client refused %s: %s", method, error.message)
            return refused

    # --- messages out ---------------------------------------------------------------------------------------------

    def _send_data(self, data: Any) -> None:
        if not data or self.writer is None:
            return
        body = json.dumps(data, default=self._serialize_message, separators=(",", ":")).encode()
        try:
            self.writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        except (OSError, ValueError):
            log.warning("the client is gone")

    def structure_message(self, data: dict[str, Any]) -> Any:
        logging.getLogger("pygls").setLevel(logging.CRITICAL)
        try:
            return super().structure_message(data)
        except JsonRpcException:
            raise
        except Exception as error:  # the converter raises whatever it meets in parameters of the wrong form
            raise JsonRpcInvalidParams() from error

    # --- texts ----------------------------------------------------------------------------------------------------

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self._server.opened(self._server.store.open(params.text_document))

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        document = self._server.store.change(params)
        if document is None:
            log.warning("a change of a document that is not open")
        else:
            self._server.changed(document)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._server.store.close(params.text_document.uri)
        self._server.closed(params.text_document.uri)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        notebook = self._server.store.open_notebook(params.notebook_document, params.cell_text_documents)
        self._server.opened(notebook)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> None:
        notebook = self._server.store.change_notebook(params)
        structure = params.change.cells.structure if params.change.cells is not None else None
        for cell in (structure.did_close or ()) if structure is not None else ():
            self._server.cell_closed(cell.uri)
        if notebook is not None:
            self._server.changed(notebook)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def lsp_notebook_document__did_save(self, params: types.DidSaveNotebookDocumentParams) -> None:
        notebook = self._server.store.notebooks.get(params.notebook_document.uri)
        if notebook is not None:
            notebook.note_saved()

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> None:
        self._server.store.close_notebook(params.notebook_document.uri)
        self._server.closed(params.notebook_document.uri)
        for cell in params.cell_text_documents:
            self._server.cell_closed(cell.uri)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:
        """Call a command. What it returns is awaited as its request is: cancelling the one cancels the other."""
        if params.command == "":
            # A lens that only tells something, in a client that runs it all the same.
            return None
        progress_token.set(params.work_done_token)
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(message=f"there is no command {params.command!r}")
        return handler(*(params.arguments or ()))

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> None:  # type: ignore[override]
        self._server.exit_code = 0 if self._shutdown else 1
        self._server.ended.set()
