"""Fixed bugs that are offered without a model: what is offered is like the case, and mostly nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.offers import KINDS, measured
from t2j_lsp.contract import Finding, Severity, Span
from t2j_lsp.fixes.record import Case, Pair, statement_at
from t2j_lsp.retrieval import Similar, dataset
from t2j_lsp.retrieval.similar import case_of

PAIRS = [pair for example in dataset() for pair in example.pairs]
TORCH = "import torch\n\n\ndef f(x):\n    return x.sort().values[:3].cumsum(0)\n"
JAX = "import jax\n\n\ndef f(x):\n    return jax.numpy.sort(x)[:3].cumsum(0)\n"


@pytest.fixture(scope="module")
def known() -> Similar:
    return Similar(dataset())


def pair_of(identity: str) -> Pair:
    return next(pair for pair in PAIRS if pair.id == identity)


def causes(similar: list) -> list[str]:  # type: ignore[type-arg]
    return [one.pair.bug.root_cause for one in similar]


@pytest.mark.parametrize(
    ("kind", "least_offers", "least_right", "most_alone"),
    [(KINDS[0], 65, 0.8, 0.1), (KINDS[1], 40, 0.85, 0.05), (KINDS[2], 10, 0.85, 0.05)],
)
def test_offers_are_mostly_of_the_same_root_cause(
    known: Similar, kind: str, least_offers: int, least_right: float, most_alone: float
) -> None:
    """Pairs of the same program are left out; ``alone`` are questions to which no other program has the answer."""
    shares = measured(known, PAIRS, kind)
    assert shares.offers >= least_offers
    assert shares.right / shares.offers >= least_right
    assert shares.alone_offers / shares.alone <= most_alone


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'vocabulary.txt'", "raises"),
        ("ModuleNotFoundError: No module named 'einops'", "does not load"),
        ("eval output differs by 0.5 of its scale in 3 of 3 elements: 1 in torch and 2 in JAX at [0]", "differs"),
    ],
)
def test_nothing_is_offered_for_what_is_like_none(known: Similar, error: str, outcome: str) -> None:
    assert known.similar(Case(TORCH, 5, JAX, 5, error, outcome)) == []  # type: ignore[arg-type]


def test_an_error_is_like_the_same_error_of_other_programs(known: Similar) -> None:
    torch = "from torch import nn\n\n\nclass A(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(3, 4)\n"
    jax = torch.replace("torch import nn", "flax import nnx").replace("nn.", "nnx.")
    error = "TypeError: Linear.__init__() missing 1 required keyword-only argument: 'rngs'"
    value = known.similar(Case(torch, 6, jax, 6, error, "raises"))
    assert set(causes(value)) == {"rngs-missing"}
    assert value[0].score >= value[-1].score


def test_a_case_without_lines_goes_by_its_message_alone_and_is_offered_nothing(known: Similar) -> None:
    case = replace(case_of(PAIRS[0]), source_line=None, code_line=None, edit=None, outcome="differs")
    assert known.similar(case) == []


def test_an_edit_that_mends_a_difference_finds_the_bugs_that_it_mended(known: Similar) -> None:
    faulty, fixed = "    y = jax.nn.gelu(x + 1)", "    y = jax.nn.gelu(x + 1, approximate=False)"
    case = Case(TORCH, 5, JAX, 5, "eval output differs by 1e-05 of its scale", "differs", (faulty, fixed))
    assert causes(known.similar(case))[0] == "gelu-approximation"


def test_pairs_about_a_name_are_of_several_causes(known: Similar) -> None:
    result = causes(known.about("torch.nn.functional.cross_entropy"))
    assert "softmax-before-loss" in result and len(set(result)) == len(result) == 3
    assert causes(known.about("torch.Tensor.std")) == ["std-biased", "unbiased-in-forward"]
    assert known.about("torch.nn.Transformer") == []


def gap(code: str, name: str, line: int, end_line: int) -> Finding:
    return Finding(Span(line, 0, end_line, 0), name, code, Severity.GAP, "reason")


def test_a_refused_name_finds_mistakes_in_converting_it(known: Similar) -> None:
    result = causes(known.for_gap(gap("refused", "torch.autograd.grad", 1, 1), "torch.autograd.grad(y, x)\n"))
    assert result and all("grad" in cause for cause in result)
    assert known.for_gap(gap("refused", "torch.jit.trace", 1, 1), "torch.jit.trace(f, x)\n") == []


def test_a_training_loop_that_stays_finds_those_of_loops_like_it(known: Similar) -> None:
    source = pair_of("optax_momentum_loop/updates-not-applied").example.input_code
    lines = source.splitlines()
    first = next(i for i, line in enumerate(lines, 1) if line.lstrip().startswith("for "))
    result = known.for_gap(
        gap("training-loop", "training loop", first, len(lines)),
        source,
        but=lambda pair: pair.example.program == "optax_momentum_loop",
    )
    assert result and {one.pair.bug.category for one in result} <= {"training", "parameter updates"}
    reading = "import torch\nfor line in open('a'):\n    print(torch.load(line))\n"
    assert known.for_gap(gap("training-loop", "training loop", 2, 3), reading) == []


def test_what_is_written_in_place_finds_what_was(known: Similar) -> None:
    source = "def f(w, m):\n    return g(w.masked_fill_(m, 0.0).mul_(2))\n"
    result = known.for_gap(gap("in-place", "in-place", 2, 2), source)
    assert result and all(one.pair.bug.sub_category == "in-place" for one in result)
    assert known.for_gap(gap("in-place", "in-place", 1, 1), "x = x.requires_grad_()\n") == []


def test_of_a_statement_with_a_body_only_its_line_is_compared() -> None:
    assert statement_at("for i in x:\n    a(i)\n    b(\n        i)\n", 1) == "for i in x:"
    assert statement_at("for i in x:\n    a(i)\n    b(\n        i)\n", 4) == "    b(\n        i)"
    assert statement_at("def f(:", 1) == "" and statement_at("x = 1\n", 9) == ""
