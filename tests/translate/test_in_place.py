"""In-place operations rebind; where another name would see the write, nothing is touched."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .convert import expect, run


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("x.add_(1)", "x = x + 1"),
        ("x.mul_(2).add_(y)", "x = x * 2\n    x = x + y"),
        ("(x.add_(1))", "x = x + 1"),
        ("x = (1.0 - x).mul_(y).exp_()", "x = jnp.exp((1.0 - x) * y)"),
        ("x[0] = 1", "x = x.at[0].set(1)"),
        ("x[:, 1:] += y", "x = x.at[:, 1:].add(y)"),
        ("x[ids] += y", "x = x.at[ids].set(x[ids] + y)"),
        ("x[ids] -= 1", "x = x.at[ids].set(x[ids] - 1)"),
        ("x[..., 0] /= 2", "x = x.at[..., 0].divide(2)"),
        ("x[0][1] = 1", "x = x.at[0, 1].set(1)"),
        ("x[[3, 4].index(n)][0] += 1", "x = x.at[[3, 4].index(n), 0].add(1)"),
        ("x[-1][0][1:3] += y", "x = x.at[-1, 0, 1:3].add(y)"),
        ("x[0][ids] = y", "x = x.at[0, ids].set(y)"),
        ("x[0][:, ids] = 5", "x = x.at[0].set(x[0].at[:, ids].set(5))"),
        ("x[1:][0] = 5", "x = x.at[1:].set(x[1:].at[0].set(5))"),
        ("torch.add(x, y, out=x)", "x = x + y"),
        (
            "x.data[:, 0].copy_(y)",
            "old_x = x\n    x = x.at[:, 0].set(y)\n    "
            "x = jax.lax.stop_gradient(x) + (old_x - jax.lax.stop_gradient(old_x))",
        ),
        ("x.zero_()", "x = jnp.zeros_like(x)"),
        ("x.gt_(y)", "x = (x > y).astype(x.dtype)"),
        ("torch.aminmax(x, dim=0, out=(x, y))", "x, y = (jnp.min(x, axis=0), jnp.max(x, axis=0))"),
    ],
)
def test_writes_rebind(statement: str, wanted: str) -> None:
    parameters = "x: jax.Array, y: jax.Array, ids: jax.Array"
    expect(
        f"def f(x: Tensor, y: Tensor, ids: Tensor):\n    {statement}\n    return x, y\n",
        f"def f({parameters}):\n    {wanted}\n    return x, y\n",
    )


@pytest.mark.parametrize("target", ["x[ids][0]", "x[x > 1][0]", "x[:, ids][0]"])
def test_a_write_into_a_part_that_is_a_copy_is_refused(target: str) -> None:
    gaps = run(f"def f(x: Tensor, ids: Tensor):\n    x = x * 1\n    {target} = 5\n    return x\n").gaps
    assert ["view or temporary" in gap.reason for gap in gaps] == [True]


@pytest.mark.parametrize(
    ("code", "gaps"),
    [
        ("def f(x: Tensor):\n    x[0][1] = 2\n", 1),
        ("def f(x: Tensor, v):\n    x[:] = v\n", 1),
        ("def f(x: Tensor):\n    x -= x.mean()\n    x /= x.std()\n", 1),
        ("def f(x: Tensor, n):\n    for i in range(n):\n        x[i] = n\n", 1),
        ("def f(x: Tensor, cache: Tensor):\n    cache[:, 0] = x\n    return x\n", 1),
        ("def f(x: Tensor):\n    y = x[0]\n    y.zero_()\n", 1),
        ("def f(x: Tensor):\n    x[0], x[1] = 1, 2\n", 1),
        ("def f(x: Tensor, y: Tensor):\n    torch.relu_(x)\n    return y.sum()\n", 1),
        ("def f(x, y):\n    x *= y\n    return torch.exp(y)\n", 1),
        ("def f(x, y):\n    z = x\n    z -= y\n    return torch.exp(y)\n", 1),
        ("def f(x, y):\n    x += 1\n\ndef g(x, y):\n    f(x, y)\n    return x + y\n", 1),
        ("def f(x, y):\n    x += y\n    return x\n\ndef g(x, y):\n    f(x, y)\n    return x + y\n", 1),
        ("def f(x, y):\n    x += y\n    return x\n\ndef g(x, y):\n    x = f(x, y)\n    return x + y\n", 0),
        ("def f(step, y):\n    step += 1\n    return torch.exp(y)\n", 0),
        ("def f(names, y):\n    names += ['y']\n    return torch.exp(y)\n", 0),
        ("def f(x: Tensor):\n    x.zero_()\n    return x\n\ndef g(y: Tensor):\n    f(y)\n    return y\n", 0),
        ("def f(x: Tensor):\n    x.zero_()\n    return x\n\ndef g(y: Tensor):\n    return f(y)\n", 0),
        ("def f(x: Tensor):\n    x = x.clone()\n    x[0] = 1\n", 0),
        ("def f(x: Tensor, n):\n    for i in range(n):\n        print(x.sum())\n        x += 1\n    return n\n", 0),
        ("def f(xs: list[Tensor]):\n    for x in xs:\n        s = x.sum()\n        x.mul_(s)\n", 1),
        ("def f(xs: list[Tensor]):\n    for x in xs:\n        if x.ndim > 1:\n            nn.init.normal_(x)\n", 1),
        ("def f(x: Tensor, n):\n    for i in range(n):\n        s = x.sum()\n        x.mul_(s)\n", 0),
        ("def f(xs: list[Tensor]):\n    for x in xs:\n        x.mul_(2)\n        print(x.sum())\n", 0),
        ("def f(d: dict, v):\n    d['a'] = v\n", 0),
        ("def f(n: int):\n    n += 1\n", 0),
    ],
)  # fmt: skip
def test_a_write_for_the_caller_is_refused(code: str, gaps: int) -> None:
    left = run(code).gaps
    assert [gap.code for gap in left] == ["in-place-shared"] * gaps
    assert all("caller" in gap.reason for gap in left)


@pytest.mark.parametrize(
    ("lines", "shared"),
    [
        (("w = ws[i]", "w.mul_(0.5)"), True),
        (("w = ws[i]", "w = w.mul(0.5)"), False),
        (("w = ws[i].clone()", "w.mul_(0.5)", "out.append(w)"), False),
        (("ws[i].mul_(0.5)",), False),
    ],
)
def test_an_item_that_has_a_name_of_its_own_is_written_into(lines: tuple[str, ...], shared: bool) -> None:
    """``ws[i].mul_(2)`` stores into the list; a name that is given a new array leaves the old one there."""
    loop = "".join(f"        {line}\n" for line in lines)
    gaps = run(f"def f(ws):\n    out = []\n    for i in range(len(ws)):\n{loop}    return out\n").gaps
    assert ["in-place-shared"] * shared == [gap.code for gap in gaps]


@pytest.mark.parametrize(
    ("parameter", "value", "gap"),
    [("x", "torch.exp(y)", True), ("x", "5", False), ("x: Box", "torch.exp(y)", False)],
)
def test_data_of_something_unknown_is_left_and_said(parameter: str, value: str, gap: bool) -> None:
    source = f"class Box:\n    pass\n\n\ndef f({parameter}, y: Tensor):\n    x.data = {value}\n"
    assert [g.code for g in run(source).gaps] == ["unsure"] * gap


@pytest.mark.parametrize(
    ("name", "lines", "notes"),
    [
        ("f", ("x += 1", "return x * 2"), 1),
        ("f", ("x[0], x[1] = 1, 2", "return x.sum()"), 1),
        ("f", ("y = x.view(-1)", "y[0] = 1", "return y * 2"), 1),
        ("f", ("torch.relu_(x)", "return x.sum()"), 1),
        ("f", ("x += 1", "return x, 2"), 0),
        ("f", ("x = x.clone()", "x += 1", "return x * 2"), 0),
        ("f", ("x.requires_grad_()", "return x * 2"), 0),
        ("_f", ("x += 1", "return x * 2"), 0),
    ],
)
def test_a_write_that_only_other_callers_see_is_noted(name: str, lines: tuple[str, ...], notes: int) -> None:
    result = run(f"def {name}(x: Tensor):\n" + "".join(f"    {line}\n" for line in lines))
    assert [f.code for f in result.findings if "caller's" in f.reason] == ["in-place-seen"] * notes
    assert not result.gaps


@pytest.mark.parametrize(
    "lines",
    [
        ("y = x", "y.add_(1)", "return x"),
        ("y = x[0]", "y += 1", "return x"),
        ("y = x[0]", "y[1][0] = 1", "return x"),
        ("y = x.view(-1)", "y[0] = 1", "return x + 1"),
        ("y = x", "z = F.relu(x, inplace=True)", "return y + z"),
        ("y = x.transpose(0, 1)", "x.mul_(2)", "return y"),
    ],
)
def test_a_write_that_another_name_sees_is_refused(lines: tuple[str, ...]) -> None:
    result = run("def f(x: Tensor):\n" + "".join(f"    {line}\n" for line in lines))
    assert [gap.code for gap in result.gaps] == ["in-place-shared"]
    assert "# TODO(t2j): PyTorch writes in place here" in result.code


@pytest.mark.parametrize(
    "lines",
    [
        ("y = x.clone()", "y.add_(1)", "return x + y"),
        ("y = x + 0", "y += 1", "return x + y"),
        ("y = x", "y = y + 1", "y += 1", "return x + y"),
        ("y = x[0]", "y += 1", "return y"),
        ("x = F.relu(x, inplace=True)", "return x"),
    ],
)
def test_a_write_that_nobody_else_sees_is_not(lines: tuple[str, ...]) -> None:
    assert not run("def f(x: Tensor):\n" + "".join(f"    {line}\n" for line in lines)).gaps


def test_a_list_is_not_an_array() -> None:
    result = run("def f(items: list):\n    items[0] = 1\n    items += [2]\n    return items\n")
    assert "items[0] = 1\n    items += [2]" in result.code


def test_inplace_of_another_library_is_its_own_affair() -> None:
    result = run(
        "from quantize import fuse\n\n\ndef f(x: Tensor, parts):\n    fuse(parts[0], inplace=True)\n    return x + 1\n"
    )
    assert "    fuse(parts[0], inplace=True)\n" in result.code
    assert result.gaps == ()


HELD = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor, y: Tensor):
        {}
        return x
"""


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ("self.weight.data = {}", "self.weight[...] = (x\n"),
        ("self.weight[0] = {}", "self.weight[0] = (x\n"),
        ("self.weight *= {}", "self.weight[...] *= (x\n"),
        ("self.weight.copy_({})", "self.weight[...] = "),
        ("x.add_({})", "x = x + (x\n"),
        ("x.add_({}).mul_(2)", "x = x + (x\n"),
        ("x = {}.expand(3, -1)", "= (x\n"),
        ("_, x = {}.max(1)", "x = (x\n"),
    ],
)
def test_a_value_over_several_lines_stays_in_brackets(head: str, wanted: str) -> None:
    translation = run(HELD.format(head.format("(x\n            + y)")))
    assert wanted in translation.code
    assert not translation.gaps


