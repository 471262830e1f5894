"""What makes a helper copyable: names of its own over the whole folder, and allowed imports only."""

import ast
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "rules" / "helpers"
FILES = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")
IMPORTS = {"import inspect", "import itertools", "import pickle", "import zipfile", "from os import getenv",
    "from collections import OrderedDict",
    "from PIL import Image",
    "import functools", "import jax", "import jax.numpy as jnp", "import math", "import numpy as np", "import optax",
    "from flax import nnx", "from jax.flatten_util import ravel_pytree",
    "from collections import OrderedDict, UserDict, namedtuple",
    "from contextlib import nullcontext", "from contextlib import contextmanager, nullcontext",
    "import hashlib", "import os", "import re", "import shutil", "import tempfile",
    "from urllib.parse import urlparse", "from urllib.request import urlopen",
}  # fmt: skip
MODULES = {"collections.abc", "jax.sharding", "typing"}


def definitions(path: Path) -> list[ast.stmt]:
    body = ast.parse(path.read_text()).body
    return [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign)]


def names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def test_names_are_unique_over_the_folder() -> None:
    counts = Counter(name for path in FILES for node in definitions(path) for name in names(node))
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_imports_only_what_the_output_may_import(path: Path) -> None:
    siblings = {other.stem for other in FILES}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            assert node.module in siblings
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            assert not any(alias.asname for alias in node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            assert ast.unparse(node) in IMPORTS
