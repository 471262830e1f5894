"""Training code that is not surely understood stays whole, and code that only looks like it stays as it is."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

HEAD = """\
import torch
import torch.nn as nn

model = nn.Linear(3, 2)
other = nn.Linear(2, 2)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
second = torch.optim.SGD(model.parameters(), lr=0.2)
loader = [(torch.ones(4, 3), torch.ones(4, 2))]
"""

REFUSED = {
    "a norm of gradients for the log": (
        """\
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    total = sum(p.grad.norm().item() for p in model.parameters())
    optimizer.step()
    print(total)
""",
        "works on the gradients in .grad",
    ),
    "an optimizer of another file": (
        """\
from trainers import make

held = make(model)
for x, y in loader:
    model.zero_grad()
    criterion(model(x), y).backward()
    held.step()
""",
        "What held is isn't known here",
    ),
    "a closure": (
        """\
for x, y in loader:
    def closure():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        return loss
    print(closure())
    optimizer.step(closure)
""",
        "closure",
    ),
    "a gradient of more than one number": (
        """\
for x, y in loader:
    optimizer.zero_grad()
    out = model(x)
    out.backward(*weights(out))
    optimizer.step()
""",
        "with arguments",
    ),
    "a gradient of a gradient": (
        """\
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward(create_graph=True)
    optimizer.step()
""",
        "create_graph",
    ),
    "gradients that are never cleared": (
        """\
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
""",
        "aren't zeroed",
    ),
    "a loss from a function that prints": (
        """\
def compute(model, x, y):
    out = model(x)
    print(out.mean())
    return criterion(out, y)


for x, y in loader:
    optimizer.zero_grad()
    loss = compute(model, x, y)
    loss.backward()
    optimizer.step()
""",
        "it prints",
    ),
    "gradients that nothing clears": (
        """\
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
""",
        "aren't zeroed",
    ),
    "a matrix product with a gradient": (
        """\
for x, y in loader:
    model.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    for p in model.parameters():
        p.data -= 0.1 * (p.grad @ p.grad.T @ p.data)
""",
        "works on the gradients in .grad",
    ),
    "two optimizers of one module": (
        """\
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    second.step()
""",
        "Two optimizers update the same parameters",
    ),
    "a loss of another module": (
        """\
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(other(y), y)
    loss.backward()
    optimizer.step()
""",
        "doesn't depend on the modules",
    ),
    "a step in another function": (
        """\
def forward_backward(x, y):
    loss = criterion(model(x), y)
    loss.backward()
    return loss


for x, y in loader:
    optimizer.zero_grad()
    assert forward_backward(x, y) is not None
    optimizer.step()
""",
        "isn't made in the function",
    ),
    "a penalty on the gradient by two inputs": (
        """\
for x, y in loader:
    optimizer.zero_grad()
    x.requires_grad_()
    out = model(x)
    gx, gy = torch.autograd.grad(out.sum(), (x, y), create_graph=True)
    loss = criterion(out, y) + (gx ** 2).mean() + gy.mean()
    loss.backward()
    optimizer.step()
""",
        "torch.autograd.grad",
    ),
    "frozen parameters that an optimizer has": (
        """\
for p in model.parameters():
    p.requires_grad = False
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
""",
        "frozen by requires_grad",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_loop_that_is_not_surely_understood_stays_whole(name: str) -> None:
    loop, reason = REFUSED[name]
    result = translate(HEAD + loop)
    lines = [line for line in result.code.splitlines(keepends=True) if not line.strip().startswith("# TODO(t2j): ")]
    kept = loop[loop.index("for x, y in loader") :]
    assert kept in "".join(lines)
    assert any(reason in gap.reason for gap in result.gaps), [gap.reason for gap in result.gaps]
    assert "value_and_grad(" not in "".join(lines)


LOOK_ALIKES = {
    "a layer of numpy with a backward method": """\
import numpy as np


