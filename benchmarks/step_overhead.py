"""What a call of a compiled train step costs, by how it is called: NNX's ways, jax.jit over a split state, and PyTorch.

    python -m benchmarks.step_overhead [--rounds N] [--steps N]

Small models, where the call is most of a step. Each is written in PyTorch and converted; ``emitted`` is the train step
that t2j writes. All run in one process, a block of steps of each in turn, so that whatever else the machine does meets
all of them. The figures are medians over the rounds, in milliseconds of wall time and of processor time for each step,
and the median over the rounds of the ratio to ``nnx.jit`` in the same round. Losses after as many steps have to agree.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
import torch
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.commands.output import print_table
from t2j_lsp.weights import load_torch_state

TRAINING = """
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
x = torch.zeros(SHAPE)
y = torch.zeros(SIZE, dtype=torch.long)
for step in range(0):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""
MODELS = {
    "MLP": (
        (32, 20),
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.net(x)
""",
    ),
    "CNN": (
        (16, 1, 16, 16),
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(16)
        self.fc = nn.Linear(256, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))
""",
    ),
    "LSTM": (
        (16, 12, 8),
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 32, batch_first=True)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])
""",
    ),
}
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
Step = Callable[[Any, Any], Any]


def sides(name: str) -> tuple[dict[str, Any], dict[str, Any], Any, Any]:
    """The namespaces of a model's PyTorch program and of its conversion, and a batch."""
    shape, text = MODELS[name]
    source = HEAD + text + TRAINING.replace("SHAPE", str(shape)).replace("SIZE", str(shape[0]))
    torch_side: dict[str, Any] = {"__name__": name}
    exec(source, torch_side)
    translation = convert(source)
    assert not translation.gaps, translation.gaps
    jax_side: dict[str, Any] = {"__name__": name}
    exec(translation.code, jax_side)
    rng = np.random.default_rng(0)
    return torch_side, jax_side, rng.standard_normal(shape).astype(np.float32), rng.integers(0, 10, shape[0])


def variants(name: str) -> dict[str, Step]:
    """The ways to make one step with a batch, by name; each trains a model of its own, from the same values."""
    torch_side, jax_side, x, y = sides(name)
    state = {key: value.clone().numpy() for key, value in torch_side["model"].state_dict().items()}

    def fresh() -> tuple[nnx.Module, nnx.Optimizer[Any]]:
        model = jax_side["Net"](rngs=nnx.Rngs(0))
        load_torch_state(model, state)
        return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    load_torch_state(jax_side["model"], state)
    criterion = jax_side["criterion"]

    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, grads = nnx.value_and_grad(lambda model: criterion(model(x), y))(model)
        optimizer.update(model, grads)
        return loss

    steps: dict[str, Step] = {"torch": _torch_step(torch_side)}
    steps["emitted"] = jax_side["train_step"]
    for label, options in (
        ("nnx.jit", {"graph": True}),
        ("graph_updates=False", {"graph_updates": False}),
        ("graph=False", {"graph": False}),
    ):
        pair = fresh()
        steps[label] = functools.partial(nnx.jit(step, **options), *pair)  # type: ignore[call-overload]
    steps["jit_partial"] = nnx.jit_partial(step, *fresh(), graph=False)
    steps["cached_partial"] = nnx.cached_partial(nnx.jit(step), *fresh())
    steps["jax.jit, split"] = _split_step(step, *fresh())
    return {label: functools.partial(one, x, y) for label, one in steps.items()}


def _torch_step(side: dict[str, Any]) -> Step:
    model, optimizer, criterion = side["model"], side["optimizer"], side["criterion"]

    def step(x: Any, y: Any) -> Any:
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _split_step(step: Callable[..., Any], model: Any, optimizer: Any) -> Step:
    graphdef, held = nnx.split((model, optimizer))

    @jax.jit
    def pure(state: Any, x: Any, y: Any) -> Any:
        model, optimizer = nnx.merge(graphdef, state)
        loss = step(model, optimizer, x, y)
        return loss, nnx.state((model, optimizer))

    def made(x: Any, y: Any) -> Any:
        nonlocal held
        loss, held = pure(held, x, y)
        return loss

    return made


def measure(name: str, rounds: int, steps: int) -> list[tuple[str, ...]]:
    """The rows of a model's table."""
    ways: dict[str, Any] = variants(name)
    losses: dict[str, float] = {}
    for label, one in ways.items():
        for _ in range(5):
            losses[label] = float(one())
    worst = max(abs(loss - losses["torch"]) for loss in losses.values())
    assert worst < 1e-4, losses
    wall: dict[str, list[float]] = {label: [] for label in ways}
    used: dict[str, list[float]] = {label: [] for label in ways}
    for _ in range(rounds):
        for label, one in ways.items():
            start, start_used = time.perf_counter(), time.process_time()
            for _ in range(steps):
                loss = one()
            float(loss)
            wall[label].append((time.perf_counter() - start) / steps * 1000)
            used[label].append((time.process_time() - start_used) / steps * 1000)
    rows = []
    for label in ways:
        ratio = statistics.median(a / b for a, b in zip(used[label], used["nnx.jit"], strict=True))
        figures = statistics.median(wall[label]), min(wall[label]), statistics.median(used[label])
        rows.append((name, label, *(f"{one:.3f}" for one in figures), f"{ratio:.2f}"))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for name in arguments.models for row in measure(name, arguments.rounds, arguments.steps)]
    headers = ("model", "step", "wall ms", "least wall ms", "processor ms", "processor / nnx.jit")
    print_table(headers, rows, numeric=(2, 3, 4, 5))
    return 0


if __name__ == "__main__":
    sys.exit(main())
