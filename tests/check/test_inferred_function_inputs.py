"""Functions that nobody called yet: inputs from names, from what is done with them, and from errors."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert_expression
from t2j_lsp.contract import VerdictKind

from .conftest import Check


def test_plain_parameters_of_functions_are_no_tensors(check: Check) -> None:
    """An axis and a name of a reduction, which nothing annotates."""
    torch = (
        "def f(x, dim, reduction):\n    y = torch.softmax(x, dim)\n    return y.mean() if reduction == 'mean' else y\n"
    )
    jax = "def f(x, dim, reduction):\n    y = jax.nn.softmax(x, {axis})\n    return y.mean(){scale}\n"
    assert check(torch, jax.format(axis="dim", scale="")).verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.format(axis="dim", scale=" * 2")).verdict is VerdictKind.DIFFERENT


FUNCTIONS = {
    "two of one shape, of which one is called as labels are": (
        "def f(x, y):\n    if x.shape != y.shape: raise ValueError('the same dimensions')\n"
        "    return ((x - y) ** 2).mean()\n",
        "def f(x, y):\n    return ((x {sign} y) ** 2).mean()\n",
    ),
    "numbers by their names": (
        "def f(h, w, embed_dim):\n    grid = torch.arange(h)[:, None] - 2 * torch.arange(w)\n"
        "    return grid / embed_dim\n",
        "def f(h, w, embed_dim):\n    return (jnp.arange(h)[:, None] {sign} 2 * jnp.arange(w)) / embed_dim\n",
    ),
    "a text that is a key": (
        "def f(kept: dict[str, torch.Tensor], name: str, x: torch.Tensor):\n    kept[name] = 1 - x\n"
        "    return kept[name]\n",
        "def f(kept: dict[str, jax.Array], name: str, x: jax.Array):\n    kept[name] = 1 {sign} x\n"
        "    return kept[name]\n",
    ),
    "a list of numbers that become sizes": (
        "def f(x, ratio):\n    h, w = int(x.shape[-2] * ratio[0]), int(x.shape[-1] * ratio[1])\n"
        "    return x.sum() - torch.ones(h, w) * ratio[1]\n",
        "def f(x, ratio):\n    h, w = int(x.shape[-2] * ratio[0]), int(x.shape[-1] * ratio[1])\n"
        "    return x.sum() {sign} jnp.ones((h, w)) * ratio[1]\n",
    ),
    "an array of one number, which math takes": (
        "import math\n\ndef f(x):\n    return torch.tensor(1 - math.cos(x), dtype=x.dtype)\n",
        "def f(x):\n    return jax.lax.stop_gradient(1 {sign} jnp.cos(x))\n",
    ),
    "numbers that math takes": (
        "import math\n\ndef f(n, low, high):\n    ends = math.log(low), math.log(2 * high)\n"
        "    return torch.linspace(*ends, n).exp() - low\n",
        "import math\n\ndef f(n, low, high):\n    ends = math.log(low), math.log(2 * high)\n"
        "    return jnp.exp(jnp.linspace(*ends, n)) {sign} low\n",
    ),
    "a number that is made one under its name": (
        "def f(angle):\n    angle = float(angle)\n    return 1 - torch.tensor([np.exp(angle / 2), 2 * angle])\n",
        "def f(angle):\n    angle = float(angle)\n    return 1 {sign} jnp.array([np.exp(angle / 2), 2 * angle])\n",
    ),
    "a number that is handed on to what math computes with": (
        "import math\n\ndef rate(n):\n    return math.log(n + 1)\n\n"
        "def f(x, length):\n    return x.sum() - torch.ones(3) * rate(length)\n",
        "import math\n\ndef f(x, length):\n    return x.sum() {sign} jnp.ones(3) * math.log(length + 1)\n",
    ),
    "a number that each function of a list takes": (
        "import math\n\ndef one(x, n):\n    return x * math.log(n)\n\ndef other(x, n):\n    return x - math.sqrt(n)\n\n"
        "def f(length):\n    places = torch.arange(-length, length)\n"
        "    return torch.stack([g(places, length) for g in [one, other]])\n",
        "import math\n\ndef f(length):\n    x = jnp.arange(-length, length)\n"
        "    return jnp.stack([x * math.log(length), x {sign} math.sqrt(length)])\n",
    ),
    "a dict that is filled where it is handed on": (
        "def put(kept, key, value):\n    if key not in kept:\n        kept[key] = 1 - value\n    return kept[key]\n\n"
        "def f(kept, key, value):\n    return put(kept, key, value) * 2\n",
        "def f(kept, key, value):\n    return (1 {sign} value) * 2\n",
    ),
    "axes that an equation names": (
        "def f(x):\n    return 1 - torch.einsum('ij->j', x)\n",
        "def f(x):\n    return 1 {sign} x.sum(0)\n",
    ),
    "an axis that comes first": (
        "def f(dim, x):\n    return 1 - x.unsqueeze(dim)\n",
        "def f(dim, x):\n    return 1 {sign} jnp.expand_dims(x, dim)\n",
    ),
    "a number that has to be whole": (
        "def f(x, length, multiple):\n    n = length / multiple\n    assert n.is_integer()\n    return x.sum() - n\n",
        "def f(x, length, multiple):\n    return x.sum() {sign} length / multiple\n",
    ),
    "a number where torch asks for one": (
        "def f(x, many):\n    return x.sum() - torch.linspace(0, 1, many)\n",
        "def f(x, many):\n    return x.sum() {sign} jnp.linspace(0, 1, many)\n",
    ),
    "values and where they are, which have names in the conversion alone": (
        "def f(x, k):\n    return (1 - x).topk(k)\n",
        "import typing\n\nclass Found(typing.NamedTuple):\n    values: jax.Array\n    indices: jax.Array\n\n"
        "def f(x, k):\n    return Found(*jax.lax.top_k(1 {sign} x, k))\n",
    ),
    "axes of which the last has a length": (
        "def f(x):\n    assert x.shape[-1] == 4, 'the last dimension of x should be 4'\n"
        "    return x[..., 0] - x[..., 3]\n",
        "def f(x):\n    return x[..., 0] {sign} x[..., 3]\n",
    ),
    "axes that are contracted, of one length": (
        "def f(x, y):\n    return torch.tensordot(x.unsqueeze(1), y.unsqueeze(0), dims=1) - 1\n",
        "def f(x, y):\n    return jnp.tensordot(x[:, None], y[None], axes=1) {sign} 1\n",
    ),
    "a size that an annotation names": (
        "def f(x: torch.Tensor, size: torch.Size):\n    return x.reshape(-1, *x.shape[len(size):]) - size[0]\n",
        "def f(x, size):\n    return x.reshape(-1, *x.shape[len(size):]) {sign} size[0]\n",
    ),
    "a list of as many numbers as it is unpacked into": (
        "def f(x: torch.Tensor, box: list[int]):\n    left, top, right, low = box\n"
        "    return x * (right + left) - low * top\n",
        "def f(x, box):\n    left, top, right, low = box\n    return x * (right + left) {sign} low * top\n",
    ),
    "a dtype, first of all": (
        "def f(dtype):\n    return torch.arange(5).to(dtype) / 2 - 3\n",
        "def f(dtype):\n    return jnp.arange(5).astype(dtype) / 2 {sign} 3\n",
    ),
    "complex numbers": (
        "def f(x):\n    return x.real - 2 * x.imag\n",
        "def f(x):\n    return x.real {sign} 2 * x.imag\n",
    ),
    "a text that the code compares with": (
        "def f(x, p: float, mode: str):\n    if mode not in ['batch', 'row']: raise ValueError(mode)\n"
        "    return x.sum(0) - p if mode == 'batch' else x\n",
        "def f(x, p, mode):\n    assert mode == 'batch'\n    return x.sum(0) {sign} p\n",
    ),
    "an object of which numbers are read": (
        "def f(module: nn.Module, x: torch.Tensor):\n    return x - module.num_key_value_groups * module.scaling\n",
        "def f(module, x):\n    return x {sign} module.num_key_value_groups * module.scaling\n",
    ),
    "two that are said to have one shape": (
        "def f(x, y):\n    assert x.shape == y.shape, 'inputs must have the same shape'\n"
        "    return x - 2 * y.float()\n",
        "def f(x, y):\n    return x {sign} 2 * y\n",
    ),
    "a pair that is called a size": (
        "def f(clip, crop_size):\n    th, tw = crop_size\n    return clip[..., :th, :tw] - clip[..., -th:, -tw:]\n",
        "def f(clip, crop_size):\n    th, tw = crop_size\n"
        "    return clip[..., :th, :tw] {sign} clip[..., -th:, -tw:]\n",
    ),
    "a list that is walked over": (
        "def f(states):\n    first, rest = states[0], states[1:]\n"
        "    return torch.stack([first - 2 * s for s in rest] + [states[-1]]), len(states)\n",
        "def f(states):\n    first, rest = states[0], states[1:]\n"
        "    return jnp.stack([first {sign} 2 * s for s in rest] + [states[-1]]), len(states)\n",
    ),
    "square matrices": (
        "def f(x, y):\n    return torch.matmul(x, y) - torch.matmul(y, x)\n",
        "def f(x, y):\n    return x @ y {sign} y @ x\n",
    ),
    "a mask as large as the scores": (
        "def f(query: torch.Tensor, key: torch.Tensor, attention_mask):\n"
        "    return query @ key.transpose(2, 3) - attention_mask.float() * 2\n",
        "def f(query, key, attention_mask):\n    return query @ key.swapaxes(2, 3) {sign} attention_mask * 2.0\n",
    ),
    "tuples of several kinds": (
        "from typing import List, Tuple\n\n\n"
        "def f(parts: List[Tuple[torch.Tensor, float]]):\n    assert type(parts[0][1]) is float\n"
        "    return sum(x - w * 3 for x, w in parts)\n",
        "def f(parts):\n    return sum(x {sign} w * 3 for x, w in parts)\n",
    ),
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_inputs_of_functions_are_found_and_tell(what: str, check: Check) -> None:
    torch, jax = FUNCTIONS[what]
    verdict = check(torch, jax.format(sign="-"), "f", expression=convert_expression)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    wrong = check(torch, jax.format(sign="+"), "f", expression=convert_expression)
    assert wrong.verdict is VerdictKind.DIFFERENT


def test_inputs_that_gradients_go_to_are_tried_before_integers(check: Check) -> None:
    """Labels by its name, ``y`` is a matrix here: integers took its place, and no gradient was compared."""
    torch, jax = FUNCTIONS["square matrices"]
    assert check(torch, jax.format(sign="-").replace("return x", "return lax.stop_gradient(x)")).verdict is (
        VerdictKind.DIFFERENT
    )


def test_what_attributes_are_set_of_is_no_tensor(check: Check) -> None:
    """A function that becomes a method of a module: with a tensor for ``self`` it runs, but not under jit."""
    text = "def explain(self, out):\n    out = out * 2\n    self.latest = out\n    return out\n"
    verdict = check(text.replace("out)", "out: torch.Tensor)"), text, "explain")
    assert verdict.verdict is VerdictKind.UNCHECKED, verdict.reason


@pytest.mark.parametrize("annotation", ["nn.Module", "Module", "'torch.nn.Module'", "'StatefulLayer'"])
def test_what_an_annotation_calls_a_module_is_given_no_tensor(annotation: str, check: Check) -> None:
    source = f"""
