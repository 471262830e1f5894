"""Writes into parts of values: whose type only the write, the other uses or the callers tell; and writes by masks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp import convert

HEAD = "import torch\nfrom torch import nn\n\n\n"
MODULE = (
    HEAD
    + "class Net(nn.Module):\n    def forward(self, items, i, y):\n        x = items[0]\n        {}\n        return x\n"
)


@pytest.mark.parametrize(
    ("store", "wanted"),
    [
        ("x[:, 0] = 1", "x = x.at[:, 0].set(1)"),
        ("x[..., i] = y", "x = x.at[..., i].set(y)"),
        ("x[torch.arange(3), i] = y", "x = x.at[jnp.arange(3), i].set(y)"),
        ("x[1:] = 0", "x = x.at[1:].set(0)"),
        ("x[:, 0] += 1", "x = x.at[:, 0].add(1)"),
        ("x[x > 0] = 1", "x = jnp.where(x > 0, 1, x)"),
        ("x[i > 0] = 1", "x = set_where(x, i > 0, 1)"),
    ],
)
def test_a_write_that_only_arrays_take_tells_what_a_value_is(store: str, wanted: str) -> None:
    translation = convert(MODULE.format(store))
    assert wanted in translation.code
    assert not translation.gaps


@pytest.mark.parametrize(
    "store", ["x[0] = 1", "x[i] = torch.relu(y)", "x[-1] = torch.relu(y)", "x[1:] = torch.relu(y)"]
)
def test_a_write_that_may_be_a_list_s_is_a_gap(store: str) -> None:
    (gap,) = convert(MODULE.format(store)).gaps
    assert gap.reason.startswith("if 'x' is a tensor, JAX says x = x.at[...].set(...)")


@pytest.mark.parametrize(
    "store",
    [
        "x['key'] = torch.relu(y)",
        "x[f'{i}'] = torch.relu(y)",
        "x.append(y)\n        x[0] = torch.relu(y)",
        "x[0] = torch.relu(y)\n        x['other'] = y",
        "x[i] = 1",
    ],
)
def test_what_is_used_as_a_container_is_left_alone(store: str) -> None:
    translation = convert(MODULE.format(store))
    assert not translation.gaps
    assert store.replace("torch.relu", "jax.nn.relu") in translation.code


def test_arrays_of_numpy_stay_numpy_s() -> None:
    text = "import numpy as np\n" + HEAD + "def f(a, n):\n    a[:, 0] = n\n    return a\n"
    translation = convert(text)
    assert "    a[:, 0] = n\n" in translation.code
    assert not translation.gaps


def test_what_modules_call_is_given_tensors() -> None:
    text = (
        "import numpy as np\n"
        + HEAD
        + "def divide(a, b):\n    result = a / b\n    result[result == np.inf] = 0.0\n    return result\n\n\n"
        + "class Loss(nn.Module):\n    def forward(self, x, y):\n        return divide(x - y, y).mean()\n"
    )
    translation = convert(text)
    assert "result = jnp.where(result == np.inf, 0.0, result)" in translation.code
    assert not translation.gaps


def test_what_callers_pass_tells_what_is_written_to() -> None:
    text = (
        "import numpy as np\n"
        + HEAD
        + "def clear(a, n):\n    a[n] = 0\n    return a\n\n\n"
        + "def f(x: torch.Tensor):\n    return clear(x, 2)\n"
    )
    assert "    a = a.at[n].set(0)\n" in convert(text).code


MASKED = [
    "x[mask] = 0",
    "x[mask] = -0.5",
    "x[mask] = y[mask]",
    "x[mask] += 1",
    "x[mask] *= y[mask]",
    "x[~mask] = 2",
    "x[mask & (y[:, 0] > 0)] = 2",
    "x[x > y] = x[x > y]",
    "n[n > 2] = 1.7",
    "n[mask] = 1.7",
]


@pytest.mark.parametrize("store", MASKED)
def test_a_write_by_a_mask_runs_under_jit(store: str) -> None:
    text = HEAD + (
        "def f(x: torch.Tensor, y: torch.Tensor, n: torch.Tensor, mask: torch.Tensor):\n"
        f"    mask = mask > 0\n    {store}\n    return x, n\n"
    )
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, (5, 3)).astype(np.float32) for _ in range(2)]
    arrays += [np.array([1, 2, 3, 4, 5], np.int32), rng.uniform(-1, 1, (5,)).astype(np.float32)]
    translation = convert(text)
    assert "value-needed" not in {note.code for note in translation.notes}
    wanted = _function(text)(*map(torch.tensor, arrays))
    value = jax.jit(_function(translation.code))(*map(jnp.array, arrays))
    for a, b in zip(wanted, value, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)
        assert str(a.dtype).removeprefix("torch.") == str(b.dtype)


@pytest.mark.parametrize("statement", ["return x[x > 0].sum()", "x[x > 0] = y\n    return x"])
def test_what_a_mask_picks_is_said_to_fail_under_jit(statement: str) -> None:
    text = HEAD + f"def f(x: torch.Tensor, y: torch.Tensor):\n    {statement}\n"
    (note,) = convert(text).notes
    assert (note.code, "fails under jit" in note.reason) == ("value-needed", True)


def test_conditions_and_values_of_functions_of_tensors_are_noted() -> None:
    text = (
        HEAD
        + "def f(x: torch.Tensor):\n    if x.sum() > 0 and not (x > 1).any():\n        return x.item()\n\n\n"
        + "def train(model, loader):\n    total = 0\n    for x in loader:\n        total += model(x).sum().item()\n"
    )
    assert [note.code for note in convert(text).notes] == ["tensor-branch", "value-needed"]


def _function(text: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), namespace)
    return namespace["f"]


def test_slices_that_values_bound_are_said_to_fail_under_jit() -> None:
    text = HEAD + "def f(x: torch.Tensor):\n    n = torch.ceil(x.max()).long()\n    return x[..., :n]\n"
    (note,) = (n for n in convert(text).notes if n.code == "value-needed")
    assert note.reason.startswith("a slice whose bounds are array values fails under jit")


def test_a_parameter_that_a_module_masks_by_a_comparison_is_a_tensor() -> None:
    text = HEAD + "class Net(nn.Module):\n    def forward(self, x, y):\n        return x[y == 1].sum()\n"
    assert [note.code for note in convert(text).notes] == ["value-needed"]


def test_a_function_that_trains_is_not_compiled_and_may_ask_for_values() -> None:
    code = """
