"""What a step has to know while it is traced: texts, devices, settings, and what is asked for in front of it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .printed import printed

OF_TEXTS = """\
import torch
from torch import nn, optim

data = [("the dog ate".split(), [1, 2, 0]), ("they read".split(), [0, 2])]
index = {"the": 0, "dog": 1, "ate": 2, "they": 3, "read": 4}


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 3)

    def forward(self, words, repeats):
        x = self.embed(torch.tensor([index[word] for word in words]))
        for _ in range(repeats):
            x = torch.tanh(x)
        return x


model = Tagger()
optimizer = optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()


def train(args):
    for words, tags in data:
        optimizer.zero_grad()
        loss = criterion(model(words, args.repeats), torch.tensor(tags))
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def test_texts_and_numbers_that_a_forward_pass_needs_while_it_is_traced_are_static() -> None:
    converted = convert(OF_TEXTS)
    assert not converted.gaps
    assert '@nnx.jit(static_argnames=("words", "repeats"), graph=False)' in converted.code
    assert "loss = train_step(model, optimizer, jnp.array(tags), tuple(words), args.repeats)" in converted.code


def test_lists_of_lists_of_texts_are_told() -> None:
    nested = OF_TEXTS.replace("words, tags in data", "words, tags in [(['the'.split()], [1])]")
    (gap,) = convert(nested).gaps
    assert "lists with texts in them" in gap.reason


ON_A_DEVICE = """\
import torch


def batch_loss(x, y, model, device):
    x, y = x.to(device), y.to(device)
    return torch.nn.functional.cross_entropy(model(x), y)


def train(model, optimizer, batches, device):
    for x, y in batches:
        optimizer.zero_grad()
        loss = batch_loss(x, y, model, {given})
        loss.backward()
        optimizer.step()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = torch.nn.Linear(4, 3).to(device)
    train(model, torch.optim.Adam(model.parameters()), [(torch.randn(2, 4), torch.tensor([1, 2]))], device)


main()
"""


@pytest.mark.parametrize("given", ["device", "device=device"])
def test_a_device_that_the_loss_is_given_is_known_to_the_step(given: str) -> None:
    done = convert(ON_A_DEVICE.format(given=given))
    assert not done.gaps, done.gaps
    assert "train_step(model, optimizer, x, y, device)" in done.code
    assert 'static_argnames="device"' in done.code


CALLED = """\
import torch
import torch.nn as nn

mse = lambda x, y: torch.mean((x - y) ** 2)  # of a render
psnr = lambda x: -10.0 * torch.log10(x)
{more}


def get_embedder(n):
    if n == 0:
        return nn.Identity(), 3
    frequencies = 2.0 ** torch.arange(n)
    embed = lambda x: torch.cat([torch.sin(x * f) for f in frequencies], -1)
    return embed, 3 * n


def render(model, embed, x):
    return model(embed(x))


def train(x, y):
    embed, channels = {made}
    model = nn.Linear(channels, 3)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        loss = mse(render(model, embed, x), y)
        loss.backward()
        optimizer.step()
        print(psnr(loss.detach()))


train(torch.rand(5, 3), torch.rand(5, 3))
"""


def test_lambdas_with_a_name_that_a_step_calls_are_functions() -> None:
    done = convert(CALLED.format(made="get_embedder(4)", more=""))
    assert not done.gaps, done.gaps
    assert (
        "\n\ndef mse(x, y):\n    return jnp.mean((x - y) ** 2)  # of a render\n\n\ndef psnr(x):\n    return "
        in done.code
    )
    assert "bound_jit(train_step, model, optimizer, embed=embed)(x, y)" in done.code


