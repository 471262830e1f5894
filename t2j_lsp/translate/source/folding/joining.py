"""Statements that were broken over several lines and fit into one again."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache

from .parts import of_parts

WIDTH = 120
"""The most that a line of output has; what is too long for its file is broken when it is written."""


def joined(text: str) -> str:
    """The text with brackets closed on the line on which they are opened, wherever a statement fits into one line."""
    return of_parts(text, _joined)


@cache
def _joined(text: str) -> str:
    lines = text.splitlines(keepends=True)
    out: list[str] = []
    statement: list[tokenize.TokenInfo] = []
    first = 1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if statement:
                start, end = statement[0].start[0], token.start[0]
                out += lines[first - 1 : start - 1]
                out += _line(statement, "".join(lines[start - 1 : end]))
                first, statement = end + 1, []
        elif token.type not in (tokenize.INDENT, tokenize.DEDENT) and (
            statement or token.type not in (tokenize.NL, tokenize.COMMENT)
        ):
            statement.append(token)
    return re.sub(r"\n{3,}(?= )", "\n\n", "".join([*out, *lines[first - 1 :]]))


def _line(tokens: list[tokenize.TokenInfo], text: str) -> list[str]:
    """A statement on one line if it fits, else what is in its bracket on one, else as it stands."""
    if all(token.type != tokenize.NL for token in tokens) or any(token.type == tokenize.COMMENT for token in tokens):
        return [text]
    line = text[: len(text) - len(text.lstrip(" "))]
    indent = line
    broken = False
    before: tokenize.TokenInfo | None = None
    depth, inside = 0, list[tuple[int, int]]()
    for index, token in enumerate(tokens):
        if token.type == tokenize.NL:
            broken = True
            continue
        if "\n" in token.string:
            return [text]
        following = next((t.string for t in tokens[index + 1 :] if t.type != tokenize.NL), "")
        wrapped = index + 1 < len(tokens) and tokens[index + 1].type == tokenize.NL
        if token.string == "," and following in (")", "]", "}") and wrapped and not _needed(tokens, index):
            continue
        if before is not None:
            if not broken:
                gap = token.start[1] - before.end[1] if token.start[0] == before.end[0] else 1
                line += " " * gap
            elif before.string not in ("(", "[", "{") and token.string not in (")", "]", "}"):
                line += " "
        if token.string in (")", "]", "}"):
            depth -= 1
            if depth == 0 and broken and inside:
                inside[-1] = (inside[-1][0], len(line))
        line += token.string
        if token.string in ("(", "[", "{"):
            if depth == 0 and wrapped:
                inside.append((len(line), 0))
            depth += 1
        before, broken = token, False
    if len(line) <= WIDTH:
        return [f"{line}\n"]
    match inside:
        case [(start, end)] if end and max(len(indent) + 4 + end - start, start, len(line) - end) <= WIDTH:
            return [f"{line[:start]}\n", f"{indent}    {line[start:end]}\n", f"{indent}{line[end:]}\n"]
    return [text]


def _needed(tokens: list[tokenize.TokenInfo], comma: int) -> bool:
    """Whether a comma in front of a closing bracket may make a tuple."""
    depth = 0
    for index in range(comma - 1, -1, -1):
        string = tokens[index].string
        if string in (")", "]", "}"):
            depth += 1
        elif string in ("(", "[", "{"):
            if depth == 0:
                called = index > 0 and (
                    tokens[index - 1].type == tokenize.NAME or tokens[index - 1].string in (")", "]")
                )
                return string == "(" and not called
            depth -= 1
        elif string == "," and depth == 0:
            return False
    return True