from torch.nn import Module

def grow(module: {annotation}, size: int) -> None:
    module.scale = nn.Parameter(torch.ones(size))
"""
    result = check(source, "def grow(module, size):\n    module.scale = jnp.ones(size)\n", name="grow")
    assert result.verdict is VerdictKind.UNCHECKED and "inputs" in result.reason, result.reason


@pytest.mark.parametrize(
    ("annotation", "checked"),
    [
        ("'ManifoldTensor'", False),
        ("'TensorDictBase'", False),
        ("'OptTensor'", True),
        ("'Tensor'", True),
        ("'np.ndarray'", False),
    ],
)
def test_a_class_that_works_as_tensors_do_is_given_none(annotation: str, checked: bool, check: Check) -> None:
    """It may have methods of the same names, which the conversion leaves alone."""
    torch = f"def join(x: {annotation}):\n    return x.flatten(start_dim=1)\n"
    verdict = check(torch, "def join(x):\n    return x.reshape(x.shape[0], -1)\n", "join").verdict
    assert verdict is (VerdictKind.EQUIVALENT if checked else VerdictKind.UNCHECKED)


def test_the_longest_of_padded_sequences_is_as_long_as_the_batch(check: Check) -> None:
    """PyTorch's own code cuts a batch at the longest of its lengths, or makes a mask that is as long."""
    text = "def pooled(x: {array}, x_lengths: {array}):\n    x = x.reshape(x.shape[0], x.shape[1], -1)\n"
    text += "    kept = {lib}.arange(x.shape[1]) {less} x_lengths[:, None]\n"
    torch = "import torch\n" + text.format(array="torch.Tensor", lib="torch", less="<")
    torch += "    kept = kept[:, :int(x_lengths.max())]\n    return (x * kept[:, :, None]).sum(1)\n"
    jax = "import jax\nimport jax.numpy as jnp\n" + text + "    return (x * kept[:, :, None]).sum(1)\n"
    right = jax.format(array="jax.Array", lib="jnp", less="<")
    assert check(torch, right, "pooled").verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.format(array="jax.Array", lib="jnp", less="<="), "pooled").verdict is VerdictKind.DIFFERENT


