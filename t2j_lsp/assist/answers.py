"""Reads a model's answer: a section for each span, new imports and helpers, and what the model claims of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_SECTION = re.compile(r"^\s*#{2,4}\s*(SPAN\s+(\d+)|HEAD)\b[^\n]*$", re.MULTILINE | re.IGNORECASE)
_FENCE = re.compile(r"^(`{3,})[\w+-]*[ \t]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_CLAIM = re.compile(r"^\s*CLAIM:\s*(equivalent|unsure)\b", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """Code by span number, code for the head of the file, and whether the model says that it is right.

    The claim decides nothing: it is kept to measure how far models' claims are from the truth.
    """

    spans: dict[int, str] = field(default_factory=dict)
    head: str = ""
    claim: bool | None = None


class AnswerError(ValueError):
    """A text with no code for any span that was asked for. Its message is what the model is told."""


def read_answer(text: str, asked: set[int]) -> Answer:
    """The answer in a text. Raises AnswerError."""
    marks = list(_SECTION.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    spans: dict[int, str] = {}
    head: list[str] = []
    for mark, end in zip(marks, ends, strict=False):  # no section has one end
        fence = _FENCE.search(text, mark.end(), end)
        if fence is None:
            continue
        if mark[2] is None:
            head.append(fence[2])
        elif int(mark[2]) in asked:
            spans[int(mark[2])] = fence[2]
    if not marks and len(asked) == 1 and (fence := _FENCE.search(text)):
        spans[next(iter(asked))] = fence[2]
    if not spans:
        raise AnswerError(
            "There was no section '### SPAN n' with a complete fenced block of code for any span asked for."
        )
    claim = _CLAIM.search(text)
    return Answer(spans, "\n".join(head), claim[1].lower() == "equivalent" if claim else None)
