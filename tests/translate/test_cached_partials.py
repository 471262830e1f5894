"""Cached functions that only call another one are written as that one, cached."""

from __future__ import annotations

import pytest

from t2j_lsp.translate.source.folding.partials import as_partial
from t2j_lsp.translate.training.program.text import in_one, returned_with

BOUND = '''@functools.cache
def bound(step, *modules):
    """What it is.

    More of it.
    """
    return nnx.jit_partial(step, *modules, graph=False)
'''


def test_a_cached_function_is_a_cached_partial() -> None:
    made = "bound = functools.cache(functools.partial(nnx.jit_partial, graph=False))"
    assert as_partial(BOUND, 88) == f"# What it is.\n# More of it.\n{made}\n"
    assert as_partial(BOUND, len(made) - 1) == BOUND


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(step, *modules):", "(step, *modules, **static):"),
        ("(step, *modules):", "(step, *modules, flag=True):"),
        ("(step, *modules):", "(step=None, *modules):"),
        ("(step, *modules, graph", "(*modules, step, graph"),
        ("(step, *modules, graph", "(step, modules, graph"),
        ("graph=False", "graph=step"),
        (", graph=False", ""),
        ("graph=False", "**step"),
        ("nnx.jit_partial", "jit_partial"),
        ("    return", "    step = f(step)\n    return"),
        ("@functools.cache\n", ""),
        ("@functools.cache", "@functools.lru_cache(1)"),
        ("return nnx", "return 1 + nnx"),
    ],
)
def test_others_stay(before: str, after: str) -> None:
    text = BOUND.replace(before, after)
    assert text != BOUND
    assert as_partial(text, 88) == text


def test_a_loss_is_returned_with_the_output_in_place() -> None:
    assert in_one(["output = model(x)", "return f(output, y)"], 80) == ["return f(model(x), y)"]
    assert in_one(["output = model(x)", "return output.loss(y)"], 80) == ["return model(x).loss(y)"]


@pytest.mark.parametrize(
    "lines",
    [
        ["output = x @ w", "return f(output, y)"],
        ["output = model(x)", "return f(output, output)"],
        ["output = model(x)", "return output - y"],
        ["noise = rngs.normal((8, 3))", "return model(data + noise).mean()"],
        ["output = model(x)", "return f(g(y), output)"],
        ["output = model(x)", "return f(lambda: output)"],
        ["output, state = model(x)", "return f(output, y)"],
        ["output = model(x)  # said", "return f(output, y)"],
        ["# said", "output = model(x)", "return f(output, y)"],
        ["x = model(x)", "x = f(x)", "return g(x)"],
        ["output = model(a_long_name)", "return another_long_name(output, and_one_more_long_name)"],
    ],
)
def test_what_says_more_stays(lines: list[str]) -> None:
    assert in_one(lines, 60) == lines


def test_a_loss_is_returned_beside_other_results_in_place() -> None:
    lines = ["out = model(x)", "loss = f(out, y)", "return loss, (out, y)"]
    assert returned_with(lines, 60) == ["out = model(x)", "return f(out, y), (out, y)"]
    assert returned_with(["loss = a + 2 * b", "return loss, a"], 60) == ["return a + 2 * b, a"]


@pytest.mark.parametrize(
    "lines",
    [
        ["loss = f(out, y)", "return loss, (out, loss)"],
        ["loss = f(out, y)", "return loss, loss.sum()"],
        ["loss = f(out, y)", "return out, loss"],
        ["loss = f(out, y)  # said", "return loss, out"],
        ["loss = f(out, '#')", "return loss, out"],
        ["loss = out, y", "return loss, out"],
        ["loss = f if out else g", "return loss, out"],
        ["loss = f(out, y)", "out = g(out)", "return loss, out"],
        ["first = loss = f(out, y)", "return loss, out"],
        ["loss = last = f(out, y)", "return loss, out"],
        ["loss, out = f(out, y)", "return loss, out"],
        ["loss += f(out, y)", "return loss, out"],
        ["loss = a_long_name(out, y) + another_very_long_name(out, y)", "return loss, out"],
        ["out = f(y)", "return loss, out"],
    ],
)
def test_what_is_more_than_a_loss_beside_results_stays(lines: list[str]) -> None:
    assert returned_with(lines, 60) == lines
