"""Forms that were met in packages which nobody here wrote, and that once failed."""

from __future__ import annotations

import re
from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp import convert

HEAD = "import torch\nfrom torch import nn\n\n\n"


def test_what_names_forward_in_a_class_names_call() -> None:
    code = convert(
        "import torch\nfrom typing import TYPE_CHECKING, Any, Callable\nfrom torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def forward(self, x):\n        return torch.relu(x)\n\n"
        "    if TYPE_CHECKING:\n        __call__ = forward\n"
        "    __call__: Callable[..., Any] = forward\n\n"
        "    predict = forward\n"
    ).code
    assert re.search(r"return jax.nn.relu\(x\)\s+predict = __call__$", code.rstrip())


def test_a_known_condition_in_a_block_without_gradients_leaves_one_branch() -> None:
    text = (
        "def f(x, y):\n"
        "    with torch.no_grad():\n"
        "        if hasattr(torch, 'logaddexp'):\n            out = torch.logaddexp(x, y)\n"
        "        else:\n            out = other(x, y)\n            out = out + 1\n"
        "    return out\n"
    )
    code = convert(HEAD + text).code
    assert code[code.index("def f") :] == (
        "def f(x, y):\n    out = jnp.logaddexp(x, y)\n    out = jax.lax.stop_gradient(out)\n    return out\n"
    )


STEP = """def make(model, optimizer, scale: float = 1.0):
    def update(batch):
        {before}
        x, y = batch["x"], batch["y"]
        loss = nn.functional.mse_loss(model(x), y) * scale
        loss.backward()
        {after}
        return loss.item()

    return update
"""


def test_a_step_in_a_function_inside_another_is_given_what_the_outer_one_has() -> None:
    translation = convert(
        HEAD
        + "class Net(nn.Module):\n    def forward(self, x):\n        return x\n\n\n"
        + STEP.format(before="optimizer.zero_grad()", after="optimizer.step()")
        .replace("model,", "model: Net,")
        .replace("optimizer,", "optimizer: torch.optim.Optimizer,")
    )
    assert not translation.gaps
    assert "scale" in translation.code.partition("def train_step(")[2].partition(")")[0]


def test_gradients_that_add_up_between_calls_are_a_gap() -> None:
    text = HEAD + STEP.format(
        before="if batch['first']:\n            optimizer.zero_grad()",
        after="if batch['last']:\n            optimizer.step()",
    ).replace("optimizer,", "optimizer: torch.optim.Optimizer,")
    (gap,) = convert(text).gaps
    assert "over several calls of the function" in gap.reason


ABSTRACT = (
    "from abc import ABC, abstractmethod\n"
    + HEAD
    + "class Base({}):\n    @abstractmethod\n    def forward(self, x):\n        raise NotImplementedError\n"
)


def test_methods_that_pytorch_lets_be_abstract_are_plain() -> None:
    """An nn.Module with abstract methods can be built, as long as no ABC is among its bases; an nnx.Module can't."""
    assert "abstractmethod\n" not in convert(ABSTRACT.format("nn.Module")).code.partition("class")[2]
    assert "    @abstractmethod\n" in convert(ABSTRACT.format("nn.Module, ABC")).code


def test_methods_that_only_tensors_have_are_converted_whatever_they_are_called_on() -> None:
    text = "def f(x):\n    d = helper(x)\n    return d.square().sum() + x.exp() + d.abs() + d.log()\n"
    translation = convert(HEAD + text)
    assert "jnp.square(d).sum() + jnp.exp(x) + " in translation.code
    assert "jnp.log(d)" in translation.code
    assert all("is taken for a tensor" in note.reason for note in translation.notes)
    assert len(translation.notes) >= 3


