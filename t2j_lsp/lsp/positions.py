"""Columns as Python counts them (code points) and as a client counts them (UTF-8, UTF-16 or UTF-32 code units)."""

from __future__ import annotations

import re
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    r"""The lines of a text with their ends, as LSP counts them: only ``\r\n``, ``\r`` and ``\n`` end a line.

    There is always a last line without an end, which may be empty.
    """
    lines = _LINE.findall(text)
    if not lines or lines[-1].endswith(("\r", "\n")):
        lines.append("")
    return lines


def content(line: str) -> str:
    """A line without its end."""
    return line.rstrip("\r\n")


def to_column(line: str, character: int, encoding: Encoding) -> int:
    """The code point column of a client's ``character``. Beyond the line it is the line's length, as LSP asks.

    A character inside of a code point belongs to that code point's start.
    """
    text = content(line)
    if encoding == "utf-32" or text.isascii():
        return max(0, min(character, len(text)))
    units = 0
    for column, char in enumerate(text):
        units += _units(char, encoding)
        if units > character:
            return column
    return len(text)


def to_character(line: str, column: int, encoding: Encoding) -> int:
    """The client's ``character`` of a code point column. Beyond the line it is the line's length."""
    text = content(line)
    if encoding == "utf-32" or text.isascii():
        return max(0, min(column, len(text)))
    return sum(_units(char, encoding) for char in text[:column])


def _units(char: str, encoding: Encoding) -> int:
    point = ord(char)
    if encoding == "utf-16":
        return 2 if point > 0xFFFF else 1
    return 1 if point < 0x80 else 2 if point < 0x800 else 3 if point < 0x10000 else 4
