"""Drives a rule with calls in every spelling, and compares what comes out with PyTorch: values and gradients.

A **case** is one spelling of one sample call, as a function of its tensors. All cases of a rule are converted in one
module. Cases that convert to the same text run once in JAX, under ``jax.jit`` where values decide nothing.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.extend.core import jaxpr_as_fun

from t2j_lsp.contract import Finding, Options
from t2j_lsp.translate import translate
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Fact, Tensor, Tuple
from t2j_lsp.translate.rule.record import Rule
from t2j_lsp.translate.source.text import Source

from .samples import Sample
from .spellings import Case, cases

TOLERANCE, GRADIENT_TOLERANCE = 1e-12, 1e-11  # of the largest absolute value in PyTorch's array, or of 1
BATCH = 40
"""Programs that are compiled as one."""
HEADER = "import torch\nimport torch.nn.functional as F\n\n\n"
CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


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
    for rule, found in rules.items():
        outcomes[rule] = Outcome()
        traced += list(_prepare(rule, found, outcomes[rule]))
    for batch in range(0, len(traced), BATCH):
        _run_together(traced[batch : batch + BATCH])
    return outcomes


def _prepare(rule: Rule, found: list[Sample], outcome: Outcome) -> Iterator[Traced]:
    wanted = _wanted(rule, cases(rule, found), outcome)
    runnable = [case for case, _ in wanted.values()]
    if not runnable:
        return
    source = HEADER + "\n\n".join(case.text for case in runnable)
    _compare_facts(source, runnable, {name: found.outputs for name, (_, found) in wanted.items()}, outcome)
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
            trace = _trace(namespace[case.name], case, wanted[case.name][1], outcome)
            if trace is not None:
                yield trace


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
    kind = {"f": "float", "i": "int", "u": "int", "b": "bool", "c": "complex"}[value.dtype.kind]
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
                taken[case.name] = case, _run_torch(space[case.name], case.tensors)
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


@dataclass
class Wanted:
    """PyTorch's outputs and, where it has them, gradients of its float64 inputs."""

    outputs: list[Any]
    gradients: list[Any] | None
    cotangents: list[Any]
    chosen: list[int]
    """Which inputs the gradients are of."""


def _run_torch(function: Any, tensors: tuple[torch.Tensor, ...]) -> Wanted:
    """Runs with gradients of all float tensors; where PyTorch forbids that, of the first, or without any."""
    floats = [i for i, t in enumerate(tensors) if t.dtype is torch.float64]
    for chosen in (floats, floats[:1]):
        try:
            return _run_with_gradients(function, tensors, chosen)
        except RuntimeError as error:
            if "requires_grad" not in str(error):
                raise
    return _run_with_gradients(function, tensors, [])


def _run_with_gradients(function: Any, tensors: tuple[torch.Tensor, ...], chosen: list[int]) -> Wanted:
    inputs = [t.clone().requires_grad_(i in chosen) for i, t in enumerate(tensors)]
    torch.default_generator.manual_seed(0)
    outputs = _flat(function(*inputs))
    rng = np.random.default_rng(0)
    cotangents = [rng.uniform(-1, 1, tuple(o.shape)) if isinstance(o, torch.Tensor) else None for o in outputs]
    total = [
        (o.real * torch.from_numpy(c)).sum()
        for o, c in zip(outputs, cotangents, strict=True)
        if isinstance(o, torch.Tensor) and o.requires_grad
    ]
    found = None
    if total:
        try:
            torch.stack(total).sum().backward()
            found = [_numpy(torch.zeros_like(t) if t.grad is None else t.grad) for t in inputs if t.requires_grad]
        except RuntimeError:
            found = None  # PyTorch has no derivative of this operator
    return Wanted([_numpy(o) if isinstance(o, torch.Tensor) else o for o in outputs], found, cotangents, chosen)


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().resolve_conj().resolve_neg().numpy(force=True)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return [leaf for item in value for leaf in _flat(item)]
    return [value]


@dataclass
class Traced:
    """A converted case, ready to run: ``program`` maps arrays to (arrays among the outputs, gradients)."""

    case: Case
    outcome: Outcome
    wanted: Wanted
    program: Any
    arrays: list[Any]
    others: list[Any]
    """The outputs that are no arrays, with None in the places of the arrays."""

    def check(self, values: list[Any], gradients: list[Any] | None) -> None:
        arrays = iter(values)
        got = [next(arrays) if other is None else other for other in self.others]
        problem = differ(got, self.wanted.outputs)
        if problem is not None:
            self.outcome.add("values", self.case, problem)
            return
        problem = None if gradients is None else differ(gradients, self.wanted.gradients or [], GRADIENT_TOLERANCE)
        if problem is not None:
            self.outcome.add("gradients", self.case, problem)
            return
        self.outcome.agreed += 1


