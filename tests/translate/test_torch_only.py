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
        ("z = box_iou(y, x)", "torchvision.ops.box_iou", "torchvision takes"),
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
    ],
)
def test_pytorch_that_is_imported_by_its_name_is_said(call: str, gap: bool) -> None:
    translation = translate(f"import importlib\nimport torch\n\nmodule = {call}\nx = torch.ones(2)\n", Options())
    assert [f.span.line for f in translation.gaps] == ([4] if gap else [])


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
from timm.models.layers import DropPath, to_2tuple
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
        ("DropPath(0.1)", "timm.models.layers.DropPath"),
        ("DropPath(0.1) if name else nn.Identity()", "timm.models.layers.DropPath"),
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


NETS = """import torch.nn as nn


def small(n=3):
    return nn.Linear(n, n)


def size():
    return 3
"""


@pytest.mark.parametrize(
    ("value", "gap"),
    [
        ("getattr(nets, name)(4, 5)", True),
        ("nets.__dict__[name]()", True),
        ("vars(nets)[name](n=4)", False),
        ("getattr(nets, name)(4)", False),
        ("getattr(nets, 'small')(4)", False),
        ("nets.small(4)", False),
        ("getattr(self, name)(4)", False),
        ("getattr(nets, name)", False),
    ],
)
def test_what_a_file_of_the_project_makes_by_a_name_may_ask_for_rngs(value: str, gap: bool) -> None:
    """Found in torchaudio: ``getattr(torchaudio.models, ssl_type)()``. Only what fits the arguments may be called."""
    source = f"""import nets
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.made = {value}
"""
    done = translate(source, Options(resolve=lambda level, module: NETS if module == "nets" else None))
    gaps = done.gaps
    assert gap or "rngs=rngs)" in done.code or "self" in value or value.endswith("name)")
    assert ["layers in Flax ask for rngs=rngs" in g.reason for g in gaps] == ([True] if gap else [])


def test_what_a_file_makes_by_a_name_of_its_own_gets_rngs() -> None:
    source = NETS + "\n\nfor name in ('small',):\n    print(globals()[name](2))\n"
    done = translate(source)
    assert "globals()[name](2, rngs=rngs)" in done.code and not done.gaps
    assert len(translate(source.replace("(2)", "()")).gaps) == 1


@pytest.mark.parametrize(
    ("value", "use", "gap"),
    [
        ("Block(3)", "self.made(x)", True),
        ("near(3)", "self.made(torch.relu(x))", True),
        ("Block(3) if n else nn.Identity()", "self.made(x)", True),
        ("Block(3)", "self.made('text')", False),
        ("Block(3)", "x * self.made.rate", False),
        ("partial(f, n)", "self.made(x)", False),
        ("np.vectorize(n)", "self.made(x)", False),
    ],
)
def test_what_is_made_elsewhere_and_called_with_arrays_must_be_converted_along(value: str, use: str, gap: bool) -> None:
    source = f"""from functools import partial

import numpy as np
import torch
import torch.nn as nn
from mylib import Block

from .other import near


def f(n, x):
    return x


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.made = {value}

    def forward(self, x: torch.Tensor):
        return {use}
"""
    gaps = translate(source).gaps
    assert ["isn't in sight: convert it along" in g.reason for g in gaps] == ([True] if gap else [])


GIVEN = """\
import copy
import torch
import wandb
import pytorch_warmup as warmup
from accelerate import Accelerator
from ema_pytorch import EMA


def width(module):
    return module.in_features


model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
accelerator = Accelerator(**settings)
{statement}
"""


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("warm = warmup.LinearWarmup(optimizer, 1)", "pytorch_warmup.LinearWarmup"),
        ("wandb.watch(model)", "wandb.watch"),
        ("ema = EMA(model, beta=0.99)", "ema_pytorch.EMA"),
        ("ema = EMA(beta=0.99, model=model)", "ema_pytorch.EMA"),
        ("warm = warmup.LinearWarmup(scheduler)", "pytorch_warmup.LinearWarmup"),
        ("model, optimizer = accelerator.prepare(model, optimizer)", "accelerator.prepare"),
    ],
)
def test_what_a_package_is_given_that_was_converted_is_said(statement: str, name: str) -> None:
    (gap,) = translate(GIVEN.format(statement=statement), Options()).gaps
    assert gap.name == name and "is given a" in gap.reason


