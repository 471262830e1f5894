"""Classes that a base collects as they are defined: the constructors called from its registry get their rngs."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from t2j_lsp import convert

LAYERS = """
class A({bases}):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, 2)

    def forward(self, x):
        return self.fc(x)


class B({bases}):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, 3)

    def forward(self, x):
        return self.fc(x)


torch.manual_seed(0)
{made}
shapes = [tuple(m(torch.ones(1, 4)).shape) for m in made]
"""
REGISTRIES = {
    "a dict of the class": (
        "class Base(nn.Module):\n    known = {}\n\n    def __init_subclass__(cls, **kw):\n"
        "        super().__init_subclass__(**kw)\n        Base.known[cls.__name__] = cls\n",
        "Base",
        "made = [Base.known[name](4) for name in ('A', 'B')]",
    ),
    "a dict asked by get": (
        "class Base(nn.Module):\n    known = {}\n\n    def __init_subclass__(cls, **kw):\n"
        "        super().__init_subclass__(**kw)\n        cls.known.setdefault(cls.__name__, cls)\n",
        "Base",
        "made = [Base.known.get(name)(4) for name in ('A', 'B')]",
    ),
    "a list of the module level": (
        "ALL = []\n\n\nclass Base(nn.Module):\n    def __init_subclass__(cls, **kw):\n"
        "        super().__init_subclass__(**kw)\n        ALL.append(cls)\n",
        "Base",
        "made = [cls(4) for cls in ALL]",
    ),
    "a class that is mixed in": (
        "class Known:\n    all = []\n\n    def __init_subclass__(cls, **kw):\n"
        "        super().__init_subclass__(**kw)\n        Known.all.append(cls)\n",
        "Known, nn.Module",
        "made = [make(4) for make in Known.all]",
    ),
    "a class method that makes": (
        "class Base(nn.Module):\n    known = {}\n\n    def __init_subclass__(cls, **kw):\n"
        "        super().__init_subclass__(**kw)\n        cls.known[cls.__name__] = cls\n\n"
        "    @classmethod\n    def create(cls, name, *args):\n        return cls.known[name](*args)\n",
        "Base",
        "made = [Base.create('A', 4), Base.create('B', 4)]",
    ),
    "what Python knows": (
        "class Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 1\n",
        "Base",
        "classes = {c.__name__: c for c in Base.__subclasses__()}\nmade = [classes['A'](4), classes['B'](4)]",
    ),
}


@pytest.mark.parametrize("name", REGISTRIES)
def test_constructors_from_a_registry_get_their_rngs(name: str) -> None:
    base, bases, made = REGISTRIES[name]
    result = convert("import torch\nfrom torch import nn\n\n\n" + base + LAYERS.format(bases=bases, made=made))
    assert not result.gaps
    scope: dict[str, Any] = {"__name__": "converted"}
    exec(compile(result.code, name, "exec"), scope)
    assert scope["shapes"] == [(1, 2), (1, 3)]


def test_classes_that_are_no_modules_get_none() -> None:
    code = convert(
        textwrap.dedent("""
        import torch

        class Step:
            known = {}

            def __init_subclass__(cls, **kw):
                super().__init_subclass__(**kw)
                Step.known[cls.__name__] = cls

        class Root(Step):
            def run(self, x):
                return torch.sqrt(x)

        print(Step.known["Root"]().run(torch.ones(3)))
        """)
    ).code
    assert "rngs" not in code and 'Step.known["Root"]().run(' in code
