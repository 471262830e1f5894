"""``# t2j:`` comments, drawn values, and the plans read from a file."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2j_lsp.check.arguments.plans import plans_for
from t2j_lsp.check.inputs import Arguments, ArraySpec, Code, CommentError, comments_for, draw, parse_comment
from t2j_lsp.check.program.objects import checking_order, find_objects
from t2j_lsp.check.program.slice import Slicer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=f32[2, 3]", ArraySpec("float32", (2, 3))),
        ("x=bool[5]", ArraySpec("bool", (5,))),
        ("x=i64[2,7]<100", ArraySpec("int64", (2, 7), None, 100)),
        ("x=3 <= i64[7] <= 9", ArraySpec("int64", (7,), 3, 10)),
        ("x=bf16", ArraySpec("bfloat16", ())),
        ("x=[f32[2], {'a': f64[3]}]", [ArraySpec("float32", (2,)), {"a": ArraySpec("float64", (3,))}]),
        ("x=None", None),
        ("x=(1, 'a')", (1, "a")),
        ("x=Config(3)", Code("Config(3)")),
        ("x=f32[N]", Code("f32[N]")),
    ],
)
def test_comment_entries(text: str, expected: Any) -> None:
    assert parse_comment(text) == {"x": expected}


@pytest.mark.parametrize("text", ["x=", "f32[2]", "x=f32[2] == 3", "x=f32[2] < n", "**k"])
def test_a_comment_that_cant_be_read_says_so(text: str) -> None:
    with pytest.raises(CommentError, match=r"t2j|should"):
        parse_comment(text)


def test_comments_above_the_class_its_first_line_and_its_forward() -> None:
    text = (
        "# t2j: args=(3,)\n# another\n@mark\nclass Net(nn.Module):  # t2j: kwargs={'b': 1}\n"
        "    # t2j: y=f32[2]\n    def forward(self, x):  # t2j: x=f32[3]\n        # t2j: z=1\n        return x\n"
        "# t2j: x=f32[9]\nclass Other: pass\n"
    )
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.ClassDef)
    entries = comments_for(text, node)
    assert {k: str(v) for k, v in entries.items()} == {
        "args": "(3,)", "kwargs": "{'b': 1}", "y": "f32[2]", "x": "f32[3]", "z": "1",
    }  # fmt: skip


def test_drawn_floats_are_signed_with_zeros_and_ties_and_exact_in_float32() -> None:
    values = draw(ArraySpec("float64", (4, 30)), np.random.default_rng(0)).reshape(-1)
    assert (values < 0).any() and (values > 0).any() and (values == 0).any()
    assert (np.diff(values) == 0).any()
    np.testing.assert_array_equal(values, values.astype(np.float32))


def test_drawn_integers_hold_both_ends_and_repeat() -> None:
    values = draw(ArraySpec("int64", (20,), 3, 50), np.random.default_rng(0))
    assert (values.min(), values.max()) == (3, 49)
    assert values[0] == values[-1]


SOURCE = """
import torch
from torch import nn
from torch.nn import Module
import argparse

CFG = {"A": [3, 4]}

class Config:
    pass

class Block(nn.Module):
    def __init__(self, dim, scale=1.0): ...
    def forward(self, x): return x

class Net(Module):
    def __init__(self, block, layers, cfg=None): self.b = Block(3)
    def forward(self, x, mask=None): return x

class Base(nn.Module):
    def __init__(self, n): ...

class Child(Base):
    def forward(self, x): return x

class Data(torch.utils.data.Dataset):
    def __getitem__(self, i): return i

def make(block, layers, **kwargs):
    width = kwargs.pop("width", 7)
    return Net(block, layers, CFG["A"], **kwargs)

def small(**kwargs):
    return make(Block, [1, 2], **kwargs)

