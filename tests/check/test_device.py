"""Where a check runs: on a GPU if both sides have it, else on the CPU with the reason; always in full precision."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from benchmarks import gpu_suite
from t2j_lsp.check.process.environment import worker_environment
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.check.workers.precision import CHANNELS, kernel, permutation, telling
from t2j_lsp.check.workers.torch_side import device as torch_device
from t2j_lsp.check.workers.torch_side import exact as torch_exact
from t2j_lsp.contract import CheckReport, VerdictKind

from .conftest import Check

without_card = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU: nothing falls back here")


def report(folder: Path, jax_python: str | None = None, device: str = "gpu") -> CheckReport:
    source, converted = folder / "source.py", folder / "converted.py"
    source.write_text("import torch\n\ndef f(x: torch.Tensor):\n    return x * 2\n")
    converted.write_text("def f(x):\n    return x * 2\n")
    return check_files(source, converted, device=device, jax_python=jax_python)


@without_card
def test_without_a_gpu_the_verdict_is_the_cpus_and_says_why(tmp_path: Path) -> None:
    coverage = report(tmp_path)
    assert (coverage.verdict, coverage.device) == (VerdictKind.EQUIVALENT, "cpu")
    assert coverage.device_reason is not None
    assert "torch" in coverage.device_reason and "jax" in coverage.device_reason and "CUDA" in coverage.device_reason
    assert coverage.to_json()["device_reason"] == coverage.device_reason


def test_a_worker_that_dies_of_its_gpu_is_replaced_by_one_on_the_cpu(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$T2J_DEVICE" = gpu ] && exit 9\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    coverage = report(tmp_path, str(python))
    assert (coverage.verdict, coverage.device) == (VerdictKind.EQUIVALENT, "cpu")
    assert "exit code 9" in str(coverage.device_reason)


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_where_no_gpu_is_asked_for_none_is_missed(tmp_path: Path, device: str) -> None:
    coverage = report(tmp_path, device=device)
    assert (coverage.device, coverage.device_reason) == ("cpu", None)


def test_on_a_gpu_both_sides_get_the_same_card_a_share_of_it_and_no_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    for kind in ("torch", "jax"):
        names = worker_environment(kind, "gpu", "/scratch", "00")
        assert names["CUDA_VISIBLE_DEVICES"] == "2" and names["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert names["NVIDIA_TF32_OVERRIDE"] == "0" and "JAX_PLATFORMS" not in names
        assert names["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
        assert float(names["XLA_PYTHON_CLIENT_MEM_FRACTION"]) < 0.5
        assert "WANDB_API_KEY" not in names
        assert worker_environment(kind, "cpu", "/scratch", "00")["CUDA_VISIBLE_DEVICES"] == ""
    names = worker_environment("jax", "gpu", "/scratch", "00")
    assert names["JAX_DEFAULT_MATMUL_PRECISION"] == "highest"
    assert "cudnn-fused-convolution-rewriter" in names["XLA_FLAGS"], "it rounds constants to float32"


def _tf32(array: np.ndarray) -> np.ndarray:
    """The elements as TF32 has them: 13 of the 23 bits behind the leading one are rounded away."""
    return ((array.view(np.uint32) + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


def test_the_probe_of_precision_tells_tf32_from_float32() -> None:
    a, b = telling(), permutation()
    right = a.astype(np.float64) @ b
    assert np.array_equal(a @ b, right)
    assert np.abs((_tf32(a) @ _tf32(b)) / right - 1).max() > 1e-4
    assert kernel().sum() == CHANNELS and np.array_equal(_tf32(kernel()), kernel())


def test_both_workers_multiply_in_full_precision(pool: Pool) -> None:
    for kind in ("torch", "jax"):
        errors = pool.request(kind, "precision", 60.0)
        assert set(errors) == {"matrix product", "convolution"} and max(errors.values()) < 1e-6, (kind, errors)


def test_a_program_that_asks_for_less_precision_is_run_in_full(check: Check) -> None:
    torch_side = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        torch.set_float32_matmul_precision('medium')\n        self.fc = nn.Linear(5, 3)\n"
        "    def forward(self, x):\n"
        "        return self.fc(x) * (2 if torch.get_float32_matmul_precision() == 'highest' else 3)\n"
    )
    jax_side = (
        "class Net(nnx.Module):\n    def __init__(self, *, rngs):\n"
        "        self.fc = nnx.Linear(5, 3, rngs=rngs)\n"
        "    def __call__(self, x):\n        return self.fc(x) * 2\n"
    )
    assert check(torch_side, jax_side, initial=False).verdict is VerdictKind.EQUIVALENT


@without_card
def test_the_suite_says_in_one_line_that_there_is_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_suite.main([]) == gpu_suite.NO_GPU == 3
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("no GPU") and "CUDA" in line and "Nothing was run" in line


def test_the_suite_counts_what_does_not_hold(pool: Pool, capsys: pytest.CaptureFixture[str]) -> None:
    suite = gpu_suite.Suite(pool, dry=True)
    for kind in gpu_suite.KINDS:
        suite.ask(kind, "memory")
    with suite.section("Precision"):
        gpu_suite.precision(suite)
    with suite.section("Memory"):
        suite.measure()
    assert suite.failed == [] and suite.peak["torch in main memory"] > 50 * 2**20
    suite.bar("a bar", False, "what was seen")
    with suite.section("No such operation"):
        suite.ask("torch", "no such operation")
    assert suite.failed == ["a bar", "No such operation"]
    printed = capsys.readouterr().out
    assert (
        f"[{pool.device_name}, a dry run: no figure of a GPU]" in printed and "FAILED a bar: what was seen" in printed
    )


def test_arguments_are_tried_on_the_cpu_first_and_on_the_card_where_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_device, "on_card", lambda: True)
    torch.set_default_device("meta")  # Stands for the card.
    try:
        used: list[str] = []

        def work() -> str:
            used.append(torch.get_default_device().type)
            return used[-1]

        assert torch_device.on_cpu_first(work, lambda device: False) == "cpu"
        assert torch_device.on_cpu_first(work, lambda device: device == "cpu") == "meta"
        assert used == ["cpu", "cpu", "meta"]
        assert torch.get_default_device().type == "meta"
    finally:
        torch.set_default_device(None)


def test_a_card_that_answers_no_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    assert torch_device.is_usable()
    monkeypatch.setattr(torch_device, "done", fails)
    assert not torch_device.is_usable()


@pytest.mark.parametrize("name", torch_exact.CHOOSING)
@pytest.mark.parametrize("given", [{}, {"dim": 0}, {"dim": 1, "keepdim": True}, {"dim": -1}])
def test_elements_are_chosen_as_on_the_cpu(name: str, given: dict[str, object]) -> None:
    original, names = getattr(torch, name), torch_exact.CHOOSING[name]
    arguments = {"k": 2, **given} if "k" in names else given
    x = torch.tensor([[2.0, 1.0, 1.0, 3.0, 2.0], [0.0, 0.0, 1.0, 1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    texts = []
    for function in (original, torch_exact._chosen_as_on_the_cpu(original, *names)):
        result = function(x, *arguments.values())
        assert type(function(x, **arguments)) is type(result)
        value, *indices = result if isinstance(result, tuple) else (result,)
        texts.append([value.detach(), *indices, *torch.autograd.grad(value.sum(), [x])])
    for torchs, own in zip(*texts, strict=True):
        torch.testing.assert_close(own, torchs, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("name", ["hardswish", "hardsigmoid"])
def test_activations_in_float64_are_exact_and_torchs_at_the_kinks(name: str) -> None:
    x = torch.tensor([-4.0, -3.0, -1.0, 0.0, 2.0, 3.0, 5.0], dtype=torch.float64, requires_grad=True)
    values = []
    for function in (getattr(functional, name), getattr(torch_exact, f"_{name}")):
        y = function(x)
        values.append([y.detach(), *torch.autograd.grad(y.sum(), [x])])
    for torchs, own in zip(*values, strict=True):
        torch.testing.assert_close(own, torchs, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("name", ["hardswish", "hardsigmoid", "celu"])
def test_an_exact_activation_in_place_has_the_gradient_of_what_was_there(name: str) -> None:
    function = torch_exact._in_float64(getattr(functional, name), getattr(torch_exact, f"_{name}"))
    x = torch.tensor([-4.0, -1.0, 2.0, 5.0], dtype=torch.float64, requires_grad=True)
    gradients = [torch.autograd.grad(function(x * 1.0, inplace=place).sum(), [x])[0] for place in (False, True)]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0.0, atol=0.0)


@pytest.mark.parametrize(
    ("torch_draw", "jax_draw"),
    [
        ("uniform_()", "uniform(jax.random.key(0), x.shape)"),
        ("bernoulli_(0.5)", "bernoulli(jax.random.key(0), 0.5, x.shape)"),
        ("cauchy_()", "cauchy(jax.random.key(0), x.shape)"),
    ],
)
def test_where_a_device_is_the_default_a_method_draws_once(torch_draw: str, jax_draw: str, check: Check) -> None:
    """As it is on a card. PyTorch then calls by its name what was called: it drew again, and JAX had the first draw."""
    head = "# t2j: x=f32[4, 3]\ndef f(x):\n"
    torch_text = f"{head}    with torch.device('cpu'):\n        return x + torch.empty(4, 3).{torch_draw}\n"
    right = f"def f(x):\n    return x + jax.random.{jax_draw}\n"
    assert check(torch_text, right).verdict is VerdictKind.EQUIVALENT
    assert check(torch_text, right.replace("x + ", "x + 0.9 * ")).verdict is VerdictKind.DIFFERENT
