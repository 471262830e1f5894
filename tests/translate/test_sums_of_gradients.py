"""Gradients of several batches, added up by functions that are bound to a module and its optimizer."""

from __future__ import annotations

from typing import Any

import pytest

from t2j_lsp.translate import translate

SCRIPT = """\
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict(dict(first=nn.Linear(4, 8), drop=nn.Dropout(0.0), last=nn.Linear(8, 4, bias=False)))

    def forward(self, x):
        return self.parts.last(self.parts.drop(torch.tanh(self.parts.first(x))))


batches = torch.linspace(-1, 1, 96).reshape(6, 4, 4) ** 2
model = Net()
model.to("cpu")
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
seen = []


@torch.no_grad()
def estimate():
    model.eval()
    loss = F.mse_loss(model(batches[0]), batches[1])
    model.train()
    return loss


for step in range(9):
    if step % 3 == 0:
        seen.append(estimate().item())
    for x in batches:
        loss = F.mse_loss(model(x), x.flip(0)) / 6
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    seen.append(loss.item())
"""
BOUND = """\
grads = zeros = bound_jit(zero_step, model)()
for step in range(9):
    if step % 3 == 0:
        seen.append(estimate().item())
    for x in batches:
        loss, grads = bound_jit(accumulate_gradients, model)(grads, x)
    grads = clip_grad_norm(grads, 0.5)
    bound_jit(apply_step, model, optimizer)(grads)
    grads = zeros
    seen.append(loss.item())
"""
TIED = "self.parts.first.weight = self.parts.last.weight"
SAME = {
    "as it is": ("", ""),
    "the model is handed over": ("estimate()", "estimate(model)"),
    "a number decides about the estimate": ("step % 3 == 0", "step in (1, 4)"),
    "a dict that is written out": (
        "dict(first=nn.Linear(4, 8), drop=nn.Dropout(0.0), last=nn.Linear(8, 4, bias=False))",
        "{'first': nn.Linear(4, 8), 'drop': nn.Dropout(0.0), 'last': nn.Linear(8, 4, bias=False)}",
    ),
    "a module that is put on a device": ('model.to("cpu")', 'model = model.to("cpu")'),
}
OTHER = {
    "it stays in evaluation mode": ("    model.train()\n", ""),
    "it may return before": ("    model.train()\n", "    if loss > 1:\n        return loss\n    model.train()\n"),
    "it may set no mode": ("    model.train()\n", "    if loss > 1:\n        model.train()\n"),
    "it sets the mode of a part": ("    model.train()\n", "    model.parts.train()\n"),
    "it sets that of its own model": ("def estimate():\n", "def estimate():\n    model = Net()\n"),
    "an error is caught": (
        "        seen.append(estimate().item())\n",
        "        try:\n            seen.append(estimate().item())\n        except ValueError:\n            pass\n",
    ),
    "another function that says nothing": ("estimate().item()", "measure(estimate).item()"),
    "a part is frozen in its mode": ("        self.parts =", "        self.eval()\n        self.parts ="),
    "another module before": ('model.to("cpu")', "model = remade(model)"),
}
FUNCTIONS = "def measure(function):\n    return function()\n\n\ndef remade(given):\n    return given\n\n\n"


def changed(edit: tuple[str, str]) -> str:
    old, new = edit
    assert old in SCRIPT
    text = SCRIPT.replace(old, new) if old else SCRIPT
    return text.replace("class Net", f"{FUNCTIONS}class Net").replace("= remade(model)", "= remade(model)")


@pytest.mark.parametrize("name", SAME)
def test_they_are_arrays_where_the_module_is_bound(name: str) -> None:
    text = changed(SAME[name]).replace(
        "def estimate():", "def estimate(model):" if "handed" in name else "def estimate():"
    )
    done = translate(text)
    assert not done.gaps
    assert "bound_jit(apply_step, model, optimizer)(grads)" in done.code
    assert "jax.tree.map(jnp.add, grads, nnx.to_pure_dict(new_grads))" in done.code
    assert name != "as it is" or BOUND in done.code


@pytest.mark.parametrize("name", OTHER)
def test_modes_that_may_differ_are_looked_at_in_each_call(name: str) -> None:
    code = translate(changed(OTHER[name])).code
    assert "bound_jit(accumulate_gradients" not in code and "apply_step" not in code


@pytest.mark.jax
@pytest.mark.parametrize("tied", [False, True])
def test_they_are_what_the_unbound_functions_add(tied: bool) -> None:
    text = SCRIPT.replace("last=nn.Linear(8, 4, bias=False)", "last=nn.Linear(8, 4)")
    if tied:
        text = SCRIPT.replace("first=nn.Linear(4, 8)", "first=nn.Linear(4, 4)").replace(
            "nn.Linear(8, 4, ", "nn.Linear(4, 4, "
        )
        text = text.replace("\n\n    def forward", f"\n        {TIED}\n\n    def forward")
    code = translate(text).code
    helper = "bound_jit_graph" if tied else "bound_jit"
    options = "graph=True, graph_updates=False" if tied else "graph=False"
    binding = f"functools.partial(nnx.jit_partial, {options})"
    assert f"{helper}(accumulate_gradients, model)" in code and binding in code
    both: list[dict[str, Any]] = [{}, {}]
    exec(code, both[0])
    exec(code.replace(binding, "lambda step, *modules: lambda *arrays: nnx.jit(step)(*modules, *arrays)"), both[1])
    assert both[0]["seen"] == pytest.approx(both[1]["seen"], rel=1e-4) and len(set(both[0]["seen"])) == 12


AGAIN = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.ones(2, 4)] * 4


def train():
    {first}
    for i, x in enumerate(batches):
        loss = model(x).square().mean()
        loss.backward()
        if i % 2:
            optimizer.step()
            {second}
    {third}


for _ in range(2):
    train()
"""
ZERO = "optimizer.zero_grad()"


@pytest.mark.parametrize(
    ("first", "second", "third", "made", "again"),
    [
        ("pass", ZERO, "pass", 1, 1),
        (ZERO, ZERO, "pass", 1, 1),
        (ZERO, "pass", "pass", 1, 0),
        (ZERO, ZERO, ZERO, 1, 2),
        (f"if len(batches) > 3:\n        {ZERO}", ZERO, "pass", 3, 0),
    ],
)
def test_zeros_are_made_once(first: str, second: str, third: str, made: int, again: int) -> None:
    translation = translate(AGAIN.format(first=first, second=second, third=third))
    assert not translation.gaps
    assert translation.code.count("bound_jit(zero_step, model)()") == made
    assert translation.code.count("grads = zeros\n") == again
