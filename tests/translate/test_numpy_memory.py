"""Tensors and arrays of NumPy that share memory, and parameters whose values are kept: told, copied, or left alone."""

from __future__ import annotations

from typing import Any

import pytest

from t2j_lsp import convert

HEAD = "import numpy as np\nimport torch\nimport torch.nn as nn\n\n"
MADE = "a = np.zeros(4, dtype=np.float32)\nt = torch.from_numpy(a)\n"
KEPT = """\
class Both:
    def __init__(self):
        self.x = torch.zeros(4)
        self.n = self.x.numpy()

    def put(self, i, v):
        self.n[i] = v
        return self.x.sum()
"""
MADE_FROM = """\
class Both:
    def __init__(self):
        self.n = np.zeros(4, dtype=np.float32)
        self.x = torch.from_numpy(self.n)

    def put(self, v):
        self.n.fill(v)
        return self.x.sum()
"""
TOLD = {
    "into the array": MADE + "a[0] = 5\nout = t.sum()\n",
    "into all of the array": MADE + "a += 5\nout = t.sum()\n",
    "by a method of the array": MADE + "a.fill(5)\nout = t.sum()\n",
    "into a view of the array": MADE + "b = a[1:]\nb[0] = 5\nout = t.sum()\n",
    "in a loop": MADE + "for i in range(3):\n    a[i] = i\n    print(t.sum())\n",
    "what a list holds": MADE + "kept = [t]\na[0] = 5\nout = kept[0].sum()\n",
    "by as_tensor": "a = np.zeros(4)\nt = torch.as_tensor(a)\na[0] = 5\nout = t.sum()\n",
    "into the tensor": MADE + "t.add_(1)\nout = a.sum()\n",
    "into the array of a tensor": "x = torch.ones(4)\ny = x.numpy()\ny[0] = 7\nout = x.sum()\n",
    "into the moved array of a tensor": "x = torch.ones(4)\ny = x.detach().cpu().numpy()\ny[0] = 7\nout = x.sum()\n",
    "into a tensor with an array": "x = torch.ones(4)\ny = x.numpy()\nx.mul_(2)\nout = y.sum()\n",
    "attributes of a class": KEPT,
    "a tensor of an attribute": MADE_FROM,
}
RUNS = {
    "an array of a tensor": ("x = torch.ones(4)\ny = x.numpy()\ny[0] = 7\nout = y.sum()\n", "np.array(x)", 10),
    "of a result": ("y = torch.ones(4).mul(2).detach().numpy()\ny *= 2\nout = y.sum()\n", "np.array(", 16),
    "of a function's result": (
        "def values(x):\n    return (x * 2).numpy()\n\n\ny = values(torch.ones(3))\ny[y > 1] = 5\nout = y.sum()\n",
        "np.array(x * 2)",
        15,
    ),
    "a tensor made in each round": (
        "a = np.zeros(3)\nout = 0.0\nfor i in range(3):\n    a[i] = i\n    out += torch.as_tensor(a).sum().item()\n",
        "jnp.array(a)",
        4,
    ),
    "an attribute made to a tensor": (
        "class Rows:\n    def __init__(self):\n        self.n = np.zeros(4)\n\n    def put(self, i, v):\n"
        "        self.n[i] = v\n\n    def get(self):\n        return torch.as_tensor(self.n[:2])\n\n\n"
        "rows = Rows()\nrows.put(1, 3.0)\nout = rows.get().sum().item()\nrows.put(0, 1.0)\n",
        "jnp.array(self.n[:2])",
        3,
    ),
    "never written": (MADE + "out = t.sum().item() + a.sum()\n", "jnp.asarray(a)", 0),
    "written before": (
        "a = np.zeros(4, dtype=np.float32)\na[1] = 2\nout = torch.from_numpy(a).sum().item()\n",
        "jnp.asarray(a)",
        2,
    ),
    "another array": (MADE + "b = a.copy()\nb[0] = 5\nout = t.sum().item() + b.sum()\n", "jnp.asarray(a)", 5),
    "an array that is only read": ("x = torch.ones(4)\ny = x.numpy()\nout = y.sum()\n", "np.asarray(x)", 4),
    "another tensor": (MADE + "u = t.clone()\na[0] = 5\nout = u.sum().item()\n", "jnp.array(a)", 0),
}
STEPS = """\
model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.ones(6, 4), torch.ones(6, 2)


def train(model, opt):
    for _ in range(3):
        opt.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        opt.step()


kept = []
"""
LOOP = """\
for _ in range(3):
    opt.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
"""
OUTDATED = {
    "detached": "w = model.weight.detach()\n" + LOOP + "print(w.sum())\n",
    "data": "w = model.bias.data\n" + LOOP + "print(w.sum())\n",
    "a bias": "b = model.bias\n" + LOOP + "print(b.sum())\n",
    "a kernel": "w = model.weight\n" + LOOP + "print(w.sum())\n",
    "before a function trains": "w = model.weight.data\ntrain(model, opt)\nprint((model.weight - w).abs().sum())\n",
    "a list that grows": LOOP
    + "    kept.append(model.weight.detach().cpu().numpy())\nprint(sum(k.sum() for k in kept))\n",
    "a dict": "saved = {}\nsaved['w'] = model.weight.data\n" + LOOP + "print(saved['w'].sum())\n",
}
CURRENT = {
    "a copy": "w = model.weight.detach().clone()\n" + LOOP + "print((model.weight - w).abs().sum())\n",
    "a copy by NumPy": "w = model.weight.detach().numpy().copy()\n" + LOOP + "print(w.sum())\n",
    "a number": "w = model.weight.detach().sum().item()\n" + LOOP + "print(w)\n",
    "read in each round": LOOP + "    w = model.weight.data\n    print(w.sum())\n",
    "read before": "w = model.weight.data\nprint(w.sum())\n" + LOOP,
    "a list of numbers": LOOP + "    kept.append(model.weight.detach().norm().item())\nprint(kept)\n",
}


