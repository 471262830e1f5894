"""Questions about a whole file that many places ask: each is answered once for a file's inference."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from .file import Inference

Answer = TypeVar("Answer")


def kept_answers(read: Callable[[Inference], Answer]) -> Callable[[Inference], Answer]:
    """Decorate what reads a file: who asks again is given the same answer, as long as the inference lives."""
    answers: WeakKeyDictionary[Inference, Answer] = WeakKeyDictionary()

    @wraps(read)
    def answer(inference: Inference) -> Answer:
        if inference not in answers:
            answers[inference] = read(inference)
        return answers[inference]

    return answer
