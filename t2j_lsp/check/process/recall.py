"""Keeps what the torch worker answered: while only the conversion changes, the PyTorch program need not run again."""

from __future__ import annotations

import copy
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from t2j_lsp.check.protocol import pack

LIMIT = 256 * 1024**2


class Recall:
    """Answers by request, the least recently used ones forgotten beyond ``limit`` bytes.

    The same program with the same inputs and seed gives the same answer, unless it reads files or the time: who keeps
    a `Recall` for long should make a new one when an environment changes.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.size = 0
        self.answers: OrderedDict[bytes, tuple[int, Any]] = OrderedDict()

    def ask(self, message: dict[str, Any], send: Callable[[], Any]) -> Any:
        """The answer to a request, from memory or by ``send``. What ``send`` raises is not kept."""
        key = self._key(message)
        if key in self.answers:
            self.answers.move_to_end(key)
        else:
            answer = send()
            text, buffers = pack(answer)
            size = len(text) + sum(map(len, buffers))
            self.answers[key] = size, answer
            self.size += size
            while self.size > self.limit and len(self.answers) > 1:
                self.size -= self.answers.popitem(last=False)[1][0]
        return copy.copy(self.answers[key][1])

    @staticmethod
    def _key(message: dict[str, Any]) -> bytes:
        text, buffers = pack(message)
        digest = hashlib.sha256(text)
        for buffer in buffers:
            digest.update(buffer)
        return digest.digest()
