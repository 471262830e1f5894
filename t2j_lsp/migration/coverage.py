"""What of a code base converts, what does not, and why: counts for each torch name and each reason."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from t2j_lsp.contract import JSON_VERSION, Finding, Severity, Translation
from t2j_lsp.translate.rule.names import canonical, is_torch


@dataclass
class Usage:
    """One torch name over all files."""

    name: str
    uses: int = 0
    gaps: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class FileCoverage:
    """What one file converts to."""

    path: Path
    converted: int
    gaps: tuple[tuple[int | None, Finding], ...]
    """What stays as it is; in a notebook with the number of its cell."""
    notes: int


@dataclass
class CoverageCounts:
    """Counts over the files that were added."""

    files: int = 0
    converted: int = 0
    gaps: int = 0
    notes: int = 0
    names: dict[str, Usage] = field(default_factory=dict)
    by_file: list[FileCoverage] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    """Files that could not be read or parsed, and why."""

    def add(self, path: Path, translation: Translation, python: str, cells: tuple[int, ...] | None = None) -> None:
        """Count one file. ``python`` is its Python text (for a notebook, that of its cells).

        ``cells`` are the numbers of the findings' cells in a notebook.
        """
        self.files += 1
        placed = zip(cells or [None] * len(translation.findings), translation.findings, strict=True)
        gaps_here = tuple((cell, finding) for cell, finding in placed if finding.severity is Severity.GAP)
        self.by_file.append(FileCoverage(path, translation.converted, gaps_here, len(translation.notes)))
        self.converted += translation.converted
        self.gaps += len(translation.gaps)
        self.notes += len(translation.notes)
        uses = Counter(torch_names(python))
        gaps = Counter(finding.name for finding in translation.gaps)
        for name in uses.keys() | gaps.keys():
            usage = self.names.setdefault(name, Usage(name))
            # A method of a tensor has no import to be found by: it shows where it is a gap.
            usage.uses += max(uses[name], gaps[name])
            usage.gaps += gaps[name]
        for finding in translation.gaps:
            self.names[finding.name].reasons[finding.reason] += 1

    @property
    def ranked(self) -> list[Usage]:
        """Names with the most gaps first, then the most used."""
        return sorted(self.names.values(), key=lambda usage: (-usage.gaps, -usage.uses, usage.name))

    def to_json(self) -> dict[str, Any]:
        return {
            "version": JSON_VERSION,
            "files": self.files,
            "converted": self.converted,
            "gaps": self.gaps,
            "notes": self.notes,
            "names": [{**asdict(usage), "reasons": dict(usage.reasons)} for usage in self.ranked],
            "errors": [{"file": file, "reason": reason} for file, reason in sorted(self.errors.items())],
        }


def torch_names(source: str) -> Iterator[str]:
    """The qualified torch name of every use that an import of the file leads to, once for each use."""
    tree = ast.parse(source)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                aliases[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and not node.level:
            aliases |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner and isinstance(node.ctx, ast.Load):
            name = canonical(_qualified(node, aliases))
            if is_torch(name) and name != "torch":
                yield name


def _qualified(node: ast.expr, aliases: dict[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    return ".".join([aliases[node.id], *reversed(parts)])
