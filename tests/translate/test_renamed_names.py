"""The user's names don't matter: renamed to what t2j writes, in every kind of scope, the output means the same.

Hypothesis puts pieces of programs together, each with a place for a name. The program is converted twice: with names
that nothing else uses, and with names that the first output has and its source hasn't (imports, helpers and what they
use, ``rngs``, ``train_step``, ``loss_fn``, variables that t2j makes). Both outputs must be the same program up to the
names: every name is bound in the same place, and every import and helper is the one that was meant.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2j_lsp.contract import Translation
from t2j_lsp.symbols import FunctionNode, ScopeNode, Symbols, imported, scopes_around
from t2j_lsp.translate import translate
from t2j_lsp.translate.expressions.needs import MEANINGS
from t2j_lsp.translate.expressions.rngs import TAKEN
from t2j_lsp.translate.source.helpers import helper_names

WIDEST = f"WIDEST = '{'-' * 108}'"
"""A line of 120 characters: the output's lines may be as long, whatever names the programs have."""
HEAD = f"import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n{WIDEST}\n\n\n"

CALLS = "F.layer_norm(torch.cat([x, x]), (4,)) + torch.softmax(x, -1)"
"""Calls that become jnp, jax and helpers, which have helpers and imports of their own."""

BODIES = {
    "assignment": "<n> = 1\nreturn <calls> + <n>",
    "augmented": "<n> = 1\n<n> += 1\nreturn <calls> + <n>",
    "annotated": "<n>: int = 1\nreturn <calls> + <n>",
    "unpacking": "(a, *<n>), b = (1, 2), 3\nreturn <calls> + len(<n>)",
    "for": "for <n> in (1, 2):\n    x = <calls> + <n>\nreturn x",
    "with": "with open('f') as <n>:\n    return <calls> + len(<n>.read())",
    "except": "try:\n    x.a\nexcept ValueError as <n>:\n    x = <calls> + len(<n>.args)\nreturn x",
    "match": "match x.shape:\n    case (<n>, 2):\n        return <calls> + <n>",
    "match_star": "match x.shape:\n    case [_, *<n>]:\n        return <calls> + len(<n>)",
    "match_rest": "match {}:\n    case {1: 2, **<n>}:\n        return <calls> + len(<n>)",
    "import": "import collections as <n>\nreturn <calls> + len(<n>.__doc__)",
    "from_import": "from .ops import something as <n>\nreturn <calls> + <n>(x)",
    "function": "def <n>(y):\n    return y\nreturn <calls> + <n>(x)",
    "async_function": "async def <n>(y):\n    return y\nreturn <calls> + len(<n>.__name__)",
    "class": "class <n>:\n    a = 1\nreturn <calls> + <n>.a",
    "walrus": "return <calls> + (<n> := 3) + <n>",
    "walrus_inside": "return <calls> + sum([(<n> := i) for i in range(3)]) + <n>",
    "list": "return sum([<calls> + <n> for <n> in range(3)])",
    "generator": "return sum(<calls> + <n> for <n> in range(3))",
    "dict": "return {<n>: <calls> + <n> for <n> in range(3)}",
    "lambda": "return (lambda <n>: <calls> + <n>)(2)",
    "nested": "<n> = 2\ndef inner(x):\n    return <calls> + <n>\nreturn inner(x)",
    "nested_parameter": "def inner(x, <n>):\n    return <calls> + <n>\nreturn inner(x, 2) + <calls>",
    "nonlocal": "<n> = 2\ndef inner(x):\n    nonlocal <n>\n    <n> += 1\n    return <calls>\nreturn inner(x) + <n>",
    "global": "global <n>\n<n> = 3\nreturn <calls> + <n>",
    "deleted": "<n> = 2\ndel <n>\nreturn <calls>",
    "drawn": "<n> = 2\nreturn torch.randn(3) + torch.randperm(<n>) + F.dropout(x, 0.1)",
    "seeded": "<n> = 2\nif <n>:\n    torch.manual_seed(<n>)\nreturn torch.randn(<n>)",
    "hoisted": "<n> = 2\nreturn torch.std_mean(x.view(-1) + <n>), torch.addcdiv(x, x * <n>, x)",
    "built": "<n> = 2\nreturn nn.Sequential(nn.Linear(<n>, 3), nn.Dropout(0.1), nn.LSTM(3, <n>))",
}
PARAMETERS = {
    "parameter": "def f<i>(x: torch.Tensor, <n>):\n    return <calls> + <n>\n",
    "keyword_only": "def f<i>(x: torch.Tensor, *, <n>=1):\n    return <calls> + <n>\n",
    "star": "def f<i>(x: torch.Tensor, *<n>):\n    return <calls> + len(<n>)\n",
    "double_star": "def f<i>(x: torch.Tensor, **<n>):\n    return <calls> + len(<n>)\n",
    "coroutine": "async def f<i>(x: torch.Tensor, <n>):\n    return <calls> + <n>\n",
}
MODULE_LEVEL = {
    "module_assignment": "<n> = 1\n\n\ndef f<i>(x: torch.Tensor):\n    return <calls> + <n>\n",
    "module_assignment_behind": "def f<i>(x: torch.Tensor):\n    return <calls> + <n>\n\n\n<n> = 1\n",
    "module_function": "def <n>(x: torch.Tensor):\n    return <calls>\n",
    "module_class": "class <n>:\n    def f(self, x: torch.Tensor):\n        return <calls>\n",
    "module_import": "import json as <n>\n\n\ndef f<i>(x: torch.Tensor):\n    return <calls>, <n>\n",
    "module_loop": "for <n> in (1, 2):\n    x<i> = torch.ones(4, 4)\n    print(F.layer_norm(x<i>, (4,)) + <n>)\n",
    "module_handler": "try:\n    x<i> = torch.ones(4)\nexcept ValueError as <n>:\n    print(torch.ones(3), <n>)\n",
    "class_level": "class C<i>:\n    <n> = 2\n    x = torch.cat([torch.ones(2), torch.ones(3)]) * <n>\n",
    "class_level_method": "class C<i>:\n    def <n>(self, x: torch.Tensor):\n        return <calls> + self.<n>(x)\n",
    "layer": (
        "class N<i>(nn.Module):\n"
        "    def __init__(self, <n>):\n"
        "        super().__init__()\n"
        "        self.a = nn.Linear(<n>, 3)\n"
        "        self.drop = nn.Dropout(<n>)\n"
        "    def forward(self, x):\n"
        "        return F.layer_norm(self.drop(self.a(x)), (3,)) + torch.randn(3)\n"
    ),
    "layer_locals": (
        "class N<i>(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        <n> = 4\n"
        "        self.a = nn.ModuleList([nn.Conv2d(<n>, 3, 1) for _ in range(<n>)])\n"
        "    def forward(self, x):\n"
        "        for <n> in self.a:\n"
        "            x = torch.relu(<n>(x))\n"
        "        return x\n"
    ),
    "training": (
        "class N<i>(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.a = nn.Linear(4, 3)\n"
        "    def forward(self, x):\n"
        "        return self.a(x)\n\n\n"
        "def train<i>(loader):\n"
        "    model = N<i>()\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for x, <n> in loader:\n"
        "        optimizer.zero_grad()\n"
        "        loss = F.cross_entropy(model(x), <n>)\n"
        "        loss.backward()\n"
        "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        "        optimizer.step()\n"
        "    return <n>\n"
    ),
    "training_around": (
        "def step<i>(model: nn.Module, loader):\n"
        "    <n> = 0.0\n"
        "    optimizer = torch.optim.Adam(model.parameters())\n"
        "    for x, y in loader:\n"
        "        optimizer.zero_grad()\n"
        "        F.mse_loss(model(x), y).backward()\n"
        "        optimizer.step()\n"
        "        <n> += 1\n"
        "    return <n>\n"
    ),
}


