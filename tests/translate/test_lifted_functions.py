"""Functions that a loss is computed with get what a compiled step must be given, which they read from outside."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F


"""
TRAIN = """

net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(20, 3)
for epoch in range(4):
    {before}
    loss = {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def converted(function: str, loss: str, before: str = "pass", head: str = "") -> tuple[str, list[str]]:
    """The output for a training loop whose loss is computed by a function, and the reasons for its gaps."""
    text = HEAD + head + function + TRAIN.format(loss=loss, before=before)
    translation = translate(text, Options(helpers="import"))
    return translation.code, [gap.reason for gap in translation.gaps]


PLAIN = "def loss_of(x):\n    return net(x).pow(2).mean()\n"
LIFTED = {
    "a model": (PLAIN, "loss_of(x)", ["def loss_of(net, x):", "loss_of(net, x)"]),
    "a model behind another function": (
        "def out(x):\n    return net(x)\n\n\ndef loss_of(x):\n    return out(x).pow(2).mean()\n",
        "loss_of(x)",
        ["def out(net, x):", "return (out(net, x)**2).mean()", "loss_of(net, x)"],
    ),
    "a model of a function without parameters": (
        "def penalty():\n    return net.weight.pow(2).sum()\n",
        "net(x).mean() + penalty()",
        ["def penalty(net):", "penalty(net)"],
    ),
    "a call on several lines": (
        PLAIN,
        "loss_of(\n        x,\n    )",
        ["loss_of(\n            net,\n            x,\n        )"],
    ),
    "parameters on several lines": (
        "def loss_of(\n    x,\n    scale=2.0,\n):\n    return scale * net(x).pow(2).mean()\n",
        "loss_of(x, scale=3.0)",
        ["def loss_of(\n    net,\n    x,", "loss_of(net, x, scale=3.0)"],
    ),
}


@pytest.mark.parametrize(("function", "loss", "written"), LIFTED.values(), ids=LIFTED)
def test_what_a_function_reads_from_outside_is_passed(function: str, loss: str, written: list[str]) -> None:
    code, reasons = converted(function, loss)
    assert not reasons
    for line in written:
        assert line in code


CHANGING = {
    "a weight that grows": (
        "beta = 0.0\n\n\n",
        "def loss_of(model, x):\n    return beta * model(x).mean()\n",
        "beta = epoch / 2",
    ),
    "an array that grows": (
        "beta = torch.zeros(1)\n\n\n",
        "def loss_of(model, x):\n    return (beta * model(x)).mean()\n",
        "beta = beta + 1",
    ),
    "an array that is written to": (
        "beta = torch.zeros(4)\n\n\n",
        "def loss_of(model, x):\n    return (beta.sum() * model(x)).mean()\n",
        "beta[epoch] = 1.0",
    ),
}


@pytest.mark.parametrize(("head", "function", "before"), CHANGING.values(), ids=CHANGING)
def test_what_changes_is_passed_behind_the_own_arguments(head: str, function: str, before: str) -> None:
    code, reasons = converted(function, "loss_of(net, x)", before, head)
    assert not reasons
    assert "def loss_of(model, x, beta):" in code
    assert "loss_of(net, x, beta)" in code
    assert "train_step(net, opt, beta, x)" in code or "train_step(net, opt, x, beta)" in code


def test_what_stays_the_same_is_read_from_outside() -> None:
    function = "def loss_of(model, x):\n    return (beta * model(x) + bias).mean()\n"
    code, reasons = converted(function, "loss_of(net, x)", head="beta = 0.5\nbias = torch.ones(1)\n\n\n")
    assert not reasons
    assert "def loss_of(model, x):" in code
    assert "loss_of(net, x)" in code


ENV = """class Env:
    def __init__(self):
        self.scale = torch.ones(3)

    def step(self, x):
        return x * self.scale


