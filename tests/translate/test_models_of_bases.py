"""A base class keeps the model that classes derived from it train: it is called there, and told to be a module."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """import torch


class Epoch:
    def __init__(self, model, loss):
        self.model = model
        self.loss = loss


class TrainEpoch(Epoch):
    def __init__(self, model, loss, optimizer):
        super().__init__(model=model, loss=loss)
        self.optimizer = optimizer{more}

    def batch_update(self, x, y):
        self.optimizer.zero_grad()
        prediction = self.model{forward}(x)
        loss = self.loss(prediction, y)
        loss.backward()
        self.optimizer.step()
        return loss, prediction
"""


@pytest.mark.parametrize("forward", ["", ".forward"])
def test_a_model_is_a_module_by_what_derived_classes_do_with_it(forward: str) -> None:
    done = convert(SOURCE.format(forward=forward, more=""))
    assert not done.gaps
    assert "(loss, prediction), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model)" in done.code


def test_what_a_derived_class_keeps_under_the_name_says_nothing_of_the_bases() -> None:
    done = convert(SOURCE.format(forward="", more="\n        self.model = make()"))
    assert "model: nnx.Module" not in done.code
