"""The user's own fixes: kept from real checks, found again as theirs, without paths, and gone when deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from t2j_lsp.assist.judging import CandidateFailure
from t2j_lsp.cli import main
from t2j_lsp.contract import T2JError
from t2j_lsp.fixes.own_fixes import ObjectProgram, captured, cut, fixes_folder, load, save, without_paths
from t2j_lsp.fixes.record import Example

pytestmark = pytest.mark.usefixtures("warm_workers")
TORCH = """\
import torch
import torch.nn.functional as F

TABLE = "/home/someone/data/table.npz"  # see ~/notes/todo.md
UNUSED = 3


def f(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x) * len(TABLE)


def g(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)
"""
RIGHT = """\
import jax

TABLE = "/home/someone/data/table.npz"  # see ~/notes/todo.md
UNUSED = 3


def f(x: jax.Array) -> jax.Array:
    return jax.nn.gelu(x, approximate=False) * len(TABLE)


def g(x: jax.Array) -> jax.Array:
    return jax.nn.relu(x)
"""
WRONG = RIGHT.replace(", approximate=False", "")
FAILURE = CandidateFailure("raises", "NameError: name 'a' is not defined", (1, 2))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("T2J_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    written = {"net.py": TORCH, "wrong.py": WRONG, "right.py": RIGHT}
    for name, text in written.items():
        (tmp_path / name).write_text(text)
    return [str(tmp_path / name) for name in written]


def program(text: str) -> ObjectProgram:
    return ObjectProgram(text, {number: number for number in range(1, text.count("\n") + 1)})


def made(before: str, after: str, why: str = "") -> Example:
    return captured("Net", program("x = 1\n"), program(before), program(after), FAILURE, why)


def test_what_both_runs_showed_is_kept_listed_shown_found_and_deleted(
    data: Path, files: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["fixes", "--keep", *files, "--object", "f", "--why", "GELU is exact in PyTorch."]) == 0
    (path,) = fixes_folder().iterdir()
    identity = path.stem
    assert capsys.readouterr().out == f"kept {identity}\n" and path.is_relative_to(data)

    (example,) = load()
    (bug,) = example.errors
    assert bug.origin == "captured" and bug.fix_info == "GELU is exact in PyTorch."
    assert bug.error_code.strip() == "return jax.nn.gelu(x) * len(TABLE)"
    assert "approximate=False" in bug.fixed_code and bug.error.startswith("eval output differs by ")
    assert bug.verification is not None and bug.verification.outcome == "differs"
    lines = example.input_code.splitlines(), example.weak_output.splitlines()
    first = bug.verification.first_difference
    assert first[0] and first[1]
    assert "gelu" in lines[0][first[0] - 1] and "gelu" in lines[1][first[1] - 1]
    assert "UNUSED" not in example.input_code and "def g" not in example.fix_output
    assert (
        "someone" not in path.read_text() and "notes" not in path.read_text() and str(tmp_path) not in path.read_text()
    )

    assert main(["fixes", "--mine"]) == 0
    assert identity in capsys.readouterr().out
    assert main(["fixes", "--show", identity]) == 0
    shown = capsys.readouterr().out
    assert f"yours: {identity}" in shown and "F.gelu(x)" in shown
    assert main(["fixes", "gelu", "exact", "table", "--limit", "5", "--json", "-"]) == 0
    output = {row["id"]: row["yours"] for row in json.loads(capsys.readouterr().out)["fixes"]}
    assert output[identity] is True and False in output.values()

    assert main(["check", files[0], files[1], "--object", "f", "--json", "-"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["objects"]
    assert [row["id"] for row in one["similar"] if row["yours"]] == [identity]

    assert main(["fixes", "--delete", identity]) == 0
    assert load() == () and list(fixes_folder().iterdir()) == []
    assert main(["fixes", "--delete", identity]) == 2


def test_only_what_was_different_and_is_equivalent_is_kept(
    data: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fixes", "--keep", files[0], files[2], files[1]]) == 2
    said = capsys.readouterr().err
    assert "nothing is kept" in said and "f equivalent, then different" in said and "g equivalent, then" in said
    assert load() == ()


def test_a_fix_that_adds_or_takes_lines_stands_with_those_around_it() -> None:
    added = made("def f(x):\n    return x\n", "def f(x):\n    x = x + 1\n    return x\n").errors[0]
    assert added.error_code == "def f(x):\n" and added.fixed_code == "def f(x):\n    x = x + 1\n"
    taken = made("def f(x):\n    x = x + 1\n    return x\n", "def f(x):\n    return x\n").errors[0]
    assert (taken.error_code, taken.fixed_code) == (added.fixed_code, added.error_code)


def test_a_fix_whose_lines_stand_elsewhere_too_is_told_from_them() -> None:
    before = "def f(x):\n    a = 1\n    return x\n\n\ndef g(x):\n    a = 2\n    return x\n"
    example = made(before, before.replace("a = 2", "a = 1"))
    assert example.weak_output == before and example.fix_output.count(example.errors[0].fixed_code) == 1


def test_without_words_a_fix_says_what_became_of_its_line() -> None:
    assert made("y = f(x)\n", "y = g(x)\n").errors[0].fix_info == "In Net, `y = f(x)` became `y = g(x)`."


def test_what_was_not_changed_is_no_fix() -> None:
    with pytest.raises(T2JError, match="nothing was changed"):
        made("y = f(x)\n", "y = f(x)\n")


def test_no_prompt_holds_them(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = "import torch\n\n\ndef slope(y: torch.Tensor):\n    return torch.ops.aten.cumsum(y, dim=1)\n"
    (tmp_path / "slope.py").write_text(refused)
    right = "def slope(y):\n    return jnp.cumsum(y, axis=1)  # MINE\n"
    save(captured("slope", program(refused), program(right.replace("1)", "0)")), program(right), FAILURE, "MINE too"))
    assert main(["fixes", "cumsum", "MINE", "--limit", "1"]) == 0
    assert "MINE" in capsys.readouterr().out
    assert main(["prompt", str(tmp_path / "slope.py")]) == 0
    shown = capsys.readouterr().out
    assert "torch.ops.aten.cumsum(y, dim=1)" in shown and '"Error_Code"' in shown and "MINE" not in shown


def test_a_file_that_is_no_fix_is_left_out(data: Path) -> None:
    save(made("y = f(x)\n", "y = g(x)\n"))
    (fixes_folder() / "broken.json").write_text("{")
    assert [example.object for example in load()] == ["Net"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('x = "/home/me/data/a.npz"\n', 'x = "a.npz"\n'),
        ("x = '~/a/b.txt'  # from C:\\\\Users\\\\me\\\\b.txt\n", "x = 'b.txt'  # from b.txt\n"),
        ("y = (a)/b/c\n", "y = (a)/b/c\n"),
        ('u = "https://host/page/x"\n', 'u = "https://host/page/x"\n'),
        ('def f():\n    """Reads\n    /srv/data/x.bin\n    """\n', 'def f():\n    """Reads\n    x.bin\n    """\n'),
        ("no python: /etc/t2j/x.toml (", "no python: x.toml ("),
    ],
)
def test_paths_are_their_last_part_only(text: str, clean: str) -> None:
    assert without_paths(text) == clean


def test_an_object_that_a_file_has_not_is_not_cut(tmp_path: Path) -> None:
    assert cut(tmp_path / "a.py", "def f(x):\n    return x\n", "g") is None