env = Env()
"""


def test_a_method_may_be_called_as_one_of_the_optimizer_is() -> None:
    """An environment's `step`, in front of `optimizer.step()`."""
    code, reasons = converted(ENV, "net(env.step(x)).mean()")
    assert not reasons
    assert "opt.update(net, grads)" in code or "optimizer.update(net, grads)" in code
    loop = f"def fit(net: nn.Linear, opt, x):{TRAIN.partition('torch.randn(20, 3)')[2]}".replace("\nfor", "\n  for")
    loop = loop.format(before="pass", loss="net(env.step(x)).mean()").replace("\n    ", "\n      ")
    (reason,) = (gap.reason for gap in translate(HEAD + ENV + "\n\n" + loop).gaps)
    assert "Can't tell whether opt.step is Env.step" in reason


def test_settings_that_change_are_passed() -> None:
    head = "import argparse\n\nargs = argparse.ArgumentParser().parse_args()\nargs.beta = 1.0\n\n\n"
    function = "def loss_of(model, x):\n    return args.beta * model(x).mean()\n"
    code, reasons = converted(function, "loss_of(net, x) * args.beta", "args.beta = 0.1 * epoch", head)
    assert not reasons
    assert "def loss_of(model, x, beta):" in code
    assert "loss_of(net, x, beta) * beta" in code


REFUSED = {
    "it changes a list": (
        "seen = []\n\n\ndef loss_of(model, x):\n    seen.append(x.mean())\n    return model(x).mean()\n",
        "loss_of(net, x)",
        "loss_of changes seen",
    ),
    "it is used as a value": (PLAIN + "\n\nkept = loss_of\n", "loss_of(x)", "is used as a value"),
    "it calls itself": (
        "def loss_of(x, n=2):\n    return loss_of(x, n - 1) if n else net(x).mean()\n",
        "loss_of(x)",
        "calls itself",
    ),
    "its model's name is another's where it is called": (
        PLAIN + "\n\ndef other(net, x):\n    return loss_of(x)\n",
        "loss_of(x)",
        "something else where it is called",
    ),
    "items of settings change": (
        "cfg = {'beta': 1.0}\n\n\ndef loss_of(model, x):\n    return cfg['beta'] * model(x).mean()\n",
        "loss_of(net, x) * cfg['beta']",
        "cfg['beta'], which changes",
    ),
}


