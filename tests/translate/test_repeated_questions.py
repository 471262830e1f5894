"""What a branch is the answer to is not asked in it again."""

from __future__ import annotations

import textwrap

import pytest

from t2j_lsp.translate.source.folding.repeated import without_repeated_questions

ONCE = {
    "in the branch": (
        """
        if rate > 0:
            x = x * 2
            if rate > 0:
                # shifted
                x = x + 1

            return x
        return -x
        """,
        """
        if rate > 0:
            x = x * 2
            # shifted
            x = x + 1

            return x
        return -x
        """,
    ),
    "in a loop, twice": (
        """
        if rate > 0:
            for y in x:
                if rate > 0:
                    if rate > 0:
                        print(y)
                    print(x)
            print(rate)
        """,
        """
        if rate > 0:
            for y in x:
                print(y)
                print(x)
            print(rate)
        """,
    ),
}
AGAIN = {
    "another answer": ("if rate > 0:", "    if rate >= 0:", "        x = 1"),
    "assigned between": ("if rate > 0:", "    rate = other", "    if rate > 0:", "        x = 1"),
    "assigned in a loop": ("if rate > 0:", "    for rate in x:", "        if rate > 0:", "            print(x)"),
    "a call": ("if other():", "    if other():", "        x = 1"),
    "an attribute": ("if x.rate:", "    other(x)", "    if x.rate:", "        x = 1"),
    "the other branch": ("if rate > 0:", "    x = 1", "else:", "    if rate > 0:", "        x = 2"),
    "with another branch": ("if rate > 0:", "    if rate > 0:", "        x = 1", "    else:", "        x = 2"),
    "a parameter": ("if rate > 0:", "    def f(rate):", "        if rate > 0:", "            print(x)", "    f(x)"),
}


def function(body: str) -> str:
    return "def loss(x, rate, other):" + textwrap.indent(textwrap.dedent(body), "    ").rstrip(" ")


@pytest.mark.parametrize("case", ONCE)
def test_a_branch_does_not_ask_again(case: str) -> None:
    before, after = map(function, ONCE[case])
    assert without_repeated_questions(before) == after


@pytest.mark.parametrize("case", AGAIN)
def test_what_may_have_another_answer_is_asked(case: str) -> None:
    text = function("\n" + "\n".join(AGAIN[case]) + "\nreturn x\n")
    assert without_repeated_questions(text) == text
