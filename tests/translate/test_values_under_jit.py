"""What is said of values that are not known under jit, and of methods that only a tensor can have."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2j_lsp import convert

HEAD = "import numpy as np\nimport torch\nfrom typing import Optional, Union\n\n\n"


def noted(text: str) -> bool:
    """Whether a conversion says that a value is not known under jit."""
    codes = {finding.code for finding in convert(HEAD + text).findings}
    return bool(codes & {"value-needed", "tensor-branch"})


SAID = {
    "a padding that an array says": (
        "def level(x, n: torch.Tensor):\n    return torch.nn.functional.pad(x, (0, n.max() - x.shape[-1]))\n"
    ),
    "a function of lists that a module calls": (
        "def drop(layers, rate):\n    gone = torch.rand(len(layers)) < rate\n"
        "    return [one for one, left in zip(layers, gone) if not left] or layers[:1]\n\n\n"
        "class Net(torch.nn.Module):\n    def __init__(self, layers):\n        super().__init__()\n"
        "        self.layers = layers\n\n    def forward(self, x):\n"
        "        for layer in drop(self.layers, 0.5):\n            x = layer(x)\n        return x\n"
    ),
    "numpy's array that a module keeps": (
        "def season(x, t):\n    return x * torch.tensor(np.cos(t)).float()\n\n\n"
        "class Net(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.t = np.arange(n) / n\n\n    def forward(self, x):\n        return season(x, self.t)\n"
    ),
    "what an object draws when it is called": (
        "class Noise:\n    def __call__(self, n):\n        return torch.rand(n)\n"
    ),
    "what a lambda of the module level draws": "noisy = lambda x: x + torch.rand(3)\n",
    "a function that draws in a table": (
        "def noisy(x):\n    return x + torch.randn_like(x)\n\n\nTABLE = {'noisy': noisy, 'none': abs}\n"
    ),
    "a function of pairs of tensors": (
        "def f(pairs: list[tuple[torch.Tensor, torch.Tensor]]):\n"
        "    return [x * y.abs().max().item() for x, y in pairs]\n"
    ),
    "a function of tensors with numbers": (
        "def f(pairs: list[tuple[torch.Tensor, int]]):\n    return [x * x.max().item() for x, n in pairs]\n"
    ),
    "a condition on what is a tensor in one branch": (
        "def f(x: torch.Tensor, kind: bool):\n    if kind:\n        n = x.sum()\n    else:\n        n = 3\n"
        "    if n > 2:\n        return x\n    return x * n\n"
    ),
    "a condition on what is a tensor in one case": (
        "def f(x: torch.Tensor, kind: str):\n    match kind:\n        case 'a':\n            n = x.sum()\n"
        "        case _:\n            n = 3\n    return x if n > 2 else -x\n"
    ),
    "a condition on one of two": (
        "def f(x: torch.Tensor, kind: bool):\n    n = x.max() if kind else 3\n    return x if n > 2 else -x\n"
    ),
    "a number of what is a tensor in one branch": (
        "def f(x: torch.Tensor, kind: bool):\n    n = 3\n    if kind:\n        n = x.max()\n    return x * float(n)\n"
    ),
    "what a module keeps in a dict": (
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.kept = {}\n\n"
        "    def forward(self, x):\n        self.kept = {'gone': torch.rand(len(x)) < 0.5}\n"
        "        return x * 2 if self.kept['gone'].any() else x\n"
    ),
    "a function of a number": "def f(n: int):\n    return torch.linspace(0, 1, n).tolist()\n",
    "a function of what is only passed on": (
        "def g(n):\n    return torch.ones(n)\n\n\ndef f(n):\n    x = g(n)\n    assert torch.all(x > 0)\n    return x\n"
    ),
    "what may be a tensor, by its annotation": (
        "def f(x: list | torch.Tensor):\n    return x.tolist() if isinstance(x, torch.Tensor) else list(x)\n"
    ),
    "what may be a tensor, in older words": (
        "def f(x: Union[np.ndarray, Optional[torch.Tensor]]):\n    return None if x is None else x.tolist()\n"
    ),
    "what a comparison of unknown values says": (
        "def f(g, x: torch.Tensor):\n    low, high = g(x[0]), g(x[1])\n"
        "    if not ((low <= 0) & (high > 0)).all():\n        raise ValueError\n    return x.clone()\n"
    ),
    "what may be a tensor, as one is made of it": (
        "def f(x):\n    index = torch.as_tensor(x)\n    return index.tolist() if bool(index.any()) else []\n"
    ),
    "a mask that broadcasting hands on": (
        "def f(a, x):\n    if a is None:\n        return torch.lgamma(1 + x)\n    mask = x != 0\n"
        "    x, a, mask = torch.broadcast_tensors(x, a, mask)\n    return torch.exp(x[mask])\n"
    ),
    "a mask that compares unknown values": "def f(x: torch.Tensor, y):\n    mask = y > 3\n    return x[mask]\n",
    "a mask made of masks": "def f(x: torch.Tensor, y):\n    low = y > 3\n    return x[~low & (y < 9)]\n",
    "an unknown value, by a mask": "def f(x, y):\n    mask = x > y\n    return x[mask] * torch.exp(y)\n",
    "a tuple of tensors": (
        "def f(xs: tuple[torch.Tensor, ...]):\n    return max(torch.max(x).item() for x in xs if x.numel())\n"
    ),
    "an array that leaves JAX": (
        "import jax\n\n\ndef f(x: torch.Tensor):\n    return jax.dlpack.from_dlpack(x.contiguous())\n"
    ),
    "a slice that is written to": (
        "def f(n: int):\n    x = torch.linspace(0, 1, n)\n    i = torch.argmin(x - 0.3)\n    x[:i] = 1\n    return x\n"
    ),
    "a format of an array": 'def f(x: torch.Tensor):\n    print(f"{x.mean():.1f}")\n    return x.clone()\n',
    "a format of what a tensor's method gives": 'def f(name, x):\n    print(f"{name} {x.var(0).mean().sqrt():.1f}")\n',
    "a field with a format": 'def f(x: torch.Tensor):\n    return "{} {:.3f}".format("loss", x.sum())\n',
    "a named field with a format": 'def f(x: torch.Tensor):\n    return "{loss:.3f}".format(loss=x.sum())\n',
    "the builtin format": 'def f(x: torch.Tensor):\n    return format(x.sum(), ".3f")\n',
    "a percent sign": 'def f(x: torch.Tensor):\n    return "%s: %5.2f %%" % ("loss", x.sum())\n',
    "what another library computes with": "def f(x: torch.Tensor):\n    return x * np.median(x)\n",
    "each of what is handed to another library": (
        "from scipy.optimize import linear_sum_assignment\n\n\ndef f(losses):\n"
        "    costs = losses.detach().cpu()\n    return torch.tensor([linear_sum_assignment(c)[1] for c in costs])\n"
    ),
    "axes that are an array's values": (
        "def f(x):\n    axes = list(torch.arange(x.dim()))\n    return torch.sum(x, axes[1:])\n"
    ),
    "one axis that is": "def f(x: torch.Tensor, order: torch.Tensor):\n    return x.softmax(order[0])\n",
    "axes that are spread": "def f(x: torch.Tensor):\n    return x.permute(*torch.arange(x.ndim - 1, -1, -1))\n",
    "what numpy computes of what is given": (
        "def f(batch):\n    m = max(len(x) for x in batch)\n"
        "    return torch.stack([torch.from_numpy(np.pad(x, [(0, m - len(x))])) for x in batch])\n"
    ),
    "what numpy made of what is given": (
        "def f(g):\n    g = np.array(g[::-1]).ravel()\n    return torch.tensor(g).reshape(1, 1, -1)\n"
    ),
    "what a function has numpy compute of what is given": (
        "def pad(x, n):\n    return np.pad(x, [(0, n)])\n\n\n"
        "def f(x, n):\n    return torch.from_numpy(pad(x, n)) * torch.ones(3)\n"
    ),
    "a global that a call sets": (
        "def make(n):\n    half = torch.ones(n) * 0.5\n    return lambda x: x * half\n\n\n"
        "def set_table(n):\n    global table\n    table = make(n)\n"
    ),
    "a range that values end": "def f(lengths: torch.Tensor):\n    return torch.arange(lengths.max() + 1)\n",
    "a loop as long as values, or as a number": (
        "def f(x: torch.Tensor, n: int | None = None):\n    if n is None:\n        n = x.max()\n"
        "    return x.new_tensor(range(1, n + 1))\n"
    ),
    "a loop as long as one or the other": (
        "def f(x: torch.Tensor, n=None):\n    n = n or x.max()\n    return [x * i for i in range(n)]\n"
    ),
    "a shape of values": "def f(x: torch.Tensor):\n    return x.new_zeros((2, x.max())) + torch.ones(x[0], 3)\n",
    "pieces as long as values": "def f(x: torch.Tensor, n: torch.Tensor):\n    return x.split([n[0], n[1]])\n",
    "a size for each of unknown things": (
        "def f(batch, lengths):\n    mask = torch.zeros(batch.shape[0:2])\n"
        "    for b in range(batch.shape[0]):\n        mask[b, : lengths[b]] = torch.ones(lengths[b])\n    return mask\n"
    ),
}
CONDITIONS = {
    "a largest element": "def f(x):\n    top = x.abs().max()\n    if top > 1:\n        return x / top\n    return x\n",
    "a sum": "def f(x):\n    assert x.pow(2).sum() > 0\n    return torch.sqrt(x)\n",
    "one of two": "def f(x, y):\n    return y if 1 - x.abs().min() > 0 else torch.exp(y)\n",
}
UNSAID = {
    "a loop as long as a shape, or as a number": (
        "def f(x: torch.Tensor, n=None, sizes=()):\n    if n is None:\n        n = x.shape[0]\n"
        "    return [x * i for i in range(n - 1)] + [x for i in range(n) for j in range(sizes[i])]\n"
    ),
    "a condition on numbers of two branches": (
        "def f(x: torch.Tensor, kind: bool):\n    n = 3\n    if kind:\n        n = x.shape[0]\n"
        "    return x if n > 2 else -x\n"
    ),
    "a condition on None in one branch": (
        "def f(x: torch.Tensor, kind: bool):\n    n = None\n    if kind:\n        n = x.max()\n"
        "    return x if n is None else x * n\n"
    ),
    "a lambda of the module level that makes a layer": "make = lambda n: torch.nn.Linear(n, 2)\n",
    "a function that makes layers, in a table": (
        "def make(n):\n    return torch.nn.Linear(n, 2)\n\n\nTABLE = {'linear': make, 'none': abs}\n"
    ),
    "what the module level draws": "start = torch.rand(3)\n",
    "numpy's array that only a constructor computes with": (
        "class Net(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.t = np.arange(n) / n\n        self.make()\n\n    def make(self):\n"
        "        self.register_buffer('c', torch.tensor(np.cos(self.t)))\n\n"
        "    def forward(self, x):\n        return x * self.c\n"
    ),
    "a loop over a loader": (
        "def evaluate(model, loader):\n    return sum(torch.ones(2).sum().item() for batch in loader)\n"
    ),
    "a program's settings": "def main(args):\n    print(torch.ones(args.n).sum().item())\n",
    "numpy's arrays": (
        "def f(x: torch.Tensor):\n    low = np.ones(3)\n    return x.clone() if (low <= 0).all() else x.clone()\n"
    ),
    "a table": (
        "def f(x: torch.Tensor, i, n):\n    last = i == n - 1\n"
        "    table = {True: 1, False: 0}\n    return x * table[last]\n"
    ),
    "a name of its own making": "def f(x: torch.Tensor, t, key):\n    key = ~key\n    return x * t[key]\n",
    "a text of an array": 'def f(x: torch.Tensor):\n    return f"{x.sum()} {x!r:>9}" + "%s" % x + "{}".format(x)\n',
    "formats of numbers": 'def f(x: torch.Tensor):\n    return f"{x.shape[0]:>4}" + "%d" % x.numel()\n',
    "what another library computes of a shape": "def f(x: torch.Tensor):\n    return x * np.prod(x.shape)\n",
    "numpy's arrays of sizes and files": (
        "def f(n, path):\n    return torch.from_numpy(np.arange(n)), torch.from_numpy(np.load(path))\n"
    ),
    "numpy's arrays in an object's method": (
        "class Buffer:\n    def sample(self, rows):\n        return torch.from_numpy(np.vstack(rows)).float()\n"
    ),
    "numpy's array as it is given": "def f(x):\n    return torch.from_numpy(x) * torch.ones(3)\n",
    "axes of a range": (
        "def f(x: torch.Tensor, axes):\n    y = x.sum(axes[0]) + x.mean(tuple(axes))\n"
        "    return y, x.permute(*range(x.ndim)), x.flip(list(range(2)))\n"
    ),
    "a counter in a global": "def f(x: torch.Tensor):\n    global seen\n    seen = len(x)\n    return x * 2\n",
    "sizes of shapes": (
        "def f(x: torch.Tensor, n: int, size):\n    y = torch.zeros(x.shape[0], x.size(1), n, size[0], *x.shape[2:])\n"
        "    return torch.arange(x.shape[-1]).repeat(n), y.expand(y.shape)\n"
    ),
    "a training function's loss": (
        "def train(model, loader):\n    for x, y in loader:\n        loss = (model(x) - y).abs().mean()\n"
        '        loss.backward()\n        print(f"{loss:.3f}")\n'
    ),
    "lists of tensors": "def f(x: list[torch.Tensor]):\n    return x.tolist()\n",
}


@pytest.mark.parametrize("text", SAID.values(), ids=SAID)
def test_a_value_that_jit_does_not_know_is_said(text: str) -> None:
    assert noted(text)


@pytest.mark.parametrize("text", CONDITIONS.values(), ids=CONDITIONS)
def test_a_condition_on_what_is_taken_for_a_tensor_is_said(text: str) -> None:
    assert [note.code for note in convert("import torch\n\n\n" + text).notes if note.code == "tensor-branch"]


def test_a_name_that_is_made_of_itself_is_followed_once() -> None:
    text = "import torch\n\n\ndef f(t, n, h):\n    while n < 3:\n        n = n + h\n    return torch.tensor(t)\n"
    assert "while n < 3:" in convert(text).code


@pytest.mark.parametrize("text", UNSAID.values(), ids=UNSAID)
def test_nothing_is_said_where_nobody_compiles(text: str) -> None:
    assert not noted(text)


@pytest.mark.parametrize("receiver", ["x", "x.abs()"])
def test_a_method_gives_what_only_a_tensors_gives_where_torch_takes_it(receiver: str) -> None:
    code = convert(HEAD + f"def f(model, x):\n    return torch.mean({receiver}.var(axis=0))\n").code
    assert "ddof=1" in code


def test_a_list_of_axes_is_one_of_a_tensor() -> None:
    assert "x.var(axis=(0, 2), ddof=1)" in convert(HEAD + "def f(x):\n    return x.var(axis=[0, 2])\n").code


CACHED = """\
@functools.lru_cache(maxsize=8)
def grid(n, device):
    return torch.arange(n, device=device).repeat(2)


