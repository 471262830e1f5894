"""Stores through boolean masks, values that no_grad detaches, and reads of layers whose class is or isn't known."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from t2j_lsp import convert
from t2j_lsp.weights import load_torch_state

from .convert import body, run
from .side_by_side import randomized, run_jax, run_torch, sides
from .test_regressions import equal, method


@pytest.mark.parametrize(
    ("store", "wanted"),
    [
        ("x[x > 1] = 1", "x = jnp.where(x > 1, 1, x)"),
        ("x[x != x] = 0.0", "x = jnp.where(x != x, 0.0, x)"),
        ("x[x.abs() < 0.1] += 2", "x = jnp.where(jnp.abs(x) < 0.1, x + 2, x)"),
        ("x[x > 1] = x.mean()", "x = jnp.where(x > 1, x.mean(), x)"),
    ],
)
def test_one_number_in_the_places_of_a_mask_of_the_same_shape(store: str, wanted: str) -> None:
    code = body(f"def f(x: Tensor):\n    x = x * 1\n    {store}\n    return x\n")
    assert wanted in code


@pytest.mark.parametrize(
    "store",
    [
        "x[rows] = 1",  # a mask of rows, or indices
        "x[x > 1] = x[x > 1] * 2",
        "x[0, x[0] > 1] = 0",
    ],
)
def test_other_stores_keep_their_index(store: str) -> None:
    code = body(f"def f(x: Tensor, y: Tensor, rows: Tensor):\n    x = x * 1\n    {store}\n    return x\n")
    assert "x = x.at[" in code


def test_a_store_that_rounds_is_no_choice_between_values() -> None:
    code = body("def f(n: int):\n    x = torch.zeros(n, dtype=torch.long)\n    x[x == 0] = 0.5\n    return x\n")
    assert "x = set_where(x, x == 0, 0.5)" in code


BUFFER = """
import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(5, 5)
        self.register_buffer("size", torch.ones(5))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        with torch.no_grad():
            self.size.mul_(0.9).add_(0.1 * x.abs().mean(0))
            self.calls += 1
        return self.scale(x) / self.size + self.calls
"""


def test_a_buffer_written_without_gradient_carries_none() -> None:
    equal(BUFFER, "buffer_no_grad", 3, 5)
    code = body(BUFFER)
    assert "self.size[...] = jax.lax.stop_gradient(self.size[...])" in code
    assert "stop_gradient(self.calls" not in code


def test_a_buffer_that_is_only_written_stays_as_it_is() -> None:
    assert "stop_gradient" not in body(BUFFER.replace("/ self.size ", ""))


CHAIN = """
from collections import OrderedDict

import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(OrderedDict([("first", nn.Linear(4, 3)), ("act", nn.Tanh())]))
        self.head = nn.Sequential({"last": nn.Linear(3, 2)}) if False else nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.net(x)) * self.net[0].weight.mean()
