"""Copied helpers are cut to what a file uses of them; what its calls leave open stays."""

from __future__ import annotations

import ast
import functools
import inspect
from pathlib import Path

import flax
import jax
import optax
import pytest
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.plugins import helper_sources
from t2j_lsp.translate.source.folding.classes import FLAX_NAMES
from t2j_lsp.translate.source.folding.stock import DEFAULTS, without_stock_defaults
from t2j_lsp.translate.source.helpers import _import_lines, all_imports, defined, helpers

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"


def definitions(source: str) -> dict[str, ast.stmt]:
    """The functions, classes and named tuples of a conversion, by name."""
    done = convert(HEAD + source)
    assert not done.gaps
    body = ast.parse(done.code).body
    tuples = {
        ast.unparse(s.targets[0]): s for s in body if isinstance(s, ast.Assign) and "namedtuple(" in ast.unparse(s)
    }
    return {s.name: s for s in body if isinstance(s, ast.FunctionDef | ast.ClassDef)} | tuples


def parameters(node: ast.stmt, method: str = "__init__") -> list[str]:
    """The parameters of a function, or of a method of a class."""
    if isinstance(node, ast.ClassDef):
        node = next(s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == method)
    assert isinstance(node, ast.FunctionDef)
    return [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


LOSSES = {
    "a call": ("def f(x, y):\n    return F.cross_entropy(x, y, weight=None)\n", ["logits", "target"]),
    "a call that says how": (
        "def f(x, y, how):\n    return F.cross_entropy(x, y, reduction=how)\n",
        ["logits", "target", "reduction"],
    ),
    "two calls": (
        "def f(x, y, w):\n    return F.cross_entropy(x, y) + F.cross_entropy(x, y, weight=w)\n",
        ["logits", "target", "weight"],
    ),
    "a name": ("loss = nn.CrossEntropyLoss()\n\n\ndef f(x, y):\n    return loss(x, y)\n", ["logits", "target"]),
    "a parameter of a function": (
        "def train(loss, x, y):\n    return loss(x, y)\n\n\n"
        "train(nn.CrossEntropyLoss(), torch.ones(2), torch.zeros(2))\n",
        ["logits", "target"],
    ),
    "an attribute": (
        "class Trainer:\n    def __init__(self):\n        self.loss = nn.CrossEntropyLoss()\n\n"
        "    def f(self, x, y):\n        return self.loss(x, y)\n",
        ["logits", "target"],
    ),
    "a step that is compiled": (
        "def step(model, loss, x, y):\n    return loss(model(x), y)\n\n\n"
        "def train(model, optimizer, loss, x, y):\n    for _ in range(3):\n        optimizer.zero_grad()\n"
        "        value = step(model, loss, x, y)\n        value.backward()\n        optimizer.step()\n\n\n"
        "model = nn.Linear(2, 3)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "train(model, optimizer, nn.CrossEntropyLoss(), torch.ones(1, 2), torch.ones(1))\n",
        ["logits", "target"],
    ),
    "a list": ("losses = [nn.CrossEntropyLoss()]\n\n\ndef f(x, y):\n    return losses[0](x, y)\n", None),
    "an attribute that is read by its name": (
        "class Trainer:\n    def __init__(self):\n        self.loss = F.cross_entropy\n\n"
        "    def f(self, x, y):\n        return getattr(self, 'loss')(x, y)\n",
        None,
    ),
    "what a function returns": ("def choose():\n    return F.cross_entropy\n", None),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_function_keeps_the_parameters_that_a_call_may_pass(name: str) -> None:
    source, kept = LOSSES[name]
    whole = ast.parse(helpers()["cross_entropy"].text).body[0]
    assert parameters(definitions(source)["cross_entropy"]) == (kept if kept is not None else parameters(whole))


def test_what_only_helpers_call_moves_into_them() -> None:
    copied = definitions("loss = nn.MSELoss()\n\n\ndef f(x, y):\n    return loss(x, y)\n")
    assert set(copied) == {"f", "mse_loss"}
    assert ast.unparse(copied["mse_loss"]).endswith("return jnp.mean(jnp.square(x - target))")


STATIC = """
class Trainer:
    def __init__(self, model, criterion):
        self.model, self.criterion = model, criterion

    {}def loss(model, criterion, x, y):
        return criterion(model(x), y)

    def fit(self, x, y):
        print(Trainer.loss(self.model, self.criterion, x, y))


Trainer(nn.Linear(2, 3), nn.MSELoss()).fit(torch.ones(4, 2), torch.ones(4, 3))
"""


def test_a_loss_is_followed_into_a_static_method_of_a_class() -> None:
    assert parameters(definitions(STATIC.format("@staticmethod\n    "))["mse_loss"]) == ["x", "target"]
    bound = (
        STATIC.format("")
        .replace("(model, criterion, x, y)", "(self, criterion, x, y)", 1)
        .replace("model(x)", "self.model(x)")
    )
    assert "reduction" in parameters(definitions(bound.replace("(self.model, ", "(self, ", 1))["mse_loss"])


def test_a_partial_binds_what_it_binds() -> None:
    source = "import functools\n\nloss = functools.partial(F.cross_entropy, label_smoothing=0.1)\n\n\n"
    copied = definitions(source + "def f(x, y):\n    return loss(x, y)\n")
    assert parameters(copied["cross_entropy"]) == ["logits", "target", "label_smoothing"]


LIBRARY = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.{0}\n\n"


LIBRARY += "    def forward(self, x):\n        return {1}\n"


PROGRAM = "\n\nnet = Net()\nprint(net(torch.ones(2, 3, 4)))\n"


LSTM = LIBRARY.format("rnn = nn.LSTM(4, 5)", "self.rnn(x)[0]")


def test_a_class_keeps_the_arguments_of_its_calls() -> None:
    copied = definitions(LSTM)
    assert parameters(copied["LSTM"]) == ["self", "input_size", "hidden_size", "rngs"]
    assert "RecurrentBase" not in copied and "PackedSequence" not in copied
    again = definitions(LSTM.replace("5)", "5, num_layers=2)"))
    assert parameters(again["LSTM"]) == ["self", "input_size", "hidden_size", "num_layers", "rngs"]


def test_a_class_in_a_table_that_is_called_keeps_the_arguments_of_that_call() -> None:
    by_name = LIBRARY.format("rnn = getattr(nn, kind)(4, 5, dropout=0.1)", "self.rnn(x)[0]")
    by_name = by_name.replace("__init__(self)", "__init__(self, kind)").replace(
        "self.rnn =", "assert kind in ('LSTM', 'GRU')\n        self.rnn ="
    )
    copied = definitions(by_name)
    assert parameters(copied["RecurrentBase"]) == ["self", "input_size", "hidden_size", "dropout", "rngs"]
    beside = by_name + "\n\ndef other():\n    return nn.LSTM(3, 2, bidirectional=True)\n"
    assert "bidirectional" in parameters(definitions(beside)["RecurrentBase"])


def test_a_recurrent_layer_has_less_than_45_lines() -> None:
    source = LIBRARY.format("rnn = nn.LSTM(4, 5, batch_first=True)", "self.rnn(x)[0]")
    code = convert(HEAD + source).code
    helpers_only = code[code.index("# PyTorch behaviour") :]
    tree = ast.parse(helpers_only)
    texts = [
        ast.get_docstring(n, clean=False) or "" for n in ast.walk(tree) if isinstance(n, ast.ClassDef | ast.FunctionDef)
    ]
    for text in texts:
        helpers_only = helpers_only.replace(text, "")
    lines = [line.strip() for line in helpers_only.splitlines()]
    assert len([line for line in lines if line and not line.startswith("#") and line.strip('"')]) < 45
    assert "_gates" not in code


def test_packed_sequences_stay_where_somebody_packs() -> None:
    packing = "nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2]))"
    copied = definitions(LSTM.replace("self.rnn(x)[0]", f"nn.utils.rnn.pad_packed_sequence(self.rnn({packing})[0])[0]"))
    assert "PackedSequence" in copied and "isinstance(x, tuple)" in ast.unparse(copied["LSTM"])


def test_other_files_may_read_attributes_of_a_module_that_a_program_has_for_itself() -> None:
    library, program = definitions(LSTM)["LSTM"], definitions(LSTM + PROGRAM)["LSTM"]
    kept = "self.bidirectional, self.proj_size = (False, 0)"
    assert kept in ast.unparse(library)
    assert "bidirectional" not in ast.unparse(program)
    asked = definitions(LSTM + PROGRAM + "print(net.rnn.bidirectional)\n")["LSTM"]
    assert "self.bidirectional" in ast.unparse(asked) and "proj_size" not in ast.unparse(asked)


def test_a_layer_of_flax_has_no_attributes_of_pytorchs_unless_its_file_asks_for_them() -> None:
    source = LIBRARY.format("conv = nn.Conv1d(3, 5, 2, padding_mode='circular')", "self.conv(x){}")
    plain = ast.unparse(definitions(source.replace("{}", ""))["Conv1d"])
    assert "weight" not in plain and "self.stride = " not in plain and "self.border" in plain
    asked = ast.unparse(definitions(source.replace("{}", " + self.conv.stride[0]"))["Conv1d"])
    assert "self.stride = self.strides" in asked


@pytest.mark.parametrize("change", ["net.rnn.batch_first = True", "setattr(net.rnn, 'batch_first', True)"])
def test_an_attribute_that_the_program_sets_is_no_constant(change: str) -> None:
    text = ast.unparse(definitions(LSTM + PROGRAM)["LSTM"])
    assert "self.batch_first" not in text
    done = convert(HEAD + LSTM + "\n\nnet = Net()\n" + change + "\nprint(net(torch.ones(2, 3, 4)))\n")
    assert "self.batch_first" in done.code[done.code.index("class LSTM") :]


def test_modes_are_not_constants() -> None:
    source = LIBRARY.format("norm = nn.BatchNorm1d(3)", "self.norm(x)") + PROGRAM
    text = ast.unparse(definitions(source)["BatchNorm"])
    assert "self.use_running_average" in text


def test_a_class_that_is_handed_around_stays_whole() -> None:
    source = "def block(norm):\n    return norm(4)\n\n\nlayers = [block(n) for n in (nn.BatchNorm1d, nn.BatchNorm2d)]\n"
    whole = helpers()["ChannelsFirstBatchNorm"].text
    assert parameters(definitions(source)["ChannelsFirstBatchNorm"]) == parameters(ast.parse(whole).body[0])


FACTORIES = {
    "a default": "class Block(nn.Module):\n    def __init__(self, norm=nn.BatchNorm2d):\n        self.norm = norm(4)\n",
    "one of several that are assigned": "class Block(nn.Module):\n    def __init__(self, width, norm=nn.BatchNorm2d):\n"
    "        self.width, self.make = width, norm\n        self.norm = self.make(4)\n",
    "a partial, or what is given": "from functools import partial\n\n\n"
    "class Block(nn.Module):\n    def __init__(self, norm=None):\n"
    "        norm = norm or partial(nn.BatchNorm2d, eps=1e-3)\n        self.norm = norm(4)\n",
    "a choice": "def make(norm, last):\n    if norm is None:\n"
    "        norm = nn.BatchNorm2d if last else nn.BatchNorm1d\n    return norm(4)\n",
    "a block that is one of the file's": "class Block(nn.Module):\n    def __init__(self, width, norm):\n"
    "        self.norm = norm(width)\n\n\nclass Net(nn.Module):\n    def __init__(self, block):\n"
    "        self.one = self.make(block, nn.BatchNorm2d)\n\n"
    "    def make(self, block, norm):\n        return block(4, norm)\n\n\nnet = Net(Block)\n",
}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_class_that_is_handed_around_is_followed_by_name(name: str) -> None:
    copied = definitions(FACTORIES[name])
    norm = next(n for n in ("ChannelsFirstBatchNorm", "BatchNorm2d") if n in copied)
    eps = ["eps"] if "partial" in name else []
    assert parameters(copied[norm]) == ["self", "num_features", *eps, "rngs"]


@pytest.mark.parametrize(("momentum", "tested"), [("0.01", False), ("None", True), ("width", True)])
def test_what_a_partial_binds_is_never_none_if_it_is_a_number(momentum: str, tested: bool) -> None:
    source = "from functools import partial\n\n\nclass Block(nn.Module):\n    def __init__(self, width, norm=None):\n"
    source += f"        norm = norm or partial(nn.BatchNorm2d, momentum={momentum})\n        self.norm = norm(4)\n"
    code = convert(HEAD + source).code
    assert ("num_batches_tracked" in code) == tested


LOST = {
    "a block of which nothing is known": "def make(block):\n    return block(4, nn.BatchNorm2d)\n",
    "another block that passes more": FACTORIES["a block that is one of the file's"]
    + "\n\nclass Other(nn.Module):\n    def __init__(self, width, norm):\n"
    "        self.norm = norm(width, affine=False)\n\n\nother = Net(Other)\n",
    "one of several that a star may take": "class Block(nn.Module):\n"
    "    def __init__(self, norm=nn.BatchNorm2d, *more):\n"
    "        self.make, *self.rest = (norm, more)\n        self.norm = self.make(4)\n",
    "arguments of which nothing is known": "def make(*args, norm=nn.BatchNorm2d):\n    return norm(*args)\n",
}


@pytest.mark.parametrize("name", LOST)
def test_a_class_keeps_what_may_be_passed_where_it_gets_to(name: str) -> None:
    assert "affine" in parameters(definitions(LOST[name])["BatchNorm2d"])


def test_a_class_that_the_user_derives_from_stays_whole() -> None:
    source = "class Net(nn.LSTM):\n    def forward(self, x):\n        return super().forward(x)[0]\n"
    result = convert(HEAD + source).code
    assert "def __init__(self, input_size, hidden_size, num_layers" in ast.unparse(ast.parse(result)).replace(
        ": int", ""
    ).replace("=1", "")


def test_names_that_flax_asks_its_modules_for_are_the_table() -> None:
    named: set[str] = set()
    for file in (Path(flax.__file__).parent / "nnx").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                named.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value)
    own: set[str] = set()
    for helper in helpers().values():
        made = ast.parse(helper.text).body[0]
        if isinstance(made, ast.ClassDef):
            own |= {s.name for s in made.body if isinstance(s, ast.FunctionDef)}
            own |= {n.id for s in made.body if isinstance(s, ast.Assign) for n in s.targets if isinstance(n, ast.Name)}
            own |= {n.attr for n in ast.walk(made) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    assert {n for n in own & named if not n.startswith("__")} <= FLAX_NAMES


def test_an_import_means_the_same_in_every_helper_file() -> None:
    bound: dict[str, set[str]] = {}
    for text in helper_sources().values():
        for name, line in _import_lines(ast.parse(text)).items():
            bound.setdefault(name, set()).add(line)
    assert {name: lines for name, lines in bound.items() if len(lines) > 1} == {}


def test_the_names_of_helpers_are_known_without_parsing_their_files() -> None:
    trees = [ast.parse(text) for text in helper_sources().values()]
    assert list(helpers()) == [name for tree in trees for node in tree.body if (name := defined(node))]
    assert all_imports() == {name: line for tree in trees for name, line in _import_lines(tree).items()}


LABELS = "x, y = torch.randn(5, 3), torch.arange(5) % 3\n"


LOOP = """def fit(loader, device="cpu"):
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        print(F.cross_entropy(x, y))
fit(made)
"""


OBJECT = """class Trainer:
    def __init__(self, loader):
        self.loader = loader
    def train(self):
        for batch in self.loader:
            print(F.cross_entropy(batch[0], batch[1].cpu()))
t = Trainer(loader=made)
t.train()
model.train()
"""


def fed(tensors: str, loop: str = LOOP, parts: str = "{}", options: str = "batch_size=2") -> str:
    """A program whose loop gets batches of a dataset of some tensors."""
    made = f"rows = {parts.format(f'TensorDataset({tensors})')}\n"
    made = made if parts == "{}" else made.replace("rows =", "rows, _ =")
    return (
        f"from torch.utils.data import DataLoader, TensorDataset, random_split\n{LABELS.replace('x, y', 'xs, ys')}"
        f"{made}made = DataLoader(rows, {options})\nmodel = nn.Linear(1, 1)\n{loop}"
    )


ROWS = """from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __init__(self):
        self.x, self.y = torch.randn(5, 3), torch.arange(5) % 3
    def __len__(self):
        return 5
    def __getitem__(self, i):
        return {}
def joined(batch):
    x = torch.stack([one[0] for one in batch])
    y = torch.zeros(len(batch), dtype=torch.long)
    return x, y
model = nn.Linear(1, 1)
"""


def of_class(row: str, loop: str = "for x, y in made:", target: str = "y", options: str = "batch_size=2") -> str:
    """A program whose loop gets batches of a dataset of the file's own, which says what a row is."""
    printed = f"    print(F.cross_entropy(model(1), {target}))\n"
    return ROWS.replace("return {}", f"return {row}") + f"made = DataLoader(Rows(), {options})\n{loop}\n{printed}"


OF_LABELS = {
    "labels of one axis": (f"{LABELS}print(F.cross_entropy(x, y))", False, False),
    "labels of one axis, smoothed": (f"{LABELS}print(F.cross_entropy(x, y, label_smoothing=0.1))", False, False),
    "labels of one axis, given to a layer": (f"{LABELS}f = nn.CrossEntropyLoss()\nprint(f(x, target=y))", False, False),
    "axes that differ": ("def f(x):\n    print(F.cross_entropy(x.view(-1, 3), x.y.view(-1)))\nf(1)", False, False),
    "labels in batches": (fed("xs, ys"), False, False),
    "labels in batches that an object has": (fed("xs, ys", OBJECT), False, False),
    "labels in batches of a split": (fed("xs, ys", LOOP, "random_split({}, [3, 2])"), False, False),
    "labels of a dataset's own rows": (of_class("self.x[i], self.y[i]"), False, False),
    "labels of rows with names": (
        of_class("{'x': self.x[i], 'y': self.y[i]}", "for one in made:", "one['y'].to('cpu')"), False, False
    ),
    "whole numbers of rows": (of_class("self.x[i], len(self)"), False, False),
    "labels of loaders in turn": (
        of_class("self.x[i], self.y[i]", "for _, one in (('a', made), ('b', made)):\n  for x, y in one:"), False, False
    ),
    "labels that a function of the file puts together": (
        of_class("self.x[i], 0", options="collate_fn=joined"), False, False
    ),
    "another part of rows": (of_class("self.x[i], self.y[i]", target="x"), True, True),
    "another part of what is put together": (
        of_class("self.x[i], 0", "for y, x in made:", options="collate_fn=joined"), True, True
    ),
    "rows that differ": (of_class("(self.x[i], self.y[i])\n        return (self.x[i], self.x[i])"), True, True),
    "rows with another name": (of_class("{'x': self.x[i]}", "for one in made:", "one['y']"), True, True),
    "rows of anything": (of_class("self.rows[i]"), True, True),
    "rows of fractions": (of_class("self.x[i], 0.5"), True, True),
    "probabilities in batches": (fed("xs, xs"), True, True),
    "batches that a function puts together": (fed("xs, ys", LOOP, "{}", "collate_fn=f"), True, True),
    "batches with and without labels": (fed("xs, ys", f"{LOOP}fit(DataLoader(TensorDataset(xs, xs)))\n"), True, True),
    "batches of others": (fed("xs, ys", f"{LOOP}run = fit\n"), True, True),
    "labels that are changed": (fed("xs, ys", LOOP.replace("y.to(device)", "y.to(x)")), True, True),
    "labels of any axes": ("def f(x, y):\n    print(F.cross_entropy(x, y.long()))\nf(1, 2)", False, True),
    "labels and anything": (f"{LABELS}print(F.cross_entropy(x, y), F.cross_entropy(x, x.z))", True, True),
    "probabilities": (f"{LABELS}f = nn.CrossEntropyLoss()\nprint(f(x, y), f(x, x.softmax(1)))", True, True),
    "a name that is called elsewhere": (
        f"{LABELS}f = nn.CrossEntropyLoss()\nprint(f(x, y))\ndef g(f, z):\n    return f(z, z)\ng(f, x)", True, True
    ),
    "a module for others": ("def f(x, y):\n    return F.cross_entropy(x, y.long())", True, True),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_LABELS)
def test_a_loss_that_is_given_labels_asks_for_no_probabilities(name: str) -> None:
    source, probabilities, axis = OF_LABELS[name]
    loss = definitions(f"import torch.nn.functional as F\n{source}\n")["cross_entropy"]
    written = ast.unparse(loss)
    assert ("softmax_cross_entropy(" in written, "axis=axis" in written) == (probabilities, axis)
    assert ("probabilities" in written) == probabilities


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        ("f = nn.MSELoss(reduction='sum')\nprint(f(1, 2))", False),
        ("f, g = nn.MSELoss(), nn.MSELoss(reduction='none')\nprint(f(1, 2), g(1, 2))", True),
        ("def f(how):\n    return nn.MSELoss(reduction=how)\nprint(f('sum')(1, 2))", True),
    ],
)
def test_a_string_that_no_call_passes_is_not_asked_for(made: str, asked: bool) -> None:
    written = "".join(ast.unparse(one) for one in definitions(f"{made}\n").values())
    assert ("'none'" in written) == asked


