"""Classes that hand channels-last values on: each is given its values as it takes them, and wrong axes are found.

All axes of the inputs have one length, so that no shape betrays it.
"""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options, VerdictKind
from t2j_lsp.translate import translate

from .conftest import Check

NET = """
# t2j: x=f32[4, 4, 4, 4]
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, (3, 1), padding=(1, 0))
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


# t2j: x=f32[4, 4, 4, 4], y=f32[4, 4, 4, 4]
class Join(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x, y):
        return self.block(x + torch.cat([x, y], dim=1)[:, :4] * y.mean(dim=2, keepdim=True))


# t2j: x=f32[4, 4, 4, 4]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.join = Join()

    def forward(self, x):
        x = self.block(x)
        return self.join(x, self.block(x))
"""
SAID = "        # Channels last, (N, H, W, C): x and the result\n"
MISTAKES = {
    "an image that isn't turned": ("Net", "self.block(jnp.moveaxis(x, -3, -1))", "self.block(x)"),
    "a result that isn't turned back": ("Net", "-1, -3)\n\n\n# ", "-1, -2)\n\n\n# "),
    "values joined along another axis": ("Join", "jnp.concatenate([x, y], axis=-1)", "jnp.concatenate([x, y], axis=1)"),
    "a mean over another axis": ("Join", "y.mean(axis=1, keepdims=True)", "y.mean(axis=2, keepdims=True)"),
    "a class that is said to take PyTorch's axes": ("Block", SAID, ""),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_axes_are_found(name: str, check: Check) -> None:
    code = translate(f"import torch\nfrom torch import nn\nimport torch.nn.functional as F\n{NET}", Options()).code
    which, right, wrong = MISTAKES[name]
    assert code.count(right) == 1, code
    verdict = check(NET, code, which, eager=False, initial=False, causes=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    report = check(NET, code.replace(right, wrong), which, eager=False, initial=False, causes=False)
    assert report.verdict is VerdictKind.DIFFERENT, report.reason


def test_the_outermost_class_is_given_what_it_takes(check: Check) -> None:
    source = f"import torch\nfrom torch import nn\nimport torch.nn.functional as F\n{NET}"
    code = translate(source, Options(layout="nhwc")).code
    assert "jnp.moveaxis" not in code.partition("class Net")[2].partition("# PyTorch behaviour")[0]
    verdict = check(NET, code, "Net", eager=False, initial=False, causes=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
