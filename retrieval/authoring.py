"""Reads a program of fixed bugs as its author writes it: a Markdown page with both programs and a section for each bug.

# linear_regression
What the program is. Its last definition is what a check compares, unless a line `object: NAME` says otherwise.

## PyTorch            one fenced block
## JAX                one fenced block: the right conversion

## updates-not-returned
parameter updates / updates

What is wrong and how to fix it.

### Faulty            one fenced block, lines that stand in the draft
### Fixed             one fenced block, the lines that replace them; they stand once in the right conversion
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from t2j_lsp.fixes.record import CATEGORIES, Example, FixedBug

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class PageError(ValueError):
    """A page that is not of this form."""


def read_page(path: Path) -> Example:
    """The program on a page with all its errors, without what running it showed. Raises PageError."""
    try:
        return _parse(path.stem, path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PageError(f"{path.name}: {error}") from error


def read_pages(folder: Path) -> tuple[Example, ...]:
    """All pages of a folder, by name. Raises PageError."""
    return tuple(read_page(path) for path in sorted(folder.glob("*.md")))


def _parse(name: str, text: str) -> Example:
    head, *parts = _SECTION.split(text)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    if not head.startswith(f"# {name}\n"):
        raise ValueError(f"the first line is not '# {name}'")
    if len(sections) * 2 != len(parts):
        raise ValueError("two sections have the same name")
    source, fixed = (_block(sections.pop(side, ""), side) for side in ("PyTorch", "JAX"))
    title, chosen = head.split("\n", 1)[1].strip(), None
    if match := re.search(r"^object: (\w+)$", title, re.MULTILINE):
        chosen, title = match[1], title.replace(match[0], "").strip()
    example = Example(name, name, " ".join(title.split()), chosen or _last_definition(source), source, fixed, ())
    example = example.with_errors(_bug(cause, body) for cause, body in sections.items())
    ast.parse(fixed)
    for bug in example.errors:
        if bug.error_code == bug.fixed_code:
            raise ValueError(f"{bug.root_cause}: the faulty code is the fixed code")
    list(example.drafts())  # raises where the fixed code of an error is not in the program
    return example


def _bug(cause: str, body: str) -> FixedBug:
    about, _, codes = body.partition("### Faulty")
    faulty, _, fixed = codes.partition("### Fixed")
    lines = about.strip().split("\n")
    category, _, sub_category = lines[0].partition(" / ")
    if sub_category not in CATEGORIES.get(category, ()):
        raise ValueError(f"{cause}: no category '{lines[0]}'")
    info = " ".join(" ".join(lines[1:]).split())
    if not info:
        raise ValueError(f"{cause}: nothing says what is wrong and how to fix it")
    return FixedBug(cause, category, sub_category, _block(faulty, cause), _block(fixed, cause), info)


def _block(text: str, where: str) -> str:
    blocks = _BLOCK.findall(text)
    if len(blocks) != 1:
        raise ValueError(f"{where}: {len(blocks)} fenced blocks of Python where one is asked for")
    return str(blocks[0])


def _last_definition(source: str) -> str:
    names = [n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    if not names:
        raise ValueError("the PyTorch program defines nothing to compare")
    return names[-1]
