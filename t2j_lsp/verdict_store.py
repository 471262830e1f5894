"""The verdicts of checks, kept in the user's state folder, so that they are known after a restart.

One small file for each pair of a PyTorch file and its conversion. A verdict is about two texts, and it holds as long as
both files have these very texts.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .contract import VerdictKind
from .outline import text_digest
from .written import digest, replace_file, state_folder

MAX_PAIRS = 2000
"""Pairs that are remembered; the oldest go first."""
MAX_REASON = 400
UNCHECKED = str(VerdictKind.UNCHECKED)


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """The verdict on one object. ``checked`` is a time in UTC; errors are the worst over all stages."""

    name: str
    verdict: str
    reason: str | None = None
    stages: dict[str, str] = field(default_factory=dict)
    """The result of each stage."""
    max_abs_err: float | None = None
    max_rel_err: float | None = None
    device: str = ""
    version: str = ""
    checked: str = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is known of a pair."""

    source: str
    """The digest of the PyTorch text."""
    converted: str
    verdicts: dict[str, StoredVerdict]

    def holds(self, source: str, converted: str) -> bool:
        """Whether the verdicts are about texts with these digests."""
        return (self.source, self.converted) == (source, converted)


def record(
    source: Path,
    source_text: str,
    converted: Path,
    converted_text: str,
    objects: Iterable[dict[str, Any]],
    *,
    device: str,
    version: str,
) -> None:
    """Keep the verdicts of a check by this ``version`` of t2j, in the JSON form of `ObjectVerdict`.

    Those on other objects stay, where they are about the same texts. Where the state folder can't be written, nothing
    is kept.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    digests = text_digest(source_text), text_digest(converted_text)
    known = load(source, converted)
    verdicts = dict(known.verdicts) if known is not None and known.holds(*digests) else {}
    for form in objects:
        before = verdicts.get(form["name"])
        # That a check could not be made (again) takes nothing from one that was.
        if before is None or before.verdict == UNCHECKED or form["verdict"] != UNCHECKED:
            verdicts[form["name"]] = _stored(form, device, version, now)
    data = {"source": digests[0], "converted": digests[1], "verdicts": [asdict(v) for v in verdicts.values()]}
    path = store_path(source, converted)
    with contextlib.suppress(OSError):
        replace_file(path, json.dumps(data).encode(), MAX_PAIRS)


def load(source: Path, converted: Path) -> Stored | None:
    """What is known of a pair; None where nothing is."""
    try:
        data = json.loads(store_path(source, converted).read_bytes())
        verdicts = [StoredVerdict(**form) for form in data["verdicts"]]
        return Stored(data["source"], data["converted"], {v.name: v for v in verdicts})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store_path(source: Path, converted: Path) -> Path:
    """The file that holds what is known of a pair."""
    pair = b"\0".join(os.fsencode(os.path.realpath(path)) for path in (source, converted))
    return state_folder() / "verdicts" / digest(pair)


def _stored(form: dict[str, Any], device: str, version: str, now: str) -> StoredVerdict:
    stages: dict[str, Any] = form["stages"]
    divergence = form.get("divergence") or {}
    reason = divergence.get("what") or form["reason"]
    absolute = [s["max_abs_err"] for s in stages.values() if s["max_abs_err"] is not None]
    relative = [s["max_rel_err"] for s in stages.values() if s["max_rel_err"] is not None]
    return StoredVerdict(
        form["name"],
        str(form["verdict"]),
        reason[:MAX_REASON] if reason else None,
        {name: str(stage["result"]) for name, stage in stages.items()},
        max(absolute, default=None),
        max(relative, default=None),
        device,
        version,
        now,
    )
