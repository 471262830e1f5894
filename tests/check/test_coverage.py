"""What the verdict on a file covers: measured, for files of several kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.api import convert
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import CheckReport, Coverage, NotRun, Uncovered, VerdictKind, file_verdict

from .conftest import AMPLE

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
BLOCK = '''def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return F.relu(x) * by


class Inner(nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.reset()

    def reset(self) -> None:
        nn.init.zeros_(self.fc.bias)

    def forward(self, x: torch.Tensor, flip: bool = False) -> torch.Tensor:
        """Scaled."""
        if flip:
            return torch.flip(self.fc(x), (0,))
        return scaled(self.fc(x), 2.0)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)
'''


@pytest.fixture
def report(pool: Pool, tmp_path: Path):  # type: ignore[no-untyped-def]
    def run(torch: str, jax: str | None = None, **options: object) -> CheckReport:
        source, converted = tmp_path / "net.py", tmp_path / "net_jax.py"
        source.write_text(torch)
        converted.write_text(convert(torch).code if jax is None else jax)
        return check_files(source, converted, pool=pool, stage="numeric", **{"budget": AMPLE, **options})  # type: ignore[arg-type]

    return run


def names(places: tuple[Uncovered, ...]) -> list[tuple[str, str, int]]:
    return [(place.name, place.kind, place.line) for place in places]


def test_what_runs_inside_a_checked_object_has_run_and_a_branch_that_did_not_is_said(report) -> None:  # type: ignore[no-untyped-def]
    coverage = report(HEAD + BLOCK)
    assert coverage.verdict is VerdictKind.EQUIVALENT
    assert coverage.coverage.classes == {"equivalent": 2} and coverage.coverage.functions == {"equivalent": 1}
    assert coverage.coverage.not_run == () and coverage.coverage.gaps == ()
    branch = (HEAD + BLOCK).splitlines().index("            return torch.flip(self.fc(x), (0,))") + 1
    assert names(coverage.coverage.branches) == [("Inner.forward", "branch", branch)]
    assert coverage.reason == "2 of 2 classes equivalent; 1 of 1 function equivalent; 1 branch not run"


def test_a_method_a_function_a_class_and_a_script_that_nothing_calls_are_named_with_their_lines(report) -> None:  # type: ignore[no-untyped-def]
    text = HEAD + BLOCK.replace(
        "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return self.inner(x)",
        "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return self.inner(x)\n\n"
        "    def size(self) -> int:\n        return sum(p.numel() for p in self.parameters())",
    )
    text += "\n\ndef seed(n: int) -> None:\n    torch.manual_seed(n)\n"
    text += "\n\ndef pure(n: int) -> int:\n    return n + 1\n"
    text += (
        "\n\nclass Holder:\n    def __init__(self) -> None:\n        self.x = torch.ones(3)\n\n"
        "    def more(self) -> torch.Tensor:\n        return self.x + torch.ones(3)\n"
    )
    text += '\n\nWIDTH = 3\nif __name__ == "__main__":\n    torch.manual_seed(pure(WIDTH))\n'
    text += "    print(Net()(torch.ones(2, 3)))\n"
    coverage = report(text)
    lines = text.splitlines()
    assert coverage.verdict is VerdictKind.UNCHECKED
    assert {o.verdict for o in coverage.objects} == {VerdictKind.EQUIVALENT}
    assert names(coverage.coverage.not_run) == [
        ("Net.size", "method", lines.index("    def size(self) -> int:") + 1),
        ("seed", "function", lines.index("def seed(n: int) -> None:") + 1),
        ("Holder", "class", lines.index("class Holder:") + 1),
        ("<script>", "script", lines.index("    torch.manual_seed(pure(WIDTH))") + 1),
    ]
    assert coverage.reason == (
        "2 of 2 classes equivalent; 1 of 1 function equivalent; 1 class not run; 1 function not run; 1 method not run; "
        "top-level code not run; 1 branch not run"
    )
    named = report(text, objects=["Net"])
    assert named.verdict is VerdictKind.EQUIVALENT and named.coverage is None


def test_training_code_and_places_left_as_pytorch_leave_a_file_unchecked(report) -> None:  # type: ignore[no-untyped-def]
    text = HEAD + BLOCK + (
        "\n\ndef train(net, x, optimizer):\n    optimizer.zero_grad()\n    loss = net(x).sum()\n    loss.backward()\n"
        "    optimizer.step()\n"
    )  # fmt: skip
    jax = convert(HEAD + BLOCK).code + (
        "\n\ndef train(net, x, optimizer):\n    # TODO(t2j): no optimizer is known here\n    optimizer.zero_grad()\n"
        "    loss = net(x).sum()\n    loss.backward()\n    optimizer.step()\n"
    )
    coverage = report(text, jax)
    line = text.splitlines().index("def train(net, x, optimizer):") + 1
    assert coverage.coverage.training == (NotRun("train", line),)
    assert ("train", "function", line) in names(coverage.coverage.not_run)
    assert coverage.coverage.gaps == (jax.splitlines().index("    # TODO(t2j): no optimizer is known here") + 1,)
    assert coverage.coverage.text.endswith("1 place left as PyTorch")
    assert coverage.verdict is VerdictKind.UNCHECKED
    assert coverage.to_json()["coverage"]["gaps"] == list(coverage.coverage.gaps)
    assert Coverage.from_json(coverage.to_json()["coverage"]) == coverage.coverage


def test_a_wrong_method_that_the_conversion_has_and_does_not_call_has_not_run(report) -> None:  # type: ignore[no-untyped-def]
    text = HEAD + (
        "class Net(nn.Module):\n    def half(self, x):\n        return torch.relu(x) / 2\n\n"
        "    def forward(self, x):\n        return self.half(x)\n"
    )
    right = convert(text).code
    assert report(text, right).verdict is VerdictKind.EQUIVALENT
    wrong = right.replace("jax.nn.relu(x) / 2", "jnp.tanh(x)").replace("self.half(x)", "jax.nn.relu(x) / 2")
    coverage = report(text, wrong.replace("import jax\n", "import jax\nimport jax.numpy as jnp\n"))
    assert coverage.objects[0].verdict is VerdictKind.EQUIVALENT
    assert names(coverage.coverage.not_run) == [("Net.half", "method", 7)]
    assert coverage.verdict is VerdictKind.UNCHECKED


def test_a_statement_that_was_dropped_need_not_run_and_one_that_was_used_has(report) -> None:  # type: ignore[no-untyped-def]
    text = HEAD + 'device = torch.device("cpu")\nHALF = torch.tensor(0.5)\n\n\n'
    text += "def halved(x: torch.Tensor) -> torch.Tensor:\n    return x * HALF\n"
    coverage = report(text)
    assert coverage.reason == "1 of 1 function equivalent"
    assert coverage.verdict is VerdictKind.EQUIVALENT


def test_what_gives_the_check_its_inputs_need_not_be_compared(report) -> None:  # type: ignore[no-untyped-def]
    text = HEAD + "class Net(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n\n\n"
    text += "def get_inputs():\n    return [torch.randn(2, 3)]\n\n\ndef get_init_inputs():\n    return []\n"
    assert report(text).verdict is VerdictKind.EQUIVALENT


@pytest.mark.parametrize(
    ("kinds", "coverage", "verdict"),
    [
        (["equivalent"], Coverage({"equivalent": 1}), "equivalent"),
        (["equivalent"], None, "equivalent"),
        (["equivalent"], Coverage({"equivalent": 1, "unchecked": 1}), "unchecked"),
        (["equivalent"], Coverage({"equivalent": 1}, gaps=(3,)), "unchecked"),
        (["equivalent"], Coverage({"equivalent": 1}, not_run=(Uncovered("f", "function", 1, 2),)), "unchecked"),
        (["equivalent", "different"], Coverage({"equivalent": 1, "different": 1}, gaps=(3,)), "different"),
        ([], Coverage(), "unchecked"),
    ],
)
def test_the_verdict_on_a_file(kinds: list[str], coverage: Coverage | None, verdict: str) -> None:
    assert file_verdict(kinds, coverage) == verdict
