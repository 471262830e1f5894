"""Which fixed bugs are really like something that went wrong: a likeness between 0 and 1, with thresholds.

The scores of a full-text search grow with the question, so that no threshold parts what is alike from what only comes
first. Here what is compared is the place itself: the two statements, the message, and the edit that mends it where the
check found one. Each is the share of words that two places have in common, rare ones counting more. The thresholds are
from ``python -m benchmarks.offers``, which prints how often an offer is right, and how often nothing is offered.
"""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from t2j_lsp.contract import Finding
from t2j_lsp.fixes.record import Case, Example, Pair, SimilarPair, statement_at

from . import features

RAISES, EDIT, DIFFERS, LOOP = 0.42, 0.45, 0.55, 0.4
"""How alike a bug has to be: by the message of an error, by the edit that mends it, by the two statements alone, and by
the torch names of a training loop."""
Words = frozenset[str]
_FIELDS = ("message", "code", "source", "change", "fix")


@dataclass(frozen=True)
class _Place:
    """One place by the words that it is compared by."""

    message: Words = frozenset()
    code: Words = frozenset()
    """Of the JAX statement at which the two programs part."""
    source: Words = frozenset()
    """Of the PyTorch statement."""
    change: Words = frozenset()
    """What the JAX statement has and the PyTorch one has not, and the other way round."""
    fix: Words = frozenset()
    """What the faulty code has and the right one has not, and the other way round."""
    faulty: Words = frozenset()

    @cached_property
    def fix_words(self) -> Words:
        """The names among what the fix changes."""
        return frozenset(word for term in self.fix for word in _WORD.findall(term))


class Similar:
    """Likeness to known pairs. What a question needs is worked out when it is asked first."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self._pairs = [pair for example in examples for pair in example.pairs]
        programs = {pair.example.program: pair.example.input_code for pair in self._pairs}
        names = {program: _torch_names(source) for program, source in programs.items()}
        self._names = [names[pair.example.program] for pair in self._pairs]
        self._name_weights = _weights(names.values())

    def __len__(self) -> int:
        return len(self._pairs)

    @cached_property
    def _places(self) -> list[_Place]:
        return [_place(case_of(pair)) for pair in self._pairs]

    @cached_property
    def _weights(self) -> dict[str, Callable[[str], float]]:
        return {name: _weights(getattr(place, name) for place in self._places) for name in _FIELDS}

    def similar(
        self, case: Case, limit: int = 3, but: Callable[[Pair], bool] = lambda pair: False
    ) -> list[SimilarPair]:
        """The pairs that are really like a case, the user's own first, then the best; none where none is."""
        place = _place(case)
        likeness, least = self._likeness(case, place)
        pairs = []
        for pair, known in zip(self._pairs, self._places, strict=True):
            if _raises(pair) == (case.outcome != "differs"):
                score = likeness(place, known)
                if score >= least and not but(pair):
                    pairs.append(SimilarPair(pair, score))
        return sorted(pairs, key=_order)[:limit]

    def about(self, name: str, limit: int = 3, but: Callable[[Pair], bool] = lambda pair: False) -> list[SimilarPair]:
        """Pairs that are about one qualified torch name, one of each root cause.

        Their program uses it, and what was wrong is the JAX call of that name; those where it stands there come first.
        """
        last = name.rpartition(".")[2]
        wanted, word = f".{last}" if name.startswith("torch.Tensor.") else name, _jax_word(last)
        pairs = []
        for pair, names in zip(self._pairs, self._names, strict=True):
            known = _place(case_of(pair)) if wanted in names and not but(pair) else None
            if known is not None and word in known.fix_words:
                pairs.append(SimilarPair(pair, 1.0 if word in known.source else 0.5))
        return _distinct(pairs, limit)

    def for_gap(
        self, finding: Finding, source: str, limit: int = 3, but: Callable[[Pair], bool] = lambda pair: False
    ) -> list[SimilarPair]:
        """Pairs that are about what a rule refused in a program, one of each root cause."""
        if finding.name.startswith("torch."):
            return self.about(finding.name, limit, but)
        span = source.splitlines()[finding.span.line - 1 : finding.span.end_line]
        names = _torch_names(_imports(source) + "\n" + textwrap.dedent("\n".join(span)))
        if finding.code == "training-loop":
            likeness, least, fits = self._share, LOOP, lambda bug: bug.category in ("training", "parameter updates")
        elif finding.code == "in-place":
            # That one changes no values.
            names = frozenset(n for n in names if n[0] == "." and n[-1] == "_" and n != ".requires_grad_")
            likeness, least, fits = _any, 1.0, lambda bug: bug.sub_category == "in-place"
        else:
            return []
        scores = ((pair, likeness(names, known)) for pair, known in zip(self._pairs, self._names, strict=True))
        return _distinct([SimilarPair(p, s) for p, s in scores if s >= least and fits(p.bug) and not but(p)], limit)

    def _share(self, first: Words, second: Words) -> float:
        """The share of torch names that two programs have in common."""
        weigh = self._name_weights
        return sum(map(weigh, first & second)) / max(sum(map(weigh, first | second)), 1e-9)

    def _likeness(self, case: Case, place: _Place) -> tuple[Callable[[_Place, _Place], float], float]:
        """How to compare a case with pairs, and from which likeness on they are offered."""
        if case.outcome != "differs":
            return self._by_message, RAISES
        return (self._by_edit, EDIT) if place.fix else (self._by_statements, DIFFERS)

    def _by_message(self, place: _Place, known: _Place) -> float:
        message = self._common("message", place.message, known.message)
        code = max(self._common("code", place.code, words) for words in (known.code, known.faulty))
        return (2 * message + 2 * code + self._common("source", place.source, known.source)) / 5

    def _by_edit(self, place: _Place, known: _Place) -> float:
        return self._common("fix", place.fix, known.fix)

    def _by_statements(self, place: _Place, known: _Place) -> float:
        if not place.change:
            return 0.0
        weigh = self._weights["fix"]
        part = sum(map(weigh, place.change & known.fix)) / max(sum(map(weigh, known.fix)), 1e-9)
        change = self._common("change", place.change, known.change)
        return (change + part + self._common("source", place.source, known.source)) / 3

    def _common(self, field: str, first: Words, second: Words) -> float:
        """The share of words that two places have in common."""
        weigh, both = self._weights[field], first & second
        return sum(map(weigh, both)) / sum(map(weigh, first | second)) if both else 0.0


