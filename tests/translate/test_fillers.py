"""Functions that write into an array they are given: they return it, and whoever calls them stores it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

from .convert import HEAD, expect, run
from .test_regressions import equal

TRUNC = """
def trunc_(t: Tensor, std):
    with torch.no_grad():
        t.uniform_(-0.5, 0.5)
        t.erfinv_()
        return t.mul_(std)


def trunc_tf_(t: Tensor, std):
    trunc_(t, 1.0)
    t.mul_(std).clamp_(min=0)
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.zeros(2, 3))
        self.register_buffer("seen", torch.zeros(3))
        self.fc = nn.Linear(3, 4)
        trunc_tf_(self.pos, std=0.1)
        trunc_(self.fc.weight, 0.2)
        trunc_(self.seen, std=0.3)

    def forward(self, x):
        return self.fc(x + self.pos)
"""


def test_what_a_function_fills_is_stored_by_its_caller() -> None:
    expect(
        NET.replace("trunc_tf_", "zero").replace("trunc_", "zero").replace(", std=0.1", "").replace(", 0.2", "")
        .replace(", std=0.3", "") + "\n\ndef zero(t: Tensor):\n    t.zero_()\n",
        """
        class Net(nnx.Module):
            def __init__(self, *, rngs: nnx.Rngs):
                self.pos = nnx.Param(jnp.zeros((2, 3)))
                self.seen = Buffer(jnp.zeros(3))
                self.fc = nnx.Linear(3, 4, **uniform_init(3), rngs=rngs)
                self.pos[...] = zero(self.pos[...])
                self.fc.kernel[...] = zero(self.fc.kernel.T).T
                self.seen[...] = zero(self.seen[...])

            def __call__(self, x):
                return self.fc(x + self.pos)


        def zero(t: jax.Array):
            t = jnp.zeros_like(t)
            return t
        """,
    )  # fmt: skip


def test_the_filled_parameters_have_the_new_values() -> None:
    code = convert(HEAD + TRUNC + NET).code
    assert "TODO" not in code
    scope: dict[str, type[nnx.Module]] = {}
    exec(compile(code, "<converted>", "exec"), scope)
    net = scope["Net"](rngs=nnx.Rngs(0))
    bound = jax.scipy.special.erfinv(0.5)
    assert 0 < jnp.max(net.pos[...]) <= 0.1 * bound
    assert jnp.min(net.pos[...]) == 0
    assert 0.1 * bound < jnp.max(jnp.abs(net.fc.kernel[...])) <= 0.2 * bound
    assert jnp.all(net.seen[...] != 0)


def test_one_of_another_file_is_stored_too() -> None:
    def resolve(level: int, name: str) -> str | None:
        return HEAD + TRUNC if name == "init" else None

    source = HEAD + "from init import trunc_, trunc_tf_\n" + NET
    code = translate(source, Options(helpers="import", resolve=resolve)).code
    assert "self.pos[...] = trunc_tf_(self.pos[...], std=0.1, rngs=rngs)" in code
    assert "self.fc.kernel[...] = trunc_(self.fc.kernel.T, 0.2, rngs=rngs).T" in code


METHODS = """
import torch
from torch import nn

class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.two(self.w.data)

    def two(self, t):
        return self.one(t)

    def one(self, t):
        t.uniform_(-1, 1)
        return t

    def shift(self, x, by):
        x.add_(self.w * by)

    def forward(self, x):
        y = x * 2
        self.shift(y, 3)
        return y * self.w
