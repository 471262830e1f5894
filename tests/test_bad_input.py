"""Input that is not tidy PyTorch: a clear error or an untouched result, never a crash and never a corrupted file."""

from __future__ import annotations

import ast
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from t2j_lsp.cli import main
from t2j_lsp.contract import Options, SourceError
from t2j_lsp.translate import translate

pytestmark = pytest.mark.usefixtures("state")


NOT_PYTHON = {
    "a half-typed call": "import torch\nx = torch.cat([a, b], dim=\n",
    "a half-typed attribute": "import torch\nx = torch.\n",
    "a half-typed class": "import torch.nn as nn\nclass Net(nn.Module):\n",
    "a half-typed def": "def forward(self, x",
    "a bracket of the wrong kind": "x = torch.cat([a, b)",
    "an open string": "x = 'torch",
    "an open triple string": 'import torch\n"""torch.cat\n',
    "a wrong indent": "if x:\n    a\n  b\n",
    "an indent too many": "  x = 1\n",
    "tabs and spaces mixed": "if x:\n\ty\n        z\n",
    "Python 2": "print 'torch'\n",
    "a merge conflict": "<<<<<<< HEAD\nimport torch\n=======\nimport jax\n>>>>>>> other\n",
    "a null byte": "import torch\x00\n",
    "a lone surrogate": "x = '\ud800'\nimport torch\n",
    "a notebook's magic": "%matplotlib inline\nimport torch\n",
    "a diff": "@@ -1,2 +1,2 @@\n-import torch\n+import jax\n",
    "a shell session": "$ python train.py\n",
    "brackets nested too deeply": "x = " + "(" * 5000 + ")" * 5000,
    "a line continued into nothing": "x = 1 + \\",
}


@pytest.mark.parametrize("source", NOT_PYTHON.values(), ids=NOT_PYTHON.keys())
def test_what_python_cannot_parse_is_a_source_error_with_a_reason(source: str) -> None:
    with pytest.raises(SourceError) as caught:
        translate(source)
    assert str(caught.value).strip()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", NOT_PYTHON.values(), ids=NOT_PYTHON.keys())
