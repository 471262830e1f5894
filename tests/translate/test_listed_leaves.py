"""Optimizers of lists and dicts of bare tensors: the step is given the list and gives it back, or the code stays."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

PROGRAM = """import torch

x, y = torch.randn(5, 2), torch.randn(5, 1)
{made}
{before}
opt = torch.optim.SGD({leaves}, lr=0.1)
for epoch in range(3):
    loss = (({prediction}) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    {after}
print({read})
"""
W, B = "torch.randn(2, 1, requires_grad=True)", "torch.zeros(1, requires_grad=True)"
LIST = f"params = [{W}, {B}]"
BY_INDEX = "x @ params[0] + params[1]"


def converted(
    made: str = LIST,
    leaves: str = "params",
    prediction: str = BY_INDEX,
    before: str = "",
    after: str = "pass",
    read: str = "params[0].tolist()",
) -> tuple[str, list[str]]:
    """The output, and the reasons for its gaps."""
    text = PROGRAM.format(made=made, leaves=leaves, prediction=prediction, before=before, after=after, read=read)
    done = translate(text, Options(helpers="import"))
    return done.code, [gap.reason for gap in done.gaps]


LAYERS = "def init(i, o):\n    w = torch.randn(i, o).requires_grad_()\n    b = torch.zeros(o, requires_grad=True)\n"
LAYERS += "    return w, b\n\nlayers = [init(2, 4), init(4, 1)]"
PLAIN = "params = [torch.randn(2, 1), torch.zeros(1)]\n"
TREES = {
    "a list": ({}, "params"),
    "a tuple": ({"made": f"params = ({W}, {B})"}, "params"),
    "a dict": (
        {"made": f"params = {{'w': {W}, 'b': {B}}}", "leaves": "params.values()", "prediction": "x @ params['w']"}
        | {"read": "params['b']"},
        "params",
    ),
    "a list that grows": ({"made": f"params = []\nparams.append({W})\nparams.append({B})"}, "params"),
    "what a function makes": (
        {"made": f"def made():\n    w = {W}\n    return [w, {B}]\nparams = made()"},
        "params",
    ),
    "tensors that get the flag in a loop": (
        {"made": PLAIN + "for p in params:\n    p.requires_grad_(True)"},
        "params",
    ),
    "a list of their names": (
        {"made": f"w = {W}\nb = {B}\nparams = [w, b]", "prediction": "x @ w + b", "read": "w, b"},
        "(w, b)",
    ),
    "names that a comprehension gives": (
        {"made": "w, b = [torch.zeros(n, 1, requires_grad=True) for n in (2, 1)]", "leaves": "[w, b]"}
        | {"prediction": "x @ w + b", "read": "w, b"},
        "(w, b)",
    ),
    "two lists": (
        {"made": f"ws, bs = [{W}], [{B}]\nparams = ws + bs", "prediction": "x @ ws[0] + bs[0]", "read": "ws, bs"},
        "(ws, bs)",
    ),
    "all of nested lists": (
        {"made": LAYERS, "leaves": "[p for layer in layers for p in layer]", "read": "layers[0]"}
        | {"prediction": "(x @ layers[0][0] + layers[0][1]) @ layers[1][0] + layers[1][1]"},
        "layers",
    ),
    "copies of its items": ({"before": "kept = [p.detach().clone() for p in params]", "read": "kept"}, "params"),
    "how many numbers it holds": ({"before": "print(sum(p.numel() for p in params), len(params))"}, "params"),
    "another name for one step": (
        {"prediction": "x @ again[0]", "after": "pass\n    print(loss.item())"},
        "params",
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_the_step_gives_the_list_back(name: str) -> None:
    parts, tree = TREES[name]
    if name == "another name for one step":
        text = PROGRAM.format(**{"made": LIST, "leaves": "params", "before": "", "read": "params", **parts})
        done = translate(text.replace("    loss =", "    again = params\n    loss ="), Options(helpers="import"))
        code, reasons = done.code, [gap.reason for gap in done.gaps]
    else:
        code, reasons = converted(**parts)
    assert not reasons, reasons
    given = tree.strip("()")
    assert f"opt_state = opt.init({tree})\n" in code
    assert f"updates, opt_state = opt.update(grads, opt_state, {tree})\n" in code
    assert f"    {given} = optax.apply_updates({tree}, updates)\n" in code
    assert f"{given}, opt_state = train_step({given}, opt_state, " in code


OTHER_NAME = "which has another name too"
REFUSED = {
    "an item with another name": ({"before": "first = params[0]", "read": "first"}, OTHER_NAME),
    "the list with another name": ({"before": "best = params", "read": "best"}, OTHER_NAME),
    "its items in another list": ({"before": "kept = [p for p in params]", "read": "kept"}, OTHER_NAME),
    "what shares their storage": ({"before": "kept = [p.detach() for p in params]", "read": "kept"}, OTHER_NAME),
    "items that a loop keeps": ({"before": "kept = []\nfor p in params:\n    kept.append(p)"}, OTHER_NAME),
    "its items unpacked": ({"before": "w, b = params", "read": "w"}, OTHER_NAME),
    "a list of names that is read": (
        {"made": f"w = {W}\nb = {B}\nparams = [w, b]", "prediction": "x @ w + b"},
        OTHER_NAME,
    ),
    "a tensor with a name": ({"made": f"w = {W}\nparams = [w, {B}]", "read": "w"}, "bare tensors"),
    "one of the module level that a function returns": (
        {"made": f"w = {W}\n\ndef made():\n    return [w, {B}]\nparams = made()", "read": "w"},
        "Can't tell which module",
    ),
    "a tensor that takes no gradient": (
        {"made": f"params = [{W}, torch.ones(1)]"},
        "doesn't say that it takes gradients",
    ),
    "one of names that takes none": (
        {"made": f"w = {W}\nb = torch.ones(1)", "leaves": "[w, b]", "prediction": "x @ w + b", "read": "b"},
        "It updates b, of which the file doesn't say that it takes gradients",
    ),
    "what another name holds": (
        {"made": f"v = {W}\nw = v", "leaves": "[w]", "prediction": "x @ w", "read": "v"},
        "It updates w, which has another name too",
    ),
    "what Variable wraps": (
        {"made": "v = torch.randn(2, 1)\nw = torch.autograd.Variable(v, requires_grad=True)", "leaves": "[w]"}
        | {"prediction": "x @ w", "read": "v"},
        "It updates w, which has another name too",
    ),
    "items that are written into": ({"after": "for p in params:\n        p.data.clamp_(0, 1)"}, "shares the memory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_keep_old_arrays_stays(name: str) -> None:
    parts, reason = REFUSED[name]
    _, reasons = converted(**parts)
    assert any(reason in one for one in reasons), reasons


def test_names_that_end_with_a_call_keep_nothing() -> None:
    made = f"layers = [({W}, {B})]\n\ndef net(x):\n    w, b = layers[0]\n    return x @ w + b\n"
    code, reasons = converted(made, "[p for layer in layers for p in layer]", "net(x)", read="layers")
    assert not reasons
    assert "def net(x, layers):" in code and "train_step(layers, opt_state, x, y)" in code


def test_names_that_a_call_gives_back_keep_them() -> None:
    made = f"layers = [({W}, {B})]\n\ndef last():\n    w, b = layers[-1]\n    return w\n"
    _, reasons = converted(
        made, "[p for layer in layers for p in layer]", "x @ layers[0][0]", "kept = last()", read="kept"
    )
    assert any(OTHER_NAME in one for one in reasons), reasons


BY_HAND = """import torch

x, y = torch.randn(5, 2), torch.randn(5, 1)
{made}
for epoch in range(3):
    loss = (({prediction}) - y).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in params:
            p -= 0.1 * p.grad
            p.grad.zero_()
print({read})
"""
NAMED = f"w = {W}\nb = {B}\nparams = [w, b]"
TOTAL = "\n\ndef total({}):\n    return sum(p.square().sum() for p in params)\n"


def by_hand(made: str, prediction: str, read: str = "loss") -> tuple[str, list[str]]:
    done = translate(BY_HAND.format(made=made, prediction=prediction, read=read), Options(helpers="import"))
    return done.code, [gap.reason for gap in done.gaps]


def test_a_list_is_updated_by_hand() -> None:
    code, reasons = by_hand(LIST, BY_INDEX)
    assert not reasons
    assert "loss, grads = jax.value_and_grad(loss_fn)(params)\n" in code
    assert (
        "    loss, grads = gradients(params, x, y)\n    params = [p - 0.1 * g for p, g in zip(params, grads)]\n" in code
    )


def test_a_list_whose_item_has_another_name_is_not() -> None:
    _, reasons = by_hand(f"{LIST}\nfirst = params[0]", BY_INDEX, "first")
    assert (
        "This training code isn't converted: Something else holds params, too, and would not see its new values."
        in reasons
    )


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ("sum(p.square().sum() for p in params)", "sum(jnp.square(p).sum() for p in [w, b])"),
        ("total(params)", "total([w, b])"),
    ],
)
def test_a_loss_that_reads_a_list_of_names_is_given_the_names(more: str, wanted: str) -> None:
    """The list is no argument of the loss: no gradient would come through it."""
    code, reasons = by_hand(NAMED + TOTAL.format("params"), f"x @ w + b) + ({more}")
    assert not reasons
    assert wanted in code


def test_a_function_that_reads_the_list_itself_is_a_gap() -> None:
    _, reasons = by_hand(NAMED + TOTAL.format(""), "x @ w + b) + (total()")
    assert any("reads params: pass it w, b" in one for one in reasons), reasons


def test_numbers_that_numpy_computes_are_no_arrays() -> None:
    made = (
        "import numpy as np\nC = 1.0 / np.sqrt(2.0 * np.pi)\n\ndef scaled(x):\n    return x * C - np.log(np.e)\n" + LIST
    )
    code, reasons = converted(made, prediction=f"scaled({BY_INDEX})")
    assert not reasons and "train_step(params, opt_state, x, y)" in code
