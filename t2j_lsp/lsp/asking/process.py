"""The process that asks a model: shows what would be sent, or asks and has the answers checked.

``python -P -m t2j_lsp.lsp.asking.process``, for one request. The key comes in it, and so stands in no argument and no
file. The process ends with the server, and its workers with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from t2j_lsp.api import convert_file
from t2j_lsp.assist.asking import Interpreters, file_judge
from t2j_lsp.assist.drafts import Budget, Repair
from t2j_lsp.assist.model import Endpoint
from t2j_lsp.assist.prompts import first_prompt
from t2j_lsp.assist.repair import repair_async
from t2j_lsp.child.serve import Requests, step_back
from t2j_lsp.contract import ObjectVerdict, Options, Translation
from t2j_lsp.plugins import load_fixed_bugs

from .part import differing, with_gaps

PER_TOKEN = 4
"""Characters, about, where the endpoint has not counted yet."""


def part_of(request: dict[str, Any]) -> Translation:
    """What is asked for. Raises T2JError where there is nothing to ask."""
    source, path = request["source"], Path(request["path"])
    if request["mode"] == "different":
        return differing(source, request["text"], request["name"], request["reason"])
    options = Options(**request["options"])
    made = convert_file(path, options, source.encode("utf-8", "surrogatepass")).translation
    return with_gaps(made, request["text"], request["name"])


def preview(request: dict[str, Any]) -> dict[str, Any]:
    """The messages of the first round as text, and how much that is."""
    prompt = first_prompt(part_of(request), "augmented", load_fixed_bugs())
    text = prompt.text()
    return {
        "text": text,
        "tokens": len(text) // PER_TOKEN,
        "fixes": [pair.id for pair in prompt.pairs],
        "spans": len(prompt.spans),
    }


async def ask(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Asks, and answers with the new text of the conversion, what is verified in it, and the verdicts."""
    part, path = part_of(request), Path(request["path"])
    models = [Endpoint(model, request["base_url"] or None, request["key"]) for model in request["models"]]
    verdicts: dict[str, ObjectVerdict] = {}
    shown = LoopProgress(send)
    with file_judge(path, Interpreters(request["torch_python"], request["jax_python"]), request["timeout"]) as judge:

        def remembering(source: str, candidate: str, name: str) -> ObjectVerdict:
            verdicts[name] = judge(source, candidate, name)
            return verdicts[name]

        result = await repair_async(
            part,
            models,
            remembering,
            load_fixed_bugs(),
            budget=Budget(rounds=request["rounds"], tokens=request["tokens"]),
            python=request["jax_python"],
            on_progress=shown.step,
            on_text=shown.text,
        )
    return answer_of(result, verdicts, shown.last)


def answer_of(result: Repair, verdicts: dict[str, ObjectVerdict], said: str) -> dict[str, Any]:
    """What came of it, for the server."""
    drafts = [{"model": d.model, "verified": d.verified, "reason": d.reason, "ran": d.ran}
              for d in result.drafts.values()]  # fmt: skip
    return {
        "code": result.code,
        "drafts": drafts,
        "left": len(result.left),
        "rounds": result.rounds,
        "tokens": result.tokens,
        "ended": result.ended,
        "said": said,
        "verdicts": {name: verdict.to_json() for name, verdict in verdicts.items()},
    }


class LoopProgress:
    """Tells how far the loop is: its step, and the tokens that came so far."""

    EVERY = 25
    """Tokens between two reports of one answer."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self.last = ""
        self._characters = 0
        self._told = 0

    def step(self, line: str) -> None:
        self.last = line
        self._tell()

    def text(self, text: str) -> None:
        self._characters += len(text)
        if self._tokens - self._told >= self.EVERY:
            self._tell()

    @property
    def _tokens(self) -> int:
        return self._characters // PER_TOKEN

    def _tell(self) -> None:
        self._told = self._tokens
        self._send({"step": self.last, "tokens": self._told})


def main() -> None:
    """Answer the server's request."""
    requests = Requests()
    step_back()

    def ask_now(request: dict[str, Any]) -> dict[str, Any]:
        return asyncio.run(ask(request, requests.progress))

    requests.answer({"preview": preview, "ask": ask_now})


if __name__ == "__main__":
    main()
