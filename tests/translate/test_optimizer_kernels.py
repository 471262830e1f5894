"""Optimizers that hand their tensors to functions have these in the step of one parameter."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp import convert
from t2j_lsp.files.sources import neighbours
from t2j_lsp.translate.rewrites.own_optimizers import GOES

from .kernel_optimizers import ALL
from .optimizer_classes import program
from .training_sides import trained


def _program(call: str) -> str:
    return program(call, ALL[call.partition("(")[0]])


@pytest.mark.parametrize(
    "call",
    [
        "LikeSGD(model.parameters())",
        "LikeSGD(model.parameters(), momentum=0.9)",
        "LikeSGD(model.parameters(), momentum=0.9, dampening=0.1, maximize=True)",
        "LikeSGD(model.parameters(), momentum=0.9, nesterov=True)",
        "LikeSGD(model.parameters(), momentum=0.9, caution=True)",
        "LikeSGD(model.parameters(), momentum=0.9, nesterov=True, caution=True)",
        "Skips(model.parameters())",
        "Skips(model.parameters(), caution=True, clip_exp=None)",
        "Skips(model.parameters(), lookahead=True)",
        "Differences(model.parameters())",
        "Differences(model.parameters(), slow=False, betas_1d=(0.5, 0.3))",
    ],
)
def test_it_makes_the_steps_of_pytorch(call: str) -> None:
    code = trained(_program(call)).translation.code
    assert "_single_tensor" not in code
    assert "_foreach" not in code


def test_a_variable_that_leaves_the_state_is_another_one() -> None:
    source = _program("Skips(model.parameters(), caution=True)")
    old = "        if caution:\n            exp_avg = careful(exp_avg, grad)\n"
    assert old in source
    trained(source.replace(old, "        exp_avg = exp_avg * 2\n        exp_avg.mul_(3)\n"))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param(
            "            exp_avg = careful(exp_avg, grad)\n",
            "            exp_avg = careful(exp_avg, grad)\n        exp_avg.mul_(2)\n",
            "and then another value",
            id="a variable that may be the state or not",
        ),
        pytest.param("first_steps.append(len(state) == 0)", "pass", "", id="what nothing is collected in"),
        pytest.param(
            "return value * mask", "return value * mask * lr", "reads its variables", id="a function of its variables"
        ),
        pytest.param("slow, fast = ahead[i]", "slow, fast = ahead[0]", "with lists", id="an item of another parameter"),
        pytest.param("param.add_(update * scale)\n", "return update\n", "a statement of its step", id="it ends before"),
    ],
)
def test_what_is_not_sure_is_a_gap(old: str, new: str, reason: str) -> None:
    source = _program("Skips(model.parameters(), caution=True)")
    assert old in source
    done = convert(source.replace(old, new))
    assert any("custom optimizer" in gap.reason and reason in gap.reason for gap in done.gaps), done.gaps


def test_what_is_computed_of_the_first_rate_stays_what_it_was() -> None:
    groups = "Differences([{'params': model[0].parameters(), 'lr': 0.1}, {'params': model[2].parameters()}])"
    assert any("its own rate" in gap.reason for gap in convert(_program(groups)).gaps)
    one = "Differences([{'params': model[0].parameters(), 'decay': 0.1}, {'params': model[2].parameters()}])"
    trained(_program(one))


HELPERS = """\
import torch


def scaled_(param, update, scale):
    param.add_(update, alpha=scale)


def value_of(x):
    return x.item()
"""
USES = """\
import torch
from torch.optim import Optimizer

from helpers import scaled_, value_of


class Own(Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params, grads, steps = [], [], []
            for p in group["params"]:
                if p.grad is not None:
                    params.append(p)
                    grads.append(p.grad)
                    state = self.state[p]
                    if not state:
                        state["step"] = torch.tensor(0.0)
                    steps.append(state["step"])
            kernel(params, grads, steps, lr=group["lr"])


def kernel(params, grads, steps, lr):
    for param, grad, step in zip(params, grads, steps):
        step.add_(1)
        scaled_(param, grad, -lr / value_of(step))
"""


def test_functions_of_other_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "own.py").write_text(USES)
    done = convert(USES, resolve=neighbours(tmp_path / "own.py"))
    assert not done.gaps
    assert "def kernel" not in done.code
    assert "value_of(step)" not in done.code
    gone = "import torch\nfrom own import Own, kernel\n\nkernel([], [], [], lr=0.1)\n"
    assert any("optimizer" in gap.reason for gap in convert(gone, resolve=neighbours(tmp_path / "gone.py")).gaps)
    use = "import torch\nfrom torch import nn\nfrom own import Own\n\nmodel = nn.Linear(2, 1)\n"
    assert not convert(f"{use}optimizer = Own(model.parameters())\n", resolve=neighbours(tmp_path / "use.py")).gaps


LISTS = {
    "__all__ = ['Own', 'kernel']": "__all__ = ['Own']",
    "__all__ = ['kernel', 'Own']": "__all__ = ['Own']",
    "__all__ = ('kernel', 'Own', 'value_of')": "__all__ = ('Own', 'value_of')",
    "__all__ = [\n    'Own',\n    'kernel',\n    'scaled_',\n]": "__all__ = [\n    'Own',\n    'scaled_',\n]",
    "__all__ = [\n    'Own',\n    'kernel',\n]": "__all__ = [\n    'Own',\n]",
    "__all__ = ['Own'] + ['value_of', 'kernel']": "__all__ = ['Own'] + ['value_of']",
}


@pytest.mark.parametrize("listed", LISTS)
def test_a_list_of_what_a_file_exports_goes_without_functions_that_the_optimizer_has(listed: str) -> None:
    source = USES.replace("from helpers import scaled_, value_of\n", HELPERS.replace("import torch\n", ""))
    assert "def kernel" not in convert(source).code
    done = convert(f"{source}\n\n{listed}\n")
    assert "def kernel" not in done.code
    assert f"\n{LISTS[listed]}\n" in done.code
    assert ("kernel", GOES) in [(note.name, note.reason) for note in done.findings]
    assert all(f"def {name}" in done.code for name in ("value_of", "scaled_") if name in LISTS[listed])


def test_a_function_stays_that_is_exported_otherwise() -> None:
    source = USES.replace("from helpers import scaled_, value_of\n", HELPERS.replace("import torch\n", ""))
    assert "def kernel" in convert(source + "\n\n__all__ = ['kernel']\n").code


def test_an_exported_function_that_is_used_elsewhere_is_a_gap_there(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "own.py").write_text(USES + "\n\n__all__ = ['Own', 'kernel']\n")
    given = "([torch.ones(2)], [torch.ones(2)], [torch.zeros(())], lr=0.1)"
    for imports in ("from own import kernel\n\nkernel", "from own import *\n\nkernel"):
        gone = f"import torch\n{imports}{given}\n"
        gaps = convert(gone, resolve=neighbours(tmp_path / "gone.py")).gaps
        assert any("optimizer" in gap.reason for gap in gaps), imports