def test_methods_that_arrays_lack_and_others_have_are_gaps_where_tensors_are() -> None:
    text = "def f(x):\n    d = helper(x)\n    return d.flip(0) + {}\n"
    (gap,) = convert(HEAD + text.format("torch.relu(x)")).gaps
    assert gap.reason == "JAX arrays have no .flip(): if this is a tensor, annotate it as torch.Tensor"
    assert not convert(HEAD + text.format("1") + "y = torch.zeros(2)\n").gaps


def test_what_needs_a_value_in_a_forward_pass_is_noted() -> None:
    text = (
        "class Net(nn.Module):\n    def forward(self, x):\n        n = int(x.sum())\n"
        "        return torch.relu(x) * x.max().item() * n\n"
    )
    notes = convert(HEAD + text).notes
    assert [note.code for note in notes] == ["value-needed", "value-needed"]


def test_a_tuple_without_brackets_is_one_value_of_an_attribute() -> None:
    text = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.kept = None\n        self.pair = torch.zeros(2), torch.ones(2)\n\n"
        "    def forward(self, x):\n        self.kept = torch.relu(x), (torch.abs(x))\n        return x\n"
    )
    code = convert(HEAD + text).code
    assert "self.kept = nnx.data(None)" in code
    assert "self.pair = nnx.data((jnp.zeros(2), jnp.ones(2)))" in code
    assert re.search(r"self.kept = nnx.data\(\(jax.nn.relu\(x\), \(?absolute\(x\)\)?\)\)", code)


def test_a_number_that_a_call_overwrites_with_an_array_is_data() -> None:
    text = (
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.fc = nn.Linear(n, n)\n        self.cost = 0\n"
        "        self.total = 0.0\n        self.calls = 0\n\n"
        "    def forward(self, x):\n        self.cost = self.fc.weight.pow(2).sum()\n"
        "        self.total += x.mean()\n        self.calls += 1\n        return self.fc(x)\n"
    )
    code = convert(HEAD + text).code
    assert "self.cost = nnx.data(0)" in code and "self.total = nnx.data(0.0)" in code
    assert "self.calls = 0\n" in code
    names: dict[str, Any] = {}
    exec(code, names)
    net = names["Net"](3, rngs=nnx.Rngs(0))
    for _ in range(2):
        nnx.jit(lambda net, x: net(x))(net, jnp.full((2, 3), 0.5))
    assert net.total == 1 and net.cost > 0


def test_nothing_in_a_branch_of_a_constructor_may_become_an_array() -> None:
    text = (
        "class Net(nn.Module):\n    def __init__(self, causal, bias):\n        super().__init__()\n"
        "        self.bias = nn.Parameter(torch.zeros(3))\n        if causal:\n            self.cache = None\n"
        "        if not bias:\n            self.bias = None\n\n"
        "    def forward(self, x: torch.Tensor):\n        self.cache = x[-1:]\n        return x * 2\n"
    )
    code = convert(HEAD + text).code
    assert "            self.cache = nnx.data(None)\n" in code and "            self.bias = None\n" in code
    names: dict[str, Any] = {}
    exec(code, names)
    net = names["Net"](True, False, rngs=nnx.Rngs(0))
    for start in (0.0, 1.0):  # as an attribute without data the array made the second call fail
        nnx.jit(lambda net, x: net(x))(net, jnp.arange(start, 4 + start)[:, None])
        assert net.cache.item() == 3 + start


def test_batches_of_an_evaluation_become_arrays() -> None:
    text = (
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\n\n"
        "def evaluate(model: nn.Module, dataset):\n    correct = 0\n"
        "    for x, y in DataLoader(dataset, batch_size=4):\n"
        "        correct += (model(x).argmax(1) == y).sum().item()\n    return correct\n"
    )
    assert "        x, y = jnp.asarray(x), jnp.asarray(y)\n" in convert(text).code


PIPELINE = (
    "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n"
    "dataset = TensorDataset(torch.ones(8, 4), torch.zeros(8))\nloader = DataLoader(dataset, batch_size=4)\n"
)


