"""``--with PACKAGE``: what code uses of an installed library is converted along."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from t2j_lsp.cli import main
from t2j_lsp.contract import Options
from t2j_lsp.libraries import installed, known
from t2j_lsp.libraries.along import libraries_along
from t2j_lsp.libraries.prepared import prepared

from .stand_in_library import FILES, LIBRARY, install

HEAD = "import torch\nfrom pictures import models, transforms\nfrom torch import nn\n\ntorch.manual_seed(0)\n"
TRAINING = """
crop = transforms.preset(8)
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1)
x, y = crop(torch.randn(4, 3, 8, 9)), torch.tensor([0, 1, 2, 0])
for step in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""
MODELS = {
    "a head": "model = models.small_net(num_classes=3)\nmodel.fc = nn.Linear(model.fc.in_features, 3)\n",
    "frozen": """model = models.small_net(num_classes=3)
for p in model.parameters():
    p.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 3)
""",
    "weights": "model = models.small_net(weights=models.Net_Weights.DEFAULT)\n",
    "a child": "model = models.net.small_net(num_classes=3)\nmodel.classifier[2] = nn.Linear(3, 4)\n",
    "features": """class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = models.small_net().features
        self.fc = nn.Linear(8 * 4 * 4, 3)

    def forward(self, x):
        return self.fc(self.body(x).flatten(1))


model = Own()
""",
}


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project that uses the library, which this interpreter has."""
    project = tmp_path / "project"
    project.mkdir()
    install(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setitem(known.KNOWN, "pictures", LIBRARY)
    installed.find_installed.cache_clear()
    return project


@pytest.fixture
def visible_library(library: Path) -> Path:
    """The same, where a check's workers find the library: they take no paths from the environment."""
    shutil.copytree(library.parent / "site" / "pictures", library / "pictures")
    return library


def script(folder: Path, model: str) -> Path:
    path = folder / "train.py"
    path.write_text(HEAD + MODELS[model] + TRAINING, encoding="utf-8")
    return path


def convert(folder: Path, model: str = "a head", *options: str) -> int:
    words = ["-o", str(folder / "train_jax.py"), "--with", "pictures", *options]
    return main(["convert", str(script(folder, model)), *words])


def test_a_model_stands_in_a_package_beside_the_output(library: Path) -> None:
    assert convert(library) == 0
    code = (library / "train_jax.py").read_text()
    assert "from pictures import transforms\n" in code
    assert "from pictures_jax import models\n" in code
    assert "model = models.small_net(num_classes=3, rngs=rngs)\n" in code
    assert "model.fc = nnx.Linear(\n    model.fc.in_features, 3," in code
    package = library / "pictures_jax"
    written = {str(path.relative_to(package)) for path in package.rglob("*.*") if path.is_file()}
    assert written == {"__init__.py", "layers.py", "models/__init__.py", "models/net.py", "torch_helpers.py"}
    assert (package / "LICENSE").read_text() == "Do as you like.\n"
    assert "small_net" in (package / "models/__init__.py").read_text()
    net = (package / "models/net.py").read_text()
    assert net.startswith(
        "# From pictures/models/net.py of pictures 1.2, MIT (see pictures_jax/LICENSE): what is used of it, "
        'converted to JAX by t2j.\n# Copyright: the authors of pictures.\n"""Small networks."""\n'
    )
    assert "from pictures.models.net import Net_Weights\n" in net
    assert "class Net(nnx.Module):" in net
    assert "\n\n# What it is made by.\ndef small_net(" in net
    assert not any(word in net for word in ("other_net", "register", "log_once", "torch.", "class Net_Weights"))
    assert "Unused" not in (package / "layers.py").read_text()


def test_without_the_option_nothing_is_taken_along(library: Path) -> None:
    main(["convert", str(script(library, "a head")), "-o", str(library / "out.py")])
    assert "from pictures import models, transforms" in (library / "out.py").read_text()
    assert not (library / "pictures_jax").exists()


