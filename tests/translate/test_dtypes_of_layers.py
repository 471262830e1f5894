"""Dtypes that layers are given: Flax's draw real numbers in float32, and say otherwise by ``param_dtype``."""

from __future__ import annotations

import pytest

from .convert import run

NET = """\
class Net(nn.Module):
    def __init__(self, n, device=None, dtype{default}):
        super().__init__()
        {line}

    def forward(self, x):
        return self.fc(x)

{call}
"""


@pytest.mark.parametrize(
    ("line", "default", "call"),
    [
        ("self.fc = nn.Linear(n, 4, dtype=torch.cfloat)", "=None", ""),
        ("self.fc = nn.Linear(n, 4, True, device, torch.complex128)", "=None", ""),
        ("self.fc = nn.Conv2d(n, 4, 3, dtype=dtype)", "=torch.cfloat", ""),
        ("self.fc = nn.Linear(n, 4, dtype=dtype)", "=None", "net = Net(3, dtype=torch.complex64)"),
        ("kw = {'dtype': torch.cfloat}; self.fc = nn.Linear(n, 4, **kw)", "=None", ""),
    ],
)
def test_a_layer_of_complex_numbers_is_a_gap(line: str, default: str, call: str) -> None:
    gaps = run(NET.format(line=line, default=default, call=call)).gaps
    assert [(gap.span.line, "real numbers" in gap.reason) for gap in gaps] == [(8, True)]


@pytest.mark.parametrize(
    ("line", "default", "notes"),
    [
        ("self.fc = nn.Linear(n, 4, dtype=torch.bfloat16)", "=None", 1),
        ("self.fc = nn.Linear(n, 4, dtype=dtype)", "=torch.half", 1),
        ("self.fc = nn.Linear(n, 4, dtype=dtype)", "=None", 0),
        ("self.fc = nn.Linear(n, 4, dtype=torch.float32)", "=None", 0),
    ],
)
def test_a_layer_of_short_numbers_has_float32_and_a_note(line: str, default: str, notes: int) -> None:
    translation = run(NET.format(line=line, default=default, call=""))
    assert [f.span.line for f in translation.findings if "param_dtype" in f.reason] == [8] * notes
    assert not translation.gaps