def piece(kind: str, index: int, name: str) -> str:
    """A piece of a program with ``name`` in its place."""
    text = (BODIES | PARAMETERS | MODULE_LEVEL)[kind]
    if kind in BODIES:
        text = "def f<i>(x: torch.Tensor):\n" + textwrap.indent(text, "    ") + "\n"
    return text.replace("<calls>", CALLS).replace("<i>", str(index)).replace("<n>", name)


KINDS = (*BODIES, *PARAMETERS, *MODULE_LEVEL)


@cache
def converted(source: str) -> Translation:
    return translate(source)


def program(kinds: tuple[str, ...], names: tuple[str, ...]) -> str:
    return HEAD + "\n\n".join(piece(kind, i, name) for i, (kind, name) in enumerate(zip(kinds, names, strict=True)))


def unused(name: str) -> str:
    """A name that neither t2j nor the pieces have."""
    return f"zq_{name}_zq"


def written(kinds: tuple[str, ...]) -> list[str]:
    """The names that t2j writes into a program."""
    source = program(kinds, tuple(unused(str(i)) for i in range(len(kinds))))
    code = converted(source).code
    return sorted(names_of(code) - names_of(source))


def names_of(text: str) -> frozenset[str]:
    return Symbols(text, ast.parse(text)).names


