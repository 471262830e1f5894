"""States of modules that are kept and loaded again: what converts, and what stays with a gap."""

from __future__ import annotations

import textwrap

import pytest

from t2j_lsp import convert

HEAD = """import copy
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)


class Other(Net):
    pass


a, b, c = Net(), Net(), Other()
"""


def body(code: str) -> tuple[str, int]:
    """What becomes of the statements behind the head, and how many gaps they have."""
    done = convert(HEAD + textwrap.dedent(code))
    return done.code[done.code.index("a, b, c =") :].partition("\n")[2].strip(), len(done.gaps)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a.load_state_dict(b.state_dict())", "nnx.update(a, nnx.state(b))"),
        ("a.load_state_dict(copy.deepcopy(b.state_dict()), strict=True)", "nnx.update(a, nnx.state(b))"),
        (
            "best = copy.deepcopy(a.state_dict())\na.load_state_dict(best)",
            "best = jax.tree.map(jnp.copy, nnx.state(a))\nnnx.update(a, best)",
        ),
        (
            "best = None\nbest = {k: v.cpu().clone() for k, v in a.state_dict().items()}\n"
            "if best is not None:\n    b.load_state_dict(best)",
            "best = None\nbest = jax.tree.map(jnp.copy, nnx.state(a))\nif best is not None:\n    nnx.update(b, best)",
        ),
    ],
)
def test_a_state_that_is_only_loaded_again_is_a_tree_of_arrays(code: str, expected: str) -> None:
    assert body(code) == (expected, 0)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("a.load_state_dict(c.state_dict())", id="another class"),
        pytest.param("a.load_state_dict(b.state_dict(), strict=False)", id="a part of it"),
        pytest.param("print(a.load_state_dict(b.state_dict()))", id="the answer is used"),
        pytest.param("best = a.state_dict()\na.load_state_dict(best)", id="it follows the module"),
        pytest.param("best = {k: v for k, v in a.state_dict().items()}\na.load_state_dict(best)", id="no copy"),
        pytest.param(
            "best = {k: v.clone() * 2 for k, v in a.state_dict().items()}\na.load_state_dict(best)", id="other values"
        ),
        pytest.param(
            "best = {k: v.clone() for k, v in a.state_dict().items() if 'fc' in k}\na.load_state_dict(best)", id="some"
        ),
        pytest.param(
            "best = copy.deepcopy(a.state_dict())\nprint(best['fc.weight'])\na.load_state_dict(best)", id="read by name"
        ),
        pytest.param("best = copy.deepcopy(a.state_dict())\ntorch.save(best, 'best.pt')", id="written to a file"),
        pytest.param(
            "best = copy.deepcopy(a.state_dict())\nbest = torch.load('best.pt')\na.load_state_dict(best)",
            id="or a file's",
        ),
        pytest.param(
            "def put(best):\n    a.load_state_dict(best)\n\n\nbest = copy.deepcopy(a.state_dict())\nput(best)",
            id="handed over",
        ),
        pytest.param("best = copy.deepcopy(a.state_dict())\nc.load_state_dict(best)", id="into another class"),
    ],
)
def test_any_other_use_keeps_pytorchs_names(code: str) -> None:
    text, gaps = body(code)
    assert not gaps
    assert "nnx.update(" not in text and "tree.map(" not in text
    assert "load_state_dict(" in text or "save_pickle(" in text


STATES = [
    ("torch.save(a.state_dict(), 'a.pt')", "save_pickle(torch_arrays(a), 'a.pt')"),
    (
        "torch.save({'epoch': 1, 'net': a.state_dict()}, f='a.pt')",
        "save_pickle({'epoch': 1, 'net': torch_arrays(a)}, 'a.pt')",
    ),
    ("a.load_state_dict(torch.load('a.pt', map_location='cpu'))", "load_state_dict(a, load_pickle('a.pt'))"),
    (
        "answer = a.load_state_dict(state_dict=torch.load('a.pt', weights_only=True), strict=False)",
        "answer = load_state_dict(a, load_pickle('a.pt'), strict=False)",
    ),
    (
        "old = torch.load('a.pt')\nnew = a.state_dict()\nnew.update({k: v for k, v in old.items() if k in new})\n"
        "a.load_state_dict(new)",
        "old = load_pickle('a.pt')\nnew = StateDict(a)\nnew.update({k: v for k, v in old.items() if k in new})\n"
        "load_state_dict(a, new)",
    ),
]


@pytest.mark.parametrize(("code", "expected"), STATES)
def test_a_state_dict_goes_into_files_and_comes_out_of_them(code: str, expected: str) -> None:
    text, gaps = body(code)
    assert (text[: len(expected)], gaps) == (expected, 0)


