"""Subclasses that hold a copy of what PyTorch's batch norm does: the base does it."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest
import torch

from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.library import FORWARDS

from .convert import run
from .test_regressions import equal

COPY = """
import torch
import torch.nn.functional as F
from torch import nn

class NormAct(nn.BatchNorm2d):
    def __init__(self, features, **options):
        super().__init__(features, **options)
        self.act = nn.ReLU()

    def forward(self, x):
        # a copy of torch.nn.BatchNorm2d.forward

        # only so that it gets updated
        if self.momentum is None:
            exponential_average_factor = 0.0
        else:
            exponential_average_factor = self.momentum

        if self.training and self.track_running_stats:
            if self.num_batches_tracked is not None:  # has-type
                self.num_batches_tracked.add_(1)
                if self.momentum is None:  # use cumulative moving average
                    exponential_average_factor = 1.0 / float(self.num_batches_tracked)
                else:
                    exponential_average_factor = self.momentum
        '''Whether the statistics of the batch are used.'''
        if self.training:
            bn_training = True
        else:
            bn_training = (self.running_mean is None) and (self.running_var is None)
        x = F.batch_norm(
            x,
            # not updated if they are not tracked
            self.running_mean if not self.training or self.track_running_stats else None,
            self.running_var if not self.training or self.track_running_stats else None,
            self.weight,
            self.bias,
            bn_training,
            exponential_average_factor,
            self.eps,
        )
        return self.act(x)

class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = NormAct(3, momentum=0.3, eps=0.01)

    def forward(self, x):
        return self.norm(x)
"""


@pytest.mark.parametrize("options", ["momentum=0.3, eps=0.01", "affine=False", "track_running_stats=False"])
def test_the_base_does_what_was_copied(options: str) -> None:
    equal(COPY.replace("momentum=0.3, eps=0.01", options), "copied", 4, 3, 2, 5)


@pytest.mark.parametrize("counted", [".add_(1)", " += 1", " = self.num_batches_tracked + 1"])
def test_nothing_of_the_copy_is_left(counted: str) -> None:
    result = run(COPY.replace(".add_(1)", counted))
    body = result.code.partition("def __call__(self, x):\n")[2].partition("class A")[0]
    kept = "# a copy of torch.nn.BatchNorm2d.forward\nx = super().__call__(x)\nreturn self.act(x)"
    assert "\n".join(line.strip() for line in body.splitlines() if line.strip()) == kept
    assert "deterministic: bool" not in result.code and result.gaps == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            self.eps,", "            2 * self.eps,"),
        ("bn_training = True", "bn_training = False"),
        ("return self.act(x)", "return self.act(x) if bn_training else x"),
        ("class NormAct(nn.BatchNorm2d)", "class NormAct(Base, nn.BatchNorm2d)"),
        ("x = F.batch_norm(", "x = F.instance_norm("),
    ],
)
def test_what_is_no_copy_stays(old: str, new: str) -> None:
    base = "class Base:\n    def forward(self, x):\n        return 2 * x\n\nclass NormAct"
    assert old in COPY
    assert "super().__call__(x)" not in run(COPY.replace(old, new).replace("class NormAct", base)).code


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_stated_forward_is_that_of_the_installed_torch(rank: int) -> None:
    load_rules()
    layer = getattr(torch.nn, f"BatchNorm{rank}d")
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(layer.forward))).body
    assert isinstance(function, ast.FunctionDef)
    statements = [
        node.value if isinstance(node, ast.Return) else node
        for node in function.body[1:]
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    own = "\n".join(ast.unparse(node) for node in statements if node is not None).replace("F.", "torch.nn.functional.")
    assert own in [ast.unparse(ast.parse(text)) for text in FORWARDS[f"torch.nn.BatchNorm{rank}d"]]
