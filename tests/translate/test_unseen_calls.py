"""Functions and classes that ask for rngs, where somebody else calls them: none of these programs may lack its rngs."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from t2j_lsp import convert

from .convert import body, run

HEAD = """
import functools
import threading

import torch
from torch import nn


def make(n=3):
    return nn.Linear(n, n)


def make2(n=3):
    return nn.Sequential(nn.Linear(n, n), nn.ReLU())


class Agent:
    def __init__(self, n):
        self.net = nn.Linear(n, n)


"""
VALUES = {
    "in a dict": 'table = {"a": make, "b": make2}\nmade = [table[k](2) for k in "ab"]\n',
    "in a dict by keywords": 'table = dict(a=make, b=make2)\nmade = [f(2) for name, f in table.items()]\n',
    "in a list": "made = [f(2) for f in [make, make2] + [make]]\n",
    "by a condition": "f = make if len('a') else make2\nmade = [f(2)]\n",
    "by a branch": "if len('a'):\n    f = make\nelse:\n    f = make2\nmade = [f(2)]\n",
    "by a name": "f = make\nmade = [f(2)]\n",
    "by two names": "f = g = make\nmade = [f(2), g(3)]\n",
    "in a class": "class Maker:\n    f = staticmethod(make)\n\n\nmade = [Maker.f(2)]\n",
    "mapped": "made = list(map(make, [1, 2]))\n",
    "in a partial": "made = [functools.partial(make, 2)()]\n",
    "in a thread": (
        "made = []\n\n\ndef work():\n    made.append(make())\n\n\nt = threading.Thread(target=work)\n"
        "t.start()\nt.join()\n"
    ),
    "kept by an object": (
        "class Hooks:\n    def __init__(self):\n        self.all = []\n\n    def add(self, f):\n"
        "        self.all.append(f)\n\n\n"
        "hooks = Hooks()\nhooks.add(make)\nhooks.add(make2)\nmade = [f() for f in hooks.all]\n"
    ),
    "a method": "class C:\n    def build(self, n):\n        return make(n)\n\n\nmade = list(map(C().build, [1, 2]))\n",
    "a class that is no module": 'table = {"a": Agent, "b": dict}\nmade = [table["a"](2).net]\n',
    "passed to a function": "def twice(f):\n    return [f(2), f(3)]\n\n\nmade = twice(make)\n",
}  # fmt: skip
CALLERS = {
    "a decorator that registers": (
        "known = {}\n\n\ndef register(f):\n    known[f.__name__] = f\n    return f\n\n\n"
        '@register\ndef build(n):\n    return make(n)\n\n\nmade = [known["build"](3), build(2)]\n'
    ),
    "a decorator with arguments": (
        "known = {}\n\n\ndef register(name):\n    def keep(f):\n        known[name] = f\n"
        "        return f\n\n    return keep\n\n\n"
        '@register("b")\ndef build(n):\n    return make(n)\n\n\nmade = [known["b"](3)]\n'
    ),
    "a method as a decorator": (
        "class Group:\n    def __init__(self):\n        self.all = {}\n\n    def register(self, f):\n"
        "        self.all[f.__name__] = f\n        return f\n\n\ngroup = Group()\n\n\n"
        '@group.register\ndef build(n):\n    return make(n)\n\n\nmade = [group.all["build"](3)]\n'
    ),
    "a wrapper with a signature": (
        "def timed(f):\n    def wrapper(n):\n        return f(n)\n\n    return wrapper\n\n\n"
        "@timed\ndef build(n):\n    return make(n)\n\n\nmade = [build(3)]\n"
    ),
    "a wrapper that hands on": (
        "def timed(f):\n    @functools.wraps(f)\n    def wrapper(*args, **kwargs):\n"
        "        return f(*args, **kwargs)\n\n"
        "    return wrapper\n\n\n@timed\ndef build(n):\n    return make(n)\n\n\nmade = [build(3)]\n"
    ),
    "operators and contexts": (
        "class Made:\n    def __iter__(self):\n        yield make(2)\n\n    def __getitem__(self, i):\n"
        "        return make(i)\n\n"
        "    def __call__(self, n):\n        return make(n)\n\n    def __enter__(self):\n        return make(2)\n\n"
        "    def __exit__(self, *args):\n        pass\n\n    @property\n    def one(self):\n"
        "        return make(1)\n\n\n"
        "all = Made()\nmade = [*all, all[3], all(2), all.one]\nwith all as net:\n    made.append(net)\n"
    ),
    "a library's base": (
        "class Work(threading.Thread):\n    def run(self):\n        self.net = make()\n\n\n"
        "work = Work()\nwork.start()\nwork.join()\nmade = [work.net]\n"
    ),
    "an object that is not known": (
        "class Env:\n    def build(self, n):\n        return make(n)\n\n\n"
        "class Trainer:\n    def __init__(self, env):\n        self.env = env\n\n    def play(self):\n"
        "        return self.env.build(2)\n\n\nmade = [Trainer(Env()).play()]\n"
    ),
    "a base that leaves it to those below": (
        "class Base:\n    def go(self):\n        return self.build(2)\n\n\nclass Sub(Base):\n    def build(self, n):\n"
        "        return make(n)\n\n\nmade = [Sub().go()]\n"
    ),
}


def made_by(source: str) -> list[Any]:
    """What a converted program makes; it has no gap."""
    result = convert(HEAD + source)
    assert not result.gaps
    scope: dict[str, Any] = {"__name__": "converted"}
    exec(compile(result.code, "converted", "exec"), scope)
    return list(scope["made"])


@pytest.mark.jax
@pytest.mark.parametrize("name", [*VALUES, *CALLERS])
def test_whoever_calls_has_rngs(name: str) -> None:
    made = made_by({**VALUES, **CALLERS}[name])
    assert made and all(type(net).__name__ in ("Linear", "Sequential") for net in made)


def test_a_function_in_a_table_goes_with_its_rngs() -> None:
    code = body("""
    def make(n):
        return nn.Linear(n, n)

    TABLE = {"a": make}
    """)
    assert 'rngs = nnx.Rngs(0)\nTABLE = {"a": functools.partial(make, rngs=rngs)}' in code


def test_classes_whose_objects_are_told_by_them_stay_classes() -> None:
    text = """
    class Twice(Agent):
        pass

    def kind(m):
        return isinstance(m, (Agent, Twice)), type(m) in [Agent, Twice], issubclass(type(m), (Twice,))

    def both():
        return kind(Agent(2)), kind(Twice(2)), kind(3)
    """
    code = body(convert(HEAD + textwrap.dedent(text)).code)
    assert "isinstance(m, (Agent, Twice)), type(m) in [Agent, Twice], issubclass(type(m), (Twice,))" in code
    assert "kind(Agent(2, rngs=rngs))" in code


def test_a_variable_that_is_only_called_is_given_them_there() -> None:
    code = body("""
    def make(n):
        return nn.Linear(n, n)

    build = make
    net = build(3)
    """)
    assert "build = make\n" in code and "net = build(3, rngs=rngs)" in code


def test_what_a_decorator_was_given_draws_from_the_module() -> None:
    code = body("""
    KNOWN = []

    @KNOWN.append
    def noise():
        return torch.randn(3)
    """)
    assert "def noise():\n    return rngs.normal((3,))" in code
    assert code.index("rngs = nnx.Rngs(0)") < code.index("@KNOWN.append")


def test_a_seed_reaches_what_draws_from_the_module() -> None:
    source = """
    class Noise:
        def __getitem__(self, i):
            return torch.randn(3)

    def main(seed):
        torch.manual_seed(seed)
        return Noise()[0]
    """
    code = body(source)
    assert "def main(seed):\n    global rngs\n    rngs = nnx.Rngs(seed)\n" in code


def test_a_seed_behind_the_first_draw_sets_that_of_the_module() -> None:
    source = """
    import hydra

    @hydra.main(config_path="conf")
    def main(config):
        net = nn.Linear(3, 4)
        for i in range(3):
            torch.manual_seed(i)
            print(net(torch.randn(2, 3)))
    """
    code = body(source)
    assert "def main(config):\n    global rngs\n    net = " in code
    assert "        rngs = nnx.Rngs(i)\n" in code


@pytest.mark.jax
def test_two_seeds_give_two_values() -> None:
    code = convert(
        textwrap.dedent("""
        import torch

        class Noise:
            def __getitem__(self, i):
                return torch.randn(3)

        def main(seed):
            torch.manual_seed(seed)
            return Noise()[0].tolist()

        drawn = [main(1), main(2), main(1)]
        """)
    ).code
    scope: dict[str, Any] = {"__name__": "converted"}
    exec(compile(code, "converted", "exec"), scope)
    one, two, again = scope["drawn"]
    assert one == again != two


def test_a_seed_on_a_condition_does_not_reach_it() -> None:
    result = run("""
    class Noise:
        def __getitem__(self, i):
            return torch.randn(3)

    def main(seed):
        if seed:
            torch.manual_seed(seed)
        return torch.randn(3) + Noise()[0]
    """)
    assert [gap.name for gap in result.gaps] == ["rngs"]


WRAPPED = """
def wrapped(f):
    def call(x):
        return f(x)
    return call

@wrapped
def noisy(x):
    return x + torch.randn(3)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return {forward}

net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    opt.zero_grad()
    loss = {loss}
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("forward", "loss"),
    [("self.fc(x)", "noisy(net(torch.ones(3))).sum()"), ("noisy(self.fc(x))", "net(torch.ones(3)).sum()")],
)
def test_a_compiled_step_draws_from_nothing_outside(forward: str, loss: str) -> None:
    result = run(WRAPPED.format(forward=forward, loss=loss))
    assert [gap.name for gap in result.gaps] == ["training loop"]
    assert "noisy draws from the rngs of the module level" in result.gaps[0].message


def test_methods_that_are_seen_to_be_called_take_rngs() -> None:
    code = body("""
    class Env:
        def reset(self):
            return torch.randn(3)

    env = Env()
    x = env.reset()
    """)
    assert "def reset(self, *, rngs: nnx.Rngs):" in code and "x = env.reset(rngs=rngs)" in code
