"""What programs print, run in this process."""

from __future__ import annotations

import contextlib
import io


def printed(code: str) -> str:
    """What the text of a program prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "<program>", "exec"), {"__name__": "program"})
    return out.getvalue()
