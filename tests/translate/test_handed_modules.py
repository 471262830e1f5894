"""Modules that constructors are handed: a program shows which they are, a file that others import doesn't."""

from __future__ import annotations

from t2j_lsp import convert

from .printed import printed

TRAINER = """\
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr)

    def step(self, x):
        loss = self.model(x).pow(2).mean() + 0.1 * self.model.weight[0].sum()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()
"""
RUN = """

net = nn.Linear(2, 3)
nn.init.constant_(net.bias, 1.0)
with torch.no_grad():
    net.weight.copy_(torch.arange(6.0).view(3, 2))
trainer = Trainer(net, 0.1)
for _ in range(3):
    print(round(trainer.step(torch.tensor([[1.0, 2.0], [0.5, -1.0]])), 5))
"""
PARTS = """\
import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        nn.init.constant_(self.fc.bias, 0.5)

    def forward(self, x):
        return self.fc(x)


class Both(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, x):
        return self.decoder(self.encoder(x))


"""
SHAPES = """\
print(tuple(model.encoder.fc.weight.shape), tuple(model.decoder.weight.shape), model.encoder.fc.bias.sum().item())
"""


def test_a_program_shows_the_class_of_what_its_trainer_is_given() -> None:
    result = convert(TRAINER + RUN)
    assert not result.gaps and "model.kernel.T[0]" in result.code
    assert printed(result.code) == printed(TRAINER + RUN)


def test_parts_that_a_module_is_given_have_their_own_names() -> None:
    source = PARTS + "model = Both(Encoder(), nn.Linear(2, 3))\n" + SHAPES
    result = convert(source)
    assert not result.gaps
    assert printed(result.code) == printed(source)


def test_parts_of_several_classes_are_told_apart_when_the_program_runs() -> None:
    made = "model = Both(Encoder(), nn.Linear(2, 3))\nother = Both(nn.Linear(3, 2), nn.Embedding(2, 3))\n"
    result = convert(PARTS + made + SHAPES)
    assert not result.gaps and 'torch_parameter(model.decoder, "weight")' in result.code
    assert printed(result.code) == printed(PARTS + made + SHAPES)


def test_a_module_that_others_hand_to_a_class_is_told() -> None:
    result = convert(TRAINER)
    assert not result.gaps and 'torch_parameter(model, "weight")[0]' in result.code
