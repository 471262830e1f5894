"""Steps with two modules, each in a mode of its own, and functions that leave a module in the mode that it was in."""

from __future__ import annotations

from typing import Any

import pytest

from t2j_lsp.translate import translate

SCRIPT = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, inner=None):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)

    def forward(self, x):
        return self.last(self.norm(torch.tanh(self.first(x))))


def evaluate(model, x):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        loss = model(x).square().mean().item()
    model.train(was_training)
    return loss


def main():
    torch.manual_seed(0)
    batches = torch.linspace(-1, 1, 48).reshape(3, 4, 4) ** 2
    teacher, student = Net(), Net()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    teacher.eval()
    seen.append(evaluate(teacher, batches[0]))
    for epoch in range(4):
        student.train()
        for x in batches:
            with torch.no_grad():
                wanted = teacher(x)
            loss = (student(x) - wanted).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seen.extend([loss.item(), evaluate(student, batches[0])])


seen = []
main()
"""
BOUND = "bound_jit(train_step, student, teacher, optimizer)(x)"
OTHER = {
    "one is part of the other": (
        ("teacher, student = Net(), Net()", "teacher = Net()\n    student = Net(teacher)"),
        ("self.first, self.norm", "self.inner = inner\n        self.first, self.norm"),
    ),
    "they may be one": (("teacher, student = Net(), Net()", "teacher = Net()\n    student = teacher"),),
    "the mode is asked too late": (
        (
            "    was_training = model.training\n    model.eval()\n",
            "    model.eval()\n    was_training = model.training\n",
        ),
    ),
    "another mode is set": (("model.train(was_training)", "model.train(True)"),),
    "the mode is another's": (("model.training\n", "(not model.training)\n"),),
    "it may return before": (("    model.train(was", "    if loss > 9:\n        return 0.0\n    model.train(was"),),
    "a part stays in another": (("model.train(was_training)", "model.norm.train(was_training)"),),
    "it sets another's mode": (("    seen.extend([loss", "    teacher.train()\n        seen.extend([loss"),),
    "an error is caught": (
        (
            "    seen.append(evaluate(teacher, batches[0]))\n",
            "    try:\n        seen.append(evaluate(teacher, batches[0]))\n    except ValueError:\n        pass\n",
        ),
    ),
}


def test_a_mode_that_is_restored_leaves_the_step_bound() -> None:
    done = translate(SCRIPT)
    assert not done.gaps and BOUND in done.code


@pytest.mark.parametrize("name", OTHER)
def test_modes_that_may_be_others_are_looked_at_in_each_call(name: str) -> None:
    text = SCRIPT
    for old, new in OTHER[name]:
        assert old in text
        text = text.replace(old, new)
    code = translate(text).code
    assert "def train_step(" in code and "bound_jit(train_step" not in code


@pytest.mark.jax
def test_the_bound_step_computes_what_the_unbound_one_does() -> None:
    code = translate(SCRIPT).code
    binding = "functools.partial(nnx.jit_partial, graph=False)"
    assert binding in code
    both: list[dict[str, Any]] = [{}, {}]
    exec(code, both[0])
    exec(code.replace(binding, "lambda step, *modules: lambda *arrays: nnx.jit(step)(*modules, *arrays)"), both[1])
    assert both[0]["seen"] == pytest.approx(both[1]["seen"], rel=1e-4) and len(set(both[0]["seen"])) == 9
