"""``t2j convert`` and the command line as a whole: outputs, exit codes, JSON, folders, notebooks, standard input."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.cli import main

CAT = "import torch\n\n\ndef f(a: torch.Tensor):\n    return torch.cat([a, a], dim=1)\n"
GAP = CAT + "\n\ndef g(a: torch.Tensor, hook):\n    a.register_hook(hook)\n    return a\n"
PLAIN = "def h():\n    return 1\n"
BAD = "def f(:\n"
CONVERTED = "jnp.concatenate([a, a], axis=1)"


pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project: a file that converts, one with a gap, one without torch, one that doesn't parse."""
    for name, text in {
        "cat.py": CAT,
        "pkg/gap.py": GAP,
        "pkg/__init__.py": "",
        "plain.py": PLAIN,
        "bad.py": BAD,
    }.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_json(path: Path) -> dict[str, Any]:
    loaded = json.loads(path.read_text())
    assert isinstance(loaded, dict)
    return loaded


@pytest.mark.parametrize("output", [[], ["-o", "-"]])
def test_convert_prints_the_code_and_reports_on_standard_error(
    output: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "src/cat.py", *output]) == 0
    assert not (project / "-").exists()
    shown = capsys.readouterr()
    assert CONVERTED in shown.out
    assert shown.err == "src/cat.py: 1 place converted, 0 gaps, 0 notes\n"


def test_a_gap_is_marked_listed_and_exit_code_1(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "src/pkg/gap.py", "-o", "out.py", "--json", "report.json"]) == 1
    code = (project / "out.py").read_text()
    lines = code.split("\n")
    marked = next(index for index, line in enumerate(lines) if "# TODO(t2j): " in line)
    assert "register_hook" in lines[marked + 1]
    err = capsys.readouterr().err
    assert "src/pkg/gap.py:9:5: gap: torch.Tensor.register_hook: " in err
    report = read_json(project / "report.json")
    assert list(report) == ["version", "source", "target", "converted", "gaps", "notes", "helpers"]
    assert (report["version"], report["source"], report["target"]) == (2, "src/pkg/gap.py", "out.py")
    (gap,) = report["gaps"]
    assert list(gap) == ["line", "column", "end_line", "end_column", "name", "code", "reason"]
    assert (gap["line"], gap["column"], gap["name"]) == (9, 4, "torch.Tensor.register_hook")


def test_output_into_a_folder_takes_the_files_name(project: Path) -> None:
    (project / "out").mkdir()
    assert main(["convert", "src/cat.py", "-o", "out"]) == 0
    assert CONVERTED in (project / "out" / "cat.py").read_text()


