"""Parameters of which nothing is known: what is said or written so that it is right where they are tensors."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\n\n\n"
FILL = "def fill(values, i):\n    values[i] = 0.0\n    return values\n\n\n"


@pytest.mark.parametrize("value", ["m", "m + 2 * n", "-m"])
def test_a_tensor_made_of_what_may_be_one_carries_no_gradient(value: str) -> None:
    code = convert(HEAD + f"def f(m, n):\n    return torch.tensor({value}) * torch.ones(2)\n").code
    assert f"jax.lax.stop_gradient(jnp.array({value}))" in code


@pytest.mark.parametrize("value", ["2 + 3", "len(m) + 1", "m.shape[0] * 2"])
def test_a_tensor_made_of_numbers_has_none_to_lose(value: str) -> None:
    assert "stop_gradient" not in convert(HEAD + f"def f(m):\n    return torch.tensor({value}) * torch.ones(2)\n").code


@pytest.mark.parametrize(
    ("value", "stopped"),
    [
        ("m[0]", True),
        ("-m[0] / 2", True),
        ("[m, n]", True),
        ("[m * 2, 1.0]", True),
        ("[2 * x for x in m]", True),
        ("[x for x, y in zip(m, n)], dtype=torch.float32", True),
        ("m[0] if n else 1.0", True),
        ("[m, n], dtype=torch.long", False),
        ("m, dtype=torch.bool", False),
        ("[n[x] for x in m]", False),
        ('m["key"]', False),
        ("[len(x) for x in m]", False),
        ("m.rate", False),
    ],
)
def test_items_of_what_is_not_known_and_lists_of_them_carry_no_gradient(value: str, stopped: bool) -> None:
    """Neither does anything in whole numbers, nor what a dictionary of words has for each."""
    code = convert(HEAD + f"def f(m, n):\n    return torch.tensor({value}) * torch.ones(2)\n").code
    assert ("stop_gradient" in code) is stopped


@pytest.mark.parametrize(("value", "stopped"), [("[m[0], m[1]]", True), ("m[0]", False), ("m", False)])
def test_an_array_of_what_may_be_a_list_of_tensors(value: str, stopped: bool) -> None:
    code = convert(HEAD + f"def f(m):\n    return torch.as_tensor({value}) * torch.ones(2)\n").code
    assert ("stop_gradient" in code) is stopped


@pytest.mark.parametrize("kind", ["IntTensor", "LongTensor", "FloatTensor", "DoubleTensor", "ByteTensor", "HalfTensor"])
def test_old_tensor_types_say_that_something_is_a_tensor(kind: str) -> None:
    text = "def mix(k, s: int):\n    k ^= s\n    return k * 3\n\n\n"
    text += f"def f(x: torch.{kind}):\n    y = mix(x, 1)\n    return y + x\n"
    assert [gap.span.line for gap in convert(HEAD + text).gaps] == [10]


STEPS = "def f(x: torch.Tensor, end, n, c):\n    {}\n    return torch.{}(0, {}, n) + x\n"


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize(
    ("before", "end", "stopped"),
    [
        ("pass", "end", True),
        ("pass", "2 * end", True),
        ("if not end:\n        end = x.max()", "end", True),
        ("end = c(x)", "end", True),
        ("pass", "n - 1", False),
        ("end = x.shape[0]", "end", False),
        ("end = 3.0", "end / 2", False),
        ("pass", "c.end", False),
    ],
)
def test_steps_up_to_what_may_be_a_tensor_carry_no_gradient(name: str, before: str, end: str, stopped: bool) -> None:
    code = convert(HEAD + STEPS.format(before, name, end)).code
    assert (f"jax.lax.stop_gradient({end})" in code) is stopped
    assert f"jnp.{name}(" in code


@pytest.mark.parametrize(("argument", "gap"), [("x.view(-1)", True), ("x[0]", True), ("x + 1", False)])
def test_a_view_that_is_handed_over_to_be_written(argument: str, gap: bool) -> None:
    text = HEAD + FILL + f"def f(x: torch.Tensor, i):\n    fill({argument}, i)\n    return 2 * x\n"
    assert any("caller's 'values'" in finding.reason for finding in convert(text).gaps) is gap


def test_the_data_of_a_parameter_that_may_be_a_tensor_is_a_gap() -> None:
    text = HEAD + "def f(encode, x, y):\n    return torch.cat([encode(x.data), y], dim=1)\n"
    assert [gap.name for gap in convert(text).gaps] == ["torch.Tensor.data"]
    stated = text.replace("x, y", "x: torch.Tensor, y")
    assert "encode(jax.lax.stop_gradient(x))" in convert(stated).code


def test_the_data_of_another_object_stays() -> None:
    text = HEAD + "def f(batch):\n    batch.pin()\n    return torch.sum(batch.data)\n"
    assert not convert(text).gaps


RETURNS = """

