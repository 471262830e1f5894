"""Training code that was converted by hand is followed: its optimizer, what is chained in it, its schedule and loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import VerdictKind

from .conftest import AMPLE
from .own_training import HEAD, said

BY_HAND = """
import jax
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.fc1 = nnx.Linear(5, 7, rngs=rngs)
        self.fc2 = nnx.Linear(7, 3, rngs=rngs)

    def __call__(self, x):
        return self.fc2(jax.nn.relu(self.fc1(x)))


def loss_fn(model, x, y):
    loss = optax.softmax_cross_entropy_with_integer_labels(model(x), y)
    return loss.mean()


def fit(batches, epochs):
    net = Net(rngs=nnx.Rngs(0))
    schedule = optax.cosine_decay_schedule(0.01, 100)
    tx = optax.adamw(schedule, weight_decay=0.1)
    opt = nnx.Optimizer(net, tx, wrt=nnx.Param)
    for _ in range(epochs):
        for x, y in batches:
            loss, grads = nnx.value_and_grad(loss_fn)(net, x, y)
            opt.update(net, grads)
"""
ITS_SOURCE = """
def train(loader, epochs):
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    scheduler = CosineAnnealingLR(optimizer, T_max=100)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
"""


def without_norm(source: str) -> str:
    """The program with a module that needs no helper in JAX."""
    return source.replace("self.bn(self.fc1(x))", "self.fc1(x)").replace("        self.bn = nn.BatchNorm1d(7)\n", "")


HAND_EDITS = [
    ("", "", VerdictKind.EQUIVALENT),
    ("wrt=nnx.Param", "wrt=nnx.All(nnx.Param)", VerdictKind.EQUIVALENT),
    ("nnx.Optimizer(net, tx, wrt=nnx.Param)", "nnx.ModelAndOptimizer(net, tx)", VerdictKind.EQUIVALENT),
    ("optax.adamw(schedule,", "optax.inject_hyperparams(optax.adamw)(schedule,", VerdictKind.EQUIVALENT),
    ("cosine_decay_schedule(0.01, 100)", "cosine_decay_schedule(0.01, 100, alpha=0.1)", VerdictKind.DIFFERENT),
    (", weight_decay=0.1", "", VerdictKind.DIFFERENT),
    ("adamw(schedule", "adamw(0.01", VerdictKind.DIFFERENT),
    ("0.01, 100", "0.01, 99", VerdictKind.DIFFERENT),
    ("optax.adamw(schedule", "optax.lion(schedule", VerdictKind.DIFFERENT),
]


@pytest.mark.parametrize(("old", "new", "wanted"), HAND_EDITS, ids=[f"{o} -> {n}" for o, n, _ in HAND_EDITS])
def test_a_training_written_by_hand(pool: Pool, tmp_path: Path, old: str, new: str, wanted: VerdictKind) -> None:
    path, source = tmp_path / "training.py", HEAD + ITS_SOURCE
    path.write_text(without_norm(source))
    report = check_files(path, BY_HAND.replace(old, new), ["Net"], pool=pool, initial=False, eager=False, budget=AMPLE)
    assert report.objects[0].verdict is wanted, report.objects[0].reason
    assert "AdamW (line 20), schedule CosineAnnealingLR (line 21)" in said(report.objects[0])


CLIPPED = ITS_SOURCE.replace(
    "            optimizer.step()",
    "            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.05)\n            optimizer.step()",
)
CLIP = "optax.stateless(lambda g, _: jax.tree.map(lambda x: x * min(0.05 / (optax.tree.norm(g) + 1e-6), 1), g))"
CLIPS = [
    ("optax.chain(clip, optax.adamw(schedule, weight_decay=0.1))", VerdictKind.EQUIVALENT),
    ("optax.chain(optax.clip_by_global_norm(0.05), optax.adamw(schedule, weight_decay=0.1))", VerdictKind.EQUIVALENT),
    ("optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(schedule, weight_decay=0.1))", VerdictKind.DIFFERENT),
    ("optax.chain(optax.clip_by_global_norm(0.051), optax.adamw(schedule, weight_decay=0.1))", VerdictKind.DIFFERENT),
    ("optax.chain(optax.adamw(schedule, weight_decay=0.1), clip)", VerdictKind.DIFFERENT),
]


@pytest.mark.parametrize(("optimizer", "wanted"), CLIPS, ids=[text for text, _ in CLIPS])
def test_clipping_inside_the_optimizer(pool: Pool, tmp_path: Path, optimizer: str, wanted: VerdictKind) -> None:
    """Adam divides by the size of gradients; to what they are clipped shows in how one is to the next."""
    path, source = tmp_path / "training.py", HEAD + CLIPPED
    path.write_text(without_norm(source))
    text = BY_HAND.replace("optax.adamw(schedule, weight_decay=0.1)", optimizer)
    text = text.replace("    tx = ", f"    clip = {CLIP.replace('min(', 'jax.numpy.minimum(')}\n    tx = ")
    report = check_files(path, text, ["Net"], pool=pool, initial=False, eager=False, budget=AMPLE)
    assert report.objects[0].verdict is wanted, report.objects[0].reason


STEPS = [
    ("optax.exponential_decay(0.01, 30, 0.1, staircase=True)", VerdictKind.EQUIVALENT),
    ("optax.exponential_decay(0.01, 30, 0.5, staircase=True)", VerdictKind.DIFFERENT),
    ("optax.exponential_decay(0.01, 10, 0.1, staircase=True)", VerdictKind.DIFFERENT),
    ("0.01", VerdictKind.DIFFERENT),
]


@pytest.mark.parametrize(("schedule", "wanted"), STEPS, ids=[text for text, _ in STEPS])
def test_a_schedule_inside_the_optimizer_is_followed_to_its_end(
    pool: Pool, tmp_path: Path, schedule: str, wanted: VerdictKind
) -> None:
    """Nothing happens in the eight updates of the training."""
    source = (HEAD + ITS_SOURCE).replace("CosineAnnealingLR(optimizer, T_max=100)", "StepLR(optimizer, 30)")
    (tmp_path / "training.py").write_text(without_norm(source))
    text = BY_HAND.replace("optax.cosine_decay_schedule(0.01, 100)", schedule)
    report = check_files(tmp_path / "training.py", text, ["Net"], pool=pool, initial=False, eager=False, budget=AMPLE)
    assert report.objects[0].verdict is wanted, report.objects[0].reason


LOSSES = [
    ("loss = optax.losses.softmax_cross_entropy_with_integer_labels(y, model(x))", ""),
    ("loss = loss_of(model, (x, y))", "def loss_of(model, batch):\n    x, y = batch\n    return model(x).mean()\n"),
]


@pytest.mark.parametrize(("line", "more"), LOSSES, ids=[line for line, _ in LOSSES])
def test_a_loss_that_is_called_otherwise_accuses_nobody(pool: Pool, tmp_path: Path, line: str, more: str) -> None:
    (tmp_path / "training.py").write_text(without_norm(HEAD + ITS_SOURCE))
    old = "loss = optax.softmax_cross_entropy_with_integer_labels(model(x), y)"
    text = BY_HAND.replace(old, line).replace("def loss_fn", f"{more}\n\ndef loss_fn")
    report = check_files(tmp_path / "training.py", text, ["Net"], pool=pool, initial=False, eager=False, budget=AMPLE)
    assert report.objects[0].verdict is VerdictKind.EQUIVALENT, report.objects[0].reason
    assert "loss" not in said(report.objects[0])


def test_a_schedule_of_epochs_and_one_of_updates_are_not_compared(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "training.py"
    source = (HEAD + ITS_SOURCE).replace("            scheduler.step()", "        scheduler.step()")
    path.write_text(without_norm(source))
    for text in (BY_HAND, BY_HAND.replace("schedule = ", "scheduler = ").replace("(schedule,", "(scheduler,")):
        report = check_files(path, text, ["Net"], pool=pool, initial=False, eager=False, budget=AMPLE)
        assert report.objects[0].verdict is VerdictKind.EQUIVALENT, report.objects[0].reason
        assert "once an epoch" in (report.objects[0].stages["behavioral"].reason or "")
