"""The cause of a difference is found by trying: planted mistakes, the edit that mends each, and where there is none."""

from __future__ import annotations

import ast
import time

import pytest

from t2j_lsp.check.difference import experiment
from t2j_lsp.check.difference.causes import Candidate, candidates, expressions, statement
from t2j_lsp.check.program.rewriting import ParsedText
from t2j_lsp.contract import Divergence, Fix, ObjectVerdict, Span, VerdictKind

from .conftest import JAX, TORCH, Check


def function(torch: str, jax: str, parameters: str = "x") -> tuple[str, str]:
    """A function of both sides with bodies that return ``y``."""
    annotated = ", ".join(f"{p}: torch.Tensor" for p in parameters.split(", "))
    bodies = (f"    {text}\n    return y + 1\n" for text in (torch, jax))
    return f"def f({annotated}):\n{next(bodies)}", f"def f({parameters}):\n{next(bodies)}"


def layer(torch: str, jax: str, call: str = "self.layer(x)") -> tuple[str, str]:
    """A module of both sides with one layer, on whose output more is computed."""
    jax_side = f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {torch}

    def forward(self, x):
        y = self.layer(x)
        return torch.tanh(y)
"""
    torch_side = f"""
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.layer = {jax}

    def __call__(self, x):
        y = {call}
        return jnp.tanh(y)
"""
    return jax_side, torch_side


MOVED = "jnp.moveaxis(self.layer(jnp.moveaxis(x, 1, -1)), -1, 1)"
NORM = "nnx.LayerNorm(7, epsilon=1e-5, use_fast_variance=False, rngs=rngs)"
CONV = 'nnx.Conv(3, 8, (3, 3), padding="VALID", rngs=rngs)'
BN = """
class BatchNorm(nnx.BatchNorm):
    def __call__(self, x):
        if not self.use_running_average:
            kept = self.momentum * self.var[...]
            y = super().__call__(x)
            n = x.size // x.shape[-1]
            self.var[...] = kept + (self.var[...] - kept) * n / (n - 1)
            return y
        return super().__call__(x)
