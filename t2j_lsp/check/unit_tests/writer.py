"""Writes unit tests of a PyTorch program from what it computes: shapes, dtypes, values, training, gradients, state."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from t2j_lsp.check.file_check import FileCheck
from t2j_lsp.check.inputs import CommentError
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.worker import RemoteError
from t2j_lsp.check.program.objects import CheckedObject, checking_order, find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.protocol import leaves
from t2j_lsp.check.requests import ValuesRequest
from t2j_lsp.check.session import CheckSettings
from t2j_lsp.symbols import bound_as

from .text import HEAD, STATE, CallArguments, UnwritableError, comparisons, same, strings, weighted, wrapped

LISTED = 24
"""Entries of a state dict whose shapes are written out."""
BUFFERS = 6
"""Buffers that are compared after a forward pass in training, at most."""


@dataclass
class _Test:
    """One test: what it does, and the expressions that it compares."""

    name: str
    lines: list[str]
    observed: list[str]
    described: bool = False
    asserts: list[str] = field(default_factory=list)
    """Statements that need no observed value."""


@dataclass
class _Subject:
    """A class or function with its arguments."""

    item: CheckedObject
    init: CallArguments
    inputs: CallArguments
    kept: list[str] = field(default_factory=list)
    """Entries of the state dict that keep what the constructor computed."""
    fixture: str = ""
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    buffers: list[str] = field(default_factory=list)
    output: Any = None

    @property
    def made(self) -> str:
        return self.init.call(self.item.name)

    @property
    def call(self) -> str:
        return self.inputs.call(self.fixture or self.item.name)


@dataclass
class Written:
    """A test file, how many tests it has, and the objects that have none with the reason."""

    code: str
    count: int
    skipped: list[tuple[str, str]]
    failed: int = 0
    """Tests that were thought of, and that the program does not run: a gradient of what has none."""


def write_tests(
    pool: Pool,
    source: Slicer,
    tests: Path,
    objects: Sequence[str] | None = None,
    timeout: float = 120.0,
    on_progress: Callable[[str], None] = lambda line: None,
) -> Written:
    """Writes tests of a program's classes and functions, which will stand in the file ``tests``.

    What they expect is what the program gives; nothing here says that it is right. Raises WorkerError.
    """
    writer = _TestWriter(pool, source, tests, timeout)
    check = FileCheck(pool, source, source, CheckSettings(timeout=timeout), lambda: False)
    for item in checking_order(find_objects(source, objects)):
        on_progress(f"writing tests of {item.name}")
        writer.add(item, check)
    return writer.written()


class _TestWriter:
    def __init__(self, pool: Pool, source: Slicer, tests: Path, timeout: float) -> None:
        self.pool, self.source, self.path, self.timeout = pool, source, tests, timeout
        self.subjects: list[_Subject] = []
        self.tests: dict[str, list[tuple[_Test, list[str]]]] = {}
        self.skipped: list[tuple[str, str]] = []
        self.failed = 0
        """Tests that the program does not run."""

    def add(self, item: CheckedObject, check: FileCheck) -> None:
        """Writes the tests of an object, or says why there are none."""
        try:
            inputs = check.inputs_for(item)
            if inputs.problems is not None:
                raise UnwritableError("no inputs are known with which it runs")
            subject = _Subject(
                item,
                CallArguments.of(inputs.init),
                CallArguments.of(inputs.inputs),
            )
            self.subjects.append(subject)
            if item.is_class:
                self._look_at_state(subject)
            self._look_at_output(subject)
            self.tests[item.name] = self._observed(subject, [*self._tests(subject)])
        except (UnwritableError, CommentError, RemoteError) as error:
            self.subjects = [one for one in self.subjects if one.item is not item]
            self.skipped.append((item.name, str(error)))

    # --- what the program gives -----------------------------------------------------------------------------------

    def _values(
        self, subject: _Subject, functions: dict[str, list[str]], wide: bool = False, seed: int = 0
    ) -> dict[str, Any]:
        """What functions with these bodies return."""
        lines = [self._head([subject])]
        if subject.fixture:
            lines += ["", *self._maker(subject, "made"), ""]
        for name, body in functions.items():
            lines += ["", f"def {name}():", *(f"    {line}" for line in body), ""]
        side = Slicer(self.path, "\n".join(lines))
        names = list(functions)
        part = side.cut(names[0], names[1:])
        request = ValuesRequest(slice=part, names=names, wide=wide, seed=seed)
        values: dict[str, Any] = self.pool.request("torch", "values", self.timeout, **request.to_plain())
        return values

    def _look_at_state(self, subject: _Subject) -> None:
        """The state dict of a class, and which of its entries can have values of ours. Raises UnwritableError."""
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", subject.item.name).lower()
        taken = {*self.source.scope.bindings, "numbers", "known", "set_state", "torch", "math", "pytest"}
        body = [
            f"model = {subject.made}",
            "every = [n for n, _ in model.named_parameters(remove_duplicate=False)]",
            "return dict(model.state_dict()), every, [n for n, _ in model.named_parameters()]",
        ]
        looked_at = self._values(subject, {"state": body})["state"]
        if "error" in looked_at:
            raise UnwritableError(looked_at["error"])
        state, every, parameters = looked_at["value"]
        if len(every) > len(parameters):
            raise UnwritableError("parameters are tied, and take no values of their own")
        subject.fixture = f"{name}_model" if name in taken else name
        subject.shapes = {key: tuple(value.shape) for key, value in state.items()}
        subject.kept = [key for key, value in state.items() if not _fillable(key, value, key in every)]
        subject.buffers = [key for key in state if key not in every and key not in subject.kept]

    def _look_at_output(self, subject: _Subject) -> None:
        """What a call returns. Raises UnwritableError."""
        values = self._values(subject, {"output": [*self._start(subject), f"return {subject.call}"]})["output"]
        if "error" in values:
            raise UnwritableError(f"with inputs that are written out: {values['error']}")
        subject.output = values["value"]

    def _observed(self, subject: _Subject, tests: list[_Test]) -> list[tuple[_Test, list[str]]]:
        """The tests that run, with their statements. What draws decide is not compared."""
        functions = {
            test.name: [*self._start(subject), *test.lines, f"return [{', '.join(test.observed)}]"] for test in tests
        }
        runs = [self._values(subject, functions, *how) for how in ((False, 0), (False, 1), (True, 0))]
        observed = []
        for test in tests:
            narrow, other, wide = (run[test.name].get("value") for run in runs)
            if narrow is None or other is None or wide is None:
                self.failed += 1
                continue
            lines = list(test.asserts)
            for expression, *values in zip(test.observed, narrow, other, wide, strict=True):
                without = expression.endswith(".grad") and values[0] is None  # for which JAX has zeros
                if same(values[0], values[1]) and not without:
                    lines += comparisons(expression, values[0], values[2], test.described)
            if lines:
                observed.append((test, lines))
        return observed

    def _start(self, subject: _Subject) -> list[str]:
        return [f"{subject.fixture} = made()"] if subject.fixture else []

    # --- what is tested -------------------------------------------------------------------------------------------

    def _tests(self, subject: _Subject) -> Sequence[_Test]:
        name = subject.fixture or subject.item.name
        tests = [_Test(f"test_{name}_output", [f"out = {subject.call}"], ["out"], described=True)]
        tests += self._gradients(subject, name)
        if subject.fixture:
            first = next((path for path, leaf in leaves(subject.output) if isinstance(leaf, np.ndarray)), None)
            tests.append(self._training(subject, name))
            tests.append(self._state(subject, name))
            if first is not None:
                again = f"{subject.call}{first}"
                same = [f"assert torch.equal({again}, {again})"]
                tests.append(_Test(f"test_{name}_repeats_in_evaluation", [], [], asserts=same))
                tests.append(self._round_trip(subject, name, first))
        return tests

    def _training(self, subject: _Subject, name: str) -> _Test:
        lines = [f"{name}.train()", f"out = {subject.call}"]
        lines += [f"state = {name}.state_dict()"] if subject.buffers else []
        return _Test(f"test_{name}_training", lines, ["out", *(f'state["{key}"]' for key in subject.buffers[:BUFFERS])])

    def _state(self, subject: _Subject, name: str) -> _Test:
        state = f"{name}.state_dict()"
        asserts = [f"assert len({state}) == {len(subject.shapes)}"]
        if len(subject.shapes) <= LISTED:
            asserts += [f'assert {state}["{key}"].shape == {shape}' for key, shape in subject.shapes.items()]
        return _Test(f"test_{name}_state", [], [], asserts=asserts)

    def _round_trip(self, subject: _Subject, name: str, first: str) -> _Test:
        lines = [f"other = {subject.made}", "other.eval()", f"other.load_state_dict({name}.state_dict())"]
        restored_call = subject.inputs.call("other")
        same = [f"assert_close({restored_call}{first}, {subject.call}{first})"]
        return _Test(f"test_{name}_state_round_trip", lines, [], asserts=same)

    def _gradients(self, subject: _Subject, name: str) -> Sequence[_Test]:
        """The gradient of all inputs and parameters, by a loss that weighs every element of every output."""
        outputs = [(p, leaf) for p, leaf in leaves(subject.output) if isinstance(leaf, np.ndarray)]
        terms = [
            weighted(f"out{path}", leaf.shape, 5 + n)
            for n, (path, leaf) in enumerate(outputs)
            if leaf.dtype.kind == "f"
        ]
        named = {place: f"x{n}" if n else "x" for n, place in enumerate(subject.inputs.floats)}
        if not terms or not (named or subject.fixture):
            return []
        lines = [f"{x} = {subject.inputs[place]}.requires_grad_()" for place, x in named.items()]
        call = subject.inputs.call(subject.fixture or subject.item.name, named)
        lines += [f"out = {call}", f"loss = {' + '.join(terms)}", "loss.backward()"]
        observed = [f"{x}.grad" for x in named.values()]
        if subject.fixture and any(key not in subject.buffers and key not in subject.kept for key in subject.shapes):
            observed.append(f"sum(p.grad.pow(2).sum() for p in {name}.parameters())")
        return [_Test(f"test_{name}_gradients", lines, observed)]

    # --- the file -------------------------------------------------------------------------------------------------

    def _head(self, subjects: Sequence[_Subject]) -> str:
        bound = self.source.scope.bindings
        names = {one.item.name for one in subjects}
        names |= {n for one in subjects for n in (*one.init.names, *one.inputs.names) if n in bound}
        imports = []
        for name in sorted(names):
            statement = self.source.scope.body[bound[name][-1]]
            if isinstance(statement, ast.Import | ast.ImportFrom) and not getattr(statement, "level", 0):
                alias = [a for a in statement.names if bound_as(a) == name]
                only = type(statement)(**{**vars(statement), "names": alias})
                imports.append(ast.unparse(only))
            else:
                imports.append(f"from {self.source.main} import {name}")
        own = sorted(line for line in imports if line.startswith(f"from {self.source.main} import "))
        others = [line for line in dict.fromkeys(imports) if line not in own]
        joined = [f"from {self.source.main} import {', '.join(line.rpartition(' ')[2] for line in own)}"]
        head = HEAD.format(module=self.source.path.name, imports="\n".join([*others, *joined]))
        return head + (STATE if any(one.item.is_class for one in subjects) else "")

    def _maker(self, subject: _Subject, name: str) -> list[str]:
        kept = f", kept=({strings(subject.kept)},)" if subject.kept else ""
        lines = [f"def {name}():", f'    """A {subject.item.name} with known parameters, in evaluation mode."""']
        return [
            *lines,
            f"    model = {subject.made}",
            f"    set_state(model{kept})",
            "    model.eval()",
            "    return model",
        ]

    def written(self) -> Written:
        """The whole file."""
        subjects = [one for one in self.subjects if self.tests.get(one.item.name)]
        count = sum(len(self.tests[one.item.name]) for one in subjects)
        if not subjects:
            return Written("", 0, self.skipped, self.failed)
        lines = [self._head(subjects)]
        for subject in subjects:
            if subject.fixture:
                lines += ["", "@pytest.fixture", *self._maker(subject, subject.fixture), ""]
            for test, statements in self.tests[subject.item.name]:
                lines += ["", f"def {test.name}({subject.fixture}):"]
                lines += [part for line in [*test.lines, *statements] for part in wrapped(line)]
                lines.append("")
        return Written("\n".join(lines).rstrip() + "\n", count, self.skipped, self.failed)


def _fillable(name: str, value: Any, parameter: bool) -> bool:
    """Whether an entry of a state dict can have other values: no integers, and no table that was computed."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not value.size:
        return False
    fresh = name.rpartition(".")[2] in ("running_mean", "running_var")
    return parameter or fresh or bool((value == value.flat[0]).all())
