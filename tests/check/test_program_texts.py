"""Printed texts of programs: which words of both frameworks are the same, and how exact a number is."""

from __future__ import annotations

import pytest

from t2j_lsp.check.programs.text import parts


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        ("loss 0.5 (1/3)\n", "loss  -1e-3 (2/3)\n"),
        ("x tensor([0.5000, 1.0000], grad_fn=<AddBackward0>)", "x [0.5 1. ]"),
        ("tensor(3)", "Array(3, dtype=int32, weak_type=True)"),
        ("torch.Size([2, 3])", "(2, 3)"),
        ("torch.Size([2])", "(2,)"),
        ("[[1, 2],\n [3, 4]]", "[[1 2]\n [3 4]]"),
        ("Using cpu device, device(type='cpu')", "Using cpu:0 device, cpu:0"),
    ],
)
def test_words_of_both_frameworks_are_the_same(torch: str, jax: str) -> None:
    assert parts(torch)[0] == parts(jax)[0]


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        ("loss 0.5", "Loss 0.5"),
        ("fc1.weight", "fc2.weight"),
        ("a: 1", "a: 1 2"),
        ("on cpu", "on cuda:0"),
        ("on cuda:0", "on cuda:1"),
    ],
)
def test_other_words_are_other_words(torch: str, jax: str) -> None:
    assert parts(torch)[0] != parts(jax)[0]


def test_numbers_know_their_last_digit() -> None:
    result = parts("epoch 3: -0.25, 1.5e-03, nan")[1]
    assert [(n.value, n.digit) for n in result[:3]] == [(3, 0), (-0.25, 0.01), (0.0015, pytest.approx(1e-4))]
    assert result[3].value != result[3].value
