"""``match m:`` with ``case nn.Linear():``: classes of layers that patterns ask for."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\nfrom torch import nn\n\n\ndef init(m, wide):\n"
LINEAR = "            nn.init.zeros_(m.bias)  # none\n"


@pytest.mark.parametrize(
    ("cases", "wanted"),
    [
        (f"        case nn.Linear():\n{LINEAR}", ["    if isinstance(m, nnx.Linear):", "        m.bias[...] = "]),
        (
            "        case (nn.LayerNorm() | nn.BatchNorm1d()):\n            nn.init.ones_(m.weight)\n"
            f"        # or else\n        case nn.Linear() if (wide):\n{LINEAR}        case _:\n            pass\n",
            [
                "    if isinstance(m, (nnx.LayerNorm, nnx.BatchNorm)):\n        m.scale[...] = ",
                "    # or else\n    elif isinstance(m, nnx.Linear) and (wide):\n        m.bias[...] = ",
                "    else:\n        pass\n",
            ],
        ),
    ],
)
def test_classes_are_asked_for_by_conditions(cases: str, wanted: list[str]) -> None:
    translation = convert(f"{HEAD}    match m:\n{cases}")
    assert not translation.gaps
    assert all(text in translation.code for text in wanted)


@pytest.mark.parametrize(
    "case",
    [
        "nn.Linear(bias=None)",
        "nn.Linear() as layer",
        "[nn.Linear(), *_]",
        "{'layer': nn.Linear()}",
        "nn.Linear() | None",
    ],
)
def test_what_asks_for_more_than_a_class_stays(case: str) -> None:
    translation = convert(f"{HEAD}    match m:\n        case {case}:\n            nn.init.zeros_(m.bias)\n")
    assert translation.gaps and f"case {case}:" in translation.code
