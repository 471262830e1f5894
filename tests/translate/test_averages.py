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


EMA = '''\
class EMA:
    def __init__(self, beta):
        self.beta = beta

    def update_model_average(self, averaged, current):
        for p, q in zip(current.parameters(), averaged.parameters()):
            old, new = q.data, p.data
            q.data = self.update_average(old, new)

    def update_average(self, old, new):
        """The exponential average."""
        if old is None:
            return new
        return old * self.beta + (1 - self.beta) * new


'''


def averaged(old: str = "", new: str = "") -> str:
    head = LOOP.partition("for p, q in")[0]
    source = f"{head.replace('class Net', EMA + 'class Net')}ema = EMA(0.9)\nema.update_model_average(target, net)\n"
    assert not old or old in source
    return convert(source.replace(old, new) if old else source).code


def test_what_a_method_computes_of_both_is_the_average() -> None:
    code = " ".join(averaged().split()).replace("( ", "(").replace(" )", ")").replace(",)", ")")
    states = "nnx.state(current, nnx.Param), nnx.state(averaged, nnx.Param)"
    assert f"nnx.update(averaged, optax.incremental_update({states}, 1 - self.beta))" in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "            old, new = q.data, p.data\n            q.data = self.update_average(old, new)",
            "            q.data = self.update_average(q.data, p.data)",
        ),
        ("self.update_average(old, new)", "self.update_average(new=new, old=old)"),
        ("            old, new = q.data, p.data", "            old = q.data\n            new = p.data"),
    ],
)
def test_the_average_of_a_method_may_be_written_in_other_ways(old: str, new: str) -> None:
    assert "optax.incremental_update(" in averaged(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        if old is None:", "        print(old.sum())\n        if old is None:"),
        ("        if old is None:", "        if self.beta is None:"),
        ("        return old * self", "        self.beta = 0.5\n        return old * self"),
        ("class Net", "class Twice(EMA):\n    def update_average(self, old, new):\n        return new\n\n\nclass Net"),
        ("    def update_average(", "    @torch.no_grad()\n    def update_average("),
        ("averaged.parameters()):", "averaged.parameters()):\n            self.seen = p"),
        ("self.update_average(old, new)\n", "self.update_average(old, new)\n        print(old)\n"),
        ("self.update_average(old, new)", "other.update_average(old, new)"),
    ],
)
def test_the_average_of_a_method_stays_a_call_where_it_may_be_more(old: str, new: str) -> None:
    assert "incremental_update" not in averaged(old, new)


@pytest.mark.parametrize(
    "body", ["q.data.mul_(tau)\n    q.data.add_((1 - tau) * q.data)", "q.data.mul_(tau).add_(q.data)"]
)
def test_a_parameter_that_is_read_again_when_it_is_scaled_stays_in_its_loop(body: str) -> None:
    code = converted(body)
    assert "tree.map" not in code and "for p, q in zip(" in code
