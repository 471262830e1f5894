"""Drives a rule with calls in every spelling, and compares what comes out with PyTorch: values and gradients.

A **case** is one spelling of one sample call, as a function of its tensors. All cases of a rule are converted in one
module. Cases that convert to the same text run once in JAX.
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from t2j_lsp.contract import Finding, Options
from t2j_lsp.translate import translate
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Fact, Tensor, Tuple
from t2j_lsp.translate.rule.record import Rule
from t2j_lsp.translate.source.text import Source

from .compare import BATCH, Traced, Wanted, run_together, run_torch, trace
from .samples import Sample
from .spellings import Case, cases

HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"


@dataclass
class Outcome:
    """What driving one rule showed. Problems are sentences; none means that everything agreed."""

    problems: dict[str, list[str]] = field(default_factory=dict)
    """By what was observed: ``torch``, ``facts``, ``values``, ``gradients``, ``jit``."""
    agreed: int = 0
    gaps: list[str] = field(default_factory=list)
    code: str = ""

    def add(self, what: str, case: Case, problem: object) -> None:
        line = case.text.strip().splitlines()[-1].strip()
        self.problems.setdefault(what, []).append(f"{case.spelling}: {line}: {str(problem)[:400]}")


def drive(rules: dict[Rule, list[Sample]]) -> dict[Rule, Outcome]:
    """Converts and runs every case of the rules."""
    outcomes, traced = {}, []
    for rule, result in rules.items():
        outcomes[rule] = Outcome()
        traced += list(_prepare(rule, result, outcomes[rule]))
    for batch in range(0, len(traced), BATCH):
        run_together(traced[batch : batch + BATCH])
    return outcomes


def _prepare(rule: Rule, samples: list[Sample], outcome: Outcome) -> Iterator[Traced]:
    wanted = _wanted(rule, cases(rule, samples), outcome)
    runnable = [case for case, _ in wanted.values()]
    if not runnable:
        return
    source = HEADER + "\n\n".join(case.text for case in runnable)
    _compare_facts(source, runnable, {name: samples.outputs for name, (_, samples) in wanted.items()}, outcome)
    translation = translate(source, Options(x64=True))
    outcome.code = translation.code
    marked = _functions_with_gaps(source, translation.gaps)
    bodies = _bodies(translation.code)
    namespace: dict[str, Any] = {}
    exec(translation.code, namespace)
    done: set[tuple[str, int]] = set()
    for case in runnable:
        if case.name in marked:
            outcome.gaps.append(f"{case.spelling}: {marked[case.name]}")
            continue
        key = (bodies[case.name], case.sample)
        if key not in done:
            done.add(key)
            report = functools.partial(_note_down, outcome, case)
            traced = trace(namespace[case.name], case.tensors, wanted[case.name][1], report)
            if traced is not None:
                yield traced


def _note_down(outcome: Outcome, case: Case, what: str | None, problem: object) -> None:
    if what is None:
        outcome.agreed += 1
    elif what == "jit":
        outcome.problems.setdefault("jit", []).append(case.spelling)
    else:
        said = f"{type(problem).__name__}: {problem}" if isinstance(problem, Exception) else problem
        outcome.add(what, case, said)


def _compare_facts(source: str, every: list[Case], outputs: dict[str, list[Any]], outcome: Outcome) -> None:
    """What is known of a call's result before it runs is true of what PyTorch gives."""
    inferred = {info.name: info.returns for info in Inference(Source(source), None).functions.values()}
    for case in every:
        facts = _flat_facts(inferred[case.name])
        given = outputs[case.name]
        if len(facts) == len(given):
            for fact, value in zip(facts, given, strict=True):
                if (problem := untrue(fact, value)) is not None:
                    outcome.add("facts", case, problem)
        elif len(facts) > 1:
            outcome.add("facts", case, f"{len(facts)} values are expected, PyTorch has {len(given)}")


def _flat_facts(fact: Fact | None) -> list[Fact | None]:
    return [one for item in fact.items for one in _flat_facts(item)] if isinstance(fact, Tuple) else [fact]


def untrue(fact: Fact | None, value: Any) -> str | None:
    """What a fact says of a tensor that isn't so; Python's numbers are arrays in JAX, and facts say that."""
    if not isinstance(fact, Tensor) or not isinstance(value, np.ndarray):
        return None
    kinds = {"f": "float", "i": "int", "u": "int", "b": "bool", "c": "complex", "V": "float"}  # V: ml_dtypes' bfloat16
    kind = kinds[value.dtype.kind]
    if fact.rank not in (None, value.ndim):
        return f"{fact.rank} axes are expected, PyTorch has {value.ndim}"
    if fact.dtype in ("float", "int", "bool", "complex") and fact.dtype != kind:
        return f"{fact.dtype} is expected, PyTorch has {kind}"
    return None


def _wanted(rule: Rule, every: list[Case], outcome: Outcome) -> dict[str, tuple[Case, Wanted]]:
    """What PyTorch makes of each case that it takes. It must take a spelling of every sample it takes at all."""
    space: dict[str, Any] = {}
    exec(HEADER + "\n\n".join(case.text for case in every), space)
    taken: dict[str, tuple[Case, Wanted]] = {}
    refused: dict[tuple[int, str], tuple[Case, Exception]] = {}
    for case in every:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch warns of deprecated and unusual calls.
                taken[case.name] = case, run_torch(space[case.name], case.tensors)
        except Exception as error:  # noqa: BLE001 - whatever PyTorch raises, the spelling is one it doesn't take
            refused[case.sample, case.spelling] = case, error
    spelled = {(case.sample, case.spelling) for case, _ in taken.values()}
    for (sample, spelling), (case, error) in refused.items():
        bad_sample = (sample, f"{rule.name} positional") not in spelled
        if not bad_sample and spelling != "in place" and (sample, spelling) not in spelled:
            outcome.add("torch", case, f"{type(error).__name__}: {error}")
    bools = {case.sample for case, wanted in taken.values() if _gives_bool(case, wanted)}
    return {n: (c, w) for n, (c, w) in taken.items() if c.spelling != "in place" or c.sample not in bools}


def _gives_bool(case: Case, wanted: Wanted) -> bool:
    first = wanted.outputs[0] if wanted.outputs else None
    return case.spelling != "in place" and isinstance(first, np.ndarray) and first.dtype.kind == "b"


def _functions_with_gaps(source: str, gaps: tuple[Finding, ...]) -> dict[str, str]:
    spans = [(n.name, n.lineno, n.end_lineno or 0) for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
    return {name: gap.reason for gap in gaps for name, start, end in spans if start <= gap.span.line <= end}


def _bodies(code: str) -> dict[str, str]:
    functions = [n for n in ast.parse(code).body if isinstance(n, ast.FunctionDef)]
    return {f.name: "\n".join(map(ast.unparse, f.body)) for f in functions}
