"""What nothing reads in a draft, whatever its names are."""

from __future__ import annotations

import pytest

from t2j_lsp.retrieval.flow import unused


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("def f(x, b):\n    return x\n", "unused parameter"),
        ("def f(w):\n    _, s = step(w)\n    return s\n", "unused one of several 0"),
        ("def f(w):\n    rate = schedule(w)\n    return w\n", "unused schedule()"),
        ("def f(p, u):\n    optax.apply_updates(p, u)\n    return p\n", "unused result of apply_updates"),
        ("def f(x):\n    x.at[0].set(1)\n    return x\n", "unused result"),
        ("def f(x):\n    for y in x:\n        x = x + y\n        return x\n", "returns in loop"),
        ("class N:\n    def __init__(self):\n        self.b = nnx.Param(z)\n", "unused attribute Param"),
        ("def rate(i):\n    return i\n\n\ndef f(x):\n    return x\n", "unused function"),
    ],
)
def test_what_nothing_reads_has_its_word(code: str, word: str) -> None:
    assert word in unused(code)


@pytest.mark.parametrize(
    "code",
    [
        "def f(x, b):\n    y = x + b\n    return y\n",
        "def f(x):\n    found = []\n    found.append(x)\n    optimizer.update(x)\n    return found\n",
        "class N:\n    def __init__(self, a):\n        self.a = a\n\n    def g(self):\n        return self.a\n",
        "def f(x):\n    def body(c, t):\n        return c + t, c\n    return scan(body, x)\n",
        "def f(:",
    ],
)
def test_code_that_reads_everything_has_no_words(code: str) -> None:
    assert unused(code) == ()
