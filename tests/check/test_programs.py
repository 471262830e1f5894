"""Whole programs: right conversions agree whatever they draw, and planted mistakes are found at their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.programs.run import RunSettings, run_program
from t2j_lsp.contract import Options, VerdictKind

from .conftest import Run

LINEAR = """\
import torch
import torch.nn as nn

x = torch.linspace(-1, 1, 40).reshape(20, 2)
y = x @ torch.tensor([[2.0], [-1.0]]) + 0.5
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
losses = []
for epoch in range(12):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {loss.item():.6f}")
"""


DRAWING = """\
import argparse
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc1 = nn.Linear(8, hidden)
        self.drop = nn.Dropout(0.3)
        self.fc2 = nn.Linear(hidden, 3)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.fc1(x))))


def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        nn.init.zeros_(m.bias)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, required=True)
    args = parser.parse_args()
    torch.manual_seed(1)
    start = time.time()
    data = torch.randn(60, 8)
    labels = torch.randint(0, 3, (60,))
    train_set, _ = random_split(TensorDataset(data, labels), [48, 12])
    loader = DataLoader(train_set, batch_size=16, shuffle=True, num_workers=2)
    model = Net(args.hidden)
    model.apply(init_weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        model.train()
        total = 0.0
        for x, y in loader:
            noise = 0.1 * torch.randn_like(x) + np.random.rand() + random.random()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x + noise), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1} loss {total / len(loader):.4f}")
    model.eval()
    with torch.no_grad():
        print("logits", model(data[:4]))
    print("took %.2f s" % (time.time() - start))


if __name__ == "__main__":
    main()
"""


PROJECTS = Path(__file__).parents[1] / "projects"


def line_of(source: str, text: str) -> int:
    """The line of a source that holds a text."""
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


def test_a_program_that_trains_is_equivalent(run: Run) -> None:
    report = run(LINEAR)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert report.steps == 12
    assert {kind: (one.count, one.numbers) for kind, one in report.values.items()} == {
        "printed": (3, 6),
        "collected": (1, 12),
        "saved": (0, 0),
        "parameters": (2, 3),
    }
    assert report.values["parameters"].max_rel_err < 1e-5


def test_what_a_program_draws_is_the_same_on_both_sides(run: Run) -> None:
    """Data, splits, shuffles, initial weights made anew, dropout and noise in compiled steps, numpy and Python."""
    report = run(DRAWING, arguments=("--hidden", "8"))
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert report.values["printed"].numbers == 3 * 2 + 12 + 1
    assert report.values["parameters"].count == 4


DISTRIBUTED = (
    LINEAR.replace("import torch.nn as nn\n", "import torch.distributed as dist\nimport torch.nn as nn\n")
    .replace("x = torch", 'dist.init_process_group("gloo", rank=0, world_size=1)\nx = torch', 1)
    .replace("model = nn.Linear(2, 1)", "model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))")
) + "dist.all_reduce(loss)\nprint(loss / dist.get_world_size())\ndist.barrier()\ndist.destroy_process_group()\n"


def test_a_process_group_of_one_process_needs_no_network(run: Run) -> None:
    report = run(DISTRIBUTED)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert report.values["printed"].numbers == 7


LBFGS = """\
import torch
import torch.nn as nn

