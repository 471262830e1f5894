"""Classes that hold the tensors that a program trains: modules, with parameters."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

BY_HAND = """\
import torch


class Regression:
    \"\"\"A line.\"\"\"

    def __init__(self, n, lr=0.1):
        \"\"\"Draws the weights.\"\"\"
        self.lr = lr
        self.w = torch.randn(n, 1, requires_grad=True)
        self.b = torch.zeros(1).mul_(2).requires_grad_()

    def forward(self, x):
        return x @ self.w + self.b

    def fit(self, x, y, epochs):
        for epoch in range(epochs):
            loss = ((self.forward(x) - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                self.w -= self.lr * self.w.grad
                self.b -= self.lr * self.b.grad
            self.w.grad.zero_()
            self.b.grad.zero_()
            print(loss.item())


x, y = torch.randn(8, 3), torch.randn(8, 1)
model = Regression(3)
model.fit(x, y, 3)
print(model.w, model.b.item())
"""
STEPS = BY_HAND[BY_HAND.index("            with torch.no_grad") : BY_HAND.index("            print(loss")]
OPTIMIZED = BY_HAND.replace(STEPS, "            self.opt.step()\n")
OPTIMIZED = OPTIMIZED.replace(
    "            loss.backward()", "            self.opt.zero_grad()\n            loss.backward()"
)
MADE = "        self.opt = torch.optim.Adam([self.w, self.b], lr=lr)\n\n"
OPTIMIZED = OPTIMIZED.replace("    def forward", f"{MADE}    def forward")


def test_a_class_with_tensors_is_a_module_with_parameters() -> None:
    translation = convert(BY_HAND)
    assert not translation.gaps
    code = translation.code
    assert "class Regression(nnx.Module):" in code and "self.w = nnx.Param(rngs.normal((n, 1)))" in code
    assert "self.b = nnx.Param(jnp.zeros(1) * 2)" in code
    assert "lambda p, g: p - self.lr * g" in code and ".grad" not in code


def test_an_optimizer_of_all_of_them_is_the_modules() -> None:
    translation = convert(OPTIMIZED)
    assert not translation.gaps
    assert "self.opt = nnx.Optimizer(self, optax.adam(lr), wrt=nnx.Param)" in translation.code
    outside = OPTIMIZED.replace(MADE, "").replace("self.opt", "opt")
    outside = outside.replace("y, epochs):", "y, epochs, opt):").replace(
        "model.fit(x, y, 3)", "model.fit(x, y, 3, opt)"
    )
    outside = outside.replace("model.fit", "opt = torch.optim.SGD([model.w, model.b], lr=0.1)\nmodel.fit", 1)
    assert "opt = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)" in convert(outside).code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.b -= self.lr * self.b.grad", "self.b -= 2 * self.lr * self.b.grad"),
        ("                self.b -= self.lr * self.b.grad\n", ""),
        ("            self.b.grad.zero_()\n", ""),
        ("            print(loss.item())", "            print(self.w.grad)"),
        ("            print(loss.item())", "            self.last = loss.item()"),
        ("        self.lr = lr\n", "        self.lr = lr\n        self.seen = []\n"),
        ("    def forward(self, x)", "    def train(self):\n        pass\n\n    def forward(self, x)"),
        ("class Regression:", "class Base:\n    pass\n\n\nclass Regression(Base):"),
    ],
)
def test_what_is_trained_otherwise_stays(old: str, new: str) -> None:
    assert old in BY_HAND
    translation = convert(BY_HAND.replace(old, new))
    assert translation.gaps
    assert "nnx.Module" not in translation.code


@pytest.mark.parametrize("given", ["[self.b, self.w]", "[self.w]", "[self.w, self.b, torch.zeros(1)]"])
def test_an_optimizer_of_others_stays(given: str) -> None:
    assert convert(OPTIMIZED.replace("[self.w, self.b]", given)).gaps
