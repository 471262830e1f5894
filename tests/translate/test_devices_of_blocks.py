"""``with torch.device("cpu"):`` makes what is made in the block on that device: `jax.default_device` in JAX."""

from __future__ import annotations

import pytest

from t2j_lsp import convert


@pytest.mark.parametrize(
    ("context", "written"),
    [
        ('torch.device("cpu")', 'jax.default_device(jax.devices("cpu")[0])'),
        ('torch.device("cuda")', "jax.default_device(jax.devices()[0])"),
        ("where", "jax.default_device(where)"),
    ],
)
def test_a_device_is_no_context_in_jax(context: str, written: str) -> None:
    """JAX's devices are none, and the block raised."""
    done = convert(
        f"import torch\n\n\ndef f():\n    where = torch.device('cpu')\n    with {context}:\n        y = torch.ones(3)\n"
        "    return y, where\n"
    )
    assert not done.gaps and f"with {written}:" in done.code
    made: dict[str, object] = {}
    exec(done.code, made)
    assert made["f"]()[0].sum() == 3  # type: ignore[operator]


def test_another_context_beside_it_stays() -> None:
    done = convert(
        "import torch\n\n\ndef f(path):\n    with open(path) as file, torch.device('cpu'):\n"
        "        return torch.ones(len(file.read()))\n"
    )
    assert 'with open(path) as file, jax.default_device(jax.devices("cpu")[0]):' in done.code