"""


def test_a_child_of_a_sequential_of_names_is_known() -> None:
    equal(CHAIN, "chain_by_index", 2, 4)


def test_a_weight_of_some_module_is_looked_up() -> None:
    result = run("def norm(model: nn.Module):\n    return sum(m.weight.sum() for m in model.modules())\n")
    assert not result.gaps and 'torch_parameter(m, "weight").sum()' in result.code


def test_a_guard_that_leaves_the_loop_tells_the_class() -> None:
    result = run(
        "def norms(model: nn.Module):\n    out = 0.0\n    for m in model.modules():\n"
        "        if not isinstance(m, nn.Linear):\n            continue\n"
        "        out += m.weight.sum()\n    return out\n"
    )
    assert result.gaps == ()
    assert "m.kernel.T.sum()" in result.code


def test_the_weight_of_one_of_two_layers_is_looked_up() -> None:
    code = "self.a = nn.Linear(2, 2) if wide else nn.Embedding(2, 2)"
    result = run(
        f"class A(nn.Module):\n    def __init__(self, wide: bool):\n        super().__init__()\n        {code}\n\n"
        "    def forward(self, x):\n        return x * self.a.weight.mean()\n"
    )
    assert not result.gaps and 'x * torch_parameter(self.a, "weight").mean()' in result.code


def test_a_comparison_of_unknown_values_may_be_a_tensor() -> None:
    assert method("return (x != self.pad).permute(1, 0)") == "return (x != self.pad).T"


def test_flatten_with_a_number_is_a_tensors() -> None:
    assert "flatten" not in method("return self.measure(x).flatten(1)")
    kept = "def f(frame):\n    return frame.values.flatten()\n"
    assert "frame.values.flatten()" in run(kept).code


@pytest.mark.parametrize(
    ("line", "noted"),
    [
        ("return x[keep]", True),
        ("return x[x.argmax(0)]", False),
        ("x[x > 0] = 0.0", False),
        ("return int(x.max())", True),
        ("if x.sum() > 0: return y", True),
    ],
)
@pytest.mark.parametrize(
    "place", ["def f(x: torch.Tensor, y):\n", "class A(nn.Module):\n    def forward(self, x: torch.Tensor, y):\n"]
)
def test_what_fails_under_jit_is_said_in_modules_and_in_functions_of_tensors(
    place: str, line: str, noted: bool
) -> None:
    indent = " " * (8 if "class" in place else 4)
    body = f"{indent}keep = (x > 0) & ~(x > 1)\n{indent}{line}\n{indent}return x\n"
    findings = convert(f"import torch\nfrom torch import nn\n\n\n{place}{body}").findings
    assert any(f.code in ("value-needed", "tensor-branch") for f in findings) is noted


WRITTEN = """\
import torch
from torch import nn
import torch.nn.functional as F


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 5))
        self.register_buffer("mean", torch.zeros(4, 5))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.weight.copy_(F.normalize(self.weight, dim=1))
                self.mean.copy_(self.weight * 2 + x.mean())
        return F.linear(x, self.weight / 3) * self.mean.sum()
"""


def test_a_parameter_that_is_written_without_gradient_still_has_one() -> None:
    """Its gradient is that of the new value; a buffer's new value has none."""
    both = sides(WRITTEN, "written_parameter")
    assert both.gaps() == []
    x = np.random.default_rng(3).normal(size=(2, 5))
    with jax.enable_x64(True):
        reference, module = randomized(both.torch.A()), both.jax.A(rngs=both.jax.nnx.Rngs(0))
        load_torch_state(module, reference.state_dict())
        got = run_jax(module, [x], {}, train=True, jit=False)
        want = run_torch(reference, [x], {}, True, ())
    np.testing.assert_allclose(got.outputs[0], want.outputs[0], rtol=1e-10)
    for name, gradient in want.gradients.items():
        np.testing.assert_allclose(got.gradients[name], gradient, rtol=1e-10, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(got.state["mean"], want.state["mean"], rtol=1e-10)


def test_a_name_that_is_bound_anew_behind_a_block_without_gradients_is_left_alone() -> None:
    code = """
def f(batches: list[torch.Tensor], model, device):
    out = []
    with torch.no_grad():
        for x in batches:
            y = torch.exp(x)
            out.append(model(y))
    y = out[0]
    return y
"""
    done = convert("import torch\n\n" + code)
    assert not done.gaps and "stop_gradient" not in done.code
    kept = convert("import torch\n\n" + code.replace("    y = out[0]\n", ""))
    assert "y = jax.lax.stop_gradient(y)" in kept.code


def test_a_name_that_a_block_without_gradients_may_not_bind_is_stopped_where_it_is_bound() -> None:
    code = """
def f(x: torch.Tensor, batches: list[torch.Tensor]):
    with torch.no_grad():
        for batch in batches:
            y = torch.exp(x) * batch
            print(y.sum())
    for batch in batches:
        for y in batches:
            x = x + y
    return x
"""
    done = convert("import torch\n\n" + code)
    assert not done.gaps
    assert "        y = jnp.exp(x) * batch\n        y = jax.lax.stop_gradient(y)\n" in done.code
    assert done.code.count("stop_gradient") == 1


def test_a_branch_of_a_block_without_gradients_that_goes_leaves_nothing() -> None:
    code = """
def f(x: torch.Tensor, y: torch.Tensor):
    with torch.no_grad():
        if hasattr(torch, "nextafter"):
            out = torch.nextafter(x, y)
        else:
            out = x.clone()
    return out * 2
"""
    done = convert("import torch\n\n" + code)
    assert not done.gaps
    assert "    out = nextafter(x, y)\n    out = jax.lax.stop_gradient(out)\n    return out * 2" in done.code
