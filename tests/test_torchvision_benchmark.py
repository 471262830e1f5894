"""The benchmark over torchvision's models, on a small package of the same layout, converted by hand."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks import torchvision_models
from benchmarks.observed import distance
from benchmarks.torchvision_cases import CASES, FAMILIES, Case
from benchmarks.torchvision_sources import SourcesNotFound, find_sources, narrowed
from t2j_lsp.contract import Finding, Severity, Span

MISC = """
import torch
from torch import nn

class ConvNorm(nn.Sequential):
    def __init__(self, i: int, o: int) -> None:
        super().__init__(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o))
"""
MODEL = """
import torch
from torch import nn

from ..datasets import Needless
from ..ops.misc import ConvNorm

class Toy(nn.Module):
    def __init__(self, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.conv = ConvNorm(3, 64)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x):
        return self.fc(self.dropout(torch.relu(self.conv(x)).mean((2, 3))))

def needless() -> Needless:
    return Needless()
"""
MISC_JAX = """
import jax.numpy as jnp
from flax import nnx

class ConvNorm(nnx.Module):
    def __init__(self, i: int, o: int, *, rngs: nnx.Rngs) -> None:
        setattr(self, "0", nnx.Conv(i, o, (3, 3), use_bias=False, rngs=rngs))
        setattr(self, "1", nnx.BatchNorm(o, momentum=0.9, epsilon=1e-5, use_fast_variance=False, rngs=rngs))

    def __call__(self, x):
        conv, norm = getattr(self, "0"), getattr(self, "1")
        x = conv(jnp.moveaxis(x, 1, -1))
        y = norm(x)
        if not norm.use_running_average:
            n = x.size // x.shape[-1]
            norm.var[...] = norm.var[...] + 0.1 * x.var((0, 1, 2)) / (n - 1)
        return jnp.moveaxis(y, -1, 1)
"""
MODEL_JAX = """
import jax
from flax import nnx

from ..ops.misc import ConvNorm

class Toy(nnx.Module):
    def __init__(self, num_classes: int, dropout: float, *, rngs: nnx.Rngs) -> None:
        self.conv = ConvNorm(3, 8, rngs=rngs)
        self.dropout = nnx.Dropout(dropout, rngs=rngs)
        self.fc = nnx.Linear(8, num_classes, rngs=rngs)

    def __call__(self, x):
        return self.fc(self.dropout(jax.nn.relu(self.conv(x)).mean((2, 3))))

def t2j_benchmark_model(p: float, *, rngs: nnx.Rngs) -> nnx.Module:
    return Toy(num_classes=3, dropout=p, rngs=rngs)
"""
TOY = Case("toy", "", "Toy(num_classes=3, dropout=p)", (2, 3, 5, 4), divisor=8)
BROKEN = "raise ImportError('importing torchvision fails beside another torch')\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A torchvision that can't be imported, with the toy model in it."""
    files = {"__init__.py": BROKEN, "models/__init__.py": BROKEN, "ops/__init__.py": BROKEN}
    files |= {"models/toy.py": MODEL, "ops/misc.py": MISC}
    for name, text in files.items():
        path = tmp_path / "source" / "torchvision" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "source"


def measure(
    root: Path, monkeypatch: pytest.MonkeyPatch, model: str = MODEL_JAX, misc: str = MISC_JAX, gap: str | None = None
) -> torchvision_models.Outcome:
    """The outcome where the converter gives these texts, with a gap at the line of the source that holds ``gap``."""

    def converted(path: Path, text: str) -> tuple[str, tuple[Finding, ...]]:
        lines = [i for i, line in enumerate(text.splitlines(), 1) if gap is not None and gap in line]
        gaps = (Finding(Span(i, 0, i, 1), "torch.x", "no-rule", Severity.GAP, "no rule") for i in lines)
        return {"toy.py": model, "misc.py": misc}[path.name], tuple(gaps)

    monkeypatch.setattr(torchvision_models, "_converted", converted)
    return torchvision_models.measure(TOY, root, root.parent / "out")


