"""Gradients by inputs: attacks and samplers, which read ``x.grad`` or ask ``torch.autograd.grad`` for it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp import convert, load_torch_state

from .side_by_side import sides

HEAD = """\
import torch
from torch import nn

model = nn.Linear(3, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(4, 3), torch.rand(4, 2)))
"""
ATTACK = """\
def attack(model, x, y):
    {start}
    for _ in range(3):
        {flag}
        loss = (model(x) - y).pow(2).mean()
        {gradient}
        {change}
    return {result}
"""
PARTS = {
    "start": "pass",
    "flag": "x.requires_grad = True",
    "gradient": "loss.backward(); g = x.grad",
    "change": "x = (x + 0.1 * g.sign()).detach()",
    "result": "x",
}
TRAINED = """\
for x, y in loader:
    x = attack(model, x, y)
    opt.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    opt.step()
"""


def converted(use: str = TRAINED, **parts: str) -> tuple[str, list[str]]:
    done = convert(HEAD + ATTACK.format(**PARTS | parts) + use)
    return done.code, [gap.reason for gap in done.gaps]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"flag": "x.requires_grad_()", "gradient": "g = torch.autograd.grad(loss, [x])[0]"},
        {"flag": "x.requires_grad_(True)", "gradient": "g, = torch.autograd.grad(loss, x, retain_graph=False)"},
        {"start": "x = x.clone().detach()", "gradient": "model.zero_grad(); loss.backward(); g = x.grad.data"},
        {
            "start": "x = torch.zeros_like(x, requires_grad=True)",
            "flag": "pass",
            "gradient": "loss.backward(); g = x.grad.detach()",
            "change": "x.data = (x + g.sign()).clamp(0, 1); x.grad.zero_()",
            "result": "x.detach()",
        },
    ],
    ids=["x.grad", "autograd.grad", "unpacked", "a copy", "written through data"],
)
def test_gradients_by_inputs_are_given_by_a_function(parts: dict[str, str]) -> None:
    code, gaps = converted(**parts)
    assert not gaps
    assert "value_and_grad(loss_fn)(x, model)" in code, "the gradient is by x alone"
    assert "    x = attack(model, x, y)\n    train_step(x, y)\n" in code
    assert "requires_grad" not in code and ".grad" not in code.replace("jax.grad", "").replace("value_and_grad", "")


@pytest.mark.parametrize(
    ("use", "parts"),
    [
        ("x = torch.rand(4, 3)\nfor y in range(2):\n    attack(model, x, y)\n", {}),
        ("", {}),
        (TRAINED, {"change": "pass"}),
        (TRAINED, {"change": "x = x.to('cpu')"}),
        (TRAINED, {"start": "x = torch.autograd.Variable(x, requires_grad=True)", "change": "x.data += x.grad.sign()"}),
        (TRAINED, {"gradient": "g = torch.autograd.grad(loss, x, create_graph=flag)[0]"}),
    ],
    ids=[
        "called twice with one tensor",
        "called by others",
        "the same tensor again",
        "perhaps the same tensor",
        "written into the caller's tensor",
        "perhaps a graph",
    ],
)
def test_gradients_that_may_add_up_and_tensors_that_others_hold_stay(use: str, parts: dict[str, str]) -> None:
    assert converted(use, **parts)[1]


def test_a_tensor_that_a_statement_in_front_makes_takes_no_part() -> None:
    source = """\
for x, y in loader:
    x, y = x.to("cpu"), y.to("cpu")
    x.requires_grad = True
    out = model(x)
    if out.sum().item() > 9:
        continue
    loss = (out - y).pow(2).mean()
    loss.backward()
    print((x + x.grad.data.sign()).sum().item())
"""
    code = convert(HEAD + source).code
    assert "    def loss_fn(x, model):\n        out = model(x)\n" in code


def test_tensors_of_a_data_set_are_handed_to_a_step_as_arrays() -> None:
    source = """\
x, y = torch.rand(8, 3), torch.rand(8, 2)
pairs = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y))
for _ in range(2):
    opt.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    opt.step()
for a, b in pairs:
    print(model(a).sum().item())
