"""What fixed bugs in the prompt do for a repair: the loop on own programs with planted gaps, and a scripted model.

    python -m benchmarks.repairs [--programs N] [--seed N]

In each of N programs of the fixed-bug data one bug's place is left open, as if the rules had refused it. The model is a
local server that answers with the faulty code, and with the fixed code only when the prompt holds a pair of the same
root cause from *another* program; its own program is always left out. Three arms, those of ``t2j eval``: no pairs
(standard prompt), all pairs (as published), and retrieved ones. Printed are the share that is verified in the end,
rounds, FixCost (hunks of the diff from the first draft to the verified code), and tokens. This shows that the loop
measures and that retrieval brings the right pair; it says nothing of any real model.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from t2j_lsp.assist.drafts import Budget, Repair
from t2j_lsp.assist.evaluation.arms import Arm, arm, shown
from t2j_lsp.assist.model import Endpoint
from t2j_lsp.assist.repair import repair_async
from t2j_lsp.assist.spans import MARK
from t2j_lsp.contract import Finding, Severity, SourceMapEntry, Span, Translation
from t2j_lsp.fixes.record import BugIndex, Pair, prompt_tokens
from t2j_lsp.retrieval import Index, dataset

from .fixed_bugs import CheckJudge, check_judge
from .scripted_endpoint import serve


def planted_gap(pair: Pair) -> Translation:
    """The fixed program with the place of one bug left open, as the rules leave what they refuse."""
    source, bug = pair.example.input_code, pair.bug
    margin = re.match(r"\s*", bug.fixed_code)[0]  # type: ignore[index]
    gap = f"{margin}{MARK}no rule\n{margin}...\n"
    code = pair.example.fix_output.replace(bug.fixed_code, gap)
    line = code[: code.index(gap)].count("\n") + 1
    own = next(n for n, text in enumerate(source.splitlines(), 1) if pair.example.object in text and "(" in text)
    finding = Finding(Span(own, 0, own, 1), "planted", "no-rule", Severity.GAP, "left open on purpose")
    return Translation(source, code, (finding,), (SourceMapEntry(own, own, line + 1, line + 1),))


def scripted(pairs: Iterable[Pair]) -> Callable[[dict[str, Any]], str]:
    """A model that knows each program's bug, and its fix only where the prompt shows it."""
    by_source = {pair.example.input_code: pair for pair in pairs}

    def answer(request: dict[str, Any]) -> str:
        text = "\n".join(message["content"] for message in request["messages"])
        pair = next(pair for source, pair in by_source.items() if source.rstrip("\n") in text)
        shown = re.findall(r'"Example_id": "([^"]+)/([^"/]+)"', text)
        knows = any(cause == pair.bug.root_cause and name != pair.example.program for name, cause in shown)
        code = pair.bug.fixed_code if knows else pair.bug.error_code
        return f"### SPAN 1\n```python\n{code}```\n\nCLAIM: equivalent\n"

    return answer


def fix_cost(repair: Repair) -> int:
    """Hunks of the diff from the first draft to the code at the end."""
    first = next((turn.code for turn in repair.dialogue.turns if turn.code), "")
    lines = difflib.SequenceMatcher(None, first.splitlines(), repair.code.splitlines(), autojunk=False)
    return sum(tag != "equal" for tag, *_ in lines.get_opcodes())


async def run_arm(
    kind: Arm, pairs: list[Pair], url: str, judge: CheckJudge, index: BugIndex, every: Sequence[Pair]
) -> None:
    """Repairs every program with one kind of prompt, and prints its row."""
    results = []
    for pair in pairs:
        others = shown(kind, index, every, frozenset({pair.example.program}))
        endpoint = Endpoint(f"scripted-{kind.name}", url)
        results.append(
            await repair_async(
                planted_gap(pair),
                [endpoint],
                judge,
                others.index,
                style=kind.style,
                pairs=others.pairs,
                budget=Budget(patience=2),
            )
        )
    solved = [r for r in results if not r.left]
    turns = [turn for r in results for turn in r.dialogue.turns]
    claimed = sum(bool(r.claimed) for r in results)
    sent = sum(len(m["content"]) for t in turns for m in t.question) / 3.5
    cost = sum(map(fix_cost, solved)) / len(solved) if solved else float("nan")
    print(
        f"{kind.name:16} {len(solved):3} of {len(results)}  {claimed - len(solved):8} {len(turns) / len(results):7.2f}"
        f" {cost:8.2f} {sent / len(results):14.0f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    every = tuple(pair for example in dataset() for pair in example.pairs)
    programs: dict[str, set[str]] = {}
    for pair in every:
        programs.setdefault(pair.bug.root_cause, set()).add(pair.example.program)
    rng = random.Random(arguments.seed)
    shared: dict[str, list[Pair]] = {}
    for pair in every:
        if len(programs[pair.bug.root_cause]) > 1:
            shared.setdefault(pair.example.program, []).append(pair)
    chosen = rng.sample(sorted(shared), min(arguments.programs, len(shared)))
    pairs = [rng.choice(shared[name]) for name in chosen]
    index = Index(dataset())
    print(f"{len(pairs)} programs; all {len(every)} pairs are about {prompt_tokens(every)} tokens")
    print(f"{'prompt':16} verified   overclaim  rounds  FixCost  tokens sent a program")
    with check_judge() as judge, serve(scripted(pairs)) as script:
        for name in ("standard", "all", "retrieved"):
            asyncio.run(run_arm(arm(name), pairs, script.url, judge, index, every))


if __name__ == "__main__":
    main()
