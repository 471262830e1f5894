"""How far the migration of a code base is: its PyTorch files, their classes and functions, and the state of each.

Files are read and parsed, never executed. A conversion is found by its name beside its source, and verdicts by
`verdict_store`: they count only as long as both texts are those that were checked.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from t2j_lsp.contract import Coverage, SourceError, VerdictKind
from t2j_lsp.files.outline import Definition, Kind, Outline, notebook_outline, outline
from t2j_lsp.files.sources import converted_path, python_files, read_source, source_path

from .verdict_store import Stored, StoredVerdict, digests_of, load, store_path

State = Literal["not started", "converted", "gaps", "different", "equivalent"]
STATES: tuple[State, ...] = ("not started", "converted", "gaps", "different", "equivalent")
SUFFIX = "_jax"
"""What a conversion's name has more than its source's."""
MAX_FILES = 20_000
"""Files that are looked at."""
MAX_SIZES = {".py": 1 << 20, ".ipynb": 8 << 20}
"""Bytes of a file that is still read."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A class or function that uses torch; ``line`` counts from 0."""

    name: str
    kind: Kind
    line: int
    state: State
    gaps: int = 0
    reason: str | None = None
    verdict: StoredVerdict | None = None
    """The last verdict that still holds."""

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("name", "kind", "line", "state", "gaps", "reason")}


@dataclass(frozen=True, slots=True)
class SourceState:
    """A PyTorch file."""

    path: Path
    folder: Path
    """The folder that was asked about and holds it."""
    state: State
    converted: Path | None
    gaps: int
    symbols: tuple[Symbol, ...]
    coverage: Coverage | None = None
    """What the verdicts that hold cover."""

    @property
    def name(self) -> str:
        """The path from the folder."""
        return self.path.relative_to(self.folder).as_posix()


@dataclass(frozen=True, slots=True)
class Migration:
    """The state of folders. ``complete`` False: there are more files than were looked at."""

    files: tuple[SourceState, ...] = ()
    problems: tuple[str, ...] = ()
    complete: bool = True

    @property
    def counts(self) -> dict[State, int]:
        """How many files are in each state."""
        counted = Counter(file.state for file in self.files)
        return {state: counted[state] for state in STATES}

    @property
    def symbol_counts(self) -> dict[State, int]:
        """How many classes and functions are in each state."""
        counted = Counter(symbol.state for file in self.files for symbol in file.symbols)
        return {state: counted[state] for state in STATES}


@dataclass(slots=True)
class _Seen:
    """A file as it was when it was read last."""

    stamp: tuple[int, int] | str
    """Its time and size, or the text of its buffer."""
    outline: Outline
    parsed: bool


@dataclass
class Surveyor:
    """Looks at folders, and reads again only what has changed since."""

    buffers: dict[Path, str] = field(default_factory=dict)
    """Texts that stand for those of their files: what is open in an editor."""
    _seen: dict[Path, _Seen] = field(default_factory=dict)
    _listed: list[tuple[Path, Path, str]] = field(default_factory=list)
    _cut: bool = False
    _stored: dict[Path, tuple[int, Stored | None]] = field(default_factory=dict)
    _digests: dict[str, tuple[tuple[int, int], str]] = field(default_factory=dict)
    """The time and size, and the digest, of files that checks read besides."""

    def survey(self, folders: Mapping[Path, str], *, walk: bool = True) -> Migration:
        """The state of the PyTorch files under folders, each given with its suffix of conversions.

        ``walk`` False looks at the files of the last time alone.
        """
        if walk or not self._listed:
            self._listed, self._cut = _listing(folders)
        problems: list[str] = []
        files: list[SourceState] = []
        known: set[Path] = set()
        for path, folder, suffix in self._with_buffers(folders):
            state = self._file(path, folder, suffix, problems, known)
            if state is not None:
                files.append(state)
        self._seen = {path: seen for path, seen in self._seen.items() if path in known}
        self._stored = {path: seen for path, seen in self._stored.items() if path in known}
        if self._cut:
            problems.append(f"only the first {MAX_FILES} files were looked at")
        return Migration(tuple(sorted(files, key=lambda f: f.path)), tuple(problems), not self._cut)

    def _with_buffers(self, folders: Mapping[Path, str]) -> Iterator[tuple[Path, Path, str]]:
        """The listed files, and those that are open and not listed, like new ones."""
        yield from self._listed
        listed = {path for path, _, _ in self._listed}
        for path in self.buffers.keys() - listed:
            home = max((f for f in folders if f in path.parents), key=lambda f: len(f.parts), default=None)
            if home is not None and path.suffix in MAX_SIZES and not _hidden(path.relative_to(home)):
                yield path, home, folders[home]

    def _file(self, path: Path, folder: Path, suffix: str, problems: list[str], known: set[Path]) -> SourceState | None:
        origin = source_path(path, suffix)
        if origin is not None and self._exists(origin):
            return None
        source = self._look(path, problems, known)
        if source is None or not source.torch or source.ignored:
            return None
        if source.problem is not None:
            problems.append(f"{path.relative_to(folder)} can't be parsed: {source.problem}")
        target = converted_path(path, suffix)
        converted = self._look(target, problems, known, any_text=True) if self._exists(target) else None
        if converted is None:
            symbols = tuple(Symbol(d.name, d.kind, d.line - 1, "not started") for d in source.definitions if d.torch)
            return SourceState(path, folder, "not started", None, 0, symbols)
        stored = self._verdicts(path, target, known)
        holds = stored is not None and stored.holds(source.digest, converted.digest)
        holds = holds and stored is not None and self._are_same(stored.neighbours)
        verdicts = stored.verdicts if stored is not None and holds else {}
        states = [_symbol(d, converted, target.name, verdicts.get(d.name)) for d in source.definitions if d.torch]
        coverage = stored.coverage if stored is not None and holds else None
        state = _file_state(states, converted, coverage)
        return SourceState(path, folder, state, target, len(converted.gaps), tuple(states), coverage)

    def _exists(self, path: Path) -> bool:
        return path in self.buffers or path.is_file()

    def _look(self, path: Path, problems: list[str], known: set[Path], *, any_text: bool = False) -> Outline | None:
        """A file's outline; without definitions where it doesn't use torch, unless ``any_text``."""
        known.add(path)
        before = self._seen.get(path)
        buffer = self.buffers.get(path)
        try:
            stamp: tuple[int, int] | str
            if buffer is not None:
                stamp, text = buffer, buffer
            else:
                status = os.stat(path)
                if not stat.S_ISREG(status.st_mode):
                    # Reading a pipe would wait for ever.
                    return None
                stamp, text = (status.st_mtime_ns, status.st_size), ""
            if before is not None and before.stamp == stamp and (before.parsed or not any_text):
                return before.outline
            if buffer is None:
                most = MAX_SIZES.get(path.suffix, MAX_SIZES[".py"])
                if status.st_size > most:
                    problems.append(f"{path.name} is larger than {most >> 20} MB and was left out")
                    return None
                text = read_source(path).text
        except (OSError, SourceError) as error:
            problems.append(f"{path.name} can't be read: {getattr(error, 'strerror', None) or error}")
            return None
        outline = _outline(path, text, any_text)
        if outline.problem is not None and before is not None and buffer is not None:
            # Somebody is typing: what was there a moment ago is there in a moment again.
            outline = replace(outline, definitions=before.outline.definitions)
        self._seen[path] = _Seen(stamp, outline, any_text or outline.torch)
        return outline

    def _are_same(self, digests: Mapping[str, str]) -> bool:
        """Whether files have the bytes that they had when a check read them."""
        for name, before in digests.items():
            try:
                status = os.stat(name)
            except OSError:
                return False
            stamp = status.st_mtime_ns, status.st_size
            if name not in self._digests or self._digests[name][0] != stamp:
                self._digests[name] = stamp, digests_of([Path(name)])[name]
            if self._digests[name][1] != before:
                return False
        return True

    def _verdicts(self, source: Path, target: Path, known: set[Path]) -> Stored | None:
        path = store_path(source, target)
        known.add(path)
        try:
            stamp = os.stat(path).st_mtime_ns
        except OSError:
            self._stored.pop(path, None)
            return None
        before = self._stored.get(path)
        if before is None or before[0] != stamp:
            self._stored[path] = before = (stamp, load(source, target))
        return before[1]