@pytest.mark.parametrize(
    "statement",
    [
        "kept = get()\nkept = kept.on(1)\nkept.build(model)",
        "other = copy.deepcopy(model)",
        "print(width(model))",
        "wandb.log({'width': model.in_features})",
        "wandb.init()",
    ],
)
def test_what_takes_any_object_or_none_is_no_gap(statement: str) -> None:
    assert not translate(GIVEN.format(statement=statement), Options()).gaps


BASE_OUT_OF_SIGHT = """import torch
from torch import nn
{imported}


class Net({base}):
    def __init__(self, width=3):
        super().__init__()
        {held}

    def {method}(self, x):
        return torch.relu(x)


net = Net()
"""


@pytest.mark.parametrize(
    ("imported", "base", "held", "method"),
    [
        ("import pytorch_lightning as pl", "pl.LightningModule", "self.fc = nn.Linear(width, 2)", "training_step"),
        ("from transformers import PreTrainedModel", "PreTrainedModel", "pass", "forward"),
        ("from .base import Model", "Model", "self.w = nn.Parameter(torch.zeros(2))", "loss"),
        ("from .models import *", "Model", "self.fc = nn.Linear(width, 2)", "forward"),
        ("", "Model[int]", "self.fc = nn.Linear(width, 2)", "forward"),
    ],
)
def test_a_class_whose_base_is_out_of_sight_stays(imported: str, base: str, held: str, method: str) -> None:
    """Flax's layers in a PyTorch module are no parts of it: nothing was said, and nothing trained."""
    source = BASE_OUT_OF_SIGHT.format(imported=imported, base=base, held=held, method=method)
    translation = translate(source, Options())
    assert [gap.reason for gap in translation.gaps if "isn't in sight" in gap.reason]
    assert source[source.index("class Net") :] in translation.code


@pytest.mark.parametrize(
    ("imported", "base", "held", "method"),
    [
        ("import gym", "gym.Env", "self.fc = nn.Linear(width, 2)", "step"),
        ("import dm_env", "dm_env.Environment", "self.fc = nn.Linear(width, 2)", "step"),
        ("from metrics import Metric", "Metric", "self.width = width", "update"),
        ("", "object", "self.fc = nn.Linear(width, 2)", "forward"),
        ("from abc import ABC", "nn.Module, ABC", "self.fc = nn.Linear(width, 2)", "forward"),
        ("from typing import Generic", "nn.Module, Generic[int]", "self.fc = nn.Linear(width, 2)", "forward"),
        ("class Mixin:\n    pass", "nn.Module, Mixin", "self.fc = nn.Linear(width, 2)", "forward"),
    ],
)
def test_other_classes_convert(imported: str, base: str, held: str, method: str) -> None:
    source = BASE_OUT_OF_SIGHT.format(imported=imported, base=base, held=held, method=method)
    translation = translate(source, Options())
    assert "torch.relu(x)" not in translation.code
    assert not translation.gaps


@pytest.mark.parametrize("imported", ["from hub import Mixin", "from .mixins import *"])
def test_a_mixin_out_of_sight_is_said_beside_a_module(imported: str) -> None:
    """Its methods take PyTorch's module, of which they are a part, and get Flax's."""
    source = BASE_OUT_OF_SIGHT.format(
        imported=imported, base="nn.Module, Mixin", held="self.fc = nn.Linear(width, 2)", method="forward"
    )
    translation = translate(source, Options())
    assert [gap.reason.split()[0] for gap in translation.gaps] == ["hub.Mixin" if "hub" in imported else "Mixin"]
    assert "nnx.Linear(" in translation.code


def test_what_to_do_in_place_of_a_registry_is_said() -> None:
    (gap,) = translate(MODELS.replace("{}", 'timm.create_model("resnet18", num_classes=10)')).gaps
    assert "copy the class from timm's file" in gap.reason
    assert "torchvision's model, which --with torchvision converts" in gap.reason
