"""Other files of a project: what they say reaches the converted one, and no more of them is read than that takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from t2j_lsp import convert
from t2j_lsp.check.program.workspace import find_workspace
from t2j_lsp.contract import Options
from t2j_lsp.files.sources import neighbours
from t2j_lsp.translate.inference import neighbours as reading
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.neighbours import Neighbours
from t2j_lsp.translate.source.text import Source

TORCH = "import torch\nfrom torch import nn\n"
BLOCK = TORCH + "class Block(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
USER = TORCH + "{}\ndef make(n):\n    return {}(n)\n"
MAKER = TORCH + "def make_norm(n):\n    return nn.Linear(n, n)\n"


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., Path]:
    """Writes a package; the folder."""

    def write(**texts: str) -> Path:
        for name, text in {"__init__": "", **texts}.items():
            path = (tmp_path / "pkg").joinpath(*name.split("__in__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "pkg"

    return write


def converted(path: Path) -> str:
    return convert(path.read_text(), resolve=neighbours(path)).code


@pytest.mark.parametrize(
    ("init", "imported"),
    [
        pytest.param("", "from .makers import make_norm as norm", id="renamed"),
        pytest.param("", "from .makers import *\nnorm = make_norm", id="everything"),
        pytest.param("from .makers import make_norm as norm\n", "from . import norm", id="by the package"),
        pytest.param("from .makers import *\n", "from . import make_norm as norm", id="everything by the package"),
        pytest.param("", "from . import makers\nnorm = makers.make_norm", id="a file as a value"),
        pytest.param(
            "try:\n    from .makers import make_norm as norm\nexcept ImportError:\n    raise\n",
            "from . import norm",
            id="if it can be",
        ),
        pytest.param(
            "import sys\nif not sys.flags.optimize:\n    print(1)\nelse:\n    from .makers import make_norm as norm\n",
            "from . import norm",
            id="in the other branch of a block",
        ),
        pytest.param("if True:\n    from .makers import make_norm as norm\n", "from . import norm", id="in a block"),
        pytest.param(
            "from .makers import make_norm\nTABLE = {'norm': make_norm}\n",
            "from . import TABLE\nnorm = TABLE['norm']",
            id="in a table",
        ),
    ],
)
def test_makers_of_modules_are_known_however_they_are_imported(
    package: Callable[..., Path], init: str, imported: str
) -> None:
    folder = package(__init__=init, makers=MAKER, net=USER.format(imported, "norm"))
    assert "norm(n, rngs=rngs)" in converted(folder / "net.py")


def test_what_is_imported_is_followed_through_many_files(package: Callable[..., Path]) -> None:
    files = {f"level{n}": f"from .level{n + 1} import make_norm\n" for n in range(6)} | {"level6": MAKER}
    folder = package(net=USER.format("from .level0 import make_norm", "make_norm"), **files)
    assert "make_norm(n, rngs=rngs)" in converted(folder / "net.py")


def test_files_that_import_each_other_are_read(package: Callable[..., Path]) -> None:
    one = (
        TORCH + "from .two import Two\nclass One(nn.Module):\n    pair = Two\ndef one(n):\n    return nn.Linear(n, n)\n"
    )
    two = TORCH + "from .one import one\nclass Two(nn.Module):\n    def forward(self, x):\n        return one(3)(x)\n"
    folder = package(one=one, two=two, net=USER.format("from .two import Two\nfrom .one import one", "one"))
    code = converted(folder / "net.py")
    assert "one(n, rngs=rngs)" in code
    assert "one(3, rngs=self.rngs)(x)" in converted(folder / "two.py")


def asked_for(text: str, files: dict[str, str]) -> tuple[set[str], Inference]:
    asked = set()

    def resolve(level: int, name: str) -> str | None:
        if name in files:
            asked.add(name)
        return files.get(name)

    return asked, Inference(Source(text), resolve, project=Neighbours())


def test_files_are_read_only_for_names_that_are_used() -> None:
    files = {
        "blocks": BLOCK.replace("import torch\n", "import torch\nfrom .heavy import Heavy\n")
        + "def unused():\n    return Heavy()\n",
        "heavy": BLOCK.replace("Block", "Heavy"),
    }
    asked, inference = asked_for(TORCH + "from .blocks import Block\nnet = Block()\n", files)
    assert asked == {"blocks"}
    asked, inference = asked_for(TORCH + "from .blocks import unused\nnet = unused()\n", files)
    assert asked == {"blocks", "heavy"}
    assert "Heavy" in str(inference.env["net"])


def test_a_handler_that_an_import_falls_back_to_is_read_with_what_it_names() -> None:
    files = {
        "nets": TORCH
        + "def make():\n    return nn.Linear(2, 2)\n"
        + "try:\n    net = fast\nexcept NameError:\n    net = make()\n"
    }
    _, inference = asked_for(TORCH + "from .nets import net\n", files)
    assert inference.project is not None
    (other,) = inference.project.inferred()
    assert "make" in other.env


def test_methods_of_other_files_are_inferred_when_they_are_called() -> None:
    files = {
        "nets": TORCH
        + "class Net(nn.Module):\n"
        + "    def __init__(self):\n        super().__init__()\n        self.late()\n"
        + "    def late(self):\n        self.kept = nn.Linear(2, 2)\n"
        + "    def asked(self):\n        return torch.zeros(2)\n"
        + "    def other(self):\n        return torch.ones(2)\n"
    }
    text = TORCH + "from .nets import Net\nnet = Net()\ny = net.asked()\nkept = net.kept\n"
    _, inference = asked_for(text, files)
    assert inference.project is not None
    (other,) = inference.project.inferred()
    returned = {info.name: info.returns for info in other.functions.values()}
    assert returned["asked"] == inference.env["y"] is not None
    assert returned["other"] is None
    assert "Linear" in str(inference.env["kept"])


def test_what_would_run_away_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        f"f{n}": TORCH + f"from .f{n + 1} import f{n + 1}\ndef f{n}():\n    return f{n + 1}()\n" for n in range(6)
    } | {"f6": TORCH + "def f6():\n    return torch.zeros(2)\n"}
    text = TORCH + "from .f0 import f0\nx = f0()\n"
    asked, inference = asked_for(text, files)
    assert "Tensor" in str(inference.env["x"])
    for limit, value in (("MOST_NESTED", 3), ("MOST_LINES", 5), ("MOST_FILES", 3)):
        with monkeypatch.context() as patch:
            patch.setattr(reading, limit, value)
            asked, inference = asked_for(text, files)
            assert "Tensor" not in str(inference.env["x"])
            assert len(asked) <= 4


def test_a_conversion_leaves_nothing_behind_for_the_next(package: Callable[..., Path]) -> None:
    mixin = TORCH + "class Mixin:\n    def helper(self):\n        return torch.rand(2)\n"
    net = (
        TORCH + "from .mixin import Mixin\nclass Net(Mixin, nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    other = TORCH + "from .mixin import Mixin\ndef f():\n    return Mixin().helper()\n"
    folder = package(mixin=mixin, net=net, other=other)
    alone = converted(folder / "other.py")
    converted(folder / "net.py")
    assert converted(folder / "other.py") == alone


def test_a_function_that_says_it_returns_data_is_not_read_to_see_whether_it_makes_modules(
    package: Callable[..., Path],
) -> None:
    ropes = (
        TORCH + "def scaled(x) -> tuple['torch.Tensor', float]:\n    return torch.cos(x), 1.0\n"
        "def plain(x):\n    return nn.Linear(x, x)\n"
        "ROPES = {'a': scaled, 'b': scaled, 'c': scaled}\nMAKERS = {'a': plain, 'b': plain}\n"
    )
    path = package(ropes=ropes, net="") / "net.py"
    project = Neighbours()
    text = TORCH + "from .ropes import ROPES, MAKERS\ndef use(kind, n):\n    return MAKERS[kind](n)\n"
    Inference(Source(text), neighbours(path), project=project)
    (file,) = (one for one in project.inferred() if "ROPES" in one.source.text)
    inferred = {info.name for info in file.functions.values() if info.returns is not None}
    assert inferred == {"plain"}
    assert "rngs" in convert(text, resolve=neighbours(path)).code


def test_trees_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_parsed", type(reading._parsed)())
    monkeypatch.setattr(reading, "KEPT_CHARACTERS", 10)
    first = reading.parsed("a = 1\n")
    assert reading.parsed("a = 1\n") is first
    reading.parsed("bbbb = 22222\n")
    assert list(reading._parsed) == ["bbbb = 22222\n"]


@pytest.mark.parametrize("folder", ["site-packages", "target"])
def test_what_is_installed_beside_a_package_is_not_its_project(folder: str, tmp_path: Path) -> None:
    """Neither for conversions nor for checks; ``pip install --target`` names no folder, and notes what it installs."""
    top = tmp_path / folder
    (top / "library-1.0.dist-info").mkdir(parents=True)
    for name, text in {"pkg/__init__.py": "", "pkg/a.py": "A", "pkg/b.py": "B", "library/__init__.py": "L"}.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    resolve = neighbours(top / "pkg/a.py")
    assert resolve(0, "pkg.b") == resolve(1, "b") == "B"
    assert resolve(0, "library") is None
    assert find_workspace(top / "pkg/a.py").find("library") is None


def test_options_without_files_read_none() -> None:
    assert convert(USER.format("from .makers import make_norm", "make_norm")).code
    assert Options().resolve is None


def test_an_optimizer_that_another_file_makes_updates_the_module_of_the_loss(package: Callable[..., Path]) -> None:
    made = TORCH + "\n\ndef make(model):\n    optimizer = torch.optim.Adam(model.parameters())\n    return optimizer\n"
    loop = (
        TORCH + "from pkg.optimizers import make\n\n\ndef train(batches):\n    model = nn.Linear(3, 2)\n"
        "    optimizer = make(model)\n    for x in batches:\n        loss = model(x).sum()\n"
        "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n"
    )
    folder = package(optimizers=made, training=loop)
    done = convert(loop, resolve=neighbours(folder / "training.py"))
    assert "optimizer.update(model, grads)" in done.code
    assert any(note.name == "torch.optim.Optimizer" for note in done.notes)


ASKING = "from abc import ABC, abstractmethod\n\n\nclass Asking(ABC):\n{}    def forward(self, x):\n        return x\n"
ASKED = (
    TORCH
    + "from .asking import Asking\n\n\nclass Net(nn.Module, Asking):\n"
    + "    def forward(self, x):\n        return torch.exp(x)\n"
)


@pytest.mark.parametrize(("decorator", "gaps"), [("    @abstractmethod\n", 1), ("", 0)])
def test_a_forward_that_another_files_class_asks_for_is_said(
    package: Callable[..., Path], decorator: str, gaps: int
) -> None:
    """Python makes no instance of a class that lacks it."""
    root = package(asking=ASKING.format(decorator), nets=ASKED)
    path = root / "nets.py"
    assert len(convert(path.read_text(), resolve=neighbours(path)).gaps) == gaps


def test_a_file_and_the_one_of_its_name_further_out_are_two(package: Callable[..., Path]) -> None:
    """``..core`` of ``data/core.py`` is the package's ``core.py``, and not the file itself."""
    folder = package(
        core="import torch\nimport torch.nn.functional as F\n",
        data__in____init__="",
        data__in__core="from ..core import *\n",
        data__in__all="from .core import *\n",
        net="import torch\nfrom .data.all import *\n\n\ndef f(x):\n    return F.relu(x)\n",
    )
    assert "return jax.nn.relu(x)" in converted(folder / "net.py")


def test_a_namespace_that_an_import_of_everything_brings_is_said_where_it_is_not_in_sight() -> None:
    text = TORCH + "from elsewhere import *\n\n\ndef f(x: torch.Tensor, w):\n    return {} + other.run(np.ones(3))\n"
    (gap,) = convert(text.format("F.conv2d(x, w)")).gaps
    assert "what F is isn't in sight" in gap.reason
    assert not convert(text.format("x")).gaps


def test_what_a_body_asks_for_first_is_of_the_module_level(package: Callable[..., Path]) -> None:
    """`fill` is asked for while `Blocks.__init__` is read, and is no function inside it."""
    parts = (
        TORCH + "def fill(m):\n    nn.init.xavier_uniform_(m.weight)\n\n\n"
        "class Blocks(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.one = Block()\n\n\n"
        "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(3, 3)\n        fill(self.fc)\n"
    )
    net = (
        TORCH + "from . import parts\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.blocks = parts.Blocks()\n        self.fc = nn.Linear(3, 3)\n"
        "        parts.fill(self.fc)\n"
    )
    code = converted(package(parts=parts, net=net) / "net.py")
    assert "        parts.fill(self.fc, rngs=rngs)\n" in code and "Blocks(rngs=rngs)" in code
