"""A slice holds what an object needs and nothing else, and runs under the file's own lines."""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import traceback
import typing
from pathlib import Path
from types import ModuleType

import pytest

from t2j_lsp.check.program.objects import find_objects
from t2j_lsp.check.program.scopes import bound
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.program.workspace import find_workspace
from t2j_lsp.check.workers.loading import loaded
from t2j_lsp.contract import SourceError
from t2j_lsp.symbols import Symbols

from .sliced import cut, value, write


def test_only_what_is_needed_runs(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.py": """
            import not_installed
            from os import path, sep
            LOG = []
            BASE = 2
            SCALE = BASE * 3
            raise_here = 1 / 0
            def helper(): return SCALE
            def f(): return helper() + 1
            if __name__ == "__main__":
                BASE = not_installed.x
            """
        },
    )
    part = cut(tmp_path, "a.py", "f")
    assert value(part) == 7
    assert [i for i, _ in part.modules[0].keep] == [3, 4, 6, 7]


def test_changes_to_a_needed_value_are_kept(tmp_path: Path) -> None:
    text = (
        "T = {}\nT['a'] = 1\nT.update(b=2)\nfor k in 'cd': T[k] = 3\n1 / 0\nU = {}\nU['x'] = 1 / 0\ndef f(): return T\n"
    )
    write(tmp_path, {"a.py": text})
    assert value(cut(tmp_path, "a.py", "f")) == {"a": 1, "b": 2, "c": 3, "d": 3}


def test_what_decorators_register_is_kept(tmp_path: Path) -> None:
    text = (
        "class Store(dict):\n    def register(self, name):\n"
        "        return lambda f: self.setdefault(name, f)\n"
        "T = Store()\n@T.register('a')\ndef one(): return 1\ndef two(): return 2\n"
        "def f(): return T['a']()\n"
    )
    write(tmp_path, {"a.py": text, "b.py": "from a import T\ndef g(): return T['a']() + 1\n"})
    part = cut(tmp_path, "a.py", "f")
    assert value(part) == 1
    assert [i for i, _ in part.modules[0].keep] == [0, 1, 2, 4]
    assert value(cut(tmp_path, "b.py", "g")) == 2


@pytest.mark.parametrize(
    ("registers", "registered"),
    [
        ("def register(f):\n    T[f.__name__] = f\n    return f\n", "@register\ndef one(): return 1\n"),
        (
            "def register(name):\n    def wrap(f):\n        T[name] = f\n        return f\n    return wrap\n",
            "@register('one')\ndef one(): return 1\n",
        ),
        ("def register(f): T.update({f.__name__: f})\n", "def one(): return 1\nregister(one)\n"),
        (
            "class Base:\n    def __init_subclass__(cls): T['one'] = cls.value\nclass More(Base): value = int\n",
            "class One(More):\n    def value(): return 1\n",
        ),
    ],
)
def test_what_functions_of_the_file_register_is_kept(tmp_path: Path, registers: str, registered: str) -> None:
    text = f"T = {{}}\n{registers}{registered}def f(): return T['one']()\ndef g(): return 1 / 0\n"
    write(tmp_path, {"a.py": text})
    part = cut(tmp_path, "a.py", "f")
    assert value(part) == 1
    assert len(part.modules[0].text.splitlines()) > len(part.modules[0].keep)


def test_subclasses_that_a_base_class_keeps_are_kept(tmp_path: Path) -> None:
    text = (
        "class Base:\n    kinds = {}\n    def __init_subclass__(cls): cls.kinds[cls.__name__] = cls\n"
        "class One(Base): pass\nclass Two(Base): pass\ndef f(): return sorted(Base.kinds)\n"
    )
    write(tmp_path, {"a.py": text})
    assert value(cut(tmp_path, "a.py", "f")) == ["One", "Two"]


def test_a_function_that_changes_what_is_its_own_registers_nothing(tmp_path: Path) -> None:
    text = (
        "T = {}\ndef mark(f):\n    kept = {}\n    kept['a'] = f\n    f.b = 1\n    return f\n"
        "@mark\ndef one(): return 1 / 0\nx = mark(1 / 0)\ndef f(): return T\n"
    )
    write(tmp_path, {"a.py": text})
    part = cut(tmp_path, "a.py", "f")
    assert value(part) == {}
    assert [i for i, _ in part.modules[0].keep] == [0, 4]


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("from torch import nn", "nn.Module"),
        ("from torch import nn as neural", "neural.Module"),
        ("import torch as th", "th.nn.Module"),
        ("import torch.nn as tnn", "tnn.Sequential"),
        ("from torch.nn import Module as M", "M"),
        ("from torch.nn import *", "Module"),
        ("from torch.nn.modules import batchnorm", "batchnorm._BatchNorm"),
        ("from layers import Base", "Base"),
        ("import layers", "layers.Base"),
    ],
)
def test_a_module_class_is_known_by_what_its_base_is_imported_as(tmp_path: Path, imports: str, base: str) -> None:
    text = f"{imports}\nclass A({base}):\n    def forward(self, x): return x\n"
    write(tmp_path, {"a.py": text, "layers.py": "from torch.nn import Module as Base\n"})
    assert [item.name for item in find_objects(Slicer(tmp_path / "a.py"), None)] == ["A"]


@pytest.mark.parametrize(
    ("imports", "base"), [("import nn", "nn.Thing"), ("from torch import utils", "utils.Thing"), ("", "Module2")]
)
def test_other_classes_are_no_modules(tmp_path: Path, imports: str, base: str) -> None:
    write(tmp_path, {"a.py": f"{imports}\nclass A({base}):\n    def forward(self, x): return x\n"})
    assert find_objects(Slicer(tmp_path / "a.py"), None) == []


def test_a_tensor_function_is_known_by_what_torch_is_imported_as(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "import torch.nn.functional as func\ndef f(a, b): return func.relu(a) + b\n"})
    assert [item.name for item in find_objects(Slicer(tmp_path / "a.py"), None)] == ["f"]


def test_local_names_hide_those_of_the_module(tmp_path: Path) -> None:
    text = "x = y = z = 1 / 0\ndef f(x=5):\n    y = [z for z in range(x)]\n    return len(y) + (lambda z: z)(1)\n"
    write(tmp_path, {"a.py": text})
    assert value(cut(tmp_path, "a.py", "f")) == 6


def test_bases_decorators_and_class_bodies_are_needed(tmp_path: Path) -> None:
    text = """
    import functools
    def mark(cls): return cls
    class A:
        size = 3
    SIZE = 4
    @mark
    class B(A):
        other = SIZE
        @functools.cached_property
        def total(self): return self.size + self.other
    def f(): return B().total
    """
    write(tmp_path, {"a.py": text})
    assert value(cut(tmp_path, "a.py", "f")) == 7


def test_conditional_definitions_stay_whole(tmp_path: Path) -> None:
    text = "try:\n    import not_installed as m\nexcept ImportError:\n    m = None\n"
    text += "if m is None:\n    A = 1\nelse:\n    A = 2\ndef f(): return A\n"
    write(tmp_path, {"a.py": text})
    assert value(cut(tmp_path, "a.py", "f")) == 1


def test_annotations_that_nothing_reads_need_nothing(tmp_path: Path) -> None:
    text = """
    from b import Config
    class A:
        def run(self, config: Config) -> Config.other: return config + 1
    def f(x: Config = 3): return A().run(x)
    """
    write(tmp_path, {"a.py": text, "b.py": "raise RuntimeError('for annotations only')\n"})
    part = cut(tmp_path, "a.py", "f")
    assert value(part) == 4
    with loaded(part) as module:
        assert module.f.__annotations__ == {"x": "Config"}


def test_annotations_that_a_decorator_reads_are_values(tmp_path: Path) -> None:
    text = """
    import functools
    class Config(int): pass
    @functools.singledispatch
    def f(x=0): return "any"
    @f.register
    def _(x: Config): return "config"
    def g(): return f(Config(1))
    """
    write(tmp_path, {"a.py": text})
    assert value(cut(tmp_path, "a.py", "g")) == "config"


def test_expressions_of_arguments_are_part_of_the_slice(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "WIDTH = 3\ndef other(): return WIDTH\ndef f(): return 1\n"})
    with loaded(cut(tmp_path, "a.py", "f", "other() + len('x')")) as module:
        assert eval("other()", vars(module)) == 3


def test_tracebacks_show_the_files_own_lines(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "\n\nUNUSED = 1\n\ndef f():\n    return 1 / 0\n"})
    with pytest.raises(ZeroDivisionError) as caught:
        value(cut(tmp_path, "a.py", "f"))
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.line) == (str(tmp_path / "a.py"), 6, "return 1 / 0")


def test_a_module_of_the_same_name_is_put_back(tmp_path: Path) -> None:
    import json

    write(tmp_path, {"json.py": "def f(): return 'mine'\n"})
    assert value(cut(tmp_path, "json.py", "f")) == "mine"
    assert sys.modules["json"] is json


def test_a_folder_beside_the_file_does_not_stand_for_torch(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "import torch\ndef f(): return torch\n", "torch.py": "raise RuntimeError"})
    assert [m.name for m in cut(tmp_path, "a.py", "f").modules] == ["a"]


def test_text_can_stand_for_the_file_and_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "b.py": "g = 1 / 0\n"})
    part = Slicer(tmp_path / "a.py", "from b import g\ndef f(): return g\n", lambda path: "g = 5\n").cut("f")
    assert value(part) == 5


def test_a_broken_file_is_a_source_error_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "x = 1\ndef f(:\n"})
    with pytest.raises(SourceError) as caught:
        Slicer(tmp_path / "a.py")
    assert caught.value.line == 2


def test_a_broken_neighbour_fails_only_when_it_is_imported(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "def f(): return 1\ndef g():\n    import b\n", "b.py": "def ("})
    assert value(cut(tmp_path, "a.py", "f")) == 1


def test_a_variable_of_a_comprehension_hides_nothing_around_it(tmp_path: Path) -> None:
    text = """
    x = 5
    squares = [x * x for x in range(3)]
    def f(): return sum([x for x in range(3)]) + x
    """
    write(tmp_path, {"a.py": text})
    part = cut(tmp_path, "a.py", "f")
    assert value(part) == 8


@pytest.mark.parametrize("module", [argparse, ast, inspect, typing], ids=lambda m: m.__name__)
def test_statements_bind_what_the_table_of_names_says(module: ModuleType) -> None:
    text = inspect.getsource(module)
    symbols = Symbols(text, ast.parse(text))
    for node in ast.walk(symbols.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
            outer = {n for s in ast.walk(node) if isinstance(s, ast.Global | ast.Nonlocal) for n in s.names}
            deleted = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
            names = {name for statement in node.body for name in bound(statement)}
            assert (names | parameters) - outer - deleted >= symbols.bound(node) - outer - deleted, node.name
            assert names - outer <= symbols.bound(node), node.name


def test_a_script_of_examples_imports_the_package_beside_them(tmp_path: Path) -> None:
    """In the project's root and in its ``src``, in folders without an ``__init__`` too; not outside of a project."""
    files = {"examples/mnist/train.py": "", "src/core/net.py": "A = 1\n", "models/parts/unet.py": "B = 2\n"}
    files["models/parts/other.py"] = "from models.parts.unet import B\nC = B\n"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    script = tmp_path / "examples/mnist/train.py"
    assert find_workspace(script).find("core.net") is None
    (tmp_path / "pyproject.toml").touch()
    workspace = find_workspace(script)
    assert workspace.find("core.net") == tmp_path / "src/core/net.py"
    script.write_text("from models.parts.other import C\nfrom core.net import A\n\ndef f(x): return x + A + C\n")
    kept = {module.name for module in Slicer(script).cut("f").modules}
    assert {"core.net", "models.parts.other", "models.parts.unet"} <= kept
