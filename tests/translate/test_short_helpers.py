"""Copied helpers without the parameters that no call of an object passes, and with few statements."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp import convert
from t2j_lsp.translate.source.folding.merging import merged

from .test_cut_helpers import HEAD, definitions, parameters

# --- what no call passes ----------------------------------------------------------------------------------------------

RECURRENT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 5)

    def forward(self, x, h):
        {}
"""
PROGRAM = "\n\nnet = Net()\nprint(net)\n"
CALLS = {
    "a call": ("return self.rnn(x)", ["self", "x"]),
    "attributes beside it": ("return self.rnn(x)[0] + self.rnn.hidden_size", ["self", "x"]),
    "a call that passes it": ("return self.rnn(x)[0] + self.rnn(x, h)[0]", ["self", "x", "hx"]),
    "handed on": ("return self.other(self.rnn, x)", ["self", "x", "hx"]),
    "a list": ("return [self.rnn][0](x)", ["self", "x", "hx"]),
    "a name": ("rnn = self.rnn\n        return rnn(x, h)", ["self", "x", "hx"]),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_parameter_of_call_goes_where_every_call_of_the_object_is_seen(case: str) -> None:
    body, wanted = CALLS[case]
    other = "\n    def other(self, rnn, x):\n        return rnn(x, x[:1])[0]\n"
    assert parameters(definitions(RECURRENT.format(body) + other + PROGRAM)["GRU"], "__call__") == wanted


def test_objects_in_a_list_keep_the_parameters_of_their_call() -> None:
    source = RECURRENT.replace("nn.GRU(3, 5)", "nn.ModuleList([nn.GRU(3, 5)])")
    code = source.format("return self.rnn[0](x)") + PROGRAM
    assert parameters(definitions(code)["GRU"], "__call__") == ["self", "x", "hx"]


def test_other_files_may_call_the_layers_of_a_file_that_is_no_program() -> None:
    code = RECURRENT.format("return self.rnn(x)")
    assert parameters(definitions(code)["GRU"], "__call__") == ["self", "x", "hx"]


GIVEN = "class Net(nn.Module):\n    def __init__(self, pad=None):\n        super().__init__()\n" + " " * 8


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("self.e = nn.Embedding(9, 3, padding_idx=1)\n", "padding_idx, *"),
        ("self.e = nn.Embedding(9, 3, padding_idx=pad)\n", "padding_idx=None, *"),
        ("self.e, self.f = nn.Embedding(9, 3, 1), nn.Embedding(9, 3, pad)\n", "padding_idx=None, *"),
    ],
)
def test_a_parameter_that_is_never_none_has_no_default_and_no_test(made: str, wanted: str) -> None:
    code = ast.unparse(definitions(GIVEN + made)["Embedding"])
    assert wanted in code and ("is None" in code) == ("=None" in wanted)


MERGED = {
    "x = a @ b\n    x += c": "x = a @ b + c",
    "x = a @ b\n    x += c * x": None,
    "x = a\n    x += c": None,
    "x = []\n    y = a\n    x.append(y)": "x = [a]",
    "x = []\n    y = len(x)\n    x.append(y)": "x = []\n    x.append(len(x))",
    "x = jnp.sin(a)\n    return jnp.mean(x)": "return jnp.mean(jnp.sin(a))",
    "x = a + b\n    return jnp.mean(x)": "return jnp.mean(a + b)",
    "x = a + b\n    return x * c": "return (a + b) * c",
    "x = a, b\n    return f(x)": "return f((a, b))",
    "x = a\n    return x + x": None,
    "x = g(a)\n    return f(x)": "return f(g(a))",
    "x = g(a)\n    return f(h(b), x)": None,
    "x = g(a)\n    return self.var[...] + x": None,
    "x = a @ b\n    y = jnp.sin(x)": "y = jnp.sin(a @ b)",
    "x = a @ b\n    a.of = x": "a.of = a @ b",
    "x = a @ b\n    c.add(x)": "c.add(a @ b)",
    "x = g(a)\n    y[x] = b": None,
    "x = g(a)\n    y, z = x": None,
    "x = [g(a), b]\n    return f(*x)": "return f(g(a), b)",
    "x = (a, b)\n    return f(*x)": "return f(a, b)",
    "x = a @ b\n    c.of += 1\n    return f(x)": "c.of += 1\n    return f(a @ b)",
    "x = a @ b\n    a += 1\n    return f(x)": None,
    "x = a.of\n    b.of = c\n    return f(x)": None,
    "x = a[0]\n    a[0] = c\n    return f(x)": None,
    "x = a @ b\n    y = g(a)\n    return f(x, y)": "return f(a @ b, g(a))",
    "x = a + b\n    if x > c:\n        return a": "if a + b > c:\n        return a",
    "x = g(a)\n    return lambda: x": None,
    "x = g(a)\n    return [x for _ in b]": None,
    "x = g(a)\n    return x if b else c": None,
    "x = a @ b\n    return x if c is None else c": "return (a @ b) if c is None else c",
    "x = jnp.sin(a)\n    return x if c is None else c": "return jnp.sin(a) if c is None else c",
    f"x = {'a' * 40}(b)\n    return {'c' * 40}(x)": None,
}