def test_what_comprehensions_and_indices_take_from_a_pipeline_becomes_arrays() -> None:
    text = (
        PIPELINE
        + "everything = torch.cat([x for x, _ in loader])\n"
        + "total = sum(float(x.sum()) for _, (x, y) in enumerate(loader))\n"
        + "x, y = dataset[0]\nshape = dataset[1][0].shape\nprint(everything.shape, total, torch.relu(x).sum(), shape)\n"
    )
    once = convert(text).code
    flat = re.sub(r"\s", "", once)
    assert "jnp.concatenate([xforx,_in(jax.tree.map(jnp.asarray,batch)forbatchinloader)])" in flat
    assert "inenumerate(jax.tree.map(jnp.asarray,batch)forbatchinloader)" in flat
    assert "x, y = jax.tree.map(jnp.asarray, dataset[0])" in once
    assert convert(once).code == once
    names: dict[str, object] = {"print": lambda *values: names.update(values=values)}
    exec(compile(once, "<converted>", "exec"), names)
    shape, total, summed, item = names["values"]  # type: ignore[misc]
    assert (shape, total, float(summed), item) == ((8, 4), 32.0, 4.0, (4,))


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("nn.Embedding(3, 4, padding_idx=0, sparse=True)", "Embedding(3, 4, padding_idx=0, rngs=rngs)"),
        ("nn.Embedding(3, 4, max_norm=1.0)", "Embedding(3, 4, max_norm=1.0, rngs=rngs)"),
        ("nn.Embedding(3, 4, None, 1.0)", "Embedding(3, 4, None, 1.0, rngs=rngs)"),
        ("nn.Embedding(3, 4, _freeze=True)", None),
        ("nn.EmbeddingBag(3, 4, None, 2.0, False, 'sum')", None),
        ("nn.EmbeddingBag(3, 4, scale_grad_by_freq=True)", None),
        ("nn.CrossEntropyLoss(None, None, 2)", "functools.partial(cross_entropy, ignore_index=2)"),
        ("nn.ParameterList([nn.Parameter(torch.ones(2))])", "ModuleList([nnx.Param(jnp.ones(2))])"),
    ],
)
def test_what_a_layer_s_stand_in_does_not_take_is_a_gap(call: str, wanted: str | None) -> None:
    head = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    translation = convert(f"{HEAD}{head}        self.part = {call}\n")
    if wanted is not None:
        assert f"self.part = {wanted}" in translation.code
    assert [gap.code for gap in translation.gaps] == ([] if wanted is not None else ["arguments"])


def test_a_loss_of_a_nested_function_is_given_what_it_reads_from_outside() -> None:
    text = (
        HEAD + "class Net(nn.Module):\n    def forward(self, x):\n        return x\n\n\n"
        "def train(x, scale):\n"
        "    model = Net()\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n\n"
        "    def loss_fn(y):\n        return (y * scale).pow(2).sum()\n\n"
        "    while True:\n"
        "        optimizer.zero_grad()\n"
        "        loss = loss_fn(model(x))\n"
        "        loss.backward()\n"
        "        optimizer.step()\n"
    )
    done = convert(text)
    assert not done.gaps
    assert "\ndef loss_fn(y, scale):\n    return" in done.code
    assert "loss_fn(model(x), scale)" in done.code


def test_an_attribute_that_first_is_a_plain_value_may_become_a_module() -> None:
    text = (
        HEAD + "class Net(nn.Module):\n"
        "    def __init__(self, dropout=0.0, norm=True):\n        super().__init__()\n"
        "        self.dropout = dropout\n        self.norm = norm\n        self.dropout = nn.Dropout(dropout)\n"
        "        if norm:\n            self.norm = nn.LayerNorm(5)\n\n"
        "    def forward(self, x):\n        return self.dropout(self.norm(x) if self.norm else x)\n"
    )
    translation = convert(text)
    assert not translation.gaps
    names: dict[str, Any] = {}
    exec(translation.code, names)
    x = jnp.arange(5.0)
    with_norm, without = (names["Net"](norm=norm, rngs=nnx.Rngs(0)) for norm in (True, False))
    assert with_norm(x).mean() == pytest.approx(0.0, abs=1e-6) and without(x).mean() == 2.0


