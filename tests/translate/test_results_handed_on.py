"""Results of a loss that a step only hands on: under one name where their own would break the line."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

PROGRAM = """import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for inputs, targets in [(torch.ones(4, 3), torch.ones(4, 1))]:
    prediction = network(inputs)
    {first} = ((prediction - targets) ** 2).mean()
    {second} = prediction.abs().mean()
    total = {first} + 0.1 * {second}
    optimizer.zero_grad()
    total.backward()
    {between}
    optimizer.step()
    print({printed}{first}.item(), {second}.item())
"""
LONG = {"first": "reconstruction_error", "second": "regularization_error"}


def step(between: str = "pass", printed: str = "", names: dict[str, str] = LONG) -> str:
    """The step that a program has."""
    code = translate(PROGRAM.format(between=between, printed=printed, **names)).code
    return code[code.index("def train_step") :].partition("\n\n\n")[0]


@pytest.mark.parametrize(
    ("printed", "returned"),
    [("", "return aux"), ("total.item(), ", "return total, *aux")],
    ids=["alone", "and the loss"],
)
def test_results_that_make_the_line_too_long_have_one_name(printed: str, returned: str) -> None:
    made = step(printed=printed)
    assert "(total, aux), grads = nnx.value_and_grad(loss_fn, has_aux=True)(" in made
    assert made.endswith(returned)


def test_results_that_fit_keep_their_names() -> None:
    made = step(names={"first": "error", "second": "size"})
    assert "(total, (error, size)), grads = " in made and made.endswith("return error, size")


def test_a_name_that_the_step_has_is_not_taken() -> None:
    made = step(names={"first": "reconstruction_error_of_all", "second": "aux"})
    assert "(total, results), grads = " in made and made.endswith("return results")


def test_results_that_are_given_in_another_order_keep_their_names() -> None:
    source = PROGRAM.format(between="pass", printed="", **LONG)
    source = source.replace("print(", "print(torch.nn.utils.parameters_to_vector(network.parameters()).sum(), ")
    source = source.replace("    pass\n", "    norm = nn.utils.clip_grad_norm_(network.parameters(), 1.0)\n")
    code = translate(source.replace(".item())", ".item(), norm.item())")).code
    assert "return reconstruction_error, regularization_error, norm" in code
