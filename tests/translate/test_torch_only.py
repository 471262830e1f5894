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
from torchvision.ops import box_iou, nms

from . import _C
from ._C import ms_deform_attn
from .blocks import Block, helper


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return _C.scale(x)


class Noise(torch.distributions.ExponentialFamily):
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


def torch_only_findings(statement: str) -> list[Finding]:
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
        ("z = box_iou(y, x)", "torchvision.ops.box_iou", "torchvision takes"),
        ("z = Scale.apply(x)", "Scale.apply", "Scale is still PyTorch, as its base torch.autograd.Function is"),
        ("z = self.noise.add(x)", "self.noise.add", "its base torch.distributions.ExponentialFamily is"),
        ("z = self.noise.log_prob(x)", "self.noise.log_prob", "its base torch.distributions.ExponentialFamily is"),
        ("z = Noise(x, x)", "Noise", "its base torch.distributions.ExponentialFamily is"),
    ],
)
def test_an_array_for_what_takes_tensors_is_a_gap_at_the_call(statement: str, name: str, reason: str) -> None:
    (finding,) = torch_only_findings(statement)
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
    assert not torch_only_findings(statement)


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


@pytest.mark.parametrize("package", ["torch_einops_utils", "pytorch_msssim", "ema_pytorch.ops"])
def test_a_package_whose_name_is_pytorchs_takes_pytorchs_tensors(package: str) -> None:
    source = f"import torch\nfrom {package} import f\n\n\ndef g(x: torch.Tensor, n: int):\n    return f(x) + f(n)\n"
    (gap,) = translate(source).gaps
    root = package.partition(".")[0]
    assert (gap.span.line, gap.code, gap.name) == (6, "torch-only", f"{package}.f")
    assert f"--with {root}" in gap.reason
    assert not translate(source.replace(package, package.replace("torch", "tool"))).gaps


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
        ('load("torch.nn.modules.activation", "ReLU")', True),
        ('load(member="ReLU", module="torch.nn")', True),
        ('load("einops.layers", "Rearrange")', False),
        ('pydoc.locate("torch.nn.ReLU")', True),
        ('print("torch.nn.ReLU")', False),
    ],
)
def test_pytorch_that_is_imported_by_its_name_is_said(call: str, gap: bool) -> None:
    load = "def load(module, member):\n    return getattr(importlib.import_module(module), member)()\n"
    translation = translate(
        f"import importlib\nimport torch\n\n{load}\nmodule = {call}\nx = torch.ones(2)\n", Options()
    )
    assert [f.span.line for f in translation.gaps] == ([7] if gap else [])


@pytest.mark.parametrize(
    ("call", "gap"),
    [
        ("get_ipython().run_cell_magic('time', '', 'y = F.relu(x)\\ny.sum().backward()')", True),
        ("exec('y = torch.ones(2)')", True),
        ("timeit.timeit('torch.ones(2)', globals=globals())", True),
        ("get_ipython().run_cell_magic('time', '', 'print(1)')", False),
        ("get_ipython().run_line_magic('matplotlib', 'inline')", False),
        ("print('torch')", False),
    ],
)
def test_code_in_a_text_is_said_to_stay(call: str, gap: bool) -> None:
    source = f"import timeit\nimport torch\nimport torch.nn.functional as F\n\n{call}\nx = F.relu(torch.ones(2))\n"
    assert [f.span.line for f in translate(source, Options()).gaps] == ([5] if gap else [])


MODELS = """import timm
import torch.nn as nn
import transformers
from timm.models.layers import DropPath, Mlp, to_2tuple
from torchvision import datasets, models
from torchvision.models import ResNet18_Weights, resnet18


class Net(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.made = {}

    def forward(self, x):
        return self.made(x)
"""


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("models.resnet18(weights=ResNet18_Weights.DEFAULT)", "torchvision.models.resnet18"),
        ("resnet18()", "torchvision.models.resnet18"),
        ("timm.create_model(name, pretrained=True)", "timm.create_model"),
        ("Mlp(3)", "timm.models.layers.Mlp"),
        ("Mlp(3) if name else nn.Identity()", "timm.models.layers.Mlp"),
        ("nn.Sequential(resnet18(), nn.ReLU())", "torchvision.models.resnet18"),
        ("transformers.BertModel.from_pretrained(name)", "transformers.BertModel.from_pretrained"),
        ("transformers.AutoModelForCausalLM.from_pretrained(name)", None),
        ("getattr(models, name)()", "getattr(models, name)"),
        ("models.__dict__[name](num_classes=3)", "models.__dict__[name]"),
        ("vars(models)[name]()", "vars(models)[name]"),
    ],
)
def test_a_model_of_a_library_is_a_gap_where_it_is_made(value: str, name: str | None) -> None:
    """It went through without a word, and failed at the first array."""
    (gap,) = translate(MODELS.replace("{}", value)).gaps
    assert gap.code == "torch-only" and "makes a PyTorch module, which takes no JAX arrays" in gap.reason
    assert name is None or gap.name == name


@pytest.mark.parametrize(
    "value",
    [
        "to_2tuple(3)",
        "datasets.CIFAR10(name)",
        "getattr(datasets, name)()",
        "models.list_models()",
        "models.get_model_weights(name)",
        "ResNet18_Weights.DEFAULT.transforms()",
        "transformers.AutoTokenizer.from_pretrained(name)",
        "transformers.BertConfig()",
    ],
)
def test_what_else_libraries_of_models_have_is_no_finding(value: str) -> None:
    source = MODELS.replace("{}", value).replace("return self.made(x)", "return x")
    assert not translate(source).gaps


def test_a_library_of_models_that_is_converted_itself_is_no_finding() -> None:
    text = "import torch.nn as nn\n\n\ndef resnet18():\n    return nn.Linear(3, 3)\n"
    options = Options(resolve=lambda level, name: text if name in ("torchvision", "torchvision.models") else None)
    translation = translate(MODELS.replace("{}", "models.resnet18()"), options)
    assert "models.resnet18(rngs=rngs)" in translation.code
    assert not translation.gaps
