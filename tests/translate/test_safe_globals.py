"""Classes that a program lets PyTorch's files hold: the helper that reads them is told the same."""

from __future__ import annotations

from t2j_lsp import convert

SOURCE = """import argparse
from contextlib import nullcontext

import torch


def load(path, weights_only=True):
    known = weights_only and hasattr(torch.serialization, "safe_globals")
    context = torch.serialization.safe_globals([argparse.Namespace]) if known else nullcontext()
    with context:
        return torch.load(path)


def load_at_once(path):
    with torch.serialization.safe_globals([argparse.Namespace]):
        return torch.load(path, weights_only=True)
"""


def test_the_helper_that_reads_is_told_them() -> None:
    result = convert(SOURCE)
    assert not result.gaps and "torch." not in result.code.partition("# PyTorch behaviour")[0]
    assert "safe_globals([argparse.Namespace]) if known else nullcontext()" in result.code
    assert "    with safe_globals([argparse.Namespace]):\n        return load_pickle(path)\n" in result.code


def test_what_only_pytorchs_reader_knows_is_a_gap() -> None:
    done = convert("import torch\n\nprint(torch.serialization.get_unsafe_globals_in_checkpoint('x.pt'))\n")
    assert done.gaps