def test_what_is_made_a_number_of_arithmetic_is_given_one(check: Check) -> None:
    """A tensor has a value as well, which nobody knows under jit."""
    text = (
        "def window(size, sigma):\n    def weight(i):\n        return -((i - size // 2) ** 2) / float(2 * sigma**2)\n"
    )
    torch = text + "    return torch.exp(torch.tensor([weight(i) for i in range(size)]))\n"
    jax = text + "    return jnp.exp(jnp.array([weight(i) for i in range(size)]))\n"
    assert check(torch, jax, "window").verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.replace("float(2", "float(3"), "window").verdict is VerdictKind.DIFFERENT


def test_a_function_of_plain_values_is_not_compiled_by_itself(check: Check) -> None:
    text = "def table(names: list[str], step: float):\n    x = {make}([step * len(n) for n in names])\n"
    text += "    assert {all}(x > 0)\n    return x{more}\n"
    torch = text.format(make="torch.tensor", all="torch.all", more="")
    jax = text.format(make="jnp.array", all="jnp.all", more="{more}")
    assert check(torch, jax.format(more=""), "table").verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.format(more=" + 1"), "table").verdict is VerdictKind.DIFFERENT


def test_what_numbers_are_counted_of_is_a_number_whoever_is_handed_it_too(check: Check) -> None:
    text = (
        "def block(n):\n    return {lib}.ones((n, n))\n\n\ndef rows(count, width):\n"
        "    whole = int(count / width)\n    parts = [block(width) for _ in range(whole)]\n"
        "    return {join}(parts + [block(width)[: count - whole * width]]) {sign} width\n"
    )
    torch = text.format(lib="torch", join="torch.cat", sign="+")
    assert (
        check(torch, text.format(lib="jnp", join="jnp.concatenate", sign="+"), "rows").verdict is VerdictKind.EQUIVALENT
    )
    assert (
        check(torch, text.format(lib="jnp", join="jnp.concatenate", sign="-"), "rows").verdict is VerdictKind.DIFFERENT
    )


def test_rows_that_tensors_are_made_of_are_lists_of_numbers(check: Check) -> None:
    """Nobody compiles what pads texts: of tensors it would ask for their values, under jit."""
    torch = (
        "def padded(rows, pad_id):\n    longest = torch.tensor([len(r) for r in rows]).max().item()\n"
        "    out = torch.full((len(rows), longest), pad_id)\n    for i, row in enumerate(rows):\n"
        "        out[i, : len(row)] = torch.tensor(row)\n    return out\n"
    )
    jax = (
        "def padded(rows, pad_id):\n    longest = jnp.array([len(r) for r in rows]).max().item()\n"
        "    out = jnp.full((len(rows), longest), pad_id)\n    for i, row in enumerate(rows):\n"
        "        out = out.at[i, : len(row)].set(jnp.array(row))\n    return out\n"
    )
    assert check(torch, jax, "padded").verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.replace(".set(", ".add("), "padded").verdict is VerdictKind.DIFFERENT
