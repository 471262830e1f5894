"""Helpers that are called once by another helper stand in it, where every name means the same there."""

from __future__ import annotations

import pytest

from t2j_lsp.translate.source.folding.placing import placed

UPDATE = """
def update(x, h, size=1):
    \"\"\"The next state. Gates are r.\"\"\"
    r = jnp.tanh(x)
    return r * h + size
"""
LOOP = """
def update(x):
    x = jnp.tanh(x)

    def step(old, one):
        return old + one, one

    return jax.lax.scan(step, 0, x)
"""


def caller(body: str) -> str:
    return f"def f(a, b, c):\n    {body}\n"


PLACED = {
    "names": (
        "y = update(a, b)\n    return y",
        "# The next state.\n    r = jnp.tanh(a)\n    y = r * b + 1\n    return y",
    ),
    "the answer": ("return update(a, b, size=2)", "# The next state.\n    r = jnp.tanh(a)\n    return r * b + 2"),
    "values": (
        "return update(a + 1, b + c)",
        "# The next state.\n    r = jnp.tanh(a + 1)\n    return r * (b + c) + 1",
    ),
    "a part of an expression": (
        "return jnp.sin(update(a, b)) + c",
        "# The next state.\n    r = jnp.tanh(a)\n    return jnp.sin(r * b + 1) + c",
    ),
    "an operand": ("return update(a, b) * c", "# The next state.\n    r = jnp.tanh(a)\n    return (r * b + 1) * c"),
    "what may draw": (
        "return update(draw(), b)",
        "# The next state.\n    x = draw()\n    r = jnp.tanh(x)\n    return r * b + 1",
    ),
    "a variable that is assigned here": (
        "r = update(a, b)\n    return r",
        "# The next state.\n    r = jnp.tanh(a)\n    r = r * b + 1\n    return r",
    ),
}


@pytest.mark.parametrize("case", PLACED)
def test_statements_of_a_function_stand_where_it_is_called(case: str) -> None:
    before, after = PLACED[case]
    assert placed(caller(before), UPDATE.lstrip(), 88)[0] == caller(after)


LEFT = {
    "a variable of its name": "r = c\n    y = update(a, b)\n    return y + r",
    "an argument of its name": "r = c\n    r = update(r, b)\n    return r",
    "a parameter of its name that is kept": "x = c\n    y = update(draw(), b)\n    return y + x",
    "a function that reads its name later": "r = c\n    g = lambda: r\n    r = update(a, b)\n    return g",
    "a name that means something else": "jnp = c\n    y = update(a, b)\n    return y",
    "two calls": "y = update(a, b)\n    return update(y, b)",
    "a call that may not be made": "return update(a, b) if c else a",
    "a comprehension": "return [update(a, b) for a in c]",
    "a call in front of it": "return g(a) + update(a, b)",
    "a with block": "with c:\n        y = update(a, b)\n    return y",
    "a statement of several lines": "return g(\n        update(a, b),\n    )",
    "starred arguments": "return update(*a)",
}


@pytest.mark.parametrize("case", LEFT)
def test_functions_stay_where_a_name_or_the_order_would_be_another(case: str) -> None:
    assert placed(caller(LEFT[case]), UPDATE.lstrip(), 88) == ()


OTHER = {
    "two answers": "def update(x, h):\n    if x:\n        return h\n    y = x\n    return y\n",
    "a decorator": "@jax.jit\ndef update(x, h):\n    r = jnp.tanh(x)\n    return r * h\n",
    "a generator": "def update(x, h):\n    yield x\n    return h\n",
    "more than reads well": f"def update(x, h):\n{'    x = x + 1{n}'.replace('{n}', chr(10)) * 15}    return x * h\n",
    "a variable of an outer function": "def update(x, h):\n    global r\n    r = x\n    return r * h\n",
}


@pytest.mark.parametrize("case", OTHER)
def test_functions_that_are_no_few_statements_stay(case: str) -> None:
    assert placed(caller("y = update(a, b)\n    return y"), OTHER[case], 88) == ()


def test_a_function_inside_moves_along_but_into_no_loop() -> None:
    (whole,) = placed("def f(x):\n    x = update(x)\n    return x\n", LOOP.lstrip(), 88)
    assert whole.splitlines()[1:5] == [
        "    x = jnp.tanh(x)",
        "",
        "    def step(old, one):",
        "        return old + one, one",
    ]
    looped = "def f(x):\n    for _ in x:\n        x = update(x)\n    return x\n"
    assert placed(looped, LOOP.lstrip(), 88) == ()


def test_what_is_read_behind_the_call_is_not_overwritten() -> None:
    assert placed("def f(x):\n    y = update(x)\n    return x, y\n", LOOP.lstrip(), 88) == ()


def test_a_long_remark_stays_away() -> None:
    long = UPDATE.lstrip().replace("The next state", "The " + "very " * 20 + "next state")
    assert placed(caller("return update(a, b)"), long, 88)[0] == caller("r = jnp.tanh(a)\n    return r * b + 1")