x = torch.linspace(-1, 1, 40).reshape(20, 2)
y = x @ torch.tensor([[2.0], [-1.0]]) + 0.5 * x[:, :1] ** 2
model = nn.Linear(2, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    return loss


for epoch in range(3):
    print(f"epoch {epoch}: loss {optimizer.step(closure).item():.6f}")
"""


ZEROED = "    optimizer.zero_grad()\n", "    if epoch % 2 == 0:\n        optimizer.zero_grad()\n"


MISTAKES = {
    "another learning rate": (LINEAR, ("lr=0.1", "lr=0.11")),
    "gradients that add up": (LINEAR, ZEROED),
    "another rate in a group of processes": (DISTRIBUTED, ("lr=0.1", "lr=0.11")),
    "a loss that is scaled in a closure": (LBFGS, (".mean()\n", ".mean() * 1.01\n")),
    "one iteration more": (LBFGS, ("max_iter=3", "max_iter=4")),
    "a sum for a mean": (LINEAR, ("nn.MSELoss()", 'nn.MSELoss(reduction="sum")')),
    "an optimizer with momentum": (LINEAR, ("lr=0.1", "lr=0.1, momentum=0.1")),
    "no bias": (LINEAR, ("nn.Linear(2, 1)", "nn.Linear(2, 1, bias=False)")),
    "another rate of dropout": (DRAWING, ("Dropout(0.3)", "Dropout(0.31)")),
    "never in training mode": (DRAWING, ("model.train()", "model.eval()")),
    "always in training mode": (DRAWING, ("model.eval()", "model.train()")),
    "less noise": (DRAWING, ("0.1 * torch.randn", "0.09 * torch.randn")),
    "no shuffle": (DRAWING, ("shuffle=True", "shuffle=False")),
    "weights as they are made": (DRAWING, ("    model.apply(init_weights)\n", "")),
    "layers that take each other's place": (DRAWING, ("self.fc1(x)", "self.hidden(self.fc1(x))")),
    "another word": (DRAWING, ('print("logits"', 'print("scores"')),
}
"""Source, and the edit that makes the program whose conversion is taken for the source's."""


PLACES = {"always in training mode": 'print("logits"', "another word": 'print("logits"'}
"""A text in the line where the first difference is to be said, where it is not the loss's."""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_different_at_its_line(name: str, run: Run) -> None:
    source, edit = MISTAKES[name]
    if name == "layers that take each other's place":
        first, second = "self.fc1 = nn.Linear(8, hidden)\n", "self.hidden = nn.Linear(hidden, hidden)\n"
        source = source.replace(first, f"{first}        {second}").replace("self.fc1(x)", "self.hidden(self.fc1(x))")
        edit = "self.hidden(self.fc1(x))", "self.fc1(self.hidden(x))"
    report = run(source, mistake=edit, arguments=("--hidden", "8") if "argparse" in source else ())
    assert report.verdict is VerdictKind.DIFFERENT, report
    assert report.divergence is not None and report.divergence.torch is not None and report.divergence.jax is not None
    place = PLACES.get(name, 'print(f"epoch')
    assert report.divergence.torch.line == line_of(source, place), report.divergence


RECURRENT = """\
import json
import logging

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from nets import Tagger

logger = logging.getLogger(__name__)
rng = np.random.default_rng()
words = torch.tensor(rng.integers(0, 20, (12, 7)))
sampler = WeightedRandomSampler(torch.arange(1.0, 13.0), 12)
loader = DataLoader(TensorDataset(words, words % 5), batch_size=6, sampler=sampler)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
history = []
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x).reshape(-1, 5), y.reshape(-1))
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    logger.warning("epoch %d: %.4f", epoch, loss.item())
np.save("history.npy", np.array(history))
with open("history.json", "w") as file:
    json.dump({"last": history[-1]}, file)
"""


NETS = """\
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 12, num_layers=2, dropout=0.4, batch_first=True)
        self.out = nn.Linear(12, 5)

    def forward(self, x):
        return self.out(self.lstm(self.embed(x))[0])
"""


def test_logs_files_samplers_recurrent_dropout_and_neighbours(run: Run) -> None:
    report = run(RECURRENT, nets=NETS)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert {kind: (one.count, one.numbers) for kind, one in report.values.items() if kind != "parameters"} == {
        "printed": (2, 4),
        "collected": (1, 4),
        "saved": (2, 5),
    }


@pytest.mark.parametrize("name", ["classifier", "segmentation", "trainer", "warmup"])
def test_a_program_of_several_files_is_equivalent(name: str, pool: Pool) -> None:
    """Some of them don't import torch, and get schedulers, losses and outputs of models from the others."""

    def converted(path: Path) -> str:
        return convert_file(path, Options()).translation.code

    main = PROJECTS / name / "main.py"
    report = run_program(main, converted(main), RunSettings(), pool=pool, neighbour=converted)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert report.values["parameters"].numbers > 100


def test_a_file_that_is_not_converted_as_a_whole_accuses_nobody(run: Run) -> None:
    nets = "import torch\n\n\ndef sums(x):\n    return torch.ops.aten.cumsum(x, 0)\n"
    source = "import torch\nfrom nets import sums\n\nprint(sums(torch.ones(3)))\n"
    report = run(source, nets=nets)
    assert report.verdict is VerdictKind.UNCHECKED
    assert (report.reason or "").startswith("1 place of nets.py left as PyTorch, and the conversion fails"), report
    whole = nets.replace("torch.ops.aten.cumsum(x, 0)", "x.cumsum(0)[9]")
    report = run(source, nets=whole.replace("[9]", "[:2]"), mistake=("torch.ones(3)", "torch.ones(3)[5]"))
    assert report.verdict is VerdictKind.DIFFERENT, report


def test_numbers_that_pytorch_does_not_settle_accuse_nobody(run: Run) -> None:
    """Steps of a map that makes every rounding some seven times as large."""
    chaotic = "import torch\n\nx = torch.rand(50)\nfor step in range(100):\n    x = torch.sin(7.1 * x)\nprint(x)\n"
    report = run(chaotic)
    assert report.verdict is VerdictKind.UNCHECKED, report
    assert report.reason is not None and report.reason.startswith("chaotic")
    first = run(chaotic.replace("range(100)", "range(8)"))
    assert (first.verdict, first.precision) == (VerdictKind.EQUIVALENT, "float64"), first
    report = run(chaotic.replace("range(100)", "range(8)"), mistake=("7.1", "7.1001"))
    assert report.verdict is VerdictKind.DIFFERENT, report


ZEROS = """
import torch

x = torch.linspace(-1, 1, 100)
print(x.sin().mean().item(), (x**3).mean().item())
print((x.abs() * 1e-20).mean().item())
"""


def test_numbers_that_are_zero_but_for_rounding_accuse_nobody(run: Run) -> None:
    report = run(ZEROS)
    assert (report.verdict, report.precision) == (VerdictKind.EQUIVALENT, "float64"), report
    for mistake in (("x.sin()", "(x + 1e-9).sin()"), ("1e-20", "1.1e-20")):
        assert run(ZEROS, mistake=mistake).verdict is VerdictKind.DIFFERENT, mistake


def test_a_model_in_float64_trains_as_in_pytorch(run: Run) -> None:
    double = LINEAR.replace("nn.Linear(2, 1)", "nn.Linear(2, 1).double()").replace(
        "+ 0.5\n", "+ 0.5\nx, y = x.double(), y.double()\n"
    )
    report = run(double)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert run(double, mistake=("lr=0.1", "lr=0.11")).verdict is VerdictKind.DIFFERENT
