"""What is kept of a check, and when it still holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.contract import Coverage, Uncovered, VerdictKind
from t2j_lsp.migration.verdict_store import asked_of, digests_of, kept, record, store_path

ASKED = asked_of("numeric", "auto", None, None)
STAGES = {"numeric": {"result": "pass", "reason": None, "max_abs_err": 1e-9, "max_rel_err": 1e-9, "observed": ["y"]}}


def form(name: str, verdict: str = "equivalent", **more: Any) -> dict[str, Any]:
    return {"name": name, "verdict": verdict, "reason": None, "stages": STAGES, "divergence": None, **more}


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("T2J_STATE", str(tmp_path / "state"))
    return tmp_path / "net.py", tmp_path / "net_jax.py"


def keep(pair: tuple[Path, Path], *forms: dict[str, Any], **more: Any) -> None:
    about = {"device": "cpu", "version": "1", "asked": ASKED, "names": ["f", "g"], **more}
    record(pair[0], "a", pair[1], "b", forms, **about)


def test_a_report_comes_back_without_the_values_of_both_sides(pair: tuple[Path, Path]) -> None:
    place = {"torch": {"file": "net.py", "line": 3}, "jax": None, "what": "y parts", "cause": None, "fix": None}
    keep(pair, form("f", "different", divergence=place, explanation={"steps": []}))
    stored = kept(pair[0], "a", pair[1], "b")
    assert stored is not None
    report = stored.reports["f"]
    assert report.form == form("f", "different", divergence=place)
    assert (report.device, report.version, report.asked) == ("cpu", "1", ASKED)
    assert kept(pair[0], "a ", pair[1], "b") is None and kept(pair[0], "a", pair[1], "b ") is None


def test_what_another_check_would_tell(pair: tuple[Path, Path]) -> None:
    keep(pair, form("f"), form("g", "unchecked"))
    stored = kept(pair[0], "a", pair[1], "b")
    assert stored is not None and stored.lacking(ASKED, "1") == ["g"]
    keep(pair, form("g"), names=None)
    stored = kept(pair[0], "a", pair[1], "b")
    assert stored is not None and stored.lacking(ASKED, "1") == []
    assert stored.lacking(ASKED, "2") == ["f", "g"]
    for other in (
        asked_of("spec", "auto", None, None),
        asked_of("numeric", "gpu", None, None),
        asked_of("numeric", "auto", "python3", None),
        asked_of("numeric", "auto", None, "python3"),
    ):
        assert stored.lacking(other, "1") == ["f", "g"]
    # A check that could not be made takes nothing from the one before.
    keep(pair, form("f", "unchecked"), version="2")
    stored = kept(pair[0], "a", pair[1], "b")
    assert stored is not None and stored.reports["f"].form["verdict"] == "equivalent"
    assert stored.lacking(ASKED, "2") == ["f", "g"]


def test_where_only_some_objects_were_checked_everything_may_be_lacking(pair: tuple[Path, Path]) -> None:
    keep(pair, form("f"), names=None)
    stored = kept(pair[0], "a", pair[1], "b")
    assert stored is not None and stored.lacking(ASKED, "1") is None


def test_verdicts_hold_for_the_files_that_were_read_as_well(pair: tuple[Path, Path], tmp_path: Path) -> None:
    beside = tmp_path / "beside.py"
    beside.write_text("X = 1\n")
    keep(pair, form("f"), neighbours=digests_of([beside]))
    assert kept(pair[0], "a", pair[1], "b") is not None
    beside.write_text("X = 2\n")
    assert kept(pair[0], "a", pair[1], "b") is None
    # A check of another object says nothing of the one before, which was of another neighbour.
    keep(pair, form("g"), neighbours=digests_of([beside]))
    stored = kept(pair[0], "a", pair[1], "b")
    assert stored is not None and set(stored.reports) == {"g"}
    beside.unlink()
    assert kept(pair[0], "a", pair[1], "b") is None


def test_a_store_of_an_earlier_version_or_a_damaged_one_gives_nothing(pair: tuple[Path, Path]) -> None:
    keep(pair, form("f"))
    path = store_path(*pair)
    whole = json.loads(path.read_bytes())
    for name, value in (("reports", None), ("reports", [{"x": 1}]), ("neighbours", 3), ("names", 3)):
        path.write_text(json.dumps({**whole, name: value}))
        assert kept(pair[0], "a", pair[1], "b") is None, (name, value)
    del whole["reports"], whole["neighbours"], whole["names"]
    path.write_text(json.dumps(whole))
    assert kept(pair[0], "a", pair[1], "b") is None


def test_what_ran_and_what_it_covers_are_kept_with_the_verdicts(pair: tuple[Path, Path]) -> None:
    covered = Coverage({"equivalent": 1}, {"unchecked": 1}, (Uncovered("main", "function", 3, 9),), gaps=(4,))
    keep(pair, form("f"), form("g", "unchecked"), ran={"f": ("f", "helper"), "g": ("g",)}, coverage=covered)
    stored = kept(pair[0], "a", pair[1], "b")
    assert stored is not None and stored.coverage == covered
    # What is new counts, and what is kept where there is nothing new or the new check could not be made.
    verdicts, ran = stored.beside({"g": VerdictKind.EQUIVALENT}, {"g", "inner"})
    assert verdicts == {"f": VerdictKind.EQUIVALENT, "g": VerdictKind.EQUIVALENT}
    assert ran == {"f", "helper", "g", "inner"}
    verdicts, ran = stored.beside({"f": VerdictKind.UNCHECKED}, set())
    assert verdicts["f"] is VerdictKind.EQUIVALENT and {"f", "helper"} <= ran