"""


def test_methods_store_what_they_write_into() -> None:
    equal(METHODS, "methods_that_write", 3, 4)
    code = convert(METHODS).code
    assert "self.w[...] = self.two(" in code and "y = self.shift(y, 3)" in code


ZERO = "def zero(t: Tensor):\n    t.zero_()\n    return t\n\n\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def g(y: Tensor):\n    z = zero(y)\n    return y + z\n", "'y', read later, shares the memory"),
        ("def g(y: Tensor):\n    z = y\n    zero(y)\n    return y + z\n", "'z', read later, shares the memory"),
        ("def g(ys: list[Tensor]):\n    for y in ys:\n        zero(y)\n    return ys\n", "'ys', read later"),
        (
            "class M(nn.Module):\n    def forward(self, x):\n        y = x * 2\n        with torch.no_grad():\n"
            "            zero(y)\n        return y\n",
            "keeps the gradient of what is overwritten",
        ),
        ("def clear(t: Tensor):\n    t.zero_()\n\n\nFILLS = [clear]\n", "JAX's returns the new array"),
        ("def either(t: Tensor, u: Tensor):\n    t.zero_()\n    u.zero_()\n    return t\n", "the caller's 'u'"),
        (
            "class M(nn.Module):\n    def more(self, t: Tensor):\n        t += 1\n        return t\n\n"
            "    def forward(self, x):\n        y = x * 2\n        z = self.more(y)\n        return y + z\n",
            "'y', read later, shares the memory",
        ),
        (
            "class M(nn.Module):\n    def zeroed(self, t: Tensor):\n        t.zero_()\n        return t\n\n"
            "    def forward(self, x):\n        y = x * 2\n        z = y\n        y = self.zeroed(y)\n"
            "        return y + z\n",
            "'z', read later, shares the memory",
        ),
        (
            "class M(nn.Module):\n    def forward(self, x):\n        y = x * 2\n        self.mark(y)\n"
            "        return y\n\n    def mark(self, t: Tensor):\n        t.zero_()\n\n\n"
            "class N(M):\n    def mark(self, t):\n        pass\n",
            "the caller's 't'",
        ),
        (
            "class M(nn.Module):\n    def forward(self, x: Tensor):\n        x.add_(1)\n        return x\n\n\n"
            "class N(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.m = M()\n\n"
            "    def forward(self, x):\n        y = x * 2\n        z = self.m(y)\n        return y + z\n",
            "'y', read later, shares the memory",
        ),
        ("def some(t: Tensor, n):\n    if n:\n        return\n    t.zero_()\n", "the caller's 't'"),
    ],
)
def test_where_storing_is_not_enough_it_is_told(code: str, message: str) -> None:
    gaps = run(ZERO + code).gaps
    assert any(message in gap.reason for gap in gaps)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("zero(y)\n    return y", "y = zero(y)\n    return y"),
        ("return zero(y)", "return zero(y)"),
        ("return zero(torch.ones(3))", "return zero(jnp.ones(3))"),
        ("zero(y[0])\n    return y", "y = y.at[0].set(zero(y[0]))\n    return y"),
    ],
)
def test_arrays_of_other_functions(before: str, after: str) -> None:
    expect(
        f"{ZERO}def g(y: Tensor):\n    {before}\n",
        f"def zero(t: jax.Array):\n    t = jnp.zeros_like(t)\n    return t\n\n\ndef g(y: jax.Array):\n    {after}\n",
    )


RESET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.reset()

    def reset(self):
        trunc_(self.fc.weight, 0.2)

    def forward(self, x):
        {}
        return self.fc(x)
"""


@pytest.mark.parametrize(("call", "gaps"), [("x = x", 0), ("self.reset()", 1)])
def test_a_parameter_is_filled_outside_of_what_is_differentiated(call: str, gaps: int) -> None:
    result = run(TRUNC + RESET.format(call))
    assert len(result.gaps) == gaps
    assert ("self.fc.kernel[...] = trunc_(self.fc.kernel.T, 0.2, rngs=rngs).T" in result.code) == (gaps == 0)


def test_fans_are_counted_in_pytorchs_layout() -> None:
    code = run(
        "def f(w: Tensor):\n    fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(w)\n    return fan_in\n"
    ).code
    assert "fan_in, fan_out = fans(w)" in code


LIBRARY = """
from some.library import {0}

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        {1}
"""


@pytest.mark.parametrize(
    ("name", "call", "gaps"),
    [
        ("trunc_normal_", "trunc_normal_(self.w, std=0.02)", 1),
        ("init_weights", "init_weights(self.w)", 1),
        ("reset", "reset.init_(tensor=self.w)", 1),
        ("show", "show(self.w)", 0),
        ("initialized", "initialized('w')", 0),
        ("trunc_normal_", "self.v = nn.Parameter(trunc_normal_(torch.ones(2)))", 0),
    ],
)
def test_what_a_library_may_write_into_is_told(name: str, call: str, gaps: int) -> None:
    left = run(LIBRARY.format(name, call)).gaps
    assert len(left) == gaps
    assert all("may write into self.w" in gap.reason for gap in left)


@pytest.mark.parametrize("package", ["timm.layers", "timm.models.layers", "timm.layers.weight_init"])
def test_the_one_of_timm_is_pytorchs(package: str) -> None:
    code = run(LIBRARY.replace("some.library", package).format("trunc_normal_", "trunc_normal_(self.w, std=0.02)")).code
    assert "self.w[...] = 0.02 * rngs.params.truncated_normal(" in code
    assert "timm" not in code


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("init_fn(self.w)", "init_fn may write into self.w"),
        ("FILLS[kind](self.w)", "FILLS[kind] may write into self.w"),
        ("[zero(p) for p in (self.w, self.w)]", "inside an expression"),
        ("print(self.w)", ""),
        ("init_fn(self.w.shape)", ""),
        ("self.v = init_fn(self.w)", ""),
    ],
)
def test_what_is_called_for_its_effect_on_a_parameter_is_told(lines: str, message: str) -> None:
    source = (
        f"{ZERO}class M(nn.Module):\n    def __init__(self, init_fn, kind):\n        super().__init__()\n"
        f"        self.w = nn.Parameter(torch.ones(3))\n        {lines}\n"
    )
    gaps = run(source).gaps
    assert [message in gap.reason for gap in gaps] == [True] * bool(message)


def test_a_partial_of_one_is_stored() -> None:
    source = TRUNC + (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(3))\n        fill = partial(trunc_, std=0.1)\n        fill(self.w)\n"
    )
    result = run("from functools import partial\n" + source)
    assert "self.w[...] = fill(self.w[...])" in result.code


def test_one_that_said_it_gives_nothing_says_what_it_gives() -> None:
    expect(
        "def zero(t: Tensor) -> None:\n    t.zero_()\n",
        "def zero(t: jax.Array) -> jax.Array:\n    t = jnp.zeros_like(t)\n    return t\n",
    )
