"""Complete programs in the styles of many hands: what converts has no gap, and what doesn't says why, and where.

They were written before anybody looked at what converts. `python -m benchmarks.programs tests/programs` runs them
beside their conversions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

PROGRAMS = sorted(Path(__file__).parents[1].joinpath("programs").glob("*.py"))
GAPS = {
    "maml": "torch.autograd.grad",
}
"""Words of a reason for which a program stays PyTorch in places; all others convert whole."""


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_converts_or_says_why_not(path: Path) -> None:
    gaps = translate(path.read_text(encoding="utf-8"), Options(helpers="import")).gaps
    reasons = [f"{gap.name}: {gap.reason}" for gap in gaps]
    if path.stem in GAPS:
        assert any(GAPS[path.stem] in reason for reason in reasons), reasons
    else:
        assert not reasons
