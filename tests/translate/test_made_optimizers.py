"""Where an optimizer is made: by methods, by a class that is passed, in its scheduler; and its groups' rates."""

from __future__ import annotations

import pytest
import torch

from t2j_lsp.translate import translate

from .training_sides import trained

FACTORY = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)

    def optimizer(self, rate, on_gpu):
        fused = "fused" in inspect.signature(torch.optim.AdamW).parameters and on_gpu
        extra = {extra}
        return torch.optim.AdamW(self.parameters(), lr=rate, **extra)


model, other = Model(), Model()
optimizer = {made}
loss = model(torch.ones(1, 3)).sum()
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize("extra", ["dict(fused=True) if fused else dict()", "{'fused': fused}"])
def test_a_method_makes_the_optimizer_of_its_module(extra: str) -> None:
    text = "import inspect\nimport torch\nimport torch.nn as nn\n"
    text += FACTORY.format(extra=extra, made="model.optimizer(0.1, False)")
    result = translate(text)
    assert not result.gaps
    assert "fused = False and on_gpu" in result.code
    assert "optax.adamw(rate, weight_decay=0.01)" in result.code
    assert not [finding for finding in result.findings if "is taken to update" in finding.reason]


@pytest.mark.parametrize("imported", ["AdamW", "AdamW as Optimizer"])
def test_options_of_speed_go_from_a_class_that_is_imported(imported: str) -> None:
    text = f"import inspect\nimport torch\nimport torch.nn as nn\nfrom torch.optim import {imported}\n"
    text += FACTORY.format(extra="dict(fused=True) if fused else dict()", made="model.optimizer(0.1, False)")
    result = translate(text.replace("return torch.optim.AdamW", f"return {imported.split()[-1]}"))
    assert not result.gaps
    assert "optax.adamw(rate, weight_decay=0.01)" in result.code


def test_methods_of_two_modules_make_an_optimizer_of_which_nothing_is_sure() -> None:
    text = "import inspect\nimport torch\nimport torch.nn as nn\n"
    made = "model.optimizer(0.1, False) if flag else other.optimizer(0.1, False)"
    assert translate(text + FACTORY.format(extra="{'fused': fused}", made=made)).gaps


REFUSED = [
    ("torch.optim.SGD([x * 2], lr=0.1)", "bare tensors"),
    ("torch.optim.Adam(model.parameters(), amsgrad=flag)", "amsgrad"),
    ("torch.optim.Adam(parameters_of(model))", "module"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED)
def test_what_has_no_sure_form_stays(call: str, reason: str) -> None:
    source = (
        f"import torch\nx = torch.zeros(3)\nmodel = torch.nn.Sequential(torch.nn.Linear(2, 2))\noptimizer = {call}\n"
    )
    result = translate(source)
    assert f"optimizer = {call}" in result.code
    assert any(reason in gap.reason for gap in result.gaps), [g.reason for g in result.gaps]


UNTOUCHED = [
    "optimizer.step()\n",
    "for group in optimizer.param_groups:\n    print(group)\n",
    "class SGD:\n    pass\n\n\noptimizer = SGD()\noptimizer.zero_grad()\n",
    "import numpy as np\n\nscheduler = object()\nscheduler.step()\n",
]


@pytest.mark.parametrize("source", UNTOUCHED)
def test_code_that_only_looks_alike_stays(source: str) -> None:
    assert translate(source).code == source
    with_torch = f"import torch\n\n{source}"
    assert source in translate(with_torch).code


GROUPS = """import torch


def halve(optimizer: torch.optim.Optimizer):
    for group in optimizer.param_groups:
        group["lr"] {assigned}
"""


RATE = 'optax.tree.get(optimizer.opt_state, "learning_rate").item()'


@pytest.mark.parametrize("assigned", ['= group["lr"] * 0.5', "*= 0.5"])
def test_rates_of_all_groups_are_set_from_what_they_were(assigned: str) -> None:
    code = " ".join(translate(GROUPS.format(assigned=assigned)).code.split())
    assert f'set_hyperparameter( optimizer, "learning_rate", {RATE} * 0.5, )' in code


def test_torch_is_the_reference() -> None:
    assert torch.optim.AdamW([torch.zeros(1)]).defaults["weight_decay"] == 1e-2


NAMED = """import torch
from torch import nn

model = nn.Linear(2, 1)
scheduler = torch.optim.lr_scheduler.StepLR((optimizer := torch.optim.SGD(model.parameters(), lr=0.1)), 3)
x = torch.ones(4, 2)
for _ in range(9):
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    scheduler.step()
"""


def test_an_optimizer_that_is_named_inside_its_scheduler_is_followed() -> None:
    result = translate(NAMED)
    assert not result.gaps
    code = " ".join(result.code.split())
    assert "optimizer := nnx.Optimizer(" in code and "train_step(model, optimizer, x)" in code


PASSED = """\
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, optimizer_class, rate):
        self.model = model
        self.optimizer = optimizer_class(self.model.parameters(), lr=rate, weight_decay=0.1)

    def fit(self, x, y):
        for _ in range(3):
            loss = ((self.model(x) - y) ** 2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())


model = nn.Linear(3, 2)
x, y = torch.linspace(-1, 2, 24).reshape(8, 3), torch.linspace(0, 1, 16).reshape(8, 2) ** 2
losses = []

# train
trainer = Trainer(model, torch.optim.{optimizer}, 0.05)
trainer.fit(x, y)
"""


def test_a_class_of_optimizers_that_is_passed_is_a_function_of_optax() -> None:
    code = trained(PASSED.format(optimizer="AdamW")).translation.code
    assert "Trainer(model, optax.adamw, 0.05)" in code
    assert "optimizer_class(rate, weight_decay=0.1)" in code


@pytest.mark.parametrize(
    ("optimizer", "more"),
    [
        ("Adam", ""),  # decay that is added to the gradient is a link of its own
        ("Adagrad", ""),
        ("AdamW", "Trainer(nn.Linear(3, 2), torch.optim.SGD, 0.1)\n"),
    ],
)
def test_a_class_without_a_function_of_the_same_arguments_stays(optimizer: str, more: str) -> None:
    assert translate(PASSED.format(optimizer=optimizer) + more).gaps