def test_a_condition_on_what_may_be_a_tensor_is_said() -> None:
    text = (
        HEAD + "def any_left(labels) -> bool | torch.Tensor:\n    return (labels >= 0).any()\n\n\n"
        "class Net(nn.Module):\n    def forward(self, x, y):\n"
        "        if any_left(y):\n            x = x + 1\n        return x\n"
    )
    assert [f.code for f in convert(text).findings] == ["tensor-branch"]


def test_a_dict_that_is_asked_for_an_array_s_dtype_has_dtypes_as_keys() -> None:
    text = (
        "import torch\n\nEPS = {torch.float32: 1, torch.float64: 2}\n\n\n"
        "def f(x: torch.Tensor):\n    return EPS[x.dtype] + {torch.half: 3, torch.float: 4}[x.dtype]\n"
    )
    names: dict[str, object] = {}
    exec(compile(convert(text).code, "<converted>", "exec"), names)
    assert names["f"](jnp.ones(2)) == 5  # type: ignore[operator]


def test_a_parameter_that_a_tensor_is_made_of_may_be_one() -> None:
    code = convert("import torch\n\n\ndef f(x, m, n=3):\n    return x[:, 0] * torch.tensor(m) + torch.tensor(n)\n").code
    assert "return x[:, 0] * jax.lax.stop_gradient(jnp.array(m)) + jnp.array(n)\n" in code


def test_methods_of_parameters_that_arrays_lack_are_converted_or_gaps() -> None:
    text = "import torch\n\n\ndef f(x):\n    return x.abs().max()\n\n\ndef g(x):\n    return x.norm()\n"
    translation = convert(text)
    assert "return absolute(x).max()" in translation.code
    assert [gap.name for gap in translation.gaps] == ["torch.Tensor.norm"]
    frames = convert(text.replace("import torch\n", "import pandas as pd\nimport torch\n", 1))
    assert "return x.abs().max()" in frames.code
    assert not frames.gaps


def test_what_is_masked_by_a_comparison_of_itself_is_a_tensor() -> None:
    translation = convert("import torch\n\n\ndef f(t, start):\n    t = t[t >= start]\n    return t\n")
    assert [note.code for note in translation.notes] == ["value-needed"]


def test_uniform_complex_numbers_are_a_gap() -> None:
    (gap,) = convert("import torch\n\nx = torch.rand(2, 3, dtype=torch.cfloat)\n").gaps
    assert "complex" in gap.reason
    assert not convert("import torch\n\nx = torch.randn(2, 3, dtype=torch.cfloat)\n").gaps


@pytest.mark.parametrize(
    "arguments", ["device=x.device, dtype=x.dtype", "dtype=x.dtype", "x.device, x.dtype", "x", "torch.float32"]
)
def test_what_is_cast_to_what_a_tensor_is_is_one(arguments: str) -> None:
    text = "class A(B, nn.Module):\n    def forward(self, x: torch.Tensor):\n        table = self.table[1:3]\n"
    done = convert("from other import B\n" + HEAD + text + f"        return table.to({arguments}) * x\n")
    assert ".to(" not in done.code


def test_a_leaf_that_is_made_of_a_parameter_carries_no_gradient() -> None:
    code = convert(HEAD + "def variable(value):\n    return torch.tensor(value, requires_grad=True)\n").code
    assert "return jax.lax.stop_gradient(jnp.array(value))" in code


