"""A module is trained with its file's own optimizer, schedule and loss: right conversions and planted mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict, VerdictKind
from t2j_lsp.translate import translate

from .conftest import AMPLE
from .own_training import HEAD, said

MAIN = """

def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def main():
    model = Net()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-2)
    scheduler = CosineAnnealingLR(optimizer, T_max=10)
    loader = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(4)]
    for epoch in range(3):
        train_one_epoch(model, loader, optimizer, criterion)
        scheduler.step()
"""
TrainingCheck = Callable[..., ObjectVerdict]


@pytest.fixture
def trained(pool: Pool, tmp_path: Path) -> TrainingCheck:
    """``trained(source, *edits)``: the verdict on Net and its conversion by the rules, with edits of that."""

    def run(source: str, *edits: tuple[str, str]) -> ObjectVerdict:
        path = tmp_path / "training.py"
        path.write_text(source)
        text = translate(source).code
        for old, new in edits:
            assert old in text, text
            text = text.replace(old, new)
        (tmp_path / "converted.py").write_text(text)
        report = check_files(
            path, tmp_path / "converted.py", ["Net"], pool=pool, initial=False, eager=False, budget=AMPLE
        )
        return report.objects[0]

    return run


def placed(verdict: ObjectVerdict, folder: Path) -> tuple[str, str]:
    """The two lines of a difference, without what is left of them."""
    assert (
        verdict.divergence is not None and verdict.divergence.torch is not None and verdict.divergence.jax is not None
    )
    torch, jax = verdict.divergence.torch.line, verdict.divergence.jax.line
    lines = [(folder / name).read_text().splitlines() for name in ("training.py", "converted.py")]
    return lines[0][torch - 1].strip(), lines[1][jax - 1].strip()


def test_a_right_conversion_is_trained_as_its_file_trains_it(trained: TrainingCheck) -> None:
    verdict = trained(HEAD + MAIN)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert said(verdict) == (
        "its own optimizer SGD (line 32), schedule CosineAnnealingLR (line 33), loss CrossEntropyLoss (line 31)"
    )
    assert "train loss" in verdict.stages["numeric"].observed
    assert any("step 8 with the file's own optimizer" in text for text in verdict.stages["behavioral"].observed)


MISTAKES = [
    ("label_smoothing=0.1", "label_smoothing=0.2", "criterion"),
    ("functools.partial(cross_entropy, label_smoothing=0.1)", "cross_entropy", "criterion"),
    (", momentum=0.9)", ", momentum=0.8)", "tx"),
    (", momentum=0.9)", ", momentum=0.9, nesterov=True)", "tx"),
    ("add_decayed_weights(5e-2)", "add_decayed_weights(5e-3)", "tx"),
    ("optax.add_decayed_weights(5e-2),", "", "tx"),
    ("cosine_annealing(0.1, 10)", "cosine_annealing(0.1, 11)", "scheduler"),
    ("cosine_annealing(0.1, 10)", "cosine_annealing(0.01, 10)", "scheduler"),
    ("cosine_annealing(0.1, 10)", "optax.cosine_decay_schedule(0.1, 10)", "scheduler"),
    (", momentum=0.9)", ", momentums=0.9)", "tx"),
]


@pytest.mark.parametrize(("old", "new", "what"), MISTAKES, ids=[f"{old} -> {new}" for old, new, _ in MISTAKES])
def test_a_mistake_in_the_training_is_seen_at_its_line(
    trained: TrainingCheck, tmp_path: Path, old: str, new: str, what: str
) -> None:
    verdict = trained(HEAD + MAIN, (old, new))
    assert verdict.verdict is VerdictKind.DIFFERENT
    torch, jax = placed(verdict, tmp_path)
    assert torch.startswith(f"{what.replace('tx', 'optimizer')} = ") and jax.startswith(f"{what} = "), verdict.reason


SCRIPT = """
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-2)
args = parser.parse_args([])
model = Net()
optimizer = optim.AdamW(model.parameters(), lr=args.lr)
scheduler = StepLR(optimizer, step_size=2, gamma=args.lr)
for step in range(100):
    raise RuntimeError("a check trains nothing but its own batches")
    x, y = torch.randn(4, 5), torch.randint(0, 3, (4,))
    loss = F.cross_entropy(model(x), y, label_smoothing=0.2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
"""
TRAINER = """
class Trainer:
    def __init__(self, model, rate, batches):
        self.model = model
        self.batches = batches
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=rate, momentum=0.5)
        self.criterion = nn.CrossEntropyLoss()

    def run(self):
        for x, y in self.batches:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()