class Net(torch.nn.Module):
    def forward(self, x, every=False):
        hidden = [torch.tanh(x)]
        {returned}


net = Net()
out, hidden = net(torch.ones(2), every=True)
total = sum(h.pow(2).sum() for h in hidden)
"""


@pytest.mark.parametrize(
    "returned",
    [
        "return (x, hidden) if every else x",
        "if every:\n            return x, hidden\n        return x",
        "if every:\n            return x, hidden\n        return x, hidden, x",
    ],
)
def test_what_is_unpacked_is_the_tuple_that_a_function_returns(returned: str) -> None:
    """In other cases it returns one tensor: nothing was known of either then, and `h.pow(2)` stayed."""
    assert "total = sum((h**2).sum() for h in hidden)" in convert(HEAD + RETURNS.format(returned=returned)).code


@pytest.mark.parametrize(
    "walk",
    ["sum(h.abs().sum() for h in given)", "[h.abs() for h in given]", "[h.abs() * i for i, h in enumerate(given)]"],
)
def test_the_items_of_a_parameter_may_be_tensors_as_it_may_be_one(walk: str) -> None:
    done = convert(f"{HEAD}def f(given):\n    return {walk}\n")
    assert "absolute(h)" in done.code and "h.abs()" not in done.code
    pandas = convert(f"import pandas\n{HEAD}def f(given):\n    return {walk}\n")
    assert "h.abs()" in pandas.code


@pytest.mark.parametrize("seen", ["state.to(device)", "state.pow(2)", "state.abs()"])
def test_what_a_script_computes_with_tensors_is_taken_for_one(seen: str) -> None:
    """As in functions that compute with some: `next_obs.to(device)` stayed at the top of a script.

    Where pandas is imported, what its tables have as well stays: they have no `to`.
    """
    script = f"state = environment.reset()\nscore = {seen} + torch.ones(2)\n"
    code = convert(f"import torch\n\n{script}").code
    assert seen not in code
    assert (seen in convert(f"import pandas\nimport torch\n\n{script}").code) is (".to(" not in seen)


def test_what_is_computed_of_parameters_may_be_a_tensor_too() -> None:
    text = "def f(a, b):\n    s = 0\n    for x, y in zip(a, b):\n        s += (x - y).pow(2)\n    return s"
    assert "s += (x - y)**2" in convert(f"{HEAD}{text}\n").code


@pytest.mark.parametrize(
    ("before", "data", "cut"),
    [
        ("y = 2 * x", "y", True),
        ("pass", "x * 2 + 1", True),
        ("y = torch.ones(3)", "y", False),
        ("y = x", "y", False),
        ("pass", "x", False),
    ],
)
@pytest.mark.parametrize("flag", ["", ", requires_grad=True"])
def test_a_variable_of_what_was_computed_is_a_new_leaf(before: str, data: str, cut: bool, flag: str) -> None:
    text = f"def f(x: torch.Tensor):\n    {before}\n    v = torch.autograd.Variable({data}{flag})\n    return v * 3\n"
    assert (f"v = jax.lax.stop_gradient({data})" in convert(HEAD + text).code) is cut