def survey(folders: Iterable[Path], suffix: str = SUFFIX) -> Migration:
    """The state of the PyTorch files under folders."""
    return Surveyor().survey(dict.fromkeys(folders, suffix))


def _listing(folders: Mapping[Path, str]) -> tuple[list[tuple[Path, Path, str]], bool]:
    """The Python files under folders, each in the innermost one; and whether there are more than fit."""
    listed: dict[Path, tuple[Path, Path, str]] = {}
    for folder in sorted(folders, key=lambda f: -len(f.parts)):
        for path in python_files(folder) if folder.is_dir() else [folder]:
            if len(listed) >= MAX_FILES:
                return list(listed.values()), True
            listed.setdefault(path, (path, folder if folder.is_dir() else folder.parent, folders[folder]))
    return sorted(listed.values()), False


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part in ("site-packages", "node_modules") for part in path.parts)


def _outline(path: Path, text: str, any_text: bool) -> Outline:
    if path.suffix == ".ipynb":
        return notebook_outline(text)
    result = outline(text, definitions=False)
    return outline(text) if any_text or result.torch and not result.ignored else result


def _symbol(one: Definition, converted: Outline, name: str, verdict: StoredVerdict | None) -> Symbol:
    """The state of a class or function, from its conversion and the verdict that holds."""
    new = next((d for d in converted.definitions if d.name == one.name), None)
    symbol = Symbol(one.name, one.kind, one.line - 1, "converted", verdict=verdict)
    if converted.problem is not None:
        return replace(symbol, state="gaps", reason=f"{name} can't be parsed: {converted.problem}")
    if new is None:
        return replace(symbol, state="not started", reason=f"{name} has no {one.name}")
    reasons = [reason for line, reason in converted.gaps if new.first <= line <= new.last]
    symbol = replace(symbol, gaps=len(reasons), reason=reasons[0] if reasons else None)
    if verdict is not None and verdict.verdict == VerdictKind.DIFFERENT:
        return replace(symbol, state="different", reason=verdict.reason)
    if reasons:
        return replace(symbol, state="gaps")
    if verdict is not None and verdict.verdict == VerdictKind.EQUIVALENT:
        return replace(symbol, state="equivalent")
    return replace(symbol, reason=f"unchecked: {verdict.reason}" if verdict is not None and verdict.reason else None)


def _file_state(symbols: Sequence[Symbol], converted: Outline, coverage: Coverage | None) -> State:
    """The state of a file that has a conversion: the worst that is known of it."""
    states = {symbol.state for symbol in symbols}
    if "different" in states:
        return "different"
    if converted.gaps or converted.problem is not None or "gaps" in states or "not started" in states:
        return "gaps"
    whole = states == {"equivalent"} and (coverage is None or coverage.complete)
    return "equivalent" if whole else "converted"