def test_standard_input_is_converted_in_its_own_encoding(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = ("# coding: latin-1\n" + CAT + "# é\n").encode("latin-1")
    done = subprocess.run(
        [sys.executable, "-m", "t2j_lsp", "convert", "-"], input=data, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert CONVERTED.encode() in done.stdout
    assert "# é\n".encode("latin-1") in done.stdout
    assert done.stderr == b"<stdin>: 1 place converted, 0 gaps, 0 notes\n"


def test_a_second_conversion_replaces_the_first_and_nothing_else(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["convert", "src/cat.py", "-o", "out.py"]
    assert main(arguments) == 0
    (project / "src/cat.py").write_text(CAT.replace("dim=1", "dim=0"))
    assert main(arguments) == 0
    (project / "out.py").write_text("# mine\n")
    assert main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert (project / "out.py").read_text() == "# mine\n"
    assert main([*arguments, "--force"]) == 0


def test_a_folder_is_mirrored_and_a_bad_file_stops_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "src", "-o", "out", "--json", "report.json"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "t2j: src/bad.py: line 1" in shown.err
    assert "register_hook" in shown.err
    assert shown.err.splitlines()[-1].endswith("in 4 files, 1 file failed")
    assert CONVERTED in (project / "out/cat.py").read_text()
    assert (project / "out/plain.py").read_text() == PLAIN
    assert (project / "out/pkg/__init__.py").read_text() == ""
    assert not (project / "out/bad.py").exists()
    report = read_json(project / "report.json")
    assert [gap["file"] for gap in report["gaps"]] == ["src/pkg/gap.py"]
    assert [(error["file"], error["line"]) for error in report["errors"]] == [("src/bad.py", 1)]
    assert report["files"] == 4


def test_a_folder_without_bad_files_ends_in_0_or_1(project: Path) -> None:
    (project / "src/bad.py").unlink()
    assert main(["convert", "src", "-o", "out"]) == 1
    (project / "src/pkg/gap.py").unlink()
    assert main(["convert", "src", "-o", "out2"]) == 0


def test_an_output_folder_inside_the_source_is_not_converted_again(project: Path) -> None:
    (project / "src/bad.py").unlink()
    assert main(["convert", "src", "-o", "src/out"]) == 1
    assert main(["convert", "src", "-o", "src/out"]) == 1
    assert not (project / "src/out/out").exists()


def test_a_class_from_a_sibling_is_known_to_be_a_module(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = "from torch import nn\n\n\nclass Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    block += "        self.fc = nn.Linear(2, 2)\n\n    def forward(self, x):\n        return self.fc(x)\n"
    net = "from torch import nn\nfrom .block import Block\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
    net += "        super().__init__()\n        self.block = Block()\n\n"
    net += "    def forward(self, x):\n        return self.block(x)\n"
    (project / "src/pkg/block.py").write_text(block)
    (project / "src/pkg/net.py").write_text(net)
    assert main(["convert", "src/pkg/net.py", "-o", "net.py"]) == 0
    assert "self.block = Block(rngs=rngs)" in (project / "net.py").read_text()
    said = "net.py:2:1: note: Block is PyTorch in .block: convert that file along, or its folder"
    assert said in capsys.readouterr().err
    assert main(["convert", "src/pkg/block.py", "-o", "src/pkg/block_jax.py"]) == 0
    assert main(["convert", "src/pkg/net.py", "-o", "src/pkg/net_jax.py"]) == 0
    assert "from .block_jax import Block" in (project / "src/pkg/net_jax.py").read_text()
    assert "net.py: 1 place converted, 0 gaps, 0 notes" in capsys.readouterr().err
    assert main(["convert", "src/pkg", "-o", "out"]) == 1
    assert "along" not in capsys.readouterr().err


LINEAR = "from torch import nn\n\n\nlayer = nn.Linear(2, 3)\n"
EMBEDDING = "from torch import nn\n\n\nlayer = nn.Embedding(2, 3, padding_idx=0)\n"


def test_helpers_of_one_file_go_into_a_module_beside_it(project: Path) -> None:
    (project / "layer.py").write_text(LINEAR)
    assert main(["convert", "layer.py", "-o", "out/layer.py", "--helpers", "module"]) == 0
    code, helpers = ((project / "out" / name).read_text() for name in ("layer.py", "torch_helpers.py"))
    assert "from torch_helpers import " in code
    assert "uniform_init" in helpers
    assert "def uniform" not in code


def test_a_helper_module_keeps_what_files_before_import_from_it(project: Path) -> None:
    for name, text in (("one.py", EMBEDDING), ("two.py", LINEAR)):
        (project / name).write_text(text)
        assert main(["convert", name, "-o", f"out/{name}", "--helpers", "module"]) == 0
    shared = (project / "out/torch_helpers.py").read_text()
    for name in ("one", "two"):
        line = next(x for x in (project / f"out/{name}.py").read_text().splitlines() if "from torch_helpers" in x)
        for helper in line.partition(" import ")[2].split(", "):
            assert re.search(rf"^(def|class) {helper}\b|^{helper} = ", shared, re.MULTILINE), helper


def test_helpers_of_a_folder_are_shared_by_package(project: Path) -> None:
    for name, text in {
        "tree/script.py": LINEAR,
        "tree/pkg/__init__.py": "",
        "tree/pkg/one.py": LINEAR,
        "tree/pkg/sub/__init__.py": "",
        "tree/pkg/sub/two.py": EMBEDDING,
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    assert main(["convert", "tree", "-o", "out"]) in (0, 1)
    assert "from torch_helpers import " in (project / "out/script.py").read_text()
    assert "from .torch_helpers import " in (project / "out/pkg/one.py").read_text()
    assert "from ..torch_helpers import " in (project / "out/pkg/sub/two.py").read_text()
    sources = {str(path.relative_to(project / "out")) for path in (project / "out").rglob("torch_helpers.py")}
    assert sources == {"torch_helpers.py", "pkg/torch_helpers.py"}
    shared = (project / "out/pkg/torch_helpers.py").read_text()
    for name in ("out/pkg/one.py", "out/pkg/sub/two.py"):
        line = next(one for one in (project / name).read_text().splitlines() if "torch_helpers" in one)
        for helper in line.partition(" import ")[2].split(", "):
            assert re.search(rf"^(def|class) {helper}\b|^{helper} = ", shared, re.MULTILINE), helper


def test_a_notebook_converts_and_reports_cells(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "# torch"},
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {},
            "outputs": [],
            "source": "%pip list\nimport torch\n",
        },
        {
            "cell_type": "code",
            "execution_count": 2,
            "metadata": {},
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}],
            "source": ["x = torch.zeros(2)\n", "x.register_hook(print)"],
        },
    ]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (project / "book.ipynb").write_text(json.dumps(book))
    assert main(["convert", "book.ipynb", "-o", "out.ipynb", "--json", "report.json"]) == 1
    out = read_json(project / "out.ipynb")["cells"]
    assert out[0] == cells[0]
    assert "%pip list" in "".join(out[1]["source"])
    assert "jnp.zeros" in "".join(out[2]["source"])
    assert out[2]["outputs"] == []
    (gap,) = read_json(project / "report.json")["gaps"]
    assert (gap["cell"], gap["line"]) == (3, 2)
    assert "book.ipynb:cell 3:2:1: gap: " in capsys.readouterr().err


def test_a_report_is_never_written_over_something_else(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "src/cat.py", "-o", "out.py", "--json", "report.json"]) == 0
    assert main(["convert", "src/cat.py", "-o", "out.py", "--json", "report.json"]) == 0
    assert main(["convert", "src/cat.py", "-o", "out.py", "--json", "src/plain.py"]) == 2
    assert (project / "src/plain.py").read_text() == PLAIN
    assert "--json" in capsys.readouterr().err


