"""The page of ``t2j coverage --html``: it needs nothing else, shows no markup of others, counts as ``--json`` does."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from t2j_lsp.cli import main
from t2j_lsp.contract import Coverage, Uncovered
from t2j_lsp.migration.coverage_page import LABELS
from t2j_lsp.migration.verdict_store import record

NET = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return torch.cat([x, x])


def watch(x: torch.Tensor):
    x.register_hook(print)
    return x
"""
VOID = {"meta", "link", "br", "wbr", "img", "input", "hr"}
EVIL = '"><img src=x onerror=alert(1)>&<b>'


class Page(HTMLParser):
    """A page read back: the texts of cells by table, links, and what is wrong with its markup."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.texts: list[str] = []
        self._table = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._table = str(dict(attrs)["id"])
            self.tables[self._table] = []
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in ("td", "th"):
            self.tables[self._table][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" in self.open or "style" in self.open:
            return
        self.texts.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[self._table][-1][-1] += data

    def rows(self, table: str) -> list[dict[str, str]]:
        head, *rows = self.tables[table]
        return [dict(zip(head, row, strict=True)) for row in rows]

    @property
    def links(self) -> list[str]:
        return [str(value) for tag, name, value in self.attributes if (tag, name) == ("a", "href")]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T2J_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A file that was converted and checked, one that was not begun, one that can't be parsed, one without torch."""
    root = tmp_path / "src"
    (root / "pkg").mkdir(parents=True)
    for name in ("pkg/net.py", "later.py"):
        (root / name).write_text(NET)
    (root / "bad.py").write_text("def f(:\n")
    (root / "plain.py").write_text("x = 1\n")
    assert main(["convert", "src/pkg/net.py", "-o", "src/pkg/net_jax.py"]) == 1
    source, target = root / "pkg" / "net.py", root / "pkg" / "net_jax.py"
    stages = {
        "spec": {"result": "pass", "max_abs_err": None, "max_rel_err": None},
        "numeric": {"result": "pass", "max_abs_err": 2e-14, "max_rel_err": 1.5e-14},
        "behavioral": {"result": "not run", "max_abs_err": None, "max_rel_err": None},
    }
    verdict = {"name": "Net", "verdict": "equivalent", "reason": None, "divergence": None, "stages": stages}
    covered = Coverage({"equivalent": 1}, {}, (Uncovered("f", "function", 11, 12),), gaps=(9,))
    about = {"device": "cpu", "version": "7.8", "coverage": covered}
    record(source, source.read_text(), target, target.read_text(), [verdict], **about)
    return root


def written() -> tuple[Page, dict[str, Any], str]:
    assert main(["coverage", "src", "--html", "out/page.html", "--json", "report.json"]) == 1
    text = Path("out/page.html").read_text()
    return Page(text), json.loads(Path("report.json").read_text()), text


def test_the_page_counts_as_the_report_does(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, report, text = written()
    assert not page.open
    cards = re.findall(r'<div class="card"><b>([^<]*)</b><span class="faint">([^<]*)</span>', text)
    counts = {name: value for value, name in cards}
    assert counts["files read"] == str(report["files"]) == "3"
    assert counts["places converted"] == str(report["converted"])
    assert counts["gaps"] == str(report["gaps"]) == "2"
    assert counts["notes"] == str(report["notes"])
    gaps = [name for name in report["names"] if name["gaps"]]
    rows = page.rows("names")
    assert [(r["name"], r["uses"], r["gaps"]) for r in rows] == [
        (n["name"], str(n["uses"]), str(n["gaps"])) for n in gaps
    ]
    assert rows[0]["reasons"] == next(iter(gaps[0]["reasons"]))
    files = {row["file"].split("→")[0]: row for row in page.rows("files")}
    states = {Path(f["file"]).relative_to("src").as_posix(): f["state"] for f in report["migration"]["files"]}
    assert states == {"pkg/net.py": "gaps", "later.py": "not started"}
    covered = "1 of 1 class equivalent; 1 function not run; 1 place left as PyTorch"
    assert {f"../src/{name}": LABELS[state] for name, state in states.items()} == {
        name: row["state"].removesuffix(covered) for name, row in files.items()
    }
    assert files["../src/pkg/net.py"]["state"].endswith(covered)
    assert [f["coverage"] and f["coverage"]["text"] for f in report["migration"]["files"]] == [None, covered]
    for kind in ("counts", "symbol_counts"):
        for state, count in report["migration"][kind].items():
            assert (
                not count
                or f'<span class="state {state.replace(" ", "-")}">{LABELS[state]}</span> <b>{count}</b>' in text
            )
    assert "2 PyTorch files: 1 not started, 1 gaps" in capsys.readouterr().out
    assert any("bad.py" in part for part in page.texts)
    assert "1 more without torch." in page.texts


def test_verdicts_are_shown_with_stage_error_device_and_version(project: Path) -> None:
    page, _, _ = written()
    (row,) = page.rows("verdicts")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row.pop("checked"))
    assert row == {
        "file": "../src/pkg/net.py",
        "name": "Net",
        "verdict": "equivalent",
        "stage": "up to numeric",
        "worst error": "1.5e-14",
        "device": "cpu",
        "t2j": "7.8",
    }
    (project / "pkg" / "net.py").write_text(NET + "# edited\n")
    page, _, _ = written()
    assert "verdicts" not in page.tables


