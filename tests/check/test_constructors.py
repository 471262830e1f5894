"""What constructors do beside making layers: arrays that functions close over, numpy's draws, arguments by name."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp.api import convert_expression
from t2j_lsp.check.verdict.initial import compare_initial
from t2j_lsp.contract import VerdictKind

from .conftest import Check

BANDS = """
class Bands:
    def __init__(self, count):
        self.made = []
        for band in {first} ** {lib}.arange(count):
            self.made.append(lambda x, band=band: {lib}.sin(x * band))
    def on(self, x): return sum(f(x) for f in self.made)

class Embedded({base}):
    def __init__(self{rngs}):
        {start}
        self.fc, bands = {linear}, Bands(3)
        self.embed = lambda x, made=bands: made.on(x)
    def {call}(self, x): return self.fc(self.embed(x))
"""
TORCH_BANDS = BANDS.format(
    first="2.0", lib="torch", base="nn.Module", rngs="", start="super().__init__()", linear="nn.Linear(4, 5)",
    call="forward",
)  # fmt: skip
ITS_BANDS = {
    "lib": "jnp", "base": "nnx.Module", "rngs": ", *, rngs", "start": "pass", "linear": "nnx.Linear(4, 5, rngs=rngs)",
    "call": "__call__",
}  # fmt: skip


@pytest.mark.parametrize(("first", "wanted"), [("2.0", VerdictKind.EQUIVALENT), ("3.0", VerdictKind.DIFFERENT)])
def test_arrays_that_functions_in_attributes_close_over_are_computed(
    first: str, wanted: VerdictKind, check: Check
) -> None:
    verdict = check(TORCH_BANDS, BANDS.format(first=first, **ITS_BANDS), "Embedded", initial=False)
    assert verdict.verdict is wanted, verdict.reason


DRAWN = """
class Drawn({base}):
    def __init__(self{rngs}):
        {start}
        self.w = {parameter}({array}(np.random.randn(6, 6).astype(np.float32){scale}))
    def {call}(self, x): return x @ self.w
"""


@pytest.mark.parametrize(("scale", "wanted"), [("", VerdictKind.EQUIVALENT), (" * 1.3", VerdictKind.DIFFERENT)])
def test_what_numpy_draws_in_a_constructor_is_drawn_anew(scale: str, wanted: VerdictKind, check: Check) -> None:
    torch = DRAWN.format(
        base="nn.Module", rngs="", start="super().__init__()", parameter="nn.Parameter", array="torch.from_numpy",
        scale="", call="forward",
    )  # fmt: skip
    jax = DRAWN.format(
        base="nnx.Module", rngs=", *, rngs", start="pass", parameter="nnx.Param", array="jnp.array", scale=scale,
        call="__call__",
    )  # fmt: skip
    verdict = check(torch, jax)
    assert verdict.verdict is wanted, verdict.reason


def test_permutations_have_one_mean_but_for_rounding() -> None:
    rng = np.random.default_rng(0)
    many, few = (np.stack([rng.permutation(np.eye(6)).reshape(-1) for _ in range(n)]) for n in (400, 48))
    assert not compare_initial({"p": many}, {"p": few})
    assert compare_initial({"p": many}, {"p": 1.01 * few})


@pytest.mark.parametrize(("sign", "wanted"), [("", VerdictKind.EQUIVALENT), ("-", VerdictKind.DIFFERENT)])
def test_an_argument_is_made_of_what_the_file_imports_from_torch(sign: str, wanted: VerdictKind, check: Check) -> None:
    torch = """from torch import linalg as la
class Scaled(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm
    def forward(self, x): return x * self.norm

def make(): return Scaled(la.vector_norm(torch.ones(4)))
"""
    jax = "class Scaled(nnx.Module):\n    def __init__(self, norm):\n        self.norm = nnx.data(norm)\n"
    jax += f"    def __call__(self, x): return x * {sign}self.norm\n"
    verdict = check(torch, jax, "Scaled", expression=convert_expression)
    assert verdict.verdict is wanted, verdict.reason


@pytest.mark.parametrize(("sign", "wanted"), [("", VerdictKind.EQUIVALENT), ("-", VerdictKind.DIFFERENT)])
def test_a_module_among_the_arguments_that_another_file_has_is_given_rngs(
    sign: str, wanted: VerdictKind, check: Check
) -> None:
    torch = """class parts:
    class Part(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.fc = nn.Linear(n, n)
        def forward(self, x): return self.fc(x)
class Net(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part
    def forward(self, x): return self.part(x) * 2

def make(): return Net(parts.Part(3))
"""
    jax = """class parts:
    class Part(nnx.Module):
        def __init__(self, n, *, rngs): self.fc = nnx.Linear(n, n, rngs=rngs)
        def __call__(self, x): return self.fc(x)
class Net(nnx.Module):
    def __init__(self, part, *, rngs): self.part = part
"""
    jax += f"    def __call__(self, x): return {sign}self.part(x) * 2\n"
    verdict = check(torch, jax, "Net", expression=convert_expression, initial=False)
    assert verdict.verdict is wanted, verdict.reason
