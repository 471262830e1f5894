"""Notebooks under ``t2j check`` and ``t2j run``: their cells are one program, and places are cells and lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.api import convert_file
from t2j_lsp.cli import main
from t2j_lsp.contract import Divergence, Location, Options, ProgramReport, Uncovered, VerdictKind
from t2j_lsp.files.cells import CellLines, Cells, NotebookProgram, with_displays
from t2j_lsp.files.notebook import notebook_program

from .test_notebook import notebook, sources

PROSE: dict[str, Any] = {"cell_type": "markdown", "metadata": {}, "source": "# A net"}
IMPORTS = "%matplotlib inline\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n!pip list"
NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return F.gelu(self.fc(x))"""
DATA = "model = Net()\nx = torch.randn(32, 4)\nx.mean()"
TRAINING = """\
%%time
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(8):
    optimizer.zero_grad()
    loss = (model(x) - 1).square().mean()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.5f}")"""
CELLS = (PROSE, IMPORTS, NET, DATA, TRAINING, "model", "model(x).sum()")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.ipynb"
    path.write_text(notebook(*CELLS))
    return path


def report_of(command: str, *arguments: Path | str) -> tuple[int, Any]:
    """The exit code of a command, and its report."""
    report = Path(str(arguments[0])).parent / "report.json"
    code = main([command, *map(str, arguments), "--json", str(report)])
    return code, json.loads(report.read_text())


@pytest.mark.parametrize("first", ["", "%%time\n", "\n\n", '"""A net."""\n'])
def test_every_line_of_both_programs_is_found_in_its_cell(first: str, tmp_path: Path) -> None:
    path = tmp_path / "book.ipynb"
    path.write_text(notebook(PROSE, "a = 1", first + IMPORTS.partition("\n")[2].replace("!pip list", ""), *CELLS[2:]))
    conversion = convert_file(path, Options())
    assert conversion.notebook is not None
    before, after = sources(path.read_text()), sources(conversion.translation.code)
    for program, texts in ((conversion.notebook.program, before), (conversion.notebook.converted, after)):
        seen = 0
        for number, line in enumerate(program.text.split("\n"), 1):
            if not line.strip() or "# t2j" in line:
                continue
            place = program.lines.place(number)
            assert place is not None and texts[place[0] - 1].split("\n")[place[1] - 1] == line, (number, line)
            seen += 1
        assert seen > 15


def test_a_notebook_is_run_as_one_program_with_what_its_cells_display(book: Path) -> None:
    code, report = report_of("run", book)
    assert (code, report["verdict"]) == (0, "equivalent"), report
    # Two tensors are displayed and a loss is printed; a module that is displayed is not compared.
    assert (report["values"]["printed"]["count"], report["steps"]) == (3, 8)


def test_a_mistake_in_a_converted_notebook_is_said_by_cell_and_line(book: Path) -> None:
    converted = book.with_name("book_jax.ipynb")
    assert main(["convert", str(book), "-o", str(converted)]) == 0
    right = converted.read_text()
    converted.write_text(right.replace("optax.sgd(0.1)", "optax.sgd(0.11)"))
    code, report = report_of("run", book, converted)
    assert (code, report["verdict"]) == (1, "different")
    places = report["divergence"]["torch"], report["divergence"]["jax"]
    for place, path in zip(places, (book, converted), strict=True):
        text = sources(path.read_text())[place["cell"] - 1].split("\n")[place["line"] - 1]
        assert (place["cell"], text.strip()) == (5, 'print(f"loss {loss.item():.5f}")'), place
    wrong = right.replace("approximate=False", "approximate=True")
    assert wrong != right
    converted.write_text(wrong)
    code, report = report_of("check", book, converted)
    (net,) = report["objects"]
    assert (code, net["name"], net["verdict"]) == (1, "Net", "different")
    assert (net["divergence"]["torch"]["cell"], net["divergence"]["torch"]["line"]) == (3, 7)
    place = net["divergence"]["jax"]
    assert "jax.nn.gelu" in sources(converted.read_text())[place["cell"] - 1].split("\n")[place["line"] - 1]


def test_a_check_of_a_notebook_says_what_it_covers_by_cells(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = report_of("check", book)
    assert (code, report["objects"][0]["verdict"]) == (3, "equivalent")
    assert report["not_run"] == [{"name": "<script>", "line": 6, "cell": 5}], report["not_run"]
    assert "not run as a whole: top-level code (cell 5, line 6)" in capsys.readouterr().out


def test_a_notebook_with_gaps_is_not_run(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book.write_text(notebook(*CELLS, "torch.jit.trace(model, x)"))
    assert main(["run", str(book)]) == 3
    output = capsys.readouterr()
    assert "book.ipynb:cell 8:1:1: gap: " in output.err and output.out.splitlines()[-1] == "unchecked"


def program(*cells: str) -> NotebookProgram:
    return notebook_program(notebook(*cells))


def test_displays_stand_where_both_sides_end_in_an_expression() -> None:
    torch = program("a = 1\na", "a;", "f(\n    a,\n)  # what", "a, 'é'", "a.to(0)", "for i in x:\n    i")
    jax = program("a = 1\na + 0", "a", "g(a)", "a, 'é'", "pass", "for i in x:\n    i")
    texts = [[line for line in text.split("\n") if "display" in line or line.startswith(")")] for text in
             with_displays(torch, jax)]  # fmt: skip
    assert texts[0] == ["display((a))", "display((f(", ")))  # what", "display((a, 'é'))"]
    assert texts[1] == ["display((a + 0))", "display((g(a)))", "display((a, 'é'))"]


def test_lines_in_texts_are_those_of_their_side() -> None:
    cells = Cells(CellLines(((1, 1, 1), (10, 2, 10))), CellLines(((1, 1, 1), (20, 4, 20))))
    report = ProgramReport(
        VerdictKind.DIFFERENT,
        "the original fails: line 12: it broke, and the conversion: line 23: it broke",
        divergence=Divergence(
            Location("a.ipynb", 12), Location("a.ipynb", 23), "only the conversion fails: line 22: x"
        ),
        notes=["line 25: Net starts with values of its own", "in float32 they part by rounding: x (line 14)"],
    )
    placed = cells.program(report)
    assert placed.reason == (
        "the original fails: cell 2, line 2: it broke, and the conversion: cell 4, line 3: it broke"
    )
    assert placed.divergence is not None
    assert str(placed.divergence.torch) == "a.ipynb:cell 2:2" and str(placed.divergence.jax) == "a.ipynb:cell 4:3"
    assert placed.divergence.what == "only the conversion fails: cell 4, line 2: x"
    assert placed.notes == [
        "cell 4, line 5: Net starts with values of its own",
        "in float32 they part by rounding: x (cell 2, line 4)",
    ]
    assert Cells(None, None).program(report) == report
    assert Uncovered("f", "branch", 3, 4, 2, 2).lines == "cell 2, lines 3-4"
    assert Uncovered("<script>", "script", 3, 4, 2, 5).lines == "cell 2, line 3 to cell 5, line 4"