@pytest.mark.parametrize(("function", "loss", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_can_not_be_passed_is_refused(function: str, loss: str, reason: str) -> None:
    code, reasons = converted(function, loss, "cfg['beta'] = 2.0" if "cfg" in loss else "pass")
    assert any(reason in one for one in reasons), reasons
    assert f"loss = {loss}" in code


def test_a_module_that_reads_what_changes_is_refused() -> None:
    module = "class Soft(nn.Module):\n    def forward(self, x):\n        return x / heat\n\n\nsoft = Soft()\n"
    _, reasons = converted(module, "soft(net(x)).mean()", "heat = 1.0 + epoch", "heat = 1.0\n\n\n")
    assert any("forward reads heat, which changes" in one for one in reasons), reasons


TRAINER = """class Trainer:
    def __init__(self, model, l2=1e-3):
        self.model = model
        self.l2 = l2
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(self, x, y):
        return F.mse_loss(self.model(x), y) + self.l2 * x.mean()

    def fit(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def evaluate(self, x, y):
        return self.loss(x, y).item()
{more}

trainer = Trainer(nn.Linear(3, 1))
x, y = torch.randn(20, 3), torch.randn(20, 1)
print(trainer.fit(x, y), trainer.loss(x, y).item())
"""


def test_a_method_goes_static() -> None:
    translation = translate(HEAD + TRAINER.format(more=""), Options(helpers="import"))
    assert not translation.gaps
    for line in (
        "    @staticmethod\n    def loss(model, x, y, l2):",
        "Trainer.loss(model, x, y, l2)",
        "return self.loss(self.model, x, y, self.l2).item()",
        "trainer.loss(trainer.model, x, y, trainer.l2).item()",
    ):
        assert line in translation.code


def test_a_method_that_another_class_has_too_stays() -> None:
    more = "\n\nclass Other(Trainer):\n    def loss(self, x, y):\n        return self.model(x).mean()\n"
    translation = translate(HEAD + TRAINER.format(more=more), Options(helpers="import"))
    assert any("another class has a method of this name" in gap.reason for gap in translation.gaps)
    assert "def loss(self, x, y):" in translation.code


NESTED = """def main():
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(20, 3)

    # the loss of one batch
    def loss_of(batch):
        return {loss}

    for batch in x.split(5):
        opt.zero_grad()
        loss = loss_of(batch)
        loss.backward()
        opt.step()


main()
"""


def test_a_function_in_another_moves_to_the_module_level() -> None:
    translation = translate(HEAD + NESTED.format(loss="model(batch).pow(2).mean()"), Options(helpers="import"))
    assert not translation.gaps
    assert "\n# the loss of one batch\ndef loss_of(model, batch):\n    return" in translation.code
    assert "loss_of(model, batch)" in translation.code
    assert "graph=False)\n    for batch in split(x, 5):\n        step(batch)\n" in translation.code


def test_a_function_that_draws_stays_where_it_is() -> None:
    loss = "(model(batch) + torch.randn(5, 1)).mean()"
    translation = translate(HEAD + NESTED.format(loss=loss), Options(helpers="import"))
    assert any("can't move to the module level" in gap.reason for gap in translation.gaps)


def test_numbers_that_a_model_gives_stay_in_front_of_the_step() -> None:
    function = "def act(x):\n    return net(x).argmax().item()\n\n\n" + PLAIN
    code, reasons = converted(function, "loss_of(x) * n", "n = act(x)")
    assert not reasons
    assert "n = act(x)\n    train_step(" in code
    assert "def act(x):" in code


IMPORTED = """net = nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def loss_of(x):
    return net(x).pow(2).mean()


def step(x):
    optimizer.zero_grad()
    loss = loss_of(x)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("more", "said"), [("", True), ("\n\nif __name__ == '__main__':\n    step(torch.ones(2, 3))\n", False)]
)
def test_what_other_files_have_to_pass_is_said(more: str, said: bool) -> None:
    done = translate(HEAD + IMPORTED + more, Options(helpers="import"))
    assert not done.gaps
    assert any("loss_of is given net by its callers now" in f.reason for f in done.findings) is said


def test_a_variable_of_a_comprehension_is_no_other_of_its_name() -> None:
    text = (
        f"{HEAD}class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.l = nn.Linear(3, 3)\n\n"
        "    def forward(self, xs):\n        return sum(tuple(self.l(x) for x in xs))\n\n\n"
        "net = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nfor i in range(3):\n    x = torch.randn(4, 3)\n"
        "    opt.zero_grad()\n    loss = F.mse_loss(net([x, x]), x)\n    loss.backward()\n    opt.step()\n"
    )
    assert not translate(text, Options(helpers="import")).gaps


def test_a_method_that_gives_the_loader_stays_one() -> None:
    """What it gives stays PyTorch's: no step runs it, also where a method call in front may change the object."""
    done = translate(
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\n\nclass Trainer:\n"
        "    def __init__(self, model, data):\n        self.model, self.data = model, data\n\n"
        "    def loader(self):\n        return DataLoader(self.data, batch_size=4)\n\n"
        "    def prepare(self, lr):\n        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)\n\n"
        "    def loss(self, batch):\n        return self.model(batch).square().mean()\n\n"
        "    def train(self):\n        loader = self.loader()\n        self.prepare(0.1)\n"
        "        for batch in loader:\n"
        "            self.optimizer.zero_grad()\n            loss = self.loss(batch)\n            loss.backward()\n"
        "            self.optimizer.step()\n            print(loss.item())\n\n\n"
        "Trainer(nn.Linear(3, 1), torch.rand(8, 3)).train()\n"
    )
    assert not done.gaps
    assert "    def loader(self):\n        return DataLoader(self.data, batch_size=4)\n" in done.code
    assert "loader = self.loader()\n" in done.code
