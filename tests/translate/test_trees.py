"""Train steps of modules that are surely trees are compiled with ``graph=False``, and no others."""

from __future__ import annotations

import re
from typing import Any

import pytest

from t2j_lsp.translate import translate

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, n):
        super(Block, self).__init__()
        self.n = n
        self.fc = nn.Linear(n, n)
        self.norm = nn.BatchNorm1d(n)

    def forward(self, x):
        return x + F.relu(self.norm(self.fc(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.blocks = nn.Sequential(*[Block(4) for _ in range(2)])
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.drop = nn.Dropout(0.0)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        x = self.drop(self.blocks(x * self.scale))
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)


"""
SCRIPT = """\
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.linspace(-1, 1, 32).reshape(8, 4)
losses = []
for step in range(4):
    optimizer.zero_grad()
    loss = ((model(x) - 1) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""
DROP, RETURN, MADE = "        self.drop =", "        return self.head(x)", "model = Net()\n"
LISTED = (
    "        parts = [nn.Linear(4, 4)]\n        parts.append(nn.Tanh())\n        self.first = nn.Sequential(*parts)\n"
)
LAYERS = "nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])"
TIED = "{0}.layers[1].weight = {0}.layers[0].weight\n"
NO_TREES = {
    "a weight in two places": (DROP, f"        {TIED.format('self')}{DROP}"),
    "a layer in two places": (LAYERS, "nn.ModuleList([self.blocks[0].fc])"),
    "a layer under two names": (DROP, f"        self.again = self.blocks\n{DROP}"),
    "a layer that is repeated": (LAYERS, "nn.ModuleList([nn.Linear(4, 4)] * 2)"),
    "a layer that a function gives": (LAYERS, "nn.ModuleList([same(), same()])"),
    "a layer of a function": (DROP, f"        self.given_by = same()\n{DROP}"),
    "a value that is kept": (RETURN, f"        y = self.last\n        self.last = x\n{RETURN}"),
    "a value that is asked for by its name": (
        RETURN,
        f"        self.last = x\n        getattr(self, 'last')\n{RETURN}",
    ),
    "a value that is asked for by a name that is made": (
        RETURN,
        f"        self.last = x\n        getattr(self, 'la' + 'st')\n{RETURN}",
    ),
    "a layer that is set anew": (RETURN, f"        self.last = nn.Linear(4, 4)\n{RETURN}"),
    "a value that is kept at times": (
        RETURN,
        f"        if x is None:\n            self.last = x\n{RETURN} + self.last",
    ),
    "a value that a function reads later": (RETURN, f"        self.last = x\n        f = lambda: self.last\n{RETURN}"),
    "a value that another method reads": (
        RETURN,
        f"        self.last = x\n{RETURN}\n\n    def loss(self):\n        return self.last.sum()",
    ),
    "a value that grows": (RETURN, f"        self.steps += 1\n{RETURN}"),
    "a value of an item": (RETURN, f"        self.last['x'] = x\n{RETURN}"),
    "values that a method appends": (
        RETURN,
        f"        self.log(x)\n{RETURN}\n\n    def log(self, x):\n        self.seen.append(x)",
    ),
    "a method that all modules have": (
        RETURN,
        f"{RETURN}\n\n    def train(self, mode=True):\n        self.seen.append(mode)",
    ),
    "a list that grows": (RETURN, f"        self.seen.append(x)\n{RETURN}"),
    "a module that is handed in": (DROP, f"        self.given = given\n{DROP}"),
    "a weight that is tied from outside": (MADE, MADE + TIED.format("model")),
    "a base that is not known": ("class Block(nn.Module)", "class Block(bases.Block)"),
    "a list that is read twice": (DROP, f"{LISTED}        self.twice = nn.Sequential(*parts)\n{DROP}"),
    "a list of a layer that is there": (DROP, f"{LISTED.replace('nn.Tanh()', 'self.blocks')}{DROP}"),
    "a list that a loop reads": (
        DROP,
        "        parts = [nn.Linear(4, 4)]\n        for i in range(2):\n"
        f"            self.extra = nn.Sequential(*parts)\n{DROP}",
    ),
    "a layer that a method keeps when it is called": (
        RETURN,
        f"        self.widen(4)\n{RETURN} * self.width\n\n    def widen(self, n):\n        self.width = n",
    ),
    "parts that are kept": (DROP, f"        self.all = list(self.modules())\n{DROP}"),
    "what a function keeps and gives": (DROP, f"        self.first = noted(nn.Linear(4, 4))\n{DROP}"),
}
"""What is no tree, and the edit that makes it of `Net`."""


FUNCTIONS = """\
one = nn.Linear(4, 4)
seen = []


def same():
    return one


def noted(layer):
    seen.append(layer)
    return layer


def block(n, wide=False):
    layers = [nn.Linear(n, n)]
    if wide:
        layers += [nn.Linear(n, n)]
    layers.append(nn.ReLU())
    return layers


def layer_init(layer, std=1.0):
    nn.init.orthogonal_(layer.weight, std)
    return layer


"""
TREES = {
    "a list that is filled and read once": (DROP, f"{LISTED}{DROP}"),
    "lists that a function makes": (
        DROP,
        f"        self.first = nn.Sequential(*block(4), *block(4, wide=True))\n{DROP}",
    ),
    "a layer that a function gives back": (DROP, f"        self.first = layer_init(nn.Linear(4, 4))\n{DROP}"),
    "layers that a method makes": (
        DROP,
        f"        self.first = self._make(2)\n{DROP}",
        RETURN,
        f"{RETURN}\n\n    def _make(self, count):\n        layers = []\n        for _ in range(count):\n"
        "            layers.append(nn.Linear(4, 4))\n        self.count = count\n        return nn.Sequential(*layers)",
    ),
    "a layer that is made for another": (
        DROP,
        "        part = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)\n"
        f"        self.encoder = nn.TransformerEncoder(part, 2)\n{DROP}",
    ),
    "one of two layers": (DROP, f"        self.up = nn.Upsample(2) if self.training else nn.Linear(4, 4)\n{DROP}"),
    "parts that are filled": (
        DROP,
        "        for p in self.parameters():\n            nn.init.uniform_(p)\n"
        "        for m in self.modules():\n            if isinstance(m, nn.Linear):\n"
        "                nn.init.ones_(m.bias)\n"
        "        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)\n"
        f"        for fc in (self.one, self.other):\n            nn.init.zeros_(fc.bias)\n{DROP}",
    ),
    "a value that nothing reads": (RETURN, f"        y, self.last = x, x.mean()\n        self.seen = x\n{RETURN}"),
    "a value that the same call reads": (RETURN, f"        self.last = x\n{RETURN} + 0 * self.last.mean()"),
    "a method that nothing calls": (RETURN, f"{RETURN}\n\n    def log(self, x):\n        self.seen.append(x)"),
    "a module that draws": (RETURN, "        return self.head(F.dropout(x, 0.5, self.training))"),
    "a module that calls itself": (RETURN, f"{RETURN}\n\n    def act(self, x):\n        return self(x)"),
    "a module that is made for it": (
        DROP,
        f"        self.inner = inner\n{DROP}",
        "__init__(self):",
        "__init__(self, inner):",
        "Net()",
        "Net(Block(4))",
    ),
}
"""What is a tree, and the edits that make it of `Net`."""


def code_of(source: str) -> str:
    return translate(source).code


def test_a_module_that_is_a_tree_trains_alike_in_both_ways() -> None:
    code = code_of(HEAD + SCRIPT)
    bound = "nnx.jit_partial(train_step, model, optimizer, graph=False)"
    assert f"train_step = {bound}" in code
    tree: dict[str, Any] = {}
    graph: dict[str, Any] = {}
    exec(code, tree)
    exec("import functools\n" + code.replace(bound, "functools.partial(nnx.jit(train_step), model, optimizer)"), graph)
    assert tree["losses"] == pytest.approx(graph["losses"], rel=1e-5) and tree["losses"][-1] < tree["losses"][0]
    # Statistics are variables, and move in both.
    means = [one["model"].blocks.layers[0].norm.mean[...] for one in (tree, graph)]
    assert abs(means[0]).max() > 0 and means[0].tolist() == pytest.approx(means[1].tolist(), abs=1e-6)


@pytest.mark.parametrize("name", NO_TREES)
def test_what_is_not_surely_a_tree_is_compiled_as_a_graph(name: str) -> None:
    old, new = NO_TREES[name]
    source = (HEAD + SCRIPT).replace(old, new)
    assert source != HEAD + SCRIPT
    source = source.replace("class Block", f"{FUNCTIONS}class Block", 1)
    if "= given" in new:
        source = source.replace("__init__(self):", "__init__(self, given: Block = None):")
    code = code_of(source)
    assert "graph=False" not in code


@pytest.mark.parametrize("name", TREES)
def test_what_is_surely_a_tree_is_compiled_as_one(name: str) -> None:
    source = (HEAD + SCRIPT).replace("class Block", f"{FUNCTIONS}class Block", 1)
    edits = iter(TREES[name])
    for old, new in zip(edits, edits, strict=True):
        assert old in source
        source = source.replace(old, new)
    assert "nnx.jit_partial(train_step, model, optimizer, graph=False)" in code_of(source)


@pytest.mark.parametrize(
    "model",
    ["nn.Linear(4, 1)", "nn.Sequential(nn.Linear(4, 8), nn.ReLU(), Block(8), nn.Linear(8, 1))"],
)
def test_layers_and_containers_of_new_layers_are_trees(model: str) -> None:
    assert "nnx.jit_partial(train_step, model, optimizer, graph=False)" in code_of(
        HEAD + SCRIPT.replace("Net()", model)
    )


@pytest.mark.parametrize("model", ["nn.Sequential(shared, nn.ReLU(), shared)", "make(Block)", "nn.Sequential(*layers)"])
def test_containers_of_what_is_there_already_are_not(model: str) -> None:
    given = f"shared = nn.Linear(4, 4)\nlayers = [shared, shared]\n{SCRIPT.replace('Net()', model)}"
    assert "graph=False" not in code_of(HEAD + given)


@pytest.mark.parametrize("once", [False, True])
def test_a_static_argument_stands_beside_it(once: bool) -> None:
    function = """def train(model: Net, optimizer, x: torch.Tensor, reduction: str):
    for step in range(4):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x[:, :1], reduction=reduction)
        loss.backward()
        optimizer.step()


for fold in range(2):
    model = Net()
    train(model, torch.optim.Adam(model.parameters(), lr=0.01), torch.ones(8, 4), "sum")
"""
    code = code_of(HEAD + (function.replace("for fold in range(2)", "if True") if once else function))
    assert ("bound_jit(train_step, model, optimizer, reduction=reduction)(x)" in code) == once
    assert ('@nnx.jit(static_argnames="reduction", graph=False)' in code) != once


@pytest.mark.parametrize(
    ("function", "moved"),
    [
        ("train_step", "    if step != 2:\n        loss.backward()\n        optimizer.step()\n"),
        (
            "accumulate_gradients",
            "    loss.backward()\n    if step % 2:\n        optimizer.step()\n        optimizer.zero_grad()\n",
        ),
    ],
)
def test_steps_under_conditions_and_sums_of_gradients_train_alike_in_both_ways(function: str, moved: str) -> None:
    step = "    loss.backward()\n    optimizer.step()\n"
    assert step in SCRIPT
    script = SCRIPT.replace(step, moved)
    if "zero_grad" in moved:
        script = script.replace("    optimizer.zero_grad()\n", "", 1)
    code = code_of(HEAD + script)
    assert re.search(rf"bound_jit\({function}, model(, optimizer)?\)\((grads, )?x\)", code)
    tree: dict[str, Any] = {}
    graph: dict[str, Any] = {}
    exec(code, tree)
    by_graph = "lambda *arrays: nnx.jit(step)(*modules, *arrays)"
    code = code.replace("nnx.jit_partial(step, *modules, graph=False)", by_graph)
    exec(code.replace("@nnx.jit(graph=False)", "@nnx.jit"), graph)
    assert tree["losses"] == pytest.approx(graph["losses"], rel=1e-5) and tree["losses"][-1] < tree["losses"][0]


def test_what_is_set_of_a_library_ties_nothing() -> None:
    assert "graph=False)" in code_of(HEAD + f"torch.backends.cudnn.benchmark = True\n{SCRIPT}")


def test_a_step_that_sets_an_attribute_is_no_tree() -> None:
    source = HEAD + SCRIPT.replace("    loss.backward()", "    model.seen = loss.detach()\n    loss.backward()")
    assert "graph=False" not in code_of(source)


EVALUATED = """\
with torch.no_grad():
    for batch in torch.utils.data.DataLoader(x):
        print(model(batch).mean().item())
"""


@pytest.mark.parametrize(("tied", "trees"), [("", True), (TIED.format("model"), False)])
def test_forward_passes_over_batches_are_compiled_as_the_module_allows(tied: str, trees: bool) -> None:
    code = code_of(HEAD + SCRIPT.replace(MADE, MADE + tied) + EVALUATED)
    call = "bound_jit(forward_step, model)(batch)" if trees else "forward_step(model, batch)"
    assert f"print({call}.item())" in code and ("@nnx.jit\ndef forward_step(" in code) != trees


@pytest.mark.parametrize(
    ("edit", "decorator", "called"),
    [
        (("torch.manual_seed(0)", "torch.manual_seed(0)"), "", "bound_jit(apply_step, model, optimizer)(grads)"),
        ((MADE, f"for _ in range(2):\n    {MADE}".rstrip() + "\n"), "@nnx.jit(graph=False)", "apply_gradients"),
        ((MADE, MADE + TIED.format("model")), "@nnx.jit", "apply_gradients_graph"),
    ],
    ids=["bound", "a tree", "a graph"],
)
def test_gradients_that_are_held_are_applied_as_the_module_allows(
    edit: tuple[str, str], decorator: str, called: str
) -> None:
    step = "    if step % 2:\n        optimizer.step()\n        optimizer.zero_grad()\n"
    script = SCRIPT.replace("    optimizer.zero_grad()\n", "", 1).replace("    optimizer.step()\n", step)
    code = code_of(HEAD + script.replace(*edit))
    if not decorator:
        assert f"        {called}\n" in code
        return
    assert f"        {called}(model, optimizer, grads)\n" in code
    assert f"{decorator}\ndef {called}(module, optimizer, grads)" in code


APPLY = """\
class Apply(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Mapped:
    def __init__(self, function):
        self.function = function


def flat(x):
    return x.reshape(len(x), -1)


shared = nn.Linear(4, 4)


def calls(x):
    return shared(x)
"""


@pytest.mark.parametrize(
    ("function", "trees"),
    [
        ("lambda x: x.reshape(len(x), -1)", True),
        ("torch.tanh", True),
        ("flat", True),
        ("shared", False),
        ("nn.Linear(4, 4)", True),
        ("calls", False),
        ("lambda x: calls(x)", False),
        ("lambda x: shared(x)", False),
    ],
)
def test_a_function_of_arrays_that_a_module_is_given_changes_none(function: str, trees: bool) -> None:
    source = HEAD + APPLY + SCRIPT.replace("Net()", f"nn.Sequential(Apply({function}), nn.Linear(4, 1))")
    assert ("graph=False" in code_of(source)) == trees
    assert "graph=False" not in code_of(source.replace("optimizer =", "model[0].function = given\noptimizer =", 1))


def test_what_a_compiled_step_does_not_keep_is_said() -> None:
    translation = translate((HEAD + SCRIPT).replace(RETURN, f"        self.last = x\n{RETURN}"))
    said = [note.reason for note in translation.notes if "self.last" in note.reason]
    assert said == ["compiled steps leave self.last as it was: nothing in this file reads what earlier calls set"]


CLONES = """\
import copy
import torch
import torch.nn as nn


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.linears = clones(nn.Linear(4, 4), 2)
        self.drop = nn.Dropout(0.1)
        self.attn = None

    def forward(self, x):
        self.attn = torch.softmax(self.linears[0](x), dim=-1)
        return self.linears[1](self.drop(self.attn))


class Layer(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x):
        return x + self.attention(x)


class Net(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layers = clones(layer, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def run_epoch(batches, model, optimizer):
    for x in batches:
        loss = ((model(x) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


c = copy.deepcopy
model = Net(Layer(c(Attention())))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    model.train()
    print(run_epoch([torch.ones(3, 4)], model, optimizer))
    model.eval()
    print(model(torch.ones(3, 4)).mean().item())
"""


@pytest.mark.parametrize(
    ("old", "new", "bound"),
    [
        ("", "", True),
        ("    model.train()\n", "", False),  # the second epoch's steps are in evaluation mode
        ("    print(run", "    model.eval()\n    print(run", True),
        ("    model.eval()\n", "    model.eval()\n    run_epoch([torch.zeros(3, 4)], model, optimizer)\n", False),
        ("print(run_epoch(", "print(model.eval() is None, run_epoch(", False),
        ("    for x in batches:\n", "    for x in batches:\n        model.eval()\n", True),
        ("    return loss", "    model.eval()\n    return loss", False),
        ("    return loss", "    model = model.eval()\n    return loss", False),
        ("    return loss", "    other.eval()\n    return loss", False),
        ("for epoch", "print(run_epoch)\nfor epoch", False),
        ("        return x + self", "        self.seen = [x]\n        return x + self", False),
        ("print(model(", "print(model.layers[0].attention.attn, model(", False),
        ("Net(Layer(", "Net(made_by_others() or Layer(", False),
    ],
)
def test_copies_of_what_a_constructor_is_given_are_bound(old: str, new: str, bound: bool) -> None:
    assert old in CLONES
    code = code_of(CLONES.replace(old, new, 1))
    assert ("bound_jit_graph(train_step, model, optimizer)(x)" in code) == bound
    assert ("@nnx.jit\ndef train_step" in code) != bound