def test_the_command_says_it_in_one_line_and_writes_nothing(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "bad.py", tmp_path / "out.py"
    path.write_bytes(source.encode("utf-8", "surrogatepass"))
    assert main(["convert", str(path), "-o", str(out), "--json", str(tmp_path / "r.json")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"t2j: {path}")
    assert shown.err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.py"]


UNTOUCHED = {
    "an empty file": "",
    "only a newline": "\n",
    "only white space": "  \n\t\n",
    "only a comment": "# torch.cat(x)\n",
    "only a docstring": '"""torch.cat(x)"""',
    "no torch": "import numpy as np\nx = np.concatenate([a, b]).view(np.int32)\n",
    "pandas": "import pandas as pd\ndf = pd.read_csv('x')\ny = df.max(axis=0).sum().mean()\nz = df.squeeze()\n",
    "text methods": "s = 'a'.split(',')\nt = s.copy()\nu = {}.items()\nlist.sort(s)\ns.size\n",
    "already JAX": "import jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.concatenate([x, x], axis=1).reshape(-1)\n",
    "already NNX": (
        "from flax import nnx\n\n\nclass Net(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n"
        "        self.linear = nnx.Linear(2, 3, rngs=rngs)\n\n"
        "    def __call__(self, x):\n        return self.linear(x)\n"
    ),
    "TensorFlow": "import tensorflow as tf\nx = tf.concat([a, b], axis=0)\ny = tf.nn.relu(x)\n",
    "another torch": "import mytorch as torch\nx = torch.cat([a, b])\n",
    "a relative torch": "from . import torch\nx = torch.cat([a, b])\n",
    "a class named Module": "class Module:\n    def forward(self, x):\n        pass\n\n\nclass N(Module):\n    pass\n",
    "emoji": "x = '😀' # 🔥 torch\ny = '漢字'.encode()\n",
    "form feeds": "import os\n\x0c\nx = 1\n",
    "carriage returns alone": "x = 1\ry = 2\r",
    "mixed line ends": "x = 1\r\ny = 2\nz = 3\r\n",
    "no newline at the end": "x = 1",
    "many newlines at the end": "x = 1\n\n\n\n",
    "trailing white space": "x = 1   \n   \ny = 2\t\n",
    "a long string": "x = '" + "torch.cat " * 10_000 + "'\n",
    "a shadowed torch": "def f(torch, x):\n    return torch.cat([x, x], dim=0)\n",
    "await at the top": "x = await f()\n",
    "match": "match x:\n    case {'a': [1, *_]}:\n        pass\n",
}


@pytest.mark.parametrize("source", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_what_holds_no_torch_comes_back_as_it_was(source: str) -> None:
    translation = translate(source)
    assert translation.code == source
    assert translation.findings == ()
    assert translation.converted == 0


@pytest.mark.parametrize("source", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_the_command_copies_it_byte_for_byte(source: str, tmp_path: Path) -> None:
    path, out = tmp_path / "in.py", tmp_path / "out.py"
    path.write_bytes(source.encode())
    assert main(["convert", str(path), "-o", str(out)]) == 0
    assert out.read_bytes() == path.read_bytes()


CAT = "import torch\n\n\ndef f(a: torch.Tensor, b: torch.Tensor):\n    return torch.cat([a, b], dim=1)\n"


def test_the_file_that_the_next_tests_change_converts() -> None:
    translation = translate(CAT)
    assert "jnp.concatenate([a, b], axis=1)" in translation.code
    assert "torch" not in translation.code
    assert not translation.gaps


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_line_ends_are_kept_in_all_that_is_added(newline: str) -> None:
    code = translate(CAT.replace("\n", newline)).code
    assert code.replace(newline, "\n") == translate(CAT).code
    assert "\n" not in code.replace(newline, "")


def test_a_missing_newline_at_the_end_stays_missing() -> None:
    assert translate(CAT.removesuffix("\n")).code == translate(CAT).code.removesuffix("\n")


def test_a_byte_order_mark_stays_first() -> None:
    assert translate("\ufeff" + CAT).code == "\ufeff" + translate(CAT).code


def test_tabs_stay_tabs() -> None:
    code = translate(CAT.replace("    ", "\t")).code
    assert code == translate(CAT).code.replace("    ", "\t")


@pytest.mark.parametrize(
    "odd", ["'😀'", "'漢字'", "'e\u0301'", "'\u2028'", "'\x0c'", "'\\\\'", "b'\\x00'", 'f"{a!r:>{5}}😀"']
)
def test_columns_count_characters_and_not_bytes(odd: str) -> None:
    source = CAT.replace("return torch", f"return {odd}, torch")
    assert translate(source).code == translate(CAT).code.replace("return jnp", f"return {odd}, jnp")


@pytest.mark.parametrize(
    ("codec", "first"),
    [
        ("latin-1", "# -*- coding: latin-1 -*-\n"),
        ("cp1252", "# coding=cp1252\n"),
        ("utf-8-sig", ""),
        ("utf-8", "# coding: utf-8\n"),
    ],
)
def test_a_file_keeps_its_encoding_and_line_ends(codec: str, first: str, tmp_path: Path) -> None:
    path, out = tmp_path / "in.py", tmp_path / "out.py"
    source = first + CAT.replace("dim=1)", "dim=1)  # déjà vu")
    path.write_bytes(source.replace("\n", "\r\n").encode(codec))
    assert main(["convert", str(path), "-o", str(out)]) == 0
    data = out.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf") is (codec == "utf-8-sig")
    text = data.decode(codec)
    assert "axis=1)  # déjà vu\r\n" in text
    assert text.count("\n") == text.count("\r\n")
    assert text.startswith(first.replace("\n", "\r\n"))


SHADOWED = {
    "by a parameter": "def g(torch, x):\n    return torch.cat([x, x], dim=0)\n",
    "by a local": "def g(x):\n    torch = Other()\n    return torch.cat([x, x], dim=0)\n",
    "by a loop": "def g(x):\n    for torch in things:\n        torch.cat([x, x], dim=0)\n",
    "by with": "def g(x):\n    with other() as torch:\n        return torch.cat([x, x], dim=0)\n",
    "by a comprehension": "def g(x):\n    return [torch.cat([x, x], dim=0) for torch in things]\n",
    "by a lambda": "g = lambda torch, x: torch.cat([x, x], dim=0)\n",
    "by a local import": "def g(x):\n    import mytorch as torch\n    return torch.cat([x, x], dim=0)\n",
    "by a walrus": "def g(x):\n    if (torch := other()):\n        return torch.cat([x, x], dim=0)\n",
    "by except": "def g(x):\n    try:\n        pass\n    except E as torch:\n        return torch.cat([x, x], dim=0)\n",
    "by a match": "def g(x):\n    match x:\n        case [torch]:\n            return torch.cat([x, x], dim=0)\n",
}


@pytest.mark.parametrize("shadow", SHADOWED.values(), ids=SHADOWED.keys())
def test_a_name_that_only_looks_like_torch_is_left_alone(shadow: str) -> None:
    code = translate(CAT + "\n\n" + shadow).code
    assert "jnp.concatenate([a, b], axis=1)" in code
    assert shadow.rstrip("\n") in code


@pytest.mark.parametrize(
    "head",
    [
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
        "if flag:\n    import torch\nelse:\n    torch = None\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
        "from torch import *\nimport torch\n",
        "import torch, os\n",
        "import torch; import os\n",
        "from __future__ import annotations\nimport torch\n",
        '#!/usr/bin/env python\n# coding: utf-8\n"""Doc."""\n\nimport torch\n',
        "def g():\n    import torch\n    return torch.zeros(2)\n\n\nimport torch\n",
        "import torch as th\nimport torch\n",
        "import torch\nimport torch\n",
        "import torch.nn, torch.nn.functional\nimport torch\n",
        "from torch import (\n    cat,  # joins\n    stack,\n)\nimport torch\n",
        "import importlib\ntorch = importlib.import_module('torch')\n",
    ],
)
def test_odd_imports_give_code_that_parses_and_names_nothing_that_is_gone(head: str) -> None:
    source = CAT.replace("import torch\n", head, 1)
    translation = translate(source)
    tree = ast.parse(translation.code)
    if "torch." in translation.code.replace("importlib", ""):
        # Where a use of torch is left, so is what binds it.
        bound = {
            a.asname or a.name.split(".")[0]
            for n in ast.walk(tree)
            if isinstance(n, ast.Import | ast.ImportFrom)
            for a in n.names
        }
        bound |= {
            t.id for n in ast.walk(tree) if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
        }
        assert bound & {"torch", "*"}
    assert translate(translation.code).code == translation.code


def test_a_star_import_binds_the_names_that_nothing_else_can() -> None:
    source = "from torch import *\n\n\ndef f(a, b):\n    return cat([a, b], dim=1)\n"
    source += "\n\ndef g(cat):\n    return cat([1], dim=1)\n"
    code = translate(source).code
    assert "return jnp.concatenate([a, b], axis=1)" in code
    assert "return cat([1], dim=1)" in code
    later = source.replace("import *\n", "import *\nfrom other import *\n")
    assert "return cat([a, b], dim=1)" in translate(later).code


def test_deep_but_parsable_nesting_is_no_crash() -> None:
    for source in (
        "import torch\nx = " + "torch.abs(" * 60 + "y" + ")" * 60 + "\n",
        "import torch\nx = " + " + ".join(["torch.abs(y)"] * 2000) + "\n",
        "import torch\n" + "".join("    " * i + f"if a{i}:\n" for i in range(90)) + "    " * 90 + "torch.abs(y)\n",
        "import torch\nx = y" + ".abs()" * 500 + "\n",
        "import torch\nx = " + "[" * 90 + "torch.abs(y)" + "]" * 90 + "\n",
        "import torch\n" + "".join(f"{'el' if i else ''}if x == {i}:\n    torch.abs(y)\n" for i in range(1500)),
    ):
        try:
            code = translate(source).code
        except SourceError as error:
            assert "nested" in str(error)
        else:
            ast.parse(code)


def test_a_file_of_five_thousand_lines_converts_whole() -> None:
    functions = 1000
    body = "\n\ndef f{0}(a: torch.Tensor, b: torch.Tensor):\n    # number {0}\n    return torch.cat([a, b], dim={0})\n"
    source = "import torch\n" + "".join(body.format(n) for n in range(1, functions + 1))
    assert source.count("\n") >= 5000
    translation = translate(source)
    assert translation.code.count("jnp.concatenate") == functions
    assert all(
        f"# number {n}\n    return jnp.concatenate([a, b], axis={n})" in translation.code
        for n in range(1, functions + 1)
    )


def test_a_bad_neighbour_does_not_spoil_a_file() -> None:
    source = "import torch\nfrom .broken import Thing\nfrom .loop import other\n\nx = torch.zeros(2)\n"
    neighbours = {
        (1, "broken"): "def f(:\n",
        (1, "loop"): "from .me import x\nfrom .loop import other\n",
        (1, "me"): source,
    }
    translation = translate(source, Options(path="me.py", resolve=lambda level, name: neighbours.get((level, name))))
    assert "jnp.zeros(2)" in translation.code or "jnp.zeros((2,))" in translation.code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "missing.py"], "missing.py"),
        (["convert", "."], "-o"),
        (["check", "missing.py"], "missing.py"),
        (["coverage", "missing.py"], "missing.py"),
        (["explain", "torch.no_such_thing"], "torch.no_such_thing"),
        (["convert", "in.txt.py", "-o", "in.txt.py"], "--force"),
        (["convert", "in.txt.py", "--helpers", "module"], "-o OUT"),
        (["convert", "in.txt.py", "--json", "-"], "-o OUT"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt.py").write_text(CAT)
    command = [sys.executable, "-m", "t2j_lsp", *arguments]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    assert run.stdout == ""
    assert message in run.stderr
    assert run.stderr.count("\n") == 1
    assert (tmp_path / "in.txt.py").read_text() == CAT


def test_what_the_interpreter_warns_of_is_not_passed_on() -> None:
    text = 'import torch\nx = torch.zeros(2)\ny = "\\_"\n'
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        compile(text, "<text>", "exec")
        assert said  # under Python 3.11 a DeprecationWarning, which is not shown
        said.clear()
        assert "jnp.zeros(2)" in translate(text).code
    assert not said