SHARED = {
    "two names of one value": "a = b = x * 2\n    a.clamp_(min=0)\n    return a, b",
    "a list that got it before": "y = x * 2\n    kept = []\n    kept.append(y)\n    y += 1\n    return kept",
    "a list that gets it in every round": (
        "y, kept = torch.zeros(3), []\n    for row in x:\n        y += row\n        kept.append(y)\n    return kept"
    ),
    "out= of a view": "y = x * 2\n    half = y[:2]\n    torch.sin(x[:2], out=half[:, 0:])\n    return y",
    "out= of a view's name": "y = x * 2\n    half = y[:2]\n    torch.sin(x[:2], out=half)\n    return y",
    "out= of two": "y = x * 2\n    half = y[0]\n    torch.max(x, 0, out=(half, x.long()[0]))\n    return y",
}
OF_THEIR_OWN = {
    "two names, of which one is not read": "a = b = x * 2\n    a.clamp_(min=0)\n    return a",
    "a name that is bound anew": "a = b = x * 2\n    a = a + 1\n    a.clamp_(min=0)\n    return a, b",
    "numbers": "n = m = 0\n    n += 1\n    return x + n, m",
    "copies in a list": (
        "y, kept = torch.zeros(3), []\n    for row in x:\n        y += row\n        kept.append(y * 1)\n    return kept"
    ),
    "a new value in every round": (
        "kept = []\n    for row in x:\n        y = row * 2\n        y += 1\n        kept.append(y)\n    return kept"
    ),
    "out= of its own": "half = x[:2] * 2\n    torch.sin(x[:2], out=half)\n    return half",
    "a list that nobody reads": "y = x * 2\n    kept = []\n    kept.append(y)\n    y += 1\n    return y",
}


