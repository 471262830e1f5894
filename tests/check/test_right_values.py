"""Right conversions whose numbers, dtypes or kept values differ in a way of their own are not accused."""

from __future__ import annotations

import os

import pytest

from t2j_lsp.api import convert, convert_expression
from t2j_lsp.contract import VerdictKind

from .conftest import TORCH, Check

QUANTIZED = """
def f(x: {array}):
    scale = {scale} / {abs}(x).max()
    return {cast} / scale
"""


STEP = {
    "torch": {"array": "torch.Tensor", "abs": "torch.abs", "cast": "(x * scale).to(torch.int32)", "scale": "127"},
    "jax": {"array": "jax.Array", "abs": "jnp.abs", "cast": "(x / (1 / scale)).astype(jnp.int32)", "scale": "127"},
}


def test_a_value_on_the_edge_of_a_step_is_no_difference(check: Check) -> None:
    """The largest element is 127 times itself by itself: rounding decides whether that is cast to 126."""
    torch = QUANTIZED.format(**STEP["torch"])
    verdict = check(torch, QUANTIZED.format(**STEP["jax"]))
    assert verdict.verdict is not VerdictKind.DIFFERENT, verdict.reason
    wrong = ({"scale": "255"}, {"cast": "jnp.round(x * scale)"}, {"cast": "jnp.floor(x * scale)"})
    for mistake in wrong:
        assert check(torch, QUANTIZED.format(**STEP["jax"] | mistake)).verdict is VerdictKind.DIFFERENT, mistake


@pytest.mark.parametrize("wrong", ["x > 0.5", "x * 2 > 1", "x >= 0.25"])
def test_a_tie_that_no_rounding_makes_is_compared(check: Check, wrong: str) -> None:
    text = "# t2j: x=torch.tensor([[0.5, -0.5, 0.25, 1.0]])\ndef f(x):\n    return {}({}, x, 0.0)\n"
    torch = text.format("torch.where", "x >= 0.5")
    assert check(torch, text.format("jnp.where", "x >= 0.5")).verdict is VerdictKind.EQUIVALENT
    assert check(torch, text.format("jnp.where", wrong)).verdict is VerdictKind.DIFFERENT


STANDARDISED = {
    "the sum of many": ("(x - x.mean()) / x.std()", "(x - x.mean()) / x.std(ddof=1)", "(x - x.mean()) / SPREAD"),
    "a singular vector of a nearly singular matrix": (
        "torch.linalg.svd(x[:, 0, :3, :3])[0]",
        "jnp.linalg.svd(x[:, 0, :3, :3], full_matrices=False)[0]",
        "jnp.linalg.svd(x[:, 0, :3, :3].mT, full_matrices=False)[0]",
    ),
}


FAST = "jnp.sqrt(((x**2).mean() - x.mean()**2) * (x.size / (x.size - 1)))"


@pytest.mark.parametrize(("torch", "jax", "wrong"), STANDARDISED.values(), ids=STANDARDISED)
def test_what_float32_makes_of_numbers_far_from_zero_accuses_nobody(
    check: Check, torch: str, jax: str, wrong: str
) -> None:
    """A sum in another order and a neighbouring matrix are as good; a variance that cancels is not."""
    text = "# t2j: x=f32[4, 3, 17, 19]\ndef f(x):\n    return {}\n"
    verdict = check(text.format(torch), text.format(jax))
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert check(text.format(torch), text.format(wrong.replace("SPREAD", FAST))).verdict is VerdictKind.DIFFERENT


CAST = "# t2j: x=f32[40]\ndef f(x):\n    return {}\n"


@pytest.mark.parametrize(
    ("torch", "right", "wrong"),
    [
        ("(255 * x).to(torch.uint8)", "(255 * x).astype(jnp.uint8)", "jnp.round(255 * x).astype(jnp.uint8)"),
        ("(300 * x).char()", "(300 * x).astype(jnp.int8)", "(300 * x).astype(jnp.int8) // 2"),
        ("(x / (x > 0)).type(torch.int16)", "(x / (x > 0)).astype(jnp.int16)", "(x / (x < 0)).astype(jnp.int16)"),
    ],
)
def test_numbers_that_an_integer_type_does_not_hold(torch: str, right: str, wrong: str, check: Check) -> None:
    """What they become is undefined in torch; what is within the type is compared as ever."""
    for jax, expected in ((right, VerdictKind.EQUIVALENT), (wrong, VerdictKind.DIFFERENT)):
        verdict = check(CAST.format(torch), CAST.format(jax).partition("\n")[2])
        assert verdict.verdict is expected, verdict.reason


