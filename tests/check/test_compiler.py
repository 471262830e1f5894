"""What XLA, compiling in haste, gets wrong: no mistakes of the code that is checked."""

from __future__ import annotations

import pytest

from t2j_lsp.check.messages import JaxObserved
from t2j_lsp.check.process.requests import WorkerRequests
from t2j_lsp.check.requests import JaxRequest
from t2j_lsp.contract import VerdictKind

from .conftest import Check

TORCH = """
# t2j: x=f32[3, 3, 17, 19]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)
    def forward(self, x):
        x = F.gelu(self.norm(self.conv(x)))
        y = (x - x.mean((2, 3), keepdim=True)).{reduce}((2, 3))
        return torch.softmax(self.fc(y), dim=1)
"""
JAX = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.conv = nnx.Conv(3, 8, kernel_size=(3, 3), padding="VALID", rngs=rngs)
        self.norm = nnx.BatchNorm(8, momentum=0.9, epsilon=1e-5, use_fast_variance=False, rngs=rngs)
        self.fc = nnx.Linear(8, 5, rngs=rngs)
    def __call__(self, x):
        kept = self.norm.momentum * self.norm.var[...]
        training = not self.norm.use_running_average
        x = self.norm(self.conv(jnp.moveaxis(x, 1, -1)))
        if training:
            self.norm.var[...] += (self.norm.var[...] - kept) / (x.size // 8 - 1)
        x = jnp.moveaxis(jax.nn.gelu(x, approximate=False), -1, 1)
        y = (x - {mean}).{reduce}(axis=(2, 3))
        return jax.nn.softmax(self.fc(y), axis=1)
"""
MEAN = "x.mean(axis=(2, 3), keepdims=True)"
FUNCTION = """
# t2j: x=f32[3, 8, 15, 17], w=f32[8, 1, 1]
def f(x, w):
    x = {gelu}
    return {result}
"""


@pytest.mark.parametrize(("torch", "jax"), [("amax", "max"), ("amin", "min")])
def test_the_gradient_of_a_maximum_behind_a_norm_is_equivalent(check: Check, torch: str, jax: str) -> None:
    verdict = check(TORCH.format(reduce=torch), JAX.format(mean=MEAN, reduce=jax), initial=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


@pytest.mark.parametrize(("kept", "verdict"), [("y", VerdictKind.EQUIVALENT), ("2 * y", VerdictKind.DIFFERENT)])
def test_a_module_whose_parts_change_with_a_call_is_compiled_for_each_form(
    check: Check, kept: str, verdict: VerdictKind
) -> None:
    both = "        y = y if self.kept is None else y + self.kept\n        self.kept = {}\n        return"
    torch = TORCH.format(reduce="amax").replace("        self.fc", "        self.kept = None\n        self.fc")
    torch = torch.replace("        return", both.format("y.detach()"))
    jax = JAX.format(reduce="max", mean=MEAN)
    jax = jax.replace("        self.fc", "        self.kept = nnx.data(None)\n        self.fc")
    jax = jax.replace("        return", both.format(f"lax.stop_gradient({kept})"))
    assert check(torch, jax, initial=False).verdict is verdict


def test_a_gradient_that_is_cut_is_still_different(check: Check) -> None:
    wrong = JAX.format(mean=f"lax.stop_gradient({MEAN})", reduce="max")
    verdict = check(TORCH.format(reduce="amax"), wrong, initial=False)
    assert verdict.verdict is VerdictKind.DIFFERENT
    assert "gradient" in str(verdict.reason)
    assert "NaN" not in str(verdict.reason)


@pytest.mark.parametrize(
    ("mean", "verdict"), [("{}", VerdictKind.EQUIVALENT), ("lax.stop_gradient({})", VerdictKind.DIFFERENT)]
)
def test_a_function_of_a_maximum(check: Check, mean: str, verdict: VerdictKind) -> None:
    torch = FUNCTION.format(gelu="F.gelu(x * w + w)", result="(x - x.mean((2, 3), keepdim=True)).amax((2, 3))")
    jax = FUNCTION.format(
        gelu="jax.nn.gelu(x * w + w, approximate=False)", result=f"(x - {mean.format(MEAN)}).max(axis=(2, 3))"
    )
    report = check(torch, jax)
    assert report.verdict is verdict, report.reason


LONG = """
# t2j: x=f32[5, 3, 17, 19]
def f(x):
    return torch.softmax(F.gelu(x), dim=0) * 2
"""


def test_a_softmax_over_a_long_first_axis_is_equivalent(check: Check) -> None:
    """XLA's CPU compiler gets it wrong where its algebraic simplifier is off, as it is in the worker."""
    jax = "def f(x):\n    return jax.nn.softmax(jax.nn.gelu(x, approximate=False), axis=0) * 2\n"
    verdict = check(LONG, jax)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


def test_a_softmax_over_the_wrong_axis_is_still_different(check: Check) -> None:
    jax = "def f(x):\n    return jax.nn.softmax(jax.nn.gelu(x, approximate=False), axis=1) * 2\n"
    assert check(LONG, jax).verdict is VerdictKind.DIFFERENT


NORM = """
class Net({base}):
    def __init__(self{rngs}):
        {init}self.norm = {norm}
    def {call}(self, x):
        return {value}
"""
NORM_OF_FLAX = "nnx.BatchNorm(3, momentum={}, epsilon=1e-5, use_fast_variance=False, rngs=rngs)"
IN_TRAINING = {
    "an output": ("x * (2 if self.training else 1)", "x * (3 if self.training else 1)", 0.9),
    "a buffer": ("self.norm(x)", "self.norm(x)", 0.8),
}


@pytest.mark.parametrize("what", IN_TRAINING)
def test_what_differs_in_training_mode_without_jit_too_is_not_compiled_with_care(
    what: str, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[JaxRequest] = []
    observe = WorkerRequests.observe_jax

    def noted(self: WorkerRequests, request: JaxRequest) -> JaxObserved:
        asked.append(request)
        return observe(self, request)

    monkeypatch.setattr(WorkerRequests, "observe_jax", noted)
    torch, jax, momentum = IN_TRAINING[what]
    jax = jax.replace("self.training", "not self.norm.use_running_average")
    text = {"base": "nn.Module", "rngs": "", "init": "super().__init__(); ", "norm": "nn.BatchNorm1d(3)"}
    source = "# t2j: x=f32[5, 3]" + NORM.format(call="forward", value=torch, **text)
    text = {"base": "nnx.Module", "rngs": ", *, rngs", "init": "", "norm": NORM_OF_FLAX.format(momentum)}
    verdict = check(source, NORM.format(call="__call__", value=jax, **text), causes=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason
    assert [one.eager_mode for one in asked if one.eager_mode] == ["train"]
    assert not any(one.careful for one in asked)


PADDED = """
# t2j: x=f32[2, 3, 5]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 5)
    def forward(self, x):
        return F.pad(self.fc(x), (1, 1)).unfold(2, 3, 1) ** 2
"""
INDEXED = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = nnx.Linear(5, 5, rngs=rngs)
    def __call__(self, x):
        padded = jnp.pad(self.fc(x), ((0, 0), (0, 0), {pads}))
        return padded[:, :, jnp.arange(5)[:, None] + jnp.arange(3)] ** 2
"""


@pytest.mark.parametrize(("pads", "verdict"), [("(1, 1)", VerdictKind.EQUIVALENT), ("(2, 0)", VerdictKind.DIFFERENT)])
def test_where_xla_needs_its_simplifier_it_has_it(check: Check, pads: str, verdict: VerdictKind) -> None:
    """The gradient of padding crops, and XLA can't, if what it crops was written to by index."""
    checked = check(PADDED, INDEXED.format(pads=pads), initial=False)
    assert checked.verdict is verdict, checked.reason
