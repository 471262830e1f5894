"""Loops over what a module holds: modules, children, parameters, with and without their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flax import nnx

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate
from t2j_lsp.weights import torch_state

from .side_by_side import sides

SOURCE = """\
import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self, d: int, path: str = ""):
        super().__init__()
        self.fc = nn.Linear(d, d)
        {loop}


def count(model: nn.Module):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
"""


def converted(*lines: str) -> str:
    translation = translate(SOURCE.format(loop="\n        ".join(lines)), Options())
    assert not translation.gaps, translation.gaps
    return translation.code


def one_line(code: str) -> str:
    return " ".join(code.split()).replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["for p in self.parameters():", "    if p.dim() > 1:", "        nn.init.xavier_uniform_(p)"],
            "for _, p in nnx.to_flat_state(nnx.state(self, nnx.Param)):\n            if p.ndim > 1:\n"
            "                p[...] = nnx.initializers.xavier_uniform()(",
        ),
        (
            ["for weight in self.parameters():", "    weight.data.uniform_(-0.1, 0.1)"],
            "weight[...] = rngs.uniform(weight.shape, weight.dtype, minval=-0.1, maxval=0.1)",
        ),
        (["for p in self.parameters():", "    p.data *= 0.5"], "p[...] *= 0.5"),
        (
            ["for name, p in self.named_parameters():", "    nn.init.zeros_(p)"],
            "for _, p in nnx.to_flat_state(nnx.state(self, nnx.Param)):",
        ),
        (
            ["for name, p in self.named_parameters():", '    if "bias" in name:', "        nn.init.zeros_(p)"],
            "for path2, p in nnx.to_flat_state(nnx.state(self, nnx.Param)):\n"
            '            name = torch_name(self, path2)\n            if "bias" in name:',
        ),
        (
            ["for m in self.modules():", "    if isinstance(m, nn.Linear):", "        nn.init.zeros_(m.bias)"],
            "for _, m in nnx.iter_modules(self):",
        ),
        (
            ["for name, m in self.fc.named_modules():", "    self.names[name] = torch.ones(1)"],
            "for path2, m in nnx.iter_modules(self.fc):\n            name = torch_name(self.fc, path2)\n",
        ),
        (
            ["for name, m in self.named_children():", "    self.names[name] = torch.ones(1)"],
            "for name, m in nnx.iter_module_children(self):",
        ),
        (["names = dict(self.named_parameters())"], "names = dict((torch_name(self, path), p) for path, p in"),
        (["dtype = next(self.parameters()).dtype"], "dtype = jax.tree.leaves(nnx.state(self, nnx.Param))[0].dtype"),
    ],
)
def test_a_loop_walks_the_nnx_module(lines: list[str], expected: str) -> None:
    assert one_line(expected) in one_line(converted(*lines))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("m.bias.data.zero_()", "m.bias[...] = jnp.zeros_like("),
        ("m.bias.data.fill_(0.1)", "m.bias[...] = jnp.full_like("),
        ("m.bias += 1", "m.bias[...] += 1"),
    ],
)
def test_the_bias_of_any_layer_stays_a_parameter(written: str, expected: str) -> None:
    """``m.bias = array`` would put an array in its place, which no optimizer trains."""
    assert f"    {expected}" in converted("for m in self.modules():", f"    {written}")


@pytest.mark.parametrize("written", ["m.weight.data.zero_()", "m.weight *= 2"])
def test_the_weight_of_any_layer_is_written_by_a_helper(written: str) -> None:
    code = converted("for m in self.modules():", f"    {written}")
    assert one_line('set_torch_parameter(m, "weight",') in one_line(code)


@pytest.mark.parametrize("walk", ["self.layers.children()", "self.layers"])
def test_the_items_of_a_sequential_are_walked_in_their_order(walk: str) -> None:
    code = converted(
        "self.layers = nn.Sequential(nn.Linear(d, d), nn.ReLU())", f"for m in {walk}:", "    self.last = m"
    )
    assert "for m in self.layers:" in code
    assert "class IndexedSequential(nnx.Sequential):" in code  # nnx.Sequential can't be iterated


def test_the_children_of_a_module_list_are_its_items() -> None:
    code = converted(
        "self.layers = nn.ModuleList([nn.Linear(d, d)])",
        "for m in self.layers.children():",
        "    nn.init.ones_(m.bias)",
    )
    assert "for m in self.layers:" in code


OWN_LISTS = """import torch.nn as nn


class Net(nn.{base}):
    def __init__(self, d):
        super().__init__({arguments})
        for {target} in self.{method}():
            if isinstance(m, nn.Linear):
                nn.init.ones_(m.bias)
