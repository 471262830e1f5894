"""Optimizers whose class is passed, and those that a list or a dict holds."""

from __future__ import annotations

import pytest

from t2j_lsp import convert
from t2j_lsp.contract import Finding, Severity, Span
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate import translate
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rewrites.named_keywords import with_named_keywords
from t2j_lsp.translate.source.text import Source

from .test_training_optimizers import MODEL

FITTED = """\
def fit(model, opt_func=torch.optim.SGD, lr=0.05):
    optimizer = opt_func(model.parameters(), {rate})
    for _ in range(3):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())


# train
{calls}
"""


def test_classes_of_optimizers_that_are_passed_bring_their_own_defaults() -> None:
    """AdamW decays by 0.01 in PyTorch, by 0.0001 in optax; the call of the class is SGD's."""
    calls = "fit(model)\nfit(Net(), torch.optim.AdamW)\nfit(Net(), opt_func=torch.optim.Adam)"
    translation = translate(MODEL + FITTED.format(rate="lr=lr", calls=calls))
    assert not translation.gaps
    assert "def fit(model, opt_func=optax.sgd, lr=0.05):" in translation.code and "opt_func(lr)" in translation.code
    assert "optax.adam)" in translation.code and "functools.partial(optax.adamw, weight_decay=0.01)" in translation.code


@pytest.mark.parametrize(
    ("rate", "calls"),
    [
        ("", "fit(model, torch.optim.AdamW)"),  # each class has a default rate of its own
        ("lr, weight_decay=0.1", "fit(model, torch.optim.Adam)"),
        ("lr", "fit(model, torch.optim.Adagrad)"),
    ],
)
def test_classes_of_optimizers_that_take_other_arguments_stay(rate: str, calls: str) -> None:
    assert translate(MODEL + FITTED.format(rate=rate, calls=calls)).gaps


SEVERAL = """\
other = Net()
first = torch.optim.SGD(model.parameters(), lr=0.1)
optimizers = {made}
for step in range(3):
    for one in {walked}:
        one.zero_grad()
    loss = F.cross_entropy(model(x) + other(x), y)
    loss.backward()
    for one in {walked}:
        one.step()
    losses.append(loss.item())
"""
SECOND = "torch.optim.Adam(other.parameters(), lr=0.05)"


@pytest.mark.parametrize(
    ("made", "walked", "given"),
    [
        (f"[first, {SECOND}]", "optimizers", "model, other, first, optimizer, x, y"),
        (f'{{"one": first, "two": {SECOND}}}', "optimizers.values()", "model, other, optimizer, optimizer2, x, y"),
        (SECOND, "(first, optimizers)", "model, other, first, optimizers, x, y"),
    ],
)
def test_loops_over_optimizers_that_are_written_out_are_one_step(made: str, walked: str, given: str) -> None:
    translation = translate(MODEL + SEVERAL.format(made=made, walked=walked))
    assert not translation.gaps and f"def train_step({given}):" in translation.code


@pytest.mark.parametrize("more", ["optimizers.pop()\n", "optimizers[1] = first\n", "optimizers = optimizers[:1]\n"])
def test_loops_over_optimizers_that_change_stay(more: str) -> None:
    program = SEVERAL.format(made=f"[first, {SECOND}]", walked="optimizers")
    assert translate(MODEL + program.replace("for step", f"{more}for step")).gaps


def test_optimizers_that_stand_in_a_dict_are_followed_and_named_in_steps() -> None:
    program = SEVERAL.format(made=f'{{"one": first, "two": {SECOND}}}', walked="[0]")
    program = program.replace("    for one in [0]:\n        one.zero_grad()\n", '    optimizers["two"].zero_grad()\n')
    program = program.replace("    for one in [0]:\n        one.step()\n", '    optimizers["two"].step()\n')
    translation = translate(MODEL + program.replace("model(x) + other(x)", "other(x)"))
    assert not translation.gaps and 'train_step(other, optimizers["two"], x, y)' in translation.code


NAMED = """\
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
{before}
optimizer = torch.optim.SGD({groups}, lr=0.1)
loss = model(torch.ones(2, 3)).sum()
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""
SETS = """\
decay, rest = set(), set()
for name, parameter in model.named_parameters():
    (decay if parameter.dim() > 1 else rest).add(name)