def train(model, optimizer, x: torch.Tensor, y: torch.Tensor):
    total = 0.0
    for _ in range(3):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


model = nn.Linear(3, 1)
train(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(2, 3), torch.ones(2, 1))
"""
    translation = convert("import torch\nfrom torch import nn\n" + code)
    assert not translation.gaps and "value-needed" not in {note.code for note in translation.notes}


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("h[0] = h[1] = 2", ["h = h.at[0].set(2)", "h = h.at[1].set(2)"]),
        ("h[0] = h[1] = -n", ["h = h.at[0].set(-n)", "h = h.at[1].set(-n)"]),
    ],
)
def test_one_value_for_several_places_is_a_write_into_each(statement: str, wanted: list[str]) -> None:
    code = convert(HEAD + f"def f(h: torch.Tensor, n: int):\n    {statement}\n    return h\n").code
    assert [line.strip() for line in code.splitlines()[-3:-1]] == wanted


@pytest.mark.parametrize("statement", ["y = h[0] = h.sum()", "h[0] = h[1] = h.sum()", "names[0] = h[1] = 2"])
def test_a_value_for_places_of_several_kinds_is_a_gap(statement: str) -> None:
    done = convert(HEAD + f"def f(h: torch.Tensor, names: list):\n    {statement}\n    return h\n")
    assert [gap.code for gap in done.gaps] == ["in-place"]


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("x[0], x[1] = y[0], -y[1]", ["x = x.at[0].set(y[0])", "x = x.at[1].set(-y[1])"]),
        ("x[0], k = y[0], 3", ["x = x.at[0].set(y[0])", "k = 3"]),
        ("k = 1; x[0], x[1] = y[0], y[1]", ["x = x.at[0].set(y[0])", "x = x.at[1].set(y[1])"]),
        ("k = 1; x[0] = x[1] = k", ["x = x.at[0].set(k)", "x = x.at[1].set(k)"]),
        ("[x[:, 0], x[0, :]] = 1, 2", ["x = x.at[:, 0].set(1)", "x = x.at[0, :].set(2)"]),
    ],
)
def test_values_for_several_places_at_once_are_written_one_by_one(statement: str, wanted: list[str]) -> None:
    translation = convert(f"{HEAD}def f(x: torch.Tensor, y: torch.Tensor):\n    {statement}\n    return x\n")
    assert not translation.gaps and [line.strip() for line in translation.code.splitlines()][-3:-1] == wanted


@pytest.mark.parametrize(
    "statement",
    ["x[0], x[1] = x[1], x[0]", "x[0], x[1] = y", "x[0], *k = y[0], y[1], y[2]"],
)
def test_values_that_can_not_be_written_one_by_one_are_a_gap(statement: str) -> None:
    translation = convert(f"{HEAD}def f(x: torch.Tensor, y: torch.Tensor):\n    {statement}\n    return x\n")
    assert [f.code for f in translation.gaps] == ["in-place"] and f"\n    {statement}\n" in translation.code


FREE = """table = torch.zeros(3)


