"""Modules and values that are made out of sight: by a name, by a package that was converted, from an unknown base."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

from .test_torch_only import MODELS

NETS = """import torch.nn as nn


def small(n=3):
    return nn.Linear(n, n)


def size():
    return 3
"""


@pytest.mark.parametrize(
    ("value", "gap"),
    [
        ("getattr(nets, name)(4, 5)", True),
        ("nets.__dict__[name]()", True),
        ("vars(nets)[name](n=4)", False),
        ("getattr(nets, name)(4)", False),
        ("getattr(nets, 'small')(4)", False),
        ("nets.small(4)", False),
        ("getattr(self, name)(4)", False),
        ("getattr(nets, name)", False),
    ],
)
def test_what_a_file_of_the_project_makes_by_a_name_may_ask_for_rngs(value: str, gap: bool) -> None:
    """Found in torchaudio: ``getattr(torchaudio.models, ssl_type)()``. Only what fits the arguments may be called."""
    source = f"""import nets
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.made = {value}
"""
    done = translate(source, Options(resolve=lambda level, module: NETS if module == "nets" else None))
    gaps = done.gaps
    assert gap or "rngs=rngs)" in done.code or "self" in value or value.endswith("name)")
    assert ["layers in Flax ask for rngs=rngs" in g.reason for g in gaps] == ([True] if gap else [])


def test_what_a_file_makes_by_a_name_of_its_own_gets_rngs() -> None:
    source = NETS + "\n\nfor name in ('small',):\n    print(globals()[name](2))\n"
    done = translate(source)
    assert "globals()[name](2, rngs=rngs)" in done.code and not done.gaps
    assert len(translate(source.replace("(2)", "()")).gaps) == 1


@pytest.mark.parametrize(
    ("value", "use", "gap"),
    [
        ("Block(3)", "self.made(x)", True),
        ("near(3)", "self.made(torch.relu(x))", True),
        ("Block(3) if n else nn.Identity()", "self.made(x)", True),
        ("Block(3)", "self.made('text')", False),
        ("Block(3)", "x * self.made.rate", False),
        ("partial(f, n)", "self.made(x)", False),
        ("np.vectorize(n)", "self.made(x)", False),
    ],
)
def test_what_is_made_elsewhere_and_called_with_arrays_must_be_converted_along(value: str, use: str, gap: bool) -> None:
    source = f"""from functools import partial

import numpy as np
import torch
import torch.nn as nn
from mylib import Block

from .other import near


def f(n, x):
    return x


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.made = {value}

    def forward(self, x: torch.Tensor):
        return {use}
"""
    gaps = translate(source).gaps
    assert ["isn't in sight: convert it along" in g.reason for g in gaps] == ([True] if gap else [])


GIVEN = """\
import copy
import torch
import wandb
import pytorch_warmup as warmup
from accelerate import Accelerator
from ema_pytorch import EMA


def width(module):
    return module.in_features


model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
accelerator = Accelerator(**settings)
{statement}
"""


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("warm = warmup.LinearWarmup(optimizer, 1)", "pytorch_warmup.LinearWarmup"),
        ("wandb.watch(model)", "wandb.watch"),
        ("ema = EMA(model, beta=0.99)", "ema_pytorch.EMA"),
        ("ema = EMA(beta=0.99, model=model)", "ema_pytorch.EMA"),
        ("warm = warmup.LinearWarmup(scheduler)", "pytorch_warmup.LinearWarmup"),
        ("model, optimizer = accelerator.prepare(model, optimizer)", "accelerator.prepare"),
    ],
)
def test_what_a_package_is_given_that_was_converted_is_said(statement: str, name: str) -> None:
    (gap,) = translate(GIVEN.format(statement=statement), Options()).gaps
    assert gap.name == name and "is given a" in gap.reason


@pytest.mark.parametrize(
    "statement",
    [
        "kept = get()\nkept = kept.on(1)\nkept.build(model)",
        "other = copy.deepcopy(model)",
        "print(width(model))",
        "wandb.log({'width': model.in_features})",
        "wandb.init()",
    ],
)
def test_what_takes_any_object_or_none_is_no_gap(statement: str) -> None:
    assert not translate(GIVEN.format(statement=statement), Options()).gaps


BASE_OUT_OF_SIGHT = """import torch
from torch import nn
{imported}


class Net({base}):
    def __init__(self, width=3):
        super().__init__()
        {held}

    def {method}(self, x):
        return torch.relu(x)