by_name = {n: p for n, p in model.named_parameters()}
assert len(by_name.keys() - (decay | rest)) == 0
groups = [
    {"params": [by_name[n] for n in sorted(list(decay))], "weight_decay": 0.1},
    {"params": [by_name[n] for n in sorted(rest)], "weight_decay": 0.0},
]"""


@pytest.mark.parametrize(
    ("before", "condition", "wanted"),
    [
        ("", "n.startswith('0')", 'name.startswith("0")'),  # layers.0 in Flax
        ("", "'layers' not in n and 'embed' not in n", '"layers" not in name'),  # what only Flax's names have
        ("", "n in ('0.weight', '2.weight')", '(name in ("0.weight", "2.weight"))'),
        ("kept = ['bias', '1.weight']", "any(k in n for k in kept)", "any(k in name for k in kept)"),
    ],
)
def test_conditions_on_names_are_asked_of_pytorch_s(before: str, condition: str, wanted: str) -> None:
    groups = f"[p for n, p in model.named_parameters() if {condition}]"
    translation = translate(NAMED.format(before=before, groups=groups))
    code = " ".join(translation.code.split())
    assert not translation.gaps and wanted in code and 'else "frozen", model' in code
    assert not before or "kept = [" in code


def test_sets_of_names_pick_the_groups() -> None:
    """minGPT's: the dict that the names are looked up in, and the list of groups, go."""
    translation = translate(NAMED.format(before=SETS, groups="groups"))
    code = " ".join(translation.code.split())
    assert not translation.gaps and "groups" not in translation.code
    assert '"decay" if name in decay else "no_decay" if name in rest else "frozen", model' in code


@pytest.mark.parametrize(
    "condition", ["id(p) in seen", "n.replace('a', 'b') == 'bias'", "check(n)", "p.sum() > 0 or n"]
)
def test_conditions_that_ask_for_more_than_names_stay(condition: str) -> None:
    assert translate(NAMED.format(before="", groups=f"[p for n, p in model.named_parameters() if {condition}]")).gaps


STATE = """\
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 4
        self.lstm = nn.LSTM(3, self.size)
        self.start = nn.Parameter(torch.zeros(1, 1, 4))
        self.hidden = self.init_hidden()

    def init_hidden(self):
        h0 = torch.zeros(1, 1, self.size)
        return h0, torch.zeros(1, 1, self.size)

    def forward(self, x):
        out, self.hidden = self.lstm(x, self.hidden)
        return out


model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    {reset}
    loss = model(torch.ones(5, 1, 3)).sum()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "reset",
    [
        "model.hidden = model.init_hidden()",
        "model.hidden = (torch.zeros(1, 1, model.size), torch.zeros(1, 1, model.size))",
        "model.hidden = None",
    ],
)
def test_a_state_that_is_set_anew_stays_in_front_of_the_step(reset: str) -> None:
    translation = translate(STATE.format(reset=reset))
    lines = translation.code.splitlines()
    call = next(i for i, line in enumerate(lines) if line.startswith("    train_step(model"))
    assert not translation.gaps and any(line.startswith("    model.hidden = ") for line in lines[call - 5 : call])


@pytest.mark.parametrize("reset", ["model.hidden = (model.start, model.start)", "model.hidden = model.lstm(x)[1]"])
def test_a_state_with_a_gradient_stays(reset: str) -> None:
    assert translate(STATE.format(reset=reset)).gaps


KEYWORDS = """\
import torch
from torch import nn

class Trainer(object):
    def __init__(self, *args, **kwargs):
        self.model = kwargs['model']
        self.optimizer = kwargs['optimizer']{more}

    def fit(self, x):
        for _ in range(2):
            loss = self.model(x).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print(loss.item())

net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
Trainer({given}).fit(torch.ones(4, 3))
{after}
"""
GIVEN = "model=net, optimizer=optimizer"


def test_keywords_that_a_constructor_reads_have_names() -> None:
    translation = convert(KEYWORDS.format(more="", given=GIVEN, after=""))
    assert not translation.gaps
    assert "def __init__(self, *, model, optimizer):\n        self.model = model\n" in translation.code


@pytest.mark.parametrize(
    ("more", "given", "after"),
    [
        ("\n        self.args = args", GIVEN, ""),
        ("\n        self.options = kwargs", GIVEN, ""),
        ("", f"{GIVEN}, more=1", ""),
        ("", "**dict(model=net, optimizer=optimizer)", ""),
        ("", GIVEN, "made = Trainer"),
        ("", GIVEN, "class Other(Trainer): pass"),
    ],
)
def test_keywords_that_something_else_may_read_stay(more: str, given: str, after: str) -> None:
    load_rules()
    gap = Finding(Span(1, 0, 1, 0), "training loop", "training-loop", Severity.GAP, "")
    source = KEYWORDS.format(more=more, given=given, after=after)
    assert with_named_keywords(Inference(Source(source)), [gap]) is None
