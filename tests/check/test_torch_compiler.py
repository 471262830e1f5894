"""PyTorch's compiler is loaded in a worker when a program asks for it, and by no optimizer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from t2j_lsp.check.process.environment import worker_environment

START = """
import sys
from t2j_lsp.check.workers.torch_side import compiler
compiler.put_off()
import torch
from torch import nn
def is_loaded():
    return type(sys.modules.get("torch._dynamo")) is type(sys)
model, x = nn.Linear(4, 2), torch.ones(3, 4)
"""
PROGRAMS = {
    "an optimizer takes its steps without it": """
optimizer = torch.optim.Adam(model.parameters())
model(x).sum().backward()
before = model.weight.detach().clone()
optimizer.step()
torch.optim.lr_scheduler.StepLR(optimizer, 2).step()
assert not torch.equal(before, model.weight) and not is_loaded()
""",
    "it is there when it is called": """
torch.optim.Adam(model.parameters())
assert torch.compile(model)(x).tolist() == model(x).tolist() and is_loaded()
assert torch._dynamo.disable(model) is not model
""",
    "a part of it is imported": """
import torch._dynamo.config
assert torch._dynamo.config.cache_size_limit > 0 and is_loaded()
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_find_it_when_they_ask_for_it(program: str, tmp_path: Path) -> None:
    environment = worker_environment("torch", "cpu", str(tmp_path), "tag")
    code = f"import sys; sys.path[:0] = {sys.path!r}{START}{program}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
