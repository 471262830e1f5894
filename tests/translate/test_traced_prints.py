"""Prints of forward passes, which compiled steps make where they show what is known when these are traced."""

from __future__ import annotations

import contextlib
import io

import pytest

from t2j_lsp.translate import translate

SCRIPT = """\
import torch
from torch import nn

torch.manual_seed(0)
SEEN = [0]


def tell(x):
    print("told", x.shape)


class Show(nn.Module):
    def __init__(self, label, width):
        super().__init__()
        self.label, self.width = label, width

    def forward(self, x):
        print(self.label, "sees {", x.size(0))
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.show, self.last = nn.Linear(2, 6), Show("hidden", 6), nn.Linear(6, 1)

    def forward(self, x):
        return self.last(torch.tanh(self.show(self.first(x))))


x = torch.linspace(-1, 1, 8).reshape(4, 2)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    print("epoch", epoch)
    print((net(x) > 0).sum().item())
"""
PRINT = 'print(self.label, "sees {", x.size(0))'
KNOWN = {
    PRINT: 'jax.debug.print("{} sees {{ {}", self.label, str(x.shape[0]), ordered=True)',
    'print("a layer")': 'jax.debug.print("a layer", ordered=True)',
    'print(f"{self.label}: {x.shape}")': 'jax.debug.print("{}", f"{self.label}: {x.shape}", ordered=True)',
    "print(self.width, x.shape)": 'jax.debug.print("{} {}", str(self.width), str(x.shape), ordered=True)',
    'if self.width > 3:\n            print("wide")': None,
    'if self.width:\n            print("wide")': 'jax.debug.print("wide", ordered=True)',
}
UNKNOWN = {
    "how it ends": 'print(self.label, end="")',
    "a list that others fill": "print(SEEN[0])",
    "a call": "print(len(SEEN))",
    "a function of the file": "tell(x)",
    "a loop": 'for _ in range(2):\n            print("twice")',
    "what is decided by another": 'if SEEN[0]:\n            print("seen")',
    "a name": "n = SEEN[0]\n        print(n)",
    "an attribute that changes": "self.width += 1\n        print(self.width)",
}


@pytest.mark.parametrize("text", [text for text, wanted in KNOWN.items() if wanted])
def test_what_is_known_is_printed_by_compiled_code(text: str) -> None:
    done = translate(SCRIPT.replace(PRINT, text))
    assert not done.gaps and f"        {KNOWN[text]}\n" in done.code
    assert (
        "    printed(train_step(x))\n" in done.code
        and "print(printed(bound_jit(forward_step, net)(x)).item())" in done.code
    )


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_may_change_is_printed_by_python(name: str) -> None:
    code = translate(SCRIPT.replace(PRINT, UNKNOWN[name])).code
    assert "jit" not in code and "printed" not in code and "jax.debug.print" not in code


@pytest.mark.parametrize(
    "other",
    ["torch.vmap(torch.sin)(x)", "net = nn.DataParallel(net)"],
)
def test_code_over_batches_or_devices_prints_by_python(other: str) -> None:
    assert "jax.debug.print" not in translate(SCRIPT.replace("optimizer =", f"{other}\noptimizer =")).code


def test_modules_of_files_without_steps_print_by_python() -> None:
    code = translate(SCRIPT.partition("x = torch")[0]).code
    assert "print(self.label" in code and "jax.debug" not in code


@pytest.mark.jax
def test_the_lines_stand_in_their_order_each_time() -> None:
    """As PyTorch prints them: in front of what the program prints behind a step, whose loss it doesn't read."""
    printed: list[list[str]] = []
    for code in (SCRIPT, translate(SCRIPT).code):
        with contextlib.redirect_stdout(out := io.StringIO()):
            exec(code, {"__name__": "__main__"})
        printed.append(["n" if line[0].isdigit() else line for line in out.getvalue().splitlines()])
    assert printed[1] == printed[0] and len(printed[0]) == 12
    assert printed[0][:4] == ["hidden sees { 4", "epoch 0", "hidden sees { 4", "n"]


@pytest.mark.parametrize("other", ["loss = net(x).square().mean()", "tell(x)\n    loss = net(x).square().mean()"])
def test_what_is_printed_between_the_forward_pass_and_the_step_keeps_its_place(other: str) -> None:
    between = 'loss = net(x).square().mean()\n    print("between")'
    text = SCRIPT.replace("loss = net(x).square().mean()", between)

    assert ["another order" in gap.reason for gap in translate(text).gaps] == [True]
    assert not translate(SCRIPT.replace("loss = net(x).square().mean()", f'print("in front")\n    {other}')).gaps