"""
CASES: list[tuple[tuple[str, str], str, str, str]] = [
    (function("y = F.gelu(x)", "y = jax.nn.gelu(x, approximate=False)"), ", approximate=False", "", "tanh"),
    (function("y = F.gelu(x, approximate='tanh')", "y = jax.nn.gelu(x)"), "(x)\n", "(x, False)\n", "tanh"),
    (function("y = torch.softmax(x, dim=0)", "y = jax.nn.softmax(x, axis=0)"), ", axis=0", "", "axis 0"),
    (function("y = torch.softmax(x, dim=1)", "y = jax.nn.softmax(x, axis=1)"), "axis=1", "axis=0", "axis 1"),
    (function("y = F.log_softmax(x, 1)", "y = jax.nn.log_softmax(x, 1)"), "x, 1)", "x, 0)", "axis 1"),
    (function("y = x / x.sum(1, keepdim=True)", "y = x / x.sum(1, keepdims=True)"), ", keepdims=True", "", "keeps"),
    (function("m = x.mean(0)\n    y = x - m", "m = x.mean(0)\n    y = x - m"), "mean(0)", "mean(1)", "axis 0"),
    (function("y = torch.var(x, 1)", "y = jnp.var(x, axis=1, ddof=1)"), ", ddof=1", "", "n - 1"),
    (function("y = x.std(1, unbiased=False)", "y = x.std(1)"), "std(1)", "std(1, ddof=1)", "divides by n here"),
    (function("y = x.sum(1)", "y = x.sum(1)"), "x.sum", "x.mean", "sum"),
    (function("y = torch.cat([x, x * 2], dim=1)", "y = jnp.concatenate([x, x * 2], axis=1)"), ", axis=1", "", "axis 1"),
    (function("y = x.reshape(-1).repeat(3)", "y = jnp.tile(x.reshape(-1), 3)"), "jnp.tile", "jnp.repeat", "tile"),
    (function("y = F.elu(x, 0.5)", "y = jax.nn.elu(x, 0.5)"), ", 0.5", ", 2.0", "0.5"),
    (function("y = torch.clamp(x, -1, 0.5)", "y = jnp.clip(x, -1, 0.5)"), "0.5", "5.0", "0.5"),
    (
        function(
            "m = x.mean(1, keepdim=True)\n    v = x.var(1, keepdim=True, unbiased=False)\n"
            "    y = (x - m) / torch.sqrt(v + 1e-3)",
            "mu = x.mean(1, keepdims=True)\n    var = x.var(1, keepdims=True)\n    y = (x - mu) / jnp.sqrt(var + 1e-3)",
        ),
        "jnp.sqrt(var + 1e-3)",
        "(var + 1e-3)",
        "square root",
    ),
    (
        function(
            "m = x.mean(1, keepdim=True)\n    v = x.var(1, keepdim=True)\n    y = (x - m) / torch.sqrt(v + 1e-3)",
            "mu = x.mean(1, keepdims=True)\n    var = x.var(1, keepdims=True, ddof=1)\n"
            "    y = (x - mu) / jnp.sqrt(var + 1e-3)",
        ),
        ", ddof=1",
        "",
        "n - 1",
    ),
    (function("y = x / (x.norm() + 1e-3)", "y = x / (jnp.linalg.norm(x) + 1e-3)"), "1e-3", "1e-6", "0.001"),
    (function("y = (x * 3) / (x * x + 2)", "y = (x * 3) / (x * x + 2)"), "3) /", "3) *", "PyTorch has / here"),
    (function("y = torch.tanh(x) - 3", "y = jnp.tanh(x) - 3"), "- 3", "+ 3", "PyTorch has"),
    (function("y = F.silu(x)", "y = jax.nn.silu(x)"), "silu", "gelu", "silu"),
    (layer("nn.LayerNorm(7)", NORM), "epsilon=1e-5, ", "", "epsilon is 1e-05"),
    (layer("nn.LayerNorm(7, eps=1e-3)", NORM.replace("1e-5", "1e-3")), "1e-3", "1e-5", "epsilon is 0.001"),
    (layer("nn.Conv2d(3, 8, 3)", CONV, MOVED), ', padding="VALID"', "", "does not pad"),
    (
        layer("nn.Conv2d(3, 8, 3, padding=2)", CONV.replace('"VALID"', "2"), MOVED),
        "padding=2",
        'padding="VALID"',
        "pads by 2",
    ),
    (
        layer("nn.Linear(7, 5, bias=False)", "nnx.Linear(7, 5, use_bias=False, rngs=rngs)"),
        ", use_bias=False",
        "",
        "bias",
    ),
]
CASES.append(
    (
        (
            layer("nn.BatchNorm1d(7)", "")[0],
            BN + layer("", "BatchNorm(7, momentum=0.9, use_fast_variance=False, rngs=rngs)")[1],
        ),
        "momentum=0.9",
        "momentum=0.1",
        "momentum weighs the new value",
    )
)


def applied(text: str, fix: Fix) -> str:
    lines = text.splitlines(keepends=True)
    span = fix.span
    before = "".join(lines[: span.line - 1]) + lines[span.line - 1][: span.column]
    return before + fix.new + lines[span.end_line - 1][span.end_column :] + "".join(lines[span.end_line :])


def parted(verdict: ObjectVerdict) -> Divergence:
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict
    assert verdict.divergence is not None
    return verdict.divergence


@pytest.mark.parametrize(("pair", "right", "wrong", "cause"), CASES, ids=range(len(CASES)))
def test_a_planted_mistake_is_named_and_its_edit_mends_it(
    pair: tuple[str, str], right: str, wrong: str, cause: str, check: Check
) -> None:
    torch, jax = pair
    assert jax.count(right) >= 1
    mistaken = jax.replace(right, wrong, 1)
    divergence = parted(check(torch, mistaken, eager=False, initial=False))
    assert divergence.cause is not None and divergence.fix is not None, divergence
    assert cause in divergence.cause
    assert divergence.jax is not None and divergence.jax.line == divergence.fix.span.line
    mended = applied(JAX + mistaken, divergence.fix).removeprefix(JAX)
    verdict = check(torch, mended, eager=False, initial=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, (mended, verdict.reason)


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        function("y = torch.sin(x) * 2", "y = jnp.cos(x) * 2"),
        function("y = torch.roll(x, 1, 1)", "y = x[:, ::-1]"),
        function("y = x.mean(1)", "y = undefined(x).mean(1)"),
        ("def f(x: torch.Tensor):\n    return x * 2\n", "def f(x):\n    return jax.lax.stop_gradient(x) * 2\n"),
    ],
    ids=["a function that is not in the table", "other code", "an undefined name", "a gradient"],
)
def test_a_difference_without_a_known_cause_has_none(torch: str, jax: str, check: Check) -> None:
    divergence = parted(check(torch, jax, eager=False))
    assert divergence.cause is None and divergence.fix is None


def test_an_edit_that_only_gets_past_an_error_is_no_cause(check: Check) -> None:
    torch = """
