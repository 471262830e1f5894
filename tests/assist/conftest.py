"""Workers that judge, for all tests of the model lane."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.fixed_bugs import CheckJudge, check_judge


@pytest.fixture(scope="session")
def judge() -> Iterator[CheckJudge]:
    with check_judge() as ready:
        yield ready
