"""Every optimizer with its options, converted in a training loop: all parameters after several updates, in float64."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .training_sides import trained

MODEL = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(3, 4, bias=False)  # in front of a norm a bias has no gradient but noise
        self.norm = nn.BatchNorm1d(4)
        self.classifier = nn.Linear(4, 2)

    def forward(self, x):
        return self.classifier(torch.tanh(self.norm(self.features(x))))


x = torch.tensor(
    [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [-0.375, 0.875, 0.125], [2.25, -0.5, 0.625], [0.0, 1.125, -1.25]]
)
y = torch.tensor([0, 1, 1, 0, 1])
model = Net()
losses = []
rates = []
"""
LOOP = """
for step in range({steps}):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
OPTIMIZERS = [
    "SGD(model.parameters(), lr=0.1)",
    "SGD(model.parameters())",
    "SGD(model.parameters(), lr=0.1, momentum=0.9)",
    "SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)",
    "SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.05)",
    "SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.05, nesterov=True)",
    "SGD(model.parameters(), lr=0.1, momentum=0.9, dampening=0.4)",
    "SGD(model.parameters(), lr=0.1, weight_decay=0.05, maximize=True)",
    "Adam(model.parameters())",
    "Adam(model.parameters(), lr=0.05, betas=(0.5, 0.99), eps=1e-3)",
    "Adam(model.parameters(), lr=0.05, weight_decay=0.05)",
    "Adam(model.parameters(), lr=0.05, amsgrad=True, weight_decay=0.02)",
    "Adam(model.parameters(), lr=0.05, weight_decay=0.05, decoupled_weight_decay=True)",
    "Adam(model.parameters(), lr=0.05, maximize=True)",
    "AdamW(model.parameters())",
    "AdamW(model.parameters(), lr=0.05, betas=(0.8, 0.95), weight_decay=0.2)",
    "AdamW(model.parameters(), lr=0.05, amsgrad=True)",
    "RMSprop(model.parameters())",
    "RMSprop(model.parameters(), lr=0.05, foreach=True)",
    "SGD(model.parameters(), lr=0.05, foreach=False)",
    "AdamW(model.parameters(), lr=0.05, fused=True)",
    "RMSprop(model.parameters(), lr=0.05, alpha=0.8, eps=1e-3, weight_decay=0.05)",
    "RMSprop(model.parameters(), lr=0.05, momentum=0.7)",
    "RMSprop(model.parameters(), lr=0.05, centered=True)",
    "RMSprop(model.parameters(), lr=0.05, centered=True, momentum=0.7, weight_decay=0.01)",
    "Adagrad(model.parameters())",
    "Adagrad(model.parameters(), lr=0.1, lr_decay=0.1, weight_decay=0.02, initial_accumulator_value=0.3, eps=1e-4)",
    "Adadelta(model.parameters())",
    "Adadelta(model.parameters(), lr=0.5, rho=0.7, eps=1e-3, weight_decay=0.05)",
    "Adamax(model.parameters())",
    "Adamax(model.parameters(), lr=0.05, betas=(0.7, 0.9), eps=1e-3, weight_decay=0.05)",
    "NAdam(model.parameters())",
    "NAdam(model.parameters(), lr=0.05, weight_decay=0.05, momentum_decay=0.1)",
    "NAdam(model.parameters(), lr=0.05, weight_decay=0.05, decoupled_weight_decay=True)",
    "RAdam(model.parameters(), lr=0.05, betas=(0.8, 0.9))",
    "RAdam(model.parameters(), lr=0.05, weight_decay=0.05)",
    "RAdam(model.parameters(), lr=0.05, weight_decay=0.05, decoupled_weight_decay=True)",
    "ASGD(model.parameters(), lr=0.05, lambd=0.1, alpha=0.5, t0=2, weight_decay=0.02)",
    "Adafactor(model.parameters())",
    "Adafactor(model.parameters(), lr=0.05, beta2_decay=-0.5, eps=(1e-3, 0.1), d=1.5, weight_decay=0.1)",
    "Rprop(model.parameters())",
    "Rprop(model.parameters(), lr=0.05, etas=(0.3, 1.5), step_sizes=(1e-3, 0.2))",
]
GROUPS = [
    "SGD([{'params': model.features.parameters()}, {'params': model.norm.parameters()}, "
    "{'params': model.classifier.parameters(), 'lr': 0.01}], lr=0.1, momentum=0.9)",
    "AdamW([{'params': [p for n, p in model.named_parameters() if p.dim() >= 2], 'weight_decay': 0.2}, "
    "{'params': [p for n, p in model.named_parameters() if p.dim() < 2], 'weight_decay': 0.0}], lr=0.05)",
    "Adam([{'params': [p for n, p in model.named_parameters() if 'bias' not in n], 'weight_decay': 0.2}, "
    "{'params': [p for n, p in model.named_parameters() if 'bias' in n]}], lr=0.05)",
    "AdamW([{'params': [p for n, p in model.named_parameters() if not any(d in n for d in ('bias', 'norm.weight'))], "
    "'weight_decay': 0.2}, {'params': [p for n, p in model.named_parameters() if any(d in n for d in ('bias', "
    "'norm.weight'))], 'weight_decay': 0.0}], lr=0.05)",
    "SGD([{'params': model.classifier.parameters(), 'lr': 0.01}, {'params': model.features.parameters()}], lr=0.1)",
    "SGD([{'params': model.parameters(), 'lr': 0.2, 'momentum': 0.9}], lr=0.1)",
    "Adam(model.classifier.parameters(), lr=0.05)",
    "Adam(list(model.features.parameters()) + list(model.classifier.parameters()), lr=0.05)",
    "SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)",
    "SGD([p for p in model.parameters() if p.requires_grad == True], lr=0.1)",
    "Adam([p for p in model.parameters() if p.requires_grad and p.ndim < 2], lr=0.05)",
    "Muon([p for p in model.parameters() if p.ndim == 2])",
    "Muon([p for n, p in model.named_parameters() if p.ndim >= 2], lr=0.02, adjust_lr_fn='match_rms_adamw')",
    "Muon([p for p in model.parameters() if p.ndim == 2], weight_decay=0, nesterov=False, ns_steps=3)",
]


@pytest.mark.parametrize("call", [*OPTIMIZERS, *GROUPS])
def test_parameters_after_several_updates(call: str) -> None:
    trained(f"{MODEL}\n# train\noptimizer = torch.optim.{call}\n{LOOP.format(steps=6)}")


TWO = """
# train
first = torch.optim.{first}
second = torch.optim.{second}
for step in range(6):
    first.zero_grad()
    second.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    first.step()
    second.step()
    losses.append(loss.item())