Trainer(Net(), 0.05, []).run()
"""
GROUPS = """
model = Net()
optimizer = optim.SGD([
    {"params": model.fc2.parameters(), "lr": 0.01},
    {"params": model.fc1.parameters()},
], lr=0.1, momentum=0.9)
"""
PART = """
model = Net()
optimizer = optim.Adam(model.fc2.parameters(), lr=0.05)
"""
PER_BATCH = """
def main(epochs, train_loader):
    model = Net()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    scheduler = OneCycleLR(optimizer, max_lr=0.1, epochs=epochs, steps_per_epoch=len(train_loader))
    for epoch in range(epochs):
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
"""
CHOSEN = """
def get_optimizer(model, name, rate=0.1):
    if name == "sgd":
        return optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    elif name == "rmsprop":
        return optim.RMSprop(model.parameters(), lr=rate)


def build():
    return Net()


net = build()
net = net.to("cpu")
optimizer = get_optimizer(net, "sgd")
"""
BRANCHES = """
use_sgd = False
model = Net()
if use_sgd:
    optimizer = optim.SGD(model.parameters(), lr=0.1)
else:
    optimizer = optim.Adagrad(model.parameters(), lr=0.1)
"""
LIGHTNING = """
    def configure_optimizers(self):
        optimizer = optim.AdamW(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": StepLR(optimizer, step_size=2)}
"""
WARM = """
def warm(optimizer, steps):
    return optim.lr_scheduler.LambdaLR(optimizer, lambda count: min(1.0, (count + 1) / steps))


model = Net()
optimizer = optim.SGD(model.parameters(), lr=0.1)
scheduler = warm(optimizer, 20)
for epoch in range(3):
    for x, y in []:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    scheduler.step()
"""
SHAPES = {
    "a function that chooses": (CHOSEN, "SGD", ""),
    "branches": (BRANCHES, "Adagrad", "(line 24)"),
    "a method of the module": (LIGHTNING, "AdamW", ""),
    "a schedule from a function": (WARM, "SGD", "schedule LambdaLR"),
    "script with argparse": (SCRIPT, "AdamW", "loss cross_entropy"),
    "trainer": (TRAINER, "RMSprop", "loss CrossEntropyLoss"),
    "groups": (GROUPS, "SGD", ""),
    "part of the module": (PART, "Adam", ""),
    "parameters nobody gives": (PER_BATCH, "Adam", "schedule OneCycleLR"),
}
WRONG = {
    "a function that chooses": ("momentum=0.9", "momentum=0.8"),
    "branches": ("scale_by_learning_rate(0.1)", "scale_by_learning_rate(0.2)"),
    "a method of the module": ("weight_decay=0.01", "weight_decay=0.02"),
    "a schedule from a function": ("(count + 1)", "(count + 2)"),
    "script with argparse": ("weight_decay=0.01", "weight_decay=0.001"),
    "trainer": ("decay=0.99", "decay=0.9"),
    "groups": ("optax.sgd(0.01, momentum=0.9)", "optax.sgd(0.1, momentum=0.9)"),
    "part of the module": ("optax.adam(0.05)", "optax.adam(0.05, b2=0.99)"),
    "parameters nobody gives": ("epochs * ", "2 * epochs * "),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_wherever_the_optimizer_is_made(trained: TrainingCheck, shape: str) -> None:
    source, optimizer, more = SHAPES[shape]
    verdict = trained(HEAD + source)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert f"its own optimizer {optimizer} " in said(verdict) and more in said(verdict), said(verdict)
    assert trained(HEAD + source, WRONG[shape]).verdict is VerdictKind.DIFFERENT


DROPPING = """
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 7), nn.Dropout(0.3), nn.Linear(7, 3))

    def forward(self, x):
        return self.layers(x)


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
"""


def test_inputs_that_the_loss_asks_for_have_draws_of_their_own(trained: TrainingCheck) -> None:
    """Cross entropy takes scores of two axes, where the other stages give the module three."""
    verdict = trained(DROPPING)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert said(verdict).endswith("loss CrossEntropyLoss (line 16)")
    assert trained(DROPPING, ("nnx.Dropout(0.3", "nnx.Dropout(0.4")).verdict is VerdictKind.DIFFERENT


def test_the_example_that_trains_is_right(pool: Pool, tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "examples" / "train_spirals.py"
    (tmp_path / "converted.py").write_text(translate(path.read_text()).code)
    report = check_files(path, tmp_path / "converted.py", pool=pool, initial=False, eager=False, budget=AMPLE)
    result = {one.name: (one.verdict, one.reason) for one in report.objects}
    assert result["SpiralNet"][0] is VerdictKind.EQUIVALENT and result["spirals"][0] is VerdictKind.EQUIVALENT, result


ALONE = [
    ("optimizer = optim.SGD(model.parameters(), lr=settings())", "name 'settings' is not defined"),
    ("model.fc2 = nn.Linear(7, 4)\noptimizer = optim.SGD(model.parameters(), lr=0.1)", "alters model"),
    ("optimizer = optim.SGD(model.parameters(), lr=0.1, differentiable=True)", "is still PyTorch"),
    ("optimizer = optim.LBFGS(model.parameters())", "missing 1 required positional argument: 'closure'"),
    (
        "optimizer = optim.SGD(model.parameters(), lr=0.1)\nfor group in optimizer.param_groups: group['lr'] = 0.2",
        "learning rates from the training loop",
    ),
]


@pytest.mark.parametrize(("text", "reason"), ALONE, ids=[reason for _, reason in ALONE])
def test_what_cant_be_made_alone_is_said(trained: TrainingCheck, text: str, reason: str) -> None:
    verdict = trained(f"{HEAD}\nmodel = Net()\n{text}\n")
    assert verdict.verdict is VerdictKind.EQUIVALENT
    assert verdict.stages["behavioral"].reason is not None
    assert verdict.stages["behavioral"].reason.startswith("trained with Adam only: the optimizer in line ")
    assert reason in verdict.stages["behavioral"].reason


def test_a_gradient_that_is_only_rounding_accuses_nobody(trained: TrainingCheck) -> None:
    """A bias in front of a normalization has none, and Adam makes whole steps of what rounding leaves."""
    verdict = trained(f"{HEAD}\nmodel = Net()\noptimizer = optim.Adam(model.parameters(), lr=0.1)\n")
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert said(verdict) == "its own optimizer Adam (line 20)"


def test_code_that_trains_is_named(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "training.py"
    path.write_text(HEAD + MAIN)
    report = check_files(path, translate(HEAD + MAIN).code, pool=pool, stage="spec")
    assert [(one.name, one.line) for one in report.not_run] == [("train_one_epoch", 20)]
    assert report.to_json()["not_run"] == [{"name": "train_one_epoch", "line": 20}]


def test_a_training_without_end_leaves_the_verdict_on_the_module(pool: Pool, tmp_path: Path) -> None:
    source = f"{HEAD}\ndef rate():\n    while True: pass\n\n"
    source += "model = Net()\noptimizer = optim.SGD(model.parameters(), rate())\n"
    path = tmp_path / "training.py"
    path.write_text(source)
    report = check_files(
        path, translate(source).code, ["Net"], pool=pool, initial=False, eager=False, timeout=8, budget=AMPLE
    )
    assert report.objects[0].verdict is VerdictKind.EQUIVALENT, report.objects[0].reason
    assert "the torch side did not finish in 8 s" in (report.objects[0].stages["behavioral"].reason or "")


def test_a_function_of_a_library_does_not_change_what_the_optimizer_needs(trained: TrainingCheck) -> None:
    """``nnx.update`` gave the checked model another one's weights, on one side."""
    verdict = trained(
        f"{HEAD}\nteacher = Net()\nmodel = Net()\nmodel.load_state_dict(teacher.state_dict())\n"
        "first = optim.Adam(teacher.parameters(), lr=0.1)\noptimizer = optim.SGD(model.parameters(), lr=0.1)\n"
    )
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