def outer(a: torch.Tensor):
    def write(x):
        {declared}
        {statement}

    return write
"""


@pytest.mark.parametrize("statement", ["a[0] = x", "a.add_(x)", "a[0].mul_(2)", "table[0] += x", "y = table.mul_(x)"])
def test_an_array_of_the_code_around_a_function_is_not_bound_in_it(statement: str) -> None:
    name = "a" if "a" in statement.split("[")[0].split(".")[0].split() else "table"
    translation = convert(HEAD + FREE.format(declared="pass", statement=statement))
    assert [f.code for f in translation.gaps] == ["in-place"] and "outside of the function" in translation.gaps[
        0
    ].reason
    declared = "nonlocal a" if name == "a" else "global table"
    assert not convert(HEAD + FREE.format(declared=declared, statement=statement)).gaps


@pytest.mark.parametrize(
    ("store", "lines"),
    [
        ("x[t] = last = y * 2", ["last = y * 2", "x = x.at[t].set(last)"]),
        ("last = x[t] = z[t] = y * 2", ["last = y * 2", "x = x.at[t].set(last)", "z = z.at[t].set(last)"]),
    ],
)
def test_a_value_that_a_part_and_a_name_get_is_written_by_its_name(store: str, lines: list[str]) -> None:
    done = convert(
        HEAD
        + f"def f(t, y: torch.Tensor):\n    x, z = torch.zeros(4), torch.ones(4)\n    {store}\n    return x, z, last\n"
    )
    assert not done.gaps
    assert "\n".join(f"    {line}" for line in lines) in done.code


STEPPED = (
    HEAD
    + """\
def play(world, obs: torch.Tensor, steps):
    rewards, i = torch.zeros(steps, 3), 0
    for step in range(steps):
        {}
    return rewards, obs, i
"""
)


def test_a_part_beside_names_is_written_behind_the_call() -> None:
    done = convert(STEPPED.format("obs, rewards[step], ended, _ = world(obs)"))
    lines = ["obs, new_rewards, ended, _ = world(obs)", "rewards = rewards.at[step].set(new_rewards)"]
    assert not done.gaps and "\n".join(f"        {line}" for line in lines) in done.code


@pytest.mark.parametrize("targets", ["i, rewards[i], ended, _", "rewards[i], i, ended, _"])
def test_a_part_whose_place_another_name_of_the_call_says_stays_told(targets: str) -> None:
    assert any("several targets" in gap.reason for gap in convert(STEPPED.format(f"{targets} = world(obs)")).gaps)


def test_a_part_whose_place_the_name_is_stays_told() -> None:
    done = convert(HEAD + "def f(t, y: torch.Tensor):\n    x = torch.zeros(4)\n    t = x[t] = y * 2\n    return x, t\n")
    assert any("several targets" in gap.reason for gap in done.gaps)


ADVANTAGES = (
    HEAD
    + """\
def advantages(rewards: torch.Tensor, values: torch.Tensor, critic: nn.Module):
    rewards, values = rewards.view(3, 2), values.view(3, 2)
    following = critic(rewards[0]).reshape(1, -1)
    out = torch.zeros_like(rewards)
    last = 0
    for t in reversed(range(3)):
        if t == 2:
            after = following
        else:
            after = values[t + 1]
        out[t] = last = rewards[t] + 0.9 * after - values[t] + 0.8 * last
    return out