SAVE = "def save(state, name='a.pt'):\n    torch.save(state, name)\n\n\n"
BEST = """import shutil


def keep(state, is_best, name='a.pt'):
    torch.save(state, name)
    if is_best:
        shutil.copyfile(name, 'best.pt')


"""
REREAD = {
    "behind it": "torch.save(a.state_dict(), 'a.pt')\nstate = torch.load('a.pt')",
    "behind a loop": "for i in range(3):\n    if i > 1:\n        torch.save(a.state_dict(), f='a.pt')\n"
    "if True:\n    a.load_state_dict(torch.load('a.pt', weights_only=True))",
    "in a function": "def best(k):\n    torch.save(a.state_dict(), f'{k}.pt')\n    return torch.load(f'{k}.pt')",
    "by a function": f"{SAVE}save(a.state_dict())\nstate = torch.load('a.pt')",
    "by a function, under a name": f"{SAVE}save(a.state_dict(), name='b.pt')\nstate = torch.load('b.pt')",
    "copied by a function": f"{BEST}for i in range(3):\n    best = i < 2\n    keep(a.state_dict(), best)\n"
    "state = torch.load('best.pt')",
    "copied by a function that is told how": f"{BEST}keep(a.state_dict(), 1 < 2)\nstate = torch.load('best.pt')",
}
NOT_REREAD = {
    "another name of a function": f"{SAVE}save(a.state_dict(), 'b.pt')\nstate = torch.load('a.pt')",
    "a name that a function changes": SAVE.replace("    torch", "    name = name + '2'\n    torch")
    + "save(a.state_dict())\nstate = torch.load('a.pt')",
    "copied if somebody says so": f"{BEST}keep(a.state_dict(), b)\nstate = torch.load('best.pt')",
    "copied if there is none": f"{BEST.replace('if is_best', 'if not is_best')}keep(a.state_dict(), 1 < 2)\n"
    "state = torch.load('best.pt')",
    "a copy of another": BEST.replace("copyfile(name", "copyfile('c.pt'")
    + "keep(a.state_dict(), 1 < 2)\nstate = torch.load('best.pt')",
    "before it": "state = torch.load('a.pt')\ntorch.save(a.state_dict(), 'a.pt')",
    "of an earlier run": "import os\nif os.path.isfile('a.pt'):\n    state = torch.load('a.pt')\n"
    "torch.save(a.state_dict(), 'a.pt')",
    "another one": "torch.save(a.state_dict(), 'a.pt')\nstate = torch.load('b.pt')",
    "another name": "i = 1\ntorch.save(a.state_dict(), f'{i}.pt')\ni = 2\nstate = torch.load(f'{i}.pt')",
    "of a loop": "i = 1\ntorch.save(a.state_dict(), f'{i}.pt')\nfor i in range(2):\n    state = torch.load(f'{i}.pt')",
    "set in a loop": "p = 'a.pt'\ntorch.save(a.state_dict(), p)\nwhile True:\n    state = torch.load(p)\n    p += '2'",
    "written if it isn't there": "import os\nif not os.path.exists('a.pt'):\n    torch.save(a.state_dict(), 'a.pt')\n"
    "state = torch.load('a.pt')",
    "not called yet": "def save():\n    torch.save(a.state_dict(), 'a.pt')\nstate = torch.load('a.pt')\nsave()",
}


@pytest.mark.parametrize("case", REREAD)
def test_a_file_that_was_just_written_is_read_as_it_was_written(case: str) -> None:
    text = convert(HEAD + REREAD[case] + "\n").code
    assert "read_pickle(" in text and "load_pickle" not in text and "Unpickler" not in text


@pytest.mark.parametrize("case", NOT_REREAD)
def test_a_file_that_may_be_pytorchs_is_read_as_such(case: str) -> None:
    assert "zipfile" in convert(HEAD + NOT_REREAD[case] + "\n").code


RESUMED = """\
opt = torch.optim.Adam(a.parameters())
state = torch.load("a.pt"{only})
a.load_state_dict(state["net"])
{before}opt.load_state_dict(state["opt"])
"""


@pytest.mark.parametrize(
    ("only", "reads"), [("", "read_plain_pickle"), (", weights_only=False", "read_pickle")], ids=["weights", "anything"]
)
def test_a_file_that_has_a_state_for_an_optimizer_is_the_programs_own(only: str, reads: str) -> None:
    """Optax's optimizers can't load what PyTorch's saved."""
    code = convert(HEAD + RESUMED.format(only=only, before="")).code
    assert f"{reads}('a.pt')" in code.replace('"', "'") and "zipfile" not in code
    assert ("find_class" in code) == (not only)
    assert "zipfile" in convert(HEAD + RESUMED.format(only=only, before="if b: ")).code


