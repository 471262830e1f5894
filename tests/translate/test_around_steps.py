"""What a loop computes for a step and with its results moves into the compiled step, if it is the same there."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .training_sides import trained

PROGRAM = """\
import torch
from torch import nn

data = torch.linspace(-1, 1, 36).reshape(12, 3)
labels = torch.arange(12) % 2
scale = torch.tensor([1.0, 2.0, 0.5])
losses = []
model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
teacher = nn.Linear(3, 2)
criterion = nn.CrossEntropyLoss()
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
correct = 0
for i in range(5):
    x = data[torch.arange(12)[i::2]] * scale
    y = labels[torch.arange(12)[i::2]]
    wanted = teacher(x).detach().softmax(1)
    optimizer.zero_grad()
    out = model(x)
    _, predicted = torch.max(out, 1)
    loss = criterion(out, y) + (out - wanted).pow(2).mean()
    loss.backward()
    optimizer.step()
    correct += (predicted == y).sum().item()
    accuracy = (predicted == y).double().mean()
    losses.append(loss.item())
    losses.append(accuracy.item())
    losses.append((out - wanted).abs().max().item())
losses.append(correct)
"""
MADE = "    wanted = teacher(x).detach().softmax(1)\n"
BEHIND = "    accuracy = (predicted == y).double().mean()\n"


def loop_of(code: str) -> str:
    """The training loop of a conversion."""
    return code[code.index("for i in range(5):") :]


@pytest.mark.jax
def test_what_stands_around_a_step_is_computed_in_it_with_the_same_numbers() -> None:
    code = trained(PROGRAM, ("model", "teacher")).translation.code
    loop = loop_of(code)
    assert "def train_step(model, teacher, " in code and "wanted" not in loop and "argmax" not in loop
    assert "correct += batch_correct.item()" in loop
    assert "losses.append(batch_losses.item())" in loop


@pytest.mark.jax
def test_functions_that_are_given_numbers_stay_in_front_of_the_step() -> None:
    """They may slice by them, or count to them."""
    source = PROGRAM.replace(
        "losses = []\n", "losses = []\n\n\ndef batch(i):\n    return data[i:i + 6], labels[i:i + 6]\n\n\n"
    )
    start, end = source.index("    x = data["), source.index("    wanted =")
    run = trained(f"{source[:start]}    x, y = batch(i)\n{source[end:]}", ("model", "teacher"))
    assert "x, y = batch(i)" in loop_of(run.translation.code)


def test_results_that_nothing_else_reads_are_not_given() -> None:
    code = convert(PROGRAM).code
    assert "return loss, (accuracy, batch_correct, batch_losses)" in code and "predicted" not in loop_of(code)


@pytest.mark.parametrize(
    "changed",
    [
        "    y = 1 - y\n",  # what it compares with is another array
        "    predicted = 1 - predicted.flip(0)\n",
        "    print(accuracy if i else 0)\n",  # the last one's
        "    accuracy = 0\n",
        "    shown(predicted)\n",
    ],
)
def test_values_behind_the_step_stay_where_something_in_between_is_in_the_way(changed: str) -> None:
    shown = "def shown(values):\n    values[0] = 1\n\n\n"
    at = PROGRAM.index("data =")
    source = f"{PROGRAM[:at]}{shown}{PROGRAM[at:].replace(BEHIND, f'{changed}{BEHIND}')}"
    assert "    accuracy = " in loop_of(convert(source).code)


@pytest.mark.parametrize(
    "value",
    [
        "(model[2].weight > 0).float().mean()",  # behind the update
        "(predicted == y).double().mean() + torch.rand(())",
        "(predicted == y).double().mean() * i",  # nothing that the step is given
        "torch.tensor([1.0 if one else 0.0 for one in predicted]).mean()",
        "(predicted == y).double()[predicted == 1].mean()",  # its size depends on values
    ],
)
def test_values_that_compiled_code_would_not_compute_so_stay(value: str) -> None:
    code = convert(PROGRAM.replace(BEHIND, f"    accuracy = {value}\n")).code
    assert "    accuracy = " in loop_of(code)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (MADE, f"    teacher.train(i % 2 == 0)\n{MADE}    teacher.eval()\n"),
        (MADE, f"{MADE}    print(wanted.shape)\n"),
        (MADE, f"{MADE}    wanted = wanted if i else out\n"),
        (MADE, "    wanted = teacher(data[i : i + 6]).detach().softmax(1) if i else labels\n"),
    ],
)
def test_what_is_made_in_front_of_the_step_stays_where_something_is_in_the_way(old: str, new: str) -> None:
    assert "    wanted = " in loop_of(convert(PROGRAM.replace(old, new)).code)


NOISY = """\
import torch
from torch import nn

