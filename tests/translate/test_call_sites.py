"""Classes and other makers of modules that are handed around without annotations: the conversion builds and runs."""

from __future__ import annotations

import textwrap
from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp import convert

HEAD = """
import torch
from torch import nn
from functools import partial


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x):
        return self.norm(x)


class Wide(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return self.fc(x)

"""

PROGRAMS = {
    "a parameter of a method": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = self._make(Norm, 2)

            def _make(self, what, count):
                return nn.Sequential(*[what(4) for _ in range(count)])

            def forward(self, x):
                return self.body(x)
        """,
    "through two functions": """
        def pair(first, second):
            return nn.Sequential(first(4), second(4))

        def stack(kind):
            return pair(kind, nn.BatchNorm1d)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = stack(Wide)

            def forward(self, x):
                return self.body(x)
        """,
    "given or None": """
        class Net(nn.Module):
            def __init__(self, extra=None):
                super().__init__()
                self.extra = extra(4) if extra is not None else None

            def forward(self, x):
                return x if self.extra is None else self.extra(x)

        class Net2(Net):
            pass

        def build():
            return Net(Wide)
        """,
    "a registry": """
        KINDS = {}

        def register(name):
            def keep(cls):
                KINDS[name] = cls
                return cls
            return keep

        @register("thin")
        class Thin(Wide):
            pass

        @register("norm")
        class Normed(Norm):
            pass

        class Net(nn.Module):
            def __init__(self, kinds=("thin", "norm")):
                super().__init__()
                self.body = nn.ModuleList([KINDS[k](4) for k in kinds])

            def forward(self, x):
                for m in self.body:
                    x = m(x)
                return x
        """,
    "a table of classes, partials and lambdas": """
        TABLE = {"a": Wide, "b": partial(nn.Linear, 4), "c": lambda n: nn.Linear(n, n), "d": nn.BatchNorm1d}

        def one(make):
            return make(4)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.ModuleList([one(TABLE[k]) for k in "abcd"])

            def forward(self, x):
                for m in self.body:
                    x = m(x)
                return x
        """,
    "an attribute of the class": """
        class Net(nn.Module):
            kind = Wide

            def __init__(self):
                super().__init__()
                self.fc = self.kind(4)

            def forward(self, x):
                return self.fc(x)
        """,
    "a function that builds, and a class": """
        def make_wide(dim):
            return Wide(dim)

        class Net(nn.Module):
            def __init__(self, which=0):
                super().__init__()
                self.fc = [make_wide, Norm][which](4)

            def forward(self, x):
                return self.fc(x)
        """,
    "only lambdas": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                make = lambda n: nn.Linear(4, n)
                self.a, self.b = make(4), self._with(make)

            def _with(self, factory):
                return factory(4)

            def forward(self, x):
                return self.b(self.a(x))
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_handed_around_is_built(name: str) -> None:
    result = convert(HEAD + textwrap.dedent(PROGRAMS[name]))
    assert not result.gaps
    scope: dict[str, Any] = {"__name__": "converted"}
    exec(compile(result.code, name, "exec"), scope)
    assert scope["Net"](rngs=nnx.Rngs(0))(jnp.ones((3, 4))).shape == (3, 4)
    if "build" in scope:
        assert scope["build"](rngs=nnx.Rngs(0)).extra is not None


def test_one_class_that_is_known_does_not_stand_for_all_that_may_come() -> None:
    """``act`` is Tanh in the one call that is seen, and ``make(kinds[0], act)`` may hand over anything."""
    code = convert(
        HEAD
        + textwrap.dedent("""
        def make(kind, act):
            return nn.Sequential(kind(4), act())

        def use(kinds, chosen):
            return make(Wide, nn.Tanh), make(kinds[0], chosen)
        """)
    ).code
    body = code[code.index("def make") : code.index("def use")]
    assert "act(rngs=rngs)" in body and "kind(4, rngs=rngs)" in body


MAKERS = """\
from torch import nn
from elsewhere import REGISTRY, Block, make_plain


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        {statement}
"""


@pytest.mark.parametrize(
    "statement",
    [
        "self.net = nn.Sequential(REGISTRY[kind](3, 4), nn.ReLU())",
        "conv = REGISTRY[kind]; layer = conv(3, 4); self.add_module('conv', layer)",
        "self.layers = nn.ModuleList([Block(3) for _ in range(2)])",
        "self.layers = nn.ModuleList(); self.layers.append(Block(3))",
    ],
)
def test_what_something_unknown_makes_where_only_a_module_can_stand_is_said(statement: str) -> None:
    gaps = convert(MAKERS.format(statement=statement)).gaps
    assert [gap.code for gap in gaps] == ["unsure"]


@pytest.mark.parametrize(
    "statement",
    [
        "self.net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())",
        "self.plain = make_plain(3)",
        "acts = {'relu': nn.ReLU}; self.net = nn.Sequential(acts[kind]())",
        "self.net = nn.Sequential(*[make(3) for make in (nn.Linear, nn.Identity)])",
    ],
)
def test_what_is_known_or_may_be_anything_is_no_gap(statement: str) -> None:
    assert not convert(MAKERS.format(statement=statement)).gaps


BASE = """import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


class Base(nn.Module):
    def __init__(self, n, second=None):
        super().__init__()
        {ask}
        {make}

    def forward(self, x):
        return self.main(x)


class Child(Base):
    def __init__(self, n, kind=nn.BatchNorm2d):
        {init}
"""
MADE = ("self.main = second(n)", "self.main = nn.Sequential(*[second(n)])", "main = []\n        main += [second(n)]")


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("init", ["super().__init__(n, second=kind)", "super(Child, self).__init__(n, kind)"])
@pytest.mark.parametrize(
    "ask", ["if n > 3:\n            n = 3", "if isinstance(second, _BatchNorm):\n            n = 3"]
)
def test_classes_that_a_subclass_hands_to_its_base_are_made_with_rngs(make: str, init: str, ask: str) -> None:
    done = convert(BASE.format(make=make, init=init, ask=ask))
    assert not done.gaps and "second(n, rngs=rngs)" in done.code