"""


@pytest.mark.parametrize(
    ("base", "arguments"), [("Sequential", "nn.Linear(d, d), nn.ReLU()"), ("ModuleList", "[nn.Linear(d, d)]")]
)
@pytest.mark.parametrize(("target", "method"), [("m", "children"), ("name, m", "named_children")])
def test_the_children_of_an_own_list_are_walked(base: str, arguments: str, target: str, method: str) -> None:
    source = OWN_LISTS.format(base=base, arguments=arguments, target=target, method=method)
    done = translate(source, Options(helpers="import"))
    assert not done.gaps and "for _, m in named_children(self):" in done.code
    made: dict[str, Any] = {"__name__": "converted"}
    exec(done.code, made)
    net = made["Net"](2, rngs=nnx.Rngs(0))
    assert net[0].bias[...].tolist() == [1, 1]


def test_named_children_of_a_list_are_what_it_holds() -> None:
    loop = "for n, m in nn.Sequential(nn.Linear(d, d)).named_children():\n            print(n, m)"
    result = translate(SOURCE.format(loop=loop), Options())
    assert not result.gaps and "for n, m in named_contents(" in result.code


def test_every_parameter_counts_as_trained_in_a_file_that_freezes_none() -> None:
    assert "sum(p.size for p in jax.tree.leaves(nnx.state(model, nnx.Param)))" in converted("pass")


def test_the_flag_is_marked_in_a_file_that_freezes_some() -> None:
    source = SOURCE.format(loop="self.fc.requires_grad_(False)")
    assert any(gap.name == "torch.Tensor.requires_grad" for gap in translate(source, Options()).gaps)


@pytest.mark.parametrize(
    "line", ["x = list(self.children())[:d]", "for layer in self.children():\n            d = layer(d)"]
)
def test_children_in_their_order_are_marked(line: str) -> None:
    gaps = translate(SOURCE.format(loop=line), Options()).gaps
    assert [gap.name for gap in gaps] == ["torch.nn.Module.children"]


IN_SCRIPT = """import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {parts}


def init(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)


def scaled(m):
    if isinstance(m, nn.Linear):
        m.weight.data.mul_(2)


model = Net()
{walk}
"""
NAMED = "for n, p in model.named_parameters():"
UNSORTED = "self.q = nn.Linear(4, 4)\n        self.k = nn.Linear(4, 4)"
SORTED = "self.fc1 = nn.Linear(4, 4)\n        self.fc2 = nn.Linear(4, 4)"


@pytest.mark.parametrize(
    ("parts", "walk", "ordered"),
    [
        (UNSORTED, "model.apply(init)", True),
        (UNSORTED, "for m in model.modules():\n    init(m)", True),
        (UNSORTED, f"{NAMED}\n    nn.init.normal_(p)", True),
        (UNSORTED, "for p in model.parameters():\n    p.data.uniform_(-1, 1)", True),
        ("self.rnn = nn.LSTM(4, 4)", "for p in model.parameters():\n    p.data.uniform_(-1, 1)", True),
        ("self.rnn = nn.LSTM(4, 4)", "model.apply(init)", False),
        (UNSORTED, "model.apply(scaled)", False),
        (UNSORTED, f"{NAMED}\n    nn.init.zeros_(p)", False),
        (SORTED, "model.apply(init)", False),
        (SORTED, f"{NAMED}\n    nn.init.normal_(p)", False),
        (f"{UNSORTED}\n        self.apply(init)", "", False),
    ],
)
def test_numbers_are_drawn_in_pytorchs_order(parts: str, walk: str, ordered: bool) -> None:
    """Layers of one shape would get each other's; what doesn't draw, or is sorted, or built, walks as Flax does."""
    translation = translate(IN_SCRIPT.format(parts=parts, walk=walk), Options())
    assert not translation.gaps, translation.gaps
    assert ("in in_torch_order(model, nnx." in translation.code) is ordered


WHOLE = "isinstance(m, Net):\n        {}.zero_()"


@pytest.mark.parametrize(
    ("own", "parts", "walk"),
    [
        ("m.weight.data.fill_(1)", "m.fc1.weight.data", "in_torch_order(model, nnx.iter_modules(model))"),
        ("m.weight.data.fill_(1)", "m.scale.data", "nnx.iter_modules(model)"),
        ("pass", "m.fc1.weight.data", "nnx.iter_modules(model)"),
    ],
)
def test_a_module_comes_before_its_parts_where_both_change_them(own: str, parts: str, walk: str) -> None:
    made = f"{SORTED}\n        self.scale = nn.Parameter(torch.ones(1))"
    loop = f"for m in model.modules():\n    if isinstance(m, nn.Linear):\n        {own}\n    elif {WHOLE.format(parts)}"
    code = translate(IN_SCRIPT.format(parts=made, walk=loop), Options()).code
    assert f"for _, m in {walk}:" in code


def test_what_is_applied_comes_to_parts_first() -> None:
    walk = "in_torch_order(model, nnx.iter_modules(model), parts_first=True)"
    assert f" in {walk}:" in translate(IN_SCRIPT.format(parts=UNSORTED, walk="model.apply(init)"), Options()).code


def test_a_function_of_a_module_may_call_itself() -> None:
    again = "def again(m, n):\n    scaled(m)\n    if n:\n        again(m, n - 1)\n\n\n"
    walk = f"{again}for m in model.modules():\n    again(m, 1)"
    translation = translate(IN_SCRIPT.format(parts=SORTED, walk=walk), Options())
    assert not translation.gaps
    assert "for _, m in nnx.iter_modules(model):" in translation.code


def test_data_of_the_loops_own_module_is_held_by_nothing_else() -> None:
    loop = (
        "for m in self.modules():",
        "    if isinstance(m, (nn.Conv1d, nn.Conv2d)):",
        "        scale = m.weight.std().detach() ** 0.5",
        "        m.weight.data /= scale",
        "        m.bias.data /= scale",
    )
    code = one_line(converted(*loop))
    assert "m.kernel[...] = jnp.moveaxis(" in code
    assert "m.bias[...] /= scale" in code


NAMES_OF_CHILDREN = """
import torch
from torch import nn

