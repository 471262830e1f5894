"""The loop of a worker process: read a request, answer it, and never let a user's error or output reach the pipe."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from t2j_lsp.check.arguments import command_line
from t2j_lsp.check.crossing import Message
from t2j_lsp.check.messages import Failure
from t2j_lsp.check.protocol import Raised, frame, read_frame
from t2j_lsp.check.workers.containment import guard, remains
from t2j_lsp.check.workers.containment.folders import Folders
from t2j_lsp.check.workers.torch_side import compiler
from t2j_lsp.child.frames import MAX_DATA

Handler = Callable[[dict[str, Any]], Any]
_Asked = TypeVar("_Asked", bound=Message)


def serve(kind: str, tag: bytes, receive: int, send: int, folders: Folders, layers: tuple[str, ...]) -> None:
    """Answers requests until the pipe closes. A request is ``{"id", "operation", ...}``."""
    gc.disable()
    if kind == "torch":
        compiler.put_off()
    module = importlib.import_module(f"t2j_lsp.check.workers.{kind}_side.worker")
    gc.freeze()  # A framework is some 200,000 objects, which stay: none of them is garbage, now or later.
    gc.enable()
    command_line.install()
    handlers: dict[str, Handler] = dict(module.HANDLERS)
    handlers["greet"] = lambda message: module.greet(list(layers))
    guard.install(folders)
    known = remains.Remains(lambda: (module.settings(), guard.rules()))
    scratch = folders.writable[0]
    with os.fdopen(receive, "rb") as source:

        def read(count: int) -> bytes:
            data = source.read(count)
            if len(data) < count:
                os._exit(0)
            return data

        while True:
            request = read_frame(tag, read, MAX_DATA)
            reply = answer(handlers, request, scratch)
            if (changed := known.changed()) is not None:
                reply["dirty"] = True
                os.write(2, f"{changed} was changed\n".encode())
            try:
                parts = frame(tag, {"id": request["id"], **reply})
            except (TypeError, ValueError, RecursionError) as error:
                parts = frame(tag, {"id": request["id"], "error": failure(error).to_plain()})
            write(send, parts)


def write(send: int, parts: list[bytes]) -> None:
    for part in parts:
        view = memoryview(part)
        while view:
            view = view[os.write(send, view) :]


def answer(handlers: Mapping[str, Handler], request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """The handler's value, or what it raised. Runs in a fresh folder.

    ``dirty`` says that the program left threads running or took its folder away: then this worker is not to be used
    again.
    """
    threads = set(threading.enumerate())
    reply = _answer(handlers, request, scratch)
    os.ftruncate(1, 0)
    left = any(t.is_alive() for t in set(threading.enumerate()) - threads)
    return {**reply, "dirty": left or not os.path.isdir(scratch), "refused": guard.refusals()}


def _answer(handlers: Mapping[str, Handler], request: dict[str, Any], scratch: str) -> dict[str, Any]:
    folder, path, environment = None, list(sys.path), dict(os.environ)
    try:
        folder = tempfile.mkdtemp(dir=scratch)
        os.chdir(folder)
        with guard.guarded():
            value = handlers[request["operation"]](_message(request))
            return {"value": value.to_plain() if isinstance(value, Message) else value}
    except BaseException as error:  # noqa: BLE001 - the outermost guard: user code may raise anything, SystemExit too
        return {"error": failure(error).to_plain()}
    finally:
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)
        if folder is not None:
            os.chdir("/")
            shutil.rmtree(folder, ignore_errors=True)


def taking(kind: type[_Asked], handle: Callable[[_Asked], Any]) -> Handler:
    """A handler that reads its request as one of a kind."""
    return lambda message: handle(kind.from_plain(message))


def _message(request: dict[str, Any]) -> dict[str, Any]:
    """A request without what it is sent by."""
    return {name: value for name, value in request.items() if name not in ("id", "operation")}


def raised(error: BaseException, file: str) -> Raised:
    """An error that is an outcome to compare."""
    lines = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return Raised(type(error).__name__, file, lines[-1] if lines else 0)


def failure(error: BaseException) -> Failure:
    """An error with the places it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an exception class of the user's whose __str__ fails
        message = ""
    return Failure(
        type(error).__name__,
        [c.__name__ for c in type(error).__mro__],
        message[:4000],
        [(f.filename, f.lineno or 0, f.name) for f in frames],
    )