@functools.cache
def available():
    return torch.cuda.is_available()


@functools.cache
def doubled(x: torch.Tensor):
    return torch.relu(x) * 2
"""


def test_what_a_cache_keeps_is_made_outside_of_a_trace() -> None:
    translation = convert("import functools\n" + HEAD + CACHED)
    lines = translation.code.splitlines()
    assert lines.count("@jax.ensure_compile_time_eval()") == 1
    assert lines[lines.index("@jax.ensure_compile_time_eval()") + 1].startswith("def grid")
    assert [f.name for f in translation.findings if f.code == "value-needed"] == ["functools.cache"]
    names: dict[str, Any] = {}
    exec(translation.code, names)
    for factor in (1, 2):  # the second trace is given what the first one kept
        got = jax.jit(lambda x, factor=factor: factor * x + names["grid"](3, None))(jnp.ones(6))
        np.testing.assert_array_equal(got, factor + np.tile(np.arange(3), 2))
    assert convert(translation.code).code == translation.code


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("x.type(torch.complex64)", "x.astype(jnp.complex64)"),
        ("x.type(torch.LongTensor)", "x.astype(jnp.int32)"),
        ("x.type(y.dtype)", "x.astype(y.dtype)"),
        ("x.type(dtype=torch.float32)", "x.astype(jnp.float32)"),
        ("x.type('click')", "x.type('click')"),
    ],
)
def test_type_with_a_dtype_is_a_tensors(call: str, expected: str) -> None:
    assert expected in convert(HEAD + f"def f(x, y):\n    return {call}\n").code


CAST = """
import torch
from typing import cast


def f(xs):
    first = cast(torch.Tensor, xs[0]).device
    return [x.to(first) for x in cast(list[torch.Tensor], xs)]
"""


def test_what_typing_calls_a_tensor_is_one() -> None:
    done = convert(CAST)
    assert not done.gaps
    assert ".device" not in done.code
    assert ".to(" not in done.code


def test_what_code_asks_whether_it_is_a_tensor_is_one_where_it_is() -> None:
    body = "    if torch.is_tensor(x):\n        x = (x,)\n    total = sum(y.sum() for y in x)\n"
    text = HEAD + f"def f(x):\n{body}    assert not torch.isnan(total), 'x'\n    return total.detach().item()\n"
    assert len([f for f in convert(text).findings if f.code in ("value-needed", "tensor-branch")]) == 2
