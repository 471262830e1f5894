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


SAVES = """\
import argparse
import io

import torch
from torch import nn

net = nn.Linear(2, 1)
args = argparse.ArgumentParser().parse_args()


def save(state, file="net.pt"):
    torch.save(state, file)


{}
"""


@pytest.mark.parametrize(
    ("calls", "plain"),
    [
        ("save(net.state_dict())", True),
        ("save(net.state_dict(), 'other.pt')\nsave(net.state_dict(), file=args.to)", True),
        ("save(net.state_dict(), args.folder / 'net.pt')", True),
        ("save(net.state_dict(), io.BytesIO())", False),
        ("save(net.state_dict(), file=io.BytesIO())", False),
        ("save(*[net.state_dict()])", False),
        ("keep = save\nkeep(net.state_dict())", False),
        ("args.to = io.BytesIO()\nsave(net.state_dict(), args.to)", False),
        ("kind = argparse.FileType('wb')\nsave(net.state_dict(), args.to)", False),
        ("file = io.BytesIO()\nsave(net.state_dict())", False),
    ],
)
def test_what_a_function_of_a_program_is_given_is_a_path_if_all_of_it_is(calls: str, plain: bool) -> None:
    code = convert(SAVES.format(calls)).code
    assert ('with open(path, "wb") as file:' in code) is plain
    assert ('"seek"' in code) is not plain


MODULE = """\
import torch


def save(net: torch.nn.Linear, file="net.pt"):
    torch.save(net.state_dict(), file)


def keep(net: torch.nn.Linear):
    save(net)
"""


def test_other_files_may_give_a_modules_functions_open_files() -> None:
    assert '"seek"' in convert(MODULE).code
    assert '"seek"' not in convert(MODULE + "\n\nkeep(torch.nn.Linear(2, 1))\n").code


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
