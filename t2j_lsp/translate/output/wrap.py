"""Breaks lines that the conversion made too long, as black would: at the last bracket, one argument to a line.

Lines that stand in the source as they are stay, however long.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from t2j_lsp.contract import SourceMapEntry

MIN_WIDTH, MAX_WIDTH = 88, 120
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def wrap_long_lines(
    code: str, source: str, tree: ast.Module, entries: list[SourceMapEntry], newline: str
) -> tuple[str, list[SourceMapEntry]]:
    """The code with its new long lines broken, and the source map for it."""
    lines = re.split(r"\r\n|\r|\n", code)
    known = set(re.split(r"\r\n|\r|\n", source))
    limit = min(
        MAX_WIDTH, max([MIN_WIDTH, *(len(line) for line in known if not line.lstrip().startswith(("#", '"', "'")))])
    )
    if all(len(line) <= limit or line in known for line in lines):
        return code, entries
    frozen = _string_lines(tree)
    out: list[str] = []
    moved = [0]
    for number, line in enumerate(lines, 1):
        if len(line) <= limit or line in known or number in frozen:
            out.append(line)
        else:
            out.extend(_broken(line, limit))
        moved.append(len(out))
    wrapped = newline.join(out)
    try:
        ast.parse(wrapped.lstrip("\ufeff"))
    except SyntaxError:
        return code, entries
    return wrapped, [
        replace(e, line=moved[e.line - 1] + 1, end_line=moved[min(e.end_line, len(lines))]) for e in entries
    ]


def _string_lines(tree: ast.Module) -> set[int]:
    """Lines that a string literal of several lines touches."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and (node.end_lineno or 0) > node.lineno:
            found.update(range(node.lineno, (node.end_lineno or 0) + 1))
    return found


def _broken(line: str, limit: int) -> list[str]:
    """One physical line as several, or as it was if it has no bracket to break at."""
    code, comment = _comment(line)
    pairs = _pairs(code)
    if len(code.rstrip()) <= limit or pairs is None:
        return [line]
    top = [(a, b) for a, b, depth in pairs if depth == 0 and b > a + 1]
    calls = [(a, b) for a, b in top if code[a] == "("]
    choice = calls or [(a, b) for a, b in top if code[a] == "[" and not re.search(r"[\w)\]]$", code[:a])]
    if not choice:
        return [line]
    is_def = re.match(r"\s*(async\s+)?(def|class)\b", code) is not None
    start, end = choice[0] if is_def else choice[-1]
    indent = code[: len(code) - len(code.lstrip())]
    inner = indent + "    "
    head, content, tail = code[: start + 1].rstrip(), code[start + 1 : end].strip(), code[end:].rstrip()
    items = _split(content)
    tail += f"  {comment}" if comment else ""
    if len(inner + content) <= limit and not content.endswith(","):
        return [head, inner + content, indent + tail]
    if len(items) == 1 and not content.endswith(",") and len(clauses := _clauses(content)) > 1:
        return [head, *(inner + clause for clause in clauses), indent + tail]
    if len(items) == 1 and not content.endswith(","):
        deeper = _broken(inner + content, limit)
        return [head, *deeper, indent + tail] if len(deeper) > 1 else [line]
    body: list[str] = []
    for item in items:
        body.extend(_broken(inner + item + ("" if item.startswith("**") and is_def else ","), limit))
    return [head, *body, indent + tail]


def _scan(text: str) -> list[tuple[int, str]] | None:
    """Positions of the characters that stand outside strings; None if a string doesn't end."""
    out: list[tuple[int, str]] = []
    index = 0
    while index < len(text):
        char = text[index]
        if char in "\"'":
            quote = text[index : index + 3] if text[index : index + 3] in ('"""', "'''") else char
            index += len(quote)
            while not text.startswith(quote, index):
                if index >= len(text):
                    return None
                index += 2 if text[index] == "\\" else 1
            index += len(quote)
            continue
        out.append((index, char))
        index += 1
    return out


def _comment(line: str) -> tuple[str, str]:
    """The code and the comment of a line."""
    for index, char in _scan(line) or []:
        if char == "#":
            return line[:index].rstrip(), line[index:]
    return line, ""


def _pairs(text: str) -> list[tuple[int, int, int]] | None:
    """Bracket pairs as (start, end, depth); None if the line isn't balanced in itself."""
    scanned = _scan(text)
    if scanned is None or text.rstrip().endswith("\\"):
        return None
    stack: list[int] = []
    found: list[tuple[int, int, int]] = []
    for index, char in scanned:
        if char in _CLOSING:
            stack.append(index)
        elif char in _CLOSING.values():
            if not stack or _CLOSING[text[stack[-1]]] != char:
                return None
            start = stack.pop()
            found.append((start, index, len(stack)))
    return None if stack else sorted(found)


def _clauses(content: str) -> list[str]:
    """A comprehension as its element and its ``for`` and ``if`` clauses."""
    cuts: list[int] = [0]
    depth = 0
    for index, char in _scan(content) or []:
        if char in _CLOSING:
            depth += 1
        elif char in _CLOSING.values():
            depth -= 1
        elif (
            depth == 0
            and char == " "
            and content.startswith(" for ", index)
            or depth == 0
            and len(cuts) > 1
            and content.startswith(" if ", index)
        ):
            cuts.append(index + 1)
    return [content[a:b].strip() for a, b in zip(cuts, [*cuts[1:], len(content)], strict=True)]


def _split(content: str) -> list[str]:
    """Split at the commas that stand outside brackets and strings."""
    items: list[str] = []
    depth = last = 0
    lambdas = 0
    for index, char in _scan(content) or []:
        if char in _CLOSING:
            depth += 1
        elif char in _CLOSING.values():
            depth -= 1
        elif depth == 0 and content.startswith("lambda", index):
            lambdas += 1
        elif depth == 0 and char == ":" and lambdas:
            lambdas -= 1
        elif depth == 0 and char == "," and not lambdas:
            items.append(content[last:index].strip())
            last = index + 1
    items.append(content[last:].strip())
    return [item for item in items if item]