READ_LATER = {
    "kept over an update": "state = a.state_dict()\ntrain()\nprint(state['fc.bias'])\ndef train(): pass",
    "saved later": "state = {'net': a.state_dict()}\ntrain()\ntorch.save(state, 'a.pt')\ndef train(): pass",
    "kept by who gets it": "def keep(state):\n    states.append(state)\n    torch.save(state, 'a.pt')\n"
    "states = []\nkeep(a.state_dict())",
    "updated in the loop": "for k, v in a.state_dict().items():\n    train()\n    print(v.sum())\ndef train(): pass",
    "one of two": "torch.save(a.state_dict(), 'a.pt')\nstate = b.state_dict()\nstates = [state]",
}
READ_AT_ONCE = {
    "walked": "print(sum(v.sum() for k, v in a.state_dict().items()))",
    "one of it": "print(a.state_dict()['fc.bias'])",
    "in a dictionary of a name": "state = {'net': a.state_dict(), 'epoch': 1}\ntorch.save(state, 'a.pt')",
    "by a function": "def save(state, name):\n    torch.save(state, name)\nsave({'net': a.state_dict()}, 'a.pt')",
    "copied": "kept = copy.deepcopy(a.state_dict())\nprint(kept['fc.bias'])",
}


@pytest.mark.parametrize("case", READ_LATER)
def test_a_state_dict_that_is_read_later_follows_the_module(case: str) -> None:
    text = convert(HEAD + READ_LATER[case] + "\n").code
    assert "StateDict(a)" in text and "torch_arrays" not in text


@pytest.mark.parametrize("case", READ_AT_ONCE)
def test_a_state_dict_that_is_read_at_once_is_a_dict_of_arrays(case: str) -> None:
    text = convert(HEAD + READ_AT_ONCE[case] + "\n").code
    assert "torch_arrays(a)" in text and "StateDict" not in text


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("a.load_state_dict(b.state_dict(), assign=True)", id="other dtypes"),
        pytest.param("for name in c.state_dict():\n    print(name)", id="names in their order"),
        pytest.param("names = [k for k, v in c.state_dict().items()]", id="a list of them"),
        pytest.param("for k, v in a.state_dict().items():\n    v.mul_(2)\n    print(v)", id="read behind"),
        pytest.param("a.state_dict()['fc.bias'].zero_()", id="one of them written to"),
        pytest.param("best = a.state_dict().copy()\na.load_state_dict(best)", id="a copy that follows the module"),
        pytest.param("def best():\n    return {k: v for k, v in a.state_dict().items()}", id="tensors that are kept"),
        pytest.param("w = a.state_dict()['fc.bias']\ntrain()\nprint(w)\n\ndef train(): pass", id="one that is kept"),
    ],
)
def test_what_a_state_dict_cannot_stand_for_is_a_gap(code: str) -> None:
    assert body(code)[1]


def test_only_a_copy_between_modules_has_a_note_on_what_is_not_compared() -> None:
    between = convert(HEAD + "a.load_state_dict(b.state_dict())\n")
    within = convert(HEAD + "best = copy.deepcopy(a.state_dict())\na.load_state_dict(best)\n")
    assert [len([f for f in done.findings if "names and shapes" in f.reason]) for done in (between, within)] == [1, 0]


STOPPING = """

class Stopping:
    def __call__(self, loss, model):
        self.keep(model)

    def keep(self, model):
        self.best = copy.deepcopy(model.state_dict())


stopping = Stopping()
{used}
"""


def test_what_an_objects_call_is_given_is_known_in_its_methods() -> None:
    assert not convert(HEAD + STOPPING.format(used="stopping(0.5, a)")).gaps


@pytest.mark.parametrize("statement", ["kept = x.state_dict()", "x.load_state_dict(torch.load('a'))"])
def test_the_state_of_what_is_not_known_is_a_gap(statement: str) -> None:
    """Neither Flax's modules nor its optimizers have the method: it stood there without a word."""
    done = convert(f"{HEAD}\n\ndef keep(x):\n    {statement}\n")
    assert [gap.reason[:12] for gap in done.gaps] == ["what x is is"]
    own = "\n\nclass Own:\n    def state_dict(self):\n        pass\n\n    def load_state_dict(self, x):\n        pass\n"
    assert not convert(f"{HEAD}{own}\n\ndef keep(x):\n    {statement}\n").gaps


HELD = """import copy
import torch
from torch import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.optimizer = optim.Adam(self.parameters(), lr=0.1)

    def forward(self, x):
        return self.fc(x)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x)


a, b = Net(), Net()
c, d = Pair(), Pair()
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a.load_state_dict(b.state_dict())", "nnx.update(a, nnx.state(b, nnx.Not(nnx.OptState)))"),
        ("c.load_state_dict(d.state_dict())", "nnx.update(c, nnx.state(d, nnx.Not(nnx.OptState)))"),
        (
            "best = copy.deepcopy(a.state_dict())\na.load_state_dict(best)",
            "best = jax.tree.map(jnp.copy, nnx.state(a, nnx.Not(nnx.OptState)))\nnnx.update(a, best)",
        ),
    ],
)
def test_the_state_of_a_module_has_no_state_of_the_optimizer_that_it_holds(code: str, expected: str) -> None:
    done = convert(HELD + code + "\n")
    assert not done.gaps
    assert expected in done.code
