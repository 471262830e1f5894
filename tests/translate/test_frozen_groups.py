"""Frozen parameters that an optimizer has train nothing, and groups with rates of their own follow one schedule."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Finding, Severity, Span
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate import translate
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rewrites.sorted_parameters import with_sorted_parameters_as_lists
from t2j_lsp.translate.rewrites.trained_flags import with_trained_flags_by_name
from t2j_lsp.translate.source.text import Source

from .training_sides import trained

HEAD = """\
import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 5)
        self.second = nn.Linear(5, 4)

    def forward(self, x):
        return torch.tanh(self.second(torch.tanh(self.first(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = Base(){init}
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.base(x))


model = Net()
{made}x, y = torch.linspace(-1, 2, 24).reshape(8, 3), torch.linspace(0, 1, 16).reshape(8, 2) ** 2
losses, rates = [], []

# train
"""
LOOP = """\
for _ in range(5):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
ADAMW = "optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.3)\n"
FROZEN = {
    "a part": ("", "for p in model.base.parameters():\n    p.requires_grad = False\n" + ADAMW),
    "a part, by the method": ("", "for p in model.base.parameters():\n    p.requires_grad_(False)\n" + ADAMW),
    "a part, as a list": ("", "for p in list(model.base.parameters()):\n    p.requires_grad = False\n" + ADAMW),
    "a part with names that nobody reads": (
        "",
        "for _, p in model.base.named_parameters():\n    p.requires_grad_(False)\n" + ADAMW,
    ),
    "what a name in a list says, by the method": (
        "",
        "for name, p in list(model.named_parameters()):\n    if 'head' not in name:\n        p.requires_grad_(False)\n"
        + ADAMW,
    ),
    "a part under another name": (
        "",
        "part = model.base\nfor p in part.parameters():\n    p.requires_grad = False\n" + ADAMW,
    ),
    "a part of a part, by the method": ("", "model.base.first.requires_grad_(False)\n" + ADAMW),
    "two parts": (
        "",
        "model.base.first.requires_grad_(False)\nmodel.head.requires_grad_(False)\n"
        "optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=0.05)\n",
    ),
    "children that are counted": (
        "",
        "for i, child in enumerate(model.children()):\n    if i > 0:\n        for p in child.parameters():\n"
        "            p.requires_grad = False\n" + ADAMW,
    ),
    "children that are counted by hand, and what is left": (
        "",
        "count = 0\nfor child in model.children():\n    count += 1\n    if count < 2:\n"
        "        child.requires_grad_(False)\n"
        "assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 10\n" + ADAMW,
    ),
    "children that are named": (
        "",
        "for name, child in model.named_children():\n    if name not in ['base']:\n"
        "        child.requires_grad_(False)\nprint([n for n, p in model.named_parameters() if p.requires_grad])\n"
        + ADAMW,
    ),
    "in the constructor": ("\n        self.base.requires_grad_(False)", ADAMW),
    "one of two in pairs, which it copies": (
        "\n        self.kept = Base()\n        for p, q in zip(self.base.parameters(), self.kept.parameters()):\n"
        "            q.data.copy_(p.data)\n            q.requires_grad = False",
        ADAMW,
    ),
    "what a name says": (
        "",
        "for name, p in model.named_parameters():\n    if 'head' not in name:\n        p.requires_grad = False\n"
        + ADAMW,
    ),
    "all but what a name says": (
        "",
        "for n, p in model.named_parameters():\n    p.requires_grad = n.startswith('head.')\n" + ADAMW,
    ),
    "a part of a group": (
        "",
        "model.base.first.requires_grad_(False)\n"
        "optimizer = torch.optim.SGD([{'params': model.base.parameters(), 'lr': 0.01}, "
        "{'params': model.head.parameters()}], lr=0.1, weight_decay=0.2)\n",
    ),
    "what no group has": (
        "",
        "model.base.first.requires_grad_(False)\n"
        "optimizer = torch.optim.SGD([{'params': model.base.second.parameters(), 'lr': 0.01}, "
        "{'params': model.head.parameters()}], lr=0.1, weight_decay=0.2)\n",
    ),
}


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_parameters_stay_as_they_are(name: str) -> None:
    init, made = FROZEN[name]
    run = trained(HEAD.format(init=init, made="") + made + LOOP)
    assert "requires_grad" not in run.translation.code


@pytest.mark.parametrize(
    "groups",
    [
        "[{'params': model.base.first.weight, 'weight_decay': 0.3}, {'params': [model.head.bias, model.head.weight]}]",
        "[model.base.first.weight, *model.head.parameters()]",
    ],
)
def test_single_parameters_are_known_by_their_names(groups: str) -> None:
    """Weight decay of "Dive into Deep Learning": `{"params": net[0].weight, "weight_decay": wd}`."""
    trained(HEAD.format(init="", made="") + f"optimizer = torch.optim.SGD({groups}, lr=0.2, momentum=0.9)\n" + LOOP)


def test_all_is_frozen_but_a_new_part() -> None:
    made = "for p in model.parameters():\n    p.requires_grad = False\nmodel.head = nn.Linear(4, 2)\n"
    trained(
        HEAD.format(init="", made=made).replace("# train\n", "").replace("x, y =", "\n# train\nx, y =") + ADAMW + LOOP
    )


def test_a_teacher_is_trained_and_kept() -> None:
    source = HEAD.format(init="", made="student = nn.Linear(3, 2)\n") + ADAMW + LOOP + "model.requires_grad_(False)\n"
    taught = ADAMW.replace("model", "student") + LOOP.replace("model(x) - y", "student(x) - model(x)")
    run = trained(source + taught.replace("optimizer", "second"), modules=("model", "student"))
    assert "requires_grad" not in run.translation.code


def test_a_teacher_is_trained_by_a_function_that_trains_others_too() -> None:
    source = HEAD.format(init="", made="student = nn.Linear(3, 2)\n")
    body = (ADAMW + LOOP).replace("    losses.append(loss.item())\n", "").replace("model", "net").splitlines(True)
    fit = "def fit(net):\n" + "".join(f"    {line}" for line in body) + "\n\n"
    asked = "print(sum(p.numel() for p in {}.parameters() if p.requires_grad))\n"
    calls = "fit(model)\nmodel.requires_grad_(False)\n" + asked.format("model") + asked.format("student") + "fit({})\n"
    done = translate(source.replace("# train", fit) + calls.format("student"))
    assert not done.gaps and "requires_grad" not in done.code and "print(0)" in done.code
    again = translate(source.replace("# train", fit) + calls.format("model"))
    assert any("frozen by requires_grad" in gap.reason for gap in again.gaps)


SORTED = """\
decay, no_decay = [], []
for name, p in model.named_parameters():
    if not p.requires_grad:
        continue  # frozen
    if p.ndim <= 1 or name.endswith("bias"):
        no_decay.append(p)
    else:
        decay.append(p)
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.3}, {"params": no_decay}], lr=0.05, weight_decay=0)
"""
SORTED_INTO_DICT = """\
lists = {"plain": [], "rest": []}
for p in model.parameters():
    lists["plain" if p.ndim > 1 else "rest"].append(p)
optimizer = torch.optim.SGD([{"params": lists["plain"], "momentum": 0.9}, {"params": lists["rest"]}], lr=0.05)
"""


@pytest.mark.parametrize("made", [SORTED, SORTED_INTO_DICT])
def test_parameters_that_a_loop_sorts_are_groups(made: str) -> None:
    run = trained(HEAD.format(init="", made="") + made + LOOP)
    assert "append" not in run.translation.code.partition("train_step")[0] and "else not" not in run.translation.code


@pytest.mark.parametrize(
    "made",
    [
        SORTED + "decay.reverse()\n",
        SORTED.replace("    else:\n", "        print(name)\n    else:\n"),
        SORTED.replace("decay, no_decay = [], []\n", "decay, no_decay = [], [extra]\n"),
        SORTED.replace("no_decay.append(p)\n", "no_decay.append(p * 1)\n"),
    ],
)
def test_loops_that_do_more_with_parameters_stay(made: str) -> None:
    load_rules()
    gap = Finding(Span(1, 0, 1, 0), "training loop", "training-loop", Severity.GAP, "")
    assert with_sorted_parameters_as_lists(Inference(Source(HEAD.format(init="", made="") + made)), [gap]) is None


ASKED = """\
for p in net.parameters():
    if p.requires_grad:
        print(p.shape)
print([n for n, p in net.named_parameters() if not p.requires_grad])
print(sum(p.numel() for p in net.parameters() if p.requires_grad))
"""
FLAGS = {
    "a part": (
        "net.base.requires_grad_(False)\n" + ASKED,
        'for name, p in net.named_parameters():\n    if not name.startswith("base."):\n        print(p.shape)\n'
        'print([n for n, p in net.named_parameters() if n.startswith("base.")])\n'
        'print(sum(p.numel() for name, p in net.named_parameters() if not name.startswith("base.")))\n',
    ),
    "another module": (
        "other = Base()\nother.requires_grad_(False)\n" + ASKED,
        "for p in net.parameters():\n    print(p.shape)\nprint([n for n, p in net.named_parameters() if not True])\n"
        "print(sum(p.numel() for p in net.parameters()))\n",
    ),
    "all but a new part": (
        "net.requires_grad_(False)\nnet.head = nn.Linear(4, 3)\n"
        "print([p.requires_grad for n, p in net.named_parameters()])\n",
        'print([n.startswith("head.") for n, p in net.named_parameters()])\n',
    ),
    "what comes later": (
        ASKED + "net.base.requires_grad_(False)\n",
        "print(sum(p.numel() for p in net.parameters()))\n",
    ),
    "a condition": ("if x.mean() > 0:\n    net.base.requires_grad_(False)\n" + ASKED, ""),
    "another name": ("part = net.base\npart.requires_grad_(False)\n" + ASKED, ""),
    "a module that holds it": ("both = nn.Sequential(net)\nboth.requires_grad_(False)\n" + ASKED, ""),
    "a part of two": ("other = Base()\nnet.base = other\nother.requires_grad_(False)\n" + ASKED, ""),
    "one parameter": ("net.base.requires_grad_(False)\nnet.head.weight.requires_grad = False\n" + ASKED, ""),
}


@pytest.mark.parametrize("name", FLAGS)
def test_who_asks_what_is_trained_asks_for_names(name: str) -> None:
    load_rules()
    text, becomes = FLAGS[name]
    gap = Finding(Span(1, 0, 1, 0), "Tensor.requires_grad", "refused", Severity.GAP, "")
    source = HEAD.format(init="", made="net = Net()\n") + text
    put = with_trained_flags_by_name(Inference(Source(source)), [gap])
    assert becomes in put.text if put is not None and becomes else put is None and not becomes


KEEPER = "class Keeper:\n    def __init__(self, it):\n        self.it = it\n\nkeeper = Keeper(optimizer)\n"


@pytest.mark.parametrize("held", [KEEPER, "def later():\n    optimizer.step()\n", "kept = [optimizer]\n"])
def test_an_optimizer_that_something_keeps_may_go_on(held: str) -> None:
    source = HEAD.format(init="", made="") + ADAMW + LOOP + held + "model.requires_grad_(False)\n"
    assert any("frozen by requires_grad" in gap.reason for gap in translate(source).gaps)


def test_layers_of_a_list_have_rates_of_their_own() -> None:
    source = HEAD.format(init="", made="").replace(
        "self.first =", "self.parts = nn.ModuleList([nn.Linear(3, 3) for _ in 'ab'])\n        self.first ="
    )
    source = source.replace("self.first(x)", "self.first(self.parts[1](self.parts[0](x)))")
    groups = (
        "optimizer = torch.optim.SGD([{'params': model.base.parts[0].parameters(), 'lr': 0.5}, "
        "{'params': model.head.parameters()}, {'params': model.base.parts[1].parameters(), 'lr': 0.01}], lr=0.1)\n"
    )
    run = trained(source + groups + LOOP)
    assert 'name.startswith("base.parts.0.")' in "".join(run.translation.code.split())


LEFT = {
    "thawed later": ADAMW + LOOP + "model.base.requires_grad_(True)\n" + LOOP,
    "behind some steps": ADAMW + LOOP + "model.head.requires_grad_(False)\n" + LOOP,
    "one parameter": "model.head.weight.requires_grad = False\n" + ADAMW + LOOP,
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_sure_stays(name: str) -> None:
    source = HEAD.format(init="", made="model.base.requires_grad_(False)\n") + LEFT[name]
    reasons = [gap.reason for gap in translate(source).gaps]
    assert any("frozen by requires_grad" in one for one in reasons), reasons


BY_FLAGS = {
    "clipped by the norm of all": ADAMW
    + LOOP.replace("    optimizer.step", "    nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n    optimizer.step"),
    "only if somebody asks": "if len(x) > 3:\n    model.base.first.requires_grad_(False)\n" + ADAMW + LOOP,
}


@pytest.mark.parametrize("name", BY_FLAGS)
def test_what_names_do_not_say_is_a_flag_of_the_variables(name: str) -> None:
    run = trained(HEAD.format(init="", made="model.base.requires_grad_(False)\n") + BY_FLAGS[name])
    assert "wrt=is_trainable" in run.translation.code and "DiffState(0, optimizer.wrt)" in run.translation.code


CHILDREN = {
    "children of a class that may have more": "model.extra = nn.Linear(1, 1)\n"
    "for i, child in enumerate(model.children()):\n    if i > 1:\n        child.requires_grad_(False)\n" + ADAMW + LOOP,
    "children that something unknown picks": "for i, child in enumerate(model.children()):\n    if i > len(x):\n"
    "        child.requires_grad_(False)\n" + ADAMW + LOOP,
}


@pytest.mark.parametrize("name", CHILDREN)
def test_children_that_nothing_sure_picks_are_a_gap(name: str) -> None:
    source = HEAD.format(init="", made="model.base.requires_grad_(False)\n") + CHILDREN[name]
    assert any("order" in gap.reason for gap in translate(source).gaps)


def test_a_class_inside_another_that_freezes_itself_does_so_by_flags() -> None:
    source = HEAD.format(init="", made="").replace(
        "        self.second =", "        self.first.requires_grad_(False)\n        self.second ="
    )
    assert "set_trainable(self.first, False)" in trained(source + ADAMW + LOOP).translation.code


IN_A_ROW = """\
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Sequential(nn.Linear(5, 4), nn.Tanh()), nn.Linear(4, 2))
x, y = torch.linspace(-1, 2, 24).reshape(8, 3), torch.linspace(0, 1, 16).reshape(8, 2) ** 2
losses = []

# train
"""


@pytest.mark.parametrize(
    "frozen",
    [
        "for p in model[0].parameters():\n    p.requires_grad = False\n",
        "model[2].requires_grad_(False)\n",
        "model[2][0].requires_grad_(False)\n",
        "for p in model[-1].parameters():\n    p.requires_grad = False\n",
        "for p in model[:2].parameters():\n    p.requires_grad = False\n",
    ],
)
def test_layers_that_are_frozen_by_their_place_stay_as_they_are(frozen: str) -> None:
    trained(IN_A_ROW + frozen + ADAMW + LOOP)
