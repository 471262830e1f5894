"""What a worker may read, and the plan of the file system that it sees."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from t2j_lsp.check.process.containment import projects
from t2j_lsp.check.program.project import is_too_wide
from t2j_lsp.check.workers.containment.folders import Folders, folders_of
from t2j_lsp.check.workers.view import view_of


@pytest.mark.parametrize(
    ("folder", "wide"),
    [
        ("/", True),
        ("/home", True),
        ("/home/someone", True),
        ("/home/someone/project", False),
        ("/root", True),
        ("/tmp", True),
        ("/tmp/project", False),
        ("/srv/me", True),
        ("/srv", True),
        ("/srv/me/project", False),
        ("/srv/you", False),
    ],
)
def test_a_home_directory_and_what_is_above_one_is_no_project(folder: str, wide: bool) -> None:
    assert is_too_wide(folder, "/srv/me") is wide


def test_a_file_right_in_the_home_directory_has_no_folder_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "project").mkdir(parents=True)
    (tmp_path / "home" / "project" / "setup.py").touch()
    (tmp_path / "setup.cfg").touch()
    inside = tmp_path / "home" / "project" / "net.py"
    assert projects(tmp_path / "home" / "net.py") == []
    assert projects(inside, inside.with_name("net_jax.py")) == [inside.parent]


def test_packages_that_are_installed_in_place_are_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mapped", "redirected"):
        (tmp_path / name).mkdir()
    (tmp_path / "redirected" / "__init__.py").touch()
    finder = ModuleType("__editable___mapped_0_1_finder")
    finder.MAPPING = {"mapped": str(tmp_path / "mapped")}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, finder.__name__, finder)

    class Redirecting:
        _redirections: ClassVar = {"redirected": str(tmp_path / "redirected" / "__init__.py")}

        @staticmethod
        def find_spec(*_: object) -> None:
            return None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Redirecting])
    readable = folders_of((), (), str(tmp_path / "home"), False).readable
    assert {str(tmp_path / "mapped"), str(tmp_path / "redirected")} <= {*readable}
    assert {sys.prefix, sys.base_prefix} <= {*readable}


def test_a_path_through_links_is_shown_where_it_is_named_and_where_it_lies(tmp_path: Path) -> None:
    real, folder = tmp_path / "real", tmp_path / "folder"
    (real / "data").mkdir(parents=True)
    folder.mkdir()
    (folder / "one").symlink_to("../real")
    (folder / "two").symlink_to(folder / "one")
    named = str(folder / "two" / "data")
    view = view_of(Folders((named, str(real / "data" / "below")), (str(real / "scratch"),), (), "/root"))
    assert dict(view.links) == {str(folder / "two"): str(folder / "one"), str(folder / "one"): "../real"}
    assert view.mounts == ((str(real / "data"), False), (str(real / "scratch"), True))


def test_a_folder_to_write_in_stands_out_of_one_to_read(tmp_path: Path) -> None:
    view = view_of(Folders((str(tmp_path), "/proc/cpuinfo", "/dev/shm/project"), (str(tmp_path / "own"),), (), "/root"))
    assert view.mounts == (("/dev/shm/project", False), (str(tmp_path), False), (str(tmp_path / "own"), True))
