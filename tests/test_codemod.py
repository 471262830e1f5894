"""The codemod, as libcst's own tool runs it and as others call it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import libcst as cst
import pytest
from libcst.codemod import CodemodContext, SkipFile

from t2j_lsp.codemod import ConvertCommand
from t2j_lsp.translate import translate

ROOT = Path(__file__).parents[1]
NET = "import torch\nfrom torch import nn\n\nfrom .blocks import Block\n\n\nclass Net(Block):\n    pass  # kept\n"
BLOCK = "from torch import nn\n\n\nclass Block(nn.Module):\n    def forward(self, x):\n        return x.relu()\n"


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_it_gives_what_convert_gives(example: Path) -> None:
    source = example.read_text(encoding="utf-8")
    made = ConvertCommand(CodemodContext()).transform_module(cst.parse_module(source))
    assert made.code == translate(source).code


def test_what_has_no_rule_is_a_warning() -> None:
    context = CodemodContext(filename="net.py")
    source = "import torch\n\n\ndef f(x):\n    return x.register_hook(print), torch.exp(x)\n"
    code = ConvertCommand(context).transform_module(cst.parse_module(source)).code
    assert "# TODO(t2j)" in code and "jnp.exp(x)" in code
    assert [warning.partition(": ")[0] for warning in context.warnings] == ["net.py:5"]


def test_a_file_that_is_refused_is_skipped() -> None:
    deep = "import torch\nx = " + "y" + ".abs()" * 150 + "\n"
    with pytest.raises(SkipFile, match="nested"):
        ConvertCommand(CodemodContext()).transform_module(cst.parse_module(deep))


def test_libcst_runs_it_on_a_folder(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "net.py").write_text(NET, encoding="utf-8")
    (package / "blocks.py").write_text(BLOCK, encoding="utf-8")
    (package / "plain.py").write_text("x = 1\n", encoding="utf-8")
    command = [sys.executable, "-m", "libcst.tool", "codemod", "-x", "t2j_lsp.codemod.ConvertCommand"]
    command += ["--no-format", "-j", "1", "--helpers", "import", str(package)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "class Block(nnx.Module):" in (package / "blocks.py").read_text(encoding="utf-8")
    assert "pass  # kept" in (package / "net.py").read_text(encoding="utf-8")
    assert "import torch" not in (package / "blocks.py").read_text(encoding="utf-8")
    assert (package / "plain.py").read_text(encoding="utf-8") == "x = 1\n"