def test_a_report_to_standard_output_is_all_that_is_there(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "src/cat.py", "-o", "out.py", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["converted"] == 1


def test_an_error_inside_t2j_is_a_line_and_a_traceback_only_when_asked(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("t2j_lsp.api.translate", fail)
    assert main(["convert", "src/cat.py"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("T2J_DEBUG", "1")
    assert main(["convert", "src/cat.py"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_in_a_folder_an_error_inside_t2j_stops_nothing(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from t2j_lsp.translate import translate

    def fail_once(source: str, options: object) -> object:
        if source == PLAIN:
            raise ZeroDivisionError("planted")
        return translate(source, options)  # type: ignore[arg-type]

    monkeypatch.setattr("t2j_lsp.api.translate", fail_once)
    assert main(["convert", "src", "-o", "out"]) == 2
    assert CONVERTED in (project / "out/cat.py").read_text()
    assert "src/plain.py: an error inside t2j, ZeroDivisionError: planted" in capsys.readouterr().err


NET_IN_TORCH = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["convert"], ["convert", "a.py", "--target", "numpy"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: t2j" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--scan"], ["--layout", "nhwc"]])
def test_options_of_modules_are_refused_for_functions(
    option: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "net.py").write_text(NET_IN_TORCH)
    for command in ("convert", "check", "run"):
        assert main([command, "net.py", "--target", "jax", *option]) == 2
        assert f"{option[0]} is for --target nnx" in capsys.readouterr().err


CONVOLUTION = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x).relu()
"""


def test_the_layout_of_the_outermost_module_is_an_option(project: Path) -> None:
    (project / "net.py").write_text(CONVOLUTION)
    for layout, moves in (("nchw", 2), ("nhwc", 0)):
        assert main(["convert", "net.py", "--layout", layout, "-o", f"{layout}.py"]) == 0
        code = (project / f"{layout}.py").read_text()
        assert code.count("jnp.moveaxis(") == moves
        assert ("# Channels last, (N, H, W, C): x and the result" in code) == (layout == "nhwc")


def test_the_target_jax_writes_functions(project: Path) -> None:
    (project / "net.py").write_text(NET_IN_TORCH)
    assert main(["convert", "net.py", "--target", "jax", "-o", "out.py"]) == 0
    assert "def net(params, x):" in (project / "out.py").read_text()


def test_coverage_counts_for_the_target(project: Path) -> None:
    (project / "net.py").write_text(NET_IN_TORCH.replace("def forward", "@torch.jit.unused\n    def forward"))
    assert [main(["coverage", "net.py", "--target", target]) for target in ("nnx", "jax")] == [0, 1]


def test_coverage_of_a_folder_counts_as_its_conversion(project: Path) -> None:
    """Its files share a module of helpers, so that each knows the classes of the others."""
    (project / "all").mkdir()
    counting = (
        "from torch import nn\n\n\ndef count(net):\n    return sum(isinstance(m, nn.LSTM) for m in net.modules())\n"
    )
    (project / "all" / "counting.py").write_text(counting)
    assert [main(["coverage", path]) for path in ("all", "all/counting.py")] == [0, 1]
    assert main(["convert", "all", "-o", "out"]) == 0


def test_a_reader_that_goes_away_is_no_error(project: Path) -> None:
    (project / "long.py").write_text(CAT + f"# {'more than a pipe takes ' * 40}\n" * 1000)
    command = [sys.executable, "-m", "t2j_lsp", "convert", "long.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.read(10)
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_progress_shows_on_a_terminal_only(project: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("needs a pseudo-terminal, which Windows lacks")
    import pty

    main_end, other_end = pty.openpty()
    command = [sys.executable, "-m", "t2j_lsp", "convert", "src", "-o", "out"]
    environment = {**os.environ, "TERM": "xterm"}
    shown = b""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=other_end, env=environment) as process:
        os.close(other_end)
        # Linux reports the closed other end as an error.
        with open(main_end, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
            while chunk := terminal.read(4096):
                shown += chunk
        assert process.stdout
        assert process.stdout.read() == b""
    assert b"5/5" in shown
