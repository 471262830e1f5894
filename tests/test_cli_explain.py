"""``t2j explain`` and ``t2j coverage``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from t2j_lsp.cli import main
from t2j_lsp.explain import all_docs, close_names, example, explain
from t2j_lsp.migration.coverage import torch_names


@pytest.mark.parametrize(
    ("name", "qualified", "jax"),
    [
        ("torch.cat", "torch.cat", "jnp.concatenate"),
        ("cat", "torch.cat", "jnp.concatenate"),
        ("F.gelu", "torch.nn.functional.gelu", "gelu"),
        ("torch.nn.functional.gelu", "torch.nn.functional.gelu", "gelu"),
        ("nn.Linear", "torch.nn.Linear", "nnx.Linear"),
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear", "nnx.Linear"),
        ("Tensor.view", "torch.Tensor.view", "reshape"),
        ("x.view", "torch.Tensor.view", "reshape"),
        ("torch.cat()", "torch.cat", "jnp.concatenate"),
        ("Tensor.add_", "torch.Tensor.add_", "other"),
        ("torch.distributed.all_to_all", "torch.distributed.all_to_all", "manual"),
    ],
)
def test_a_name_is_explained_under_every_spelling(
    name: str, qualified: str, jax: str, capsys: pytest.CaptureFixture[str]
) -> None:
    explanation = explain(name)
    assert explanation is not None
    assert explanation[0] == qualified
    assert main(["explain", name]) == 0
    shown = capsys.readouterr().out
    assert jax in shown
    assert "Fidelity: " in shown


def test_an_explanation_shows_signature_form_caveats_and_a_converted_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "torch.cat"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("torch.cat(tensors, dim=0)\n")
    assert "JAX:      jnp.concatenate(tensors, axis=dim)\n" in shown
    assert "Example:\n    torch.cat(tensors)\nbecomes\n    jnp.concatenate(tensors)\n" in shown


def test_an_explanation_shows_mistakes_with_the_name_that_were_fixed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["explain", "F.gelu", "--json", str(tmp_path / "gelu.json")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"\d mistakes? with it (was|were) fixed:\n\ngelu approximation \(", shown)
    assert re.search(r"^(  faulty +\| fixed\n.*|  - .*)jax.nn.gelu\(", shown, re.MULTILINE)
    assert "approximate=False)" in shown
    report = json.loads((tmp_path / "gelu.json").read_text())
    assert report["fidelity"] == "exact" and report["name"] == "torch.nn.functional.gelu"
    row = report["similar"][0]
    assert row["Root_cause"] == "gelu-approximation" and row["Fix_info"] and row["yours"] is False
    assert main(["explain", "torch.hypot"]) == 0
    assert "fixed" not in capsys.readouterr().out


def test_a_refused_name_gives_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Tensor.register_hook"]) == 0
    shown = capsys.readouterr().out
    assert "Fidelity: manual" in shown
    assert "Reason:   " in shown


def test_an_unknown_name_is_exit_code_2_with_close_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "torch.concatt"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "torch.concat" in shown.err
    assert "nn.Linear" in " ".join(close_names("nn.Linearr"))


def test_every_example_is_a_conversion_without_torch() -> None:
    shown = 0
    for name, doc in all_docs().items():
        if made := example(name, doc):
            before, after = made
            assert before != after
            assert "torch." not in after, f"{name}: {before} becomes {after}"
            shown += 1
    assert shown > len(all_docs()) / 4


SOURCE = """\
import torch
import torch.nn as nn
from torch.nn import functional as F


class Net(nn.Module):
    def forward(self, x):
        x.register_hook(print)
        return F.relu(torch.cat([x, x], dim=0)).to(torch.float32)
"""


def test_names_are_counted_through_every_import() -> None:
    assert sorted(torch_names(SOURCE)) == ["torch.cat", "torch.float32", "torch.nn.Module", "torch.nn.functional.relu"]
    assert list(torch_names("import numpy as np\nnp.cat(torch.x)\n")) == []


def test_coverage_counts_names_gaps_and_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/net.py").write_text(SOURCE)
    (tmp_path / "src/bad.py").write_text("def f(:\n")
    assert main(["coverage", str(tmp_path / "src"), "--json", str(tmp_path / "report.json")]) == 1
    shown = capsys.readouterr()
    assert "torch.Tensor.register_hook" in shown.out
    assert shown.out.splitlines()[-1].startswith("1 file, 1 file failed: ")
    assert "bad.py" in shown.err
    report = json.loads((tmp_path / "report.json").read_text())
    names = {row["name"]: row for row in report["names"]}
    assert report["names"][0]["name"] == "torch.Tensor.register_hook"
    assert names["torch.Tensor.register_hook"]["gaps"] == 1
    assert names["torch.cat"] == {"name": "torch.cat", "uses": 1, "gaps": 0, "reasons": {}}
    assert report["errors"][0]["file"].endswith("bad.py")


def test_coverage_without_gaps_is_exit_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.py"
    path.write_text("import torch\nx = torch.zeros(2)\n")
    assert main(["coverage", str(path), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["gaps"] == 0
