"""The benchmark of claims: a conversion that is right holds, one that is not is counted and named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import promise
from t2j_lsp.api import FileConversion, convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.contract import Options

NETS = """
import torch
from torch import nn


class Right(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return torch.relu(self.fc(x))


class Open(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return torch.frombuffer(self.fc(x))


class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return torch.tanh(self.fc(x))


def half(x):
    return torch.sigmoid(x) * 0.5


def main():
    print("not a claim")
"""


def test_claims_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "other.py").write_text("print('nothing to convert')\n")

    def wrong(path: Path, options: Options) -> FileConversion:
        done = convert_file(path, options)
        assert "jnp.tanh" in done.translation.code
        return replace(
            done, translation=replace(done.translation, code=done.translation.code.replace("jnp.tanh", "jnp.sin"))
        )

    monkeypatch.setattr(promise, "convert_file", wrong)
    with Pool(device="cpu") as pool:
        corpus = promise.measured(tmp_path, pool, {True: 10, False: 10}, 1, 60.0)
    assert (corpus.files, corpus.claimed, corpus.gaps, corpus.defects) == (1, 3, 1, [])
    assert len(corpus.broken) == 1 and "Wrong" in corpus.broken[0]
    assert corpus.verdicts["equivalent"] == 2
    assert "does not hold" in capsys.readouterr().out


CACHED = """\
import functools
import torch


@functools.lru_cache(maxsize=8)
def doubled(x: torch.Tensor):
    return torch.relu(x) * 2


def shifted(x: torch.Tensor):
    return doubled(x) + 1


def halved(x: torch.Tensor):
    return torch.relu(x) / 2
"""


def test_what_is_told_of_a_decorator_is_told_of_what_it_decorates(tmp_path: Path) -> None:
    path = tmp_path / "cached.py"
    path.write_text(CACHED)
    claims = {claim.name: claim for claim in promise.claims(path, convert_file(path, Options()).translation)}
    assert list(claims) == ["shifted", "halved"]
    assert promise.leans(claims["shifted"])
    assert not promise.leans(claims["halved"])