def test_a_right_conversion_is_equal(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measure(root, monkeypatch)
    assert outcome.verdict == "equal", list(outcome.details())
    assert set(outcome.measured) == {*torchvision_models.KINDS, "eager"}
    assert "equal" in outcome.line()


@pytest.mark.parametrize(
    ("right", "wrong", "kinds"),
    [
        ("jax.nn.relu(", "jax.nn.gelu(", {"eval_outputs", "train_outputs", "parameter_gradients", "eager"}),
        ("momentum=0.9", "momentum=0.99", {"buffers"}),
        ("/ (n - 1)", "/ n", {"buffers"}),
        ("moveaxis(y, -1, 1)", "moveaxis(jax.lax.stop_gradient(y), -1, 1)", {"parameter_gradients", "input_gradient"}),
    ],
)
def test_a_wrong_conversion_is_different_where_it_is_wrong(
    root: Path, monkeypatch: pytest.MonkeyPatch, right: str, wrong: str, kinds: set[str]
) -> None:
    assert right in MODEL_JAX + MISC_JAX
    misc = "import jax\n" + MISC_JAX.replace(right, wrong)
    outcome = measure(root, monkeypatch, MODEL_JAX.replace(right, wrong), misc)
    assert outcome.verdict == "different"
    assert kinds <= {kind for kind, d in outcome.measured.items() if not d.equal}
    if kinds == {"buffers"}:
        assert outcome.measured["train_outputs"].equal


def test_a_gap_counts_where_the_model_runs_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(root, monkeypatch, gap="torch.relu").verdict == "gaps"
    assert measure(root, monkeypatch, gap="return Needless()").verdict == "equal"


def test_a_failing_conversion_is_an_outcome_with_its_reason(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measure(root, monkeypatch, MODEL_JAX.replace("3, 8", "3, 7"))
    assert outcome.verdict == "failed"
    assert outcome.failure is not None and outcome.failure.startswith("JAX: WeightsError")


def test_distances_are_relative_and_tell_names_and_shapes() -> None:
    a = {"x": np.array([1e6, 2.0]), "zero": np.array([0.0])}
    assert distance(a, {"x": np.array([1e6, 2.0 + 1e-5]), "zero": np.array([1e-9])}).equal
    assert not distance(a, {"x": np.array([1e6, 3.0]), "zero": np.array([0.0])}).equal
    assert distance(a, {"x": a["x"]}).where == "only on one side: zero"
    assert "shape (3,)" in distance(a, {**a, "x": np.zeros(3)}).where
    assert not distance(a, {**a, "x": np.array([np.nan, 2.0])}).equal


def test_narrowing_divides_integers_and_nothing_else() -> None:
    text = 'a = [64, 7, 64.0, "64", 0, x64, 1024 * 3]  # 64\nb = """\n64"""; c = 128\n'
    assert narrowed(text, 8) == 'a = [8, 7, 64.0, "64", 0, x64, 128 * 3]  # 64\nb = """\n64"""; c = 16\n'
    assert narrowed(text, 1) == text


def test_the_cases_cover_every_family_of_the_goal() -> None:
    assert len(FAMILIES) == 17
    assert all("num_classes=3" in case.make for case in CASES)


def test_sources_are_found_in_a_wheel_and_in_a_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert find_sources(root) == root
    wheel = tmp_path / "torchvision-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in root.rglob("*.py"):
            archive.write(file, file.relative_to(root).as_posix())
        archive.writestr("torchvision/_C.so", b"native")
    path = find_sources(wheel)
    assert (path / "torchvision/models/toy.py").read_text() == MODEL
    assert not (path / "torchvision/_C.so").exists()
    with pytest.raises(SourcesNotFound, match="neither a torchvision wheel"):
        find_sources(tmp_path / "none")