def test_links_lead_from_the_page_to_the_lines(project: Path) -> None:
    page, _, _ = written()
    assert "../src/pkg/net.py#L5" in page.links and "../src/pkg/net.py#L11" in page.links
    for link in page.links:
        assert (Path("out") / unquote(link.partition("#")[0])).resolve().is_file()


def test_nothing_is_loaded_from_elsewhere(project: Path) -> None:
    page, _, text = written()
    assert not re.search(r"https?:|//[\w.]+/|@import|url\(", text)
    for tag, name, value in page.attributes:
        assert name not in ("src", "srcset", "action", "formaction", "background") and not name.startswith("on")
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        if name == "href":
            assert str(value).startswith(("./", "../"))
    assert ("meta", "http-equiv", "Content-Security-Policy") in page.attributes


@pytest.mark.skipif("os.name == 'nt'", reason="Windows has no such file names")
def test_hostile_names_and_texts_are_shown_and_nothing_more(tmp_path: Path) -> None:
    root = tmp_path / "src"
    # No slash can be in a file's name.
    for name in (EVIL, "javascript:alert(1)", "a b#c?d%20"):
        (root / name).mkdir(parents=True)
        (root / name / f"{name}.py").write_text(NET)
        (root / name / f"{name}_jax.py").write_text(
            "# TODO(t2j): </script><script>alert(1)</script>\ndef watch(x): ...\n"
        )
        source, target = (root / name / f"{name}{end}.py" for end in ("", "_jax"))
        form = {
            "name": "watch",
            "verdict": EVIL,
            "reason": EVIL,
            "divergence": None,
            "stages": {EVIL: {"result": "pass", "max_abs_err": None, "max_rel_err": None}},
        }
        record(source, source.read_text(), target, target.read_text(), [form], device=EVIL, version=EVIL)
    (root / f"{EVIL}.py").write_text("def f(:\n")
    page, _, text = written()
    assert not page.open
    assert "<img" not in text and "<b>." not in text and "<script>alert" not in text
    assert text.count("<script>") == 1
    assert any(EVIL in part for part in page.texts)
    for link in page.links:
        assert (
            link.startswith("../src/") and ":" not in link and (Path("out") / unquote(link.partition("#")[0])).is_file()
        )
    assert sum(row["verdict"] == EVIL + EVIL for row in page.rows("verdicts")) == 3


def test_only_a_page_of_t2j_is_written_over(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written()
    written()
    Path("out/page.html").write_text("<p>mine</p>")
    assert main(["coverage", "src", "--html", "out/page.html"]) == 2
    assert "is not a page of t2j" in capsys.readouterr().err
    assert Path("out/page.html").read_text() == "<p>mine</p>"


def test_conversions_are_no_sources_and_the_project_says_what_they_are_called(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.t2j]\nsuffix = "_nnx"\n')
    (project / "later_nnx.py").write_text("# TODO(t2j): a gap\n")
    _, report, _ = written()
    # Now net_jax.py is a file like others, and later_nnx.py is not.
    states = {Path(f["file"]).name: f["state"] for f in report["migration"]["files"]}
    assert states == {"net.py": "not started", "later.py": "gaps"}
    assert report["files"] == 4


def test_a_code_base_without_gaps_and_torch_has_a_page_too(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n")
    assert main(["coverage", "plain.py", "--html", "page.html"]) == 0
    page = Page(Path("page.html").read_text())
    assert not page.open and not page.tables
