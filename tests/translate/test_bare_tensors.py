"""Optimizers of bare tensors: the step gives the tensors and optax's state back, or the code stays, and why."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

HEAD = "import torch\nimport torch.nn.functional as F\n\nx, y = torch.randn(5, 2), torch.randn(5)\n"
PROGRAM = (
    HEAD
    + """w = torch.zeros(2, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
{before}
opt = torch.optim.SGD({leaves}, lr=0.1)
for epoch in range(3):
    loss = F.mse_loss({prediction}, y)
    opt.zero_grad()
    loss.backward()
    {clip}
    opt.step()
    {after}
print(w, b)
"""
)


def converted(
    leaves: str = "[w, b]",
    prediction: str = "x @ w + b",
    before: str = "",
    after: str = "print(loss.item())",
    clip: str = "pass",
) -> tuple[str, list[str]]:
    """The output for a loop that updates tensors, and the reasons for its gaps."""
    text = PROGRAM.format(leaves=leaves, prediction=prediction, before=before, after=after, clip=clip)
    translation = translate(text, Options(helpers="import"))
    return translation.code, [gap.reason for gap in translation.gaps]


STEP = """@jax.jit
def train_step(w, b, opt_state, x, y):
    def loss_fn(w, b):
        return jnp.mean(jnp.square(x @ w + b - y))

    loss, grads = jax.value_and_grad(loss_fn, argnums=(0, 1))(w, b)
    updates, opt_state = opt.update(grads, opt_state, (w, b))
    w, b = optax.apply_updates((w, b), updates)
    return loss, w, b, opt_state
"""


def test_the_step_gives_tensors_and_state_back() -> None:
    code, reasons = converted()
    assert not reasons
    assert "opt = optax.sgd(0.1)\nopt_state = opt.init((w, b))\n" in code
    assert STEP in code
    assert "    loss, w, b, opt_state = train_step(w, b, opt_state, x, y)\n" in code


def test_a_loss_that_nothing_reads_is_not_given() -> None:
    code, reasons = converted(after="pass")
    assert not reasons
    assert "    return w, b, opt_state\n" in code
    assert "    w, b, opt_state = train_step(w, b, opt_state, x, y)\n" in code


def test_one_tensor_is_a_tree_of_its_own() -> None:
    code, reasons = converted(leaves="[w]")
    assert not reasons
    assert "opt_state = opt.init(w)\n" in code
    assert "updates, opt_state = opt.update(grads, opt_state, w)\n    w = optax.apply_updates(w, updates)" in code


def test_a_function_that_reads_them_is_given_them() -> None:
    code, reasons = converted(prediction="model(x)", before="\n\ndef model(x):\n    return x @ w + b\n\n")
    assert not reasons
    assert "def model(x, w, b):" in code
    assert "jnp.square(model(x, w, b) - y)" in code


def test_what_is_written_into_them_meanwhile_stays() -> None:
    code, reasons = converted(after="with torch.no_grad():\n        w.clamp_(0, 1)")
    assert not reasons
    assert "    w = w.clip(0, 1)\n" in code


def test_in_a_function_the_transformation_is_passed() -> None:
    lines = PROGRAM.removeprefix(HEAD).format(
        leaves="[w, b]", prediction="x @ w + b", before="", after="pass", clip="pass"
    )
    body = "".join(f"    {line}\n" if line else "\n" for line in lines.splitlines())
    translation = translate(f"{HEAD}\n\ndef fit():\n{body}\n\nfit()\n", Options(helpers="import"))
    assert not translation.gaps
    assert '@jax.jit(static_argnames="opt")' in translation.code
    assert "w, b, opt_state = train_step(w, b, opt_state, " in translation.code


REFUSED = {
    "a tensor with another name": ({"before": "first = w"}, "It updates w, which has another name too"),
    "what shares its storage is kept": ({"after": "kept = w.detach()"}, "It updates w, which has another name too"),
    "a list that holds it": ({"before": "everything = [w, b]"}, "It updates w, which has another name too"),
    "a tensor that is made anew": ({"after": "w = torch.zeros(2)"}, "It updates w, which is more than one tensor"),
}


@pytest.mark.parametrize(("parts", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_the_step_can_not_give_back_stays(parts: dict[str, str], reason: str) -> None:
    code, reasons = converted(**parts)
    assert any(reason in one for one in reasons), reasons
    assert "opt = torch.optim.SGD([w, b], lr=0.1)" in code


def test_a_gradient_that_is_read_beside_the_optimizer_is_the_reason() -> None:
    _, reasons = converted(clip="print(w.grad)")
    assert any("It works on the gradients in .grad" in one for one in reasons), reasons


def test_diag_says_that_a_value_is_a_tensor() -> None:
    done = translate("import torch\n\ndef f(x):\n    return x.diag()\n", Options(helpers="import"))
    assert not done.gaps and "jnp.diag" in done.code


MAKERS = {
    "nothing else": "def make(leaf, lr=0.1):\n    return torch.optim.SGD([leaf], lr=lr)\n",
    "under a name": "def make(leaf):\n    # made\n    opt = torch.optim.SGD([leaf], lr=0.1)\n    return opt\n",
    "by a name": "def make(leaf, k=1):\n    opt = torch.optim.SGD([leaf], 0.1)\n    print(k)\n    return opt\n",
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_function_that_makes_the_optimizer_stands_where_it_is_called(name: str) -> None:
    made = PROGRAM.format(leaves="[w]", prediction="x @ w", before="", after="print(loss.item())", clip="pass")
    source = made.replace("torch.optim.SGD([w], lr=0.1)", "make(w)").replace(
        "w = torch.zeros", MAKERS[name] + "w = torch.zeros"
    )
    translation = translate(source, Options(helpers="import"))
    assert not translation.gaps and "def make" not in translation.code
    assert "opt = optax.sgd(0.1)\n" in translation.code and "opt_state = opt.init(w)\n" in translation.code


def test_a_function_that_makes_optimizers_and_is_handed_on_stays() -> None:
    made = PROGRAM.format(leaves="[w]", prediction="x @ w", before="", after="print(make)", clip="pass")
    source = made.replace("torch.optim.SGD([w], lr=0.1)", "make(w)")
    source = source.replace("w = torch.zeros", MAKERS["nothing else"] + "w = torch.zeros")
    assert any("bare tensors" in gap.reason for gap in translate(source).gaps)
