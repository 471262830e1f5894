"""Helpers for files that are given paths alone open them; others ask whether they were given an open file."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """\
import io
import os
from pathlib import Path

import torch
from torch import nn

net = nn.Linear(2, 1)
FOLDER, NAME, number = Path("."), "net", 3
{}
torch.save(net.state_dict(), {})
net.load_state_dict(torch.load({}))
"""


@pytest.mark.parametrize(
    "path",
    [
        "'net.pt'",
        "f'net{number}.pt'",
        "NAME",
        "NAME + '.pt'",
        "'net%d.pt' % number",
        "'net{}.pt'.format(number)",
        "os.path.join('.', NAME)",
        "Path('.') / NAME",
        "str(FOLDER / NAME)",
    ],
)
def test_a_path_is_opened(path: str) -> None:
    code = convert(SOURCE.format("", path, path)).code
    assert 'with open(path, "wb") as file:' in code and 'with open(path, "rb") as file:' in code
    assert '"seek"' not in code and "nullcontext" not in code


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("", "io.BytesIO()"),
        ("buffer = io.BytesIO()", "buffer"),
        ("NAME = io.BytesIO()", "NAME"),
        ("for NAME in [io.BytesIO()]: pass", "NAME"),
        ("from elsewhere import NAME", "NAME"),
    ],
)
def test_what_may_be_an_open_file_is_asked_for(line: str, file: str) -> None:
    code = convert(SOURCE.format(line, file, "'net.pt'")).code
    assert '"seek"' in code and "nullcontext" in code


def test_a_file_that_only_one_call_gives_is_enough() -> None:
    code = convert(SOURCE.format("torch.save(net.state_dict(), 'first.pt')", "io.BytesIO()", "'net.pt'")).code
    assert '"seek"' in code
