"""Draws of whole programs are common to both sides, whichever of two networks draws first in a train step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.programs.run import RunSettings, run_program
from t2j_lsp.check.workers.programs.parametric import BY_PARAMETERS as DRAWN_BY_PARAMETERS
from t2j_lsp.check.workers.programs.streams import Streams
from t2j_lsp.contract import Options, VerdictKind

TWO_NETWORKS = """\
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.fc2 = nn.Linear(8, 1)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x):
        return self.fc2(self.dropout(F.leaky_relu(self.fc1(x), 0.2)))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.fc2 = nn.Linear(8, 6)
        self.dropout = nn.Dropout(0.3)

    def forward(self, z):
        return torch.tanh(self.fc2(self.dropout(F.leaky_relu(self.fc1(z), 0.2))))


critic, generator = Critic(), Generator()
optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
images = torch.rand(5, 6)
for step in range(4):
    optimizer.zero_grad()
    real = F.softplus(-critic(images)).mean()
    with torch.no_grad():
        fakes = generator(torch.from_numpy(np.random.uniform(-1, 1, size=(5, 4))).float())
    loss = real + F.softplus(critic(fakes)).mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""
RATE = "nnx.Dropout(0.3, rngs=rngs)", "nnx.Dropout(0.35, rngs=rngs)"


@pytest.mark.parametrize(
    ("mistake", "verdict"), [(("", ""), VerdictKind.EQUIVALENT), (RATE, VerdictKind.DIFFERENT)], ids=["right", "a rate"]
)
def test_two_networks_may_draw_in_another_order(
    mistake: tuple[str, str], verdict: VerdictKind, pool: Pool, tmp_path: Path
) -> None:
    source = tmp_path / "program.py"
    source.write_text(TWO_NETWORKS)
    converted = convert_file(source, Options()).translation
    assert not converted.gaps
    loop = converted.code.partition("for step in")[2]
    assert 0 < loop.index("generator") < loop.index("train_step, critic, "), "the critic draws first in PyTorch"
    text = converted.code.replace(*mistake)
    assert run_program(source, text, RunSettings((), None, 300.0, False), pool=pool).verdict is verdict


INITIAL = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.fc2 = nn.Linear(3, 3)
        self.fc1 = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc1(torch.tanh(self.fc2(self.table(x))))


def init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight)
    elif isinstance(m, Net):
        nn.init.constant_(m.fc1.weight, 0.5)


model = Net()
words = torch.tensor([0, 3, 4, 1])
for m in model.modules():
    if isinstance(m, nn.Linear):
        nn.init.constant_(m.weight, 1.0)
    elif isinstance(m, Net):
        nn.init.constant_(m.fc1.weight, 0.0)
