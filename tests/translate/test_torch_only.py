"""Arrays that go to compiled extensions, to packages that work on tensors, and to classes that stayed PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.contract import Finding, Options
from t2j_lsp.translate import translate

HEAD = """import cv2
import numpy as np
import scipy.ndimage
import selective_scan_cuda
import torch
import torch.nn as nn
from torch_scatter import scatter
from torchvision.ops import nms
from torchvision.utils import save_image

from . import _C
from ._C import ms_deform_attn
from .blocks import Block, helper


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return _C.scale(x)


class Noise(torch.distributions.Normal):
    def add(self, x):
        return self.shifted(x)

    def shifted(self, x):
        return x


class Own:
    def add(self, x):
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.noise = Noise(0.0, 1.0)
        self.own = Own()

    def forward(self, x):
        x = self.fc(x)
        y = [x, x]
        {}
        return x
"""


def found(statement: str) -> list[Finding]:
    translation = translate(HEAD.replace("{}", statement))
    assert "# TODO(t2j): a custom autograd.Function" in translation.code
    return [f for f in translation.findings if f.code == "torch-only"]


@pytest.mark.parametrize(
    ("statement", "name", "reason"),
    [
        ("keep = _C.nms(x, 0.5)", "._C.nms", "_C is compiled"),
        ("z = ms_deform_attn(x, 2)", "._C.ms_deform_attn", "_C is compiled"),
        ("z = selective_scan_cuda.fwd(x)[0]", "selective_scan_cuda.fwd", "selective_scan_cuda is compiled"),
        ("keep = nms(boxes=x, scores=x[:, 0], iou_threshold=0.5)", "torchvision.ops.nms", "torchvision takes"),
        ("z = scatter(*y, 0)", "torch_scatter.scatter", "torch_scatter takes"),
        ("save_image(y, 'a.png')", "torchvision.utils.save_image", "torchvision takes"),
        ("z = Scale.apply(x)", "Scale.apply", "Scale is still PyTorch, as its base torch.autograd.Function is"),
        ("z = self.noise.add(x)", "self.noise.add", "its base torch.distributions.Normal is"),
        ("z = self.noise.log_prob(x)", "self.noise.log_prob", "its base torch.distributions.Normal is"),
        ("z = Noise(x, x)", "Noise", "its base torch.distributions.Normal is"),
    ],
)
def test_an_array_for_what_takes_tensors_is_a_gap_at_the_call(statement: str, name: str, reason: str) -> None:
    (finding,) = found(statement)
    assert finding.name == name and reason in finding.reason and "no JAX arrays" in finding.reason
    source = HEAD.replace("{}", statement).split("\n")
    assert source[finding.span.line - 1].strip() == statement
    assert f"# TODO(t2j): {finding.reason}" in translate(HEAD.replace("{}", statement)).code


@pytest.mark.parametrize(
    "statement",
    [
        "z = np.tanh(x)",
        "z = scipy.ndimage.zoom(x, 2)",
        "z = cv2.resize(x.detach().cpu().numpy(), (2, 2))",
        "z = self.own.add(x)",
        "z = helper(x)",
        "z = Block()(x)",
        "z = _C.version()",
        "z = _C.sizes(x.shape)",
        "z = nms(3, 4, 0.5)",
        "print(x)",
    ],
)
def test_what_takes_arrays_or_gets_none_is_no_finding(statement: str) -> None:
    assert not found(statement)


def test_a_data_pipeline_that_stays_gets_tensors() -> None:
    source = """import torch
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


loader = DataLoader(Data(torch.randn(8, 3), torch.zeros(8)), batch_size=2)
for x, y in loader:
    print(x, y)
"""
    translation = translate(source)
    assert "Data(torch.randn(8, 3), torch.zeros(8))" in translation.code
    assert not translation.gaps


def test_what_a_neighbour_defines_in_python_is_converted_there(tmp_path: Path) -> None:
    source = "import torch\nfrom .op_ext import f\n\n\ndef g(x: torch.Tensor):\n    return f(x)\n"
    python = "def f(x):\n    return x\n"
    assert [f.code for f in translate(source).gaps] == ["torch-only"]
    assert not translate(source, Options(resolve=lambda level, name: python if name == "op_ext" else None)).gaps


def test_a_package_that_is_converted_itself_is_no_finding() -> None:
    source = "import torch\nfrom torchvision.ops import nms\n\n\ndef f(x: torch.Tensor):\n    return nms(x, x, 0.5)\n"
    assert [f.code for f in translate(source).gaps] == ["torch-only"]
    assert not translate(source, Options(resolve=lambda level, name: "" if name == "torchvision" else None)).gaps


@pytest.mark.parametrize(
    ("call", "gap"),
    [
        ('optional_import("einops.layers.torch", name="Rearrange")', True),
        ('importlib.import_module("torch.nn.functional")', True),
        ('optional_import("torchvision")', True),
        ('importlib.import_module("einops")', False),
        ('print("torch")', False),
    ],
)
def test_pytorch_that_is_imported_by_its_name_is_said(call: str, gap: bool) -> None:
    translation = translate(f"import importlib\nimport torch\n\nmodule = {call}\nx = torch.ones(2)\n", Options())
    assert [f.span.line for f in translation.gaps] == ([4] if gap else [])
