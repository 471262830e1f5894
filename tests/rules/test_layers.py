"""Every layer record, driven with real constructor calls in every place where a layer can stand.

A converted class holds the layer spelled by position, by keyword and shuffled, inside ``nn.Sequential`` and
``nn.ModuleList``, and built from a class value and from a ``functools.partial``. All of them get PyTorch's weights, and
outputs, gradients and running statistics are compared in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import pytest
import torch
from flax import nnx

from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.layer import LAYERS, LayerRule
from t2j_lsp.translate.training.steps.modes import has_modes
from tests.translate.side_by_side import Sides, compare, randomized, sides

from .layer_samples import SAMPLES, LayerSample, Text

load_rules()
torch.set_num_threads(1)
HEADER = "import functools\n\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
CONTAINERS = {"ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}
"""Not called: tests/translate/test_models.py and tests/helpers/test_container.py use them."""
BASES = {"modules.loss._Loss", "modules.loss._WeightedLoss"}
"""Only derived from: tests/translate/test_regressions.py does."""
OF_OTHERS = {"TransformerEncoder", "TransformerDecoder"}
"""Made of a layer that they are given, which has the mode."""
SHORT = {rule.name.removeprefix("torch.nn."): rule for rule in LAYERS.values() if rule.name.startswith("torch.nn.")}


@pytest.fixture(autouse=True)
def float64_compiled_fast() -> Iterator[None]:
    """Float64 on, and XLA's optimizations off: on arrays this small compiling is all the time there is."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.enable_x64(True):
        yield
    jax.config.update("jax_disable_most_optimizations", before)


def test_every_layer_has_samples() -> None:
    assert set(SAMPLES) == set(SHORT) - CONTAINERS - BASES


# Spelling ---------------------------------------------------------------------------------------------------------


def spelled(rule: LayerRule, sample: LayerSample) -> dict[str, str]:
    """The constructor call by position, by keyword, and with its keywords shuffled."""
    name = rule.name.replace("torch.nn.", "nn.")
    if "args" in sample.arguments:
        return {"positional": f"{name}({', '.join(map(_text, sample.arguments['args']))})"}
    positional: list[str] = []
    keywords = [f"{key}={_text(value)}" for key, value in sample.arguments.items()]
    rest = dict(sample.arguments)
    for parameter in rule.signature.parameters or ():
        if parameter.kind != "normal" or parameter.name not in rest:
            break
        positional.append(_text(rest.pop(parameter.name)))
    mixed = [*positional, *(f"{key}={_text(value)}" for key, value in rest.items())]
    return {
        "positional": f"{name}({', '.join(mixed)})",
        "keyword": f"{name}({', '.join(keywords)})",
        "shuffled": f"{name}({', '.join(reversed(keywords))})",
    }


def _text(value: Any) -> str:
    return value.text if isinstance(value, Text) else repr(value)


def source_of(rule: LayerRule, samples: list[LayerSample]) -> str:
    """One class for each sample, which holds the layer wherever a layer can stand."""
    classes = []
    for index, sample in enumerate(samples):
        calls = spelled(rule, sample)
        name, _, arguments = calls["positional"].partition("(")
        first = calls.get("keyword", calls["positional"]).partition("(")[2][:-1]
        parameters = ", ".join(f"x{i}: torch.Tensor" for i in range(len(sample.inputs)))
        passed = ", ".join(f"x{i}" for i in range(len(sample.inputs)))
        if sample.keywords.get("pair"):
            passed = "x0, (x1, x2)"
        lines = [
            f"class Sample{index}(nn.Module):",
            f"    def __init__(self, layer=nn.{rule.name.removeprefix('torch.nn.')}):",
            "        super().__init__()",
            *(f"        self.{spelling} = {text}" for spelling, text in calls.items()),
            f"        self.value = layer({arguments}",
            f"        self.listed = nn.ModuleList([{calls['positional']}])",
        ]
        uses = [
            *(f"self.{spelling}({passed})" for spelling in calls),
            f"self.value({passed})",
            f"self.listed[0]({passed})",
        ]
        if "keyword" in calls:
            lines += [
                f"        make = functools.partial({name}{', ' if first else ''}{first})",
                "        self.partial = make()",
            ]
            uses.append(f"self.partial({passed})")
        if len(sample.inputs) == 1:
            lines.append(f"        self.sequential = nn.Sequential({calls['positional']})")
            uses.append(f"self.sequential({passed})")
        lines += ["", f"    def forward(self, {parameters}):", f"        return [{', '.join(uses)}]"]
        classes.append("\n".join(lines))
    return HEADER + "\n\n\n".join(classes) + "\n"


# Tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_layer_agrees_with_torch_wherever_it_stands(name: str) -> None:
    samples = SAMPLES[name]
    both = sides(source_of(SHORT[name], samples), f"layer_{name}")
    assert both.gaps() == []
    for index, sample in enumerate(samples):
        for train in (False, True) if sample.train else (False,):
            reference, module = _built(both, f"Sample{index}")
            assert has_modes(SHORT[name].name) or name in OF_OTHERS or not _keeps_a_mode(module)
            compare(
                reference,
                module,
                sample.inputs,
                train=train,
                jit=True,
                tolerance=sample.tolerance,
                constant=sample.constant,
            )


def _keeps_a_mode(module: nnx.Module) -> bool:
    parts = [part for _, part in nnx.iter_modules(module)]
    return any(hasattr(part, flag) for part in parts for flag in ("deterministic", "use_running_average"))


def _built(both: Sides, cls: str) -> tuple[torch.nn.Module, Any]:
    return randomized(getattr(both.torch, cls)()), getattr(both.jax, cls)(rngs=nnx.Rngs(0))
