"""Programs whose hooks all come behind calls keep no place for others."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

PROGRAM = """import torch
from torch import nn
{imports}
net = nn.Linear(2, 2)
net.register_forward_hook(lambda m, inputs, output: print(output.shape))
{more}
print(net(torch.ones(1, 2)))
"""


def keeps_both(imports: str = "", more: str = "") -> bool:
    """Whether the program's helper keeps hooks of both kinds."""
    code = convert(PROGRAM.format(imports=imports, more=more)).code
    assert ("before, after = " in code) != ("HookHandle(hooks_of(module), hook)" in code)
    return "before, after = " in code


def test_a_program_with_hooks_after_calls_has_the_short_form() -> None:
    assert not keeps_both()
    assert not keeps_both(imports="import numpy as np")


@pytest.mark.parametrize(
    ("imports", "more"),
    [
        ("", "net.register_forward_pre_hook(lambda m, inputs: (inputs[0] + 1,))"),
        ("from layers import Layer", ""),
        ("from .layers import Layer", ""),
    ],
)
def test_others_and_those_whose_modules_other_files_may_hook_keep_both(imports: str, more: str) -> None:
    assert keeps_both(imports, more)


def test_a_file_that_is_no_program_keeps_both() -> None:
    source = "from torch import nn\n\n\ndef watch(net: nn.Module):\n    return net.register_forward_hook(print)\n"
    assert "before, after = " in convert(source).code
