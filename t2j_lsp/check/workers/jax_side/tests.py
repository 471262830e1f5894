"""Unit tests of a converted program."""

from __future__ import annotations

from t2j_lsp.check.requests import TestsRequest
from t2j_lsp.check.workers.unit_tests import Outcomes, run_tests

from .build import program


def tests(request: TestsRequest) -> list[Outcomes]:
    """The outcomes of the slice's tests, in ``repeat`` runs."""
    with program(request) as (module, _):
        return run_tests(module, lambda run: None, request.repeat)
