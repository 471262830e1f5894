"""Whole checks: verdicts, stages and places, on small pairs of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import CheckReport, Result, SourceError, T2JError, VerdictKind

from .conftest import AMPLE, Check

TORCH = """import torch
import torch.nn as nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.fc = nn.Linear(options["dim"], options["dim"])
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        y = self.fc(x)
        y = F.gelu(y)
        y = self.drop(y)
        return x + y

class Net(nn.Module):
    def __init__(self, dim=6, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList([Block({"dim": dim}) for _ in range(depth)])
        self.head = nn.Linear(dim, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        x = x.mean(1)
        return {"logits": self.head(x), "features": x}

def scale(x: torch.Tensor, factor: float = 2.0):
    return x * factor

raise SystemExit("nothing at the module's level that is not needed may run")
"""
JAX = """import jax
import jax.numpy as jnp
from flax import nnx

def uniform(bound):
    return lambda key, shape, dtype=jnp.float32, out_sharding=None: jax.random.uniform(key, shape, dtype, -bound, bound)

def linear(n, m, rngs):
    return nnx.Linear(n, m, kernel_init=uniform(n**-0.5), bias_init=uniform(n**-0.5), rngs=rngs)

class Block(nnx.Module):
    def __init__(self, options, *, rngs: nnx.Rngs):
        self.fc = linear(options["dim"], options["dim"], rngs)
        self.drop = nnx.Dropout(0.3, rngs=rngs)

    def __call__(self, x):
        y = self.fc(x)
        y = jax.nn.gelu(y, approximate=False)
        y = self.drop(y)
        return x + y

class Net(nnx.Module):
    def __init__(self, dim=6, depth=2, *, rngs: nnx.Rngs):
        self.blocks = nnx.List([Block({"dim": dim}, rngs=rngs) for _ in range(depth)])
        self.head = linear(dim, 3, rngs)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        x = x.mean(1)
        return {"logits": self.head(x), "features": x}

def scale(x: jax.Array, factor: float = 2.0):
    return x * factor
"""


def run(pool: Pool, folder: Path, jax: str, *names: str, torch: str = TORCH, **options: object) -> CheckReport:
    source, converted = folder / "source.py", folder / "converted.py"
    source.write_text(torch)
    converted.write_text(jax)
    return check_files(source, converted, names or None, pool=pool, **{"budget": AMPLE, **options})  # type: ignore[arg-type]


def lines(report: CheckReport) -> tuple[int | None, int | None]:
    divergence = report.objects[0].divergence
    assert divergence is not None
    return tuple(place.line if place else None for place in (divergence.torch, divergence.jax))  # type: ignore[return-value]


def test_a_right_conversion_is_equivalent_in_every_stage(pool: Pool, tmp_path: Path) -> None:
    progress: list[str] = []
    report = run(pool, tmp_path, JAX, on_progress=progress.append)
    assert {o.name: (o.verdict, o.reason) for o in report.objects} == dict.fromkeys(
        ("Block", "Net", "scale"), (VerdictKind.EQUIVALENT, None)
    )
    stages = report.objects[1].stages
    assert {name: stage.result for name, stage in stages.items()} == dict.fromkeys(
        ("spec", "numeric", "behavioral"), Result.PASS
    )
    assert {"train output", "gradient of parameter (6)", "gradient of input"} <= set(stages["numeric"].observed)
    assert stages["numeric"].max_rel_err is not None and stages["numeric"].max_rel_err < 1e-12
    assert report.objects[2].stages["behavioral"].reason == "nothing to train"
    assert progress == ["checking Net", "checking Block", "checking scale"]
    assert report.device == pool.device_name


def test_a_stage_that_is_not_asked_for_is_not_run(pool: Pool, tmp_path: Path) -> None:
    report = run(pool, tmp_path, JAX, "Net", stage="numeric")
    assert report.verdict is VerdictKind.EQUIVALENT
    assert report.objects[0].stages["behavioral"].result is Result.NOT_RUN


MISTAKES = {
    "a value": ("approximate=False", "approximate=True", (13, 18)),
    "a wrong axis": ("x.mean(1)", "x.mean(0)", (26, 30)),
    "a dropped term": ("return x + y", "return y", (15, 20)),
    "a cut gradient": ("x = x.mean(1)", "x = jax.lax.stop_gradient(x).mean(1)", (26, 30)),
    "a cut gradient inside": ("y = self.fc(x)", "y = self.fc(jax.lax.stop_gradient(x))", (12, 17)),
    "a missing key": ('"features": x}', "}", (27, 31)),
    "a name that does not exist": ("y = self.drop(y)", "y = self.dorp(y)", (14, 19)),
    "a tracer error": ("x = x.mean(1)", "x = x.mean(1) * (1 if x.sum() > 1e9 else 1)", (26, 30)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_at_its_statement_on_both_sides(name: str, pool: Pool, tmp_path: Path) -> None:
    right, wrong, expected = MISTAKES[name]
    assert right in JAX
    report = run(pool, tmp_path, JAX.replace(right, wrong), "Net")
    assert report.verdict is VerdictKind.DIFFERENT
    assert lines(report) == expected


def test_another_initialiser_is_found_at_the_layer(pool: Pool, tmp_path: Path) -> None:
    wrong = JAX.replace("self.head = linear(dim, 3, rngs)", "self.head = nnx.Linear(dim, 3, rngs=rngs)")
    report = run(pool, tmp_path, wrong, "Net")
    assert report.objects[0].stages["spec"].result is Result.FAIL
    assert lines(report) == (21, 25)
    assert run(pool, tmp_path, wrong, "Net", initial=False).verdict is VerdictKind.EQUIVALENT


@pytest.mark.parametrize(("draw", "verdict"), [("normal", VerdictKind.EQUIVALENT), ("uniform", VerdictKind.DIFFERENT)])
def test_modules_among_the_arguments_are_initialised_anew_each_time(
    draw: str, verdict: VerdictKind, check: Check
) -> None:
    torch = """
class Mixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(dim, dim))
    def forward(self, x):
        return x @ self.mix

# t2j: args=(Mixer(3),), x=f32[4, 3]
class Around(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn
    def forward(self, x):
        return self.fn(x)
"""
    jax = f"""
class Mixer(nnx.Module):
    def __init__(self, dim, *, rngs):
        self.mix = nnx.Param(rngs.{draw}((dim, dim)))
    def __call__(self, x):
        return x @ self.mix[...]

class Around(nnx.Module):
    def __init__(self, fn, *, rngs):
        self.fn = fn
    def __call__(self, x):
        return self.fn(x)
"""
    report = check(torch, jax, "Around", eager=False)
    assert report.verdict is verdict, report.reason


def test_a_missing_parameter_fails_the_first_stage_and_no_other_runs(pool: Pool, tmp_path: Path) -> None:
    wrong = JAX.replace("self.head = linear(dim, 3, rngs)", "self.tail = linear(dim, 3, rngs)")
    verdict = run(pool, tmp_path, wrong, "Net").objects[0]
    assert verdict.verdict is VerdictKind.DIFFERENT
    assert [s.result for s in verdict.stages.values()] == [Result.FAIL, Result.NOT_RUN, Result.NOT_RUN]
    assert "head.weight" in (verdict.reason or "")


def test_text_of_a_conversion_is_checked_too(pool: Pool, tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text(TORCH)
    assert check_files(source, JAX, ["Net"], pool=pool, budget=AMPLE).verdict is VerdictKind.EQUIVALENT


def test_objects_without_a_counterpart_or_inputs_are_unchecked_with_the_reason(pool: Pool, tmp_path: Path) -> None:
    init = "    def __init__(self, thing: 'Thing'): ...\n"
    torch = TORCH + f"\nclass Odd(nn.Module):\n{init}    def forward(self, x): return x\n"
    jax = JAX + "\nclass Odd(nnx.Module):\n    pass\n"
    report = run(pool, tmp_path, jax.replace("def scale", "def other"), "Odd", "scale", torch=torch)
    assert [o.verdict for o in report.objects] == [VerdictKind.UNCHECKED] * 2
    reasons = [o.reason or "" for o in report.objects]
    assert "write above it: # t2j: args=(...), x=f32[2, 3, 17, 19]" in reasons[0]
    assert reasons[1] == "the converted file has no scale"


def test_a_function_that_is_given_what_it_read_from_outside_is_unchecked(pool: Pool, tmp_path: Path) -> None:
    torch = (
        TORCH
        + "\nshift = 1.0\n\ndef moved(x): return torch.exp(x) + shift\n\ndef twice(x): return torch.abs(moved(x))\n"
    )
    jax = (
        JAX
        + "\ndef moved(x, shift): return jnp.exp(x) + shift\n\ndef twice(x, shift): return jnp.abs(moved(x, shift))\n"
    )
    report = run(pool, tmp_path, jax, "moved", "twice", torch=torch)
    assert [o.verdict for o in report.objects] == [VerdictKind.UNCHECKED] * 2
    assert all("given what it reads from outside (shift)" in (o.reason or "") for o in report.objects)


def test_a_function_that_wants_something_else_is_different(pool: Pool, tmp_path: Path) -> None:
    torch = TORCH + "\nshift = 1.0\n\ndef moved(x): return torch.exp(x) + shift\n"
    wrong = JAX + "\ndef moved(x, scale): return scale * jnp.exp(x)\n"
    assert run(pool, tmp_path, wrong, "moved", torch=torch).verdict is VerdictKind.DIFFERENT


def test_a_class_that_runs_inside_a_checked_one_has_its_verdict(pool: Pool, tmp_path: Path) -> None:
    def lazily(text: str) -> str:
        return text.replace('{"dim": dim}', "[lambda: dim]").replace('options["dim"]', "options[0]()")

    report = run(pool, tmp_path, lazily(JAX), torch=lazily(TORCH))
    assert {o.name: o.reason for o in report.objects} == {"Block": "checked as part of Net", "Net": None, "scale": None}
    assert report.verdict is VerdictKind.EQUIVALENT


def test_code_that_still_needs_torch_or_another_package_is_unchecked(pool: Pool, tmp_path: Path) -> None:
    wrong = JAX.replace("return x * factor", "return torch.mul(x, factor)")
    assert "not complete" in (run(pool, tmp_path, wrong, "scale").objects[0].reason or "")
    wrong = JAX.replace("return x * factor", "import not_installed\n    return x * factor")
    assert "not_installed" in (run(pool, tmp_path, wrong, "scale").objects[0].reason or "")


def test_a_program_that_computes_in_float32_itself_is_decided_in_float64(check: Check) -> None:
    torch = "# t2j: x=f32[3, 5]\ndef f(x):\n    return (x.float().pow(2).mean(-1) + 1e-6).rsqrt().to(torch.float32)\n"
    jax = "def f(x):\n    return lax.rsqrt((x.astype(jnp.float32) ** 2).mean(-1) + EPS).astype('float32')\n"
    assert check(torch, jax.replace("EPS", "1e-6")).verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.replace("EPS", "1.01e-6")).verdict is VerdictKind.DIFFERENT


def test_randomness_that_cant_be_replayed_is_said(check: Check) -> None:
    torch = "# t2j: x=f32[3, 5]\ndef f(x):\n    return x + torch.empty(3, 5).random_()\n"
    jax = "def f(x):\n    return x + 1\n"
    verdict = check(torch, jax)
    assert verdict.verdict is VerdictKind.UNCHECKED
    assert "can't be replayed" in (verdict.reason or "")


@pytest.mark.parametrize("again", [True, False])
def test_several_indices_of_a_row_are_drawn_in_common(check: Check, again: bool) -> None:
    torch = (
        "# t2j: x=f32[3, 5]\ndef f(x):\n"
        f"    drawn = torch.multinomial(x.abs() + 0.1, 4, replacement={again})\n    return x[:, :4] * drawn\n"
    )
    jax = (
        "def f(x):\n    logits = jnp.log(WEIGHTS + 0.1)\n"
        f"    drawn = jax.random.categorical(jax.random.key(0), logits, shape=(4, 3), replace={again})\n"
        "    return x[:, :4] * jnp.moveaxis(drawn, 0, -1)\n"
    )
    assert check(torch, jax.replace("WEIGHTS", "jnp.abs(x)")).verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.replace("WEIGHTS", "jnp.abs(x) ** 2")).verdict is VerdictKind.DIFFERENT


def test_a_program_at_the_mercy_of_rounding_is_not_decided(check: Check) -> None:
    torch = "# t2j: x=f32[3, 5]\ndef f(x):\n    return torch.sign(torch.sin(x * 1e9))\n"
    jax = "def f(x):\n    return -jnp.sign(jnp.sin(x * 1e9))\n"
    assert check(torch, jax).verdict is VerdictKind.UNCHECKED


def test_a_torch_file_that_does_not_run_is_unchecked(check: Check) -> None:
    verdict = check("# t2j: x=f32[3]\ndef f(x):\n    return x.no_such_method()\n", "def f(x):\n    return x\n")
    assert verdict.verdict is VerdictKind.UNCHECKED
    assert "no_such_method" in (verdict.reason or "")


def test_a_comment_that_cant_be_read_is_said(check: Check) -> None:
    verdict = check("# t2j: x=f32[3\ndef f(x):\n    return x\n", "def f(x):\n    return x\n")
    assert verdict.verdict is VerdictKind.UNCHECKED
    assert "can't be read" in (verdict.reason or "")


def test_an_object_that_does_not_exist_raises(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(T2JError, match="Missing"):
        run(pool, tmp_path, JAX, "Net", "Missing")


def test_a_converted_file_that_is_not_python_raises(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        run(pool, tmp_path, "def f(:")


def test_frozen_parameters_stay_as_they_are(check: Check) -> None:
    torch = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.fc.bias.requires_grad_(False)
    def forward(self, x):
        return self.fc(x)
"""
    jax = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = nnx.Linear(4, 3, rngs=rngs)
    def __call__(self, x):
        return self.fc(x)
"""
    verdict = check(torch, jax, initial=False)
    assert verdict.verdict is VerdictKind.DIFFERENT
    assert "fc.bias" in (verdict.reason or "")
