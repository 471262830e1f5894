"""A child for tests: it answers, refuses, fails, waits until it is cancelled, or dies."""

from __future__ import annotations

import os
import threading
from typing import Any

from t2j_lsp.child.serve import Requests
from t2j_lsp.contract import T2JError

LETTERS = "€ \ud83d 😀"


def main() -> None:
    requests = Requests(interrupts=True)

    def refuse(text: str) -> Any:
        raise T2JError(text)

    def wait() -> None:
        requests.progress("waiting")
        event = threading.Event()
        while True:
            # Not for good at once: a signal is handled between two waits.
            event.wait(0.05)

    def stray(text: str) -> str:
        print("a stray line")
        os.write(1, b"stray bytes")
        return text

    def die() -> None:
        os._exit(7)

    handlers = {"echo": lambda value: value, "stray": stray, "refuse": refuse, "wait": wait, "die": die}
    requests.answer({**handlers, "fail": lambda secret: [][len(secret)]})


if __name__ == "__main__":
    main()