@pytest.mark.parametrize(
    "statement",
    [
        "return (x > 1).any() or (x < 0).any()",
        "return flag and x.sum() > 0 and x.min() < 0",
        "return x if x.sum() > 0 else -x",
        "return not x.any()",
        "assert (x > 0).all()",
        "return [row for row in x if row.sum() > 0]",
        "known = maybe(x)\n    if known.all():\n        return x",
        "return max(x.sum(), x.mean())",
        "return [i for i in range(x.max())]",
    ],
)
def test_wherever_the_truth_of_an_array_is_asked_for_it_is_said_once(statement: str) -> None:
    maybe = "def maybe(x) -> bool | torch.Tensor:\n    return x > 0\n\n\n"
    done = convert(HEAD + maybe + f"def f(x: torch.Tensor, flag: bool):\n    {statement}\n")
    assert len([note for note in done.notes if note.code in ("tensor-branch", "value-needed")]) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "return flag and x.sum() > 0",
        "return x if x.shape[0] > 1 else -x",
        "assert x.ndim == 2 and not flag",
        "return [x for i in range(x.shape[0]) if i > 1]",
        "return max(x.shape[0], 2)",
        "names = list(x.shape)\n    if names.all():\n        return x",
    ],
)
def test_what_is_known_while_tracing_may_be_asked_for(statement: str) -> None:
    done = convert(HEAD + f"def f(x: torch.Tensor, flag: bool):\n    {statement}\n")
    assert not [note for note in done.notes if note.code in ("tensor-branch", "value-needed")]


def test_parts_of_tuples_that_leave_code_without_gradients_are_stopped_in_the_tuple() -> None:
    text = (
        "@torch.no_grad()\n"
        "def plan(x: torch.Tensor, info: dict):\n"
        "    return x[0].clone().unsqueeze(0), {'mean': 1}, (x.sum(0), 'a')\n\n\n"
        "def held(x: torch.Tensor):\n"
        "    with torch.no_grad():\n"
        "        return x.unsqueeze(0), 'a'\n"
    )
    code = convert(HEAD + text).code
    code = " ".join(code[code.index("def plan") :].split())
    assert "jax.lax.stop_gradient(x[0][None]), {'mean': 1}, (jax.lax.stop_gradient(x.sum(axis=0)), 'a')" in code
    assert "def held(x: jax.Array): return jax.lax.stop_gradient(x[None]), 'a'" in code


SIZE = "what an array's values make this large"


@pytest.mark.parametrize(
    "size",
    [
        "if n is None:\n        n = lengths.max()",
        "n = n or lengths.max()",
        "n = torch.max(lengths) if n is None else n",
        "if n is None:\n        n = lengths.max() + 1",
    ],
)
@pytest.mark.parametrize("head", ["lengths: torch.Tensor, n: int | None = None", "lengths, n=None"])
def test_a_size_that_may_be_an_arrays_value_is_said(head: str, size: str) -> None:
    made = convert(f"{HEAD}def mask({head}):\n    {size}\n    return torch.arange(n)[None] < lengths[:, None]\n")
    assert SIZE in "".join(f.reason for f in made.findings)


@pytest.mark.parametrize("size", ["if n is None:\n        n = lengths.shape[0]", "n = n or len(lengths)"])
def test_a_size_that_is_none_is_not(size: str) -> None:
    head = "lengths: torch.Tensor, n: int | None = None"
    made = convert(f"{HEAD}def mask({head}):\n    {size}\n    return torch.arange(n)[None] < lengths[:, None]\n")
    assert not made.findings


MODULE = (
    "class Net(nn.Module):\n    def __init__(self, norm):\n        super().__init__()\n        self.norm = norm\n\n"
)


def test_what_has_a_device_and_a_shape_is_a_tensor() -> None:
    text = "    def forward(self, data):\n        data = self.norm(data)\n        return data.shape[0], data.device\n"
    assert "return data.shape[0], jax.devices()[0]" in convert(HEAD + MODULE + text).code


