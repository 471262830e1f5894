"""Handlers of errors that PyTorch raises and JAX doesn't: told; those of other errors are left alone."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """\
import torch
import torch.nn as nn


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        if x.shape[1] != 4:
            raise RuntimeError("four columns")
        return self.fc(x)


def product(a, b):
    return torch.matmul(a, b)


net, own = nn.Linear(4, 2), Own()
a, b = torch.ones(2, 3), torch.ones(4, 5)
out = None
"""
TRY = "try:\n    {body}\nexcept {error}:\n    {then}\n"
TOLD = {
    "an operator": ("out = a @ b", "RuntimeError", "out = a"),
    "a sum": ("out = a + b", "RuntimeError as e", "print('no', e)"),
    "a function": ("out = torch.cat([a, b])", "RuntimeError", "pass"),
    "a method": ("out = a.view(7)", "(RuntimeError, KeyError)", "pass"),
    "a layer": ("out = net(a)", "RuntimeError", "print('wrong size')"),
    "a function of the file": ("out = product(a, b)", "RuntimeError", "pass"),
    "a row that isn't there": ("out = a[7].sum()", "IndexError", "print('out')"),
    "a call of PyTorch alone": ("out = nn.functional.mse_loss(a, b)", "ValueError", "pass"),
}
LEFT = {
    "either error": ("out = a @ b", "(RuntimeError, TypeError, ValueError)", "out = a"),
    "any error": ("out = a @ b", "Exception", "out = a"),
    "memory": ("out = net(b)", "RuntimeError as e", "if 'out of memory' not in str(e):\n        raise"),
    "an error of its own": ("out = own(a)", "RuntimeError", "print('wrong size')"),
    "a number in a text": ("out = torch.ones(int('x'))", "ValueError", "pass"),
    "a list's item": ("out = [1, 2][7]", "IndexError", "pass"),
    "a part of a tensor": ("out = a[:7]", "IndexError", "pass"),
    "a key": ("out = {'a': a}['b']", "KeyError", "pass"),
    "a saved model": ("net.load_state_dict(own.state_dict())", "RuntimeError", "print('other names')"),
}


def reasons(body: str, error: str, then: str) -> list[str]:
    return [gap.message for gap in convert(HEAD + TRY.format(body=body, error=error, then=then)).gaps]


@pytest.mark.parametrize("name", TOLD)
def test_what_waits_for_an_error_of_pytorch_is_told(name: str) -> None:
    assert any("raises another error in JAX" in reason for reason in reasons(*TOLD[name]))


@pytest.mark.parametrize("name", LEFT)
def test_what_is_raised_in_jax_as_well_is_left(name: str) -> None:
    assert not reasons(*LEFT[name])


def test_the_body_is_converted_and_the_handler_marked() -> None:
    code = convert(HEAD + TRY.format(body="out = torch.cat([a, b])", error="RuntimeError", then="out = a.abs()")).code
    assert "out = jnp.concatenate([a, b])" in code and "torch." not in code.split("try:")[1]
    assert "# TODO(t2j): what raises RuntimeError" in code
