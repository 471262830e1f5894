"""What is asked for: the gaps of one definition in the conversion as it stands, or a definition that differs."""

from __future__ import annotations

import pytest

from t2j_lsp import convert
from t2j_lsp.assist.spans import refused_spans, replaced
from t2j_lsp.contract import T2JError, Translation
from t2j_lsp.lsp.asking.part import differing, with_gaps

SOURCE = """\
import torch


def first(x):
    a = torch.ops.aten.cumsum(x, dim=0)
    b = torch.ops.aten.cumsum(x, dim=1)
    return a + b


def second(x):
    c = torch.ops.aten.cumsum(x, dim=0)
    return torch.relu(c)


print(torch.ops.aten.cumsum(torch.ones(3), dim=0))
"""
RULES = convert(SOURCE)


def spans(part: Translation) -> list[str]:
    return [span.converted(part.code).splitlines()[-1].strip() for span in refused_spans(part)]


def test_only_the_gaps_of_the_definition_are_asked_for() -> None:
    assert spans(with_gaps(RULES, RULES.code, "second")) == ["c = torch.ops.aten.cumsum(x, dim=0)"]
    assert len(spans(with_gaps(RULES, RULES.code, "first"))) == 2
    (outside,) = spans(with_gaps(RULES, RULES.code, ""))
    assert outside.startswith("print(torch.ops.aten.cumsum(")


def test_edits_around_a_gap_are_kept_and_move_it() -> None:
    text = RULES.code.replace("def second", "# Mine.\nLIMIT = 3\n\n\ndef second")
    part = with_gaps(RULES, text, "second")
    done = replaced(part, {1: "c = jnp.cumsum(x, axis=0)"})
    assert spans(part) == ["c = torch.ops.aten.cumsum(x, dim=0)"]
    assert "LIMIT = 3" in done.code and "    c = jnp.cumsum(x, axis=0)\n" in done.code
    assert done.code.count("torch.ops.aten.cumsum(") == RULES.code.count("torch.ops.aten.cumsum(") - 1


def test_what_somebody_answered_is_not_asked_for_again() -> None:
    text = replaced(RULES, {1: "(a,) = [jnp.cumsum(x, axis=0)]"}).code
    assert spans(with_gaps(RULES, text, "first")) == ["b = torch.ops.aten.cumsum(x, dim=1)"]
    both = replaced(RULES, {1: "a = jnp.cumsum(x, axis=0)", 2: "b = jnp.cumsum(x, axis=1)"}).code
    with pytest.raises(T2JError, match="nothing in first that is still in the conversion"):
        with_gaps(RULES, both, "first")


def test_an_unverified_draft_is_asked_for_again_and_replaced() -> None:
    mark = "# TODO(t2j): unverified draft by small: different: values\n"
    text = replaced(RULES, {2: f"{mark}b = jnp.diff(x)\nb = b + 1"}).code
    part = with_gaps(RULES, text, "first")
    assert spans(part) == ["a = torch.ops.aten.cumsum(x, dim=0)", "b = b + 1"]
    done = replaced(part, {2: "b = jnp.cumsum(x, axis=1)"}).code
    assert "unverified" not in done and "jnp.diff" not in done and "b = b + 1" not in done


def test_a_definition_that_differs_is_asked_for_as_a_whole_with_its_decorators() -> None:
    source = "import torch\n\n\n@torch.no_grad()\ndef f(x):\n    return x\n"
    text = "import jax\n\n\n@jax.jit\ndef f(x):\n    return -x\n\n\ndef g(x):\n    return x\n"
    part = differing(source, text, "f", "outputs differ")
    (span,) = refused_spans(part)
    assert span.converted(text) == "@jax.jit\ndef f(x):\n    return -x\n"
    assert span.source(source).startswith("@torch.no_grad()") and span.findings[0].reason == "outputs differ"
    with pytest.raises(T2JError, match="g is not on both sides"):
        differing(source, text, "g", "")
