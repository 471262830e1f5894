"""Changes of a source that change nothing: they do change nothing in PyTorch, and nothing of what t2j says.

A fixed slice of ``benchmarks/metamorphic``: every kind of change on programs of the project's own.
"""

from __future__ import annotations

import random
import sys
from functools import cache
from itertools import cycle
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.metamorphic.__main__ import report
from benchmarks.metamorphic.change import CHANGES, Change, Changed
from benchmarks.metamorphic.corpora import ROOT, Program, own
from benchmarks.metamorphic.source import Source
from benchmarks.metamorphic.trial import CRASH, EQUIVALENT, FAILURES, GAP, SAME, UNCHANGED, Outcome, Trial

from .translate.model_cases import CASES, Case

PROGRAMS = {f"{program.path.parent.name}/{program.path.stem}": program for program in own()}
RUN = ("containers", "diffusion", "gnn", "lenet", "resnet", "swin", "vit")
"""Models whose changed versions run in PyTorch: every style of code is among them."""
CONVERTED = (
    "models/gpt2", "models/containers", "models/mixins", "models/gan", "models/gnn", "scripts/char_rnn",
    "scripts/dcgan", "examples/vision_transformer", "models/lstm_classifier",
)  # fmt: skip
"""Files that are converted after changes, each after its share of them."""


def executed(text: str, name: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses look their module up
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module


class Renamed:
    """A module under the names that it had before a change."""

    def __init__(self, module: ModuleType, changed: Changed) -> None:
        self.module, self.changed = module, changed

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, self.changed.new(name))


def outputs(case: Case, module: Any) -> list[np.ndarray]:
    """What a case's model gives, from seeded weights, in evaluation mode."""
    torch.manual_seed(0)
    random.seed(0)
    model = case.build(module, {}).double().eval()
    given = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in case.inputs]
    named = {k: torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for k, x in case.keywords.items()}
    with torch.no_grad():
        leaves = torch.utils._pytree.tree_leaves(model(*given, **named))
    return [x.numpy() for x in leaves if isinstance(x, torch.Tensor)]


MODELS = {case.id: case for case in CASES if case.file in RUN}


@cache
def original(name: str) -> list[np.ndarray]:
    case = MODELS[name]
    return outputs(case, executed(PROGRAMS[f"models/{case.file}"].text, f"original_{case.file}"))


KINDS = [change.name for change in CHANGES.values() if not change.programs]


@pytest.mark.parametrize("name", [name for name in KINDS if name != "moved into main()"])
def test_a_change_changes_nothing_in_pytorch(name: str) -> None:
    places = 0
    for file in RUN:
        text = PROGRAMS[f"models/{file}"].text
        changed = CHANGES[name].of(text, file)
        if changed.text == text:
            continue
        places += 1
        module = Renamed(executed(changed.text, f"changed_{file}"), changed)
        for case in (c for c in MODELS.values() if c.file == file):
            for got, want in zip(outputs(case, module), original(case.id), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=f"{name} {case.id}")
    assert places, "it finds no place for itself"


GUARDED = """
import torch


def double(x):
    return 2 * x


if __name__ == "__main__":
    torch.manual_seed(0)
    y = double(torch.randn(3))
    print(y)
"""


def test_a_script_moved_into_main_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    moved = CHANGES["moved into main()"].of(GUARDED, "").text
    assert "def main():" in moved
    printed = []
    for text in (GUARDED, moved):
        exec(compile(text, "<script>", "exec"), {"__name__": "__main__"})
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


def test_names_that_functions_read_keep_a_script_where_it_is() -> None:
    source = GUARDED.replace("return 2 * x", "return 2 * x if 'y' in globals() else y")
    assert CHANGES["moved into main()"].of(source, "").text == source


@cache
def trial(file: str) -> Trial:
    return Trial(PROGRAMS[file], None)


@pytest.mark.parametrize(("name", "file"), list(zip(KINDS, cycle(CONVERTED), strict=False)))
def test_a_changed_program_converts_as_the_original(name: str, file: str) -> None:
    outcome = trial(file).of([name], "0")
    assert outcome.result not in FAILURES, f"{outcome.result}: {outcome.detail}"


# --- the benchmark itself ---------------------------------------------------------------------------------------------

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor):
        out = self.fc(x)
        return torch.relu(out)
"""


@pytest.fixture
def net() -> Trial:
    return Trial(Program("net", ROOT / "net.py", NET), None)


def with_change(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """A change that replaces a piece of the text, under the name ``planted``."""
    planted = Change("planted", "", lambda source, rng: Changed(source.text.replace(old, new)))
    monkeypatch.setitem(CHANGES, "planted", planted)


def test_a_gap_that_a_change_makes_is_seen(net: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    with_change(monkeypatch, "torch.relu", "torch.frombuffer")
    assert net.of(["planted"], "0").result == GAP


def test_the_same_text_is_seen(net: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    with_change(monkeypatch, "x: torch.Tensor", "x")
    assert net.of(["planted"], "0").result == SAME
    assert net.of(["locals renamed"], "0").result == SAME


def test_another_text_is_not_the_same(net: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    with_change(monkeypatch, "torch.relu", "torch.tanh")
    assert net.of(["planted"], "0").result not in (SAME, UNCHANGED)


def test_names_are_traced_through_changes() -> None:
    first = Changed("", {"b": "a", "y": "x"})
    both = first.then(Changed("", {"c": "b"}))
    assert (both.old("c"), both.old("y"), both.new("a"), both.new("z")) == ("a", "x", "c", "z")


def test_a_name_that_is_bound_twice_means_nothing() -> None:
    source = Source("import torch\nimport torch.nn as nn\n\n\ndef f(nn):\n    return nn.x\n")
    assert source.imports == {"torch": "torch"}


def test_the_table_counts_and_names_failures(capsys: pytest.CaptureFixture[str]) -> None:
    good = [Outcome("a.py", ("x",), SAME), Outcome("b.py", ("x",), EQUIVALENT), Outcome("c.py", ("x",), UNCHANGED)]
    assert report(good)
    assert capsys.readouterr().out.splitlines()[1].split()[:4] == ["x", "2", "1", "1"]
    assert not report([*good, Outcome("d.py", ("x", "y"), CRASH, "KeyError: 1")])
    assert "CRASH d.py: x + y: KeyError: 1" in capsys.readouterr().out
