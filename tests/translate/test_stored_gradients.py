"""Training by hand, on gradients that PyTorch stores in tensors: the same numbers come out."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import torch

from t2j_lsp.translate import translate

from .side_by_side import sides

HEAD = """\
import torch
from torch import nn

x = torch.linspace(-1, 1, 24).reshape(12, 2)
y = x @ torch.tensor([1.0, -2.0]) + 0.5
w = torch.tensor([0.3, 0.1], requires_grad=True)
b = torch.tensor(0.2, requires_grad=True)
params = [w, b]
losses = []
"""
LOOPS = {
    "two loops, each with its tensors": """
        for i in range(3):
            loss = ((x @ w - y) ** 2).mean()
            w.grad = None
            loss.backward()
            w.data += -0.1 * w.grad
            losses.append(loss.item())
        v = torch.tensor([0.3, 0.1], requires_grad=True)
        c = torch.tensor(0.3, requires_grad=True)
        more = [v, c]
        for i in range(3):
            loss = ((x @ v + c - y) ** 2).mean()
            for p in more:
                p.grad = None
            loss.backward()
            for p in more:
                p.data -= 0.1 * p.grad
            losses.append(loss.item())
    """,
    "a loss of one element": """
        for i in range(5):
            loss = torch.Tensor([0])
            for a, t in zip(x, y):
                loss += ((a * w).sum() + b - t) ** 2
            w.grad = None
            b.grad = None
            loss.backward()
            w.data -= 0.01 * w.grad
            b.data -= 0.01 * b.grad
            losses.append(loss.item() + loss.shape[0])
    """,
    "each tensor by itself": """
        for i in range(5):
            loss = ((x @ w + b - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                b.sub_(b.grad, alpha=0.2)
            w.grad.zero_()
            b.grad = None
            losses.append(loss.item())
    """,
    "through data": """
        for i in range(5):
            loss = ((x @ w + b - y) ** 2).mean()
            loss.backward()
            w.data -= 0.1 * w.grad.data
            b.data = b.data - 0.2 * b.grad.data
            w.grad.data.zero_()
            b.grad = None
            losses.append(loss.item())
    """,
    "a list of tensors": """
        for i in range(5):
            loss = ((x @ w + b - y) ** 2).mean()
            for p in params:
                p.grad = None
            loss.backward()
            lr = 0.1 if i < 3 else 0.05
            for p in params:
                p.data += -lr * (p.grad + 0.01 * p.data)
            losses.append(loss.item())
    """,
    "a list, and its tensors": """
        for i in range(5):
            loss = ((x @ w + b - y) ** 2).mean()
            loss.backward()
            losses.append(w.grad.norm().item())
            with torch.no_grad():
                for p in [w, b]:
                    if p.grad is not None:
                        p -= 0.1 * p.grad
                        p.grad.zero_()
    """,
    "several on one line": """
        for i in range(5):
            loss = ((x @ w + b - y) ** 2).mean(); losses.append(loss.item())
            loss.backward()
            with torch.no_grad(): w -= 0.1 * w.grad; b -= 0.1 * b.grad
            w.grad = None; b.grad = None
    """,
}


@pytest.mark.parametrize("name", LOOPS)
def test_tensors_that_are_changed_by_hand(name: str) -> None:
    pair = sides(HEAD + textwrap.dedent(LOOPS[name]), "by_hand")
    assert not pair.gaps()
    assert "value_and_grad" in pair.translation.code
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
    for attribute in ("w", "b"):
        wanted: torch.Tensor = getattr(pair.torch, attribute)
        np.testing.assert_allclose(getattr(pair.jax, attribute), wanted.detach().numpy(), rtol=1e-5)


MODULE = """
model = nn.Linear(2, 1)
nn.init.constant_(model.weight, 0.1)
nn.init.constant_(model.bias, 0.2)
for i in range(5):
    model.zero_grad()
    loss = ((model(x).squeeze(1) - y) ** 2).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-0.1)
    losses.append(loss.item())
"""


@pytest.mark.filterwarnings("ignore:This overload of")
def test_a_factor_may_stand_in_front_of_the_gradient() -> None:
    older = MODULE.replace("add_(p.grad, alpha=-0.1)", "add_(-0.1, p.grad.data)")
    assert older != MODULE
    pair = sides(HEAD + older, "module_by_hand")
    assert not pair.gaps()
    assert "p - 0.1 * g" in pair.translation.code
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


@pytest.mark.parametrize("inside", [False, True])
def test_parameters_that_are_changed_by_hand(inside: bool) -> None:
    loop = "    for p in model.parameters():\n        p.data.add_(p.grad, alpha=-0.1)\n"
    assert loop in MODULE
    under = textwrap.indent(loop, "    ")
    moved = MODULE.replace("    model.zero_grad()\n", "")
    moved = moved.replace(loop, f"    with torch.no_grad():\n{under}        model.zero_grad()\n")
    pair = sides(HEAD + (moved if inside else MODULE), "module_by_hand")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)


FUNCTION = """
def step():
    \"""One step.\"""
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w.sub_(0.1 * w.grad); b.sub_(0.2 * b.grad)
        w.grad.zero_(); b.grad.zero_()
    return loss.item()


for i in range(5):
    losses.append(step())
"""


def test_tensors_of_the_module_level_that_a_function_changes() -> None:
    pair = sides(HEAD.replace("params = [w, b]\n", "") + FUNCTION, "function_by_hand")
    assert not pair.gaps()
    assert '    """One step."""\n    global b, w\n' in pair.translation.code
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
    np.testing.assert_allclose(pair.jax.w, pair.torch.w.detach().numpy(), rtol=1e-5)


def test_what_is_declared_global_is_declared_once() -> None:
    source = HEAD.replace("params = [w, b]\n", "") + FUNCTION.replace('"""One step."""', "global w, b")
    assert translate(source).code.count("global") == 1


@pytest.mark.parametrize("more", ["held = [w]\n", "other = w\n", "class Held:\n    pass\n\n\nheld = Held(w)\n"])
def test_a_tensor_that_something_else_holds_stays(more: str) -> None:
    reasons = [gap.reason for gap in translate(HEAD.replace("params = [w, b]\n", "") + more + FUNCTION).gaps]
    assert any("bound outside of the function" in reason for reason in reasons), reasons


def test_a_tensor_of_the_module_level_stays_in_a_function() -> None:
    step = """
def step():
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w.sub_(0.1 * w.grad)
        w.grad.zero_()
"""
    reasons = [gap.reason for gap in translate(HEAD + step).gaps]
    assert any("bound outside of the function" in reason for reason in reasons)


GIVEN = """
def step(w, b, lr=0.1):
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b.sub_(b.grad, alpha=0.2)
        w.grad = None
        b.grad = None
    return w, b, loss.item()


for i in range(5):
    w, b, value = step(w, b)
    losses.append(value)
"""


def test_tensors_that_a_function_is_given_and_gives_back() -> None:
    pair = sides(HEAD.replace("params = [w, b]\n", "") + GIVEN, "given_by_hand")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
    np.testing.assert_allclose(pair.jax.w, pair.torch.w.detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("w, b, value = step", "b, value = step"),
        ("w, b, value = step", "v, c, value = step"),
        ("for i in", "held = w\nfor i in"),
        ("for i in", "held = [w]\nfor i in"),
        ("        w.grad = None\n", ""),
    ],
)
def test_tensors_that_are_changed_for_the_caller_are_said(old: str, new: str) -> None:
    text = GIVEN.replace("return w, b,", "return b,") if new.startswith("b,") else GIVEN
    assert old in text
    shown = "print(w, held)\n" if "held" in new else "print(w)\n"
    assert translate(HEAD.replace("params = [w, b]\n", "") + text.replace(old, new) + shown).gaps


