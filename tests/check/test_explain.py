"""The values of both sides, statement by statement: which agree, which part first, and what is said about them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from t2j_lsp.check import attempt
from t2j_lsp.check.difference.explain import BINS, HEADERS, STEPS, Run, closing, errors, explanation, histogram, table
from t2j_lsp.check.difference.localise import Alignment
from t2j_lsp.check.messages import StatementSite, Traced, TraceEvent
from t2j_lsp.contract import Explanation, Location, ObjectVerdict, Step, VerdictKind

from .conftest import Check

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = self.conv(x)
        x = F.gelu(x)
        y = x.mean((2, 3))
        return self.fc(y)
"""
NNX = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.conv = nnx.Conv(3, 8, (3, 3), padding="VALID", rngs=rngs)
        self.fc = nnx.Linear(8, 5, rngs=rngs)

    def __call__(self, x):
        x = self.conv(jnp.moveaxis(x, 1, -1))
        x = jax.nn.gelu(x, approximate=False)
        y = x.mean((1, 2))
        return self.fc(y)
"""


def explained(verdict: ObjectVerdict) -> Explanation:
    assert verdict.explanation is not None
    return verdict.explanation


def step_of(explanation: Explanation, target: str) -> Step:
    return next(s for s in explanation.steps if s.target == target)


def test_a_planted_mistake_is_the_first_step_that_parts(check: Check) -> None:
    verdict = check(NET, NNX.replace(", approximate=False", ""), explain=True, eager=False)
    shown = explained(verdict)
    assert verdict.verdict is VerdictKind.DIFFERENT and shown.first is not None
    first = shown.steps[shown.first]
    assert first.torch is not None and first.jax is not None and verdict.divergence is not None
    assert (first.torch.text, first.jax.text) == ("x = F.gelu(x)", "x = jax.nn.gelu(x)")
    assert (first.torch.location, first.jax.location) == (verdict.divergence.torch, verdict.divergence.jax)
    assert not first.agree and all(s.agree for s in shown.steps[: shown.first])
    assert first.max_abs_err is not None and 1e-5 < first.max_abs_err < 1e-2
    assert first.max_rel_err is not None and 1e-6 < first.max_rel_err < 1e-2
    worst = first.worst
    assert worst is not None and len(worst.index) == 4
    assert abs(float(worst.torch) - float(worst.jax)) == pytest.approx(first.max_abs_err)
    assert not step_of(shown, "return").agree


def test_channels_last_on_one_side_agrees(check: Check) -> None:
    verdict = check(NET, NNX, explain=True, eager=False, initial=False)
    shown = explained(verdict)
    assert verdict.verdict is VerdictKind.EQUIVALENT and shown.first is None and shown.precision == "float64"
    assert all(s.agree for s in shown.steps)
    first = next(s for s in shown.steps if s.torch and s.torch.text == "x = F.gelu(x)")
    assert first.layout and first.torch is not None and first.jax is not None
    assert first.torch.shape[1] == first.jax.shape[-1] == 8 and first.torch.shape != first.jax.shape
    # Elements are in torch's order on both sides.
    assert first.jax.values == pytest.approx(first.torch.values)
    assert (first.torch.minimum, first.torch.maximum) == pytest.approx((first.jax.minimum, first.jax.maximum))
    assert first.histogram is not None and len(first.histogram.edges) == BINS + 1
    assert first.histogram.torch == first.histogram.jax
    assert sum(first.histogram.torch) == np.prod(first.torch.shape)
    assert not step_of(shown, "y").layout


def test_nothing_is_explained_that_was_not_asked_for(check: Check) -> None:
    verdict = check(NET, NNX, eager=False, initial=False)
    assert verdict.explanation is None and "explanation" not in verdict.to_json()


def test_a_gradient_that_parts_is_a_step_although_every_statement_agrees(check: Check) -> None:
    wrong = NNX.replace("y = x.mean", "x = jax.lax.stop_gradient(x)\n        y = x.mean")
    verdict = check(NET, wrong, explain=True, eager=False)
    shown = explained(verdict)
    assert verdict.verdict is VerdictKind.DIFFERENT and shown.first is not None
    first = shown.steps[shown.first]
    assert first.target.startswith("gradient of") and not first.agree and first.torch is not None
    assert all(s.agree for s in shown.steps[: shown.first])


def test_where_jax_raises_the_statement_that_was_not_reached_is_the_first(check: Check) -> None:
    wrong = NNX.replace("y = x.mean((1, 2))", "y = x.mean((1, 2)) + jnp.zeros(3)")
    shown = explained(check(NET, wrong, explain=True, eager=False))
    assert shown.first is not None
    first = shown.steps[shown.first]
    assert not first.agree and first.torch is not None and first.torch.text == "y = x.mean((2, 3))"
    assert first.jax is not None and first.jax.text == "y = x.mean((1, 2)) + jnp.zeros(3)" and not first.jax.values
    assert first.max_abs_err is None


def test_shapes_that_do_not_fit_have_no_error(check: Check) -> None:
    torch = "def f(x: torch.Tensor):\n    m = x.mean(1, keepdim=True)\n    return x - m\n"
    jax = "def f(x):\n    m = x.mean(0, keepdims=True)\n    return x - m\n"
    shown = explained(check(torch, jax, explain=True, eager=False))
    assert shown.first is not None
    first = shown.steps[shown.first]
    assert first.target == "m" and first.max_abs_err is None and first.worst is None
    assert first.torch is not None and first.jax is not None and first.torch.shape != first.jax.shape


def test_statements_of_one_side_alone_accuse_nobody(check: Check) -> None:
    torch = "def f(x: torch.Tensor):\n    y = x * 2\n    return y + 1\n"
    jax = "def f(x):\n    two = x + x\n    y = two\n    return y + 1\n"
    shown = explained(check(torch, jax, explain=True, eager=False))
    alone = step_of(shown, "two")
    assert alone.torch is None and alone.jax is not None and alone.agree and shown.first is None


def test_statements_with_one_value_stand_for_each_other_whatever_they_assign_to(check: Check) -> None:
    torch = "def f(q: torch.Tensor, k: torch.Tensor):\n    s = q * k\n    p = torch.exp(s)\n    return p.sum(-1)\n"
    jax = "def f(q, k):\n    logits = k * q\n    weights = jnp.exp2(logits)\n    return weights.sum(-1)\n"
    shown = explained(check(torch, jax, explain=True, eager=False))
    step = step_of(shown, "s")
    assert step.torch is not None and step.jax is not None and step.agree
    assert (step.torch.text, step.jax.text) == ("s = q * k", "logits = k * q")
    assert shown.first is not None and shown.steps[shown.first].target == "return"


def test_numbers_that_are_not_finite_stay_out_of_json_and_histograms(check: Check) -> None:
    torch = "def f(x: torch.Tensor):\n    y = torch.log(x)\n    return y * 2\n"
    jax = "def f(x):\n    y = jnp.log(jnp.abs(x))\n    return y * 2\n"
    verdict = check(torch, jax, explain=True, eager=False)
    shown = explained(verdict)
    json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert shown.first is not None
    first = shown.steps[shown.first]
    assert first.max_abs_err is None and first.histogram is not None and first.worst is not None
    assert first.worst.torch == "nan" and isinstance(first.worst.jax, float)
    assert first.histogram.torch_nonfinite > 0 and first.torch is not None
    assert sum(first.histogram.torch) + first.histogram.torch_nonfinite == np.prod(first.torch.shape)


def test_an_error_is_infinite_where_one_side_alone_is_not_finite() -> None:
    left = np.array([1.0, np.nan, np.inf, np.inf, 2.0])
    assert errors(left, left).tolist() == [0.0] * 5
    assert errors(left, np.array([1.5, 0.0, np.inf, -np.inf, np.nan])).tolist() == [0.5, np.inf, 0.0, np.inf, np.inf]


def test_histograms_have_common_edges() -> None:
    result = histogram(np.array([0.0, 1.0, 2.0]), np.array([2.0, 3.0, np.nan]))
    assert result is not None and (result.edges[0], result.edges[-1]) == (0.0, 3.0)
    assert (sum(result.torch), sum(result.jax), result.torch_nonfinite, result.jax_nonfinite) == (3, 2, 0, 1)
    assert histogram(np.array(1.0), np.array(2.0)) is None
    assert histogram(np.array([np.nan, np.inf]), np.array([np.nan, np.inf])) is None
    assert histogram(np.array([-1e308, 1e308]), np.array([0.0, 0.0])) is None
    same = histogram(np.ones(3), np.ones(3))
    assert same is not None and sum(same.torch) == 3


def test_of_large_values_only_the_first_are_compared_and_that_is_said(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "BYTES", 5000)
    torch = "# t2j: x=f32[10, 40]\ndef f(x: torch.Tensor):\n    a = x * 2\n    b = a * 2\n    c = b * 2\n    return c\n"
    jax = "def f(x):\n    a = x * 2\n    b = a * 2\n    c = b * 2\n    return c\n"
    shown = explained(check(torch, jax, explain=True, eager=False))
    assert [s.target for s in shown.steps] == ["a", "b"] and shown.cut
    assert any("not compared" in line for line in closing(shown))
    monkeypatch.setattr(attempt, "BYTES", 10**6)
    shown = explained(check(torch, jax, explain=True, eager=False))
    assert [s.target for s in shown.steps] == ["a", "b", "c", "return"] and not shown.cut


def trace(values: list[float]) -> Traced:
    sites = [StatementSite("f.py", n + 1, "f", f"x{n}", ()) for n in range(len(values))]
    events = [TraceEvent(n, np.array([value, 1.0]), None) for n, value in enumerate(values)]
    return Traced(sites, events, full=False)


@pytest.mark.parametrize("wrong", [None, 3, 700, 999])
def test_an_answer_is_bounded_and_holds_the_first_step_that_parts(wrong: int | None) -> None:
    torch, jax = [1.0] * 1000, [1.0] * 1000
    if wrong is not None:
        jax[wrong:] = [2.0] * (1000 - wrong)
    shown = explanation(Alignment(trace(torch), trace(jax)), Run("eval", True, ({}, {})))
    assert len(shown.steps) <= STEPS and len(shown.steps) + shown.left_out == 1000
    if wrong is None:
        assert shown.first is None and closing(shown)[0] == "every step agrees"
    else:
        assert shown.first is not None and shown.steps[shown.first].target == f"x{wrong}"
        rows = list(table(shown))
        assert len(rows[0]) == len(HEADERS) and [row[0] for row in rows].index(">") == shown.first
    assert any("not listed" in line for line in closing(shown))


def test_an_explanation_is_no_more_than_its_lines_have(tmp_path: Path) -> None:
    shown = explanation(Alignment(trace([1.0]), trace([1.0])), Run("eval", True, ({"f.py": ["x0 = 1  "]}, {})))
    (step,) = shown.steps
    assert step.torch is not None and step.jax is not None
    assert (step.torch.text, step.jax.text) == ("x0 = 1", "")
    assert step.torch.location == Location("f.py", 1)
