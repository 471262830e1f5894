"""The user's own fixes, kept as fixed bugs: code before and after, where the check found the first to differ and the
second to be equivalent.

One file of JSON for each, in the form of the data that t2j brings, in the user's data folder: to be read, edited and
deleted there. Nothing is sent anywhere, prompts for models never hold them, and no path stands in them.
"""

from __future__ import annotations

import difflib
import functools
import io
import json
import os
import re
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2j_lsp.contract import T2JError
from t2j_lsp.files.written import digest, replace_file
from t2j_lsp.plugins import brought_fixed_bugs, index_with, similar_bugs

from .offers import failure, id_of
from .record import BugIndex, Example, FixedBug, Pair, SimilarBugs, Verification

if TYPE_CHECKING:
    from t2j_lsp.assist.judging import CandidateFailure

MAX_FIXES = 1000
"""Fixes that are kept; the oldest go first."""
_PATH = re.compile(r"(?<![\w:/.\\])(?:[A-Za-z]:[\\/]|~?/)[^\s'\"]*[\\/](?=[^\s'\"\\/])")
"""The folders of a path in a text or a comment."""


def data_folder() -> Path:
    """Where the user's data is: ``$T2J_DATA``, or the platform's folder for programs' data."""
    if chosen := os.environ.get("T2J_DATA"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "t2j" / "data"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "t2j"


def fixes_folder() -> Path:
    return data_folder() / "fixes"


def load() -> tuple[Example, ...]:
    """The fixes that are kept, by name. A file that holds none is left out."""
    return tuple(example for path in _files() if (example := _read(path)) is not None)


def save(example: Example) -> Path:
    """Keep a fix. Raises OSError."""
    path = fixes_folder() / f"{example.example_id}.json"
    form = json.dumps(example.to_json(), indent=2, ensure_ascii=False) + "\n"
    replace_file(path, form.encode("utf-8"), MAX_FIXES)
    return path


def delete(identity: str) -> bool:
    """Whether there was such a fix, which is deleted then."""
    for path in _files():
        if path.stem == identity:
            path.unlink(missing_ok=True)
            return True
    return False


def _files() -> list[Path]:
    return sorted(fixes_folder().glob("[!.]*.json"))


def _read(path: Path) -> Example | None:
    try:
        return Example.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def find(identity: str) -> Pair:
    """The pair of this id, the user's or one that t2j brings. T2JError where there is none."""
    for example in (*load(), *brought_fixed_bugs()):
        for pair in example.pairs:
            if identity in (id_of(pair), pair.id):
                return pair
    raise T2JError(f"there is no fixed bug {identity}")


# --- finding them -----------------------------------------------------------------------------------------------------


def index_with_own() -> BugIndex:
    """The index over all fixed bugs, the user's among them; made anew where these changed."""
    return _index(_stamps())


def similar_with_own() -> SimilarBugs:
    """What knows which of all fixed bugs are like something; made anew where the user's changed."""
    return _similar(_stamps())


def _stamps() -> tuple[tuple[str, int, int], ...]:
    return tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in _files())


@functools.lru_cache(maxsize=1)
def _index(stamps: tuple[Any, ...]) -> BugIndex:
    return index_with(load())


@functools.lru_cache(maxsize=1)
def _similar(stamps: tuple[Any, ...]) -> SimilarBugs:
    return similar_bugs(load())


# --- making them ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ObjectProgram:
    """What an object of a file needs, cut out of it, and where the file's lines (from 1) are in that."""

    text: str
    lines: dict[int, int]


def cut(path: Path, text: str, name: str) -> ObjectProgram | None:
    """The statements of a file that an object needs; None where the file does not have it."""
    # Imported here so that who only reads fixes doesn't load the check.
    from t2j_lsp.check.program.slice import Slicer

    slicer = Slicer(path, text)
    if not slicer.modules.defines(slicer.main, name):
        return None
    kept = next(m for m in slicer.cut(name).modules if m.name == slicer.main)
    body, source = slicer.scope.body, text.splitlines()
    out: list[str] = []
    lines: dict[int, int] = {}
    for index, _ in kept.keep:
        node = body[index]
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        above = source[max(first - 3, 0) : first - 1]
        out += [line for line in above if not line.strip()]
        for line in range(first, (node.end_lineno or first) + 1):
            out.append(source[line - 1])
            lines[line] = len(out)
    margin = next((i for i, line in enumerate(out) if line), 0)
    return ObjectProgram("\n".join(out[margin:]) + "\n", {line: at - margin for line, at in lines.items()})


