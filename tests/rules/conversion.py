"""Converts snippets, says what they should look like, and runs both sides on the same numbers.

A row of a table is ``(torch expression, JAX expression, inputs)``. Inputs are one-letter names of the arrays below. The
expression is converted as the value of a function of those tensors, with x64 on, so that values, dtypes and gradients
must agree exactly or to the last bits of float64.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from t2j_lsp.contract import Options, Translation
from t2j_lsp.translate import translate

torch.set_num_threads(1)
RNG = np.random.default_rng(0)
INPUTS: dict[str, np.ndarray] = {
    "x": RNG.uniform(-2, 2, (2, 3, 4)),
    "y": RNG.uniform(-2, 2, (2, 3, 4)),
    "z": RNG.uniform(-2, 2, (2, 1, 4)),
    "a": RNG.uniform(-2, 2, (3, 5)),
    "b": RNG.uniform(-2, 2, (3, 5)),
    "s": RNG.uniform(-2, 2, (4, 4)),
    "u": RNG.uniform(-2, 2, (4,)),
    "v": np.sort(RNG.uniform(-2, 2, (7,))),
    "e": RNG.uniform(-2, 2, (2, 7, 6)),
    "c": RNG.uniform(-2, 2, (2, 3)) + 1j * RNG.uniform(-2, 2, (2, 3)),
    "h": RNG.uniform(-2, 2, (2, 3)).astype(np.float32),
    "p": RNG.uniform(0, 1, (2, 3)),
    "i": np.array([[0, 2, 1], [1, 1, 0]]),
    "j": np.array([2, 0, 2]),
    "k": np.array([[[0, 1, 2, 1]], [[2, 2, 0, 1]]]),
    "n": np.array([-3, 5, 0, 7]),
    "m": RNG.uniform(size=(2, 3, 4)) > 0.5,
    "l": RNG.uniform(size=(3, 5)) > 0.5,
}
"""Every axis has a length of its own where that is possible; indices repeat; numbers have both signs."""

HEADER = "import numpy as np\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
TOLERANCE = 1e-13


def function(expression: str, inputs: str) -> str:
    """A function of annotated tensors that returns the expression; statements before it stand in front of ``;``."""
    *statements, last = expression.split("; ")
    lines = "".join(f"    {s}\n" for s in statements)
    return f"def f({', '.join(f'{name}: torch.Tensor' for name in inputs)}):\n{lines}    return {last}\n"


def converted(expression: str, inputs: str = "", x64: bool = True) -> tuple[str, Translation]:
    """The expression after conversion (with the statements before it), and the translation of the whole."""
    translation = translate(HEADER + "\n" + function(expression, inputs), Options(x64=x64))
    body = next(n for n in ast.parse(translation.code).body if isinstance(n, ast.FunctionDef) and n.name == "f").body
    parts = [ast.get_source_segment(translation.code, node) or "" for node in body]
    return "; ".join(parts).replace("return ", "").replace("\n", " "), translation


def agrees(expression: str, expected: str, inputs: str = "") -> None:
    """The conversion looks as expected, reports nothing left over, and computes what PyTorch computes.

    Gradients are compared with respect to the float64 inputs, unless the inputs are written in capitals.
    """
    text, translation = converted(expression, inputs.lower())
    assert [finding.reason for finding in translation.gaps] == []
    assert text == expected
    run, reference = _load(translation.code), _load(translation.source)
    gradients = inputs.islower()
    inputs = inputs.lower()
    arrays = [INPUTS[name] for name in inputs]
    tensors = [torch.from_numpy(array.copy()) for array in arrays]
    floats = [index for index, array in enumerate(arrays) if array.dtype == np.float64]
    for index in floats:
        tensors[index].requires_grad_(gradients)
    # A view or an in-place operation on a leaf is an error of autograd, so the function gets values that are computed.
    want = _leaves(reference(*[t * 1 if t.requires_grad else t for t in tensors]))

    def values(given: list[jax.Array]) -> list[Any]:
        arguments: list[Any] = [jnp.asarray(array) for array in arrays]
        for index, value in zip(floats, given, strict=True):
            arguments[index] = value
        return _leaves(run(*arguments))

    def outputs(given: list[jax.Array]) -> list[jax.Array]:
        return [
            leaf for leaf in values(given) if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.inexact)
        ]

    with jax.enable_x64(True):
        start = [jnp.asarray(arrays[index]) for index in floats]
        got, grads = values(start), None
        if gradients and floats and any(_is_float(leaf) for leaf in want):
            result, pull = jax.vjp(outputs, start)
            grads = pull(_cotangents(got, result))[0]
        _compare(got, want)
        if grads is not None:
            _same_gradients(grads, want, [tensors[index] for index in floats])


def _load(code: str) -> Callable[..., Any]:
    space: dict[str, Any] = {}
    exec(compile(code, "snippet", "exec"), space)
    result: Callable[..., Any] = space["f"]
    return result


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.requires_grad


def _weights(index: int, leaf: Any) -> list[np.ndarray]:
    """Fixed weights of a leaf's elements, of real and imaginary parts, so that each has a gradient of its own."""
    parts = 2 if "complex" in str(leaf.dtype) else 1 if "float" in str(leaf.dtype) else 0
    shape = tuple(leaf.shape)
    return [np.random.default_rng([index, part, *shape]).uniform(-1, 1, shape) for part in range(parts)]


