"""Loops and assignments that say the same in other ways: what has a form of its own in JAX has it there, too."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

HEAD = """import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
"""
FROZEN = """model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
{loop}
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
x = torch.linspace(-1, 1, 12).view(4, 3)
for step in range(3):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""
LOOPS = {
    "as it is": "for p in model[0].parameters():\n    p.requires_grad = False",
    "a count that nobody reads": "for i, p in enumerate(model[0].parameters()):\n    p.requires_grad = False",
    "from another number": "for _, p in enumerate(model[0].parameters(), start=1):\n    p.requires_grad = False",
    "an item that is unpacked": (
        "for pair in model.named_parameters():\n    name, p = pair\n    p.requires_grad = name.startswith('2')"
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_read_as_the_plain_one(name: str) -> None:
    result = convert(HEAD + FROZEN.format(loop=LOOPS[name]))
    assert not result.gaps and "train_step" in result.code


SHADOW = """

class Shadow:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {{}}

    def register(self):
        for {first} in self.model.named_parameters():
            {second}
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for {first} in self.model.named_parameters():
            {second}
            if param.requires_grad:
                self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * param.data


model = nn.Linear(3, 2)
ema = Shadow(model, 0.9)
ema.register()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.ones(4, 3)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update()
print(sorted(ema.shadow), ema.shadow["bias"].shape[0])
"""


def test_loops_of_a_class_are_read_alike() -> None:
    plain = convert(HEAD + SHADOW.format(first="name, param", second="pass"))
    other = convert(HEAD + SHADOW.format(first="pair", second="name, param = pair"))
    assert not plain.gaps and not other.gaps
    assert printed(other.code) == printed(plain.code) == "['bias', 'weight'] 2\n"


JOINED = """x, y = torch.linspace(-1, 1, 8), torch.linspace(0, 2, 8)
a, b = torch.zeros((), requires_grad=True), torch.zeros((), requires_grad=True)
for t in range(5):
    loss = (a * x + b - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        a -= 0.01 * a.grad
        b -= 0.01 * b.grad
        a.grad, b.grad = None, None
print(f"{a.item():.4f} {b.item():.4f}")
"""


def test_values_in_one_assignment_train_as_each_in_its_own() -> None:
    result = convert(HEAD + JOINED)
    assert not result.gaps
    assert printed(result.code) == printed(HEAD + JOINED)


USED = {
    "a count that is read": "for i, p in enumerate(model[0].parameters()):\n    p.requires_grad = i > 0",
    "a count that is read behind the loop": (
        "for i, p in enumerate(model[0].parameters()):\n    p.requires_grad = False\nprint(i)"
    ),
    "an item that is read as a whole": (
        "for pair in model[0].named_parameters():\n    name, p = pair\n    p.requires_grad = len(pair) < 1"
    ),
}


@pytest.mark.parametrize("name", USED)
def test_what_is_read_stays(name: str) -> None:
    """The loop is left as it is; what it says may still be a gap."""
    code = convert(HEAD + FROZEN.format(loop=USED[name])).code
    assert USED[name].splitlines()[0] in code or "enumerate(" in code or "pair" in code


def test_values_that_read_what_stands_in_front_of_them_stay_together() -> None:
    source = """a, b = torch.zeros((), requires_grad=True), torch.ones((), requires_grad=True)
for t in range(5):
    a, b = b, a
    (a * b).backward()
print(a.grad)
"""
    assert "a, b = b, a" in convert(HEAD + source).code


BY_HAND = """

def update({parameters}):
    with torch.no_grad():
        w -= rate * w.grad
        b -= rate * b.grad
        w.grad = None
        b.grad = None
{returned}

x, y = torch.linspace(-1, 1, 8), torch.linspace(0, 2, 8)
w = torch.zeros((), requires_grad=True)
b = torch.zeros((), requires_grad=True)
for t in range(5):
    loss = (w * x + b - y).pow(2).sum()
    loss.backward()
    {call}
print(f"{{w.item():.4f}} {{b.item():.4f}}")
"""


@pytest.mark.parametrize(
    ("parameters", "returned", "call"),
    [
        ("w, b, rate", "", "update(w, b, 0.01)"),
        ("w, b, rate", "    return w, b\n", "w, b = update(w, b, 0.01)"),
        ("b, w, rate=0.01", "", "update(b=b, w=w)"),
        ("w, b, rate", "    print(rate)\n", "update(w, b, 0.01)"),
    ],
)
def test_a_function_updates_by_hand_what_it_is_given(parameters: str, returned: str, call: str) -> None:
    source = HEAD + BY_HAND.format(parameters=parameters, returned=returned, call=call)
    result = convert(source)
    assert not result.gaps and "def update" not in result.code
    assert printed(result.code) == printed(source)


def test_a_function_that_gives_what_it_changed_other_names_stays() -> None:
    """``w, b = update(...)`` that returns them the other way round is no update of each."""
    source = HEAD + BY_HAND.format(
        parameters="w, b, rate", returned="    return b, w\n", call="w, b = update(w, b, 0.01)"
    )
    result = convert(source)
    assert result.gaps or printed(result.code) == printed(source)


SEVERAL = """a, b = nn.Linear(3, 4), nn.Linear(4, 2)
for p in {walks}:
    # each of them
    if p.dim() < 2:
        continue
    with torch.no_grad():
        p.fill_(
            0.5
        )
print(b(a(torch.ones(2, 3)) - a.bias).sub(b.bias).sum().item())
"""


@pytest.mark.parametrize(
    "walks",
    [
        "[*a.parameters(), *b.parameters()]",
        "list(a.parameters()) + list(b.parameters())",
        "itertools.chain(a.parameters(), b.parameters())",
    ],
)
def test_a_loop_over_the_parameters_of_several_modules_is_one_over_the_modules_first(walks: str) -> None:
    text = f"import itertools\n{HEAD}{SEVERAL.format(walks=walks)}"
    result = convert(text)
    assert not result.gaps and ("for module in (a, b):" in result.code) == (not walks.startswith("itertools"))
    assert convert(result.code).code == result.code
    assert abs(float(printed(result.code)) - float(printed(text))) < 1e-4


def test_a_loop_over_several_modules_that_is_left_early_stays() -> None:
    text = SEVERAL.format(walks="[*a.parameters(), *b.parameters()]").replace("continue", "break")
    assert "for module in" not in convert(HEAD + text).code
