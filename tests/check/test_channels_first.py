"""Layers that keep PyTorch's axes by a subclass of Flax's: right as they are written, and a wrong axis is found.

All axes of the input have one length, so that no shape betrays it.
"""

from __future__ import annotations

import pytest

from t2j_lsp import convert
from t2j_lsp.contract import VerdictKind

from .conftest import Check

NET = """
# t2j: x=f32[4, 4, 4, 4]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [nn.Conv2d(4, 4, (3, 1), padding=(1, 0)), nn.BatchNorm2d(4), nn.ConvTranspose2d(4, 4, 1)]
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x
"""
MISTAKES = {
    "statistics over another axis": ("BatchNorm(4, axis=1,", "BatchNorm(4, axis=2,"),
    "the image turned": ("super().__call__(jnp.moveaxis(x, -3, -1))", "super().__call__(jnp.swapaxes(x, -3, -1))"),
    "the sizes of the kernel exchanged": (
        "(4, 4, (3, 1), padding=((1, 1), (0, 0))",
        "(4, 4, (1, 3), padding=((0, 0), (1, 1))",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_axis_is_found(name: str, check: Check) -> None:
    code = convert(f"import torch\nfrom torch import nn\n{NET}").code
    right, wrong = MISTAKES[name]
    assert "class ChannelsFirstConv(" in code and right in code
    verdict = check(NET, code, eager=False, initial=False, causes=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    report = check(NET, code.replace(right, wrong), eager=False, initial=False, causes=False)
    assert report.verdict is VerdictKind.DIFFERENT, report.reason


SHORTCUT = """
# t2j: x=f32[4, 4, 4, 4]
class Net(nn.Module):
    def __init__(self, wide=True):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.shortcut = nn.Identity()
        if wide:
            self.shortcut = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4))

    def forward(self, x):
        out = self.conv(x)
        return torch.relu(out + self.shortcut(x))
"""
TURNS = {
    "the shortcut takes the image as it is": ("self.shortcut(jnp.moveaxis(x, -3, -1))", "self.shortcut(x)"),
    "the value is turned to another axis": (", -1, -3\n", ", -1, -2\n"),
    "statistics over another axis": ("BatchNorm(4, rngs=rngs)", "BatchNorm(4, axis=1, rngs=rngs)"),
}


@pytest.mark.parametrize("name", TURNS)
def test_a_wrong_turn_at_a_shortcut_is_found(name: str, check: Check) -> None:
    code = convert(f"import torch\nfrom torch import nn\n{SHORTCUT}").code
    right, wrong = TURNS[name]
    assert right in code, code
    verdict = check(SHORTCUT, code, eager=False, initial=False, causes=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    report = check(SHORTCUT, code.replace(right, wrong), eager=False, initial=False, causes=False)
    assert report.verdict is VerdictKind.DIFFERENT, report.reason
