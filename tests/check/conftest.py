"""One pair of workers for all tests of a session, what torch did in them; short ways to check texts and programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.recall import Recall
from t2j_lsp.check.programs.run import RunSettings, run_program
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict, Options, ProgramReport

TORCH = "import math\nimport numpy as np\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
JAX = "import math\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\nimport optax\n"
JAX += "from flax import nnx\nfrom jax import lax\n"

AMPLE = 3600.0
"""Seconds for a check in a test: what it compares does not depend on how busy the machine is."""

Check = Callable[..., ObjectVerdict]
Run = Callable[..., ProgramReport]


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


@pytest.fixture
def run(pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """``run(source, ...)``: the report on a program and its conversion, or that of a program with a mistake.

    ``nets`` is the text of a module beside it.
    """

    def of(
        source: str,
        *,
        mistake: tuple[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        nets: str | None = None,
        **settings: Any,
    ) -> ProgramReport:
        folder: Path = tmp_path_factory.mktemp("program")
        program = folder / "program.py"
        program.write_text(source)
        (folder / "nets.py").write_text(nets or "")
        wrong = source.replace(*mistake) if mistake else source
        assert mistake is None or wrong != source
        conversion = convert_file(program, Options(), wrong.encode()).translation
        assert not conversion.gaps
        source_map = None if mistake else conversion.source_map
        return run_program(
            program,
            conversion.code,
            RunSettings(arguments, **settings),
            pool=pool,
            neighbour=lambda path: convert_file(path, Options()).translation.code,
            source_map=source_map,
        )

    return of
