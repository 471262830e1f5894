"""State that a module keeps from call to call, and records of arrays, are data of the module: jit hands them on."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from t2j_lsp import convert

from .side_by_side import sides

HEAD = "import torch\nfrom torch import nn\nfrom typing import Any, NamedTuple\n\n\n"
NET = """class Net(nn.Module):
    def __init__(self{parameter}):
        super().__init__()
        self.state = {given}

    def forward(self, x):
        {forward}
        return torch.relu(x)

    def named(self, mode):
        {other}
"""


def converted(
    parameter: str = "", given: str = "None", forward: str = "self.state = step(x)", other: str = "pass"
) -> str:
    return convert(HEAD + NET.format(parameter=parameter, given=given, forward=forward, other=other)).code


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        ("", "None"),
        (", state=None", "state"),
        (", state: Any = None", "state"),
        (", state: torch.Tensor = None", "state"),
    ],
)
@pytest.mark.parametrize(
    "forward",
    ["self.state = step(x)", "x, self.state = step(x, self.state)", "self.state = x", "self.state = x.mean()"],
)
def test_what_calls_give_an_attribute_that_may_be_none_is_data(parameter: str, given: str, forward: str) -> None:
    assert f"self.state = nnx.data({given})" in converted(parameter, given, forward)


@pytest.mark.parametrize(
    ("parameter", "given", "forward", "other"),
    [
        ("", "None", "self.state = len(x)", "pass"),
        ("", "None", "pass", "self.state = mode"),
        (", state=None", "state", "pass", "self.state = mode"),
        (", state", "state", "self.state = step(x)", "pass"),
        ("", '"s"', "self.state = step(x)", "pass"),
    ],
)
def test_what_may_be_no_array_stays(parameter: str, given: str, forward: str, other: str) -> None:
    assert f"self.state = {given}\n" in converted(parameter, given, forward, other)


STATES = """class Sums(nn.Module):
    def __init__(self, add, state=None):
        super().__init__()
        self.add = add
        self.state = state

    def forward(self, x):
        out, self.state = self.add(x, self.state)
        return out


def add(x, state):
    total = x.sum(0) if state is None else state + x.sum(0)
    return x * total, total


class Scale(NamedTuple):
    by: torch.Tensor = torch.as_tensor(2.0)
    names: tuple = ()


class Scaled(nn.Module):
    def __init__(self, scale: Scale = Scale()):
        super().__init__()
        self.scale, self.kept = 3.0, None
        self.by = scale

    def forward(self, x):
        return x * self.by.by * self.scale
"""


def test_state_is_handed_on_under_jit() -> None:
    both = sides(HEAD + STATES, "kept_states")
    assert both.gaps() == []
    x = np.random.default_rng(0).normal(size=(2, 3))
    net, torch = both.jax.Sums(both.jax.add, rngs=nnx.Rngs(0)), both.torch.torch
    other = both.torch.Sums(both.torch.add)
    run = nnx.jit(lambda module, x: module(x))
    with jax.enable_x64(True):
        for _ in range(3):
            np.testing.assert_allclose(run(net, jax.numpy.asarray(x)), other(torch.tensor(x)).numpy(), rtol=1e-12)
        np.testing.assert_allclose(net.state, other.state.numpy(), rtol=1e-12)


def test_a_record_of_arrays_is_data() -> None:
    both = sides(HEAD + STATES, "records")
    assert "self.by = nnx.data(scale)" in both.translation.code
    x = np.random.default_rng(0).normal(size=(2, 3))
    with jax.enable_x64(True):
        out = nnx.jit(lambda module, x: module(x))(both.jax.Scaled(rngs=nnx.Rngs(0)), jax.numpy.asarray(x))
    np.testing.assert_allclose(out, both.torch.Scaled()(both.torch.torch.tensor(x)).numpy(), rtol=1e-12)


def test_a_record_without_arrays_stays() -> None:
    text = "class Sizes(NamedTuple):\n    rows: int = 2\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
    text += "        super().__init__()\n        self.sizes = Sizes()\n\n"
    text += "    def forward(self, x):\n        return torch.relu(x)\n"
    assert "self.sizes = Sizes()\n" in convert(HEAD + text).code


BUFFERS = """class Bounds(nn.Module):
    def __init__(self, low, size=3):
        super().__init__()
        self.register_buffer("low", torch.tensor(low))
        self.register_buffer("mean", torch.zeros(size))

    def forward(self, x):
        self.low.data = x.min()
        self.mean.data = x.mean(0)
        return x - self.low
