"""Keeps every answer of an evaluation, and answers from what was kept: a replay asks nobody.

A record is one file for each question: ``PROGRAM/ARM/MODEL-DIGEST.json`` holds the messages and what came back, in
order where the same was asked more than once. Keys are not in it. An endpoint's failure is kept as well.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from t2j_lsp.assist.model import Endpoint, ModelClient, ModelError, Reply
from t2j_lsp.assist.prompts import ChatMessage
from t2j_lsp.contract import T2JError

SETTINGS = "evaluation.json"
"""The file of a record that says what was evaluated: models, arms, judge, programs."""


class Placed(ModelClient):
    """A client that knows what its questions are about. This one keeps nothing."""

    place = ""

    def at(self, *parts: str) -> None:
        """What is asked from now on is about this: a program and an arm."""
        self.place = "/".join(re.sub(r"[^\w.=-]+", "_", part) for part in parts)


class Kept(Placed):
    """A client whose questions have a place in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._asked: Counter[Path] = Counter()

    def file(self, endpoint: Endpoint, messages: Sequence[ChatMessage]) -> Path:
        """Where answers to a question are: the same wherever the endpoint is."""
        asked = json.dumps([endpoint.model, endpoint.temperature, list(messages)], sort_keys=True)
        digest = hashlib.sha256(asked.encode()).hexdigest()[:16]
        model = re.sub(r"[^\w.-]+", "_", endpoint.model)
        return self.folder / self.place / f"{model}-{digest}.json"

    def count(self, file: Path) -> int:
        """How often this was asked before."""
        self._asked[file] += 1
        return self._asked[file] - 1


class QuestionRecorder(Kept):
    """Asks, and keeps question and answer."""

    async def ask(
        self, endpoint: Endpoint, messages: Sequence[ChatMessage], on_text: Callable[[str], None] = lambda text: None
    ) -> Reply:
        file = self.file(endpoint, messages)
        first = self.count(file) == 0
        try:
            reply = await super().ask(endpoint, messages, on_text)
        except ModelError as error:
            self._add(file, first, endpoint, messages, {"error": str(error)})
            raise
        said = {"text": reply.text, "finish": reply.finish}
        self._add(file, first, endpoint, messages, {**said, "tokens": [reply.tokens_in, reply.tokens_out]})
        return reply

    def _add(
        self, file: Path, first: bool, endpoint: Endpoint, messages: Sequence[ChatMessage], answer: dict[str, Any]
    ) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        answers = [] if first else json.loads(file.read_text(encoding="utf-8"))["answers"]
        data = {"model": endpoint.model, "temperature": endpoint.temperature, "messages": list(messages)}
        data["answers"] = [*answers, answer]
        file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


class Replayer(Kept):
    """Answers from a record. Asks nobody: what is not there is a T2JError that names it."""

    async def ask(
        self, endpoint: Endpoint, messages: Sequence[ChatMessage], on_text: Callable[[str], None] = lambda text: None
    ) -> Reply:
        file = self.file(endpoint, messages)
        number = self.count(file)
        try:
            answer = json.loads(file.read_text(encoding="utf-8"))["answers"][number]
            if "error" in answer:
                raise ModelError(answer["error"])
            reply = Reply(answer["text"], answer["finish"], *answer["tokens"])
        except FileNotFoundError:
            raise T2JError(f"{self._name(endpoint, file)}: no answer to this question is recorded") from None
        except IndexError:
            raise T2JError(f"{self._name(endpoint, file)}: only {number} recorded, one more was asked for") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise T2JError(f"{file} is no recorded answer: {error}") from None
        on_text(reply.text)
        return reply

    def _name(self, endpoint: Endpoint, file: Path) -> str:
        return f"{self.folder} lacks an answer of {endpoint.model} for {self.place} ({file.name})"


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Says in a record what it is of. Raises T2JError where the folder holds something else, or another record."""
    file = folder / SETTINGS
    if folder.exists() and not folder.is_dir():
        raise T2JError(f"{folder} is not a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise T2JError(f"{folder} is not empty; --record takes a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def read_settings(folder: Path) -> dict[str, Any]:
    """What a record is of. Raises T2JError where there is none."""
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise T2JError(f"{folder} is no record of an evaluation: {error}") from None
    if not isinstance(settings, dict):
        raise T2JError(f"{folder} is no record of an evaluation")
    return settings
