"""A refusal that only one side met, and what a conversion left as it was, are `unchecked`, not `different`."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import Options, VerdictKind

from .conftest import Check

TORCH = """
# t2j: x=f32[2, 3]
def f(x):
    {body}
    return x * 2
"""
JAX = """
def f(x):
    {body}
    return x * 2
"""
FALLS_BACK = """try:
        open("/var/tmp/t2j-refused", "w")
    except OSError:
        return x * 3"""
REFUSED = 'open("/var/tmp/t2j-refused", "w")'


@pytest.mark.parametrize(
    ("torch", "jax", "side"),
    [
        (FALLS_BACK, "pass", "PyTorch code"),
        ("pass", FALLS_BACK, "converted code"),
        (REFUSED, "pass", "PyTorch code"),
        ("pass", REFUSED, "converted code"),
        ("pass", "raise OSError(30, 'Read-only file system', '/data')", "converted code"),
    ],
    ids=["torch falls back", "jax falls back", "torch fails", "jax fails", "jax is refused by the system"],
)
def test_a_refusal_that_one_side_met_is_unchecked(check: Check, torch: str, jax: str, side: str) -> None:
    verdict = check(TORCH.format(body=torch), JAX.format(body=jax))
    assert verdict.verdict is VerdictKind.UNCHECKED, verdict.reason
    assert (verdict.reason or "").startswith(f"a check refuses what the {side} does: "), verdict.reason


def test_where_both_met_it_the_values_decide(check: Check) -> None:
    assert check(TORCH.format(body=FALLS_BACK), JAX.format(body=FALLS_BACK)).verdict is VerdictKind.EQUIVALENT
    other = FALLS_BACK.replace("x * 3", "x * 4")
    assert check(TORCH.format(body=FALLS_BACK), JAX.format(body=other)).verdict is VerdictKind.DIFFERENT


def test_a_refusal_without_consequence_takes_nothing_away(check: Check) -> None:
    body = FALLS_BACK.replace("return x * 3", "pass")
    assert check(TORCH.format(body=body), JAX.format(body="pass")).verdict is VerdictKind.EQUIVALENT


def test_an_ordinary_mistake_is_still_different(check: Check) -> None:
    verdict = check(TORCH.format(body="pass"), JAX.format(body="x = x + 1"))
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


MODULE = """
# t2j: x=f32[2, 3]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 5)

    def forward(self, x):
        y = torch.tanh(self.fc(x))
        z = y * 2
        return z + 1
"""
CONVERTED = """
class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.fc = nnx.Linear(3, 5, rngs=rngs)

    def __call__(self, x):
        y = jnp.tanh(self.fc(x))
        z = y * 2
        return z + 1
