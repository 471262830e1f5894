"""What the translator tests share: conversions without the import block and the helper texts."""

from __future__ import annotations

import ast
import textwrap

from t2j_lsp.contract import Options, Translation
from t2j_lsp.translate import translate

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch import Tensor\n"


def run(source: str, **options: object) -> Translation:
    """Translate a snippet behind the usual torch imports; helpers are imported instead of copied."""
    return translate(HEAD + textwrap.dedent(source), Options(helpers="import", **options))  # type: ignore[arg-type]


def body(source: str, **options: object) -> str:
    """The converted snippet without its imports. The output must parse and a second conversion must change nothing."""
    result = run(source, **options)
    ast.parse(result.code)
    again = translate(result.code, Options(helpers="import", **options))  # type: ignore[arg-type]
    assert again.code == result.code, "converting twice changed the code"
    lines = result.code.splitlines()
    tree = ast.parse(result.code)
    last = max((n.end_lineno or 0 for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)), default=0)
    return "\n".join(lines[last:]).strip("\n")


def expression(source: str, parameters: str = "x: Tensor, y: Tensor") -> str:
    """One converted expression, as the body of a function with tensor parameters."""
    code = body(f"def f({parameters}):\n    return {source}\n")
    return code.rpartition("return ")[2]


def expect(source: str, wanted: str) -> None:
    """The snippet converts to exactly this."""
    assert body(source).strip() == textwrap.dedent(wanted).strip()


def expect_same(source: str) -> None:
    """The snippet stays as it is, and nothing is reported about it."""
    result = run(source)
    assert textwrap.dedent(source).strip() in result.code
    assert not result.gaps
