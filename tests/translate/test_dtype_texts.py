"""The text of a dtype, another in JAX: told where code goes on with it, and left to those who read it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\n\n\n"


@pytest.mark.parametrize(
    "line",
    [
        'return str(x.dtype) == "torch.float16"',
        'return str(x.dtype) in ("torch.float16", "torch.bfloat16")',
        'return "torch.float" in str(x.dtype)',
        'return str(x.dtype).split(".")[1]',
        'return str(x.dtype).startswith("torch.float")',
        "return table[str(x.dtype)]",
        "return table.get(repr(x.dtype))",
        'name = str(x.dtype)\n    return name == "torch.float16"',
        'return str(dtype) == "torch.float16"',
        'return str(dtype).split(".")[-1]',
    ],
)
def test_code_that_goes_on_with_the_text_of_a_dtype_is_a_gap(line: str) -> None:
    (gap,) = convert(HEAD + f"def f(x: torch.Tensor, dtype: torch.dtype, table: dict):\n    {line}\n").gaps
    assert "compare dtypes with ==" in gap.reason


@pytest.mark.parametrize(
    "line",
    [
        'return f"{x.dtype} of {tuple(x.shape)}"',
        'return "float" in str(x.dtype)',
        'return str(x.dtype).split(".")[-1]',
        'return str(x.dtype).replace("torch.", "")',
        'raise ValueError("not " + str(x.dtype))',
        "print(str(x.dtype))",
        'name = str(x.dtype)\n    print("of", name)',
        'return str(np.asarray(x).dtype) == "float32"',
    ],
)
def test_what_is_read_or_the_same_with_either_name_stays(line: str) -> None:
    assert not convert("import numpy as np\n" + HEAD + f"def f(x: torch.Tensor):\n    {line}\n").gaps
