"""Verdicts in time: what only repeats is left out, inputs become smaller, and mistakes are still found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from t2j_lsp import convert
from t2j_lsp.check.process.budget import TimeBudget
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.worker import Kind, OutOfMemory
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict, VerdictKind

from .conftest import Check

DEEP = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels, eps=1e-3)
        self.skip = nn.AvgPool2d(stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.leaky_relu(self.bn2(self.conv2(y)) + self.skip(x), 0.1)


# t2j: x=f32[3, 3, 16, 24]
class Deep(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(*[Block(8, 2 if i == 1 else 1) for i in range(depth)])
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))
"""
FEWER = DEEP.replace("depth=6", "depth=3")
"""The budget is nothing for both; a mistake is looked for in the one that compiles in half the time."""
# So large that PyTorch alone takes long on any machine: then its inputs become smaller before JAX compiles for them.
VOLUME = """
import torch
import torch.nn as nn


# t2j: x=f32[12, 3, 24, 96, 112]
class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv3d(3, 16, (3, 5, 5), stride=(1, 2, 2), padding=(1, 2, 2))
        self.norm = nn.BatchNorm3d(16)
        self.mix = nn.Conv3d(16, 16, 3, padding=1, groups=2)
        self.up = nn.ConvTranspose3d(16, 4, (1, 2, 2), stride=(1, 2, 2))

    def forward(self, x):
        return self.up(torch.tanh(self.mix(torch.relu(self.norm(self.down(x))))))
"""
LEFT_OUT = ("without jit", "batch of 1", "float32", "distributions of initial values")


def checked(check: Check, text: str, name: str, change: tuple[str, str] | None = None, **options: Any) -> ObjectVerdict:
    """The verdict on a file's conversion, with one planted mistake."""
    converted = convert(text).code
    if change is not None:
        assert converted.count(change[0]) >= 1, converted
        converted = converted.replace(*change, 1)
    return check(text, converted, name, **options)


def test_without_time_everything_that_decides_is_compared(check: Check) -> None:
    verdict = checked(check, DEEP, "Deep", budget=0.0)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    numeric, behavioral = verdict.stages["numeric"], verdict.stages["behavioral"]
    seen = " ".join([*numeric.observed, *behavioral.observed])
    for one in ("eval output", "train output", "gradient of parameter", "gradient of input", "buffer", "after 3 steps"):
        assert one in seen
    for one in LEFT_OUT:
        assert one in str(numeric.reason)


def test_with_time_nothing_is_left_out(check: Check) -> None:
    verdict = checked(check, DEEP.replace("depth=6", "depth=1"), "Deep", budget=3600.0)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert verdict.stages["numeric"].reason is None


DEEP_MISTAKES = {
    "an epsilon": ("epsilon=1e-3", "epsilon=1e-4"),
    "a stride": ("2 if i == 1 else 1", "2 if i == 2 else 1"),
    "a slope": ("0.1", "0.01"),
    "a mean over one axis too few": (".mean(axis=", ".sum(axis="),
}


