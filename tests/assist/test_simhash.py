"""What counts as the same answer: its dress does not, one token does."""

from __future__ import annotations

import pytest

from t2j_lsp.assist.simhash import fingerprint

LONG = "\n".join(f"    h{n} = jnp.tanh(x @ w{n} + b{n})" for n in range(60))
PROGRAM = f"def f(x, w, b):\n{LONG}\n    return h59\n"


@pytest.mark.parametrize(
    "other",
    [
        PROGRAM.replace("return h59", "return h59  # now right"),
        PROGRAM.replace("    ", "  "),
        PROGRAM.replace("h59", "result"),
        "\n".join("        " + line for line in PROGRAM.split("\n")),
    ],
)
def test_another_dress_is_the_same_answer(other: str) -> None:
    assert fingerprint(PROGRAM).same(fingerprint(other))


@pytest.mark.parametrize(
    "other",
    [
        PROGRAM.replace("jnp.tanh(x @ w30", "jnp.sinh(x @ w30"),
        PROGRAM.replace("w17 + b17", "w17 - b17"),
        PROGRAM.replace("return h59", "return h58"),
        PROGRAM.replace("x @ w3 ", "x @ w4 "),
    ],
)
def test_one_token_of_many_is_another_answer(other: str) -> None:
    """Of the repairs that models make most are of this kind; by the hash alone they would be lost."""
    assert other != PROGRAM and not fingerprint(PROGRAM).same(fingerprint(other))


def test_what_does_not_parse_has_a_fingerprint() -> None:
    assert fingerprint("def f(:").same(fingerprint("def  f(:")) and not fingerprint("def f(:").same(fingerprint("x"))