@pytest.mark.parametrize("before", MERGED)
def test_neighbouring_statements_that_are_one(before: str) -> None:
    head = "def f(a, b, c):\n    "
    after = MERGED[before]
    assert merged(f"{head}{before}\n", 88) == f"{head}{before if after is None else after}\n"


# --- what every call shows --------------------------------------------------------------------------------------------

CHANNELS_FIRST = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.ReLU()]
        layers += [{}]
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
CONVOLUTIONS = {
    "of one rank": ("nn.Conv2d(4, 6, 3), nn.Conv2d(6, 4, (2, 1))", "kernel[0] * kernel[1] * inputs", "-3"),
    "of two ranks": ("nn.Conv2d(4, 6, 3), nn.Conv1d(6, 4, 1)", "math.prod(kernel) * inputs", "self.channel_axis"),
    "with groups": (
        "nn.Conv1d(4, 6, 3), nn.Conv1d(6, 4, 1, groups=2)",
        "kernel[0] * (inputs // options.get('feature_group_count', 1))",
        "-2",
    ),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_sizes_of_tuples_and_options_that_no_call_passes_are_worked_out(case: str) -> None:
    layers, fan_in, axis = CONVOLUTIONS[case]
    text = ast.unparse(definitions(CHANNELS_FIRST.format(layers) + PROGRAM)["ChannelsFirstConv"])
    assert f"fan_in = {fan_in}\n" in text
    assert f"jnp.moveaxis(x, {axis}, -1)" in text
    assert ("self.channel_axis = -len(kernel) - 1" in text) == (axis == "self.channel_axis")


def test_a_call_of_a_function_to_itself_decides_no_parameter() -> None:
    net = "net = nn.Sequential(nn.Linear(2, 3))\n"
    walk = "for name, p in net.named_parameters():\n    print(name, p.shape)\n"
    save = "torch.save(net.state_dict(), 'net.pt')\n"
    assert parameters(definitions(net + walk)["saved_places"]) == ["module", "prefix"]
    assert parameters(definitions(net + save)["saved_places"]) == ["module", "prefix"]
    assert parameters(definitions(net + walk + save)["saved_places"]) == ["module", "prefix", "every"]


def test_a_recurrent_layer_of_one_layer_holds_one_state() -> None:
    code = ast.unparse(definitions(RECURRENT.format("return self.rnn(x)") + PROGRAM)["GRU"])
    assert "jax.lax.scan(step, h[0], xs)" in code and "tuple(" not in code and "def scan" not in code
    code = ast.unparse(definitions(RECURRENT.replace("GRU", "LSTM").format("return self.rnn(x)") + PROGRAM)["LSTM"])
    assert "self.scan(x, (h[0], h[0]))" in code or "(state[0][0], state[1][0])" in code


def test_a_constructor_that_does_nothing_goes() -> None:
    source = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        act = nn.Tanh\n"
    source += "        self.act = act()\n\n    def forward(self, x):\n        return self.act(x)\n" + PROGRAM
    methods = [s.name for s in getattr(definitions(source)["Tanh"], "body", ()) if isinstance(s, ast.FunctionDef)]
    assert methods == ["__call__"]


def test_fields_that_are_only_annotated_go_where_nothing_is_annotated() -> None:
    draw = "from torch.distributions import Categorical\n\n\ndef f(p{}):\n    d = Categorical(p)\n"
    draw += "    return d.log_prob(d.sample())\n"
    for annotation, wanted in [("", []), (": torch.Tensor", ["event_shape", "variance"])]:
        body = getattr(definitions(draw.format(annotation))["Categorical"], "body", ())
        assert [ast.unparse(s.target) for s in body if isinstance(s, ast.AnnAssign)] == wanted


def test_the_usual_mode_of_a_plateau_is_not_written() -> None:
    source = "net = nn.Linear(2, 3)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    source += "plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, {})\nplateau.step(1.0)\n"
    text = ast.unparse(definitions(source.format("'min', factor=0.5"))["ReduceLROnPlateau"])
    assert "if metric < self.best * (1 - 0.0001):" in text and "mode" not in text
    text = ast.unparse(definitions(source.format("'max', threshold_mode='abs'"))["ReduceLROnPlateau"])
    assert "metric < bound if self.mode == 'min' else metric > bound" in text or "metric > " in text


PLATEAU = """\
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
scheduler.step(1.0)
{}
"""