"""
    code = convert(HEAD + source).code
    assert "train_step(jnp.asarray(x), jnp.asarray(y))" in code
    assert "def train_step(model, opt, x, y):" in code and "(model(x) - y)" in code


TRAINED_THROUGH = {
    "a penalty": "def given(model, x):\n    x = (x + 1).requires_grad_(True)\n    out = model(x)\n"
    "    g = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True)[0]\n"
    "    return (g.norm(2, dim=1) - 1).pow(2)\n",
    "a method of a module": "class Net(nn.Linear):\n    def sample(self, x):\n        return self(x)\n\n\n"
    "model = Net(3, 2)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\n\n\n"
    "def given(model, x):\n    return model.sample(x)\n",
    "what it is given": "def given(model, x):\n    return shifted(model(x))\n\n\n"
    "def shifted(h):\n    return h * 2 + 1\n",
}


@pytest.mark.parametrize("made", TRAINED_THROUGH.values(), ids=TRAINED_THROUGH)
def test_what_a_function_gives_with_gradients_is_computed_in_the_loss(made: str) -> None:
    loop = "for x, y in loader:\n    opt.zero_grad()\n    more = given(model, x)\n"
    loop += "    loss = (model(x) - y).pow(2).mean() + more.mean()\n    loss.backward()\n    opt.step()\n"
    done = convert(f"{HEAD}\n\n{made}\n\n{loop}")
    assert not done.gaps
    assert "more = given(model, x" in done.code.partition("def loss_fn")[2].partition("return")[0]


PHYSICS = """\
def residual(model, x, t):
    {flag}
    u = model(torch.cat([x, t], dim=1))
    u_t = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), create_graph=True)[0]
    return (u_t - u).pow(2).mean()


net = nn.Linear(2, 1)
adam = torch.optim.Adam(net.parameters())
x, t = torch.rand(5, 1), torch.rand(5, 1)
for _ in range(2):
    adam.zero_grad()
    loss = residual(net, x, t)
    loss.backward()
    adam.step()
"""


@pytest.mark.parametrize("flag", ["t.requires_grad_(True)", "t.requires_grad = True"])
def test_a_loss_may_say_of_its_inputs_that_they_are_differentiated(flag: str) -> None:
    done = convert(HEAD + PHYSICS.format(flag=flag))
    assert not done.gaps
    assert "jax.grad(lambda t: jnp.sum(model(jnp.concatenate([x, t], axis=1))))(t)" in done.code


GUIDED = """\
import torch
import torch.nn.functional as F


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(x).tanh()


{decorator}
def guide(x, classifier, y, scale=3.0):
    with {context}:
        x_in = x.detach().requires_grad_(True)
        logits = classifier(x_in)
        chosen = F.log_softmax(logits, dim=-1)[range(len(logits)), y.view(-1)]
        grad = {gradient}
        return grad
"""
ASKED = "torch.autograd.grad(chosen.sum(), x_in)[0]"


@pytest.mark.parametrize("gradient", [ASKED, f"{ASKED} * scale", f"-(2 * {ASKED}) / scale"])
@pytest.mark.parametrize("context", ["torch.enable_grad()", "torch.autograd.enable_grad()"])
def test_the_gradient_that_guides_a_sampler_is_scaled(gradient: str, context: str) -> None:
    both = sides(GUIDED.format(decorator="", context=context, gradient=gradient), "guided")
    assert not both.gaps() and "value_and_grad" in both.translation.code
    x, y = torch.randn(4, 3), torch.tensor([0, 2, 1, 1])
    net = both.torch.Classifier()
    wanted = both.torch.guide(x, net, y)
    same = load_torch_state(both.jax.Classifier(rngs=nnx.Rngs(0)), net.state_dict())
    value = both.jax.guide(jnp.asarray(x), same, jnp.asarray(y))
    np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("decorator", "context", "gradient"),
    [
        ("@torch.no_grad()", "torch.enable_grad()", ASKED),
        ("", "torch.set_grad_enabled(scale > 1)", ASKED),
        ("", "torch.enable_grad()", f"f({ASKED})"),
        ("", "torch.enable_grad()", f"{ASKED} * {ASKED}"),
    ],
)
def test_what_else_is_done_with_such_a_gradient_stays(decorator: str, context: str, gradient: str) -> None:
    assert convert(GUIDED.format(decorator=decorator, context=context, gradient=gradient)).gaps