_WORD = re.compile(r"[A-Za-z_]\w*")


def _jax_word(name: str) -> str:
    """The word that PyTorch's and JAX's names for one function are compared by."""
    return next((word for word in features.vocabulary(f"{name}()") if word.isidentifier()), name)


def _torch_names(code: str) -> Words:
    """What code calls and reads of torch, by qualified names; methods of values as ``.name``."""
    return frozenset(name for name in features.names(code) if name.startswith(("torch.", ".")))


def _imports(source: str) -> str:
    """The import statements of a program."""
    tree = features.parse(source) or ast.Module([], [])
    return "\n".join(ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def _any(first: Words, second: Words) -> float:
    return float(bool(first & second))


def _order(one: SimilarPair) -> tuple[bool, float]:
    """What the user mended before comes first, then what is most alike."""
    return one.pair.bug.origin != "captured", -one.score


def _distinct(pairs: list[SimilarPair], limit: int) -> list[SimilarPair]:
    """The best ones, one of each root cause."""
    by_cause: dict[str, SimilarPair] = {}
    for one in sorted(pairs, key=_order):
        by_cause.setdefault(one.pair.bug.root_cause, one)
    return list(by_cause.values())[:limit]


def case_of(pair: Pair) -> Case:
    """A known pair as a case: what a check of its faulty code says."""
    bug, shown = pair.bug, pair.bug.verification
    lines = shown.first_difference if shown is not None else (None, None)
    outcome = shown.outcome if shown is not None else "differs"
    edit = (bug.error_code, bug.fixed_code)
    return Case(pair.example.input_code, lines[0], pair.faulty, lines[1], bug.error, outcome, edit)


def _place(case: Case) -> _Place:
    source, code = statement_at(case.source, case.source_line), statement_at(case.code, case.code_line)
    faulty, fixed = case.edit or ("", "")
    return _Place(
        frozenset(word.lower() for word in features.message(case.error)),
        _words(code),
        _words(source),
        frozenset(features.differences(source, code)) if source and code else frozenset(),
        frozenset(features.differences(fixed, faulty)) if case.edit else frozenset(),
        _words(faulty),
    )


def _words(code: str) -> Words:
    return frozenset(features.vocabulary(code)) if code else frozenset()


def _weights(places: Iterable[Words]) -> Callable[[str], float]:
    """How much each word tells: the logarithm of how few places have it."""
    listed = list(places)
    counts = Counter(word for words in listed for word in words)
    unknown = math.log((len(listed) + 1) / 0.5)
    weights = {word: math.log((len(listed) + 1) / (count + 0.5)) for word, count in counts.items()}
    return lambda word: weights.get(word, unknown)


def _raises(pair: Pair) -> bool:
    shown = pair.bug.verification
    return shown is not None and shown.outcome != "differs"