print(model(words))
model.apply(init)
print(model(words))
"""


def test_the_last_to_change_a_part_is_pytorchs_last_and_tables_are_wide(pool: Pool, tmp_path: Path) -> None:
    """A walk gives a module before its parts, `apply` behind them; in float64, nothing is looked up in float32."""
    source = tmp_path / "program.py"
    source.write_text(INITIAL)
    converted = convert_file(source, Options()).translation
    assert not converted.gaps
    report = run_program(source, converted.code, RunSettings((), None, 300.0, True), pool=pool)
    assert report.verdict is VerdictKind.EQUIVALENT
    assert report.values["printed"].numbers > 20
    assert report.values["printed"].max_rel_err < 1e-12
    wrong = converted.code.replace(", parts_first=True", "")
    assert wrong != converted.code
    assert run_program(source, wrong, RunSettings(), pool=pool).verdict is VerdictKind.DIFFERENT


MATRICES = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Linear(9, 9), nn.Linear(9, 5))
kernels = nn.Sequential(nn.Conv2d(2, 3, (2, 3)), nn.Conv2d(3, 12, 1))
table = nn.Parameter(torch.empty(5, 2, 3))
for layer in [*model, *kernels]:
    if isinstance(layer, (nn.Linear, nn.Conv2d)):
        nn.init.orthogonal_(layer.weight, 1.5)
nn.init.orthogonal_(table)
print(model(torch.ones(2, 4)), kernels(torch.ones(2, 2, 4, 5)).sum(0), table)
nn.init.trunc_normal_(model[0].weight, std=0.02)
nn.init.trunc_normal_(table, mean=1.0, std=2.0, a=-1.0, b=1.5)
print(model(torch.ones(2, 4)), table)
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("", ""), ("orthogonal(1.5)", "orthogonal(1.5, column_axis=0)"), ("0.02 * ", "0.03 * "), ("b=1.5", "b=2")],
)
def test_orthogonal_and_truncated_normal_numbers_outside_of_constructors_are_common(
    right: str, wrong: str, pool: Pool, tmp_path: Path
) -> None:
    """PyTorch draws them by other numbers, and JAX by functions of its own that are never asked for the tape's."""
    source = tmp_path / "program.py"
    source.write_text(MATRICES)
    converted = convert_file(source, Options()).translation
    assert not converted.gaps
    assert right in converted.code
    report = run_program(source, converted.code.replace(right, wrong), RunSettings((), None, 300.0, True), pool=pool)
    assert report.verdict is (VerdictKind.DIFFERENT if right else VerdictKind.EQUIVALENT)
    assert report.values["printed"].numbers > 150 or right


BY_PARAMETERS = """\
import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.dropout = nn.AlphaDropout(0.3)
        self.slopes = nn.RReLU(0.2, 0.4)

    def forward(self, x):
        positive = F.softplus(self.fc(x)) + 0.3
        x = D.Gamma(positive, 2.0).rsample() + D.Beta(positive, positive + 0.5).rsample()
        x = x + D.Dirichlet(positive).rsample() + D.StudentT(positive + 3).rsample().tanh()
        return self.dropout(self.slopes(x - 1)) + F.feature_alpha_dropout(x.view(-1, 2, 2), 0.4, True).view(-1, 4)


def counts(x):
    few = D.Binomial(7, torch.sigmoid(x)).sample() + torch.poisson(x.abs() * 3)
    return few + torch.empty(5, 4).geometric_(0.25) + torch.empty(5, 4).log_normal_(0.5, 0.3)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.linspace(-1, 2, 20).view(5, 4)
print(D.Poisson(torch.tensor([0.0, 0.2, 40.0, 450.0, 2000.0])).sample())
for step in range(4):
    noise = counts(x)
    optimizer.zero_grad()
    loss = ((model(x) - 1) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item(), noise, D.Chi2(noise + 0.1).sample())
"""
MISTAKES = [
    ("Gamma(positive, 2.0)", "Gamma(positive, 2.1)"),
    ("Dirichlet(positive).rsample", "Dirichlet(positive).sample"),
    ("AlphaDropout(0.3", "AlphaDropout(0.35"),
    ("0.2, 0.4", "0.2, 0.3"),
    ("total_count=7", "total_count=8"),
    ("geometric(0.25", "geometric(0.3"),
    ("jnp.exp(0.5 + 0.3", "jnp.exp(0.5 + 0.4"),
]


@pytest.mark.parametrize(("right", "wrong"), [("", ""), *MISTAKES])
def test_numbers_that_depend_on_parameters_are_common_in_train_steps_too(
    right: str, wrong: str, pool: Pool, tmp_path: Path
) -> None:
    """The parameters are known to a compiled function only when it runs; gradients flow to them through the numbers."""
    source = tmp_path / "program.py"
    source.write_text(BY_PARAMETERS)
    converted = convert_file(source, Options()).translation
    assert not converted.gaps
    assert not right or converted.code.count(right) == 1
    text = converted.code.replace(right, wrong) if right else converted.code
    report = run_program(source, text, RunSettings((), None, 300.0, False), pool=pool)
    assert report.verdict is (VerdictKind.DIFFERENT if right else VerdictKind.EQUIVALENT), report.reason
    assert right or report.values["printed"].numbers > 150


