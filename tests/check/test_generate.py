"""The method ``generate`` of a module: called on both sides, its mistakes found, and said where it was not compared."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from t2j_lsp import convert
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict, Result, StageResult, VerdictKind

from .conftest import AMPLE

MODEL = """import torch
import torch.nn as nn
import torch.nn.functional as F

class GPT(nn.Module):
    def __init__(self, vocab=13, dim=8, block_size=6):
        super().__init__()
        self.block_size = block_size
        self.wte = nn.Embedding(vocab, dim)
        self.wpe = nn.Embedding(block_size, dim)
        self.mix = nn.Linear(dim, dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, idx):
        pos = torch.arange(idx.size(1), device=idx.device)
        x = self.wte(idx) + self.wpe(pos)
        x = x + torch.cumsum(torch.tanh(self.mix(x)), dim=1)
        return self.head(x)

"""
GREEDY = """    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        for _ in range(max_new_tokens):
            context = idx[:, -self.block_size :]
            logits = self(context)[:, -1, :]
            following = torch.argmax(logits, dim=-1, keepdim=True)
            idx = torch.cat((idx, following), dim=1)
        return idx
"""
SAMPLING = """    @torch.inference_mode()
    def generate(self, prompt, max_new_tokens=100, temperature=1.0, do_sample=False, top_k=None):
        for _ in range(max_new_tokens):
            context = prompt if prompt.size(1) <= self.block_size else prompt[:, -self.block_size :]
            logits = self(context)[:, -1, :] / temperature
            if top_k is not None:
                kept, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < kept[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            if do_sample:
                following = torch.multinomial(probs, num_samples=1)
            else:
                _, following = torch.topk(probs, k=1, dim=-1)
            prompt = torch.cat((prompt, following), dim=1)
        return prompt
"""
FIRST, OTHER = "generate output", "generate output (other settings)"


@cache
def converted(method: str) -> str:
    return convert(MODEL + method).code


def check(pool: Pool, folder: Path, method: str, *edits: tuple[str, str], jax: str | None = None) -> ObjectVerdict:
    """The verdict on the model with a method: its conversion, edited."""
    source, other = folder / "source.py", folder / "converted.py"
    text = converted(method if jax is None else jax)
    for right, wrong in edits:
        assert right in text, f"{right} is not in\n{text}"
        text = text.replace(right, wrong)
    source.write_text(MODEL + method)
    other.write_text(text)
    return check_files(source, other, ["GPT"], pool=pool, budget=AMPLE).objects[0]


def behavioral(verdict: ObjectVerdict) -> StageResult:
    assert (verdict.verdict, verdict.reason) == (VerdictKind.EQUIVALENT, None)
    return verdict.stages["behavioral"]


def lines(verdict: ObjectVerdict, folder: Path) -> tuple[str, str]:
    """The lines of both files where the two part."""
    assert verdict.divergence is not None and verdict.divergence.torch and verdict.divergence.jax
    places = (verdict.divergence.torch, "source.py"), (verdict.divergence.jax, "converted.py")
    jax_side, torch_side = ((folder / name).read_text().splitlines()[place.line - 1].strip() for place, name in places)
    return jax_side, torch_side


@pytest.mark.parametrize(("method", "names"), [(GREEDY, {FIRST}), (SAMPLING, {FIRST, OTHER})])
def test_a_right_conversion_generates_the_same(method: str, names: set[str], pool: Pool, tmp_path: Path) -> None:
    stage = behavioral(check(pool, tmp_path, method))
    assert stage.result is Result.PASS and stage.reason is None
    assert {name for name in stage.observed if "generate" in name} == names


MISTAKES = {
    "the position before the last": (GREEDY, "[:, -1, :]", "[:, -2, :]", "logits = "),
    "a prompt that is not cropped": (GREEDY, "context = idx[:, -self.block_size :]", "context = idx", "context = "),
    "a token put in front": (GREEDY, "(idx, following)", "(following, idx)", "idx = "),
    "the least likely token": (GREEDY, "jnp.argmax", "jnp.argmin", "following = "),
    "no temperature": (SAMPLING, " / temperature", "", "logits = "),
    "the most likely left out": (SAMPLING, "logits < kept", "logits > kept", "logits"),
    "one token less": (SAMPLING, "min(top_k, logits.shape[-1])", "min(top_k - 1, logits.shape[-1])", "logits"),
    "more tokens than asked for": (SAMPLING, "range(max_new_tokens)", "range(max_new_tokens + 1)", "for _ in"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_that_only_generation_shows_is_found_at_its_statement(name: str, pool: Pool, tmp_path: Path) -> None:
    method, right, wrong, start = MISTAKES[name]
    verdict = check(pool, tmp_path, method, (right, wrong))
    assert verdict.verdict is VerdictKind.DIFFERENT
    assert (verdict.reason or "").startswith("generate output")
    assert [verdict.stages[s].result for s in ("numeric", "behavioral")] == [Result.PASS, Result.FAIL]
    jax_side, torch_side = lines(verdict, tmp_path)
    assert jax_side.startswith(start) and torch_side.startswith(start)


def test_an_error_in_jax_is_a_difference_at_its_line(pool: Pool, tmp_path: Path) -> None:
    verdict = check(pool, tmp_path, GREEDY, ("jnp.argmax(logits", "jnp.argmax(logitz"))
    assert verdict.verdict is VerdictKind.DIFFERENT
    assert (verdict.reason or "").startswith("generate fails: NameError")
    assert all(line.startswith("following = ") for line in lines(verdict, tmp_path))


def test_the_same_key_for_every_token_is_found(pool: Pool, tmp_path: Path) -> None:
    text = ("self.rngs.categorical(jnp.log(probs))", "jax.random.categorical(jax.random.key(0), jnp.log(probs))")
    verdict = check(pool, tmp_path, SAMPLING, text)
    assert verdict.verdict is VerdictKind.DIFFERENT
    assert "draws twice with the same key" in (verdict.reason or "")
    assert "following = " in lines(verdict, tmp_path)[1]


def test_a_value_nobody_knows_is_said_and_the_rest_is_compared(pool: Pool, tmp_path: Path) -> None:
    stage = behavioral(check(pool, tmp_path, GREEDY.replace("max_new_tokens):", "max_new_tokens, vibe):", 1)))
    assert stage.result is Result.PASS and not any("generate" in name for name in stage.observed)
    assert stage.reason == "generate was not compared: no value is known for its parameter vibe"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('not today')", "PyTorch's fails with small arguments: ValueError: not today"),
        ("while (idx < 99).any(): idx = self(idx).argmax(-1)", "PyTorch's fails with small arguments: TimeoutError"),
        ('return idx + int.from_bytes(__import__("os").urandom(6), "big")', "its random numbers can't be replayed"),
        ("return self", "what it returns can't be compared"),
    ],
)
def test_what_torch_gives_nothing_to_compare_with_is_said(body: str, reason: str, pool: Pool, tmp_path: Path) -> None:
    stage = behavioral(check(pool, tmp_path, f"    def generate(self, idx):\n        {body}\n"))
    assert stage.result is Result.PASS
    assert (stage.reason or "").startswith(f"generate was not compared: {reason}")


def test_a_conversion_without_the_method_is_said(pool: Pool, tmp_path: Path) -> None:
    assert behavioral(check(pool, tmp_path, GREEDY, jax="")).reason == (
        "generate was not compared: its conversion has none"
    )


def test_draws_of_another_kind_accuse_nobody(pool: Pool, tmp_path: Path) -> None:
    text = "(jnp.cumsum(probs, -1) < self.rngs.uniform((probs.shape[0], 1))).sum(-1)"
    stage = behavioral(check(pool, tmp_path, SAMPLING, ("self.rngs.categorical(jnp.log(probs))", text)))
    assert FIRST in stage.observed and OTHER not in stage.observed
    assert (stage.reason or "").startswith("generate was only partly compared: its random numbers can't be paired")


def test_a_module_without_parameters_generates_too(pool: Pool, tmp_path: Path) -> None:
    torch = """import torch
import torch.nn as nn

class Counter(nn.Module):
    # t2j: x=f32[2, 3]
    def forward(self, x):
        return x + 1

    def generate(self, x, steps):
        for _ in range(steps):
            yield x
            x = self(x)
"""
    for step, kind in ((1, VerdictKind.EQUIVALENT), (2, VerdictKind.DIFFERENT)):
        (tmp_path / "source.py").write_text(torch)
        text = convert(torch).code.replace("x = self(x)", f"x = self(x) + {step - 1}")
        (tmp_path / "converted.py").write_text(text)
        verdict = check_files(tmp_path / "source.py", tmp_path / "converted.py", pool=pool, budget=AMPLE).objects[0]
        assert verdict.verdict is kind, verdict.reason
        assert FIRST in verdict.stages["behavioral"].observed


def test_the_prompt_is_short_where_a_model_takes_no_more(pool: Pool, tmp_path: Path) -> None:
    method = GREEDY.replace("idx[:, -self.block_size :]", "idx").replace("max_new_tokens", "max_length")
    method = method.replace("range(max_length)", "range(max_length - idx.size(1))")
    assert FIRST in behavioral(check(pool, tmp_path, method)).observed
