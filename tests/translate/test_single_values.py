"""A Sequential is Flax's own where its modules give one value each, also where nothing else is known of them."""

from __future__ import annotations

import pytest

from .convert import body

NET = """
class Block(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, x):
        {body}


class Net(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), Block(parts), Block(parts))

    def forward(self, x):
        return self.layers(x)
"""

SINGLE = {
    "what it was given": "return x",
    "a sum in a loop": "for part in self.parts:\n            x = part(x) + x\n        return x",
    "an addition in place": "x += self.parts(x)\n        return x",
    "one of two": "y = x - self.parts(x)\n        return y if self.parts else x",
}
SEVERAL = {
    "the result of something unknown": "return self.parts(x)",
    "a variable that is": "x = self.parts(x)\n        return x",
    "a value that is taken apart": "x, y = self.parts(x)\n        return x",
    "an argument that is taken apart": "y, mask = x\n        self.parts(y + mask)\n        return x",
    "a product, which repeats a tuple": "return self.parts(x) * 2",
    "a function inside": "def f(x):\n            return x\n        return x + f(x)",
    "nothing in one case": "if self.parts:\n            return x\n        return",
}


@pytest.mark.parametrize("name", SINGLE)
def test_one_value_goes_on_to_the_next_module(name: str) -> None:
    assert "self.layers = nnx.Sequential(" in body(NET.replace("{body}", SINGLE[name]))


@pytest.mark.parametrize("name", SEVERAL)
def test_what_may_be_a_tuple_is_not_spread(name: str) -> None:
    assert "self.layers = Sequential(" in body(NET.replace("{body}", SEVERAL[name]))