def test_values_that_are_stored_in_whole_numbers(check: Check) -> None:
    body = "# t2j: x=f32[2, 5]\ndef f(x):\n    y = {zeros}\n    {store}\n    return y\n"
    torch = body.format(zeros="torch.zeros(2, 5, dtype=torch.uint8)", store="y[:, 1:] = 300 * x[:, 1:]")
    for factor, expected in ((300, VerdictKind.EQUIVALENT), (200, VerdictKind.DIFFERENT)):
        store = f"y = y.at[:, 1:].set(({factor} * x[:, 1:]).astype(jnp.uint8))"
        jax = body.format(zeros="jnp.zeros((2, 5), jnp.uint8)", store=store).partition("\n")[2]
        assert check(torch, jax).verdict is expected


WRITTEN = "# t2j: x=f32[3, 4], w=f32[3, 4]\ndef f(x, w):\n    "


FILLS = WRITTEN + "with torch.no_grad():\n        x.copy_(w)\n    return x * {}"


@pytest.mark.parametrize(
    ("torch", "jax", "verdict"),
    [
        # PyTorch's gradient of what was overwritten is that of the new values: there is none of the old to compare.
        (FILLS.format("2"), "return jax.lax.stop_gradient(w) * 2", VerdictKind.EQUIVALENT),
        (FILLS.format("2"), "return w * 2", VerdictKind.DIFFERENT),
        (FILLS.format("w"), "return jax.lax.stop_gradient(w) * w", VerdictKind.EQUIVALENT),
        (FILLS.format("w"), "return jax.lax.stop_gradient(w) * x", VerdictKind.DIFFERENT),
        (WRITTEN + "return x * 2 + w", "return jax.lax.stop_gradient(x) * 2 + w", VerdictKind.DIFFERENT),
        (WRITTEN + "x.mul_(w)\n    return x", "return jax.lax.stop_gradient(x) * w", VerdictKind.DIFFERENT),
    ],
)
def test_what_is_filled_without_gradients_has_none_of_its_old_values(
    torch: str, jax: str, verdict: VerdictKind, check: Check
) -> None:
    report = check(torch + "\n", f"def f(x, w):\n    {jax}\n")
    assert report.verdict is verdict, report.reason


@pytest.mark.parametrize(("factor", "verdict"), [("0.1", VerdictKind.EQUIVALENT), ("0.2", VerdictKind.DIFFERENT)])
def test_a_dtype_that_is_an_argument_is_as_wide_on_both_sides(factor: str, verdict: VerdictKind, check: Check) -> None:
    torch = "# t2j: x=f32[3, 50], dtype=torch.float32\ndef f(x, dtype):\n    return (x * 0.1).to(dtype)\n"
    jax = f"def f(x, dtype):\n    return (x * {factor}).astype(dtype)\n"
    report = check(torch, jax, expression=convert_expression)
    assert report.verdict is verdict, report.reason


SHARED = """
# t2j: x=f32[3, 4]
class Shared({base}):
    def __init__(self{rngs}):
        {start}
        {made}

    def {call}(self, x):
        for part in self.parts:
            x = part(x)
        return x
"""


FLAX_NORM = "nnx.LayerNorm(4, epsilon=1e-5, use_fast_variance=False, rngs=rngs)"


LISTED = "self.listed = {list}([{norm}, {norm}])\n        self.parts = {list}({copy})"


REMOVED = "self.parts = {list}([{norm}, {norm}, {norm}])\n        del self.parts[0]"


@pytest.mark.parametrize(
    ("made", "copy", "wanted"),
    [
        (LISTED, "self.listed", VerdictKind.EQUIVALENT),
        (LISTED, "[nnx.LayerNorm(4, epsilon=1e-5, rngs=rngs), self.listed[1]]", VerdictKind.DIFFERENT),
        (REMOVED, "", VerdictKind.EQUIVALENT),
    ],
)
def test_a_layer_with_two_names_counts_once(made: str, copy: str, wanted: VerdictKind, check: Check) -> None:
    """A plain list of layers has no names in PyTorch, and `nnx.List` keeps a second one of what moved up."""
    torch_made = made.replace("self.listed = {list}", "self.listed = ").format(
        list="nn.ModuleList", norm="nn.LayerNorm(4)", copy="self.listed"
    )
    jax_made = made.format(list="nnx.List", norm=FLAX_NORM, copy=copy)
    torch = SHARED.format(base="nn.Module", rngs="", start="super().__init__()", call="forward", made=torch_made)
    jax = SHARED.format(base="nnx.Module", rngs=", *, rngs", start="pass", call="__call__", made=jax_made)
    assert check(torch, jax, "Shared").verdict is wanted


