"""Loops over phases: the step and the evaluation that share a loss bind their modules, each in its mode."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

HEAD = """\
import torch
import torch.nn as nn

data = torch.linspace(-1, 1, 24).reshape(8, 3)
labels = torch.arange(8) % 2
loaders = {"train": [(data[:4], labels[:4]), (data[4:], labels[4:])], "val": [(data, labels)]}
losses = []
model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
criterion = nn.CrossEntropyLoss()
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = """\
for epoch in range(3):
    for phase in ["train", "val"]:
        if phase == "train":
            model.train()
        else:
            model.eval()
        for x, y in loaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                out = model(x)
                loss = criterion(out, y)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            losses.append(loss.item())
"""
BOUND = ("bound_jit(train_step, model, optimizer)(x, y)", "bound_jit(loss_fn, model)(x, y)")
TRAIN = "            model.train()\n"
SET = '        if phase == "train":\n            model.train()\n        else:\n            model.eval()\n'


@pytest.mark.jax
def test_steps_of_phases_are_bound_to_their_modules() -> None:
    code = trained(HEAD + LOOP).translation.code
    assert all(call in code for call in BOUND)


@pytest.mark.jax
@pytest.mark.parametrize(
    ("new", "bound"),
    [
        ('        model.train() if phase == "train" else model.eval()\n', (False, False)),
        ('        model.train(phase == "train")\n', (False, False)),
        (SET.replace('phase == "train"', 'epoch == 0 or phase == "train"'), (False, False)),
        (SET.replace("else:", "elif epoch > 0:"), (True, False)),
        (SET.replace("model.eval()", "model.train()"), (True, True)),
        (
            SET.replace(TRAIN, f"            model.eval()\n{TRAIN}"),
            (True, True),
        ),
        (
            SET.replace(TRAIN, f"{TRAIN}            model[1].eval()\n"),
            (False, True),
        ),
        (SET + "        if epoch == 1:\n            model.eval()\n", (False, False)),
        (SET + '        if phase == "val" and epoch == 1:\n            model.train()\n', (False, False)),
        (SET[: SET.index("        else")], (True, False)),
    ],
)
def test_what_other_modes_bind(new: str, bound: tuple[bool, bool]) -> None:
    code = trained(HEAD + LOOP.replace(SET, new)).translation.code
    assert tuple(call in code for call in BOUND) == bound


def test_a_phase_that_changes_in_between_binds_nothing() -> None:
    changed = LOOP.replace("        for x, y in", '        phase = "val" if epoch else phase\n        for x, y in')
    code = convert(HEAD + changed).code
    assert not any(call in code for call in BOUND)


def test_a_mode_that_a_batch_changes_binds_nothing() -> None:
    code = convert(f"{HEAD}{LOOP}            model.train()\n").code
    assert not any(call in code for call in BOUND)


def test_evaluations_that_are_not_bound_are_compiled_for_trees() -> None:
    code = convert(HEAD + LOOP.replace(SET, '        model.train(phase == "train")\n')).code
    assert "eval_step = nnx.jit(loss_fn, graph=False)" in code
