"""Every command and every piece of code in the README runs, and every link leads somewhere."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, without those that `make docs` fills in."""
    free = re.sub(r"<!-- (before|after): \w+ -->\n```python\n.*?```", "", README, flags=re.DOTALL)
    return re.findall(rf"^```{language}\n(.*?)^```", free, flags=re.DOTALL | re.MULTILINE)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the examples, and a `t2j` command that runs this checkout."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "examples", folder / "examples")
    command = folder / "bin" / "t2j"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m t2j_lsp "$@"\n')
    command.chmod(0o755)
    return folder


def run(command: str, project: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "T2J_STATE": str(project),
    }
    return subprocess.run(
        command, shell=True, cwd=project, env=environment, capture_output=True, text=True, timeout=900
    )


def test_the_readme_holds_commands_of_both_kinds() -> None:
    assert {"make demo", "make test"} <= set(COMMANDS)
    assert {command.split()[1] for command in COMMANDS if command.startswith("t2j ")} == {
        "convert",
        "check",
        "run",
        "explain",
        "coverage",
    }


def test_the_commands_run_in_their_order(project: Path) -> None:
    for command in COMMANDS:
        if command.startswith(("make ", "code ")):
            continue  # make's targets are looked at below; the extension's tests run what is about VS Code
        done = run(command, project)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_make_knows_every_target_that_the_readme_names() -> None:
    targets = {command.split()[1] for command in COMMANDS if command.startswith("make ")}
    targets |= set(re.findall(r"`make (\w+)`", README))
    assert targets == {"demo", "test", "thorough", "lint", "docs", "bench", "vsix", "vscode"}
    for target in sorted(targets):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_the_demo_ends_in_equivalent_and_then_finds_the_planted_mistake(project: Path) -> None:
    done = run("sh examples/demo.sh", project)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = done.stdout.split("\n==> ")[1:]
    before, after, checked, planted = steps
    assert "class ResidualNet(nn.Module):" in before
    assert "class ResidualNet(nnx.Module):" in after
    assert not re.search(r"^(import|from) torch", after, re.MULTILINE)
    assert checked.rstrip().splitlines()[-1] == "equivalent"
    assert planted.rstrip().splitlines()[-1] == "different"
    assert re.search(r"^ResidualBlock: \S", planted, re.MULTILINE), "the report says where"


def test_the_python_code_runs() -> None:
    (code,) = blocks("python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "import jax" in done.stdout
    assert not re.search(r"^(import|from) torch", done.stdout, re.MULTILINE)


def test_links_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