@pytest.mark.parametrize("mistake", DEEP_MISTAKES)
def test_a_mistake_in_a_deep_model_is_found_without_time(check: Check, mistake: str) -> None:
    verdict = checked(check, FEWER, "Deep", DEEP_MISTAKES[mistake], budget=0.0, causes=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


def test_large_inputs_become_smaller(check: Check) -> None:
    verdict = checked(check, VOLUME, "Volume", budget=0.0)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert "with smaller inputs (f32[12, 3, 24, 96, 112] became f32[3, 3, 5, 13, 15])" in str(
        verdict.stages["numeric"].reason
    )


VOLUME_MISTAKES = {
    "a padding": ("(2, 2), (2, 2))", "(2, 2), (1, 3))"),
    "groups": ("feature_group_count=2", "feature_group_count=1"),
    "an activation": ("jnp.tanh(", "jax.nn.sigmoid("),
}


@pytest.mark.parametrize("mistake", VOLUME_MISTAKES)
def test_a_mistake_in_a_volume_is_found_with_smaller_inputs(check: Check, mistake: str) -> None:
    verdict = checked(check, VOLUME, "Volume", VOLUME_MISTAKES[mistake], budget=0.0, causes=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


class Impatient(Pool):
    """Gives the first run of the converted program no time at all."""

    met = False

    def request(self, kind: Kind, operation: str, timeout: float, *args: Any, **message: Any) -> Any:
        first, self.met = not self.met and (kind, operation) == ("jax", "observe"), self.met or kind == "jax"
        return super().request(kind, operation, 0.0 if first else timeout, *args, **message)


@pytest.mark.parametrize("right", [True, False])
def test_a_run_that_takes_too_long_is_done_again_with_less(tmp_path: Path, right: bool) -> None:
    source = tmp_path / "volume.py"
    source.write_text(VOLUME.replace("[12, 3, 24, 96, 112]", "[4, 3, 5, 12, 14]"))
    code = convert(source.read_text()).code
    code = code if right else code.replace("jnp.tanh(", "jax.nn.sigmoid(")
    with Impatient() as pool:
        verdict = check_files(source, code, ["Volume"], pool=pool, causes=False).objects[0]
        assert pool.met
    assert verdict.verdict is (VerdictKind.EQUIVALENT if right else VerdictKind.DIFFERENT), verdict.reason
    said = str(verdict.stages["numeric"].reason)
    assert "with smaller inputs (f32[4, 3, 5, 12, 14] became" in said
    assert "left out, to be in time: " in said


@pytest.mark.parametrize("mistake", [None, "an epsilon", "a stride"])
def test_blocks_are_fewer_where_a_run_takes_too_long(tmp_path: Path, mistake: str | None) -> None:
    source = tmp_path / "deep.py"
    source.write_text(DEEP.replace("# t2j: x=f32[3, 3, 16, 24]\n", ""))
    code = convert(source.read_text()).code
    code = code.replace(*DEEP_MISTAKES[mistake], 1) if mistake else code
    with Impatient() as pool:
        verdict = check_files(source, code, ["Deep"], pool=pool, causes=False).objects[0]
        assert pool.met
    assert verdict.verdict is (VerdictKind.DIFFERENT if mistake else VerdictKind.EQUIVALENT), verdict.reason
    assert "with smaller inputs (fewer blocks: depth=2" in str(verdict.stages["numeric"].reason)


class Narrow(Pool):
    """Has no memory for the program's first run."""

    met = False

    def request(self, kind: Kind, operation: str, timeout: float, *args: Any, **message: Any) -> Any:
        if not self.met and operation == "prepare":
            self.met = True
            raise OutOfMemory(kind, 1024**3)
        return super().request(kind, operation, timeout, *args, **message)


@pytest.mark.parametrize("mistake", [None, "an epsilon"])
def test_blocks_are_fewer_where_a_run_takes_too_much_memory(tmp_path: Path, mistake: str | None) -> None:
    source = tmp_path / "deep.py"
    source.write_text(DEEP.replace("# t2j: x=f32[3, 3, 16, 24]\n", ""))
    code = convert(source.read_text()).code
    code = code.replace(*DEEP_MISTAKES[mistake], 1) if mistake else code
    with Narrow() as pool:
        verdict = check_files(source, code, ["Deep"], pool=pool, causes=False).objects[0]
        assert pool.met
    assert verdict.verdict is (VerdictKind.DIFFERENT if mistake else VerdictKind.EQUIVALENT), verdict.reason
    assert "with smaller inputs (fewer blocks: depth=2" in str(verdict.stages["numeric"].reason)


WIDE = """
import torch
import torch.nn as nn


class Wide(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, hidden_dim), nn.GELU(), nn.Linear(hidden_dim, dim))

    def forward(self, x):
        return self.layers(x)


net = Wide(dim=96, hidden_dim=1024)
"""


@pytest.mark.parametrize("right", [True, False])
def test_sizes_are_made_up_where_those_of_a_call_take_too_much_memory(tmp_path: Path, right: bool) -> None:
    source = tmp_path / "wide.py"
    source.write_text(WIDE)
    code = convert(source.read_text()).code
    code = code if right else code.replace("approximate=False", "approximate=True")
    with Narrow() as pool:
        verdict = check_files(source, code, ["Wide"], pool=pool, causes=False).objects[0]
        assert pool.met
    assert verdict.verdict is (VerdictKind.EQUIVALENT if right else VerdictKind.DIFFERENT), verdict.reason
    assert "with smaller inputs (sizes made up" in str(verdict.stages["numeric"].reason)


LARGE = """
import torch
import torch.nn as nn


class Tower(nn.Module):
    def __init__(self, img_size=224, embed_dim=192, depth=4):
        super().__init__()
        self.stem = nn.Conv2d(3, embed_dim, 7, stride=7)
        self.position = nn.Parameter(torch.zeros(1, embed_dim, img_size // 7, img_size // 7))
        self.blocks = nn.Sequential(*[nn.Conv2d(embed_dim, embed_dim, 3, padding=1) for _ in range(depth)])
        self.act = nn.GELU()

    def forward(self, x):
        return self.act(self.blocks(self.stem(x) + self.position)).mean((2, 3))
"""


DERIVED = """

class Derived(Tower):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
"""


@pytest.mark.parametrize(("hurried", "name"), [(Narrow, "Tower"), (Impatient, "Tower"), (Impatient, "Derived")])
@pytest.mark.parametrize("right", [True, False])
def test_sizes_by_default_become_an_eighth_where_they_take_too_much(
    tmp_path: Path, right: bool, hurried: type[Narrow | Impatient], name: str
) -> None:
    source = tmp_path / "tower.py"
    source.write_text(LARGE + DERIVED)
    code = convert(source.read_text()).code
    code = code if right else code.replace("approximate=False", "approximate=True")
    with hurried() as pool:
        verdict = check_files(source, code, [name], pool=pool, causes=False).objects[0]
        assert pool.met
    assert verdict.verdict is (VerdictKind.EQUIVALENT if right else VerdictKind.DIFFERENT), verdict.reason
    said = "smaller sizes: img_size=28, embed_dim=24, depth=2"
    assert f"with smaller inputs ({said}" in str(verdict.stages["numeric"].reason)


def test_what_is_left_out_is_said_once_and_in_words() -> None:
    budget = TimeBudget(0.0)
    for name in ("eval output (other values 1)", "eval output (other values 2)", "without jit"):
        assert not budget.affords(name, 1.0)
    assert budget.said() == "left out, to be in time: other values, without jit"
    assert TimeBudget(None).affords("anything", 1e9)
    assert TimeBudget(60.0).said() is None