def scale(x: torch.Tensor, k: float = 2.0): return x * k
def norm(x): return torch.sqrt((x * x).sum())
def train(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        torch.mean(model(x)).backward()
def parse(args): return argparse.Namespace(**args)

if __name__ == "__main__":
    net = Net(Block, [2])
    x = torch.randn(4, 3, 8, 8)
    print(net(x, torch.ones(4).to("cuda")))
"""


@pytest.fixture
def slicer(tmp_path: Path) -> Slicer:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    return Slicer(path)


@pytest.mark.parametrize(
    ("line", "checked"),
    [
        ("np.concatenate([np.sin(x.reshape(-1)), np.exp(x)])", False),
        ("np.linalg.norm(x.mean(0))", False),
        ("np.sin(x.permute(1, 0).numpy())", True),
        ("torch.sin(x.reshape(-1)) + np.exp(1)", True),
        ("x.mean(0)", True),
    ],
)
def test_functions_of_numpys_arrays_are_none_of_tensors(line: str, checked: bool, tmp_path: Path) -> None:
    path = tmp_path / "arrays.py"
    path.write_text(f"import numpy as np\nimport torch\n\n\ndef f(x):\n    return {line}\n")
    assert [item.name for item in find_objects(Slicer(path), None)] == ["f"] * checked


def test_the_objects_of_a_file_are_its_modules_and_tensor_functions(slicer: Slicer) -> None:
    assert [o.name for o in find_objects(slicer, None)] == ["Block", "Net", "Child", "scale", "norm"]


@pytest.mark.parametrize(
    ("base", "wanted"), [("class Module:\n    pass\n", []), ("from torch.nn import Module\n", ["Loss"])]
)
def test_modules_of_a_projects_own_are_none_of_pytorchs(base: str, wanted: list[str], tmp_path: Path) -> None:
    """A library that has PyTorch's names for its own classes says so where they are defined."""
    (tmp_path / "own.py").write_text(base)
    path = tmp_path / "losses.py"
    path.write_text("from own import Module\n\n\nclass Loss(Module):\n    def forward(self, x):\n        return x\n")
    assert [item.name for item in find_objects(Slicer(path), None)] == wanted


def test_a_class_that_uses_others_is_checked_before_them(slicer: Slicer) -> None:
    order = [o.name for o in checking_order(find_objects(slicer, None))]
    assert order.index("Net") < order.index("Block")


def plans(slicer: Slicer, name: str) -> list[str]:
    item = find_objects(slicer, [name])[0]
    return [f"{plan.init} -> {plan.inputs}" for plan in plans_for(slicer, item)]


def test_constructor_calls_are_traced_through_factories_and_inputs_from_the_main_block(slicer: Slicer) -> None:
    assert plans(slicer, "Net")[:2] == ["Block, [2] -> f32[4, 3, 8, 8], f32[4]", "Block, [1, 2], CFG['A'] -> None"]


def test_calls_constants_and_names_of_parameters_give_arguments(slicer: Slicer) -> None:
    assert plans(slicer, "Block") == ["3 -> None", "dim=24 -> None", "dim=64 -> None"]


def test_functions_that_give_inputs_come_first(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(SOURCE + "class Model(Net): pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n")
    assert plans(Slicer(path), "Model")[0] == "*get_init_inputs() -> *get_inputs()"


def test_a_comment_is_the_only_plan(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(SOURCE.replace("class Block", "# t2j: args=(5,), x=f32[2, 5]\nclass Block"))
    assert plans(Slicer(path), "Block") == ["5 -> x=f32[2, 5]"]


def test_expressions_among_arguments_are_known(slicer: Slicer) -> None:
    plan = plans_for(slicer, find_objects(slicer, ["Net"])[0])[1]
    assert plan.init.code == ["Block", "CFG['A']"]
    assert Arguments.from_plain(plan.init.to_plain()) == plan.init


@pytest.mark.parametrize("size", [2, 3, 6])
def test_booleans_are_both(size: int) -> None:
    """All true or all false, a mask tells nothing: what it selects, or what it leaves out, could be anything."""
    for seed in range(200):
        drawn = draw(ArraySpec("bool", (size,)), np.random.default_rng(seed))
        assert drawn.any() and not drawn.all()
