"""Python's numbers that a train step gives are numbers behind it, unless the program only shows them."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """\
import json
from dataclasses import dataclass
from typing import NamedTuple
import torch
from torch import Tensor, nn

{given}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x, temp):
        temp = temp * 2
        return {returned}

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, log = torch.ones(8, 4), []
for i in range(4):
    {targets} = net(x, i / 2)
    loss = {value}.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {use}
"""
TYPED = "class Out({}):\n    pred: Tensor\n    temp: float\n"
DATA = f"@dataclass\n{TYPED.format('object')}"
FORMS = {
    "alone": ("", "self.fc(x), temp", "pred, temp", "pred", "log.append(temp)", "temp = temp.item()"),
    "two": ("", "self.fc(x), temp, len(x)", "pred, t, n", "pred", "log += [t, n]", "t, n = t.item(), n.item()"),
    "computed": ("", "self.fc(x), min(1.0, temp)", "pred, t", "pred", "log.append(t)", "t = t.item()"),
    "a tuple": ("", "self.fc(x), temp", "out", "out[0]", "log.append(out[1])", "out = (out[0], out[1].item())"),
    "a dict": (
        "",
        '{"pred": self.fc(x), "temp": temp}',
        "out",
        'out["pred"]',
        'log.append(out["temp"])',
        'out["temp"] = out["temp"].item()',
    ),
    "a dict as a whole": (
        "",
        'self.fc(x), {"temp": temp, "size": len(x)}',
        "pred, info",
        "pred",
        "log.append(info)",
        'info["temp"] = info["temp"].item()\n    info["size"] = info["size"].item()',
    ),
    "a dataclass": (DATA, "Out(self.fc(x), temp)", "out", "out.pred", "log.append(out)", "out.temp = out.temp.item()"),
    "a named tuple": (
        TYPED.format("NamedTuple"),
        "Out(self.fc(x), temp)",
        "out",
        "out.pred",
        "log.append(out.temp)",
        "out = out._replace(temp=out.temp.item())",
    ),
}


@pytest.mark.parametrize(("given", "returned", "targets", "value", "use", "wanted"), FORMS.values(), ids=FORMS)
def test_numbers_are_numbers_behind_the_step(
    given: str, returned: str, targets: str, value: str, use: str, wanted: str
) -> None:
    text = HEAD.format(given=given, returned=returned, targets=targets, value=value, use=use)
    converted = convert(text)

    assert not converted.gaps
    assert f"    {wanted}\n    {use}\n" in converted.code


SHOWN = ["print(temp)", 'print(f"{temp:.2f}")', 'print("%d %.2f" % (i, temp))', 'print("{:.2f}".format(temp))']


@pytest.mark.parametrize("use", SHOWN)
def test_what_is_only_shown_stays(use: str) -> None:
    text = HEAD.format(given="", returned="self.fc(x), temp", targets="pred, temp", value="pred", use=use)

    assert "temp.item()" not in convert(text).code


@pytest.mark.parametrize("returned", ["self.fc(x), x.mean()", "self.fc(x), x.mean() if temp > 1 else 0.0"])
def test_what_may_be_a_tensor_stays(returned: str) -> None:
    text = HEAD.format(given="", returned=returned, targets="pred, m", value="pred", use="log.append(m)")

    assert "m.item()" not in convert(text).code


def test_a_frozen_dataclass_takes_no_others() -> None:
    given = DATA.replace("@dataclass", "@dataclass(frozen=True)")
    out = "Out(self.fc(x), temp)"
    converted = convert(
        HEAD.format(given=given, returned=out, targets="out", value="out.pred", use="log.append(out.temp)")
    )

    assert ["a frozen dataclass" in gap.reason for gap in converted.gaps] == [True]


def test_a_dict_in_a_tuple_keeps_its_order_or_is_refused() -> None:
    returned = 'self.fc(x), {"size": x.sum(), "area": x.mean()}'
    use = "log.append(list({}.items()))"
    kept = HEAD.format(given="", returned=returned, targets="pred, info", value="pred", use=use.format("info"))
    held = HEAD.format(given="", returned=returned, targets="out", value="out[0]", use=use.format("out[1]"))

    assert "OrderedDict(info)" in convert(kept).code
    assert ["another container" in gap.reason for gap in convert(held).gaps] == [True]


def test_a_dict_that_is_written_to_a_file_keeps_its_order() -> None:
    returned = 'self.fc(x), {"size": x.sum(), "area": x.mean()}'
    use = "log.append(info)\njson.dumps(log, default=float)"

    assert (
        "OrderedDict(info)"
        in convert(HEAD.format(given="", returned=returned, targets="pred, info", value="pred", use=use)).code
    )


def test_a_number_that_a_condition_asks_for_is_known_where_the_step_is_traced() -> None:
    body = "self.fc(x) * 2 if temp > 1 else self.fc(x)"
    text = HEAD.format(given="", returned=body, targets="pred", value="pred", use="log.append(loss.item())")

    assert "i=i" in convert(text).code
    bound = convert(text.replace("for i in", "for step in").replace("net(x, i / 2)", "net(x, step / 2)")).code
    assert "def bound_jit(step, /, *modules, **static):" in bound
