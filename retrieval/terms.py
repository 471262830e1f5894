"""What a pair is found by: worked out beforehand for the pairs that t2j brings, since that takes seconds for all.

``terms.jsonl`` holds a line for each pair. ``python -m benchmarks.fixed_bugs --terms`` writes it anew, after a change
of ``fixed_bugs.jsonl`` or of what terms are made of.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from importlib import resources

from t2j_lsp.fixes.record import Pair

from . import features
from .edits import edits, forms
from .flow import unused

FILE = "terms.jsonl"
Terms = dict[str, list[str]]
"""By the field of the index."""


def terms_of(pair: Pair) -> Terms:
    """What a pair is found by, from the file or worked out."""
    return _known().get(_key(pair)) or worked_out(pair)


def worked_out(pair: Pair) -> Terms:
    """What a pair is found by; free words of a search also find its names and its message."""
    bug, example = pair.bug, pair.example
    row = {
        "source": features.names(example.input_code),
        "names": features.names(bug.error_code),
        "structure": features.structure(bug.error_code),
        "differences": features.differences(bug.fixed_code, bug.error_code),
        "edits": edits(example.fix_output, pair.faulty, pair.lines),
        "forms": sorted(forms(bug.error_code) - forms(bug.fixed_code)),
        "flow": list((Counter(unused(pair.faulty)) - Counter(unused(example.fix_output))).elements()),
        "error": features.message(bug.error),
    }
    row["names"] += features.names(bug.fixed_code)
    about = features.message(f"{bug.root_cause.replace('-', ' ')} {bug.category} {bug.fix_info}")
    row["words"] = [*about, *row["error"], *row["names"]]
    return {field: sorted(words) for field, words in row.items()}


def to_lines(pairs: Iterable[Pair]) -> str:
    """The text of the file."""
    return "".join(json.dumps([_key(pair), worked_out(pair)], ensure_ascii=False) + "\n" for pair in pairs)


@functools.cache
def _known() -> dict[str, Terms]:
    file = resources.files(__package__).joinpath(FILE)
    return dict(map(json.loads, file.read_text(encoding="utf-8").splitlines())) if file.is_file() else {}


def _key(pair: Pair) -> str:
    """A name for all that the terms of a pair are made of."""
    bug, example = pair.bug, pair.example
    about = bug.root_cause, bug.category, bug.fix_info, bug.error
    code = bug.error_code, bug.fixed_code, example.input_code, example.fix_output, pair.faulty, pair.lines
    return hashlib.sha256(repr((about, code)).encode()).hexdigest()[:16]
