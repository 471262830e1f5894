"""``t2j convert`` with a module of one file's helpers: written with it, found by what runs it, over nobody's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from t2j_lsp.api import convert_file
from t2j_lsp.cli import main
from t2j_lsp.contract import HELPERS_DOCSTRING, Options

NET = """import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x, y):
        return F.gaussian_nll_loss(self.fc(x), y, y.exp())
"""
SCRIPT = (
    NET
    + """

torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.ones(4, 3), torch.ones(4, 2)
for _ in range(3):
    opt.zero_grad()
    loss = net(x, y)
    loss.backward()
    opt.step()
    print(loss.item())
"""
)
FOREIGN = "def mine():\n    return 1\n"
pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project: beside the folders of other tests, which import modules of the same names."""
    (tmp_path / "setup.cfg").touch()
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def convert(*arguments: str, lines: int = 3) -> int:
    return main(["convert", *arguments, "--helper-lines", str(lines)])


def imports_from(code: str, module: str) -> bool:
    return any(line.startswith(f"from {module} import ") for line in code.splitlines())


def test_a_file_and_its_module_are_written_and_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert("net.py", "-o", "out/net.py", "--json", "report.json") == 0
    assert "net.py: its helpers are in out/net_helpers.py\n" in capsys.readouterr().err
    code, module = ((folder / "out" / name).read_text() for name in ("net.py", "net_helpers.py"))
    assert imports_from(code, "net_helpers") and "def gaussian_nll_loss(" in module
    report = json.loads((folder / "report.json").read_text())
    assert report["helper_module"] == "out/net_helpers.py" and "gaussian_nll_loss" in report["helpers"]
    # The same again is the same.
    assert convert("net.py", "-o", "out/net.py") == 0
    assert [(folder / "out" / name).read_text() for name in ("net.py", "net_helpers.py")] == [code, module]
    # What is converted stays as it is, and needs no other module.
    assert convert("out/net.py", "-o", "out/again.py", "--json", "again.json") == 0
    assert (folder / "out/again.py").read_text() == code and not (folder / "out/again_helpers.py").exists()
    assert "helper_module" not in json.loads((folder / "again.json").read_text())


def test_short_helpers_stay_in_the_file(folder: Path) -> None:
    assert main(["convert", "net.py", "-o", "out/net.py"]) == 0
    assert [path.name for path in (folder / "out").iterdir()] == ["net.py"]
    assert main(["convert", "net.py", "-o", "inline.py", "--helpers", "inline", "--helper-lines", "0"]) == 0
    assert (folder / "inline.py").read_text() == (folder / "out/net.py").read_text()


def test_what_is_printed_has_them_in_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert("net.py") == 0
    code = capsys.readouterr().out
    assert "def gaussian_nll_loss(" in code and not imports_from(code, "net_helpers")
    assert convert_file(folder / "net.py", Options(helpers="auto", helper_lines=3)).translation.code == code
    made = convert_file(folder / "net.py", Options(helpers="auto", helper_lines=3), target=folder / "a.py")
    assert made.helper_module == folder / "a_helpers.py" and made.translation.helper_source is not None
    assert not made.helper_module.exists()


def test_standard_input_that_is_written_has_a_module(folder: Path) -> None:
    command = [sys.executable, "-m", "t2j_lsp", "convert", "-", "-o", "net_jax.py", "--helper-lines", "3"]
    subprocess.run(command, input=NET.encode(), check=True, timeout=60)
    assert imports_from((folder / "net_jax.py").read_text(), "net_jax_helpers")
    assert (folder / "net_jax_helpers.py").read_text().startswith(HELPERS_DOCSTRING)


