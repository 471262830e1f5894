"""What is PyTorch's own has a reason: of whole packages, of a package that is used as a value."""

from __future__ import annotations

import pytest

from t2j_lsp import convert


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("y = torch.ops.mine.scale(x)", "bind the code by jax.ffi"),
        ("torch._C._jit_clear_class_registry()", "PyTorch's compiled core"),
        ("print(torch.serialization.get_safe_globals())", "load_torch_state"),
        (
            "print(hasattr(torch.serialization, 'get_unsafe_globals_in_checkpoint'))",
            "the module torch.serialization itself",
        ),
        ("print(torch.cpu.is_available)", "XLA compiles for the one it finds"),
    ],
)
def test_what_is_pytorchs_own_has_a_reason(statement: str, reason: str) -> None:
    gaps = convert(f"import torch\n\n\ndef f(x):\n    {statement}\n").gaps
    assert len(gaps) == 1 and reason in gaps[0].reason


def test_names_of_such_packages_that_have_a_rule_keep_it() -> None:
    assert not convert("import torch\n\n\ndef f(x):\n    return x if torch._C._get_tracing_state() else -x\n").gaps