def test_coverage_counts_what_is_converted_along(library: Path) -> None:
    counts = {}
    for options in ((), ("--with", "pictures")):
        report = library / f"{len(options)}.json"
        main(["coverage", str(script(library, "a head")), *options, "--json", str(report)])
        counts[options] = json.loads(report.read_text())
    alone, along = counts.values()
    assert alone["files"] == 1 < along["files"]
    assert along["converted"] > alone["converted"] and along["gaps"] == 0


def test_files_that_were_converted_before_keep_what_they_use(library: Path) -> None:
    assert convert(library, "a head") == 0
    other = library / "other.py"
    other.write_text("import pictures\n\nprint(pictures.models.other_net().fc)\nprint(pictures.models.deep(2))\n")
    assert main(["convert", str(other), "-o", str(library / "other_jax.py"), "--with", "pictures"]) == 0
    assert "import pictures_jax.models\n" in (library / "other_jax.py").read_text()
    net = (library / "pictures_jax/models/net.py").read_text()
    assert "def small_net(" in net
    assert "def other_net(" in net
    names = (library / "pictures_jax/models/__init__.py").read_text()
    assert all(name in names for name in ("small_net", "other_net", "deep"))
    assert "from pictures_jax.layers import ConvBlock" in (library / "pictures_jax/models/deep.py").read_text()


def test_a_folder_has_one_package_for_all_of_its_files(library: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, out = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("out")
    (folder / "net.py").write_text("from pictures.models import small_net\n\n\ndef make():\n    return small_net()\n")
    (folder / "train.py").write_text("import torch\nfrom net import make\n\nprint(make()(torch.ones(1, 3, 8, 8)))\n")
    report = out / "report.json"
    assert main(["convert", str(folder), "-o", str(out), "--with", "pictures", "--json", str(report)]) == 0
    assert "return small_net(rngs=rngs)" in (out / "net.py").read_text()
    assert "make(rngs=rngs)" in (out / "train.py").read_text()
    assert (out / "pictures_jax/models/net.py").is_file()
    files = json.loads(report.read_text())["libraries"]
    assert {one["source"] for one in files} >= {"pictures/models/net.py", "pictures/layers.py"}


def test_what_is_used_by_a_name_that_is_not_known_stays(library: Path) -> None:
    path = library / "train.py"
    path.write_text("import sys\n\nimport torch\nfrom pictures import models\n\nnet = getattr(models, sys.argv[1])()\n")
    main(["convert", str(path), "-o", str(library / "out.py"), "--with", "pictures"])
    assert "from pictures import models" in (library / "out.py").read_text()
    assert not (library / "pictures_jax").exists()


BY_NAME = {
    'getattr(models, "small_net")(num_classes=3)': "models.small_net(num_classes=3, rngs=rngs)",
    'models.__dict__["small_net"](num_classes=3)': "models.small_net(num_classes=3, rngs=rngs)",
    'vars(models.net)["other_net"]()': "models.net.other_net(rngs=rngs)",
    'models.get_model("small_net", num_classes=3)': "models.small_net(num_classes=3, rngs=rngs)",
    'models.get_model("Other_Net")': "models.other_net(rngs=rngs)",
}


@pytest.mark.parametrize("asked", BY_NAME)
def test_what_is_asked_for_by_a_written_name_is_taken_along(library: Path, asked: str) -> None:
    path = library / "train.py"
    path.write_text(f"import torch\nfrom pictures import models\n\nnet = {asked}\nprint(net(torch.ones(1, 3, 8, 8)))\n")
    assert main(["convert", str(path), "-o", str(library / "out.py"), "--with", "pictures"]) == 0
    code = (library / "out.py").read_text()
    assert "from pictures_jax import models\n" in code
    assert f"net = {BY_NAME[asked]}\n" in code


@pytest.mark.parametrize(
    "asked",
    ['models.get_model("unknown")', "models.get_model(name)", "getattr(other, name)()", 'models.make("other_net")'],
)
def test_names_that_say_nothing_stay(library: Path, asked: str) -> None:
    path = library / "train.py"
    path.write_text(f"import sys\nfrom pictures import models\n\nname = sys.argv[1]\nother = models\nnet = {asked}\n")
    main(["convert", str(path), "-o", str(library / "out.py"), "--with", "pictures"])
    assert f"net = {asked}" in (library / "out.py").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--with", "no_such_library"], "no package no_such_library is installed beside t2j"),
        (["--with", "pictures", "--target", "jax"], "--with is for --target nnx"),
    ],
)
def test_what_can_not_be_is_said(
    library: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(script(library, "a head")), "-o", str(library / "out.py"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (library / "out.py").exists()


def test_it_is_written_to_a_file(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(script(library, "a head")), "--with", "pictures"]) == 2
    assert "--with needs -o OUT" in capsys.readouterr().err


def test_a_library_file_without_what_stays_the_librarys() -> None:
    text = prepared(FILES["pictures/models/net.py"], "pictures.models.net", False, LIBRARY)
    assert "from pictures.transforms import preset\nfrom pictures.models._api import register, WeightsEnum\n" in text
    assert "from ..layers import ConvBlock\n" in text
    assert "from pictures.models.net import Net_Weights\n" in text
    assert "class Net_Weights" not in text
    assert "@register" not in text
    assert "log_once(self)" not in text


def test_it_lies_there_only_as_long_as_it_is_used(library: Path) -> None:
    with libraries_along([script(library, "a head")], Options(), ["pictures"]) as along:
        folder = along.packages["pictures_jax"]
        text = (folder / "models/net.py").read_text()
        assert along.converted_text(folder / "models/net.py") == text
        assert along.converted_text(library / "train.py") is None
        assert along.libraries == ["pictures 1.2"]
    assert not folder.exists()


@pytest.mark.jax
@pytest.mark.parametrize("model", [model for model in MODELS if model != "a head"])
def test_the_program_runs_as_pytorchs_does(
    visible_library: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(script(visible_library, model))]) == 0, capsys.readouterr()
    out = capsys.readouterr().out
    assert "note: converted along: what is used of pictures 1.2\n" in out
    assert out.endswith("equivalent\n")
    assert not (visible_library / "pictures_jax").exists()