@pytest.mark.parametrize("text", [*SHARED.values(), *OF_THEIR_OWN.values()], ids=[*SHARED, *OF_THEIR_OWN])
def test_what_another_name_or_a_list_shares_is_told(text: str) -> None:
    gaps = translate(f"import torch\n\n\ndef f(x: torch.Tensor):\n    {text}\n").gaps
    assert bool(gaps) is (text in SHARED.values())
    assert all("shares the memory" in gap.reason for gap in gaps)


def test_a_layer_whose_name_ends_like_a_method_in_place_gives_what_it_makes() -> None:
    """``self.self_(x)`` of an attribute, known for a layer or not, gives nothing of ``self``."""
    source = """
        class A(nn.Module):
            def __init__(self, layer=None):
                super().__init__()
                self.self_ = nn.Linear(4, 4)
                self.expand = nn.Linear(4, 4)
                self.act_ = layer or nn.ReLU(inplace=True)

            def forward(self, x):
                out = self.act_(self.self_(x))
                out += x
                out = self.expand(out)
                out *= 2
                return self.self_(self.act_(out))
    """
    assert not run(source).gaps


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("x.add_(1) if c else x.zero_()", "if c:\n        x = x + 1\n    else:\n        x = jnp.zeros_like(x)"),
        (
            "torch.relu_(x) if not c else x.mul_(y)",
            "if not c:\n        x = jax.nn.relu(x)\n    else:\n        x = x * y",
        ),
        (
            "x.add_(1).mul_(2) if c else x.neg_()",
            "if c:\n        x = x + 1\n        x = x * 2\n    else:\n        x = -x",
        ),
        (
            "x.add_(1) if x.sum() > 0 else x.zero_()",
            "if x.sum() > 0:\n        x = x + 1\n    else:\n        x = jnp.zeros_like(x)",
        ),
        ("drop_(c) if c else keep_(c)", "drop_(c) if c else keep_(c)"),
    ],
)
def test_of_two_writes_each_is_a_statement(statement: str, wanted: str) -> None:
    expect(
        f"def f(x: Tensor, y: Tensor, c: bool):\n    {statement}\n    return x\n",
        f"def f(x: jax.Array, y: jax.Array, c: bool):\n    {wanted}\n    return x\n",
    )


