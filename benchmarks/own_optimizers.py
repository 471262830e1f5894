"""Whether the checker sees mistakes in optimizers and schedules: right conversions of them, and mutants.

    python -m benchmarks.own_optimizers [--per N] [--limit N] [--only TEXT] [--seed N]

Every optimizer, parameter group and schedule of tests/translate/test_training_optimizers.py (schedules once an update
and once an epoch) is converted by the rules and checked: it must be equivalent, and have been trained with that
optimizer. Then ``--per`` mutants of the statements that make the optimizer and the schedule: another number, a truth
value turned round, a keyword left out. A mutant is caught if its verdict is ``different``, and placed if the verdict's
line is in the mutated statement.
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.recall import Recall
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict, VerdictKind
from t2j_lsp.translate import translate
from tests.translate.test_training_optimizers import GROUPS, LOOP, MODEL, OPTIMIZERS, SCHEDULED, SCHEDULERS

CAUGHT, PLACED = 0.99, 0.95


def programs() -> dict[str, str]:
    """The programs by what they show."""
    texts = {
        f"{call}": f"{MODEL}\noptimizer = torch.optim.{call}\n{LOOP.format(steps=6)}" for call in (*OPTIMIZERS, *GROUPS)
    }
    for optimizer, scheduler in SCHEDULERS:
        for every in ("update", "epoch"):
            step = "scheduler.step()"
            loop = SCHEDULED.format(
                inner=f"\n        {step}" if every == "update" else "",
                outer=f"\n    {step}" if every == "epoch" else "",
            )
            made = f"\noptimizer = torch.optim.{optimizer}\nscheduler = torch.optim.lr_scheduler.{scheduler}\n"
            texts[f"{scheduler}, each {every}, {optimizer}"] = MODEL + made + loop
    return texts


def mutants(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Texts with one mistake: the text, what was done, and the lines of the statement."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    for statement in tree.body:
        if not isinstance(statement, ast.Assign) or ast.unparse(statement.targets[0]) not in (
            "optimizer",
            "scheduler",
            "schedule",
        ):
            continue
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        is_set = set_by_schedule(tree) if ast.unparse(statement.targets[0]) == "optimizer" else set()
        for what, changed in _changes(statement, is_set):
            new = ast.unparse(changed)
            yield "".join([*lines[: first - 1], f"{new}\n", *lines[last:]]), what, first, first


def set_by_schedule(tree: ast.Module) -> set[str]:
    """The hyperparameters that `LRScheduler` and `MomentumLRScheduler` set in a program."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("LRScheduler")]
    return {"learning_rate" for _ in calls} | {k.arg for call in calls for k in call.keywords if k.arg}


def _changes(statement: ast.Assign, is_set: set[str]) -> Iterator[tuple[str, ast.stmt]]:
    """The statement with one mistake each. Hyperparameters in ``is_set`` are set by the schedule: any number does."""
    for number, original in enumerate(ast.walk(statement)):
        other = copy.deepcopy(statement)
        nodes = list(ast.walk(other))
        rates = [k for k in nodes if isinstance(k, ast.keyword) and k.arg in is_set]
        node = nodes[number]
        if any(node is inner for rate in rates for inner in ast.walk(rate)):
            continue
        match node:
            case ast.Constant(bool(value)):
                node.value = not value
                yield f"{value} -> {not value}", other
            case ast.Constant(int(value)) | ast.Constant(float(value)):
                node.value = value + 1 if isinstance(value, int) else value * 1.5 if value else 0.05
                yield f"{value} -> {node.value} in {ast.unparse(original)[:100]}", other
            case ast.Call(keywords=[_, *_]):
                for keyword in [k for k in node.keywords if k.arg != "wrt" and k not in rates]:
                    node.keywords.remove(keyword)
                    yield f"no {ast.unparse(keyword)}", copy.deepcopy(other)
                    node.keywords.append(keyword)


def main() -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--per", type=int, default=4, help="mutants of each program")
    parser.add_argument("--limit", type=int, help="programs at most")
    parser.add_argument("--only", default="", help="programs whose names hold this")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start, accused, made, caught, placed, seen = time.monotonic(), 0, 0, 0, 0, 0
    recall = Recall()
    with tempfile.TemporaryDirectory() as folder, Pool(device="cpu") as pool:

        def check(source: str, converted: str) -> ObjectVerdict:
            path = Path(folder, "program.py")
            path.write_text(source)
            report = check_files(
                path, converted, ["Net"], pool=pool, eager=False, initial=False, causes=False, recall=recall
            )
            return report.objects[0]

        wanted = [(n, s) for n, s in programs().items() if options.only in n][: options.limit]
        for name, source in wanted:
            seen += 1
            translation = translate(source)
            verdict = check(source, translation.code)
            own = (
                [text for text in verdict.stages["behavioral"].observed if text.startswith("its own")]
                if verdict.stages
                else []
            )
            if verdict.verdict is not VerdictKind.EQUIVALENT or not own:
                accused += 1
                said = verdict.stages["behavioral"].observed[-1:] if verdict.stages else []
                print(f"NOT SEEN AS RIGHT {name}: {verdict.verdict} {verdict.reason or said}")
                continue
            every = list(mutants(translation.code))
            random.Random(f"{options.seed} {name}").shuffle(every)
            for text, what, first, last in every[: options.per]:
                checked = check(source, text)
                made += 1
                if checked.verdict is not VerdictKind.DIFFERENT:
                    print(f"SURVIVED {name}: {what}: {checked.verdict} {checked.reason or ''}")
                    continue
                caught += 1
                place = checked.divergence.jax if checked.divergence else None
                if place is not None and first <= place.line <= last:
                    placed += 1
                else:
                    print(f"MISPLACED {name}: {what}: {place and place.line}, not {first}: {checked.reason}")
    print(f"right conversions: {seen}, not seen as such: {accused}")
    print(f"mutants: {made}, caught: {caught} ({caught / max(made, 1):.2%})")
    print(f"placed on the mutated statement: {placed} ({placed / max(caught, 1):.2%} of caught)")
    print(f"{time.monotonic() - start:.0f} s")
    return 1 if accused or caught < CAUGHT * made or placed < PLACED * caught else 0


if __name__ == "__main__":
    sys.exit(main())