"""
TODO = "# TODO(t2j): there is no rule for this\n        "


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("z = y * 2", f"{TODO}z = y * 3"),
        ("y = jnp.tanh(self.fc(x))", f"{TODO}y = jnp.tanh(self.fc(x)).register_hook(print)"),
        ("return z + 1", f"{TODO}if x.ndim == 2:\n            return helper(z)\n        return z + 1"),
        (
            "\nclass Net(nnx.Module):",
            "\n# TODO(t2j): there is no rule for this\nN = jax.no_such_name\n\nclass Net(nnx.Module):\n    n = N",
        ),
        ("\nclass Net", "\n# TODO(t2j): there is no rule for this\n@jax.no_such_name\nclass Net"),
        ("(3, 5, rngs=rngs)", f"(3, 5, rngs=rngs)\n        {TODO}self.apply(0)"),
        ("(3, 5, rngs=rngs)", "(3, 7, rngs=rngs)\n        # TODO(t2j): there is no rule for this\n        self.n = 1"),
        ("(3, 5, rngs=rngs)", f"(3, 5, rngs=rngs, kernel_init=nnx.initializers.ones)\n        {TODO}self.n = 1"),
    ],
    ids=[
        "a value",
        "an error",
        "an error below",
        "at import",
        "a decorator",
        "constructor",
        "shapes",
        "initial values",
    ],
)
def test_what_was_left_and_stands_in_the_way_is_unchecked(check: Check, old: str, new: str) -> None:
    assert old in CONVERTED
    helper = "\ndef helper(z):\n    return z.numpy()\n"
    verdict = check(MODULE, CONVERTED.replace(old, new) + helper, initial=True)
    assert verdict.verdict is VerdictKind.UNCHECKED, verdict.reason
    assert "the conversion is not complete: line" in (verdict.reason or "")
    assert "there is no rule for this" in (verdict.reason or "")


def test_a_mistake_beside_what_was_left_is_different(check: Check) -> None:
    left = CONVERTED.replace("return z + 1", f"{TODO}print('left')\n        return z + 1")
    assert check(MODULE, left, initial=False).verdict is VerdictKind.EQUIVALENT
    verdict = check(MODULE, left.replace("y * 2", "y * 3"), initial=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason
    verdict = check(MODULE, left)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


def test_a_failure_of_the_compiler_is_not_one_of_the_conversion(check: Check) -> None:
    """XLA says of some programs that it can't run them on the CPU, whatever they mean."""
    fails = 'raise jax.errors.JaxRuntimeError("{}: Encountered negative padding in IrEmitter on CPU")'
    verdict = check(TORCH.format(body="pass"), JAX.format(body=fails.format("INTERNAL")))
    assert verdict.verdict is VerdictKind.UNCHECKED, verdict.reason
    assert (verdict.reason or "").startswith("XLA itself fails"), verdict.reason
    verdict = check(TORCH.format(body="pass"), JAX.format(body=fails.format("INVALID_ARGUMENT")))
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


SHIFTED = """
import torch.nn.functional as F


# t2j: x=f32[3, 4, 6], amount=2
def f(x, amount):
    return F.pad(x, (0, 0, amount, -amount)) * x
"""


@pytest.mark.parametrize(("before", "kind"), [("amount", "EQUIVALENT"), ("-amount", "DIFFERENT")])
def test_a_program_that_only_a_check_s_own_flags_break_is_compared_as_it_is_compiled(
    check: Check, before: str, kind: str
) -> None:
    """Without its simplifier, XLA has no kernel for a padding of its own that crops."""
    pads = f"((0, 0, 0), ({before}, -({before}), 0), (0, 0, 0))"
    shifted = f"import jax\n\n\ndef f(x, amount):\n    return jax.lax.pad(x, 0.0 * x.sum(), {pads}) * x\n"
    verdict = check(SHIFTED, shifted)
    assert verdict.verdict is VerdictKind[kind], verdict.reason


BLOCKS = """\
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        x = x * {factor}
        return x.relu()


class Whole(nn.Module):
    def forward(self, x):
        return x * {factor}
"""
USER = """\
from torch import nn

from blocks import {name}


# t2j: x=f32[2, 3]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = {name}()

    def forward(self, x):
        return self.part(x) + 1
"""


@pytest.mark.parametrize("name", ["Scaled", "Whole"])
def test_what_was_left_in_another_file_is_unchecked_and_mistakes_there_are_not(
    pool: Pool, tmp_path: Path, name: str
) -> None:
    source, blocks = tmp_path / "user.py", tmp_path / "blocks.py"
    blocks.write_text(BLOCKS.format(factor=2))
    source.write_text(USER.format(name=name))
    code = convert_file(source, Options()).translation.code
    other = convert_file(blocks, Options()).translation.code.replace("x * 2", "x * 3")
    todo = "# TODO(t2j): there is no rule for this\n        return"
    other = other.replace("return jax.nn.relu(x)", f"{todo} x.no_such_method()").replace(
        "return nnx.relu(x)", f"{todo} x.no_such_method()"
    )
    assert todo in other
    report = check_files(source, code, ["Net"], pool=pool, neighbour=lambda path: other)
    verdict = report.objects[-1]
    if name == "Whole":
        assert verdict.verdict is VerdictKind.DIFFERENT
    else:
        assert verdict.verdict is VerdictKind.UNCHECKED
        assert "blocks.py, line" in (verdict.reason or "")
