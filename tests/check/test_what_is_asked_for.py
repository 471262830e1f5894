"""Inputs that are to raise an error, and programs that ask for 64-bit types."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.check.arguments.plans import plans_for
from t2j_lsp.check.inputs import CommentError
from t2j_lsp.check.program.objects import find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.workers.widen import enables_x64


def test_inputs_that_are_to_raise_change_some_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    path.write_text(
        'import torch\n\n\n# t2j: x=f32[3], i=i64[2] < 3, raises={"i": 3 <= i64[2] < 9}\ndef f(x, i):\n    ...\n'
    )
    slicer = Slicer(path)
    (plan,) = plans_for(slicer, find_objects(slicer, ["f"])[0])
    assert [str(a) for a in plan.raising] == ["x=f32[3], i=3 <= i64[2] < 9"]


def test_raising_inputs_without_the_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    path.write_text('import torch\n\n\n# t2j: raises={"i": i64[2]}\ndef f(x, i):\n    ...\n')
    slicer = Slicer(path)
    with pytest.raises(CommentError, match="raises"):
        plans_for(slicer, find_objects(slicer, ["f"])[0])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("import jax\njax.config.update('jax_enable_x64', True)\n", True),
        ("import jax\njax.config.update('jax_enable_x64', False)\n", False),
        ("import os\nos.environ['JAX_ENABLE_X64'] = '1'\n", True),
        ("x64 = True\n", False),
        ("import jax\n", False),
    ],
)
def test_a_program_that_asks_for_64_bit_types_is_seen(text: str, wanted: bool) -> None:
    assert enables_x64(text) is wanted
