"""``try: from a import f``, ``except ImportError: from b import f``: the name is what is known of either."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

NET = """\
import torch
from torch import nn
{imports}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm(4)

    def forward(self, x):
        return self.norm(x)
"""


def fallback(first: str, second: str) -> str:
    return f"try:\n    {first}\nexcept ImportError:\n    {second}\n"


@pytest.mark.parametrize(
    "imports",
    [
        fallback("from torch.nn import LayerNorm as Norm", "from elsewhere import Norm"),
        fallback("from apex.normalization import FusedLayerNorm as Norm", "from torch.nn import LayerNorm as Norm"),
        fallback("from elsewhere import Norm", "Norm = nn.LayerNorm"),
        fallback("from torch.nn import LayerNorm as Norm", "Norm = None"),
    ],
)
def test_a_layer_that_either_import_brings_converts(imports: str) -> None:
    translation = convert(NET.format(imports=imports))
    assert not translation.gaps
    assert "self.norm = nnx.LayerNorm(4, epsilon=1e-05, use_fast_variance=False, rngs=rngs)" in translation.code
    assert "torch" not in translation.code


def test_an_import_that_nothing_reads_any_more_goes_with_its_fallback() -> None:
    kept = "try:\n    import yaml\nexcept ImportError:\n    yaml = None\n"
    gone = fallback("from torch.nn import LayerNorm as Norm", "from elsewhere import Norm")
    code = convert(NET.format(imports=gone + kept)).code
    assert kept in code and code.count("try:") == 1 and "elsewhere" not in code


@pytest.mark.parametrize("missing", ["torch is None", "torch is None or F is None"])
def test_whether_pytorch_is_there_is_whether_jax_is(missing: str) -> None:
    head = (
        "try:\n    import torch\n    from torch import nn\n    import torch.nn.functional as F\nexcept ImportError:\n"
    )
    body = f"    if {missing}:\n        raise ImportError('no torch here')\n    return F.relu(torch.exp(x))\n"
    code = convert(f"{head}    torch = nn = F = None\n\n\ndef f(x):\n{body}").code
    assert "try" not in code and "jax is None" in code
    assert "torch" not in code.replace("no torch here", "")


def test_a_name_that_the_code_assigns_itself_may_be_either() -> None:
    imports = "try:\n    import fast\n    act = torch.relu\nexcept ImportError:\n    act = torch.tanh\n"
    text = f"import torch\n{imports}\n\ndef f(x: torch.Tensor):\n    return act(x)\n"
    code = convert(text).code
    assert "return act(x)" in code


def test_a_base_class_is_the_known_one() -> None:
    imports = fallback("from elsewhere import Base", "from torch.nn import Module as Base")
    code = convert(f"{imports}\n\nclass Net(Base):\n    def forward(self, x):\n        return x.relu()\n").code
    assert "class Net(nnx.Module)" in code and "def __call__" in code


VERSIONS = """\
import torch
from packaging.version import parse as V

if V(torch.__version__) {asked}:
    {first}
else:
    {second}


def f(x: torch.Tensor):
    with autocast(False):
        return torch.relu(x)
"""
IMPORT, OWN = "from torch.cuda.amp import autocast", "from elsewhere import autocast"


@pytest.mark.parametrize(("asked", "first", "second"), [('>= V("1.6.0")', IMPORT, OWN), ('< V("1.6.0")', OWN, IMPORT)])
def test_a_name_is_what_every_known_pytorch_makes_it(asked: str, first: str, second: str) -> None:
    done = convert(VERSIONS.format(asked=asked, first=first, second=second))
    assert not done.gaps
    lines = [line for line in done.code.splitlines() if line.strip()]
    assert lines == [
        "import jax",
        "from packaging.version import parse as V",
        "def f(x: jax.Array):",
        "    return jax.nn.relu(x)",
    ]


def test_a_version_that_tells_pytorchs_apart_leaves_both() -> None:
    code = convert(VERSIONS.format(asked='>= V("99.0")', first=IMPORT, second=OWN)).code
    assert OWN in code and "with autocast(False):" in code