@pytest.mark.parametrize(
    "more",
    ["from embedders import get_embedder as other", "other = {'4': (nn.Linear(3, 12), 12)}.get"],
    ids=["imported", "perhaps a module"],
)
def test_what_may_be_a_module_that_a_step_calls_is_no_function(more: str) -> None:
    """A module that is handed on as a function keeps the parameters that it had when the step was compiled."""
    named = CALLED.replace("mse = lambda x, y:", "def mse(x, y):\n    return")
    done = convert(named.format(made="other('4')", more=more))
    assert "Partial(embed)" not in done.code
    assert any("embed" in gap.reason for gap in done.gaps), done.gaps


ASKED = """\
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model):
        self.model, self.steps, self.asked = model, 1, []
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def beta(self, most=1.0):
        {body}

    def fit(self, x):
        for _ in range(3):
            {front}loss = self.model(x).pow(2).mean() + {asked} * self.model.weight.sum()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.steps += 1
            print(round(loss.item(), 5))


net = nn.Linear(2, 1, bias=False)
nn.init.constant_(net.weight, 0.5)
Trainer(net).fit(torch.tensor([[1.0, 2.0], [0.5, -1.0]]))
"""


RISES = "return min(most, self.steps / 4)"


@pytest.mark.parametrize("asked", ["self.beta()", "self.beta(0.6)", "(1 - self.beta(most=0.6))"])
def test_a_number_that_an_object_gives_is_asked_for_in_front_of_the_step(asked: str) -> None:
    source = ASKED.format(body=RISES, front="", asked=asked)
    result = convert(source)
    assert not result.gaps
    assert "bound_jit(train_step, self.model, self.opt)(x, self.beta(" in result.code
    assert printed(result.code) == printed(source)


@pytest.mark.parametrize("weight", ["2 / (1 + np.exp(-self.steps / 4)) - 1", "np.sqrt(self.steps) * np.cos(0.5)"])
def test_a_number_that_numpy_computes_of_numbers_is_passed_as_one(weight: str) -> None:
    source = "import numpy as np\n" + ASKED.format(body=RISES, front=f"w = {weight}\n            ", asked="w")
    result = convert(source)
    assert not result.gaps and "bound_jit(train_step, self.model, self.opt)(x, w)" in result.code
    assert printed(result.code) == printed(source)


@pytest.mark.parametrize(
    ("body", "front", "asked"),
    [
        ("self.asked.append(1)\n        " + RISES, "", "self.beta()"),
        (RISES, "self.steps += 1\n            ", "self.beta()"),
        (RISES, "", "(self.beta() if len(x) > 3 else 1.0)"),
    ],
    ids=["it keeps something", "what it reads changes in front of it", "a condition decides about it"],
)
def test_a_number_that_is_not_the_same_in_front_of_the_step_is_not_asked_for_there(
    body: str, front: str, asked: str
) -> None:
    source = ASKED.format(body=body, front=front, asked=asked)
    result = convert(source)
    assert result.gaps or printed(result.code) == printed(source)


SETTINGS = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Learner:
    def __init__(self, config):
        self.config = config
        self.model = nn.Linear(3, 2)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=config["lr"])

    def loss(self, x, y):
        out = F.cross_entropy(self.model(x), y)
        {more}
        return out

    def step(self, x, y):
        loss = self.loss(x, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


print(Learner({{"lr": 0.1, "l2": 0.01, "times": 2}}).step(torch.ones(4, 3), torch.tensor([0, 1, 1, 0])))
"""


@pytest.mark.parametrize(
    "more",
    [
        "if self.config.get('l2', 0) > 0:\n            out = out * 2",
        "if self.config['l2']:\n            out = out * 2",
        "for _ in range(self.config['times']):\n            out = out * 2",
    ],
)
def test_settings_whose_items_decide_what_is_computed_are_told(more: str) -> None:
    reasons = [gap.reason for gap in convert(SETTINGS.format(more=more)).gaps]
    assert any("decide what is computed" in reason for reason in reasons), reasons


def test_settings_whose_items_are_only_computed_with_are_passed() -> None:
    result = convert(SETTINGS.format(more="out = out * self.config['l2']"))
    assert not result.gaps and "self.config, x, y)" in result.code