"""
)


def test_leading_axes_of_a_value_go_where_a_part_has_fewer() -> None:
    done = convert(ADVANTAGES)
    assert not done.gaps and "out.at[t].set(last.reshape(last.shape[-1:]))" in done.code
    rewards, values = np.arange(6, dtype=np.float32), np.arange(6, dtype=np.float32)[::-1].copy()
    jax_side: dict[str, Any] = {}
    torch_side: dict[str, Any] = {}
    exec(done.code, jax_side)
    exec(ADVANTAGES, torch_side)
    want = torch_side["advantages"](torch.tensor(rewards), torch.tensor(values), torch.nn.Tanh())
    np.testing.assert_allclose(jax_side["advantages"](jnp.array(rewards), jnp.array(values), jnp.tanh), want, rtol=1e-6)


def test_a_comparison_of_arrays_of_numpy_is_one() -> None:
    """`torch.Tensor(done)` makes a tensor of values; of a number it would make an empty one."""
    code = "import numpy as np\n" + HEAD + "a = np.arange(4)\ndone = (a == 3) | (a > 5)\nx = torch.Tensor(done)\n"
    assert "jnp.empty(done" not in convert(code).code


GIVEN = (
    HEAD
    + """\
def rollout(net: nn.Module, x: torch.Tensor, steps: int = 3):
    first, second = torch.zeros(steps, 4), torch.ones(steps, 4)
    for t in range(steps):
        first[t], second[t] = torch.max(x, 0)[0], x[0]
        first[t], second[steps - 1 - t] = torch.std_mean(x, 0)
    return first, second
"""
)


def test_what_a_call_gives_to_several_parts_has_names() -> None:
    done = convert(GIVEN)
    assert not done.gaps
    lines = [line.strip() for line in done.code.splitlines()]
    at = next(i for i, line in enumerate(lines) if line.startswith("new_first, new_second = "))
    assert lines[at + 1 : at + 3] == [
        "first = first.at[t].set(new_first)",
        "second = second.at[steps - 1 - t].set(new_second)",
    ]
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    jax_side: dict[str, Any] = {}
    torch_side: dict[str, Any] = {}
    exec(done.code, jax_side)
    exec(GIVEN, torch_side)
    for one, other in zip(
        jax_side["rollout"](None, jnp.array(x)), torch_side["rollout"](None, torch.tensor(x)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("statement", ["x[0], y[x[0]] = f(x)", "x[0], names[0] = f(x)", "x[0], (x[1], x[2]) = f(x)"])
def test_a_call_for_parts_that_hang_together_stays_told(statement: str) -> None:
    done = convert(
        HEAD + f"def g(f, x: torch.Tensor, y: torch.Tensor, names: list):\n    {statement}\n    return x, y\n"
    )
    assert [gap.code for gap in done.gaps] == ["in-place"]


@pytest.mark.parametrize(
    ("store", "wanted"),
    [
        ("x[i] = torch.softmax(y, 1)", "x = x.at[i].set(jax.nn.softmax(y, axis=1)[0])"),
        ("x[i, 0] = y.sum(0, keepdim=True)[:, :1]", "x = x.at[i, 0].set(y.sum(axis=0, keepdims=True)[:, :1][0, 0])"),
        ("x[1:] = y", "x = x.at[1:].set(y)"),
        ("x[:, i:] = torch.cat((y, z), 1)", "x = x.at[:, i:].set(jnp.concatenate((y, z), axis=1))"),
        ("x[:, None, i] = y", "x = x.at[:, None, i].set(y)"),
        ("x[i] = y[torch.arange(1)]", "x = x.at[i].set(y[jnp.arange(1)][0])"),
        ("x[i] = y[torch.zeros(2, 1).long(), :]", "x = x.at[i].set(y[jnp.zeros((2, 1)).astype(jnp.int32), :][0, 0])"),
        ("x[i] = y[y > 0]", "x = x.at[i].set(y[y > 0])"),
        ("x[i, 0] = torch.cdist(x, y)[0]", "x = x.at[i, 0].set(cdist(x, y)[0][0])"),
    ],
)
def test_leading_axes_of_length_one_are_taken_off_as_in_pytorch(store: str, wanted: str) -> None:
    head = HEAD + "def f(i: int, z):\n    x, y = torch.zeros(3, 4), torch.ones(1, 4)\n    "
    translation = convert(f"{head}{store}\n    return x\n")
    assert wanted in translation.code
    assert not translation.gaps


def test_what_is_set_may_come_from_a_layer_in_another_function() -> None:
    code = convert(
        HEAD + "class Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n\n"
        "    def forward(self, x):\n        x = x.view(1, 1, -1)\n"
        "        return self.fc(torch.cat((x[0], x[0]), 1))\n\n\n"
        "def f(xs):\n    net, out = Net(), torch.zeros(2, 4)\n"
        "    for i in range(2):\n        out[i] = net(xs[i])\n    return out\n"
    ).code
    assert "out = out.at[i].set(net(xs[i])[0])" in code
