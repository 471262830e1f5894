"""``t2j check``: how verdicts show, exit codes, and one real check of each kind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from t2j_lsp import __version__
from t2j_lsp.cli import main
from t2j_lsp.commands.check import EXIT_CODES, show
from t2j_lsp.contract import (
    CheckReport,
    Containment,
    Coverage,
    Divergence,
    Location,
    NotRun,
    ObjectVerdict,
    Result,
    StageResult,
    Uncovered,
    VerdictKind,
)
from t2j_lsp.files.outline import text_digest
from t2j_lsp.migration.verdict_store import asked_of, kept, load

pytestmark = pytest.mark.usefixtures("warm_workers")
TORCH = "import torch\n\n\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return torch.relu(x) * 2\n"
RIGHT = "import jax\n\n\ndef f(x: jax.Array) -> jax.Array:\n    return jax.nn.relu(x) * 2\n"
WRONG = RIGHT.replace("* 2", "* 3")


def test_a_report_shows_objects_stages_errors_places_and_ends_in_the_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    passed = StageResult(Result.PASS, None, 1e-15, 2e-15, ["eval output"])
    failed = StageResult(Result.FAIL, "outputs differ", 0.5, 0.25, ["eval output"])
    good = ObjectVerdict(
        "Good", VerdictKind.EQUIVALENT, stages={"spec": passed, "numeric": passed, "behavioral": passed}
    )
    place = Divergence(Location("net.py", 3), Location("out.py", 4), "h differs by 0.5")
    wrong = ObjectVerdict("Wrong", VerdictKind.DIFFERENT, "outputs differ", divergence=place)
    wrong.stages |= {"spec": passed, "numeric": failed}
    unknown = ObjectVerdict("Unknown", VerdictKind.UNCHECKED, "no inputs are known")
    show(CheckReport("cpu", [good, wrong, unknown]))
    assert capsys.readouterr().out.splitlines() == [
        "object   verdict     spec     numeric  behavioral  max abs error  max rel error",
        "Good     equivalent  pass     pass     pass              1.0e-15        2.0e-15",
        "Wrong    different   pass     fail     not run           5.0e-01        2.5e-01",
        "Unknown  unchecked   not run  not run  not run",
        "Wrong: outputs differ",
        "Wrong: h differs by 0.5 (torch net.py:3, jax out.py:4)",
        "Unknown: no inputs are known",
        "device: cpu",
        "different",
    ]


def test_a_report_names_what_its_verdict_does_not_cover(capsys: pytest.CaptureFixture[str]) -> None:
    observed = ["after 3 steps (2)", "its own optimizer SGD (line 32), schedule StepLR (line 33)"]
    net = ObjectVerdict("Net", VerdictKind.EQUIVALENT)
    net.stages["behavioral"] = StageResult(Result.PASS, None, 0.0, 0.0, observed)
    training = NotRun("train", 20)
    coverage = Coverage(
        {"equivalent": 1},
        {},
        (
            Uncovered("train", "function", 20, 28),
            Uncovered("evaluate", "function", 30, 30),
            Uncovered("<script>", "script", 40, 44),
        ),
        (Uncovered("Net.forward", "branch", 12, 13),),
        (training,),
        (50, 60),
    )
    report = CheckReport("cpu", [net], not_run=[training], coverage=coverage)
    show(report)
    assert capsys.readouterr().out.splitlines()[2:] == [
        "converted, but not run: evaluate (line 30), top-level code (lines 40-44)",
        "not run as a whole: train (line 20); "
        "Net was trained with its own optimizer SGD (line 32), schedule StepLR (line 33)",
        "branches that did not run: lines 12-13 of Net.forward",
        "device: cpu",
        "covered: 1 of 1 class equivalent; 2 functions not run; top-level code not run; 1 branch not run; "
        "2 places left as PyTorch",
        "unchecked",
    ]
    assert EXIT_CODES[report.verdict] == 3


def test_a_report_without_objects_is_unchecked(capsys: pytest.CaptureFixture[str]) -> None:
    show(CheckReport("cpu"))
    shown = capsys.readouterr().out
    assert shown.startswith("nothing to check: ")
    assert shown.endswith("device: cpu\nunchecked\n")


def test_a_report_says_what_this_system_does_not_hold(capsys: pytest.CaptureFixture[str]) -> None:
    held = Containment("landlock", "landlock", "seccomp", "python", "watched", ("processes may stay", "and more"))
    show(CheckReport("cpu", [ObjectVerdict("f", VerdictKind.EQUIVALENT)], containment=held))
    assert capsys.readouterr().out.endswith("device: cpu\nnot held here: processes may stay; and more\nequivalent\n")
    assert Containment.from_json(held.to_json()) == held


@pytest.mark.parametrize(("jax", "status", "verdict"), [(RIGHT, 0, "equivalent"), (WRONG, 1, "different")])
def test_a_right_and_a_wrong_conversion(
    jax: str, status: int, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    (tmp_path / "b.py").write_text(jax)
    report = tmp_path / "report.json"
    arguments = ["check", str(tmp_path / "a.py"), str(tmp_path / "b.py"), "--device", "cpu", "--json", str(report)]
    assert main(arguments) == status
    assert capsys.readouterr().out.splitlines()[-1] == verdict
    form = json.loads(report.read_text())
    assert list(form) == ["version", "verdict", "device", "objects", "coverage", "containment"]
    assert form["coverage"]["complete"] is (status == 0)
    assert (form["verdict"], form["device"]) == (verdict, "cpu")
    assert list(form["containment"]) == ["files", "reads", "network", "processes", "memory", "not_held"]
    (one,) = form["objects"]
    assert list(one) == ["name", "verdict", "reason", "stages", "divergence", *(["similar"] if status else [])]
    assert list(one["stages"]) == ["spec", "numeric", "behavioral"]
    assert list(one["stages"]["spec"]) == ["result", "reason", "max_abs_err", "max_rel_err", "observed"]
    # The verdict is known afterwards, and is about these very texts.
    stored = load(tmp_path / "a.py", tmp_path / "b.py")
    assert stored is not None and stored.holds(text_digest(TORCH), text_digest(jax))
    assert (stored.verdicts["f"].verdict, stored.verdicts["f"].device) == (verdict, "cpu")
    kept_verdicts = kept(tmp_path / "a.py", TORCH, tmp_path / "b.py", jax)
    assert (
        kept_verdicts is not None
        and kept_verdicts.lacking(asked_of("behavioral", "cpu", None, None), __version__) == []
    )


def test_an_explanation_is_a_table_of_statements_with_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    (tmp_path / "b.py").write_text(WRONG)
    report = tmp_path / "report.json"
    files = [str(tmp_path / "a.py"), str(tmp_path / "b.py")]
    arguments = ["check", *files, "--object", "f", "--explain", "--device", "cpu", "--json", str(report)]
    assert main(arguments) == 1
    shown = capsys.readouterr().out.splitlines()
    assert "f: likely cause: PyTorch has 2 here; tried: use 2 instead of 3, and the values agree here" in shown
    header = next(n for n, line in enumerate(shown) if line == "f, statement by statement:")
    assert " ".join(shown[header + 1].split()) == "line torch line jax value shape max abs error max rel error"
    (row,) = [line for line in shown[header + 2 :] if line.startswith(">")]
    assert "return jax.nn.relu(x) * 3" in row and "return torch.relu(x) * 2" in row
    (one,) = json.loads(report.read_text())["objects"]
    assert one["divergence"]["fix"]["new"] == "2"
    explanation = one["explanation"]
    assert not explanation["steps"][explanation["first"]]["agree"]


def test_without_a_conversion_the_file_is_converted_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    assert main(["check", str(tmp_path / "a.py"), "--device", "cpu"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "equivalent"
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_what_cannot_run_is_unchecked_and_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    (tmp_path / "b.py").write_text(RIGHT)
    missing = str(tmp_path / "no-python")
    arguments = ["check", str(tmp_path / "a.py"), str(tmp_path / "b.py"), "--torch-python", missing]
    assert main(arguments) == 3
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "unchecked"
    assert "no-python" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "missing.py"),
        (["a.py", "missing.py"], "missing.py"),
        (["a.py", "a.py", "--object", "nothing"], "nothing"),
        (["bad.py", "a.py"], "bad.py"),
        (["a.py", "bad.py"], "bad.py"),
        (["."], "folder"),
        (["a.ipynb"], "notebook"),
    ],
)
def test_input_that_cannot_be_read_is_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    (tmp_path / "a.ipynb").write_text("{}")
    (tmp_path / "bad.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)
    assert main(["check", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(("folder", "why"), [("/does/not/exist", "does not exist"), ("/", "is everything")])
def test_a_folder_to_read_is_there_and_not_everything(
    folder: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(TORCH)
    with pytest.raises(SystemExit) as stopped:
        main(["check", str(tmp_path / "a.py"), "--readable", folder])
    assert stopped.value.code == 2
    assert why in capsys.readouterr().err


def test_an_explained_difference_comes_with_fixed_bugs_like_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, wrong = tmp_path / "net.py", tmp_path / "wrong.py"
    source.write_text(TORCH.replace("torch.relu(x)", "torch.nn.functional.gelu(x)"))
    wrong.write_text(WRONG.replace("relu(x) * 3", "gelu(x) * 2"))
    report = tmp_path / "report.json"
    assert main(["check", str(source), str(wrong), "--json", str(report)]) == 1
    assert re.search(
        r"^f: \d mistakes? like this (was|were) fixed \(--explain shows them\)$", capsys.readouterr().out, re.M
    )
    (one,) = json.loads(report.read_text())["objects"]
    assert one["similar"]
    for row in one["similar"]:
        assert row["Root_cause"] == "gelu-approximation" and row["score"] > 0.45
        assert {"Error_Code", "Error", "Fix_info", "Fixed_Code", "Category", "Origin"} <= row.keys()

    assert main(["check", str(source), str(wrong), "--explain"]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"f: \d mistakes? like this (was|were) fixed:\n\ngelu approximation \(", shown)
    assert "approximate=False" in shown


def test_a_difference_like_no_fixed_bug_is_offered_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, wrong = tmp_path / "net.py", tmp_path / "wrong.py"
    source.write_text(TORCH)
    wrong.write_text(WRONG)
    assert main(["check", str(source), str(wrong), "--json", "-"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["objects"]
    assert one["similar"] == []
