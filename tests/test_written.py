"""What t2j wrote is remembered, bounded, and the base of a merge into a file that was edited since."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from t2j_lsp.cli import main
from t2j_lsp.contract import T2JError
from t2j_lsp.files import written
from t2j_lsp.files.sources import write_output

FIRST = "import torch\n\n\ndef f(a: torch.Tensor):\n    return torch.cat([a, a], dim=1)\n"
SECOND = FIRST + "\n\ndef g(a: torch.Tensor):\n    return torch.cat([a, a], dim=2)\n"
OTHER = FIRST.replace("dim=1", "dim=2")


pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A conversion with a docstring put in by hand, and ``net.py`` beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FIRST)
    assert main(["convert", "net.py", "-o", "out.py"]) == 0
    target = tmp_path / "out.py"
    target.write_text('"""Mine."""\n' + target.read_text())
    return target


def test_a_refused_conversion_names_both_ways_on(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["convert", "net.py", "-o", "out.py"]) == 2
    assert "use --merge to merge the new conversion into it, or --force to replace it" in capsys.readouterr().err
    assert edited.read_text().startswith('"""Mine."""\n')


def test_a_new_conversion_is_merged_into_the_edited_file(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("net.py").write_text(SECOND)
    assert main(["convert", "net.py", "-o", "out.py", "--merge", "--json", "report.json"]) == 0
    text = edited.read_text()
    assert text.startswith('"""Mine."""\n') and "axis=2" in text and "axis=1" in text
    assert "out.py: merged with what was edited there\n" in capsys.readouterr().err
    assert json.loads(Path("report.json").read_text())["conflicts"] == 0
    # The edit is still an edit: it is neither lost nor taken for what t2j wrote.
    assert main(["convert", "net.py", "-o", "out.py"]) == 2
    Path("net.py").write_text(FIRST)
    assert main(["convert", "net.py", "-o", "out.py", "--merge"]) == 0
    assert edited.read_text().startswith('"""Mine."""\n') and "axis=2" not in edited.read_text()


def test_conflicts_are_marked_counted_and_have_to_be_resolved(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited.write_text(edited.read_text().replace("axis=1", "axis=-1"))
    Path("net.py").write_text(OTHER)
    assert main(["convert", "net.py", "-o", "out.py", "--merge", "--json", "report.json"]) == 1
    text = edited.read_text()
    assert text.index("<<<<<<<") < text.index("axis=-1") < text.index("=======") < text.index("axis=2")
    assert "1 conflict marked <<<<<<<" in capsys.readouterr().err
    assert json.loads(Path("report.json").read_text())["conflicts"] == 1
    assert main(["convert", "net.py", "-o", "out.py", "--merge"]) == 2
    assert "conflict of an earlier merge at line" in capsys.readouterr().err
    assert edited.read_text() == text


def test_a_file_that_is_not_from_t2j_is_not_merged(edited: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.py").write_text("mine\n")
    assert main(["convert", "net.py", "-o", "other.py", "--merge"]) == 2
    assert "what t2j wrote there is not known" in capsys.readouterr().err
    assert main(["convert", "net.py", "-o", "other.py"]) == 2
    assert "use --force" in capsys.readouterr().err
    assert Path("other.py").read_text() == "mine\n"


def test_a_folder_is_merged_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    Path("src/a.py").write_text(FIRST)
    Path("src/b.py").write_text(FIRST)
    assert main(["convert", "src", "-o", "out"]) == 0
    Path("out/a.py").write_text("# mine\n" + Path("out/a.py").read_text())
    Path("out/b.py").write_text(Path("out/b.py").read_text().replace("axis=1", "axis=-1"))
    Path("src/a.py").write_text(SECOND)
    Path("src/b.py").write_text(OTHER)
    assert main(["convert", "src", "-o", "out", "--merge", "--json", "report.json"]) == 1
    assert Path("out/a.py").read_text().startswith("# mine\n") and "axis=2" in Path("out/a.py").read_text()
    assert "<<<<<<< as edited" in Path("out/b.py").read_text()
    assert json.loads(Path("report.json").read_text())["conflicts"] == 1


def test_a_merge_keeps_the_encoding_and_the_line_ends_of_the_file(tmp_path: Path) -> None:
    target = tmp_path / "out.py"
    write_output(target, b"# coding: latin-1\r\na = 1\r\nb = 2\r\n")
    target.write_bytes(b"# coding: latin-1\r\na = '\xe9'\r\nb = 2\r\n")
    merged = write_output(target, b"# coding: latin-1\nb = 2\nc = '\xe8'\n".replace(b"b", b"a = 1\nb", 1), merging=True)
    assert merged is not None and not merged.conflicts
    assert target.read_bytes() == b"# coding: latin-1\r\na = '\xe9'\r\nb = 2\r\nc = '\xe8'\r\n"


def test_a_notebook_is_merged_only_without_conflicts(tmp_path: Path) -> None:
    def cells(*sources: str) -> bytes:
        return json.dumps({"cells": [{"source": source} for source in sources]}, indent=1).encode()

    target = tmp_path / "out.ipynb"
    write_output(target, cells("a", "b"))
    target.write_bytes(cells("mine", "b"))
    write_output(target, cells("a", "new"), merging=True)
    assert target.read_bytes() == cells("mine", "new")
    with pytest.raises(T2JError, match="a notebook can't hold conflict marks"):
        write_output(target, cells("theirs", "new"), merging=True)
    assert target.read_bytes() == cells("mine", "new")


def test_the_base_is_the_text_that_is_nearest_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.py"
    texts = [f"head\n{name}\ntail {name}\n".encode() for name in ("one", "two", "three")]
    for text in texts:
        written.remember(path, text)
    # An editor was offered the third text and threw it away: the second is what was edited.
    assert written.base_of(path, b"head\ntwo\nmine\ntail two\n") == texts[1]
    assert written.base_of(tmp_path / "none.py", b"") is None
    assert all(written.is_written(path, text) for text in texts)


def test_what_is_remembered_is_bounded(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "MAX_TEXTS", 20)
    monkeypatch.setattr(written, "MAX_TEXT", 50)
    path = tmp_path / "out.py"
    for number in range(60):
        written.remember(path, f"{number}\n".encode())
        kept = state / "texts" / written.digest(f"{number}\n".encode())
        os.utime(kept, (number, number))
    assert len(os.listdir(state / "texts")) <= 20
    assert written.base_of(path, b"59\n") == b"59\n"
    assert len((state / "written" / written.digest(os.fsencode(path))).read_text().split()) == written.HISTORY
    written.remember(tmp_path / "large.py", b"x" * 51)
    assert written.is_written(tmp_path / "large.py", b"x" * 51) and not written.has_base(tmp_path / "large.py")


def test_a_text_that_was_damaged_is_no_base(tmp_path: Path, state: Path) -> None:
    path = tmp_path / "out.py"
    written.remember(path, b"one\n")
    (kept,) = (state / "texts").iterdir()
    kept.write_bytes(kept.read_bytes()[:-6])
    assert written.base_of(path, b"one, edited\n") is None