@pytest.mark.parametrize(
    ("calls", "wanted"),
    [
        ("x.squeeze(1), x.squeeze(-1)", "x.squeeze(axis)"),
        ("x.squeeze(1), x.squeeze((0, 1))", "isinstance"),
        ("x.squeeze(1), [x.squeeze(d) for d in x.shape]", "isinstance"),
    ],
)
def test_whole_numbers_alone_are_no_lists(calls: str, wanted: str) -> None:
    written = ast.unparse(definitions(f"def f(x: torch.Tensor):\n    return {calls}\n")["squeeze"])
    assert wanted in written and ("isinstance" in written) == (wanted == "isinstance")


def test_defaults_are_those_of_flax_and_jax() -> None:
    for name, known in DEFAULTS.items():
        root, *attributes = name.split(".")
        called = functools.reduce(getattr, attributes, {"nnx": nnx, "jax": jax, "optax": optax}[root])
        parameters = inspect.signature(called.__init__ if root == "nnx" else called).parameters
        assert known == {one: parameters[one].default for one in known}
    text = (
        "class Norm(nnx.BatchNorm):\n    def __init__(self, n):\n        super().__init__(n, axis=1, epsilon=1e-05)\n"
    )
    assert "super().__init__(n, axis=1)" in without_stock_defaults(text, "nnx.BatchNorm")
    assert without_stock_defaults(text, None) == text
    said = "x = nnx.Conv(1, 2, use_bias=True, kernel_dilation=(1, 1), strides=2)\n"
    assert without_stock_defaults(said, None) == "x = nnx.Conv(1, 2, strides=2)\n"
    for argument in ("use_bias=False", "kernel_dilation=(1, 2)", "feature_group_count=n", "use_bias=bias"):
        kept = f"x = nnx.Conv(1, 2, {argument})\n"
        assert without_stock_defaults(kept, None) == kept
