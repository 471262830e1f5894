"""Copied helpers are cut to what a file uses of them; what its calls leave open stays."""

from __future__ import annotations

import ast
from pathlib import Path

import flax
import pytest

from t2j_lsp import convert
from t2j_lsp.plugins import helper_sources
from t2j_lsp.translate.source.folding.classes import FLAX_NAMES
from t2j_lsp.translate.source.folding.constants import folded
from t2j_lsp.translate.source.folding.inlining import expression_of, inlined
from t2j_lsp.translate.source.folding.joining import joined
from t2j_lsp.translate.source.folding.signatures import without_entries, without_parameters
from t2j_lsp.translate.source.folding.variables import without_idle_variables
from t2j_lsp.translate.source.helpers import _import_lines, all_imports, defined, helpers

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"


def definitions(source: str) -> dict[str, ast.stmt]:
    """The functions and classes of a conversion, by name."""
    done = convert(HEAD + source)
    assert not done.gaps
    return {s.name: s for s in ast.parse(done.code).body if isinstance(s, ast.FunctionDef | ast.ClassDef)}


def parameters(node: ast.stmt, method: str = "__init__") -> list[str]:
    """The parameters of a function, or of a method of a class."""
    if isinstance(node, ast.ClassDef):
        node = next(s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == method)
    assert isinstance(node, ast.FunctionDef)
    return [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


# --- what is known of the calls ---------------------------------------------------------------------------------------

LOSSES = {
    "a call": ("def f(x, y):\n    return F.cross_entropy(x, y, weight=None)\n", ["logits", "target"]),
    "a call that says how": (
        "def f(x, y):\n    return F.cross_entropy(x, y, reduction='sum')\n",
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
    found = definitions("loss = nn.MSELoss()\n\n\ndef f(x, y):\n    return loss(x, y)\n")
    assert set(found) == {"f", "mse_loss"}
    assert ast.unparse(found["mse_loss"]).endswith("return jnp.mean(jnp.square(x - target))")


def test_a_partial_binds_what_it_binds() -> None:
    source = "import functools\n\nloss = functools.partial(F.cross_entropy, reduction='sum')\n\n\n"
    found = definitions(source + "def f(x, y):\n    return loss(x, y)\n")
    assert parameters(found["cross_entropy"]) == ["logits", "target", "reduction"]


# --- classes ----------------------------------------------------------------------------------------------------------

LIBRARY = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.{0}\n\n"
LIBRARY += "    def forward(self, x):\n        return {1}\n"
PROGRAM = "\n\nnet = Net()\nprint(net(torch.ones(2, 3, 4)))\n"
LSTM = LIBRARY.format("rnn = nn.LSTM(4, 5)", "self.rnn(x)[0]")


def test_a_class_keeps_the_arguments_of_its_calls() -> None:
    found = definitions(LSTM)
    assert parameters(found["LSTM"]) == ["self", "input_size", "hidden_size", "rngs"]
    assert "RecurrentBase" not in found and "PackedSequence" not in found
    again = definitions(LSTM.replace("5)", "5, bidirectional=True)"))
    assert parameters(again["LSTM"]) == ["self", "input_size", "hidden_size", "bidirectional", "rngs"]


def test_packed_sequences_stay_where_somebody_packs() -> None:
    packing = "nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2]))"
    found = definitions(LSTM.replace("self.rnn(x)[0]", f"self.rnn({packing})[0].data"))
    assert "PackedSequence" in found and "isinstance(x, PackedSequence)" in ast.unparse(found["LSTM"])


def test_other_files_may_read_attributes_of_a_module_that_a_program_has_for_itself() -> None:
    library, program = definitions(LSTM)["LSTM"], definitions(LSTM + PROGRAM)["LSTM"]
    assert "self.bidirectional = False" in ast.unparse(library)
    assert "bidirectional" not in ast.unparse(program)
    asked = definitions(LSTM + PROGRAM + "print(net.rnn.bidirectional)\n")["LSTM"]
    assert "self.bidirectional = False" in ast.unparse(asked)


@pytest.mark.parametrize("change", ["net.rnn.batch_first = True", "setattr(net.rnn, 'batch_first', True)"])
def test_an_attribute_that_the_program_sets_is_no_constant(change: str) -> None:
    text = ast.unparse(definitions(LSTM + PROGRAM)["LSTM"])
    assert "self.batch_first" not in text
    done = convert(HEAD + LSTM + "\n\nnet = Net()\n" + change + "\nprint(net(torch.ones(2, 3, 4)))\n")
    assert "self.batch_first" in done.code[done.code.index("class LSTM") :]


def test_modes_are_not_constants() -> None:
    source = LIBRARY.format("norm = nn.BatchNorm1d(3)", "self.norm(x)") + PROGRAM
    text = ast.unparse(definitions(source)["BatchNorm1d"])
    assert "self.use_running_average" in text


def test_a_class_that_is_handed_around_stays_whole() -> None:
    source = "def block(norm):\n    return norm(4)\n\n\nlayers = [block(n) for n in (nn.BatchNorm1d, nn.BatchNorm2d)]\n"
    whole = helpers()["ChannelsFirstBatchNorm"].text
    assert parameters(definitions(source)["ChannelsFirstBatchNorm"]) == parameters(ast.parse(whole).body[0])


def test_a_class_that_the_user_derives_from_stays_whole() -> None:
    source = "class Net(nn.LSTM):\n    def forward(self, x):\n        return super().forward(x)[0]\n"
    found = convert(HEAD + source).code
    assert "def __init__(self, input_size, hidden_size, num_layers" in ast.unparse(ast.parse(found)).replace(
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


# --- the steps --------------------------------------------------------------------------------------------------------


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


def test_lines_are_joined_without_a_change_of_meaning() -> None:
    for helper in helpers().values():
        text = joined(helper.text)
        assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(helper.text)), helper.name
    assert joined("x = (\n    1,\n)\n") == "x = (1,)\n"
    assert joined("x = f(\n    1,\n)\n") == "x = f(1)\n"
    assert joined("x = f(\n    1,  # one\n)\n") == "x = f(\n    1,  # one\n)\n"


FOLDED = {
    "a branch": (
        "def f(x, a):\n    if a is None:\n        return x\n    return x + a\n",
        "def f(x, a):\n    return x\n",
    ),
    "the other branch": ("def f(x, a):\n    if a:\n        x = x + 1\n    return x\n", "def f(x, a):\n    return x\n"),
    "an elif": (
        "def f(x, a):\n    if x:\n        y = 1\n    elif a is None:\n        y = 2\n    else:\n        y = 3\n"
        "    return y\n",
        "def f(x, a):\n    if x:\n        y = 1\n    else:\n        y = 2\n    return y\n",
    ),
    "an expression": ("def f(x, a):\n    return x if a is None else a\n", "def f(x, a):\n    return x\n"),
    "and": ("def f(x, a):\n    return a is None and x > 0\n", "def f(x, a):\n    return x > 0\n"),
    "not": ("def f(x, a):\n    if not a:\n        return 1\n    return x\n", "def f(x, a):\n    return 1\n"),
    "a keyword of that name": ("def f(x, a):\n    return g(a=a)\n", "def f(x, a):\n    return g(a=None)\n"),
    "an attribute of that name": ("def f(x, a):\n    return x.a\n", "def f(x, a):\n    return x.a\n"),
}


@pytest.mark.parametrize("name", FOLDED)
def test_a_constant_decides_what_it_decides(name: str) -> None:
    before, after = FOLDED[name]
    assert folded(before, (("a", "None"),)) == after


def test_numbers_and_kinds_of_literals_are_worked_out() -> None:
    text = "def f(x, a):\n    return x.shape[a - 2 : x // a], a * x, isinstance(a, str)\n"
    assert folded(text, (("a", "1"),)) == "def f(x, a):\n    return x.shape[-1:x], x, False\n"
    assert "x // 2" in folded(text, (("a", "2"),)) and "2 * x" in folded(text, (("a", "2"),))


def test_a_negative_number_keeps_its_place() -> None:
    assert folded("def f(a):\n    return a**2\n", (("a", "-1"),)) == "def f(a):\n    return (-1)**2\n"


def test_parameters_go_with_what_is_said_of_them() -> None:
    text = 'def f(x, *, a=1, b=2):\n    """One.\n\n    Args:\n      x: two.\n      a: three,\n        four.\n'
    text += '    """\n    return x\n'
    assert without_parameters(text, "f", frozenset("ab")) == (
        'def f(x):\n    """One.\n\n    Args:\n      x: two.\n    """\n    return x\n'
    )
    assert without_entries('"""One.\n\n    Args:\n      a: two.\n    """', frozenset("a")) == '"""One."""'


def test_an_expression_moves_only_where_its_names_mean_the_same() -> None:
    function = "def g(x):\n    return jnp.exp(x)\n"
    assert expression_of(function) == "jnp.exp(x)"
    assert inlined("def f(y):\n    return g(y + 1)\n", function) == "def f(y):\n    return jnp.exp(y + 1)\n"
    assert inlined("def f(jnp):\n    return g(jnp)\n", function) is None
    twice = "def g(x):\n    return x * x\n"
    assert inlined("def f(y):\n    return g(h(y))\n", twice) is None
    assert inlined("def f(y):\n    return g(y) + 1\n", twice) == "def f(y):\n    return (y * y) + 1\n"


def test_idle_variables_go() -> None:
    text = "def f(x):\n    a = None\n    b = jnp.ones(3)\n    if a is not None:\n        x = x + a\n    return x\n"
    assert without_idle_variables(text) == "def f(x):\n    return x\n"
    effect = "def f(x):\n    b = x.pop()\n    return x\n"
    assert without_idle_variables(effect) == effect
    inner = "def f(x):\n    a = None\n\n    def g(a):\n        return a\n\n    return g(x)\n"
    assert "return a" in without_idle_variables(inner)
