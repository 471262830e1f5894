"""What is put in front of a statement isn't put before what the statement does first."""

from __future__ import annotations

import pytest

from .convert import run

CLASS = "class Net(nn.Module):\n    def forward(self, x):\n        return x\n\n\n"


def body(statement: str, parameters: str) -> tuple[list[str], int]:
    """The lines of a function's body, converted, and the number of gaps."""
    result = run(f"{CLASS}def f({parameters}):\n    {statement}\n")
    lines = result.code.split(f"def f({parameters.replace('Tensor', 'jax.Array').replace(': Net', ': Net')}):\n")[1]
    return [line.strip() for line in lines.splitlines() if line.startswith("    ")], len(result.gaps)


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("return x.add_(1).mul_(x)", ["x = x + 1", "return x * x"]),
        ("return x + x.add_(1)", ["x = x + 1", "return x + x"]),  # the sum is taken last
        ("return x.add_(1), x * 2", ["x = x + 1", "return x, x * 2"]),
        ("return x.exp(), x.add_(1)", None),
        ("return x.add_(1), x.exp()", ["x = x + 1", "return x, jnp.exp(x)"]),
        ("y = x.sum() + x.mul_(2).sum()", None),
        ("y = z.sum() + x.mul_(2).sum()", ["x = x * 2", "y = z.sum() + x.sum()", "return x"]),
    ],
)
def test_a_write_stays_behind_what_reads_the_tensor_first(statement: str, wanted: list[str] | None) -> None:
    lines, gaps = body(statement, "x: Tensor, z: Tensor")
    assert gaps == (wanted is None)
    assert wanted is None or lines == wanted


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("return m.eval()(x)", ["m.eval()", "return m(x)"]),
        ("return torch.exp(x), len(x), m.eval()(x)", ["m.eval()", "return jnp.exp(x), len(x), m(x)"]),
        ("return test(x.cpu(), m.eval())", ["m.eval()", "return test(x, m)"]),
        ("return m.eval()(x), test(m)", ["m.eval()", "return m(x), test(m)"]),
        ("return test(x), m.train().training", None),
        ("return m(x) + m.eval()(x)", None),
        ("return {m(x): x, 'b': m.eval()}", None),
        ("m.training, print(m.eval())", None),
    ],
)
def test_a_mode_isnt_switched_before_what_runs_first(statement: str, wanted: list[str] | None) -> None:
    lines, gaps = body(statement, "m: Net, x: Tensor")
    assert gaps == (wanted is None)
    assert wanted is None or lines == wanted


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("model = model.eval()", ["model.eval()"]),
        ("wrapped.model = model.eval()", ["wrapped.model = model", "wrapped.model.eval()"]),
        ("model.train(mode)", ["model.train() if mode else model.eval()"]),
        ("return other.eval()", None),
        ("other.eval()", ["other.eval()"]),
        ("return other.train()", ["return other.train()"]),  # most likely a trainer
        ("return other.eval('a + b')", ["return other.eval('a + b')"]),
    ],
)
def test_the_mode_of_what_may_be_a_module(statement: str, wanted: list[str] | None) -> None:
    """Flax's eval() gives None."""
    lines, gaps = body(statement, "wrapped, model, other, mode")
    assert gaps == (wanted is None)
    assert wanted is None or lines == wanted


@pytest.mark.parametrize(
    ("statement", "hoisted"),
    [
        ("return torch.xlogy(next(it), next(it))", False),
        ("return next(it), F.tanhshrink(next(it))", False),
        ("return F.tanhshrink(next(it)), next(it)", True),
        ("return (y := x * 2), F.tanhshrink(y + 1)", False),
    ],
)
def test_an_argument_that_is_used_twice_is_bound_where_the_order_allows_it(statement: str, hoisted: bool) -> None:
    lines, _ = body(statement, "it, x: Tensor")
    assert ("= next(it)" in "\n".join(lines) or "= y + 1" in "\n".join(lines)) == hoisted, lines