class Dense:
    def __init__(self, n):
        self.w = np.ones((n, n))
        self.grad = None

    def forward(self, x):
        self.x = x
        return x @ self.w

    def backward(self, grad):
        self.grad = self.x.T @ grad
        return grad @ self.w.T

    def step(self, lr):
        self.w -= lr * self.grad


layer = Dense(3)
for x, y in [(np.ones((2, 3)), np.zeros((2, 3)))]:
    out = layer.forward(x)
    layer.backward(out - y)
    layer.step(0.1)
""",
    "an environment that is stepped": """\
def rollout(env, policy):
    state, total = env.reset(), 0
    while True:
        state, reward, done = env.step(policy(state))
        total += reward
        if done:
            return total
""",
    "a model that is fitted": """\
def train(model, data, epochs):
    for epoch in range(epochs):
        model.fit(data.x, data.y)
        print(epoch, model.score(data.x, data.y))
""",
    "a scheduler of jobs": """\
class Scheduler:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


scheduler = Scheduler(None)
""",
    "a training loop of JAX": """\
from flax import nnx


@nnx.jit
def train_step(model, optimizer, x, y):
    def loss_fn(model):
        return ((model(x) - y) ** 2).mean()

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss
""",
    "a loss that is only summed": """\
def average(losses):
    total = 0.0
    for loss in losses:
        total += loss.data
    return total / len(losses)
""",
    "requires_grad of something else": """\
class Flag:
    requires_grad = True


flag = Flag()
flag.requires_grad = False
""",
    "clipping by a function of the same name": """\
def clip_grad_norm_(parameters, max_norm):
    return [min(p, max_norm) for p in parameters]


print(clip_grad_norm_([1, 2, 3], 2))
""",
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_code_that_only_looks_like_training_stays(name: str) -> None:
    result = translate(LOOK_ALIKES[name])
    assert result.code == LOOK_ALIKES[name]
    assert result.gaps == ()


@pytest.mark.parametrize(
    "name", sorted(LOOK_ALIKES.keys() - {"a scheduler of jobs"})
)  # it may wrap an optimizer of PyTorch
def test_it_stays_beside_a_loop_that_converts(name: str) -> None:
    """The same in a file that also trains. There the scheduler of jobs would pass for a wrapper of an optimizer."""
    trains = """\


network = torch.nn.Linear(3, 2)
sgd = torch.optim.SGD(network.parameters(), lr=0.1)
for features, target in [(torch.ones(4, 3), torch.ones(4, 2))]:
    sgd.zero_grad()
    error = torch.nn.functional.mse_loss(network(features), target)
    error.backward()
    sgd.step()
"""
    result = translate(f"import torch\n{LOOK_ALIKES[name]}{trains}")
    kept = LOOK_ALIKES[name].partition("\n\n\n")[2] or LOOK_ALIKES[name]
    assert kept in result.code
    assert "sgd.update(network, grads)" in result.code
    assert result.gaps == ()


CASES = """
class Case:
    def step(self, size=2):
        net, head = nn.Linear(size, 3), nn.Linear(3, 1)
        groups = [{"params": net.parameters()}, {"params": head.parameters()}]
        optimizer = torch.optim.Adam(groups, lr=0.01)
        loss = head(net(torch.randn(4, size))).sum()
        loss.backward()
        optimizer.step()

    def steps(self, sizes=(2, 3)):
        return [self.step(size=size) for size in sizes]

    def built(self):
        return nn.Linear(2, 2)
"""


def test_who_calls_a_function_that_stays_hands_it_no_rngs() -> None:
    translation = translate("import torch\nimport torch.nn as nn\n" + CASES)
    assert [gap.code for gap in translation.gaps] == ["training-loop"]
    assert "def steps(self, sizes=(2, 3)):\n        return [self.step(size=size) for size in sizes]" in translation.code
    assert "def built(self, *, rngs: nnx.Rngs):" in translation.code
