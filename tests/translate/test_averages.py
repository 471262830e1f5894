"""Averages of the weights of two models: optax's, or one map over both states."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

LOOP = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        return self.fc(x)


class Other(Net):
    pass


net, target, other, tau = Net(), Net(), Other(), 0.05
for p, q in zip({left}.parameters(), target.parameters()):
    {body}
{behind}
"""


def converted(body: str, left: str = "net", behind: str = "pass") -> str:
    done = convert(LOOP.format(left=left, body=body, behind=behind))
    return " ".join(done.code.split()).replace("( ", "(").replace(" )", ")").replace(",)", ")")


STATES = "nnx.state(net, nnx.Param), nnx.state(target, nnx.Param)"


@pytest.mark.parametrize(
    ("body", "step"),
    [
        ("q.data.copy_(tau * p.data + (1 - tau) * q.data)", "tau"),
        ("q.data = (1 - tau) * q.data + p.data * tau", "tau"),
        ("q.data = tau * p.data + q.data * (1.0 - tau)", "tau"),
        ("q.data.mul_(1 - tau).add_(p.data, alpha=tau)", "tau"),
        ("q.data.mul_(1 - tau)\n    q.data.add_(tau * p.detach())", "tau"),
        ("q.data.mul_(tau).add_(p.data, alpha=1 - tau)", "1 - tau"),
        ("q.data.copy_(q.data * 0.9 + p.data * (1 - 0.9))", "1 - 0.9"),
    ],
)
def test_a_loop_that_averages_is_an_update_of_optax(body: str, step: str) -> None:
    assert f"nnx.update(target, optax.incremental_update({STATES}, {step}))" in converted(body)


def test_which_of_both_is_written_into() -> None:
    states = "nnx.state(target, nnx.Param), nnx.state(net, nnx.Param)"
    assert f"nnx.update(net, optax.incremental_update({states}, 1 - tau))" in converted(
        "p.data.copy_(tau * p.data + (1 - tau) * q.data)"
    )


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("q.data.copy_(p.data)", "p"),
        ("q.data.copy_(tau * p.data + (2 - tau) * q.data)", "tau * p + (2 - tau) * q"),
        ("q.data.copy_(tau * p.data + (1 - tau) * p.data)", "tau * p + (1 - tau) * p"),
        ("q.data.copy_(tau * p.data - (1 - tau) * q.data)", "tau * p - (1 - tau) * q"),
        ("q.data.mul_(0.9).add_(0.1, p.data - 1)", "0.9 * q + 0.1 * (p - 1)"),
    ],
)
def test_a_loop_of_other_arithmetic_is_a_map_over_both_states(body: str, value: str) -> None:
    assert f"nnx.update(target, jax.tree.map(lambda p, q: {value}, {STATES}))" in converted(body)


@pytest.mark.parametrize(
    ("body", "left", "behind"),
    [
        ("q.data.copy_(p.data.abs())", "net", "pass"),
        ("q.data.copy_(p.data); print(p.sum())", "net", "pass"),
        ("q.data.copy_(p.data)", "other", "pass"),
        ("q.data.copy_(p.data)", "net", "print(q.sum())"),
        ("q.data.copy_(p.data * torch.ones(1))", "net", "pass"),
    ],
    ids=["more than arithmetic", "more statements", "another class", "read behind", "a tensor"],
)
def test_other_loops_stay_loops(body: str, left: str, behind: str) -> None:
    code = converted(body, left, behind)
    assert "tree.map" not in code and "for p, q in zip(" in code


AGENT = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)


class Agent:
    def __init__(self):
        self.net, self.target_net = Net(), Net()
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.tau = 0.1

    def update_target(self):
        for p, t in zip(self.net.parameters(), self.target_net.parameters()):
            t.data.copy_(self.tau * p.data + (1.0 - self.tau) * t.data)

    def learn(self, x):
        wanted = torch.zeros(4)
        if x.sum() > 0:
            with torch.no_grad():
                wanted[:2] = self.target_net(x).max(1).values
        {before}
        loss = (self.net(x).mean(1) - wanted).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        {behind}
        return loss.item()


print(Agent().learn(torch.rand(4, 3)))
"""


def test_a_method_that_runs_behind_the_backward_pass_stays_one() -> None:
    done = convert(AGENT.format(before="pass", behind="self.update_target()"))
    assert not done.gaps
    assert "    def update_target(self):\n" in done.code
    assert "polyak_update(self.target_net, self.net, self.tau)" in done.code


def test_one_that_runs_in_front_of_it_stays_there() -> None:
    done = convert(AGENT.format(before="self.update_target()", behind="pass"))
    assert not done.gaps, [gap.reason for gap in done.gaps]
    assert "        self.update_target()\n        loss = train_step(self.net, " in done.code
    assert "polyak_update(self.target_net, self.net, self.tau)" in done.code


TRAINED = f"""{LOOP}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = net(torch.ones(1, 2)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_averages_of_programs_that_train_are_compiled() -> None:
    code = convert(TRAINED.format(left="net", body="q.data.mul_(1 - tau).add_(p.data, alpha=tau)", behind="")).code
    assert "\npolyak_update(target, net, tau)\n" in code and "@nnx.jit(graph=False)\ndef polyak_update(" in code


def test_averages_of_the_same_modules_at_each_step_bind_them() -> None:
    agent = AGENT.format(before="pass", behind="self.update_target()").replace(
        "print(Agent().learn", "agent = Agent()\nfor _ in range(3):\n    print(agent.learn"
    )
    assert "bound_jit(polyak_step, self.target_net, self.net)(self.tau)" in convert(agent).code
    assert " polyak_update(self.target_net" in convert(f"{agent}Agent()\n").code
    assert (
        " polyak_update(self.target_net" in convert(agent.replace("    print", "    agent = Agent()\n    print")).code
    )


def test_averages_into_a_module_that_may_share_variables_are_not() -> None:
    tied = TRAINED.replace("for p, q in", "target.fc.weight = net.fc.weight\nfor p, q in")
    code = convert(tied.format(left="net", body="q.data.mul_(1 - tau).add_(p.data, alpha=tau)", behind="")).code
    assert "polyak_update" not in code and "incremental_update(" in code