def reasons(body: str) -> list[str]:
    return [gap.message for gap in convert(HEAD + body).gaps]


@pytest.mark.parametrize("name", TOLD)
def test_what_the_other_side_would_see_is_told(name: str) -> None:
    assert any("memory" in reason for reason in reasons(TOLD[name]))


@pytest.mark.parametrize("name", RUNS)
def test_what_nobody_sees_is_copied_where_it_is_written(name: str) -> None:
    body, written, expected = RUNS[name]
    result = convert(HEAD + body)
    assert not result.gaps and written in result.code
    scope: dict[str, Any] = {}
    exec(compile(result.code, name, "exec"), scope)
    source: dict[str, Any] = {}
    exec(compile(HEAD + body, name, "exec"), source)
    assert float(scope["out"]) == float(source["out"]) == expected


@pytest.mark.parametrize("name", OUTDATED)
def test_values_of_parameters_that_an_optimizer_writes_into_are_told(name: str) -> None:
    assert any("PyTorch's optimizer writes into the memory" in reason for reason in reasons(STEPS + OUTDATED[name]))


def test_the_statement_that_keeps_them_is_marked() -> None:
    lines = convert(HEAD + STEPS + OUTDATED["data"]).code.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("w = "))
    assert lines[at - 1].startswith("# TODO(t2j): PyTorch's optimizer writes")


@pytest.mark.parametrize("name", CURRENT)
def test_values_that_are_copied_or_read_anew_are_not(name: str) -> None:
    assert not reasons(STEPS + CURRENT[name])


def test_methods_of_what_numpy_gives_are_numpys() -> None:
    """Those that tensors have too stay as they are, and what they are given: the value stays NumPy's."""
    call = "x.detach().cpu().numpy().clip(low, high).astype(np.float64)"
    code = convert(HEAD + f"def act(x: torch.Tensor, low, high):\n    return {call}\n").code
    assert "return np.asarray(x).clip(low, high).astype(np.float64)" in code