class Meaning:
    """A program with what its names mean in their place: ``import:jax.numpy``, ``helper:pad``, a variable's number."""

    def __init__(self, code: str, helpers: Mapping[str, str], back: Mapping[str, str]) -> None:
        self.tree = ast.parse(code)
        self.symbols = Symbols(code, self.tree)
        self.helpers = helpers
        self.back = back
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.labels: dict[tuple[ScopeNode | None, str], str] = {}
        self.scopes: dict[ScopeNode, int] = {}
        targets = (t for ts in self.symbols.imports(None).values() for t in ts)
        self.targets = sorted(t for t in targets if not t.startswith("builtins."))
        self.body = [self.dump(n) for n in self.tree.body if not isinstance(n, ast.Import | ast.ImportFrom)]

    def label(self, name: str, around: list[ScopeNode]) -> str:
        home = self.symbols.home(name, around)
        if home is None and name in self.symbols.module:
            targets = self.symbols.imports(None).get(name)
            if targets is not None:
                own = [t.removeprefix("builtins.") for t in targets if t.startswith("builtins.")]
                return f"unbound:{own[0]}" if own else "import:" + "|".join(sorted(targets))
            if name in self.helpers:
                return f"helper:{self.helpers[name]}"
        elif home is None:
            return f"unbound:{name}"
        return self.labels.setdefault((home, name), f"{self.number(home)}:{len(self.labels)}")

    def number(self, scope: ScopeNode | None) -> int:
        return 0 if scope is None else self.scopes.setdefault(scope, len(self.scopes) + 1)

    def dump(self, node: object) -> object:
        if isinstance(node, list):
            return [self.dump(item) for item in node]
        if isinstance(node, str):
            return self.back.get(node, node)
        if not isinstance(node, ast.AST):
            return node
        around = scopes_around(node, self.parents)
        binds: dict[str, object] = {}
        match node:
            case ast.Name():
                return "Name", self.label(node.id, around)
            case ast.arg():
                outer = self.parents[self.parents[node]]
                assert isinstance(outer, FunctionNode | ast.Lambda)
                binds["arg"] = self.label(node.arg, [outer])
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                binds["name"] = self.label(node.name, around)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                binds["name"] = self.label(name, around)
            case ast.MatchMapping(rest=str(rest)):
                binds["rest"] = self.label(rest, around)
            case ast.Global() | ast.Nonlocal():
                binds["names"] = [self.label(name, around) for name in node.names]
            case ast.Import() | ast.ImportFrom():
                return [(self.label(name, around), target) for name, target in imported(node)]
        return type(node).__name__, [binds.get(f) or self.dump(value) for f, value in ast.iter_fields(node)]


def meaning(translation: Translation, back: Mapping[str, str]) -> tuple[object, list[str]]:
    result = Meaning(translation.code, dict(translation.needs.written), back)
    return result.body, result.targets


def check(kinds: tuple[str, ...], names: tuple[str, ...]) -> None:
    plain = converted(program(kinds, tuple(map(unused, names))))
    source = program(kinds, names)
    renamed = converted(source)
    compile(renamed.code, "<output>", "exec")
    if any(gap.reason == TAKEN for gap in renamed.gaps):
        assert "rngs" in names
        return
    assert len(renamed.gaps) == len(plain.gaps)
    back = {unused(name): name for name in names}
    assert meaning(renamed, {}) == meaning(plain, back), f"{source}\n# gives\n{renamed.code}"


KINDS_OF_NAMES = ("jax", "layer_norm", "center_and_scale", "Sequence", "tuple")
"""An import, a helper, a helper's helper, what a helper imports, one of Python's own: of the many of these one each."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_may_be_one_that_is_written(kind: str) -> None:
    translation = converted(program((kind,), (unused("0"),)))
    helpers = {name for name, _ in translation.needs.written}
    around = [n for n in ast.parse(translation.code).body if getattr(n, "name", None) not in helpers]
    names = names_of(ast.unparse(ast.Module(around, []))) & frozenset(written((kind,)))
    for name in {*KINDS_OF_NAMES, *(names - helper_names() - MEANINGS.keys())}:
        check((kind,), (name,))


@settings(max_examples=20, deadline=None)
@given(kinds=st.lists(st.sampled_from(KINDS), min_size=2, max_size=3).map(tuple), data=st.data())
def test_names_may_be_any_that_are_written(kinds: tuple[str, ...], data: st.DataObject) -> None:
    names = written(kinds)
    # Until a class has bound a name it reads the module's: a helper of that name stands above the class, and isn't cut.
    bound_late = [name for name in names if name not in helper_names()]
    choices = (st.sampled_from(bound_late if kind == "class_level" else names) for kind in kinds)
    check(kinds, data.draw(st.tuples(*choices)))
