"""A server in an interpreter without numpy, with only the packages that an editor's extension brings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from .client import ROOT, Client
from .pairs import Pair

BROUGHT = ("libcst", "pygls", "lsprotocol", "cattrs", "cattr", "attrs", "attr", "typing_extensions")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment in which nothing is installed."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


@pytest.fixture
def client(bare: Path, tmp_path: Path) -> Iterator[Client]:
    libs = tmp_path / "libs"
    libs.mkdir()
    for name in BROUGHT:
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None, name
        file = Path(spec.origin)
        whole = file.parent if file.name == "__init__.py" else file
        (libs / whole.name).symlink_to(whole)
    with Client(env={"PYTHONPATH": os.pathsep.join([str(ROOT), str(libs)])}, python=bare) as client:
        yield client


def test_it_serves_and_checks_with_the_numpy_of_the_jax_side(client: Client, tmp_path: Path) -> None:
    client.settings = {"check": {"delay": 0.0, "torchPython": sys.executable, "jaxPython": sys.executable}}
    client.initialize(None, None, {"trusted": True, "settings": client.settings})
    pair = Pair(client, tmp_path)
    assert client.command("t2j.check", pair.uri, timeout=240)["verdict"] == "equivalent"


def test_without_any_numpy_a_check_says_what_it_needs(client: Client, bare: Path, tmp_path: Path) -> None:
    client.settings = {}
    client.initialize(None, None, {"trusted": True, "settings": client.settings})
    pair = Pair(client, tmp_path)
    checked = client.command("t2j.check", pair.uri, timeout=240)
    needs = f"checks need numpy, torch, jax, flax and optax, and {bare} has no numpy"
    assert (checked["verdict"], checked["problem"]) == ("unchecked", needs)


def test_a_jax_side_without_jax_is_named(client: Client, bare: Path, tmp_path: Path) -> None:
    other = bare.parent / "python3"
    client.settings = {"check": {"delay": 0.0, "torchPython": sys.executable, "jaxPython": str(other)}}
    client.initialize(None, None, {"trusted": True, "settings": client.settings})
    pair = Pair(client, tmp_path)
    checked = client.command("t2j.check", pair.uri, timeout=240)
    assert checked["verdict"] == "unchecked"
    assert checked["problem"].startswith(f"a check can't start in {other}: the JAX side's interpreter needs")