model = nn.Linear(3, 1)
data = torch.ones(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(5):
    noise = torch.randn(8, 3)
    loss = model(data + noise).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_noise_is_drawn_in_the_step() -> None:
    code = convert(NOISY).code
    assert "        noise = rngs.normal((8, 3))\n" in code and "train_step(model, rngs, optimizer, data)" in code


@pytest.mark.parametrize("between", ["    more = torch.rand(2)\n", "    print(torch.rand(2))\n"])
def test_draws_keep_their_order(between: str) -> None:
    code = convert(NOISY.replace("    loss =", f"{between}    loss =")).code
    assert "    noise = rngs.normal((8, 3))" in loop_of(code)


def test_slices_are_made_in_front_of_the_step() -> None:
    code = convert(NOISY.replace("    noise = torch.randn(8, 3)", "    noise = data[i : i + 2]")).code
    assert "    noise = data[i : i + 2]" in loop_of(code)


TWO_UPDATES = """\
import torch
from torch import nn

x = torch.linspace(-1, 1, 24).reshape(8, 3)
cost = 0.1
losses = []
judge, gate = nn.Linear(3, 1), nn.Linear(3, 3)
# train
judge_optimizer = torch.optim.SGD(judge.parameters(), lr=0.1)
gate_optimizer = torch.optim.SGD(gate.parameters(), lr=0.1)
for i in range(4):
    error = judge(x).pow(2).squeeze(1)
    judge_loss = error.mean()
    judge_optimizer.zero_grad()
    judge_loss.backward()
    judge_optimizer.step()
    reward = -(error.detach() + cost * x.sum(1))
    advantage = reward - reward.mean()
    gate_loss = (gate(x).sum(1) * advantage).mean()
    gate_optimizer.zero_grad()
    gate_loss.backward()
    gate_optimizer.step()
    losses.append(gate_loss.item())
    losses.append((error > 0.1).double().mean().item())
"""


@pytest.mark.jax
def test_what_one_step_gives_and_another_reads_is_computed_with_in_the_latter() -> None:
    code = trained(TWO_UPDATES, ("judge", "gate")).translation.code
    loop = code[code.index("for i in range(4):") :]
    assert "reward" not in loop and "advantage" not in loop and "        advantage = reward - reward.mean()\n" in code


def test_what_is_read_behind_the_step_too_stays_in_front_of_it() -> None:
    source = TWO_UPDATES.replace("losses.append(gate_loss.item())", "losses.append(advantage[0].item())")
    code = convert(source).code
    assert "    advantage = " in code[code.index("for i in range(4):") :]


OTHERWISE = """\
import torch
from torch import nn

data = torch.linspace(-1, 1, 36).reshape(12, 3)
losses = []
model = nn.Linear(3, 2)
# train
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(5):
    {head}
        # not in this round
        losses.append(float(i))
        losses.append(-1.0)
    {otherwise}
        {comment}
        optimizer.zero_grad()
        loss = model(data).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
"""


@pytest.mark.jax
@pytest.mark.parametrize(
    ("head", "otherwise"), [("if i % 2:", "else:  # fit"), ("try:", "finally:"), ("for _ in range(i):", "else:")]
)
@pytest.mark.parametrize("comment", ["", "# else nothing is done"])
def test_a_step_under_another_header_leaves_the_block_above_alone(head: str, otherwise: str, comment: str) -> None:
    code = trained(OTHERWISE.format(head=head, otherwise=otherwise, comment=comment)).translation.code
    assert "        losses.append(-1.0)\n" in code and "train_step(model, optimizer, data)" in code


EVALUATED = """\
import torch
from torch import nn
import torch.nn.functional as F

x, y = torch.randn(8, 3), torch.randn(8, 1)
{more}

def error(model, x, y):
    with torch.no_grad():
        out = model(x)
    return F.mse_loss(out, y)


def report(model):
    print(error(model, x, y).item())


def main():
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        loss = F.mse_loss(model(x), y){loss}
        loss.backward()
        opt.step()
    report(model){behind}


main()
"""


@pytest.mark.parametrize(
    ("more", "loss", "behind", "stops"),
    [
        ("", "", "", False),
        ("", " + error(model, x, y)", "", True),
        ("", "", "\n    each = map(error, [model], [x], [y])", True),
        ("class Net(nn.Module):\n    def forward(self, m):\n        return error(m, x, y)\n", "", "", True),
        ("def slope(x):\n    return torch.autograd.grad(x.sum(), x)[0]\n", "", "", True),
        ("f = lambda m: error(m, x, y)\n", "", "", True),
    ],
)
def test_functions_that_nothing_differentiated_calls_need_no_stop(
    more: str, loss: str, behind: str, stops: bool
) -> None:
    code = convert(EVALUATED.format(more=more, loss=loss, behind=behind)).code
    assert ("stop_gradient" in code.partition("def error")[2].partition("def report")[0]) is stops


def test_a_module_that_others_may_differentiate_stops() -> None:
    code = convert(EVALUATED.format(more="", loss="", behind="").removesuffix("\n\nmain()\n") + "\n").code
    assert "stop_gradient" in code.partition("def error")[2].partition("def report")[0]
