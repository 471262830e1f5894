"""How far a code base's migration is: outlines of files, the state of each symbol, and verdicts that hold."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.cli import main
from t2j_lsp.contract import Coverage, Uncovered
from t2j_lsp.files.importers import used_elsewhere
from t2j_lsp.files.outline import notebook_outline, outline, text_digest
from t2j_lsp.lsp.paths import to_path, to_uri
from t2j_lsp.lsp.survey.process import form_of
from t2j_lsp.migration import state as migration
from t2j_lsp.migration import verdict_store
from t2j_lsp.migration.state import Migration, Surveyor, survey
from t2j_lsp.migration.verdict_store import digests_of, load, record, store_path

NET = """import torch
from torch import nn


class Base(nn.Module):
    pass


class Net(Base):
    pass


def f(x: torch.Tensor):
    return x


def plain(x):
    return x
"""
CONVERTED = """from flax import nnx


class Base(nnx.Module):
    pass


class Net(Base):
    # TODO(t2j): a gap
    pass


def f(x):
    return x
"""


pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def symbols(migration: Migration) -> dict[str, str]:
    (file,) = migration.files
    return {symbol.name: symbol.state for symbol in file.symbols}


def verdict(name: str, kind: str, what: str | None = None) -> dict[str, Any]:
    stages = {
        "spec": {"result": "pass", "max_abs_err": None, "max_rel_err": None},
        "numeric": {"result": "pass", "max_abs_err": 1e-12, "max_rel_err": 2e-13},
    }
    divergence = {"torch": None, "jax": None, "what": what} if what else None
    return {"name": name, "verdict": kind, "reason": None, "stages": stages, "divergence": divergence}


def check(root: Path, *verdicts: dict[str, Any], device: str = "cpu", coverage: Coverage | None = None) -> None:
    source, target = root / "net.py", root / "net_jax.py"
    about = {"device": device, "version": "1.2", "coverage": coverage}
    record(source, source.read_text(), target, target.read_text(), verdicts, **about)


# --- outlines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import torch\ndef f(x): return torch.abs(x)\ndef g(x): return x\n", {"f"}),
        ("import torch.nn as nn\nclass A(nn.Module): ...\nclass B(A): ...\nclass C: ...\n", {"A", "B"}),
        ("from torch.nn import functional as F\nasync def f(x): return F.relu(x)\n", {"f"}),
        ("from torch import *\ndef f(x): return abs(x)\n", {"f"}),
        ("try:\n    import torch\n    def f(x): return torch.abs(x)\nexcept ImportError:\n    def g(): ...\n", {"f"}),
        ("def f(x):\n    import torch\n    return torch.abs(x)\n", {"f"}),
        ("import torchvision\ndef f(x): return torchvision.ops(x)\n", set()),
        ('"""\nimport torch\n"""\ndef f(torch): return torch.abs(1)\n', set()),
        ("from .torch import nn\nclass A(nn.Module): ...\n", set()),
    ],
)
def test_definitions_that_use_torch_are_found(source: str, names: set[str]) -> None:
    assert {d.name for d in outline(source).definitions if d.torch} == names


def test_gaps_are_found_with_their_lines_and_reasons() -> None:
    text = "x = 1\n# TODO(t2j): one\ny = 2\n\n\nif x:\n    # TODO(t2j): two\n    y = '# TODO(t2j): none'\n"
    assert outline(text).gaps == ((2, "one"), (7, "two"))


def test_a_file_can_be_left_out_and_one_finding_does_not_leave_it_out() -> None:
    assert outline(f"# t2j: ignore-file\n{NET}").ignored
    assert not outline(f"# t2j: ignore-file[gap]\n{NET}").ignored


@pytest.mark.parametrize("text", ["def f(:\n", "x = '\0'\n", "(" * 1000])
def test_text_that_is_not_python_is_a_problem_and_no_error(text: str) -> None:
    assert outline(text).problem


@pytest.mark.parametrize("text", ["", "[]", '{"cells": 1}', '{"cells": [1]}', '{"cells": [{"cell_type": "code"}]}'])
def test_what_is_no_notebook_is_a_problem_and_no_error(text: str) -> None:
    assert notebook_outline(text).problem


# --- states -----------------------------------------------------------------------------------------------------------


def test_states_follow_the_conversion_and_its_gaps(root: Path) -> None:
    assert symbols(survey([root])) == {"Base": "not started", "Net": "not started", "f": "not started"}
    target = root / "net_jax.py"
    target.write_text(CONVERTED)
    state = survey([root])
    assert symbols(state) == {"Base": "converted", "Net": "gaps", "f": "converted"}
    (file,) = state.files
    assert (file.state, file.gaps, file.converted, file.name) == ("gaps", 1, target, "net.py")
    assert file.symbols[1].reason == "a gap" and file.symbols[1].gaps == 1
    target.write_text(CONVERTED.replace("    # TODO(t2j): a gap\n", ""))
    assert state.counts["gaps"] == 1 and survey([root]).counts["converted"] == 1
    target.write_text("# TODO(t2j): outside\n" + target.read_text())
    state = survey([root])
    assert set(symbols(state).values()) == {"converted"} and state.files[0].state == "gaps"


def test_a_mark_right_above_a_definition_belongs_to_it(root: Path) -> None:
    text = CONVERTED.replace("    # TODO(t2j): a gap\n", "").replace("def f", "# TODO(t2j): f stays\n@decorated\ndef f")
    (root / "net_jax.py").write_text(text)
    assert symbols(survey([root])) == {"Base": "converted", "Net": "converted", "f": "gaps"}


def test_what_the_conversion_lacks_is_not_started_and_one_that_is_broken_is_a_gap(root: Path) -> None:
    (root / "net_jax.py").write_text("class Net: ...\n")
    state = survey([root])
    assert symbols(state) == {"Base": "not started", "Net": "converted", "f": "not started"}
    assert state.files[0].state == "gaps" and state.files[0].symbols[0].reason == "net_jax.py has no Base"
    (root / "net_jax.py").write_text("<<<<<<< as edited\n")
    state = survey([root])
    assert set(symbols(state).values()) == {"gaps"}
    assert "net_jax.py can't be parsed: line 1" in str(state.files[0].symbols[0].reason)


def test_verdicts_hold_as_long_as_both_texts_do(root: Path) -> None:
    target = root / "net_jax.py"
    target.write_text(CONVERTED)
    check(root, verdict("Base", "equivalent"), verdict("Net", "equivalent"), verdict("f", "different", "y parts"))
    state = survey([root])
    # What is marked as a gap is one, whatever ran.
    assert symbols(state) == {"Base": "equivalent", "Net": "gaps", "f": "different"}
    (file,) = state.files
    assert file.state == "different" and file.symbols[2].reason == "y parts"
    about = file.symbols[0].verdict
    assert about is not None and (about.device, about.version, about.max_rel_err) == ("cpu", "1.2", 2e-13)
    assert about.stages == {"spec": "pass", "numeric": "pass"}
    for path in (target, root / "net.py"):
        text = path.read_text()
        path.write_text(text + "\n# edited\n")
        assert "equivalent" not in symbols(survey([root])).values()
        path.write_text(text)
        assert symbols(survey([root]))["Base"] == "equivalent"


def test_verdicts_hold_as_long_as_the_files_do_that_were_read_besides(root: Path) -> None:
    (root / "net_jax.py").write_text(CONVERTED)
    beside = root / "beside.py"
    beside.write_text("X = 1\n")
    source, target = root / "net.py", root / "net_jax.py"
    texts = source.read_text(), target, target.read_text()
    about = {"device": "cpu", "version": "1", "neighbours": digests_of([beside])}
    record(source, *texts, [verdict("f", "equivalent")], **about)
    surveyor = Surveyor()
    folders = {root: "_jax"}
    assert symbols(surveyor.survey(folders))["f"] == "equivalent"
    beside.write_text("X = 20\n")
    assert symbols(surveyor.survey(folders))["f"] == "converted"
    beside.write_text("X = 1\n")
    assert symbols(surveyor.survey(folders))["f"] == "equivalent"
    beside.unlink()
    assert symbols(surveyor.survey(folders))["f"] == "converted"


def test_all_equivalent_is_equivalent_and_unchecked_says_why(root: Path) -> None:
    (root / "net_jax.py").write_text(CONVERTED.replace("    # TODO(t2j): a gap\n", ""))
    check(root, verdict("Base", "equivalent"), verdict("Net", "equivalent"), verdict("f", "unchecked"))
    assert survey([root]).counts["converted"] == 1
    check(root, verdict("f", "equivalent"), device="gpu")
    state = survey([root])
    assert state.counts["equivalent"] == 1 and state.symbol_counts["equivalent"] == 3
    # A check that could not be made again refutes nothing.
    check(root, {**verdict("f", "unchecked"), "reason": "no workers"})
    assert survey([root]).counts["equivalent"] == 1


def test_a_file_is_equivalent_only_where_everything_that_was_converted_ran(root: Path) -> None:
    (root / "net_jax.py").write_text(CONVERTED.replace("    # TODO(t2j): a gap\n", ""))
    verdicts = [verdict(name, "equivalent") for name in ("Base", "Net", "f")]
    part = Coverage({"equivalent": 2}, {"equivalent": 1}, (Uncovered("main", "function", 20, 30),))
    check(root, *verdicts, coverage=part)
    (file,) = survey([root]).files
    assert file.state == "converted" and file.coverage == part
    assert {symbol.state for symbol in file.symbols} == {"equivalent"}
    check(root, *verdicts, coverage=Coverage(part.classes, part.functions))
    (file,) = survey([root]).files
    assert file.state == "equivalent"
    (root / "net.py").write_text(NET + "# edited\n")
    (file,) = survey([root]).files
    assert file.coverage is None


# --- what is looked at ------------------------------------------------------------------------------------------------


def test_other_folders_conversions_and_files_without_torch_are_left_out(root: Path) -> None:
    for name in (".git/a.py", "venv/lib/a.py", "node_modules/a.py", "pkg/__pycache__/a.py", ".hidden.py"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NET)
    (root / "venv" / "pyvenv.cfg").write_text("")
    (root / "net_jax.py").write_text(NET)
    (root / "alone_jax.py").write_text(NET)
    (root / "plain.py").write_text("def f(): ...\n")
    # A name that ends like a conversion's is a source of its own, where nothing is there that it could be made from.
    assert [file.name for file in survey([root]).files] == ["alone_jax.py", "net.py"]


def test_nested_folders_hold_each_file_once(root: Path) -> None:
    (root / "pkg").mkdir()
    (root / "pkg" / "inner.py").write_text(NET)
    state = Surveyor().survey({root: "_jax", root / "pkg": "_jax"})
    assert [(file.name, file.folder) for file in state.files] == [("net.py", root), ("inner.py", root / "pkg")]


def test_notebooks_have_a_state_and_no_symbols(root: Path) -> None:
    def notebook(*sources: str) -> str:
        return json.dumps({"cells": [{"cell_type": "code", "source": source} for source in sources]})

    (root / "book.ipynb").write_text(notebook("import torch\n", "x = torch.ones(1)"))
    (root / "other.ipynb").write_text(notebook("import numpy\n"))
    (root / "broken.ipynb").write_text("{")
    (root / "net.py").unlink()
    (book,) = survey([root]).files
    assert (book.name, book.state, book.symbols) == ("book.ipynb", "not started", ())
    (root / "book_jax.ipynb").write_text(notebook("# TODO(t2j): a gap\nimport torch\n"))
    (book,) = survey([root]).files
    assert (book.state, book.gaps) == ("gaps", 1)


def test_large_and_unreadable_files_are_problems(root: Path) -> None:
    (root / "large.py").write_text("import torch\n" + "#" * (1 << 20))
    (root / "latin.py").write_bytes(b"import torch\n'\xe9'\n")
    (root / "broken.py").write_text("import torch\ndef f(:\n")
    state = survey([root])
    assert [file.name for file in state.files] == ["broken.py", "net.py"]
    assert [problem.split()[0] for problem in state.problems] == ["broken.py", "large.py", "latin.py"]


@pytest.mark.skipif("os.name == 'nt'", reason="Windows has no such files")
def test_pipes_broken_links_and_names_that_are_no_text_stop_nothing(root: Path) -> None:
    os.mkfifo(root / "pipe.py")
    (root / "link.py").symlink_to(root / "nowhere.py")
    odd = Path(os.fsdecode(os.fsencode(root) + b"/odd\xff.py"))
    odd.write_text(NET)
    state = survey([root])
    assert [file.path for file in state.files] == [root / "net.py", odd]
    assert state.problems == ("link.py can't be read: No such file or directory",)
    assert to_path(to_uri(odd)) == odd
    assert form_of(state)["files"][1]["uri"].endswith("/odd%FF.py")
    assert main(["coverage", str(root / "net.py"), str(odd), "--html", str(root / "page.html")]) == 0
    assert 'href="./odd%FF.py"' in (root / "page.html").read_text()
    (root / "setup.cfg").touch()
    assert used_elsewhere(root / "net.py")(["Net"]) == set()  # No pipe is read to see who imports the file.
    assert main(["convert", str(root), "-o", str(root / "converted")]) == 2  # for the link to nowhere


def test_a_file_may_be_named_instead_of_a_folder_and_may_be_missing(root: Path) -> None:
    (root / "script").write_text(NET)
    state = survey([root / "script", root / "missing.py"])
    assert [file.name for file in state.files] == ["script"]
    assert state.problems == ("missing.py can't be read: No such file or directory",)


def test_more_files_than_fit_are_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "other.py").write_text(NET)
    monkeypatch.setattr(migration, "MAX_FILES", 1)
    state = survey([root])
    assert len(state.files) == 1 and not state.complete and state.problems


def test_only_what_changed_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "other.py").write_text(NET)
    (root / "plain.py").write_text("x = 1\n")
    surveyor, read = Surveyor(), []
    original = migration.read_source
    monkeypatch.setattr(migration, "read_source", lambda path: (read.append(path.name), original(path))[1])
    surveyor.survey({root: "_jax"})
    assert sorted(read) == ["net.py", "other.py", "plain.py"]
    read.clear()
    surveyor.survey({root: "_jax"})
    assert read == []
    (root / "net.py").write_text(NET + "\n# longer\n")
    (root / "new.py").write_text(NET)
    assert len(surveyor.survey({root: "_jax"}, walk=False).files) == 2
    assert read == ["net.py"]
    assert len(surveyor.survey({root: "_jax"}).files) == 3


def test_a_text_in_the_editor_stands_for_its_file(root: Path) -> None:
    surveyor = Surveyor()
    surveyor.buffers[root / "net_jax.py"] = CONVERTED
    surveyor.buffers[root / "unsaved.py"] = NET
    surveyor.buffers[root / ".git" / "unsaved.py"] = NET
    state = surveyor.survey({root: "_jax"})
    assert [(file.name, file.state) for file in state.files] == [("net.py", "gaps"), ("unsaved.py", "not started")]
    del surveyor.buffers[root / "net_jax.py"]
    assert surveyor.survey({root: "_jax"}).files[0].state == "not started"


# --- the store --------------------------------------------------------------------------------------------------------


def test_a_store_that_is_damaged_or_not_writable_is_an_empty_one(root: Path, state: Path) -> None:
    (root / "net_jax.py").write_text(CONVERTED)
    check(root, verdict("f", "equivalent"))
    path = store_path(root / "net.py", root / "net_jax.py")
    for damaged in (b"", b"{", b"[]", b'{"source": 1}', b'{"source": "", "converted": "", "verdicts": [{"x": 1}]}'):
        path.write_bytes(damaged)
        assert load(root / "net.py", root / "net_jax.py") is None
        assert symbols(survey([root]))["f"] == "converted"
    check(root, verdict("f", "equivalent"))
    assert symbols(survey([root]))["f"] == "equivalent"


def test_a_state_folder_that_cant_be_written_keeps_nothing_and_stops_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "net_jax.py").write_text(CONVERTED)
    (root / "blocked").write_text("")
    monkeypatch.setenv("T2J_STATE", str(root / "blocked"))
    check(root, verdict("f", "equivalent"))
    assert load(root / "net.py", root / "net_jax.py") is None


def test_the_store_is_bounded(root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_store, "MAX_PAIRS", 10)
    for number in range(30):
        source, target = root / f"{number}.py", root / f"{number}_jax.py"
        record(source, "a", target, "b", [verdict("f", "equivalent")], device="cpu", version="1")
        os.utime(store_path(source, target), (number, number))
    assert len(os.listdir(state / "verdicts")) <= 10
    last = load(root / "29.py", root / "29_jax.py")
    assert last is not None and last.holds(text_digest("a"), text_digest("b"))