"""


def test_a_buffer_of_unknown_kind_gets_the_dtype_of_its_new_data() -> None:
    both = sides(HEAD + BUFFERS, "data_of_buffers")
    assert "self.low.set_value(x.min())" in both.translation.code
    assert "self.mean[...] = x.mean(axis=0)" in both.translation.code
    x = np.random.default_rng(0).normal(size=(2, 3))
    net, other = both.jax.Bounds(3, rngs=nnx.Rngs(0)), both.torch.Bounds(3)
    with jax.enable_x64(True):
        out = nnx.jit(lambda module, x: module(x))(net, jax.numpy.asarray(x))
        np.testing.assert_allclose(out, other(both.torch.torch.tensor(x)).numpy(), rtol=1e-12)
        np.testing.assert_allclose(net.low[...], other.low.numpy(), rtol=1e-12)


UNPACKED = """class Attends(nn.Module):
    def pair(self, x: torch.Tensor):
        return torch.softmax(x, -1), x * 2

    def forward(self, x: torch.Tensor):
        self.weights, out = self.pair(x)  # kept for plots
        return out
"""


def test_state_that_is_one_of_several_values_is_data() -> None:
    both = sides(HEAD + UNPACKED, "unpacked_states")
    assert (
        "weights, out = self.pair(x)  # kept for plots\n        self.weights = nnx.data(weights)"
        in both.translation.code
    )
    x = np.random.default_rng(0).normal(size=(2, 3))
    net, other = both.jax.Attends(rngs=nnx.Rngs(0)), both.torch.Attends()
    with jax.enable_x64(True):
        out = nnx.jit(lambda module, x: module(x))(net, jax.numpy.asarray(x))
        np.testing.assert_allclose(out, other(both.torch.torch.tensor(x)).numpy(), rtol=1e-12)
        np.testing.assert_allclose(net.weights, other.weights.numpy(), rtol=1e-12)


@pytest.mark.parametrize("line", ["self.size, out = len(x), x", "self.weights, out = self.pair(x); out = out"])
def test_other_values_beside_each_other_stay(line: str) -> None:
    text = UNPACKED.replace("self.weights, out = self.pair(x)  # kept for plots", line)
    assert line.partition(";")[0] in convert(HEAD + text).code


HANDED = """class Scale(NamedTuple):
    by: torch.Tensor = torch.as_tensor(2.0)


class Base(nn.Module):
    def __init__(self, scale{annotation}, size=3):
        super().__init__()
        {does}

    def forward(self, x):
        return x * self.scale.by


class Net(Base):
    def __init__(self, scale: Scale = Scale()):
        super().__init__(scale={given}, size=4)