net = Net()
"""


@pytest.mark.parametrize(
    ("imported", "base", "held", "method"),
    [
        ("import pytorch_lightning as pl", "pl.LightningModule", "self.fc = nn.Linear(width, 2)", "training_step"),
        ("from transformers import PreTrainedModel", "PreTrainedModel", "pass", "forward"),
        ("from .base import Model", "Model", "self.w = nn.Parameter(torch.zeros(2))", "loss"),
        ("from .models import *", "Model", "self.fc = nn.Linear(width, 2)", "forward"),
        ("", "Model[int]", "self.fc = nn.Linear(width, 2)", "forward"),
    ],
)
def test_a_class_whose_base_is_out_of_sight_stays(imported: str, base: str, held: str, method: str) -> None:
    """Flax's layers in a PyTorch module are no parts of it: nothing was said, and nothing trained."""
    source = BASE_OUT_OF_SIGHT.format(imported=imported, base=base, held=held, method=method)
    translation = translate(source, Options())
    assert [gap.reason for gap in translation.gaps if "isn't in sight" in gap.reason]
    assert source[source.index("class Net") :] in translation.code


@pytest.mark.parametrize(
    ("imported", "base", "held", "method"),
    [
        ("import gym", "gym.Env", "self.fc = nn.Linear(width, 2)", "step"),
        ("import dm_env", "dm_env.Environment", "self.fc = nn.Linear(width, 2)", "step"),
        ("from metrics import Metric", "Metric", "self.width = width", "update"),
        ("", "object", "self.fc = nn.Linear(width, 2)", "forward"),
        ("from abc import ABC", "nn.Module, ABC", "self.fc = nn.Linear(width, 2)", "forward"),
        ("from typing import Generic", "nn.Module, Generic[int]", "self.fc = nn.Linear(width, 2)", "forward"),
        ("class Mixin:\n    pass", "nn.Module, Mixin", "self.fc = nn.Linear(width, 2)", "forward"),
    ],
)
def test_other_classes_convert(imported: str, base: str, held: str, method: str) -> None:
    source = BASE_OUT_OF_SIGHT.format(imported=imported, base=base, held=held, method=method)
    translation = translate(source, Options())
    assert "torch.relu(x)" not in translation.code
    assert not translation.gaps


@pytest.mark.parametrize("imported", ["from hub import Mixin", "from .mixins import *"])
def test_a_mixin_out_of_sight_is_said_beside_a_module(imported: str) -> None:
    """Its methods take PyTorch's module, of which they are a part, and get Flax's."""
    source = BASE_OUT_OF_SIGHT.format(
        imported=imported, base="nn.Module, Mixin", held="self.fc = nn.Linear(width, 2)", method="forward"
    )
    translation = translate(source, Options())
    assert [gap.reason.split()[0] for gap in translation.gaps] == ["hub.Mixin" if "hub" in imported else "Mixin"]
    assert "nnx.Linear(" in translation.code


def test_what_to_do_in_place_of_a_registry_is_said() -> None:
    (gap,) = translate(MODELS.replace("{}", 'timm.create_model("resnet18", num_classes=10)')).gaps
    assert "copy the class from timm's file" in gap.reason
    assert "torchvision's model, which --with torchvision converts" in gap.reason


STAGES = """import torch.nn as nn


class Net(nn.Module):
    def __init__(self, block, width):
        super().__init__()
        self.stage = self.make_stage(block, width)

    def make_stage(self, {name}, width):
        {made}
        return nn.Sequential(*parts)

    def forward(self, x):
        return self.stage(x)
"""
MADE = {
    "a list that grows": "parts = [nn.Linear(width, width)]\n        parts.append({}(width))",
    "a list that another is added to": "parts = []\n        parts += [{}(width) for _ in range(2)]",
    "a list": "parts = [{}(width), nn.ReLU()]",
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_a_constructor_hands_to_a_method_that_makes_layers_makes_modules(made: str) -> None:
    """A class is known by its name alone: by any other, what is called is said."""
    done = translate(STAGES.format(name="block", made=made.format("block")))
    assert not done.gaps and "block(width, rngs=rngs)" in done.code
    (gap,) = translate(STAGES.format(name="thing", made=made.format("thing"))).gaps
    assert "what thing(...) makes isn't known here" in gap.reason


SPECTRUM = """import torch
import torchaudio
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mel = torchaudio.transforms.MelSpectrogram(16000)

    def forward(self, x):
        return {}
"""


@pytest.mark.parametrize(("value", "gaps"), [("torch.log(self.mel(x))", 1), ("self.mel(x)", 1), ("torch.log(x)", 0)])
def test_what_a_library_of_pytorchs_makes_and_a_forward_pass_calls_is_said(value: str, gaps: int) -> None:
    """Nothing else tells that what it is called with is an array."""
    assert len(translate(SPECTRUM.format(value)).gaps) == gaps