@pytest.mark.parametrize("line", ["print(scheduler.last_epoch)", "torch.save(scheduler.state_dict(), 'f')"])
def test_a_count_that_nobody_reads_goes(line: str) -> None:
    assert "last_epoch" not in ast.unparse(definitions(PLATEAU.format(""))["ReduceLROnPlateau"])
    code = ast.unparse(definitions(PLATEAU.format(line))["ReduceLROnPlateau"])
    assert "self.last_epoch += 1" in code and "self.last_epoch = (0, 0)" in code


def test_comparisons_of_numbers_that_all_calls_decide_alike_go() -> None:
    source = (
        "import torch\nimport torch.nn.functional as F\n\nx, y = torch.ones(4, 3), torch.zeros(4, dtype=torch.long)\n"
    )
    smoothed = "print(F.cross_entropy(x, y, label_smoothing=0.1))\n"
    code = ast.unparse(definitions(source + smoothed)["cross_entropy"])
    assert "label_smoothing > 0" not in code and "label_smoothing" in code
    code = ast.unparse(definitions(source + smoothed + "print(F.cross_entropy(x, y))\n")["cross_entropy"])
    assert "label_smoothing > 0" in code


def test_a_state_dict_whose_answer_nobody_reads_is_loaded_in_few_lines() -> None:
    load = "net = nn.Linear(2, 3)\nnet.load_state_dict(torch.load('net.pt'){})\n"
    copied = definitions(load.format(""))
    text = ast.unparse(copied["load_state_dict"])
    assert (
        "IncompatibleKeys" not in copied
        and "missing" not in text
        and "strict" not in parameters(copied["load_state_dict"])
    )
    assert "if k in given" in ast.unparse(definitions(load.format(", strict=False"))["load_state_dict"])


OWN_GRADIENT = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.factor = 2
        return ctx.factor * x

    @staticmethod
    def backward(ctx, grad{}):
        return ctx.factor * grad
"""


HOOKED = """
def watch(net{}):
    return net.register_forward_hook(print)


watch(nn.Linear(2, 3))
"""


def test_a_file_without_annotations_says_nothing_to_a_type_checker() -> None:
    plain, annotated = (
        "".join(map(ast.unparse, definitions(HOOKED.format(of.replace("Tensor", "nn.Linear"))).values()))
        for of in ("", ": Tensor")
    )
    assert "after = {}" in plain and "dict[Any, Any]()" in annotated
    plain, annotated = (convert(HEAD + OWN_GRADIENT.format(of)).code for of in ("", ": Tensor"))
    assert "# type: ignore" not in plain and "# type: ignore" in annotated


def test_fields_with_values_need_no_annotation_where_nothing_is_annotated() -> None:
    plain, annotated = (ast.unparse(definitions(OWN_GRADIENT.format(of))["FunctionContext"]) for of in ("", ": Tensor"))
    assert "needs_input_grad = ()" in plain and "needs_input_grad: tuple[bool" in annotated


STEPPED = """net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
opt = torch.optim.SGD({}, lr=0.1, momentum=0.9)
sched = torch.optim.lr_scheduler.StepLR(opt, 2)
for epoch in range(4):
    sched.step()
"""
DECAYED = "[{'params': net[0].parameters(), 'weight_decay': 0.1}, {'params': net[1].parameters()}]"


@pytest.mark.parametrize(("parameters", "one"), [("net.parameters()", True), (DECAYED, False)])
def test_a_schedule_of_one_rate_looks_for_no_others(parameters: str, one: bool) -> None:
    text = ast.unparse(definitions(STEPPED.format(parameters))["LRScheduler"])
    assert ("self.held.set_value(jnp.asarray(self.schedule(self.last_epoch), float))" in text) is one
    assert ("for _, held in self.places:" in text) is not one


@pytest.mark.parametrize(("parameters", "one"), [("net.parameters()", True), (DECAYED, False)])
def test_a_program_sets_the_one_rate_that_there_is(parameters: str, one: bool) -> None:
    training = "    loss = net(torch.ones(1, 2)).sum()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    setting = "    for group in opt.param_groups:\n        group['lr'] = 0.1 * 0.9**epoch\n"
    source = STEPPED.format(parameters).partition("sched = ")[0] + f"for epoch in range(4):\n{training}{setting}"
    text = ast.unparse(definitions(source)["set_hyperparameter"])
    assert ("held = optax.tree.get(optimizer.opt_state, " in text) is one
    assert ("for held in kept:" in text) is not one


def test_a_schedule_of_a_module_may_be_of_any_optimizer() -> None:
    made = "def f(net: nn.Linear):\n    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    text = ast.unparse(definitions(f"{made}    return torch.optim.lr_scheduler.StepLR(opt, 2)\n")["LRScheduler"])
    assert "for _, held in self.places:" in text
