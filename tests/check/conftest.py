"""One pair of workers for all tests of a session, what torch did in them, and a short way to check two texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.recall import Recall
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict

TORCH = "import math\nimport numpy as np\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
JAX = "import math\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\nimport optax\n"
JAX += "from flax import nnx\nfrom jax import lax\n"

AMPLE = 3600.0
"""Seconds for a check in a test: what it compares does not depend on how busy the machine is."""

Check = Callable[..., ObjectVerdict]


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """Workers on the CPU, or on the device that ``T2J_TEST_DEVICE`` names: then they must really be there."""
    device = os.environ.get("T2J_TEST_DEVICE", "cpu")
    project = tmp_path_factory.getbasetemp()
    with Pool(device=device, readable=[project], project=project) as workers:
        workers.start()
        yield workers
        assert workers.fallback is None, f"asked for {device}: {workers.fallback}"


@pytest.fixture(scope="session")
def recall() -> Recall:
    """What torch did: most tests check more than one conversion of the same program."""
    return Recall()


@pytest.fixture(scope="session")
def check(pool: Pool, recall: Recall, tmp_path_factory: pytest.TempPathFactory) -> Check:
    """``check(torch_text, jax_text)``: the verdict on the last object of the texts, which get the usual imports."""
    folder = tmp_path_factory.mktemp("checked")

    def run(torch: str, jax: str, name: str | None = None, **options: Any) -> ObjectVerdict:
        source, converted = folder / "source.py", folder / "converted.py"
        source.write_text(TORCH + torch)
        converted.write_text(JAX + jax)
        settings = {"pool": pool, "recall": recall, "budget": AMPLE, **options}
        report = check_files(source, converted, [name] if name else None, **settings)
        return report.objects[-1]

    return run
