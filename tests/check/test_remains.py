"""What a program leaves changed in a worker is found, under whatever kind of name; what libraries do is no change."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable

import pytest

from t2j_lsp.check.workers.containment.remains import Remains

LIBRARY = """
def relu(x):
    return x

def softmax(x):
    return x

class Base:
    def add(self, x):
        return x

class Tensor(Base):
    limit = 3

    def mul(self, x):
        return x

    @staticmethod
    def zeros():
        return 0

state = []

def last(x):
    return x
"""


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module under a library's name, as far as what is watched goes."""
    module = types.ModuleType("torch.made_up")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(LIBRARY, module.__dict__)
    return module


def other(*given: object) -> None:
    """What a program puts in place of a library's function."""


CHANGES: dict[str, tuple[Callable[[types.ModuleType], object], str]] = {
    "a function": (lambda m: setattr(m, "relu", other), "relu"),
    "the code of a function": (lambda m: setattr(m.relu, "__code__", other.__code__), "relu"),
    "two functions, changed round": (lambda m: m.__dict__.update(relu=m.softmax, softmax=m.relu), "relu"),
    "a function that is gone": (lambda m: delattr(m, "softmax"), "softmax"),
    "a function under another name": (lambda m: m.__dict__.update(renamed=m.__dict__.pop("softmax")), "softmax"),
    "the last function under another name": (lambda m: m.__dict__.update(renamed=m.__dict__.pop("last")), "last"),
    "a class": (lambda m: setattr(m, "Tensor", type("Tensor", (), {})), "Tensor"),
    "a method": (lambda m: setattr(m.Tensor, "mul", other), "mul"),
    "the code of a method": (lambda m: setattr(m.Tensor.mul, "__code__", other.__code__), "mul"),
    "a static method": (lambda m: setattr(m.Tensor, "zeros", staticmethod(other)), "zeros"),
    "an inherited method": (lambda m: setattr(m.Tensor, "add", other), "add"),
    "a function beside a value": (lambda m: (m.__dict__.update(state=1), setattr(m, "relu", other)), "relu"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_program_changed_is_found(what: str, library: types.ModuleType) -> None:
    known = Remains(lambda: None)
    assert known.changed() is None
    change, name = CHANGES[what]
    change(library)
    for _ in range(2):
        assert (known.changed() or "").endswith(f".{name}")


def test_what_came_with_a_module_that_was_loaded_later_is_found(
    library: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Remains(lambda: None)
    late = types.ModuleType("jax.made_up")
    exec(LIBRARY, late.__dict__)
    monkeypatch.setitem(sys.modules, late.__name__, late)
    assert known.changed() is None
    late.Tensor.mul = other
    assert known.changed() == "Tensor.mul"


def test_a_setting_is_found() -> None:
    settings = ["float32"]
    known = Remains(lambda: tuple(settings))
    assert known.changed() is None
    settings[0] = "float16"
    assert known.changed() == "a setting"


def test_what_libraries_do_is_no_change(library: types.ModuleType) -> None:
    known = Remains(lambda: None)
    library.state, library.Tensor.limit, library.cache = [1], 4, {}
    wrapped = functools.wraps(library.Tensor.mul)(types.FunctionType(other.__code__, {"__name__": "torch.optim"}))
    library.Tensor.mul = wrapped
    assert known.changed() is None
    library.relu = other
    assert known.changed() == "torch.made_up.relu"
