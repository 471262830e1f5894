"""How often fixed bugs that are offered without a model are of the same root cause, and how often none are offered.

    python -m benchmarks.offers [--thresholds]

Every bug is asked for as the check reports it, pairs of its own program left out: the two statements at which the
programs part, and the message; of values that differ also with the edit that the check found to mend it. Printed are,
for each kind: questions, offers, the share of offers that hold a pair of the same root cause, the share of offered
pairs that are, and offers to questions of which no other program has the root cause: these have no right answer.
``--thresholds`` prints the same for other thresholds than those in use.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2j_lsp.fixes.record import Case, Pair
from t2j_lsp.retrieval import Similar, dataset, similar
from t2j_lsp.retrieval.similar import case_of

LIMIT = 3
KINDS = ("an error", "values differ, with the edit that mends it", "values differ")


@dataclass(frozen=True)
class Shares:
    """What offers of one kind come to. ``alone`` are questions without a right answer."""

    questions: int
    offers: int
    right: int
    pairs: int
    right_pairs: int
    alone: int
    alone_offers: int

    def __str__(self) -> str:
        share = self.right / max(self.offers, 1), self.right_pairs / max(self.pairs, 1)
        return (
            f"{self.questions:9} {self.offers:7} {share[0]:12.2f} {share[1]:12.2f} "
            f"{self.alone_offers:8} of {self.alone}"
        )


def asked(pair: Pair, kind: str) -> Case | None:
    """A bug as a question of one kind; None where it is none."""
    case = case_of(pair)
    if (case.outcome == "differs") == (kind == KINDS[0]):
        return None
    return case if kind == KINDS[1] else replace(case, edit=None)


def measured(known: Similar, pairs: Sequence[Pair], kind: str) -> Shares:
    """What comes of asking for every bug of one kind."""
    programs: dict[str, set[str]] = {}
    for pair in pairs:
        programs.setdefault(pair.bug.root_cause, set()).add(pair.example.program)
    counts = [0] * 7
    for pair in pairs:
        case = asked(pair, kind)
        if case is None:
            continue
        own = pair.example.program
        offered = known.similar(case, LIMIT, but=lambda other, own=own: other.example.program == own)  # type: ignore[misc]
        right = sum(one.pair.bug.root_cause == pair.bug.root_cause for one in offered)
        alone = len(programs[pair.bug.root_cause]) == 1
        row = (True, bool(offered), right > 0, len(offered), right, alone, alone and bool(offered))
        counts = [count + int(more) for count, more in zip(counts, row, strict=True)]
    return Shares(*counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thresholds", action="store_true")
    arguments = parser.parse_args()
    pairs = [pair for example in dataset() for pair in example.pairs]
    known = Similar(dataset())
    names = dict(zip(KINDS, ("RAISES", "EDIT", "DIFFERS"), strict=True))
    print(f"{'':44} questions  offers  right among  right pairs  none right, offered")
    for kind, name in names.items():
        used = getattr(similar, name)
        for threshold in sorted({used, *((0.35, 0.45, 0.55, 0.65) if arguments.thresholds else ())}):
            setattr(similar, name, threshold)
            print(f"{kind:44}{measured(known, pairs, kind)}  from {threshold} on")
        setattr(similar, name, used)


if __name__ == "__main__":
    main()
