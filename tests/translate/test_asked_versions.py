"""``hasattr(torch, "compiler")`` asks how old PyTorch is, and settings of TorchScript set nothing in JAX."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

BODY = """\
import torch


def f(x: torch.Tensor):
    if {}:
        return torch.relu(x)
    else:
        return old(x)
"""


@pytest.mark.parametrize(
    "asked",
    [
        "hasattr(torch, 'compiler') and hasattr(torch.compiler, 'is_compiling')",
        "hasattr(torch, '_dynamo')",
        "hasattr(torch, '_foreach_copy_')",
        "hasattr(torch, 'get_default_device')",
        "hasattr(torch._C, '_jit_set_profiling_executor')",
        "hasattr(torch.backends, 'mps')",
        "'compile' in dir(torch)",
    ],
)
def test_what_rules_know_is_there(asked: str) -> None:
    done = convert(BODY.format(asked))
    assert not done.gaps
    assert done.code.endswith("def f(x: jax.Array):\n    return jax.nn.relu(x)\n")
    assert convert(BODY.format(f"not ({asked})")).code.endswith("def f(x: jax.Array):\n    return old(x)\n")


@pytest.mark.parametrize(
    "asked", ["hasattr(torch, 'no_such_name')", "hasattr(torch.ops, 'own_ops')", "hasattr(torch, name)"]
)
def test_what_none_knows_is_a_gap(asked: str) -> None:
    assert convert(BODY.format(asked).replace("(x: torch", "(name, x: torch")).gaps


FUSER = """import torch


def set_fuser(kind):
    if kind == "te":
        torch._C._jit_set_profiling_executor(True)
        torch._C._jit_override_can_fuse_on_gpu(True)
        torch._C._jit_set_texpr_fuser_enabled(True)
        torch._C._jit_can_fuse_on_cpu()
        try:
            torch._C._jit_set_nvfuser_enabled(False)
        except Exception:
            pass
    else:
        assert False, kind
"""


def test_settings_of_torchscript_go() -> None:
    done = convert(FUSER)
    assert not done.gaps
    assert "torch" not in done.code


def test_what_a_setting_was_is_a_gap() -> None:
    assert convert("import torch\n\nold = torch._C._jit_override_can_fuse_on_cpu(False)\n").gaps
