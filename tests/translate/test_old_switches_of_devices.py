"""What is left of code that moves everything to a GPU if there is one, in the styles of older programs."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """\
import torch
from torch import nn
from torch.autograd import Variable

cuda = True if torch.cuda.is_available() else False
net = nn.Linear(3, 2)
loss = nn.MSELoss()


def move(x, y, flags):
{body}
    return net(x), y


print(move(torch.ones(2, 3), torch.ones(2, 2), {{}}))
"""


def moved(*lines: str) -> str:
    converted = convert(HEAD.format(body="\n".join(f"    {line}" for line in lines)))
    assert not converted.gaps
    start, stop = converted.code.index("def move"), converted.code.index("    return net(x)")
    return converted.code[start:stop]


@pytest.mark.parametrize(
    "lines",
    [
        ("if cuda:", "    net.cuda()", "    loss.cuda()"),
        ("if torch.cuda.is_available() and not flags:", "    x = Variable(x).cuda()", "    y = y.cuda()"),
        ("if cuda:", "    x = x.cuda()", "else:", "    x, y = Variable(x), Variable(y, volatile=True)"),
        ("if flags:", "    if cuda:", "        x = x.cuda()"),
        ("x = Variable(x)",),
    ],
)
def test_nothing_is_left_of_a_condition_around_what_goes(lines: tuple[str, ...]) -> None:
    assert moved(*lines).strip() == "def move(x, y, flags):"


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (("if flags.pop('cuda', None):", "    x = x.cuda()"), "if flags.pop('cuda', None):\n        pass"),
        (("if cuda:", "    x = x.cuda()", "else:", "    print(1)"), "pass\n    else:\n        print(1)"),
        (("if flags:", "    y = y + 1", "elif cuda:", "    x = x.cuda()"), "elif cuda:\n        pass"),
        (("if cuda:", "    x, y = y, x"), "if cuda:\n        x, y = y, x"),
    ],
)
def test_a_condition_stays_that_does_something(lines: tuple[str, ...], kept: str) -> None:
    assert kept in moved(*lines)


SIZES = """\
import torch


def noise(log_variance):
    std = log_variance.mul(0.5).exp_()
    return torch.FloatTensor(std.size()).normal_() * std


print(noise(torch.zeros(2, 3)).shape)
"""


def test_an_old_constructor_is_given_a_size_as_it_is_written() -> None:
    converted = convert(SIZES)
    assert not converted.gaps and "values" not in converted.code
    named = SIZES.replace("return torch", "size = std.size()\n    return torch").replace("r(std.size())", "r(size)")
    (gap,) = convert(named).gaps
    assert "torch.Size or values" in gap.reason
