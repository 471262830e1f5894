"""Reading and writing of source files: encodings, neighbours, and what may be written over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from t2j_lsp.contract import SourceError, T2JError
from t2j_lsp.files.sources import decode, neighbours, python_files, read_source, write_output

pytestmark = pytest.mark.usefixtures("state")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\n", "x = 1\n"),
        (b"", ""),
        (b"\xef\xbb\xbfx = 1\r\n", "x = 1\r\n"),
        ("# coding: latin-1\nx = 'é'\n".encode("latin-1"), "# coding: latin-1\nx = 'é'\n"),
        ("#!/usr/bin/python\n# -*- coding: cp1252 -*-\nx = '€'".encode("cp1252"), None),
        ("x = '😀'\r\n".encode(), "x = '😀'\r\n"),
    ],
)
def test_a_file_is_decoded_as_python_does_and_encoded_back_to_the_same_bytes(data: bytes, text: str | None) -> None:
    source = decode(data)
    assert text is None or source.text == text
    assert not source.text.startswith("\ufeff")
    assert source.encode(source.text) == data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x = 1\ny = '\xe9'\n", "line 2: byte 0xe9"),
        (b"# coding: klingon\n", "unknown encoding: klingon"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem"),
    ],
)
def test_bytes_that_do_not_fit_the_encoding_say_where(data: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        decode(data)


def test_output_that_the_encoding_lacks_is_an_error_and_not_a_question_mark() -> None:
    with pytest.raises(T2JError, match="can't encode"):
        decode(b"# coding: ascii\n").encode("# coding: ascii\nx = 'é'\n")


@pytest.mark.parametrize("path", ["missing.py", "."])
def test_a_file_that_cannot_be_read_is_a_source_error(tmp_path: Path, path: str) -> None:
    with pytest.raises(SourceError, match=r"no such file|is a directory|permission"):
        read_source(tmp_path / path)


def test_a_second_conversion_replaces_the_first(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out.py"
    write_output(target, b"one")
    write_output(target, b"two")
    assert target.read_bytes() == b"two"
    assert os.listdir(target.parent) == ["out.py"]


def test_a_file_of_the_user_is_kept_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / "out.py"
    target.write_bytes(b"mine")
    with pytest.raises(T2JError, match="--force"):
        write_output(target, b"theirs")
    assert target.read_bytes() == b"mine"
    write_output(target, b"theirs", force=True)
    assert target.read_bytes() == b"theirs"


def test_an_output_that_was_edited_since_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "out.py"
    write_output(target, b"one")
    target.write_bytes(b"one, edited")
    with pytest.raises(T2JError, match="--force"):
        write_output(target, b"two")
    assert target.read_bytes() == b"one, edited"


@pytest.mark.parametrize("current", [b"", b"same"])
def test_an_empty_or_identical_file_may_be_written(tmp_path: Path, current: bytes) -> None:
    target = tmp_path / "out.py"
    target.write_bytes(current)
    write_output(target, b"same")
    assert target.read_bytes() == b"same"


def test_a_link_stays_a_link_and_modes_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    write_output(real, b"one")
    real.chmod(0o750)
    link.symlink_to(real)
    write_output(link, b"two")
    assert link.is_symlink()
    assert real.read_bytes() == b"two"
    assert real.stat().st_mode & 0o777 == 0o750


def test_a_device_is_written_through() -> None:
    write_output(Path(os.devnull), b"gone")
    assert not Path(os.devnull).is_file()


def test_without_a_folder_for_state_the_output_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, where the folder should be")
    monkeypatch.setenv("T2J_STATE", str(blocked))
    target = tmp_path / "out.py"
    write_output(target, b"one")
    assert target.read_bytes() == b"one"
    with pytest.raises(T2JError, match="--force"):
        write_output(target, b"two")


def test_neighbours_are_found_as_python_finds_them(tmp_path: Path) -> None:
    for name, text in {
        "top/__init__.py": "TOP",
        "top/layers.py": "LAYERS",
        "top/models/__init__.py": "MODELS",
        "top/models/net.py": "NET",
        "top/models/head.py": "HEAD",
        "other.py": "OTHER",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    resolve = neighbours(tmp_path / "top/models/net.py")
    assert resolve(1, "head") == "HEAD"
    assert resolve(1, "") == "MODELS"
    assert resolve(2, "layers") == "LAYERS"
    assert resolve(0, "top.layers") == "LAYERS"
    assert resolve(0, "other") == "OTHER"
    assert resolve(0, "head") == "HEAD"
    assert resolve(0, "numpy") is None
    assert resolve(90, "x") is None


def test_a_folder_lists_its_python_files_and_no_caches_environments_or_outputs(tmp_path: Path) -> None:
    kept = ["a.py", "b.ipynb", "package/__init__.py", "package/c.py"]
    left_out = ["a.txt", ".hidden/x.py", "__pycache__/x.py", "env/lib/x.py", "out/a.py", "package/.x.py"]
    for name in [*kept, *left_out]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    result = [str(path.relative_to(tmp_path)) for path in python_files(tmp_path, outside=tmp_path / "out")]
    assert sorted(result) == kept