def test_a_notebook_has_them_in_it(folder: Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": NET}
    (folder / "a.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert convert("a.ipynb", "-o", "b.ipynb") == 0
    assert "def gaussian_nll_loss(" in (folder / "b.ipynb").read_text()
    assert not list(folder.glob("*_helpers.py"))


def test_nobodys_file_is_written_over(folder: Path) -> None:
    (folder / "net_jax_helpers.py").write_text(FOREIGN)
    for more in ([], ["--force"]):
        assert convert("net.py", "-o", "net_jax.py", *more) == 0
        assert "def gaussian_nll_loss(" in (folder / "net_jax.py").read_text()
    assert (folder / "net_jax_helpers.py").read_text() == FOREIGN


def test_an_edited_module_is_kept_replaced_or_merged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["net.py", "-o", "out/net.py"]
    assert convert(*arguments) == 0
    module, code = folder / "out/net_helpers.py", folder / "out/net.py"
    before = code.read_text()
    module.write_text(module.read_text().replace("def uniform_init(", "MINE = 1\n\n\ndef uniform_init("))
    (folder / "net.py").write_text(NET.replace("y.exp())", "y.exp(), full=True)"))
    assert convert(*arguments) == 2
    assert "net_helpers.py exists and is not as t2j wrote it" in capsys.readouterr().err
    assert code.read_text() == before
    assert convert(*arguments, "--merge") == 0
    merged = module.read_text()
    assert "MINE = 1\n" in merged and "math.pi" in merged
    assert "full=True" in code.read_text()
    assert convert(*arguments, "--force") == 0
    assert "MINE" not in module.read_text()


def test_a_module_that_is_needed_no_more_goes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = folder / "out/net_helpers.py"
    assert convert("net.py", "-o", "out/net.py") == 0
    assert convert("net.py", "-o", "out/net.py", lines=60) == 0
    assert "net_helpers.py: removed" in capsys.readouterr().err
    assert "def gaussian_nll_loss(" in (folder / "out/net.py").read_text() and not module.exists()


@pytest.mark.parametrize("keeper", ["edited", "imported", "foreign"])
def test_a_module_that_somebody_needs_stays(folder: Path, keeper: str) -> None:
    module = folder / "out/net_helpers.py"
    assert convert("net.py", "-o", "out/net.py") == 0
    if keeper == "edited":
        module.write_text(module.read_text() + "\nMINE = 1\n")
    elif keeper == "imported":
        (folder / "out/loss.py").write_text("from net_helpers import gaussian_nll_loss\n")
    else:
        module.write_text(FOREIGN)
    text = module.read_text()
    assert convert("net.py", "-o", "out/net.py", "--helpers", "inline") == 0
    assert module.read_text() == text


def test_neither_is_written_where_one_cannot_be(folder: Path) -> None:
    (folder / "net_jax.py").write_text("# mine\n")
    assert convert("net.py", "-o", "net_jax.py") == 2
    assert not (folder / "net_jax_helpers.py").exists()


@pytest.mark.parametrize(
    ("name", "files", "head", "module"),
    [
        ("pkg/net.py", {"pkg/__init__.py": ""}, "", ".net_helpers"),
        ("pkg/net.py", {"pkg/__init__.py": ""}, "from . import other\n", ".net_helpers"),
        ("net.py", {}, "from .other import thing\n", ".net_helpers"),
        ("net.py", {"run.py": "from net import Net\n"}, "", "net_helpers"),
        ("models/net.py", {"run.py": "from models.net import Net\n"}, "", ".net_helpers"),
        ("models/net.py", {"run.py": "from models import (other,\n    net)\n"}, "", ".net_helpers"),
        ("models/net.py", {"run.py": "import models.network\n"}, "", "net_helpers"),
        ("a/b/net.py", {"c/run.py": "import a.b.net as n\n", "setup.py": ""}, "", ".net_helpers"),
        ("a/b/net.py", {"run.py": "from a.b.net import Net\n"}, "", ".net_helpers"),
        ("my-net.py", {}, "", None),
        ("net.py", {}, "from net_helpers import more\n", None),
        ("net.py", {}, "import net_helpers\n", None),
        ("net.txt", {}, "", None),
    ],
)
def test_how_the_module_is_imported(
    folder: Path, name: str, files: dict[str, str], head: str, module: str | None
) -> None:
    for path, text in {**files, name: head + NET}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "net.py" if name != "net.py" else folder / "train.py").unlink()
    assert convert(name, "-o", name, "--force") == 0
    code = (folder / name).read_text()
    assert (module is not None and imports_from(code, module)) != ("def gaussian_nll_loss(" in code)
    assert (module is not None) == Path(name).with_name("net_helpers.py").exists()


@pytest.mark.parametrize("files", [{"pkg/__init__.py": ""}, {"other.py": "from pkg.train import Net\n"}])
def test_a_program_in_a_package_has_them_in_it(folder: Path, files: dict[str, str]) -> None:
    """It may be run by its path, where there is nothing to import relatively."""
    for path, text in {**files, "pkg/train.py": SCRIPT}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    assert convert("pkg/train.py", "-o", "pkg/train_jax.py") == 0
    assert "def gaussian_nll_loss(" in (folder / "pkg/train_jax.py").read_text()


def test_a_folder_has_one_module_of_whole_helpers(folder: Path) -> None:
    for more in ([], ["--helpers", "auto"]):
        assert main(["convert", ".", "-o", "out", *more]) == 0
        assert {path.name for path in (folder / "out").iterdir()} == {"net.py", "train.py", "torch_helpers.py"}


def test_a_pair_runs_as_one_file_does(folder: Path) -> None:
    assert convert("train.py", "-o", "pair/train.py") == 0
    assert main(["convert", "train.py", "-o", "one/train.py", "--helpers", "inline"]) == 0
    assert (folder / "pair/train_helpers.py").is_file()
    command = [sys.executable, "train.py"]
    printed = [
        subprocess.run(command, cwd=folder / name, check=True, capture_output=True, timeout=240).stdout
        for name in ("pair", "one")
    ]
    assert printed[0] == printed[1] and printed[0].count(b"\n") == 3


@pytest.mark.worker
def test_checks_and_runs_find_the_module_and_what_it_does_counts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert("net.py", "-o", "net_jax.py", "--check", "--stage", "numeric") == 0
    assert "equivalent" in capsys.readouterr().out
    assert main(["check", "net.py", "net_jax.py", "--stage", "numeric"]) == 0
    assert convert("train.py", "-o", "train_jax.py") == 0
    assert main(["run", "train.py", "train_jax.py"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "equivalent"
    for name in ("net", "train"):
        module = folder / f"{name}_jax_helpers.py"
        text = module.read_text()
        assert text.count("mean(") > 0, text
        module.write_text(text.replace("mean(", "sum("))
    assert main(["check", "net.py", "net_jax.py", "--stage", "numeric"]) == 1
    assert main(["run", "train.py", "train_jax.py"]) == 1
