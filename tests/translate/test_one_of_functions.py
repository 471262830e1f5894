"""Functions of PyTorch of which one is chosen, and called later with keywords: JAX's have other ones."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.api import convert

HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"
CHOSEN = {
    "an expression": "def f(x, y, c):\n    fn = torch.sum if c else torch.mean\n    return fn(x, dim=-1)\n",
    "called at once": "def f(x, y, c):\n    return (torch.amax if c else torch.amin)(x, dim=1, keepdim=True)\n",
    "branches": (
        "def f(x, y, c):\n    if c:\n        fn = torch.mean\n    else:\n        fn = torch.sum\n"
        "    return fn(x, dim=0, keepdim=True).squeeze(0)\n"
    ),
    "a table": "FNS = {True: torch.sum, False: torch.prod}\n\n\ndef f(x, y, c):\n    return FNS[c](x, dim=0)\n",
    "a loop": "def f(x, y, c):\n    return torch.stack([fn(x, dim=1) for fn in (torch.sum, torch.mean)])\n",
    "lists of tensors": "def f(x, y, c):\n    fn = torch.cat if c else torch.stack\n    return fn([x, y], dim=1)\n",
    "losses": 'def f(x, y, c):\n    fn = F.mse_loss if c else F.l1_loss\n    return fn(x, y, reduction="none")\n',
    "nothing but tensors": "def f(x, y, c):\n    fn = torch.tanh if c else F.relu\n    return fn(x)\n",
}
OTHER = {
    "several values": "def f(x, c):\n    fn = torch.max if c else torch.min\n    return fn(x, dim=1)\n",
    "of several forms": "def f(x, c):\n    fn = F.softmax if c else F.log_softmax\n    return fn(x, dim=1)\n",
}


def _results(code: str, arrays: list[Any], choice: bool) -> np.ndarray:
    names: dict[str, Any] = {}
    exec(code, names)
    return np.asarray(names["f"](*arrays, choice))


@pytest.mark.parametrize("text", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("choice", [True, False])
def test_a_call_has_the_arguments_of_each(text: str, choice: bool) -> None:
    translation = convert(HEAD + text)
    assert not translation.gaps
    values = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    wanted = _results(HEAD + text, list(torch.tensor(values)), choice)
    got = _results(translation.code, list(jnp.asarray(values)), choice)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert convert(translation.code).code == translation.code


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_where_they_have_no_arguments_in_common_that_is_said(text: str) -> None:
    translation = convert(HEAD + text.replace("return fn(x, dim=1)", "return fn, fn(x, dim=1)"))
    assert [gap.code for gap in translation.gaps] == ["function-value"]
    assert "fn(x, dim=1)" in translation.code


@pytest.mark.parametrize("choice", [True, False])
def test_what_is_only_called_is_called_by_the_name_of_each(choice: bool) -> None:
    text = OTHER["of several forms"]
    translation = convert(HEAD + text)
    assert not translation.gaps
    values = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    wanted = _results(HEAD + text, [torch.tensor(values)], choice)
    np.testing.assert_allclose(_results(translation.code, [jnp.asarray(values)], choice), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", ["torch.max", "F.softmax", "F.log_softmax"])
def test_a_default_whose_form_in_jax_takes_other_arguments_is_said(name: str) -> None:
    translation = convert(f"{HEAD}def f(x, op={name}):\n    return op(x, 1)\n")
    assert [gap.code for gap in translation.gaps] == ["function-value"]
    assert "by default" in translation.gaps[0].reason


@pytest.mark.parametrize("name", ["torch.sum", "torch.mean", "torch.amax"])
def test_a_default_that_takes_its_arguments_by_the_same_places_is_kept(name: str) -> None:
    text = f"{HEAD}def f(x, op={name}):\n    return op(x, 1)\n"
    translation = convert(text)
    assert not translation.gaps
    values = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    names: list[dict[str, Any]] = [{}, {}]
    exec(text, names[0])
    exec(translation.code, names[1])
    wanted = names[0]["f"](torch.tensor(values)).numpy()
    np.testing.assert_allclose(np.asarray(names[1]["f"](jnp.asarray(values))), wanted, rtol=1e-5)