def _trace(function: Any, case: Case, wanted: Wanted, outcome: Outcome) -> Traced | None:
    """Traces values and gradients into one program; checks at once what can't be traced."""
    arrays = [jnp.asarray(_numpy(t)) for t in case.tensors]
    chosen = wanted.chosen
    others: list[Any] = []

    def values(*inputs: Any) -> list[Any]:
        outputs = _flat(function(*inputs))
        others[:] = [None if hasattr(out, "shape") else out for out in outputs]
        return [out for out in outputs if hasattr(out, "shape")]

    def program(*inputs: Any) -> tuple[list[Any], list[Any] | None]:
        def loss(floats: list[Any]) -> tuple[Any, list[Any]]:
            full = list(inputs)
            for i, value in zip(chosen, floats, strict=True):
                full[i] = value
            outputs = values(*full)
            cotangents = [c for c, other in zip(wanted.cotangents, others, strict=False) if other is None]
            pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=False) if c is not None and o.shape == c.shape]
            return sum(jnp.sum(jnp.real(o) * c) for o, c in pairs if jnp.issubdtype(o.dtype, jnp.inexact)), outputs

        (_, outputs), gradients = jax.value_and_grad(loss, has_aux=True)([inputs[i] for i in chosen])
        return outputs, gradients

    def without_gradients(*inputs: Any) -> tuple[list[Any], None]:
        return values(*inputs), None

    for attempt in [program, without_gradients] if wanted.gradients is not None and chosen else [without_gradients]:
        try:
            try:
                return Traced(case, outcome, wanted, jax.jit(attempt).trace(*arrays), arrays, others)
            except CONCRETE:
                outcome.problems.setdefault("jit", []).append(case.spelling)
                results = attempt(*arrays)
                Traced(case, outcome, wanted, None, arrays, others).check(*results)
                return None
        except Exception as error:  # noqa: BLE001 - whatever the converted code raises is the finding
            outcome.add("gradients" if attempt is program else "values", case, f"{type(error).__name__}: {error}")
    return None


def _run_together(batch: list[Traced]) -> None:
    """Compiles many programs as one: most of the time goes into starting the compiler."""

    def all_of_them(inputs: list[list[Any]]) -> list[list[Any]]:
        return [jaxpr_as_fun(t.program.jaxpr)(*arrays) for t, arrays in zip(batch, inputs, strict=True)]

    results = jax.jit(all_of_them)([t.arrays for t in batch])
    for traced, flat in zip(batch, results, strict=True):
        values, gradients = jax.tree.unflatten(traced.program.out_tree, flat)
        traced.check(values, gradients)


def differ(got: list[Any], want: list[Any], tolerance: float = TOLERANCE) -> str | None:
    """What differs, or None: the number of values, a shape, the kind of a dtype, where NaN is, a number."""
    if len(got) != len(want):
        return f"{len(got)} values, PyTorch has {len(want)}"
    for position, (g, w) in enumerate(zip(got, want, strict=True)):
        if w is None or isinstance(w, torch.dtype | torch.device | str):
            if w is None and g is not None:
                return f"value {position}: {g}, PyTorch has None"
            continue
        problem = _arrays_differ(np.asarray(g), np.asarray(w), tolerance)
        if problem is not None:
            return f"value {position}: {problem}"
    return None


def _arrays_differ(got: np.ndarray, want: np.ndarray, tolerance: float) -> str | None:
    if got.shape != want.shape:
        return f"shape {got.shape}, PyTorch has {want.shape}"
    if got.dtype.kind.replace("u", "i") != want.dtype.kind.replace("u", "i"):
        return f"dtype {got.dtype}, PyTorch has {want.dtype}"
    shown = f"{got.ravel()[:6]}, PyTorch has {want.ravel()[:6]}"
    if want.dtype.kind not in "fc":
        return None if np.array_equal(got, want) else shown
    finite, nan = np.isfinite(want), np.isnan(want)
    if not np.array_equal(np.isnan(got), nan):
        return f"NaN at other places: {shown}"
    infinite = ~finite & ~nan
    if not np.array_equal(got[infinite], want[infinite]):
        return f"other infinities: {shown}"
    if not finite.any():
        return None
    error = float(np.abs(got[finite] - want[finite]).max())
    scale = max(1.0, float(np.abs(want[finite]).max()))
    return None if error <= tolerance * scale else f"off by {error:.1e}: {shown}"