def test_a_device_that_is_handed_on_is_said() -> None:
    """Of what may be a tensor; ``batch.shift`` is no attribute of arrays, and what has it is none."""
    text = "    def forward(self, batch):\n        x = batch.pos\n        return self.run(x.sum(), device=x.device)\n"
    (note,) = convert(HEAD + MODULE + text).findings
    assert note.code == "value-needed" and "know no device" in note.reason
    assert not convert(HEAD + MODULE + text.replace("x.sum()", "x.shift")).findings


@pytest.mark.parametrize(("metaclass", "fits"), [("Meta", False), ("ABCMeta", True), ("abc.ABCMeta", True)])
def test_a_metaclass_that_is_none_of_flaxs_is_a_gap(metaclass: str, fits: bool) -> None:
    text = "import abc\nfrom abc import ABCMeta\n\n\nclass Meta(type):\n    pass\n\n\n"
    made = convert(
        f"{HEAD}{text}class Net(nn.Module, metaclass={metaclass}):\n"
        "    def forward(self, x):\n        return torch.relu(x)\n"
    )
    assert bool(made.gaps) is not fits


@pytest.mark.parametrize(
    ("condition", "line"),
    [
        ("", "rngs = nnx.Rngs(seed)"),
        ("if seed is not None: ", "nonlocal rngs\n        if seed is not None: rngs = nnx.Rngs(seed)"),
    ],
)
def test_a_function_in_another_may_set_the_seed(condition: str, line: str) -> None:
    text = f"def split(seed=None):\n    def inner(x):\n        {condition}torch.manual_seed(seed)\n"
    made = convert(f"{HEAD}{text}        return torch.randperm(len(x))\n    return inner\n")
    assert not made.gaps
    assert f"def inner(x):\n        {line}\n        return rngs.permutation(len(x))\n" in made.code


def test_a_method_sets_the_seed_of_what_its_module_draws_from() -> None:
    text = (
        "class Noise(nn.Module):\n    def reset(self):\n        torch.manual_seed(0)\n\n"
        "    def forward(self, x, seed=None):\n        if seed is not None:\n            torch.manual_seed(seed)\n"
        "        return x + torch.randn_like(x)\n"
    )
    code = convert(HEAD + text).code
    assert "    def reset(self):\n        self.rngs = nnx.Rngs(0)\n" in code
    assert "        if seed is not None:\n            self.rngs = nnx.Rngs(seed)\n" in code


def test_a_module_under_a_condition_does_not_hide_what_the_output_imports() -> None:
    """Nor does one in a function, in which the name means nothing before."""
    text = (
        "def place(x: torch.Tensor):\n    if x is None:\n        import jax\n        return jax.devices()\n"
        "    return torch.softmax(x, 0)\n\n\n"
        "if torch.cuda.is_available():\n    import jax.numpy as jnp\n    table = jnp.ones(3)\n"
    )
    made = convert(HEAD + text + "\n\ndef f(x: torch.Tensor):\n    return torch.exp(x)\n")
    assert not made.gaps
    assert made.code.startswith("import jax\nimport jax.numpy as jnp\n")
    assert "    if x is None:\n        return jax.devices()\n    return jax.nn.softmax(x, axis=0)\n" in made.code


@pytest.mark.parametrize("default", ["nn.LayerNorm", "None"])
@pytest.mark.parametrize("annotation", ["nn.Module", "Optional[nn.Module]"])
def test_a_class_that_is_annotated_as_a_module_makes_layers(annotation: str, default: str) -> None:
    text = (
        "from typing import Optional\n\n\nclass Block(nn.Module):\n"
        f"    def __init__(self, dim, norm: {annotation} = {default}):\n"
        "        super().__init__()\n        if norm is None:\n            norm = nn.LayerNorm\n"
        "        self.norm = norm(dim)\n\n    def forward(self, x):\n        return self.norm(x)\n"
    )
    made: dict[str, Any] = {}
    exec(convert(HEAD + text).code, made)
    assert made["Block"](4, rngs=nnx.Rngs(0))(jnp.arange(8.0).reshape(2, 4)).shape == (2, 4)