class Net(nn.Module):
    def __init__(self, dim=6, heads=2):
        super().__init__()
        self.scale = (dim // heads) ** -0.5
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        h = self.fc(x)
        return h * self.scale
"""
    jax = """
class Net(nnx.Module):
    def __init__(self, dim=6, heads=2, *, rngs):
        self.scale = (heads // dim) ** -0.5
        self.fc = nnx.Linear(dim, dim, rngs=rngs)

    def __call__(self, x):
        h = self.fc(x)
        return h * self.scale
"""
    divergence = parted(check(torch, jax, eager=False, initial=False))
    assert divergence.cause is None and divergence.fix is None


def test_two_mistakes_are_mended_one_after_the_other(check: Check) -> None:
    torch = "def f(x: torch.Tensor):\n    y = F.gelu(x)\n    z = torch.softmax(y, 0)\n    return z * 2\n"
    jax = "def f(x):\n    y = jax.nn.gelu(x)\n    z = jax.nn.softmax(y)\n    return z * 2\n"
    first = parted(check(torch, jax, eager=False))
    assert first.fix is not None and "approximate" in first.fix.new
    jax = applied(JAX + jax, first.fix).removeprefix(JAX)
    second = parted(check(torch, jax, eager=False))
    assert second.fix is not None and "axis=0" in second.fix.new
    jax = applied(JAX + jax, second.fix).removeprefix(JAX)
    assert check(torch, jax, eager=False).verdict is VerdictKind.EQUIVALENT


BLOCK = """
class Block(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x):
        h = self.norm(x)
        h = F.gelu(self.fc1(h))
        return x + self.fc2(h)
"""
OWN = """
# t2j: of="Block", weights={"g": "norm.weight", "b": "norm.bias", "w1": "fc1.weight.T", "b1": "fc1.bias", \
"w2": "fc2.weight.T", "b2": "fc2.bias"}
def block(params, x):
    mu = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    n = (x - mu) / jnp.sqrt(var + 1e-6) * params["g"] + params["b"]
    a = jax.nn.gelu(n @ params["w1"] + params["b1"])
    return x + a @ params["w2"] + params["b2"]
"""


@pytest.mark.parametrize("decorator", ["", "@jax.jit\n"], ids=["eager", "compiled"])
def test_in_code_of_ones_own_the_line_of_the_cause_is_found_though_no_name_is_shared(
    decorator: str, check: Check
) -> None:
    jax = OWN.replace("def block", f"{decorator}def block")
    wanted = [("h = self.norm(x)", "var + 1e-6"), ("h = F.gelu", "jax.nn.gelu(n"), None]
    for place in wanted:
        verdict = check(BLOCK, jax, name="Block", eager=False)
        if place is None:
            assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
            break
        divergence = parted(verdict)
        assert divergence.torch is not None and divergence.jax is not None and divergence.fix is not None
        assert place[0] in (TORCH + BLOCK).splitlines()[divergence.torch.line - 1]
        assert place[1] in (JAX + jax).splitlines()[divergence.jax.line - 1]
        jax = applied(JAX + jax, divergence.fix).removeprefix(JAX)


def test_a_transposed_matrix_is_found(check: Check) -> None:
    torch = (
        "# t2j: x=f32[3, 5], w=f32[5, 5]\ndef f(x: torch.Tensor, w: torch.Tensor):\n    y = x @ w\n    return y + 1\n"
    )
    divergence = parted(check(torch, "def f(x, w):\n    out = x @ w.T\n    return out + 1\n", eager=False))
    assert divergence.cause is not None and "matrix itself" in divergence.cause
    assert divergence.jax is not None and divergence.jax.line == JAX.count("\n") + 2


def test_the_search_for_a_cause_ends(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "SECONDS", 0.0)
    begun = time.monotonic()
    torch, jax = function("y = torch.softmax(x, dim=1)", "y = jax.nn.softmax(x, axis=0) * 1 * 2 * 3")
    assert parted(check(torch, jax, eager=False)).cause is None
    assert time.monotonic() - begun < 60


# --- edits ------------------------------------------------------------------------------------------------------------


def call_in(text: str) -> tuple[ParsedText, ast.Call]:
    made = ParsedText(text)
    return made, next(n for n in ast.walk(made.tree) if isinstance(n, ast.Call))


@pytest.mark.parametrize(
    ("before", "position", "after"),
    [
        ("f()", None, "f(k=1)"),
        ("f(a)", None, "f(a, k=1)"),
        ("f(a, k=2)", None, "f(a, k=1)"),
        ("f(a, 2)", 1, "f(a, 1)"),
        ("f(a, 2)", 2, "f(a, 2, k=1)"),
        ("f(\n    a,\n    b=2,\n)", None, "f(\n    a,\n    b=2, k=1,\n)"),
        ("f('ä', b)  # ö", None, "f('ä', b, k=1)  # ö"),
        ("f(*a)", None, None),
        ("f(**a)", None, None),
        ("f((a))", None, None),
        ("f(a for a in b)", None, None),
    ],
)
def test_an_argument_is_set(before: str, position: int | None, after: str | None) -> None:
    text, call = call_in(before)
    edit = text.with_argument(call, "k", "1", position)
    changed = text.applied(edit) if edit is not None else None
    if changed is not None and after is None:
        # Where an edit would change something else, it must not be Python.
        assert ast.dump(ast.parse(changed)) == ast.dump(text.tree), changed
    else:
        assert changed == after


def test_a_function_is_called_by_another_name() -> None:
    text, call = call_in("y = jnp.var(x)")
    edit = text.renamed(call, "std")
    assert edit is not None and text.applied(edit) == "y = jnp.std(x)"
    text, call = call_in("y = var(x)")
    edit = text.renamed(call, "std")
    assert edit is not None and text.applied(edit) == "y = std(x)"
    text, call = call_in("y = f(x)(x)")
    assert text.renamed(call, "std") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a / b", "a * b"),
        ("(a) / (b)", "(a) * (b)"),
        ("f(x, '/') /  c  # /", "f(x, '/') *  c  # /"),
        ("(a\n / b)", None),
    ],
)
def test_an_operator_is_another(before: str, after: str | None) -> None:
    text = ParsedText(before)
    node = next(n for n in ast.walk(text.tree) if isinstance(n, ast.BinOp))
    edit = text.operator(node, "/", "*")
    assert (text.applied(edit) if edit is not None else None) == after


def test_candidates_are_edits_of_one_statement_and_differ() -> None:
    text = ParsedText("import jax\nx = jax.nn.softmax(a)\ny = jax.nn.softmax(b.mean(2), axis=0)\n")
    torch = ast.parse("y = torch.softmax(b.mean(2), dim=1)")
    result: list[Candidate] = list(candidates(text, [3], (torch,)))
    assert result and {c.edit.span.line for c in result} == {3}
    assert len({c.edit for c in result}) == len(result)
    texts = [text.applied(c.edit) for c in result]
    assert "import jax\nx = jax.nn.softmax(a)\ny = jax.nn.softmax(b.mean(2), axis=1)\n" in texts
    assert None not in texts and text.text not in texts


def test_expressions_are_those_of_the_innermost_statement() -> None:
    tree = ast.parse("def f(x):\n    if g(x):\n        y = h(\n            x)\n    return y\n")
    assert [ast.unparse(n) for n in expressions(tree, 4) if isinstance(n, ast.Call)] == ["h(x)"]
    assert [ast.unparse(n) for n in expressions(tree, 2) if isinstance(n, ast.Call)] == ["g(x)"]
    assert statement(tree, 9) is None
    assert ParsedText("a = 1\n").span(ast.parse("a = 1\n").body[0]) == Span(1, 0, 1, 5)