def test_a_write_that_a_condition_guards_is_refused() -> None:
    assert run("def f(x: Tensor, c: bool):\n    c and x.add_(1)\n    return x\n").gaps


def test_initialisers_that_a_condition_chooses_between() -> None:
    source = "class M(nn.Module):\n    def __init__(self, name):\n        super().__init__()\n"
    source += "        self.fc = nn.Linear(3, 4)\n"
    choice = "nn.init.normal_(self.fc.bias, std=1e-6) if 'mlp' in name else nn.init.zeros_(self.fc.bias)"
    result = run(f"{source}        {choice}\n")
    assert not result.gaps
    assert "        if 'mlp' in name:\n            self.fc.bias[...] = 1e-6 * rngs.params.normal(" in result.code
    assert "        else:\n            self.fc.bias[...] = 0\n" in result.code


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("torch.frac(x * 2) if c else x", "    x2 = x * 2\n    return x2 - jnp.trunc(x2) if c else x"),
        ("torch.frac(x * 2) if x is not None else None", "    return torch.frac(x * 2) if x is not None else None"),
        ("x is not None and torch.frac(x * 2)", "    return x is not None and torch.frac(x * 2)"),
    ],
)
def test_nothing_is_computed_before_it_is_asked_whether_it_can_be(value: str, wanted: str) -> None:
    assert wanted in run(f"def f(x: Tensor, c: bool):\n    return {value}\n").code


@pytest.mark.parametrize("index", ["i", "i, 0", "a, b", "a.long(), b.long()", "i, 1:"])
def test_what_one_number_names_is_added_to(index: str) -> None:
    given = "x: torch.Tensor, y: torch.Tensor, z: torch.Tensor"
    loop = f"for i, (a, b) in enumerate(zip(y.view(-1), z.view(-1))):\n        x[{index}] += 1"
    code = run(f"def f({given}):\n    {loop}\n    return x\n").code
    assert ".add(1)" in code