"""


def test_two_optimizers_share_a_module_where_their_parameters_are_apart() -> None:
    matrices, others = (f"[p for p in model.parameters() if p.ndim {sign} 2]" for sign in (">=", "<"))
    apart = TWO.format(first=f"Muon({matrices}, lr=0.02)", second=f"AdamW({others}, lr=0.05)")
    trained(MODEL + apart)
    overlapping = TWO.format(first=f"Muon({matrices}, lr=0.02)", second="AdamW(model.parameters(), lr=0.05)")
    reasons = [gap.message for gap in translate(MODEL + overlapping).gaps]
    assert any("Two optimizers update the same parameters" in reason for reason in reasons), reasons


LOOKED_UP = """
import torch
import torch.nn as nn


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3, sparse=True)

    def forward(self, x):
        return self.table(x)


model = Table()
losses = []

# train
optimizer = torch.optim.SparseAdam(model.parameters(), lr=0.05, betas=(0.8, 0.99){options})
for rows in ([0, 1, 1], [3, 1, 0], [3, 3, 3], [0, 2, 1], [1, 1, 1]):
    optimizer.zero_grad()
    loss = torch.tanh(model(torch.tensor(rows))).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""


@pytest.mark.parametrize("options", ["", ", maximize=True, eps=1e-3"])
def test_sparse_adam_leaves_the_rows_that_are_not_looked_up(options: str) -> None:
    run = trained(LOOKED_UP.format(options=options))
    assert [note.name for note in run.translation.notes] == ["torch.optim.SparseAdam"]


