"""The benchmark that compares outputs with those of another revision, on a repository with a t2j of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.outputs import ROOT, differences, outputs, print_counts, sources, unpack

OTHER = """
from types import SimpleNamespace

def convert_file(path, options):
    text = path.read_text()
    if "refused" in text:
        raise ValueError("no such thing")
    return SimpleNamespace(translation=SimpleNamespace(code=text.replace("torch", options.helpers), findings=[]))
"""
CONTRACT = """
from types import SimpleNamespace

Options = SimpleNamespace
class SourceError(Exception): pass
"""


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The files of a revision that converts otherwise."""
    repository, unpacked = tmp_path / "repository", tmp_path / "unpacked"
    package = repository / "t2j_lsp"
    package.mkdir(parents=True)
    for name, text in (("__init__.py", ""), ("api.py", OTHER), ("contract.py", CONTRACT)):
        (package / name).write_text(text)
    git = ("git", "-c", "user.name=t2j", "-c", "user.email=t2j@localhost")
    for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one")):
        subprocess.run((*git, *command), cwd=repository, check=True)
    (package / "api.py").unlink()
    unpack("HEAD", unpacked, repository)
    return unpacked


def test_what_differs_is_shown_with_findings(tmp_path: Path, other: Path) -> None:
    for name, text in (("a.py", "x = 1\n"), ("b.py", "import torch\nx = torch.ones(2)\n"), ("c.py", "refused = 1\n")):
        (tmp_path / name).write_text(text)
    paths = list(sources([tmp_path / "a.py", tmp_path / "b.py", tmp_path / "c.py"]))
    changed = dict(differences(paths, outputs(other, paths), outputs(ROOT, paths)))
    assert list(changed) == paths[1:]
    assert "-x = inline.ones(2)\n" in changed[paths[1]] and "+x = jnp.ones(2)\n" in changed[paths[1]]
    assert "-# failed: ValueError: no such thing\n" in changed[paths[2]]


def test_the_same_checkout_makes_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import torch\nx = torch.sparse_coo_tensor(i, v).storage()\n")
    before, after = outputs(ROOT, [path]), outputs(ROOT, [path], "import")
    assert "# gap: line 2: " in before[0] and dict(differences([path], before, after)) == {}


def test_gaps_and_lines_are_counted_of_files_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    before = ["x = torch.a()\n# gap: line 1: no\n# gap: line 2: no\n# note: line 3: yes\n", "x = 1\n", "y = 2\n"]
    after = ["# why\n\nx = jnp.a()\nprint(x)\n", "x = 1\n", "y = 3\n# gap: line 1: no\n"]
    print_counts([Path("a.py"), Path("b.py"), Path("c.py")], before, after)
    printed = capsys.readouterr().out
    assert [line.split() for line in printed.splitlines()[:2]] == [
        ["0", "->", "1", "gaps", "1", "->", "1", "lines", "c.py"],
        ["2", "->", "0", "gaps", "1", "->", "2", "lines", "a.py"],
    ]
    assert printed.splitlines()[2:] == ["gaps of files that differ: 2 -> 1", "lines of files that differ: 2 -> 3"]
