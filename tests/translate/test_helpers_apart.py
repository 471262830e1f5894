"""Helpers of one file in a module beside it: the very ones that it would have had in it, and when they go there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.output_length import lengths
from t2j_lsp.contract import HELPER_LINES, HELPERS_DOCSTRING, Options
from t2j_lsp.translate import translate
from t2j_lsp.translate.source.code_lines import code_lines
from t2j_lsp.translate.source.helpers import defined

HERE = Path(__file__).parent
FILES = sorted([*(HERE / "scripts").glob("*.py"), *(HERE / "models").glob("*.py")])
LOSS = "import torch.nn.functional as F\n\n\ndef loss(x, y):\n    return F.cross_entropy(x, y)\n"
GAP = "import torch\n" + LOSS + "\n\ndef saved(path):\n    return torch.jit.load(path)\n"


def apart(text: str, lines: int = 0, **options: object) -> tuple[str, str | None]:
    """The code and the text of the module beside it."""
    done = translate(text, Options(helpers="auto", helper_module="own_helpers", helper_lines=lines, **options))  # type: ignore[arg-type]
    return done.code, done.helper_source


def definitions(*texts: str) -> list[str]:
    """What texts define at their top level, as trees."""
    kinds = ast.FunctionDef | ast.ClassDef | ast.Assign
    return sorted(ast.dump(node) for text in texts for node in ast.parse(text).body if isinstance(node, kinds))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_module_has_what_the_file_would_have(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    inline, (code, module) = translate(text), apart(text)
    if not inline.needs.helpers:
        assert (code, module) == (inline.code, None)
        return
    assert module is not None
    lines = {line for line in inline.code.splitlines() if not line.startswith(("import ", "from "))}
    assert inline.needs.written != tuple((n, n) for n in inline.needs.helpers) or all(
        line in lines for line in module.splitlines()[2:] if line and not line.startswith(("import ", "from "))
    )
    renamed = {own: name for own, name in inline.needs.written if own != name}
    if not renamed:
        assert definitions(code, module) == definitions(inline.code)
    (imported,) = (n for n in ast.parse(code).body if isinstance(n, ast.ImportFrom) and n.module == "own_helpers")
    assert {alias.name for alias in imported.names} <= {defined(node) for node in ast.parse(module).body}
    # Converted once, it stays as it is.
    resolve = {"own_helpers": module}.get
    assert translate(code, Options(resolve=lambda level, name: resolve(name))).code == code


def test_only_long_helpers_stand_apart() -> None:
    inline = translate(LOSS).code
    helpers = [n for n in ast.parse(inline).body if getattr(n, "name", "") == "cross_entropy"]
    lines = sum(len(code_lines(ast.get_source_segment(inline, n) or "")) for n in helpers)
    assert lines > 3
    assert apart(LOSS, lines) == (inline, None)
    code, module = apart(LOSS, lines - 1)
    assert code == ("from own_helpers import cross_entropy\n\n\ndef loss(x, y):\n    return cross_entropy(x, y)\n")
    assert module is not None and module.startswith(HELPERS_DOCSTRING) and "ignore_index" not in module
    assert translate(LOSS, Options(helpers="inline", helper_lines=0)).helper_source is None


def test_a_name_that_the_user_has_taken_is_another_in_the_file_alone() -> None:
    code, module = apart(
        "import torch\ndef f(x, cross_entropy, y):\n    return torch.nn.functional.cross_entropy(x, y)\n"
    )
    assert "from own_helpers import cross_entropy as cross_entropy_" in code and "cross_entropy_(x, y)" in code
    assert module is not None and "def cross_entropy(" in module


@pytest.mark.parametrize(
    ("head", "becomes"),
    [
        ("import torch.nn.functional as F\n", "from own_helpers import cross_entropy\n"),
        ('"""Doc."""\nimport torch.nn.functional as F\n', '"""Doc."""\n\nfrom own_helpers import cross_entropy\n'),
        ("import os\nimport torch.nn.functional as F\n", "import os\n\nfrom own_helpers import cross_entropy\n"),
        (
            "import torch.nn.functional as F\nimport numpy as np\n",
            "import numpy as np\n\nfrom own_helpers import cross_entropy\n",
        ),
        (
            "import os\n\nimport torch.nn.functional as F\n\nfrom .utils import g\n",
            "import os\n\nfrom .utils import g\nfrom own_helpers import cross_entropy\n",
        ),
    ],
)
def test_its_import_is_the_last(head: str, becomes: str) -> None:
    body = LOSS.partition("\n")[2].replace("return ", "jnp_ = g = np = os = 1\n    return ")
    code, _ = apart(head + body)
    assert code == becomes + body.replace("F.", "")


def test_a_long_import_is_broken() -> None:
    lines = [
        f"    x = F.{one}" for one in ("interpolate(x, 3)", "layer_norm(x, (3,))", "nll_loss(x, x)", "pad(x, (1, 2))")
    ]
    lines += [f"    x = F.{one}" for one in ("avg_pool2d(x, 2)", "max_pool2d(x, 2)", "cross_entropy(x, x)")]
    code, _ = apart("import torch.nn.functional as F\n\n\ndef f(x):\n" + "\n".join(lines) + "\n    return x\n")
    assert "from own_helpers import (\n    avg_pool2d,\n" in code and max(map(len, code.splitlines())) <= 88


def test_what_is_left_of_torch_is_converted_later_beside_the_same_module() -> None:
    code, module = apart(GAP)
    assert module is not None and "torch.jit.load" in code
    resolve = {"own_helpers": module}.get
    again = translate(code, Options("nnx", helpers="auto", helper_lines=0, resolve=lambda _, name: resolve(name)))
    assert (again.code, again.helper_source) == (code, None)


def test_a_file_that_has_some_of_its_helpers_keeps_them_together() -> None:
    converted = translate(GAP).code
    more = converted + "\n\ndef more(x, y):\n    return torch.nn.functional.nll_loss(x, y)\n"
    assert apart(converted) == (converted, None)
    code, module = apart(more)
    compile(code, "code", "exec")
    assert (module is None) == ("def nll_loss(" in code)


def test_windows_lines_stay() -> None:
    code, module = apart(LOSS.replace("\n", "\r\n"))
    for text in (code, module or ""):
        assert "\n" not in text.replace("\r\n", "") and text.count("\r\n") > 3


def test_functions_of_a_dict_have_a_module_too() -> None:
    text = LOSS + "\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return loss(x, x)\n"
    code, module = apart("from torch import nn\n" + text, target="jax")
    assert "from own_helpers import cross_entropy" in code and module is not None


def test_the_benchmark_counts_both() -> None:
    path = HERE.parent / "programs" / "closure_logistic.py"
    result = lengths(path)
    assert result is not None and result.module > HELPER_LINES and result.helpers.total() > HELPER_LINES
    inline = len(code_lines(translate(path.read_text(encoding="utf-8")).code))
    # The import of the module, and imports that both have, come on top of what one file would have.
    assert result.own < inline <= result.output == result.own + result.module
    assert result.ratio == result.output / result.source
