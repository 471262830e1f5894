"""Names that a file imports from its project, of which JAX has no use: their file may have them no more."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

CONF = 'import torch\n\ndevice = torch.device("cpu")\ngen = torch.Generator().manual_seed(1)\nrate = 0.1\n'
USE = "import torch\n{imports}\n\n\ndef f(x):\n    return torch.rand(2, generator=gen) + x.to(device) * {rate}\n"
OUT = {
    ("from conf import device, gen, rate", "rate"): "from conf import rate\n",
    ("from conf import device, gen as gen", "1"): "import conf\n",
    ("from .conf import device, gen", "1"): "from . import conf\n",
    ("from .a.conf import device, gen", "1"): "from .a import conf\n",
    ("from a.conf import device, gen", "1"): "import a.conf\n",
    ("from conf import device\nfrom conf import gen, rate as conf", "conf"): "from conf import device\n",
}


def converted(imports: str, rate: str = "1", used: str = "", text: str | None = CONF) -> str:
    source = USE.format(imports=imports, rate=rate)
    done = convert(source, resolve=lambda level, name: text, used_elsewhere=lambda names: {used} & set(names))
    assert not done.gaps
    return done.code


@pytest.mark.parametrize(("imports", "rate"), OUT)
def test_what_the_output_does_not_read_is_not_imported(imports: str, rate: str) -> None:
    code = converted(imports, rate)
    assert OUT[imports, rate] in code
    assert "gen" not in code.replace("generator", "").replace("rng", "")


def test_what_other_files_import_from_here_stays() -> None:
    assert "from conf import gen\n" in converted("from conf import device, gen", used="gen")


def test_modules_that_are_not_converted_stay() -> None:
    assert "from conf import device, gen\n" in converted("from conf import device, gen", text=None)


def test_what_the_source_does_not_read_either_stays() -> None:
    assert "from conf import device, other, gen\n" not in converted("from conf import device, other, gen")
    assert "from conf import other\n" in converted("from conf import device, other, gen")


SEEDED = "import torch\n\n\ndef set_seed(seed):\n    torch.manual_seed(seed)\n\n\ndef make(n, seed=None):\n{body}"
ALWAYS = "    torch.manual_seed(seed)\n    return torch.randn(n)\n"
EITHER = "    if n > 3:\n        torch.manual_seed(1)\n    else:\n        set_seed(2)\n    return torch.randn(n)\n"
INSIDE = "    if seed is not None:\n        set_seed(seed)\n        return torch.randn(n)\n    return torch.zeros(n)\n"
SOMETIMES = "    if seed is not None:\n        torch.manual_seed(seed)\n    return torch.randn(n)\n"
BEFORE = "    x = torch.randn(n)\n    torch.manual_seed(seed)\n    return x + torch.randn(n)\n"
THEN = "    if seed is not None:\n        set_seed(seed)\n    return torch.nn.Linear(n, n)\n"


@pytest.mark.parametrize(
    ("body", "takes"),
    [(ALWAYS, False), (EITHER, False), (INSIDE, False), (SOMETIMES, True), (BEFORE, True), (THEN, True)],
)
def test_functions_that_seed_on_some_ways_are_handed_rngs_as_their_own_file_has_them(body: str, takes: bool) -> None:
    own = SEEDED.format(body=body)
    code = convert(
        "import torch\nfrom made import make\n\n\ndef f(x: torch.Tensor):\n    return make(3)\n",
        resolve=lambda level, name: own,
    ).code
    assert ("make(3, rngs=rngs)" in code) is takes
    assert ("rngs: nnx.Rngs" in convert(own).code.partition("def make")[2].partition("\n\n")[0]) is takes