def keep(
    verdict: dict[str, Any], source: tuple[Path, str], faulty: tuple[Path, str], fixed: tuple[Path, str]
) -> str | None:
    """Keep a fix that the check has seen both sides of, and return its id; None where there is nothing to keep.

    ``verdict`` is that on the faulty code, in the form of the report; the others are files with their texts.
    """
    failed, name = failure(verdict), verdict["name"]
    programs = [cut(path, text, name) for path, text in (source, faulty, fixed)]
    torch, wrong, right = programs
    if failed is None or torch is None or wrong is None or right is None:
        return None
    cause = (verdict["divergence"] or {}).get("cause") or ""
    try:
        return save(captured(name, torch, wrong, right, failed, f"{cause[:1].upper()}{cause[1:]}")).stem
    except (T2JError, OSError):
        return None


def captured(
    name: str,
    source: ObjectProgram,
    faulty: ObjectProgram,
    fixed: ObjectProgram,
    failure: CandidateFailure,
    why: str = "",
    seconds: float = 0.0,
) -> Example:
    """A fix as a fixed bug, without paths. Raises T2JError where nothing of the object was changed."""
    torch, before, after = (without_paths(program.text) for program in (source, faulty, fixed))
    wrong, right = _hunk(before, after)
    identity = f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}-{digest((torch + wrong + right).encode())[:8]}"
    torch_line, jax_line = failure.lines
    lines = source.lines.get(torch_line or 0), faulty.lines.get(jax_line or 0)
    message = _PATH.sub("", failure.message)
    outcome = failure.outcome
    assert outcome in ("raises", "differs", "does not load")
    shown = Verification(outcome, lines, _versions(), round(seconds, 2))  # type: ignore[arg-type]
    about = without_paths(why.strip()) or _in_words(name, wrong, right)
    bug = FixedBug(identity, "yours", outcome, wrong, right, about, message, "captured", shown)
    return Example(identity, identity, f"{name}, kept from your own code", name, torch, after, (bug,))


def without_paths(text: str) -> str:
    """A text in which every path is its last part only; of a program only in strings and comments."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return _PATH.sub("", text)
    lines = text.splitlines(keepends=True)
    for token in reversed(tokens):
        if token.type in _WITH_PATHS and _PATH.search(token.string):
            (row, column), (end_row, end) = token.start, token.end
            head, tail = lines[row - 1][:column], lines[end_row - 1][end:]
            lines[row - 1 : end_row] = [head + _PATH.sub("", token.string) + tail]
    return "".join(lines)


_WITH_PATHS = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def _hunk(before: str, after: str) -> tuple[str, str]:
    """The lines that were changed, from the first to the last, and as many around them that the new ones stand once."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    changes = [op for op in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if op[0] != "equal"]
    if not changes:
        raise T2JError("nothing was changed in what the check compares")
    first, old_end, new_end = changes[0][1], changes[-1][2], changes[-1][4]
    # Both texts are the same up to the first change and behind the last.
    while True:
        wrong, right = "".join(old[first:old_end]), "".join(new[first:new_end])
        if wrong.strip() and right.strip() and after.count(right) == 1:
            return wrong, right
        if first > 0:
            first -= 1
        elif old_end < len(old):
            old_end, new_end = old_end + 1, new_end + 1
        else:
            return wrong, right


def _in_words(name: str, wrong: str, right: str) -> str:
    """What was changed, for whoever gave no words for it."""
    old, new = wrong.strip().split("\n"), right.strip().split("\n")
    if len(old) == len(new) == 1:
        return f"In {name}, `{old[0]}` became `{new[0]}`."
    return f"{len(old)} lines of {name} became {len(new)}, from `{old[0].strip()}` on."


def _versions() -> dict[str, str]:
    """The versions of the packages that are installed beside t2j."""
    from importlib import metadata  # It brings the email package along: for who keeps a fix alone.

    versions = {}
    for package in ("torch", "jax", "flax", "optax"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
