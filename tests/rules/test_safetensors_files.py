"""Conversions of ``rules/safetensors_files.py``: files are read and written as JAX arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2j_lsp import convert

HEAD = "import torch\nimport safetensors\nimport safetensors.torch as st\nfrom safetensors.torch import load_file\n\n\n"
ROWS = [
    ("st.save_file({'x': x}, path)", "save_file({'x': x}, path)"),
    ("safetensors.torch.save_file({'x': x}, path, {'a': 'b'})", "save_file({'x': x}, path, metadata={'a': 'b'})"),
    ("load_file(path, device='cuda:0')", "load_file(path)"),
    ("load_file(path)['x'].sum(dim=0)", "load_file(path)['x'].sum(axis=0)"),
    ("safetensors.safe_open(path, framework='pt', device='cpu')", 'safe_open(path, framework="flax")'),
    ("safetensors.safe_open(path, 'np')", "safe_open(path, framework='np')"),
]


@pytest.mark.parametrize(("torch", "jax"), ROWS, ids=[row[0] for row in ROWS])
def test_what_a_call_becomes(torch: str, jax: str) -> None:
    done = convert(f"{HEAD}def f(path, x: torch.Tensor):\n    return {torch}\n")
    assert not done.gaps and done.code.rstrip().endswith(f"    return {jax}")
    assert "safetensors.torch" not in done.code


@pytest.mark.parametrize(
    "call", ["st.save_model(net, path)", "st.load(data)", "safetensors.safe_open(path, kind)", "load_file(path, **kw)"]
)
def test_what_only_pytorch_has_is_a_gap(call: str) -> None:
    assert convert(f"{HEAD}def f(path, net: torch.nn.Module, data, kind, **kw):\n    return {call}\n").gaps


def test_an_import_in_a_function_is_one_of_flax() -> None:
    body = "    from safetensors.torch import save_file as write\n\n    write({'x': x}, path)\n"
    done = convert(f"import torch\n\n\ndef f(path, x: torch.Tensor):\n{body}")
    assert not done.gaps and "torch" not in done.code and "    save_file({'x': x}, path)\n" in done.code


@pytest.mark.jax
def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    source = (
        "import torch\nfrom safetensors import safe_open\nfrom safetensors.torch import load_file, save_file\n\n\n"
        "def through(x: torch.Tensor, path: str):\n    save_file({'x': x, 'n': torch.arange(3)}, path)\n"
        "    with safe_open(path, framework='pt') as file:\n        y = file.get_tensor('x')\n"
        "    held = load_file(path)\n    return held['x'] + y, held['n'].sum()\n"
    )
    done = convert(source)
    assert not done.gaps
    made: dict[str, object] = {}
    exec(done.code, made)
    through = made["through"]
    assert callable(through)
    x = np.ones((2, 3), np.float32)
    both, total = through(x, str(tmp_path / "x.safetensors"))
    assert np.array_equal(both, 2 * x) and int(total) == 3