def _weigh(leaves: list[Any]) -> Any:
    """A sum of all float leaves of PyTorch's with their weights."""
    total: Any = 0.0
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            parts = [leaf.real, leaf.imag] if leaf.is_complex() else [leaf]
            for part, weights in zip(parts, _weights(index, leaf), strict=False):
                total = total + (part * torch.from_numpy(weights)).sum()
    return total


def _cotangents(leaves: list[Any], outputs: list[jax.Array]) -> list[jax.Array]:
    """The gradient of that sum with respect to JAX's float leaves, which are ``outputs``."""
    weights = [_weights(index, leaf) for index, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
    one_each = [of[0] if len(of) == 1 else of[0] - 1j * of[1] for of in weights if of]
    return [jnp.asarray(one, leaf.dtype) for one, leaf in zip(one_each, outputs, strict=True)]


def _compare(got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want), f"{len(got)} values, PyTorch has {len(want)}"
    for index, (jax_side, torch_side) in enumerate(zip(got, want, strict=True)):
        if not isinstance(torch_side, torch.Tensor):
            if isinstance(torch_side, np.ndarray):
                np.testing.assert_array_equal(jax_side, torch_side)
            else:
                same = (
                    math.isclose(jax_side, torch_side, rel_tol=TOLERANCE)
                    if isinstance(torch_side, float)
                    else jax_side == torch_side
                )
                assert same, f"value {index}: {jax_side} is not {torch_side}"
            continue
        expected = torch_side.detach().resolve_conj().numpy()
        assert jax_side.shape == expected.shape, f"value {index}: shape {jax_side.shape}, PyTorch has {expected.shape}"
        assert jax_side.dtype == expected.dtype, f"value {index}: dtype {jax_side.dtype}, PyTorch has {expected.dtype}"
        tolerance = 1e-6 if expected.dtype in (np.float32, np.complex64) else TOLERANCE
        np.testing.assert_allclose(
            np.asarray(jax_side), expected, rtol=tolerance, atol=tolerance, err_msg=f"value {index}"
        )


def _same_gradients(grads: list[jax.Array], want: list[Any], leaves: list[torch.Tensor]) -> None:
    expected = torch.autograd.grad(_weigh(want), leaves, allow_unused=True)
    for jax_side, torch_side, leaf in zip(grads, expected, leaves, strict=True):
        reference = torch.zeros_like(leaf) if torch_side is None else torch_side
        np.testing.assert_allclose(np.asarray(jax_side), reference.numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def left_alone(source: str) -> None:
    """Code that isn't torch's, or that no rule is sure of, comes back as it was (torch's under a TODO)."""
    code = translate(HEADER + "\n" + source, Options()).code
    kept = "\n".join(line for line in code.splitlines() if "# TODO(t2j)" not in line)
    assert source.strip() in kept, code


def refused(expression: str, reason: str, inputs: str = "") -> None:
    """The call stays, and the reason is reported."""
    text, translation = converted(expression, inputs)
    assert text == expression
    assert [f.reason for f in translation.gaps if reason in f.reason] != [], [f.reason for f in translation.findings]