@pytest.mark.jax
def test_a_mistake_in_a_converted_library_is_found(visible_library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(visible_library, "a head") == 0
    net = visible_library / "pictures_jax/models/net.py"
    right = net.read_text()
    words = [str(visible_library / "train.py"), str(visible_library / "train_jax.py")]
    assert main(["run", *words]) == 0, capsys.readouterr()
    net.write_text(right.replace("x = self.features(x).mean", "x = 1.01 * self.features(x).mean"))
    assert net.read_text() != right
    assert main(["run", *words]) == 1, capsys.readouterr()


OWN = (
    f"import torch\nfrom pictures import models\nfrom torch import nn\n\n\n{MODELS['features'].partition('model =')[0]}"
)


@pytest.mark.jax
def test_a_file_is_checked_with_what_it_uses(visible_library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, converted = visible_library / "own.py", visible_library / "own_jax.py"
    path.write_text(OWN)
    assert main(["check", str(path)]) == 0, capsys.readouterr()
    assert "note: converted along: what is used of pictures 1.2\n" in capsys.readouterr().out
    assert not (visible_library / "pictures_jax").exists()
    assert main(["convert", str(path), "-o", str(converted), "--with", "pictures"]) == 0
    shutil.move(visible_library / "pictures_jax", visible_library / "elsewhere")
    assert main(["check", str(path), str(converted)]) == 3
    assert f"note: pictures_jax is not beside {converted}: t2j convert" in capsys.readouterr().out
    shutil.move(visible_library / "elsewhere", visible_library / "pictures_jax")
    assert main(["check", str(path), str(converted)]) == 0, capsys.readouterr()
    net = visible_library / "pictures_jax/models/net.py"
    layers = visible_library / "pictures_jax/layers.py"
    assert "nnx.relu" in layers.read_text(), net.read_text()
    layers.write_text(layers.read_text().replace("nnx.relu", "nnx.gelu"))
    assert main(["check", str(path), str(converted)]) == 1
