"""Parameters that no step reaches aren't decayed; steps that reach different ones are left, but for plain steps.

PyTorch's optimizers leave a parameter without gradient as it is. In JAX its gradient is zero.
"""

from __future__ import annotations

from typing import Any

import pytest

from t2j_lsp import convert
from t2j_lsp.translate.training.steps.reached import Reaching

TEXT = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):
    def __init__(self, use_aux=False):
        super().__init__()
        self.a = nn.Linear(6, 8)
        self.c = nn.Linear(8, 3)
        self.aux = nn.Linear(8, 3)
        self.use_aux = use_aux

{methods}

def train(net, opt, x, y, both):
    for i in range(6):
        opt.zero_grad()
        {loss}
        loss.backward()
        opt.step()

net = Net()
opt = torch.optim.{optimizer}
train(net, opt, torch.randn(32, 6), torch.randint(0, 3, (32,)), both=False)
{after}
"""
BOTH = "    def forward(self, x):\n        h = torch.relu(self.a(x))\n        return self.c(h), self.aux(h)"
ADAM, ADAMW = "Adam(net.parameters(), lr=0.01)", "AdamW(net.parameters(), lr=0.01)"
OUT = "loss = F.cross_entropy(net(x), y)"
FIRST = "out, aux = net(x)\n        loss = F.cross_entropy(out, y)"


def made(methods: str = BOTH, loss: str = FIRST, optimizer: str = ADAMW, after: str = "") -> tuple[str, list[str]]:
    done = convert(TEXT.format(methods=methods, loss=loss, optimizer=optimizer, after=after))
    masks = [line.strip().removeprefix("mask=") for line in done.code.splitlines() if "mask=label" in line]
    return "".join(masks), [gap.reason for gap in done.gaps]


def forward(*lines: str, head: str = "x") -> str:
    body = "".join(f"\n        {line}" for line in ("h = torch.relu(self.a(x))", *lines))
    return f"    def forward(self, {head}):{body}"


UNREACHED = {
    "another value": (BOTH, FIRST),
    "one of several": (BOTH, "out = net(x)\n        loss = F.cross_entropy(out[0], y)"),
    "never read": (forward("return self.c(h)"), OUT),
    "a default": (forward("if aux:", "    return self.aux(h)", "return self.c(h)", head="x, aux=False"), OUT),
    "an attribute": (forward("return self.c(h) + self.aux(h) if self.use_aux else self.c(h)"), OUT),
    "an item of a dict": (
        forward('out = {"main": self.c(h)}', 'out["aux"] = self.aux(h)', "return out"),
        'out = net(x)\n        loss = F.cross_entropy(out["main"], y)',
    ),
    "an argument of the loop": (
        BOTH,
        "out, aux = net(x)\n        loss = F.cross_entropy(out, y) + F.cross_entropy(aux, y) if both else "
        "F.cross_entropy(out, y)",
    ),
    "detached": (forward("return self.c(h) + self.aux(h).detach()"), OUT),
}


@pytest.mark.parametrize("case", UNREACHED)
def test_what_no_step_reaches_is_not_decayed(case: str) -> None:
    masks, gaps = made(*UNREACHED[case])
    assert gaps == []
    assert 'not name.startswith("aux.")' in masks
    assert made(*UNREACHED[case], optimizer=ADAM) == ("", [])


REACHED = {
    "lambda": (forward("f = lambda t: self.aux(t)", "return self.c(h) + f(h)"), OUT),
    "checkpoint": (
        "    def tail(self, h):\n        return self.c(h) + self.aux(h)\n\n"
        + forward("return checkpoint(self.tail, h, use_reentrant=False)"),
        OUT,
    ),
    "property": (
        "    @property\n    def scale(self):\n        return self.aux.weight.mean()\n\n"
        + forward("return self.c(h) * self.scale"),
        OUT,
    ),
    "all parameters": (BOTH, f"{FIRST} + sum(p.abs().sum() for p in net.parameters())"),
    "a weight of zero": (BOTH, f"{FIRST} + (0.0 if i < 3 else 0.5) * F.cross_entropy(aux, y)"),
    "a list": (
        forward("return [self.c(h), self.aux(h)]"),
        "loss = 0\n        for out in net(x):\n            loss = loss + F.cross_entropy(out, y)",
    ),
    "the mode": (
        forward("if self.training:", "    return self.c(h), self.aux(h)", "return self.c(h), None"),
        f"{FIRST} + F.cross_entropy(aux, y)",
    ),
    "not None": (
        forward("if y is not None:", "    return F.cross_entropy(self.c(h) + self.aux(h), y)", head="x, y=None"),
        "loss = net(x, y)",
    ),
    "walks": (
        forward("for layer in self.children():", "    x = layer(x)", "return x"),
        OUT,
    ),
}


@pytest.mark.parametrize("case", REACHED)
def test_what_may_be_reached_is_decayed_as_ever(case: str) -> None:
    masks, _ = made(*REACHED[case])
    assert masks == ""


UNEVEN = {
    "later": (BOTH, f"{FIRST}\n        if i > 2:\n            loss = loss + F.cross_entropy(aux, y)", ""),
    "either": (BOTH, "out, aux = net(x)\n        loss = F.cross_entropy(out if i < 3 else aux, y)", ""),
    "calls": (
        BOTH,
        "out, aux = net(x)\n        loss = F.cross_entropy(aux if both else out, y)",
        "train(net, opt, torch.randn(32, 6), torch.randint(0, 3, (32,)), both=True)",
    ),
    "a flag of the module": (
        forward("return self.c(h) + self.aux(h) if self.use_aux else self.c(h)"),
        f"net.use_aux = i > 2\n        {OUT}",
        "",
    ),
}


FLAGGED = forward("return self.c(h) + self.aux(h) if self.use_aux else self.c(h)")


def test_a_flag_that_is_set_when_all_steps_are_over_changes_none() -> None:
    masks, gaps = made(FLAGGED, OUT, after="net.use_aux = True\nprint(net(torch.ones(1, 6)))")
    assert gaps == []
    assert 'not name.startswith("aux.")' in masks


def test_a_flag_that_is_set_before_all_steps_says_nothing_of_them() -> None:
    text = TEXT.format(methods=FLAGGED, loss=OUT, optimizer=ADAMW, after="")
    done = convert(text.replace("opt = torch", "net.use_aux = True\nopt = torch"))
    assert not done.gaps
    assert "mask=" not in done.code


@pytest.mark.parametrize("case", UNEVEN)
def test_steps_that_reach_different_parameters_are_left(case: str) -> None:
    methods, loss, after = UNEVEN[case]
    _, gaps = made(methods, loss, ADAM, after)
    assert len(gaps) == 1
    assert "Not every step of opt reaches the same parameters" in gaps[0]
    assert made(methods, loss, "SGD(net.parameters(), lr=0.1)", after)[1] == []


def test_groups_that_differ_in_their_decay_keep_it() -> None:
    decays = "[p for p in net.parameters() if p.ndim > 1]"
    others = "[p for p in net.parameters() if p.ndim <= 1]"
    groups = (
        f"AdamW([{{'params': {decays}, 'weight_decay': 0.1}}, {{'params': {others}, 'weight_decay': 0.0}}], lr=0.01)"
    )
    masks, gaps = made(optimizer=groups)
    assert gaps == []
    assert "p.ndim > 1" in masks.replace("parameter.ndim", "p.ndim")
    assert 'not name.startswith("aux.")' in masks


def test_what_else_decays_is_refused() -> None:
    _, gaps = made(optimizer="ASGD(net.parameters(), lr=0.01)")
    assert len(gaps) == 1
    assert "have no gradient" in gaps[0]


PAIR = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.spare = nn.Linear(6, 8), nn.Linear(6, 8)

    def forward(self, x):
        return torch.relu(self.a(x))

class Dec(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(8, 3)

    def forward(self, x):
        return self.c(x)

enc, dec = Enc(), Dec()
opt = torch.optim.{optimizer}(list(enc.parameters()) + list(dec.parameters()), lr=0.01)
x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
for i in range(4):
    opt.zero_grad()
    loss = {loss}
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("optimizer", "loss", "said"),
    [
        ("AdamW", "F.cross_entropy(dec(enc(x)), y)", "No step reaches 'spare'"),
        ("Adam", "F.cross_entropy(dec(enc(x)), y)", ""),
        ("Adam", "F.cross_entropy(dec(enc(x)), y) if i % 2 else enc(x).mean()", "Not every step of opt reaches"),
    ],
)
def test_an_optimizer_of_two_modules(optimizer: str, loss: str, said: str) -> None:
    gaps = convert(PAIR.format(optimizer=optimizer, loss=loss)).gaps
    assert len(gaps) == bool(said)
    assert all(said in gap.reason for gap in gaps)


def test_an_optimizer_that_some_calls_leave_out_is_that_of_the_others() -> None:
    text = PAIR.format(optimizer="Adam", loss="F.cross_entropy(dec(enc(x)), y)")
    head, _, body = text.partition("for i in range(4):\n")
    steps = "".join(f"    {line}\n" for line in body.splitlines())
    function = f"def run(enc, dec, opt=None):\n    if opt is not None:\n{steps}    return dec(enc(x)).mean().item()\n\n"
    done = convert(f"{head}{function}run(enc, dec, opt)\nprint(run(enc, dec))\n")
    assert not done.gaps
    assert not any("is taken to update" in note.reason for note in done.findings)


HIDDEN = {
    "the base's forward": "class Net(Base):\n    def forward(self, x):\n        return self.c(super().forward(x))\n",
    "a parameter that is appended to": (
        "class Net(Base):\n    def run(self, x, outs):\n        outs.append(self.c(torch.relu(self.a(x))))\n\n"
        "    def forward(self, x):\n        outs = []\n        self.run(x, outs)\n        return outs[0]\n"
    ),
    "a nested function": (
        "class Net(Base):\n    def forward(self, x):\n        h = self.a(x)\n\n        def top():\n"
        "            return self.c(h)\n\n        return top()\n"
    ),
    "another name of a list": (
        "class Net(Base):\n    def forward(self, x):\n        outs = [x]\n        found = {'all': outs}\n"
        "        kept = found['all']\n        kept.append(self.c(self.a(x)))\n        return outs[-1]\n"
    ),
    "a walrus": (
        "class Net(Base):\n    def forward(self, x):\n        n = (h := self.a(x)).shape[0]\n"
        "        return self.c(h.view(n, -1))\n"
    ),
    "a match": (
        "class Net(Base):\n    def forward(self, x):\n        match self.a(x):\n            case h:\n"
        "                return self.c(h)\n"
    ),
    "rows of a tensor": (
        "class Net(Base):\n    def forward(self, x):\n        h = self.a(x)\n        out = torch.zeros(2, 4, 3)\n"
        "        out[0] = self.c(h)\n        out[1] = h[:, :3]\n        return out\n"
    ),
    "an attribute that is bound again": (
        "class Net(Base):\n    def __init__(self, aux=None):\n        super().__init__()\n        if aux is None:\n"
        "            aux = True\n        self.aux = aux\n\n    def forward(self, x):\n        h = self.a(x)\n"
        "        return self.c(h) if self.aux else h\n"
    ),
    "a property": (
        "class Net(Base):\n    @property\n    def aux(self):\n        return True\n\n    def forward(self, x):\n"
        "        h = self.a(x)\n        return self.c(h) if self.aux else h\n\n"
        "class Other:\n    def __init__(self):\n        self.aux = False\n"
    ),
    "an attribute that is set by its name": (
        "class Net(Base):\n    def __init__(self):\n        super().__init__()\n        self.aux = False\n\n"
        "    def forward(self, x):\n        h = self.a(x)\n        return self.c(h) if self.aux else h\n\n"
        "def switch(net, name):\n    setattr(net, name, True)\n"
    ),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_what_is_reached_in_a_way_that_is_hard_to_follow_is_decayed(case: str) -> None:
    base = (
        "import torch\nimport torch.nn as nn\n\nclass Base(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.a, self.c = nn.Linear(6, 8), nn.Linear(8, 3)\n\n"
        "    def forward(self, x):\n        return torch.relu(self.a(x))\n\n"
    )
    training = (
        "\nnet = Net()\nopt = torch.optim.AdamW(net.parameters(), lr=0.01)\nx = torch.ones(4, 6)\nfor i in range(4):\n"
        "    opt.zero_grad()\n    loss = net(x).{}\n    loss.backward()\n    opt.step()\n"
    )
    value = "mean()" if case != "rows of a tensor" else "mean(0)[1].mean()"
    code = convert(base + HIDDEN[case] + training.format(value)).code
    assert "opt = " in code
    assert "mask=" not in code


def test_arguments_that_are_spread_are_not_defaults() -> None:
    text = TEXT.format(methods=BOTH, loss=UNEVEN["calls"][1], optimizer=ADAMW, after="").replace(
        "def train(net, opt, x, y, both)", "def train(net, opt, x, y, both=False)"
    )
    done = convert(text.replace(", both=False)\n\n", ', **{"both": True})\n\n'))
    assert "mask=" not in done.code


def test_the_body_of_a_function_is_followed_once_for_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = 0
    follow = Reaching._block

    def counted(self: Reaching, *given: Any, **named: Any) -> None:
        nonlocal followed
        followed += 1
        follow(self, *given, **named)

    monkeypatch.setattr(Reaching, "_block", counted)
    text = (
        "import torch\nfrom torch import nn\n\nclass B0(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.a = nn.Linear(4, 4)\n\n    def forward(self, x):\n"
        "        return self.a(x)\n"
    )
    for depth in range(1, 8):
        text += (
            f"\nclass B{depth}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"        self.a = B{depth - 1}()\n\n    def forward(self, x):\n"
            "        return self.a(x) + self.a(self.a(x))\n"
        )
    convert(
        f"{text}\nnet = B7()\nopt = torch.optim.Adam(net.parameters())\nx = torch.ones(2, 4)\nfor i in range(3):\n"
        "    opt.zero_grad()\n    loss = net(x).mean()\n    loss.backward()\n    opt.step()\n"
    )
    assert 8 < followed < 50