@pytest.mark.parametrize(
    ("jax", "kind"),
    [("return t * 2 + x", "EQUIVALENT"), ("return t * 2", "DIFFERENT"), ("t = t * 2 + x", "DIFFERENT")],
)
def test_what_a_function_fills_is_what_it_gives_in_jax(jax: str, kind: str, check: Check) -> None:
    source = "# t2j: t=f32[3], x=f32[3]\ndef f(t, x):\n    t.mul_(2)\n    t.add_(x)\n"
    assert check(source, f"def f(t, x):\n    {jax}\n").verdict is VerdictKind[kind]


PUT_BACK = "t = jax.lax.stop_gradient(t * 0.9 + x - t) + t"


@pytest.mark.parametrize(
    ("rest", "jax", "kind"),
    [
        ("", f"{PUT_BACK}; return t", "EQUIVALENT"),
        ("", "return t * 0.8 + x", "DIFFERENT"),
        ("", "return t * 0.9 + x", "DIFFERENT"),  # the gradient of x
        ("return t * x", f"{PUT_BACK}; return t * x", "EQUIVALENT"),
        ("return t * x", "return (t * 0.9 + x) * x", "DIFFERENT"),
        ("return t * x", "return jax.lax.stop_gradient(t * 0.9 + x) * x", "DIFFERENT"),  # the gradient of t
    ],
)
def test_what_is_written_through_data_is_seen(rest: str, jax: str, kind: str, check: Check) -> None:
    source = f"# t2j: t=f32[3], x=f32[3]\ndef f(t, x):\n    t.data.mul_(0.9).add_(x)\n    {rest}\n"
    assert check(source, f"import jax\n\n\ndef f(t, x):\n    {jax}\n").verdict is VerdictKind[kind]


BY_DTYPE = """
{imports}


# t2j: x=i64[3, 5]
def f(x):
    if x.dtype {op} {integer}:
        x = x * 2 + 1
    return x * 3
"""


def test_integers_are_integers_whether_the_check_runs_in_float64_or_not(check: Check) -> None:
    """``x.dtype == torch.long`` is asked of ``jnp.int32``, which ids are in JAX but where it runs in float64."""
    torch = BY_DTYPE.format(imports="import torch", op="==", integer="torch.long")
    jax = BY_DTYPE.format(imports="import jax.numpy as jnp", op="==", integer="jnp.int32")
    listed = BY_DTYPE.format(imports="import jax.numpy as jnp", op="in", integer="(jnp.int32, jnp.int16)")
    for right in (jax, listed):
        verdict = check(torch, right)
        assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    for op, integer in (("!=", "jnp.int32"), ("==", "jnp.int16"), ("in", "(jnp.int16, jnp.float32)")):
        wrong = BY_DTYPE.format(imports="import jax.numpy as jnp", op=op, integer=integer)
        assert check(torch, wrong).verdict is VerdictKind.DIFFERENT, wrong


def test_a_number_of_bytes_is_that_of_the_precision_that_runs(check: Check) -> None:
    """Arrays of floats have 8 bytes for each in a check's first runs, and 4 in the user's precision, on both sides."""
    torch = "import torch\n\n\ndef size(x: torch.Tensor) -> int:\n    return x.element_size() * x.nelement()\n"
    right = "import jax\n\n\ndef size(x: jax.Array) -> int:\n    return x.itemsize * x.size\n"
    assert check(torch, right).verdict is VerdictKind.EQUIVALENT
    for factor in ("2", "4", "8 // x.itemsize"):
        assert check(torch, right.replace("x.itemsize *", f"{factor} *")).verdict is VerdictKind.DIFFERENT, factor


REFERENCE = """
# t2j: x=f32[4, 3]
class Reference({base}):
    def __init__(self{rngs}):
        {start}
        self.first, self.seen, self.scale = {none}, [], {scale}

    def {call}(self, x):
        if self.first is None:
            self.first = {stopped}
            return x * self.scale - self.first
        return x * self.scale - {later} * self.first
"""