SCHEDULERS = [
    ("SGD(model.parameters(), lr=0.1)", "StepLR(optimizer, step_size=3, gamma=0.5)"),
    (
        "SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)",
        "MultiStepLR(optimizer, [2, 5, 5], gamma=0.3)",
    ),
    ("AdamW(model.parameters(), lr=0.1)", "ExponentialLR(optimizer, 0.8)"),
    ("SGD(model.parameters(), lr=0.1)", "ConstantLR(optimizer, factor=0.5, total_iters=4)"),
    ("SGD(model.parameters(), lr=0.1)", "LinearLR(optimizer, start_factor=0.25, end_factor=0.9, total_iters=5)"),
    ("SGD(model.parameters(), lr=0.1)", "LinearLR(optimizer)"),
    ("Adam(model.parameters(), lr=0.1)", "PolynomialLR(optimizer, total_iters=6, power=2.0)"),
    ("Adam(model.parameters(), lr=0.1)", "CosineAnnealingLR(optimizer, T_max=4)"),
    ("RMSprop(model.parameters(), lr=0.1, momentum=0.9)", "CosineAnnealingLR(optimizer, T_max=20, eta_min=0.01)"),
    ("SGD(model.parameters(), lr=0.1)", "CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2, eta_min=0.001)"),
    ("SGD(model.parameters(), lr=0.1)", "LambdaLR(optimizer, lr_lambda=lambda epoch: 0.95 ** epoch)"),
    ("SGD(model.parameters(), lr=0.1)", "LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 4) if s < 6 else 0.5)"),
    ("SGD(model.parameters(), lr=0.1)", "MultiplicativeLR(optimizer, lr_lambda=lambda epoch: 0.9 + 0.01 * epoch)"),
    ("SGD(model.parameters(), lr=0.1)", "OneCycleLR(optimizer, max_lr=0.5, total_steps=9)"),
    ("Adam(model.parameters(), lr=0.1)", "OneCycleLR(optimizer, 0.5, epochs=3, steps_per_epoch=3, pct_start=0.5)"),
    ("AdamW(model.parameters(), lr=0.1)", "OneCycleLR(optimizer, 0.5, total_steps=12, cycle_momentum=False)"),
    ("SGD(model.parameters(), lr=0.1)", "CyclicLR(optimizer, 0.01, 0.3, step_size_up=3, mode='triangular2')"),
    ("Adam(model.parameters(), lr=0.1)", "CyclicLR(optimizer, 0.01, 0.3, step_size_up=2, step_size_down=3)"),
    (
        "SGD(model.parameters(), lr=0.1)",
        "SequentialLR(optimizer, [torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3), "
        "torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)], milestones=[3])",
    ),
    (
        "SGD(model.parameters(), lr=0.1)",
        "ChainedScheduler([torch.optim.lr_scheduler.ConstantLR(optimizer, 0.1, 2), "
        "torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)])",
    ),
]
SCHEDULED = """
for epoch in range(3):
    for step in range(3):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item()){inner}{outer}
"""


@pytest.mark.parametrize("every", ["update", "epoch"])
@pytest.mark.parametrize(("optimizer", "scheduler"), SCHEDULERS, ids=[s.partition("(")[0] for _, s in SCHEDULERS])
def test_learning_rates_and_parameters(optimizer: str, scheduler: str, every: str) -> None:
    step = "scheduler.step()"
    loop = SCHEDULED.format(
        inner=f"\n        {step}" if every == "update" else "", outer=f"\n    {step}" if every == "epoch" else ""
    )
    made = f"\n# train\noptimizer = torch.optim.{optimizer}\nscheduler = torch.optim.lr_scheduler.{scheduler}\n"
    trained(MODEL + made + loop, lists=("losses", "rates"))


WARMUP = """
def warmed_up(optimizer, steps, last_epoch=-1):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda count: min(1.0, (count + 1) / steps), last_epoch)


# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = warmed_up(optimizer, 4)
"""


def test_a_count_to_begin_with_may_be_a_parameter_that_is_never_given() -> None:
    """As in `get_linear_schedule_with_warmup` of Hugging Face."""
    trained(MODEL + WARMUP + SCHEDULED.format(inner="\n        scheduler.step()", outer=""), lists=("losses", "rates"))
    for given in ("warmed_up(optimizer, 4, 2)", "warmed_up(optimizer, 4, **options)"):
        gaps = translate(MODEL + WARMUP.replace("warmed_up(optimizer, 4)", given)).gaps
        assert any("goes on from last_epoch" in gap.reason for gap in gaps)
    alone = translate("import torch\n" + WARMUP.partition("# train")[0])
    assert alone.gaps  # of calls in other files nothing is known


def test_plateau() -> None:
    made = (
        "\n# train\noptimizer = torch.optim.SGD(model.parameters(), lr=0.5)\n"
        "scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau("
        "optimizer, 'min', factor=0.5, patience=0, threshold=0.5)\n"
    )
    trained(MODEL + made + SCHEDULED.format(inner="", outer="\n    scheduler.step(loss)"), lists=("losses", "rates"))


def test_decay_of_matrices_only_stays_while_the_rate_is_set() -> None:
    made = (
        "\n# train\noptimizer = torch.optim.AdamW([\n"
        "    {'params': [p for p in model.parameters() if p.dim() >= 2], 'weight_decay': 0.5},\n"
        "    {'params': [p for p in model.parameters() if p.dim() < 2], 'weight_decay': 0.0}], lr=0.1)\n"
    )
    step = "\n        for group in optimizer.param_groups:\n            group['lr'] = 0.05 / (step + 1)"
    trained(MODEL + made + SCHEDULED.format(inner=step, outer=""), lists=("losses", "rates"))
