"""`torch.autograd.grad`: the expression that is differentiated is found, and everything unsure stays a gap."""

from __future__ import annotations

import textwrap
from types import ModuleType

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

HEAD = "import torch\nfrom torch import autograd\n\n\ndef f(critic, x: torch.Tensor, w: torch.Tensor):\n"


def converted(body: str) -> tuple[str, int]:
    done = translate(HEAD + textwrap.indent(textwrap.dedent(body), "    "), Options(helpers="import"))
    return done.code, len(done.gaps)


SURE = {
    "ones": """
        y = critic(x, w)
        g = autograd.grad(outputs=y, inputs=x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True)[0]
        return g.norm(2, dim=1)
    """,
    "ones by a name": """
        x = x.requires_grad_(True)
        y = critic(x, w)
        ones = torch.ones(y.size(), requires_grad=False).to(x.device)
        (g,) = torch.autograd.grad(y, x, ones, create_graph=True)
        return g * 2
    """,
    "a sum": """
        y = torch.sin(critic(x, w))
        g = torch.autograd.grad(y.sum(), [x], create_graph=True)
        return g[0]
    """,
    "one that might be unused, and is computed with": """
        y = critic(x, w)
        g = torch.autograd.grad(y.sum(), x, create_graph=True, allow_unused=True)[0]
        return 2 * g[:, 1] - g.mean()
    """,
    "arguments that say what is done without them": """
        y = critic(x, w)
        g = torch.autograd.grad(y.sum(), x, create_graph=True, only_inputs=True, allow_unused=None,
                                is_grads_batched=False, materialize_grads=False)
        return g[0]
    """,
    "a number": """
        y = critic(x, w).pow(2).mean()
        return torch.autograd.grad(y, x, create_graph=True)[0]
    """,
}


@pytest.mark.parametrize("body", SURE.values(), ids=SURE)
def test_a_gradient_by_an_input_is_pytorchs(body: str) -> None:
    code, gaps = converted(body)
    assert not gaps
    assert "jax.grad(lambda x: " in code
    assert "stop_gradient" not in code
    results = []
    x, w = np.linspace(-1.0, 1.0, 12).reshape(4, 3), np.linspace(0.5, 1.5, 6).reshape(3, 2)
    for text, array, tanh in ((HEAD + textwrap.indent(textwrap.dedent(body), "    "), torch, torch.tanh),
                              (code, jnp, jnp.tanh)):  # fmt: skip
        module = ModuleType("program")
        exec(text, module.__dict__)
        make = torch.tensor if array is torch else jnp.array
        given = make(x.astype("float32")).requires_grad_() if array is torch else make(x.astype("float32"))
        results.append(module.__dict__["f"](lambda x, w, tanh=tanh: tanh(x @ w), given, make(w.astype("float32"))))
    np.testing.assert_allclose(results[1], results[0].detach().numpy(), rtol=2e-5, atol=1e-6)


def test_without_a_graph_of_its_own_a_gradient_is_a_constant() -> None:
    code, gaps = converted("y = critic(x, w)\nreturn autograd.grad(y.sum(), x)[0]\n")
    assert not gaps
    assert "jax.lax.stop_gradient(jax.grad(lambda x: jnp.sum(critic(x, w)))(x))" in code


@pytest.mark.parametrize(
    "ones",
    [
        "torch.ones(x.shape[0], 1)",
        "torch.ones(x.shape[0], 1).cuda() if len(x) else torch.ones(x.shape[0], 1)",
        "autograd.Variable(torch.Tensor(x.shape[0], 1).fill_(1.0), requires_grad=False)",
    ],
)
def test_weights_of_one_and_the_value_that_only_the_gradient_reads_go(ones: str) -> None:
    body = f"y = critic(x, w)\nones = {ones}\nreturn autograd.grad(y, x, ones, create_graph=True)[0]\n"
    code, gaps = converted(body)
    assert not gaps
    assert "return jax.grad(lambda x: jnp.sum(critic(x, w)))(x)" in code
    assert "ones" not in code and "y =" not in code
    assert "y = critic(x, w)" in converted(body.replace("return ", "return y, "))[0]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("y = critic(x, w)\nreturn autograd.grad(y, x, w.fill_(2))[0]", id="weights of two"),
        pytest.param("y = critic(x, w)\nreturn autograd.grad(y, (x, w), torch.ones_like(y))", id="several inputs"),
        pytest.param("y = critic(x, w)\nreturn autograd.grad(y, x, torch.rand_like(y))[0]", id="other weights"),
        pytest.param("h = x * 2\ny = critic(h, x)\nreturn autograd.grad(y.sum(), x)[0]", id="through another name"),
        pytest.param("y = critic(w, w)\nreturn autograd.grad(y.sum(), x)[0]", id="no dependence to be seen"),
        pytest.param("y = critic(x, w)\ny = y + 1\nreturn autograd.grad(y.sum(), x)[0]", id="assigned twice"),
        pytest.param("y = critic(x, w)\nx = x + 1\nreturn autograd.grad(y.sum(), x)[0]", id="another input since"),
        pytest.param("return autograd.grad(critic(x, w).sum(), x)[0]", id="no name"),
        pytest.param("y = critic(x, w)\nreturn autograd.grad(y, x, w, is_grads_batched=True)[0]", id="batched"),
        pytest.param(
            "y = critic(x, w)\nreturn autograd.grad(y.sum(), x, materialize_grads=True)[0]", id="zeros for none"
        ),
        pytest.param("y = critic(x, w)\nreturn autograd.grad(y.sum(), x, allow_unused=True)[0]", id="perhaps unused"),
        pytest.param(
            "y = critic(x, w)\ng = autograd.grad(y.sum(), x, allow_unused=True)[0]\nreturn 0 if g is None else g * 2",
            id="asked whether it is there",
        ),
        pytest.param("y = critic(x, w)\nreturn autograd.grad(y.sum(), x, create_graph=w.any())[0]", id="perhaps kept"),
    ],
)
def test_what_is_not_sure_is_a_gap(body: str) -> None:
    assert converted(body)[1] >= 1