SEEN = []


def named_apply(fn, module: nn.Module, name=""):
    for child_name, child_module in module.named_children():
        child_name = ".".join((name, child_name)) if name else child_name
        named_apply(fn, child_module, child_name)
    fn(module, name)


def seen(module: nn.Module, name: str):
    if isinstance(module, nn.Linear):
        SEEN.append(name)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
        self.blocks = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        named_apply(seen, self)
"""


def test_children_of_any_module_have_pytorchs_names() -> None:
    """Flax numbers what is in a list, and has the layers of a Sequential in one."""
    translation = translate(NAMES_OF_CHILDREN, Options())
    assert not translation.gaps
    sides: list[dict[str, Any]] = [{}, {}]
    for side, code in zip(sides, (NAMES_OF_CHILDREN, translation.code), strict=True):
        exec(code, side)
    sides[0]["Net"]()
    sides[1]["Net"](rngs=nnx.Rngs(0))
    assert sides[0]["SEEN"] == ["stem.0", "stem.2", "blocks.0", "blocks.1"] == sides[1]["SEEN"]


TWO_MODULES = """import torch
import torch.nn as nn

online, target = nn.Linear(2, 2), nn.Linear(2, 2)
{frozen}
for {items} in {walk}:
    {written}
"""


@pytest.mark.parametrize(
    ("items", "walk"),
    [
        ("t", "list(target.parameters())"),
        ("t", "tuple(target.parameters())"),
        ("_, t", "target.named_parameters()"),
        ("name, t", "list(target.named_parameters())"),
    ],
)
def test_a_walk_is_the_same_as_a_list_and_with_names_that_nobody_reads(items: str, walk: str) -> None:
    asked = "optimizer = torch.optim.SGD(online.parameters(), lr=0.1)"
    parts = {"frozen": asked, "written": "t.requires_grad_(False)"}
    done = translate(TWO_MODULES.format(items=items, walk=walk, **parts), Options(helpers="import"))
    plain = translate(TWO_MODULES.format(items="t", walk="target.parameters()", **parts), Options(helpers="import"))
    assert not plain.gaps and not done.gaps and done.code == plain.code


def test_a_list_that_is_walked_with_names_that_are_read_keeps_them() -> None:
    parts = {"frozen": "", "items": "name, t", "walk": "list(target.named_parameters())"}
    code = translate(TWO_MODULES.format(written="print(name, t.requires_grad_(False))", **parts)).code
    assert "for name, t in list(target.named_parameters()):\n" in code and "    print(name, t" in code


FILLED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.register_buffer("seen", torch.ones(2))
        {walk}

    def forward(self, x):
        return self.fc(x) + self.seen
"""


@pytest.mark.parametrize(
    "walk",
    [
        "for p in self.parameters(): nn.init.constant_(p, 0.5)",
        "for p in self.parameters(): p.data.fill_(0.5)",
        "for _, p in self.named_parameters(): nn.init.constant_(p, 0.5)",
        "ps = list(self.parameters())\n        for p in ps:\n            nn.init.constant_(p, 0.5)",
        "for b in self.buffers():\n            nn.init.constant_(b, 4.0)",
        "for p in self.parameters():\n            nn.init.constant_(p, 0.5)",
    ],
)
def test_initialisers_write_into_what_is_walked(walk: str) -> None:
    """An array that was taken out of a module can't be written into."""
    both = sides("import torch\nimport torch.nn as nn\n" + FILLED.format(walk=walk), "filled_in_walks")
    assert not both.gaps()
    net = both.jax.Net(rngs=nnx.Rngs(0))
    wanted = {name: value.numpy() for name, value in both.torch.Net().state_dict().items()}
    state = {name: np.asarray(value) for name, value in torch_state(net).items()}
    assert np.array_equal(state["seen"], wanted["seen"])
    if "parameters" in walk:
        assert all(np.array_equal(state[name], wanted[name]) for name in wanted)
