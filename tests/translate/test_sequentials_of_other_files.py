"""Sequentials that one file makes and another reads: both conversions mean the same list of children."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest

from t2j_lsp import convert
from t2j_lsp.api import convert_file
from t2j_lsp.contract import Options
from t2j_lsp.files.sources import neighbours

from .side_by_side import compare, randomized, sides

HEAD = "import torch\nfrom torch import nn\n"
NET = """

class Net(nn.Module):
    def __init__(self, deep=True):
        super().__init__()
        {}

    def forward(self, x):
        return self.head(x)
"""
STOCK = "self.head = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))"
USER = """from net import Net


class User(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        {}
        return x


class Sub(Net):
    def forward(self, x):
        return self.head[-1](self.head[:2](x))


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()

    def forward(self, x):
        return self.sub(x) + x
"""
READS = [
    "x = self.net.head[-1](self.net.head[0](x))",
    "x = self.net.head[1:](self.net.head[0](x)) * len(self.net.head)",
    "for layer in self.net.head: x = layer(x)",
    "for i, layer in enumerate(self.net.head): x = layer(x) * i",
    "x = x + sum(layer(x).mean() for layer in [*self.net.head][:2])",
    "head = self.net.head\n        a, b, c = head\n        x = c(b(a(x)))",
    "first, *rest = self.net.head\n        x = rest[-1](first(x))",
    "for layer in self.net.head.children(): x = layer(x)",
]
MADE = {
    "only called": STOCK,
    "read in its file": STOCK + "\n        self.count = len(self.head)",
    "one of two": "if deep:\n            " + STOCK + "\n        else:\n            "
    "self.head = nn.Sequential(nn.Linear(5, 5), nn.ReLU())",
}


def both(folder: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The last of some files as PyTorch and, each file converted alone, as JAX."""
    modules: dict[str, object] = {}
    for side in ("torch", "jax"):
        place = folder / side
        place.mkdir()
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        for name, text in files.items():
            path = folder / f"{name}.py"
            done = convert(text, resolve=neighbours(path))
            assert not done.gaps
            (place / f"{name}.py").write_text(text if side == "torch" else done.code)
        monkeypatch.syspath_prepend(str(place))
        for name in files:
            monkeypatch.delitem(sys.modules, name, raising=False)
        for name in files:
            modules[side] = __import__(name)
        for name in files:
            monkeypatch.delitem(sys.modules, name, raising=False)
    return modules


@pytest.mark.parametrize(("made", "read"), [(m, r) for m in MADE for r in (READS[:4] if "one" in m else READS)])
def test_another_file_reads_the_children(made: str, read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"net": HEAD + NET.format(MADE[made]), "user": HEAD + USER.format(read)}
    modules = both(tmp_path, files, monkeypatch)
    with jax.enable_x64(True):
        for name in ("User", "Other") if read == READS[0] else ("User",):
            reference = randomized(getattr(modules["torch"], name)())
            module = getattr(modules["jax"], name)(rngs=modules["jax"].nnx.Rngs(0))
            compare(reference, module, [np.random.default_rng(1).normal(size=(3, 5))])


@pytest.mark.parametrize(
    "change", ["net.head.append(nn.ReLU())", "net.head[1] = nn.ReLU()", "net.head.insert(0, nn.ReLU())"]
)
def test_what_no_list_of_layers_can_is_said(change: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(HEAD + NET.format(STOCK))
    text = HEAD + f"from net import Net\n\n\ndef grow(net: Net):\n    {change}\n"
    assert "another file" in convert(text, resolve=neighbours(tmp_path / "user.py")).gaps[0].reason


def test_one_of_several_is_said_where_nothing_tells_which(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(HEAD + NET.format(MADE["one of two"]))
    text = HEAD + "from net import Net\n\n\ndef first(net: Net):\n    head = net.head\n    return head[0]\n"
    assert "another file" in convert(text, resolve=neighbours(tmp_path / "user.py")).gaps[0].reason


def test_a_class_without_the_methods_is_said(tmp_path: Path) -> None:
    named = "self.head = nn.Sequential(OrderedDict(a=nn.Linear(5, 4), b=nn.Tanh()))"
    (tmp_path / "net.py").write_text(HEAD + "from collections import OrderedDict\n" + NET.format(named))
    text = HEAD + "from net import Net\n\n\ndef first(net: Net):\n    return net.head[0]\n"
    assert "another file" in convert(text, resolve=neighbours(tmp_path / "user.py")).gaps[0].reason


NAMED = "self.head = nn.Sequential(OrderedDict(a=nn.Linear(5, 4), b=nn.Tanh(), c=nn.Linear(4, 5)))"


def converted_package(folder: Path, files: dict[str, str]) -> Path:
    """A package and the conversion of each of its files, in another folder."""
    for side in ("torch", "jax"):
        (folder / side / "pack").mkdir(parents=True)
        (folder / side / "pack" / "__init__.py").touch()
        (folder / side / "pyproject.toml").touch()
    for name, text in files.items():
        (folder / "torch" / "pack" / f"{name}.py").write_text(text)
    for name in files:
        done = convert_file(folder / "torch" / "pack" / f"{name}.py", Options()).translation
        assert not done.gaps
        (folder / "jax" / "pack" / f"{name}.py").write_text(done.code)
    return folder / "jax" / "pack"


@pytest.mark.parametrize("read", READS)
def test_a_file_of_its_package_reads_children_that_have_names(
    read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = HEAD + USER.format(read).replace("from net", "from .net")
    net = HEAD + "from collections import OrderedDict\n" + NET.format(NAMED)
    converted_package(tmp_path, {"net": net, "user": user})
    made: dict[str, ModuleType] = {}
    for side in ("torch", "jax"):
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(tmp_path / side))
            made[side] = importlib.import_module("pack.user")
        for name in ("pack", "pack.net", "pack.user"):
            del sys.modules[name]
    with jax.enable_x64(True):
        for name in ("User", "Other"):
            module = getattr(made["jax"], name)(rngs=made["jax"].nnx.Rngs(0))
            compare(randomized(getattr(made["torch"], name)()), module, [np.random.default_rng(1).normal(size=(3, 5))])


def test_children_that_no_other_file_reads_need_no_methods(tmp_path: Path) -> None:
    net = HEAD + "from collections import OrderedDict\n" + NET.format(NAMED)
    user = HEAD + "from .net import Net\n\n\ndef run(net: Net, x):\n    return net.head(x)\n"
    assert "__getitem__" not in (converted_package(tmp_path, {"net": net, "user": user}) / "net.py").read_text()


READERS = """

class Each(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        for layer in self.body:
            x = layer(x)
        return x


def first(body, x):
    return body[0](x)


def called(body, x):
    return body(x)
"""


def test_what_is_handed_to_a_reader_in_another_file_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = "nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 5))"
    user = f"""from readers import Each, called, first


class User(nn.Module):
    def __init__(self):
        super().__init__()
        self.each = Each({made})
        self.body = {made}
        self.plain = {made}

    def forward(self, x):
        return self.each(x) + first(self.body, x).sum() + called(self.plain, x)
"""
    modules = both(tmp_path, {"readers": HEAD + READERS, "user": HEAD + user}, monkeypatch)
    code = convert(HEAD + user, resolve=neighbours(tmp_path / "user.py")).code
    assert "self.plain = nnx.Sequential(" in code and "self.body = Sequential(" in code
    with jax.enable_x64(True):
        reference = randomized(modules["torch"].User())
        module = modules["jax"].User(rngs=modules["jax"].nnx.Rngs(0))
        compare(reference, module, [np.random.default_rng(1).normal(size=(3, 5))])


@pytest.mark.parametrize(
    "read",
    [
        "a, b = self.head\n        return b(a(x))",
        "for layer in [*self.head]:\n            x = layer(x)\n        return x",
        "for layer in reversed([m for m in reversed(self.head)]):\n            x = layer(x)\n        return x",
        "return sum(map(lambda layer: layer(x).sum(), self.head)) + x.sum()",
    ],
)
def test_every_way_to_read_the_children_is_seen_in_its_own_file(read: str) -> None:
    source = NET.format("self.head = nn.Sequential(nn.Linear(5, 4), nn.Tanh())").replace("return self.head(x)", read)
    two = sides(HEAD + source, "own_children")
    with jax.enable_x64(True):
        x = np.random.default_rng(1).normal(size=(3, 5))
        compare(randomized(two.torch.Net()), two.jax.Net(rngs=two.jax.nnx.Rngs(0)), [x])


PUTS = ["self.net.head[2] = nn.Linear(4, 3)", "self.net.head[-1] = nn.Linear(self.net.head[-1].in_features, 3)"]
OWNER = """from net import Net


class Owner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
        {}

    def forward(self, x):
        return self.net(x)
"""


@pytest.mark.parametrize("put", PUTS)
def test_another_file_puts_a_module_for_a_module(put: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = both(tmp_path, {"net": HEAD + NET.format(STOCK), "owner": HEAD + OWNER.format(put)}, monkeypatch)
    with jax.enable_x64(True):
        module = modules["jax"].Owner(rngs=modules["jax"].nnx.Rngs(0))
        compare(randomized(modules["torch"].Owner()), module, [np.random.default_rng(1).normal(size=(3, 5))])


@pytest.mark.parametrize(
    "put",
    [
        "self.net.head[len(x)] = nn.Linear(4, 3)",
        "self.net.head[2] = nn.ReLU()",
        "self.net.head[1] = nn.Linear(4, 4)",
        "self.net.head[3] = nn.Linear(4, 4)",
    ],
)
def test_what_may_be_a_function_is_not_put_there(put: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(HEAD + NET.format(STOCK))
    gaps = convert(HEAD + OWNER.format(put), resolve=neighbours(tmp_path / "owner.py")).gaps
    assert [gap.name for gap in gaps] == ["torch.nn.Sequential"]
