"""The analysis process: reads requests from standard input, answers on standard output, ends with its parent.

``python -P -m t2j_lsp.lsp.analysis.process``. Frames are a length and a pickled value; only the server, which started
the process, is at the other end. A long translation is given up as soon as something more urgent is asked for.
"""

from __future__ import annotations

import _thread
import gc
import os
import pickle
import queue
import signal
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from t2j_lsp.api import convert_file
from t2j_lsp.assist.prompts import PAIRS, TOKENS
from t2j_lsp.assist.spans import MARK
from t2j_lsp.commands.explain import readable
from t2j_lsp.contract import HelperDoc, SourceError, T2JError, Translation
from t2j_lsp.explain import all_docs, helper_docs
from t2j_lsp.files.helper_modules import NAME, Extended, extended
from t2j_lsp.files.merge import Merged
from t2j_lsp.files.sources import merge_into
from t2j_lsp.fixes.record import Query
from t2j_lsp.plugins import load_fixed_bugs
from t2j_lsp.translate import translate

from .analyst import Analyst, options
from .landmarks import landmarks
from .model import Analysis, Converted, Landmarks, Refused, Scope, Settings
from .partial import convert_part, restore

HEAD = struct.Struct("<Q")
NAMES = 6


class Interrupted(BaseException):
    """The job is not wanted any more."""


class Jobs:
    """What the process can be asked for. Each method is one operation."""

    def __init__(self) -> None:
        self.analyst = Analyst()

    def docs(self) -> dict[str, tuple[str, str | None, str, str | None, str]]:
        """Every rule: signature, JAX form, fidelity, what to know, subject, by qualified torch name."""
        return {
            name: (d.signature, readable(d.jax) if d.jax else None, str(d.fidelity), d.note or d.reason, d.subject)
            for name, d in all_docs().items()
        }

    def helper_docs(self) -> dict[str, HelperDoc]:
        """What there is to say of the helpers."""
        return helper_docs()

    def quick(self, key: str, text: str, settings: Settings, path: str | None) -> Analysis | None:
        return self.analyst.quick(key, text, settings, path)

    def full(self, key: str, text: str, settings: Settings, path: str | None) -> Analysis:
        return self.analyst.full(key, text, settings, path)

    def forget(self, key: str) -> None:
        self.analyst.forget(key)

    def part(self, key: str, text: str, settings: Settings, path: str | None, scope: Scope) -> Any:
        return convert_part(self.analyst, key, text, settings, path, scope)

    def convert(self, key: str, text: str, settings: Settings, path: str | None) -> Converted:
        state = self.analyst.state(key, text, settings, path)
        problem = state.problem or state.made.problem
        if problem is not None or state.translation is None:
            raise Refused(_placed(path, problem or "the file can't be converted"))
        # What is too large for the editor is no reason to leave it out of a conversion.
        done = translate(text, options(settings, path)) if state.made.left else state.translation
        return _converted(done, settings)

    def convert_path(self, path: str, data: bytes | None, settings: Settings) -> Converted:
        """A file or notebook that is not kept among the analyses; ``data`` stands for what is on disk."""
        done = convert_file(Path(path), options(settings, path), data).translation
        return _converted(done, settings)

    def helpers(self, names: list[str], present: str) -> Extended:
        """The helper module with these, from the text that stands there."""
        try:
            return extended(present, names)
        except SyntaxError as error:
            raise Refused(f"{NAME}.py, which gets helpers, is not Python (line {error.lineno}: {error.msg})") from None

    def landmarks(self, source: str, code: str) -> Landmarks:
        return landmarks(source, code)

    def similar(self, gaps: list[tuple[str, str, str]]) -> list[int]:
        """How many fixed bugs a prompt would hold for each gap: its statement, its name, what the rules say of it."""
        index = load_fixed_bugs()
        queries = (Query(code, f"{MARK}{why}\n{code}", "", f"{name} {why}") for code, name, why in gaps)
        return [len(index.search(one, limit=PAIRS, tokens=TOKENS, distinct=True)) for one in queries]

    def merge(self, path: str, mine: str, theirs: str) -> Merged:
        return merge_into(Path(path), mine, theirs)

    def restore(self, key: str, text: str, settings: Settings, path: str | None, other: str, line: int) -> Any:
        fresh = self.analyst.state(key, text, settings, path)
        problem = fresh.problem or fresh.made.problem
        if fresh.translation is None or problem is not None:
            raise Refused(_placed(path, problem or "the file can't be converted"))
        return restore(other, fresh.translation.code, line)


def _placed(path: str | None, problem: str) -> str:
    """A problem with the name of its file."""
    return f"{Path(path).name}, {problem}" if path is not None else problem


def _converted(done: Translation, settings: Settings) -> Converted:
    imported = done.needs.helpers if settings.helpers == "module" else ()
    return Converted(done.code, len(done.gaps), sum(n.differs for n in done.notes), imported)


class Loop:
    """Runs jobs one by one on the main thread, while another thread reads requests and interrupts."""

    def __init__(self) -> None:
        self.jobs = Jobs()
        self.waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.running: int | None = None
        self.unwanted: int | None = None
        source, self.sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        signal.signal(signal.SIGINT, self._signalled)
        threading.Thread(target=self._read, args=(source.read,), daemon=True).start()

    def _signalled(self, number: int, frame: Any) -> None:
        if self.running is not None and self.running == self.unwanted:
            self.running = None
            raise Interrupted

    def _read(self, read: Callable[[int], bytes]) -> None:
        while True:
            head = read(HEAD.size)
            if len(head) < HEAD.size:
                break
            request = pickle.loads(read(HEAD.unpack(head)[0]))
            if request["operation"] == "interrupt":
                self.unwanted = request["job"]
                # Runs the handler on the main thread, on every platform.
                _thread.interrupt_main(signal.SIGINT)
            else:
                self.waiting.put(request)
        os._exit(0)

    def run(self) -> None:
        translate("import torch\nx = torch.zeros(2)\n")
        gc.collect()
        gc.freeze()
        gc.disable()
        while True:
            request = self.waiting.get()
            assert request is not None
            answer = self._do(request)
            data = pickle.dumps({"id": request["id"], **answer}, protocol=pickle.HIGHEST_PROTOCOL)
            self.sink.write(HEAD.pack(len(data)))
            self.sink.write(data)
            self.sink.flush()
            if self.waiting.empty():
                gc.collect()

    def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            self.running = request["id"]
            try:
                value = getattr(self.jobs, request["operation"])(**request["arguments"])
            finally:
                self.running = None
        except Interrupted:
            return {"interrupted": True}
        except SyntaxError as error:
            line = f"line {error.lineno}: " if error.lineno else ""
            return {"syntax": _placed(request["arguments"].get("path"), f"{line}{error.msg or 'invalid syntax'}")}
        except (Refused, SourceError, T2JError) as error:
            return {"refused": str(error)}
        except Exception as error:  # noqa: BLE001 - the outermost guard of a request
            where = [f"{Path(f.f_code.co_filename).name}:{line}" for f, line in _frames(error)][-NAMES:]
            # Only the type and the place: a message may hold the user's code.
            return {"failed": f"{type(error).__name__} at {' '.join(where)}"}
        return {"value": value}


def _frames(error: BaseException) -> list[tuple[Any, int]]:
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return found


if __name__ == "__main__":
    Loop().run()
