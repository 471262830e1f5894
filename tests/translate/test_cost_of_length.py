"""Twice as much training code takes about twice the work: counted, not timed."""

from __future__ import annotations

import cProfile
import pstats

from t2j_lsp.translate import translate

HEAD = (
    "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader\n\n\n"
)
PART = """class Net{0}(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return F.relu(self.fc(x))


def train{0}(model: Net{0}, loader: DataLoader, rate: float):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def test{0}(model: Net{0}, loader: DataLoader):
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct


"""


def work(number: int) -> int:
    """How many functions a conversion of so many models and loops calls."""
    profile = cProfile.Profile()
    result = profile.runcall(translate, HEAD + "".join(map(PART.format, range(number))))
    assert not result.gaps
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_models_and_loops_cost_what_fewer_of_them_do() -> None:
    work(1)
    assert work(48) / work(24) < 2.3
