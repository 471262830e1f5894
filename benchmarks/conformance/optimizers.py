"""Every sample of PyTorch's database of optimizers, and every scheduler: a training program, run for 50 steps.

The program trains a small network. Compared are the loss of every step, the learning rates, and at the end every
parameter and buffer, from the same random first ones.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import torch

from t2j_lsp.api import convert
from tests.rules.samples import operators
from tests.translate.test_training_optimizers import LOOP, MODEL, SCHEDULERS
from tests.translate.training_sides import MARK, trained

from .running import Problem, Result

SET = "optimizers"
STEPS = 50
TOLERANCE = 1e-8  # of the largest absolute value; 50 steps amplify the last bits
FEWER_STEPS = {"Rprop(model.parameters(), maximize=True)": 12}
"""What saturates the network: from there on Rprop takes the signs of rounding errors."""
ROUNDED_TO_BFLOAT16 = 1e-5  # Muon rounds its iterations to bfloat16: float32 sums in another order round otherwise
STEPS_WITH_A_CLOSURE = 5
"""Each makes up to 20 updates, and quasi-Newton directions amplify the last bits more."""
CONTRADICTED = """
x = torch.cat([x, x, x])
y = torch.cat([y, y, 1 - y])
"""
"""A third of the labels are wrong, so that the loss stays away from 0, where gradients are noise."""
LOOKED_UP = """
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3, sparse=True)

    def forward(self, x):
        return self.table(x)


x = torch.tensor([0, 1, 1, 0, 3])
y = torch.tensor([0, 1, 1, 0, 2])
model = Table()
"""
CLOSURE = """
for step in range({steps}):
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    losses.append(optimizer.step(closure).item())
"""
SCHEDULED = """
for step in range({steps}):
    rates.append(optimizer.param_groups[0]["lr"])
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    {step}
"""
SHORT = ("OneCycleLR", "MultiplicativeLR")
"""Those that the tests run for fewer steps, which end or diverge after these."""
MORE_SCHEDULERS = [
    ("SGD(model.parameters(), lr=0.1)", "MultiplicativeLR(optimizer, lr_lambda=lambda epoch: 0.9 + 0.001 * epoch)"),
    ("SGD(model.parameters(), lr=0.1)", "ReduceLROnPlateau(optimizer, factor=0.5, patience=2)"),
    ("SGD(model.parameters(), lr=0.1)", f"OneCycleLR(optimizer, max_lr=0.5, total_steps={STEPS})"),
    ("Adam(model.parameters(), lr=0.1)", "OneCycleLR(optimizer, 0.5, epochs=10, steps_per_epoch=5, pct_start=0.5)"),
    ("AdamW(model.parameters(), lr=0.1)", f"OneCycleLR(optimizer, 0.5, total_steps={STEPS}, cycle_momentum=False)"),
]


@functools.cache
def programs() -> dict[str, list[str]]:
    """Training programs by the name of what they show."""
    operators()
    from torch.testing._internal.common_optimizers import optim_db

    texts: dict[str, list[str]] = {}
    for info in optim_db:
        name = info.optim_cls.__name__
        texts[f"optim.{name}"] = [_program(name, sample.kwargs) for sample in info.optim_inputs_func(device="cpu")]
    for optimizer, scheduler in [*(s for s in SCHEDULERS if s[1].partition("(")[0] not in SHORT), *MORE_SCHEDULERS]:
        step = "scheduler.step(loss.item())" if "Plateau" in scheduler else "scheduler.step()"
        made = f"optimizer = torch.optim.{optimizer}\nscheduler = torch.optim.lr_scheduler.{scheduler}\n"
        text = f"{MODEL}{CONTRADICTED}\n{MARK}{made}{SCHEDULED.format(steps=STEPS, step=step)}"
        texts.setdefault(f"lr_scheduler.{scheduler.partition('(')[0]}", []).append(text)
    return texts


def _program(name: str, options: dict[str, Any]) -> str:
    parameters = "[p for p in model.parameters() if p.ndim == 2]" if name == "Muon" else "model.parameters()"
    arguments = ", ".join([parameters, *(f"{k}={_text(v)}" for k, v in options.items())])
    model = MODEL + (LOOKED_UP if name == "SparseAdam" else CONTRADICTED)
    loop, call = CLOSURE if name == "LBFGS" else LOOP, f"{name}({arguments})"
    steps = FEWER_STEPS.get(call, STEPS_WITH_A_CLOSURE if loop is CLOSURE else STEPS)
    return f"{model}\n{MARK}optimizer = torch.optim.{call}\n{loop.format(steps=steps)}"


def _text(value: Any) -> str:
    return f"torch.tensor({value.tolist()})" if isinstance(value, torch.Tensor) else repr(value)


def run(name: str, limit: int | None = None, known: Result | None = None) -> Result:
    """Runs each program and its conversion; answers with ``known`` where the converted code is what it was."""
    sources = programs()[name][:limit]
    result = Result(name, SET)
    translations = [convert(source, x64=True) for source in sources]
    result.key = hashlib.sha256("\0".join(t.code for t in translations).encode()).hexdigest()[:16]
    if known is not None and known.key == result.key:
        return known
    of = result.counts.setdefault("50 steps", {})
    for source, translation in zip(sources, translations, strict=True):
        outcome, why = "gap", translation.gaps[0].message if translation.gaps else ""
        if not translation.gaps:
            notes = [note.message for note in translation.notes if note.differs]
            outcome, why = _outcome(source)
            if outcome in ("crash", "wrong") and notes:
                outcome, why = "noted", f"{why} (noted: {notes[0]})"
        of[outcome] = of.get(outcome, 0) + 1
        if outcome != "right":
            text = "; ".join(line for line in source.splitlines() if line.startswith(("optimizer =", "scheduler =")))
            result.problems.append(Problem(outcome, "50 steps", text, "", " ".join(why.split())[:300]))
    return result


def _outcome(source: str) -> tuple[str, str]:
    lists = ["losses", "rates"] if "rates.append" in source else ["losses"]
    tolerance = ROUNDED_TO_BFLOAT16 if "Muon(" in source else TOLERANCE
    try:
        trained(source, lists=lists, tolerance=tolerance)
    except AssertionError as error:
        return "wrong", str(error)
    except Exception as error:  # noqa: BLE001 - whatever JAX raises is the finding
        return "crash", f"{type(error).__name__}: {error}"
    return "right", ""
