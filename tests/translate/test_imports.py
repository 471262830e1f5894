"""Classes that come from a neighbouring file are known when its text can be had."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

LAYER = """
import torch


class Noise(torch.nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)
"""


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("from .noise import Noise", {(1, "noise"): LAYER}),
        ("from ..ops.noise import Noise", {(2, "ops.noise"): LAYER}),
        ("from pack.noise import Noise", {(0, "pack.noise"): LAYER}),
        ("from pack import Noise", {(0, "pack"): "from .noise import Noise", (0, "pack.noise"): LAYER}),
        ("from ..ops import Noise", {(2, "ops"): "from .noise import Noise", (2, "ops.noise"): LAYER}),
        ("from .a import Noise", {(1, "a"): "from .noise import Noise", (1, "noise"): LAYER}),
    ],
)
def test_a_module_class_of_another_file_takes_rngs(line: str, files: dict[tuple[int, str], str]) -> None:
    source = f"import torch\n{line}\n\n\ndef build():\n    return Noise()\n"
    code = translate(source, Options(resolve=lambda level, name: files.get((level, name)))).code
    assert "def build(*, rngs: nnx.Rngs):\n    return Noise(rngs=rngs)" in code


def test_without_the_other_file_nothing_is_assumed() -> None:
    source = "import torch\nfrom .noise import Noise\n\n\ndef build():\n    return Noise()\n"
    assert "return Noise()" in translate(source).code


def test_files_that_import_each_other_end() -> None:
    files = {(1, "a"): "from .b import B\nimport torch\n", (1, "b"): "from .a import A\nimport torch\n"}
    source = "import torch\nfrom .a import B\nx = torch.zeros(2)\n"
    assert "jnp.zeros(2)" in translate(source, Options(resolve=lambda level, name: files.get((level, name)))).code


def test_imports_that_are_there_are_not_added_again() -> None:
    source = "from functools import partial\n\nimport jax.numpy as jnp\nimport torch\n\nx = torch.zeros(2)\n"
    code = translate(source).code
    assert code.count("import jax.numpy as jnp") == 1
    assert "import torch" not in code


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("from flax import serialization  # why", "from flax import nnx, serialization  # why"),
        ("from flax import (serialization)", "from flax import nnx, serialization"),
        (
            "from flax import (\n    serialization,  # why\n    training,\n)",
            "from flax import (\n    nnx,\n    serialization,  # why\n    training,\n)",
        ),
        (
            "from flax import (  # all\n    linen,  # one\n    io,  # two\n)",
            "from flax import (  # all\n    linen,  # one\n    io,  # two\n    nnx,\n)",
        ),
        (
            "from flax import (linen,\n                  io)",
            "from flax import (linen,\n                  io,\n                  nnx)",
        ),
        ("from flax import (\n    io\n)", "from flax import (\n    io,\n    nnx,\n)"),
        (
            "from flax import (\n    linen, core,\n    io,\n)",
            "from flax import (\n    linen, core,\n    io,\n)\nfrom flax import nnx",
        ),
        ("from flax import (\n    io  # why\n)", "from flax import (\n    io,  # why\n    nnx,\n)"),
    ],
)
def test_a_name_joins_the_import_of_its_module(source: str, wanted: str) -> None:
    code = translate(f"import torch\n{source}\n\nlayer = torch.nn.ReLU()\n").code
    assert f"{wanted}\n\n" in code
    assert code.count("from flax import") == wanted.count("from flax import")


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("from torch import ones, save_it, Tensor", "from torch import save_it"),
        ("from torch import (\n    ones,\n    save_it,\n)", "from torch import save_it"),
        (
            "from torch import (\n    ones,  # one\n    save_it,  # two\n)",
            "from torch import (\n    save_it,  # two\n)",
        ),
        (
            "from torch import (\n    save_it,  # two\n    ones,  # one\n)",
            "from torch import (\n    save_it,  # two\n)",
        ),
        (
            "from torch import (\n    save_it as kept,  # two\n    ones\n)",
            "from torch import (\n    save_it as kept,  # two\n)",
        ),
    ],
)
def test_the_names_that_stay_keep_their_comments(source: str, wanted: str) -> None:
    name = "kept" if "kept" in source else "save_it"
    for indent in ("", "    "):
        text = f"{source}\nx = {name}(ones(2))".replace("\n", f"\n{indent}")
        code = translate(f"{'if True:' if indent else ''}\n{indent}{text}\n").code
        assert indent + wanted.replace("\n", f"\n{indent}") + "\n" in code


def test_numpy_that_a_script_imports_half_way_is_imported_where_it_is_needed_first() -> None:
    """``tensor.numpy()`` needs no numpy in PyTorch; the array's does."""
    text = "import torch\na = torch.ones(5).numpy()\nprint(a)\nimport numpy as np\nb = np.ones(5)\n"
    done = translate(text)
    assert not done.gaps
    wanted = "import jax.numpy as jnp\nimport numpy as np\na = np.asarray(jnp.ones(5))\nprint(a)\nb = np.ones(5)\n"
    assert done.code == wanted
    assert translate(wanted).code == wanted


