"""Steps around which code skips updates, asks a teacher, or clips what an optimizer's only group has."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
opt = torch.optim.SGD({given}, lr=0.1)
bad = 0
"""
SKIPS = """\
for i in range(8):
    loss = net(torch.ones(4, 3)).mean()
    if not torch.isfinite(loss):
        {skip}
    {zeroed}
    loss.backward()
    {step}
"""
PARAMETERS = "net.parameters()"


@pytest.mark.parametrize("zero", ["opt.zero_grad()", "opt.zero_grad(set_to_none=True)", "net.zero_grad()"])
def test_zeroing_goes_where_each_step_has_fresh_gradients(zero: str) -> None:
    skip = f"bad += 1\n        {zero}\n        continue"
    text = HEAD.format(given=PARAMETERS) + SKIPS.format(skip=skip, zeroed="opt.zero_grad()", step="opt.step()")
    converted = convert(text)

    assert not converted.gaps
    assert "        bad += 1\n        continue" in converted.code
    assert "zero_grad" not in converted.code


@pytest.mark.parametrize("call", ["opt.step()", "opt.add_param_group({'params': []})"])
def test_other_calls_of_an_optimizer_that_stay_are_gaps(call: str) -> None:
    skip = f"{call}\n        continue"
    text = HEAD.format(given=PARAMETERS) + SKIPS.format(skip=skip, zeroed="opt.zero_grad()", step="opt.step()")

    assert convert(text).gaps


def test_zeroing_of_gradients_that_add_up_is_a_gap() -> None:
    step = "if i % 4 == 3:\n        opt.step()\n        opt.zero_grad()"
    text = HEAD.format(given=PARAMETERS) + SKIPS.format(skip="opt.zero_grad()\n        continue", zeroed="", step=step)

    assert convert(text).gaps


TAUGHT = """\
for i in range(8):
    x = torch.ones(4, 3)
    {front}
    net.train()
    {behind}
    loss = (net(x) - old).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ASKED = "with torch.no_grad():\n        old = net(x)"
TEACHERS = [f"net.eval()\n    {ASKED}", "net.eval()\n    old = net(x).detach()", "net.eval()\n    old = asked(net, x)"]


@pytest.mark.parametrize("teacher", TEACHERS)
def test_a_teachers_pass_stays_in_front_of_the_mode_that_is_set_behind_it(teacher: str) -> None:
    function = "@torch.no_grad()\ndef asked(net, x):\n    return net(x)\n\n\n"
    converted = convert(HEAD.format(given=PARAMETERS) + function + TAUGHT.format(front=teacher, behind="pass"))

    assert not converted.gaps
    assert converted.code.index("old = ", converted.code.rindex("net.eval()")) < converted.code.rindex("net.train()")


def test_a_teachers_pass_behind_the_first_forward_is_not_put_in_front_of_it() -> None:
    body = TAUGHT.format(front="out = net(x)\n    net.eval()", behind="pass").replace(
        "    net.train()", f"    {ASKED}\n    net.train()"
    )
    converted = convert(HEAD.format(given=PARAMETERS) + body.replace("(net(x) - old)", "(out - old)"))

    assert ["another order" in gap.reason for gap in converted.gaps] == [True]


@pytest.mark.parametrize(
    ("given", "converts"),
    [
        (PARAMETERS, True),
        ('[{"params": net.parameters()}]', True),
        ('[{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 0.2}]', False),
    ],
)
def test_clipping_by_the_only_group_clips_all(given: str, converts: bool) -> None:
    clip = 'torch.nn.utils.clip_grad_norm_(opt.param_groups[0]["params"], 1.0)\n    opt.step()'
    text = HEAD.format(given=given) + SKIPS.format(skip="continue", zeroed="opt.zero_grad()", step=clip)
    converted = convert(text)

    assert (not converted.gaps) == converts
    assert ("optax.tree.norm" in converted.code) == converts


def test_a_union_of_classes_asks_as_a_tuple_of_them_does() -> None:
    asked = "for m in net.modules():\n    if isinstance(m, nn.{}):\n        nn.init.constant_(m.weight, 0.5)\n"
    union = convert(HEAD.format(given=PARAMETERS) + asked.format("Linear | nn.LayerNorm"))

    assert not union.gaps
    assert "isinstance(m, nnx.Linear | nnx.LayerNorm)" in union.code