"""


@pytest.mark.parametrize("annotation", ["", ": Any"])
def test_a_record_is_marked_where_a_base_keeps_what_it_does_not_know(annotation: str) -> None:
    text = HEAD + HANDED.format(annotation=annotation, does="self.scale = scale", given="scale")
    both = sides(text, "handed_records")
    assert "super().__init__(scale=nnx.data(scale), size=4, rngs=rngs)" in both.translation.code
    x = np.random.default_rng(0).normal(size=(2, 3))
    with jax.enable_x64(True):
        out = nnx.jit(lambda module, x: module(x))(both.jax.Net(rngs=nnx.Rngs(0)), jax.numpy.asarray(x))
    np.testing.assert_allclose(out, both.torch.Net()(both.torch.torch.tensor(x)).numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("annotation", "does", "given"),
    [
        (": Scale", "self.scale = scale", "scale"),
        (": Any", "self.scale, self.by = scale, scale.by", "scale"),
        (": Any", "self.scale = scale", "3"),
    ],
)
def test_what_a_base_knows_or_reads_is_handed_over_as_it_is(annotation: str, does: str, given: str) -> None:
    code = convert(HEAD + HANDED.format(annotation=annotation, does=does, given=given)).code
    assert f"super().__init__(scale={given}, size=4, rngs=rngs)" in code


FILLS = "            self.fill(x, n)"
CACHES = {
    "before it is filled": f"if n != self.n or self.table.device != x.device:\n{FILLS}",
    "behind others": f"if self.table is None or self.table.shape[0] != n or self.table.device != x.device:\n{FILLS}",
    "the same": (
        "if self.table is not None and self.table.device == x.device:\n            return x + self.table\n"
        "        self.fill(x, n)"
    ),
}


@pytest.mark.parametrize("asked", CACHES.values(), ids=CACHES)
def test_a_cache_that_is_none_at_first_is_asked_for_no_device(asked: str) -> None:
    """What is read there is an array, whatever stands further up; a traced array knows no device."""
    done = convert(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n        self.n = self.table = None\n\n    def forward(self, x):\n"
        f"        n = x.shape[1]\n        {asked}\n"
        "        return x + self.table\n\n    def fill(self, x, n):\n        self.n = n\n"
        "        self.table = torch.arange(n, device=x.device).float()\n"
    )
    assert not done.gaps and not done.findings and "device" not in done.code


def test_what_is_summed_of_something_unknown_is_data() -> None:
    """An array that a call begins to keep, whatever it is computed of."""
    done = convert(
        "import torch\nfrom torch import nn\nfrom spikes import Quantize\n\n\nclass Net(nn.Module):\n"
        "    def forward(self, x):\n        out = Quantize.apply(torch.relu(x))\n"
        "        self.activity = out.sum() / len(out)\n        self.count = len(out)\n        return out\n"
    )
    assert "self.activity = nnx.data(out.sum() / len(out))" in done.code and "self.count = len(out)" in done.code


def test_a_signature_of_several_gets_no_state() -> None:
    text = (
        "import torch\nfrom torch import nn\nfrom typing import overload\n\n\nclass Net(nn.Module):\n    @overload\n"
        "    def __init__(\n        self, n: int\n    ) -> None: ...\n\n    def __init__(self, n):\n"
        "        super().__init__()\n        self.n = n\n\n"
        "    def forward(self, x):\n        return x + torch.rand(self.n)\n"
    )
    code = convert(text).code
    assert code.count("self.rngs = rngs.fork()") == 1


CONTAINERS = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.pairs = [(1, torch.ones(3)), (2, torch.zeros(3))]
        self.table = {"a": [torch.ones(3)], "b": []}
        self.reset()

    def reset(self):
        self.states = []
        for _ in range(2):
            self.states.append((torch.zeros(3), torch.ones(3)))

    def forward(self, x):
        h = torch.tanh(self.scale * x + self.states[0][0] + self.pairs[0][1] + self.table["a"][0])
        self.states[0] = (h.detach(), self.states[0][1])
        return h


net = Net()
values = [net(torch.ones(3)).sum().item() for _ in range(2)]
net.states = [(torch.zeros(3), torch.zeros(3)) for _ in range(2)]
net.pairs = [(k, torch.full((3,), 0.5)) for k in range(2)]
net.table = {"a": [torch.full((3,), 0.25)]}
values.append(net(torch.ones(3)).sum().item())
net.reset()
values.append(net(torch.ones(3)).sum().item())
"""


def test_arrays_deep_in_containers_are_data_whoever_gives_them() -> None:
    """A list that a method fills is empty at first; NNX takes what it isn't told of for no data, and then refuses."""
    pair = sides(CONTAINERS, "deep_containers")
    assert not pair.gaps()
    np.testing.assert_allclose(pair.jax.values, pair.torch.values, rtol=1e-6)
    assert len(set(pair.torch.values)) == 3
