"""Every sample of PyTorch's database of modules: a class that holds the module, converted and compared with PyTorch's.

Compared are outputs, gradients of inputs and parameters, and the state after the call, in training and evaluation where
these differ. Both sides have the same random parameters.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from flax import nnx

from t2j_lsp.api import convert
from t2j_lsp.contract import Finding
from tests.rules.compare import CONCRETE, to_numpy
from tests.rules.samples import operators, seed
from tests.rules.spellings import NoLiteral, literal
from tests.translate.side_by_side import compare, randomized

from .cases import annotation
from .deviations import DRAWN_IN_TRAINING
from .running import SAID, Problem, Result

SET = "modules"
MODES = {"eval": False, "train": True}
HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"


@functools.cache
def records() -> dict[str, Any]:
    """PyTorch's records of modules by name: ``nn.Conv2d``."""
    operators()
    from torch.testing._internal.common_modules import module_db

    return {info.name: info for info in module_db}


class Sample:
    """One module with the inputs of one call."""

    def __init__(self, index: int, info: Any, sample: Any, training: bool) -> None:
        self.name = f"Sample{index}{'' if training else 'Eval'}"
        self.training = training
        constructor, forward = sample.constructor_input, sample.forward_input
        inputs: list[torch.Tensor] = []
        self.call = _call(forward.args, forward.kwargs, inputs)
        self.made = f"nn.{info.module_cls.__name__}({_call(constructor.args, constructor.kwargs, None)})"
        self.inputs = [np.array(to_numpy(t)) for t in inputs]

    @property
    def mode(self) -> str:
        return "train" if self.training else "eval"

    @property
    def text(self) -> str:
        """A class that makes the module and calls it."""
        return self.annotated(["torch.Tensor"] * len(self.inputs))

    @property
    def annotated_text(self) -> str:
        """The same with annotations that say what the inputs are."""
        return self.annotated([annotation(torch.from_numpy(x)) for x in self.inputs])

    def annotated(self, types: list[str]) -> str:
        """A class that makes the module and calls it, with such types of the inputs."""
        names = "".join(f", t{i}: {said}" for i, said in enumerate(types))
        lines = [
            f"class {self.name}(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            f"        self.layer = {self.made}",
            "",
            f"    def forward(self{names}):",
            f"        return self.layer({self.call})",
        ]
        return "\n".join(lines) + "\n"


def _call(args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor] | None) -> str:
    """Arguments as text; tensors are parameters, or written out where ``tensors`` is None."""

    def text(value: Any) -> str:
        if isinstance(value, FunctionType) and value.__module__ == "torch.nn.functional":
            return f"F.{value.__name__}"
        if isinstance(value, torch.Tensor) and tensors is None:
            return f"torch.tensor({value.tolist()}, dtype={value.dtype})"
        return literal(value, [] if tensors is None else tensors)

    return ", ".join([*map(text, args), *(f"{k}={text(v)}" for k, v in kwargs.items())])


def samples(info: Any, limit: int | None) -> tuple[list[Sample], list[str]]:
    """Samples for training and evaluation, at most ``limit`` of each, and why others have no text."""
    convertible, textless = [], []
    for mode, training in MODES.items():
        if not training and not info.train_and_eval_differ:
            continue
        if training and info.name in DRAWN_IN_TRAINING:
            continue
        seed(0)
        every = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=training)
        step = 1 if limit is None else max(1, -(-len(every) // limit))
        for index in range(0, len(every), step):
            try:
                convertible.append(Sample(index, info, every[index], training))
            except NoLiteral as error:
                textless.append(f"sample {index} ({mode}) has no text: {type(error.args[0]).__name__}")
    return convertible, textless


def run(name: str, limit: int | None = None, known: Result | None = None) -> Result:
    """Converts and runs all samples of a module; answers with ``known`` where the converted code is what it was."""
    every, textless = samples(records()[name], limit)
    result = Result(name, SET, textless=textless)
    source = HEADER + "\n\n".join(sample.text for sample in every)
    translation = convert(source, x64=True)
    marks = _marks(source, translation.findings)
    asked = {
        sample.name
        for sample in every
        if any(f.severity == "gap" for f in marks.get(sample.name, [])) or any(x.ndim == 0 for x in sample.inputs)
    }
    text = SAID + HEADER + "\n\n".join(sample.annotated_text for sample in every if sample.name in asked)
    second = convert(text, x64=True)
    shown = _marks(text, second.findings)
    result.key, result.shown = _hash(translation.code, marks), _hash(second.code, shown)
    if known is not None and (known.key, known.shown) == (result.key, result.shown):
        return known
    sides = [_executed(source, "torch_side"), _executed(translation.code, "jax_side")]
    again = [_executed(text, "torch_side_told"), _executed(second.code, "jax_side_told")]
    annotated = Result(name, SET)
    for sample in every:
        outcome = _observe(sample, sides, marks.get(sample.name, []), result)
        if sample.name in asked:
            _observe(sample, again, shown.get(sample.name, []), annotated)
        elif outcome:
            of = annotated.counts.setdefault(sample.mode, {})
            of[outcome] = of.get(outcome, 0) + 1
    result.annotated = annotated.counts
    result.problems += [p for p in annotated.problems if p.outcome in ("crash", "wrong")]
    return result


def _hash(code: str, marks: dict[str, list[Finding]]) -> str:
    return hashlib.sha256(f"{code}{marks}".encode()).hexdigest()[:16]


def _marks(source: str, findings: tuple[Finding, ...]) -> dict[str, list[Finding]]:
    """Gaps and notes by the class they are in."""
    classes = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef)]
    return {
        c.name: [f for f in findings if c.lineno <= f.span.line <= (c.end_lineno or 0) and f.differs] for c in classes
    }