@pytest.mark.parametrize(("later", "kind"), [("0.5", "EQUIVALENT"), ("0.6", "DIFFERENT")])
def test_what_the_first_call_keeps_in_an_attribute_counts_for_the_next(later: str, kind: str, check: Check) -> None:
    """So in a virtual batch norm: PyTorch's module came to its first observation with what a trial call had kept."""
    torch = REFERENCE.format(
        base="nn.Module", rngs="", start="super().__init__()", call="forward", later="0.5",
        none="None", scale="nn.Parameter(torch.ones(3))", stopped="x.mean(0).detach()",
    )  # fmt: skip
    jax = REFERENCE.format(
        base="nnx.Module", rngs=", *, rngs", start="pass", call="__call__", later=later,
        none="nnx.data(None)", scale="nnx.Param(jnp.ones(3))", stopped="jax.lax.stop_gradient(x.mean(0))",
    )  # fmt: skip
    verdict = check(torch, jax.replace("self.seen, ", "").replace("[], ", ""), "Reference")
    assert verdict.verdict is VerdictKind[kind], verdict.reason


ON_HOST = {
    "a number": ("(x > 0).float().mean().item()", "(x > 0).astype(jnp.float32).mean().item()", "> 0", ">= 0.1"),
    "a number, with other inputs": ("x.clamp(max=50).sum().item()", "x.clip(max=50).sum().item()", ".clip(max=50)", ""),
    "an array": ("(2 * x).detach().numpy()", "np.asarray(2 * x)", "2 * x", "3 * x"),
    "numbers beside a loss": ("(x.mean(), x.mean().item())", "(x.mean(), x.mean().item())", "(x", "(jnp.sin(x)"),
}


@pytest.mark.parametrize(("torch", "right", "part", "mistake"), ON_HOST.values(), ids=ON_HOST)
def test_a_function_that_returns_numbers_is_not_for_jit(
    torch: str, right: str, part: str, mistake: str, check: Check
) -> None:
    if os.environ.get("T2J_TEST_DEVICE") == "gpu" and "numpy()" in torch:
        pytest.skip("PyTorch makes no NumPy array of a tensor on a card")
    text = "# t2j: x=f32[4, 3]\ndef f(x):\n    return {}\n"
    verdict = check(text.format(torch), text.format(right))
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert (verdict.stages["numeric"].reason or "").startswith("compared without jit")
    wrong = check(text.format(torch), text.format(right.replace(part, mistake, 1)))
    assert wrong.verdict is VerdictKind.DIFFERENT, wrong.reason
    assert "without jit" not in (wrong.stages["numeric"].reason or "")


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        ("x / x.sum()", "x / x.sum().item()"),  # PyTorch doesn't wait for the number.
        ("(x / x.sum(), 3)", "(x / x.sum().item(), len(np.asarray(x)) - 1)"),
    ],
)
def test_a_conversion_that_asks_for_values_where_torch_does_not_fails_under_jit(
    torch: str, jax: str, check: Check
) -> None:
    text = "# t2j: x=f32[4, 3]\ndef f(x):\n    return {}\n"
    verdict = check(text.format(torch), text.format(jax))
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


def test_a_module_that_asks_for_values_is_different_whatever_it_returns(check: Check) -> None:
    torch = "class N(nn.Module):\n    def __init__(self):\n        super().__init__()\n        "
    torch += "self.l = nn.Linear(3, 3)\n"
    torch += "    def forward(self, x: torch.Tensor):\n        y = self.l(x)\n        return y, y.sum().item()\n"
    verdict = check(torch, convert(TORCH + torch).code)
    assert verdict.verdict is VerdictKind.DIFFERENT
    assert "not under jit" in (verdict.reason or "")


def test_gradients_where_the_output_is_infinite_decide_nothing(check: Check) -> None:
    """Where the larger of b and 0 is 0, the quotient is infinite: what is left of its gradient is 0 times that."""
    torch = "def f(a, b):\n    return (a * a + 5) / torch.maximum(b, torch.zeros_like(b))\n"
    jax = "def f(a, b):\n    return ({a} + 5) / jnp.maximum(b, jnp.zeros_like(b))\n"
    assert check(torch, jax.format(a="a * a")).verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.format(a="a * 2")).verdict is VerdictKind.DIFFERENT
    cut = "(a * jax.lax.stop_gradient(a))"
    assert check(torch, jax.format(a=cut)).verdict is VerdictKind.DIFFERENT


def test_gradients_that_are_no_numbers_where_the_output_is_one_are_told(check: Check) -> None:
    torch = "def f(x):\n    return torch.where(x > 0, torch.where(x > 0, x, torch.ones_like(x)).sqrt(), 0.0)\n"
    jax = "def f(x):\n    return jnp.where(x > 0, jnp.sqrt(x), 0.0)\n"
    verdict = check(torch, jax)
    assert verdict.verdict is VerdictKind.DIFFERENT and "not finite only in JAX" in (verdict.reason or "")