@pytest.mark.parametrize(
    ("kind", "parameters", "mean", "variance"),
    [
        ("gamma", 0.2, 0.2, 0.2),
        ("gamma", 3.5, 3.5, 3.5),
        ("poisson", 0.7, 0.7, 0.7),
        ("poisson", 60.0, 60.0, 60.0),
        ("poisson", 900.0, 900.0, 900.0),
        ("binomial", (9.0, 0.3), 2.7, 1.89),
    ],
)
def test_common_numbers_have_the_distribution(kind: str, parameters: Any, mean: float, variance: float) -> None:
    size = 40000
    given = np.broadcast_to(np.asarray(parameters)[..., None], (*np.shape(parameters), size))
    drawn = DRAWN_BY_PARAMETERS[kind](np.random.default_rng(3), given)
    np.testing.assert_allclose(drawn.mean(), mean, atol=5 * (variance / size) ** 0.5)
    np.testing.assert_allclose(drawn.var(), variance, rtol=0.1)


class Drawing:
    def __init__(self, streams: Streams) -> None:
        self.streams = streams

    def __call__(self) -> str:
        return self.streams.drawer()

    def sample(self) -> str:
        return self.streams.drawer()


TENSORS = """\
import torch


class Regression:
    def __init__(self, n):
        self.w = torch.randn(n, 1, requires_grad=True)

    def forward(self, x):
        return x @ self.w

    def fit(self, x, y):
        for epoch in range(3):
            loss = ((self.forward(x) - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                self.w -= 0.1 * self.w.grad
                self.w.grad.zero_()
            print(loss.item())


x, y = torch.randn(3, 1), torch.randn(3, 1)
model = Regression(1)
model.fit(x, y)
print(torch.randn(1, 1), model.w)
"""


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("", "", VerdictKind.EQUIVALENT),
        ("p - 0.1 * g", "p - 0.11 * g", VerdictKind.DIFFERENT),
        ("nnx.Param(rngs", "nnx.Param(1.1 * rngs", VerdictKind.DIFFERENT),
    ],
)
def test_a_class_that_is_no_module_in_pytorch_draws_what_it_is_made_of(
    old: str, new: str, verdict: VerdictKind, pool: Pool, tmp_path: Path
) -> None:
    source = tmp_path / "program.py"
    source.write_text(TENSORS)
    converted = convert_file(source, Options()).translation
    assert not converted.gaps and old in converted.code
    report = run_program(source, converted.code.replace(old, new), RunSettings((), None, 300.0, False), pool=pool)
    assert report.verdict is verdict
    assert not report.notes


class Derived(Drawing):
    """Its forward pass is its base's."""


class Outer:
    def __init__(self, inner: Drawing) -> None:
        self.inner = inner

    def __call__(self) -> str:
        return self.inner()


def test_who_draws_is_the_innermost_module_whose_class_both_programs_have() -> None:
    both, outer = Streams(0, ["Drawing", "Outer"], "__call__"), Streams(0, ["Outer"], "__call__")
    assert Drawing(both)() == Derived(both)() == Outer(Drawing(both))() == "Drawing"
    assert Outer(Drawing(outer))() == "Outer"
    assert Drawing(both).sample() == Drawing(Streams(0))() == Drawing(outer)() == ""


def test_each_class_counts_its_own_draws_and_all_of_them_are_reported() -> None:
    one, other = Streams(0), Streams(0)
    first = {name: one.draw("normal", (2, 3), name) for name in ("A", "B", "")}
    second = {name: other.draw("normal", (2, 3), name) for name in ("", "B", "A")}
    for name, numbers in first.items():
        np.testing.assert_array_equal(numbers, second[name])
    assert not np.array_equal(first["A"], first["B"])
    assert one.made == {"normal numbers of shape (2, 3)": 3}
