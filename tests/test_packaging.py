"""Wheel, sdist and editable install: each finds rules and helpers, and converts with nothing else installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import libcst
import pyflakes
import pytest

ROOT = Path(__file__).resolve().parents[1]
CAT = "import torch\n\n\ndef f(a: torch.Tensor):\n    return torch.cat([a, a], dim=1)\n"

EDITABLE = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"
# -S leaves out site-packages: the folder under test, libcst, pyflakes and the standard library are all there is.
CONVERT = """
import site, sys
site.addsitedir(sys.argv[1])
sys.path.append(sys.argv[3])
import t2j_lsp
from t2j_lsp import plugins
from t2j_lsp.cli import main
assert len(plugins.load_rules()) > 3 and plugins.helper_sources(), "no rules"
print(t2j_lsp.__file__, file=sys.stderr)
sys.exit(main(["convert", sys.argv[2]]))
"""


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    return path


def installed(wheel: Path, target: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel)
    run(*pip)
    return target


def converts_from(target: Path, scratch: Path) -> str:
    """Convert a file with nothing but ``target``, libcst and pyflakes installed; where the package was loaded from."""
    source = scratch / "cat.py"
    source.write_text(CAT)
    needed = scratch / "needed"
    needed.mkdir()
    for package in (libcst, pyflakes):
        (needed / package.__name__).symlink_to(Path(package.__path__[0]))
    done = run(sys.executable, "-I", "-S", "-c", CONVERT, target, source, needed)
    assert "jnp.concatenate([a, a], axis=1)" in done.stdout
    return done.stderr.splitlines()[0]


def expected_files() -> set[str]:
    """What a wheel has to hold, from what stands in the checkout."""
    homes = {"t2j_lsp": "t2j_lsp", "rules": "t2j_lsp/rules", "retrieval": "t2j_lsp/retrieval"}
    return {
        f"{inside}/{file.relative_to(ROOT / home).as_posix()}"
        for home, inside in homes.items()
        for file in (ROOT / home).rglob("*")
        if file.suffix in (".py", ".html") and "__pycache__" not in file.parts
    }


def test_the_wheel_holds_the_package_with_rules_and_retrieval_inside_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    info = {name for name in names if ".dist-info/" in name}
    assert names - info >= expected_files()
    assert {name.split("/")[0] for name in names - info} == {"t2j_lsp"}
    assert {"t2j_lsp/rules/__init__.py", "t2j_lsp/retrieval/__init__.py", "t2j_lsp/plugins.py"} <= names
    assert any(name.startswith("t2j_lsp/rules/helpers/") for name in names)
    assert {"t2j_lsp/retrieval/fixed_bugs.jsonl", "t2j_lsp/retrieval/terms.jsonl"} <= names
    kinds = (".py", ".html", ".jsonl", "py.typed")
    own_tests = ("/tests/", "conftest", "/test_")
    assert not [n for n in names - info if any(part in n for part in own_tests) or not n.endswith(kinds)]


def test_the_wheel_names_its_license_and_holds_the_text(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA")]
        (text,) = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
    assert "License-Expression: Apache-2.0" in metadata
    assert text == (ROOT / "LICENSE").read_text()


def test_the_sdist_holds_what_the_tests_and_the_commands_need(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "Makefile",
        "rules/__init__.py",
        "retrieval/__init__.py",
    } <= names
    assert {"tests/test_packaging.py", "examples/residual_net.py"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/"))]


def test_an_installed_wheel_converts(wheel: Path, tmp_path: Path) -> None:
    target = installed(wheel, tmp_path / "site")
    assert converts_from(target, tmp_path).startswith(str(target))


def test_an_installed_wheel_has_the_command(wheel: Path, tmp_path: Path) -> None:
    target = installed(wheel, tmp_path / "site")
    done = run(target / "bin" / "t2j", "--version", PYTHONPATH=str(target))
    assert done.stdout.startswith("t2j ")


def test_an_editable_install_converts_from_the_checkout(tmp_path: Path) -> None:
    name = run(sys.executable, "-c", EDITABLE, tmp_path).stdout.splitlines()[-1]
    target = installed(tmp_path / name, tmp_path / "site")
    assert converts_from(target, tmp_path).startswith(str(ROOT / "t2j_lsp"))


def test_every_dependency_is_imported_and_every_import_is_a_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {requirement.split(">")[0] for requirement in project["dependencies"]}
    assert declared == {"libcst", "numpy", "psutil", "pyflakes", "rich"}
    text = "\n".join(file.read_text() for file in (ROOT / "t2j_lsp").rglob("*.py"))
    for name in declared:
        assert f"import {name}" in text or f"from {name}" in text