def _executed(code: str, name: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(code, f"<{name}>", "exec"), module.__dict__)
    return module


def _observe(sample: Sample, sides: list[ModuleType], marks: list[Finding], result: Result) -> str:
    """Runs and counts a sample; answers with what came of it, nothing where PyTorch doesn't take it."""
    torch_class, jax_class = (getattr(side, sample.name) for side in sides)
    gaps = [finding for finding in marks if finding.severity == "gap"]
    if gaps:
        return _settle(sample, result, "gap", gaps[0].message)
    outcome, why = _outcome(sample, torch_class, jax_class)
    if outcome == "crash" and any(x.ndim == 0 for x in sample.inputs) and _is_gap(sample):
        outcome = "unshown"
    if outcome in ("crash", "wrong") and marks:
        outcome, why = "noted", f"{why} (noted: {marks[0].message})"
    return _settle(sample, result, outcome, why)


def _is_gap(sample: Sample) -> bool:
    """Whether the sample is refused where the source shows which of its inputs have no axes."""
    lines = "".join(f"        t{i} = t{i}.reshape(())\n" for i, x in enumerate(sample.inputs) if x.ndim == 0)
    head, back, rest = sample.text.partition("        return ")
    return bool(convert(f"{HEADER}{head}{lines}{back}{rest}", x64=True).gaps)


def _outcome(sample: Sample, torch_class: Any, jax_class: Any) -> tuple[str, str]:
    """What came of a sample, and why; an empty outcome where PyTorch has no numbers to compare with."""
    try:
        reference = torch_class().double()
        with torch.no_grad():
            reference.train(sample.training)(*map(torch.from_numpy, sample.inputs))  # lazy layers get their sizes
        reference = randomized(reference)
    except Exception as error:  # noqa: BLE001 - whatever PyTorch raises, it doesn't take this sample
        return "", str(error)
    every = range(len(sample.inputs))
    for jit, constant in ((True, ()), (False, ()), (False, every[1:])):
        try:
            module = jax_class(rngs=nnx.Rngs(0))
            compare(reference, module, sample.inputs, train=sample.training, jit=jit, constant=constant)
        except CONCRETE:
            if jit:
                continue
            return "crash", "values decide"
        except RuntimeError as error:
            if "cannot have requires_grad" in str(error) and not constant:
                continue
            return "crash", f"{type(error).__name__}: {error}"
        except AssertionError as error:
            return ("", str(error)) if "not finite" in str(error) else ("wrong", str(error))
        except Exception as error:  # noqa: BLE001 - whatever JAX raises is the finding
            return "crash", f"{type(error).__name__}: {error}"
        return "right", ""
    return "right", ""


def _settle(sample: Sample, result: Result, outcome: str, why: str) -> str:
    if not outcome:
        result.refused += 1
        return outcome
    of = result.counts.setdefault(sample.mode, {})
    of[outcome] = of.get(outcome, 0) + 1
    if outcome != "right":
        inputs = ", ".join(f"{x.dtype}{list(x.shape)}" for x in sample.inputs)
        text = f"{sample.made} of ({sample.call})"
        result.problems.append(
            Problem(outcome, sample.mode, text, inputs, " ".join(why.split())[:300], case=sample.name)
        )
    return outcome