def test_one_that_is_needed_behind_it_only_stays() -> None:
    text = "import torch\nx = torch.ones(5)\nprint(x)\nimport numpy as np\nb = np.ones(5) + x.numpy()\n"
    code = translate(text).code
    assert code.count("import numpy as np") == 1
    assert code.index("print(x)") < code.index("import numpy as np")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("import os, torch; import torch.nn.functional as F", "import os; pass"),
        ("import os; import torch, sys; import json", "import os; import sys; import json"),
        ("import os, torch; print(os.sep)", "import os; print(os.sep)"),
    ],
)
def test_imports_may_share_a_line(line: str, wanted: str) -> None:
    code = translate(f"{line}\nimport torch\nprint(torch.ones(3), [m.__name__ for m in (os,)])\n").code
    assert f"\n{wanted}\n" in code or code.startswith(f"{wanted}\n")


STARS = """
from torch.nn import *
from elsewhere import *

LAYERS = [Linear, Conv2d]


def kind(layer):
    return isinstance(layer, Sequential)
"""


def test_names_that_a_later_import_of_everything_may_bring_are_gaps() -> None:
    """Either module may have brought them: the import of PyTorch's went, and nothing was said."""
    translation = translate(STARS)
    assert [gap.name for gap in translation.gaps] == ["Linear", "Sequential"]
    assert "isn't in sight" in translation.gaps[0].reason
    assert "from torch.nn import *\n" in translation.code
    assert translate(translation.code).code == translation.code


@pytest.mark.parametrize(("use", "gaps"), [("y = claim(x)", 1), ("y = claim(x), torch.exp(x)", 1), ("y = relu(x)", 0)])
def test_names_that_no_rule_knows_and_only_pytorch_can_bring_are_gaps(use: str, gaps: int) -> None:
    """The import went, and the name had no meaning in the output."""
    source = "import torch\nfrom torch.nn.functional import *\nfrom torch.utils.data.worker import *\n\n\n"
    translation = translate(f"{source}def f(x: torch.Tensor):\n    {use}\n    return y\n")
    assert [(gap.name, gap.code) for gap in translation.gaps] == [("claim", "left")] * gaps
    assert ("worker import *" in translation.code) == bool(gaps)


def test_a_class_of_the_file_is_none_of_what_an_import_of_everything_brings() -> None:
    translation = translate("from torch.nn import *\n\n\nclass Linear:\n    pass\n\n\nmade = Linear()\n")
    assert "made = Linear()" in translation.code and "nnx.Linear" not in translation.code
    assert translation.code.count("class Linear") == 1


@pytest.mark.parametrize(
    ("import_", "use", "wanted"),
    [
        ("import itertools", "itertools.chain(a.parameters(), b.parameters())", ""),
        ("from itertools import chain", "chain(a.parameters(), b.parameters())", ""),
        ("from itertools import chain, count", "chain(a.parameters(), b.parameters())", "from itertools import count"),
        (
            "import itertools",
            "itertools.chain(a.parameters(), b.parameters())\nprint(eval('1 + 1'))",
            "import itertools",
        ),
    ],
)
def test_what_only_pytorchs_way_needed_of_python_goes(import_: str, use: str, wanted: str) -> None:
    source = f"{import_}\nimport torch\na, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)\nboth = {use}\n"
    code = translate(source + "opt = torch.optim.SGD(both, lr=0.1)\n").code
    assert [line for line in code.splitlines() if "itertools" in line] == ([wanted] if wanted else [])


def test_what_python_has_stays_where_it_was_never_read_or_a_helper_reads_it() -> None:
    source = "import time\nimport math\nimport torch\nimport torch.nn.functional as F\n\n\ndef f(x):\n"
    code = translate(source + "    return F.gaussian_nll_loss(x, x, x * math.e - x, full=True)\n").code
    assert "import time\nimport math\n" in code