FUNCTIONS = {
    "of a list at the place": ("""
        def sgd(params, lr, size):
            with torch.no_grad():
                for param in params:
                    param -= lr * param.grad / size
                    param.grad.zero_()


        for i in range(5):
            loss = ((x @ w + b - y) ** 2).mean()
            loss.sum().backward()
            sgd([w, b], 0.3, 2)
            losses.append(loss.item())
    """, "w, b = sgd(grads, [w, b], 0.3, 2)"),
    "of a list with a name": ("""
        @torch.no_grad()
        def descend(rate: float, tensors) -> None:
            "One step."
            for t in tensors:
                if t.grad is not None:
                    t.sub_(t.grad, alpha=rate)
                t.grad = None


        for i in range(5):
            loss = ((x @ w + b - y) ** 2).mean()
            loss.backward()
            descend(0.2, tensors=params)
            losses.append(loss.item())
    """, "w, b = params = descend(grads, 0.2, tensors=params)"),
    "that leaves the gradients to others": ("""
        def update(tensors, lr=0.1):
            for t in tensors:
                t.data -= lr * t.grad


        for i in range(5):
            w.grad = None
            b.grad = None
            loss = ((x @ w + b - y) ** 2).mean()
            loss.backward()
            update([w, b])
            losses.append(loss.item())
    """, "w, b = update([w_grad, b_grad], [w, b])"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_change_tensors_return_them(name: str) -> None:
    text, call = FUNCTIONS[name]
    pair = sides(HEAD + textwrap.dedent(text), f"update_{len(name)}")
    assert not pair.gaps()
    assert call in pair.translation.code
    assert pair.jax.losses[-1] < pair.jax.losses[0]
    np.testing.assert_allclose(pair.jax.losses, pair.torch.losses, rtol=1e-5)
    np.testing.assert_allclose(pair.jax.w, pair.torch.w.detach().numpy(), rtol=1e-5)
    if "params" in call:
        np.testing.assert_allclose(pair.jax.params[0], pair.torch.params[0].detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("losses.append", "sgd([w, b], 0.1, 2)\n    losses.append"),  # called twice
        ("sgd([w, b], 0.3, 2)", "step = sgd\n    step([w, b], 0.3, 2)"),
        ("for i in", "held = w\nfor i in"),
        ("for i in", "held = [w]\nprint(held)\nfor i in"),
        ("param.grad / size", "param.grad.norm()"),
        ("            param.grad.zero_()\n", ""),  # gradients add up
    ],
)
def test_other_functions_that_change_tensors_stay(old: str, new: str) -> None:
    text = textwrap.dedent(FUNCTIONS["of a list at the place"][0])
    assert old in text
    head = HEAD.replace("params = [w, b]\n", "")
    assert not translate(head + text).gaps and translate(head + text.replace(old, new)).gaps


@pytest.mark.parametrize(("behind", "gaps"), [("print(params)", 1), ("print(w)", 0)])
def test_a_list_that_holds_a_tensor_would_not_see_what_is_written_into_it(behind: str, gaps: int) -> None:
    step = "for i in range(5):\n    w.grad = None\n    loss = ((x @ w - y) ** 2).mean()\n    loss.backward()\n"
    left = translate(f"{HEAD}{step}    w.data -= 0.1 * w.grad\n{behind}\n").gaps
    assert ["would not see" in gap.reason for gap in left] == [True] * gaps
