"""Stand-ins for texts that are not there: words made up, the same in each run."""

from __future__ import annotations

import builtins
import functools
import io
import os
import pathlib
import string
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np

_WORDS, _LENGTH = 200, 4000
"""Different words, and words in all."""
TEXTS = (".txt",)


@functools.cache
def made_up() -> str:
    """Sentences, a few on each line; every letter is among them."""
    rng = np.random.default_rng(5)
    letters = list(string.ascii_lowercase)
    words = ["".join(rng.choice(letters, rng.integers(2, 8))) for _ in range(_WORDS)] + letters
    picked = [words[i] for i in rng.integers(0, len(words), _LENGTH)]
    ends = {9: ".\n", 4: ","}
    return " ".join(f"{word}{ends.get(i % 10, '')}" for i, word in enumerate(picked)).replace("\n ", "\n")


def _is_text(name: Any, mode: str) -> bool:
    return isinstance(name, str | os.PathLike) and os.fspath(name).endswith(TEXTS) and not set(mode) & set("bwax+")


def _reader() -> str:
    """The file of the code that reads: who called whoever calls this, paths aside."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename == pathlib.__file__:
        frame = frame.f_back
    return frame.f_code.co_filename


@contextmanager
def texts_stood_in(files: set[str], note: Callable[[str], None]) -> Iterator[None]:
    """In this context, a text that ``files`` read and that is not there has made-up words in it.

    ``note`` is told which.
    """
    opening, fetching = builtins.open, urllib.request.urlretrieve

    @functools.wraps(opening)
    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        try:
            return opening(file, mode, *args, **kwargs)
        except FileNotFoundError:
            if not _is_text(file, mode) or _reader() not in files:
                raise
            note(f"{os.path.basename(file)}: a text of made-up words")
            return io.StringIO(made_up())

    @functools.wraps(fetching)
    def fetched(url: str, filename: Any = None, *args: Any, **kwargs: Any) -> Any:
        try:
            return fetching(url, filename, *args, **kwargs)
        except OSError:
            if not _is_text(filename, "r") or _reader() not in files:
                raise
            return filename, None

    with ExitStack() as stack:
        for owner in (builtins, io):
            stack.enter_context(mock.patch.object(owner, "open", opened))
        stack.enter_context(mock.patch.object(urllib.request, "urlretrieve", fetched))
        yield
