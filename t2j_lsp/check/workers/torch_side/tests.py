"""Unit tests of a torch program, and what they are to expect of it."""

from __future__ import annotations

from typing import Any

import torch

from t2j_lsp.check.protocol import plain
from t2j_lsp.check.requests import TestsRequest, ValuesRequest
from t2j_lsp.check.workers.unit_tests import Outcomes, run_tests, values_of

from .build import program, to_array


def tests(request: TestsRequest) -> list[Outcomes]:
    """The outcomes of the slice's tests, in ``repeat`` runs."""
    with program(request) as (module, _):
        return run_tests(module, torch.manual_seed, request.repeat)  # type: ignore[arg-type]


def values(request: ValuesRequest) -> dict[str, Any]:
    """What the functions ``names`` of the slice return, in the request's precision."""
    with program(request) as (module, _):
        return values_of(module, request.names, lambda value: plain(value, to_array))
