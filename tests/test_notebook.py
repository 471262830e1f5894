"""Notebooks: cells are joined, translated and split again. The translation itself is a stand-in here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from t2j_lsp.contract import Finding, Severity, SourceError, Span, Translation
from t2j_lsp.files.notebook import translate_notebook


def notebook(*cells: str | list[str] | dict[str, Any], **fields: Any) -> str:
    """The JSON text of a notebook whose code cells have these sources and an output each."""
    output = {"output_type": "stream", "name": "stdout", "text": "1"}
    made = [
        c
        if isinstance(c, dict)
        else {"cell_type": "code", "execution_count": 7, "metadata": {"k": 1}, "outputs": [output], "source": c}
        for c in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **fields}, indent=1) + "\n"


def convert(text: str) -> Translation:
    """``old()`` becomes ``new()``, below an added import; ``bad`` is a gap."""
    findings = tuple(
        Finding(
            Span(number, line.index("bad"), number, line.index("bad") + 3), "bad", "no-rule", Severity.GAP, "no rule"
        )
        for number, line in enumerate(text.split("\n"), 1)
        if "bad" in line
    )
    code = "import added\n" + text.replace("old(", "new(") if "old(" in text else text
    return Translation(text, code, findings, converted=text.count("old("))


def sources(code: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(code)["cells"]]


def test_cells_are_translated_as_one_program_and_put_back() -> None:
    seen: list[str] = []

    def record(text: str) -> Translation:
        seen.append(text)
        return convert(text)

    text = notebook("# title", ["import x\n", "old(1)"], "old(2)\n")
    result = translate_notebook(text, record).translation
    assert len(seen) == 1
    assert sources(result.code) == ["# title", "import added\n\nimport x\nnew(1)", "new(2)\n"]
    assert result.converted == 2


def test_outputs_are_cleared_and_everything_else_stays() -> None:
    prose = {"cell_type": "markdown", "metadata": {"z": 1}, "source": ["# old é\n", "old"]}
    text = notebook(prose, "old()", metadata={"kernelspec": {"language": "python", "name": "k"}})
    result = json.loads(translate_notebook(text, convert).translation.code)
    assert result["cells"][0] == prose
    assert result["cells"][1]["outputs"] == []
    assert result["cells"][1]["execution_count"] is None
    assert result["cells"][1]["metadata"] == {"k": 1}
    assert result["metadata"] == {"kernelspec": {"language": "python", "name": "k"}}


def test_a_notebook_without_anything_to_convert_is_returned_as_it_was() -> None:
    text = notebook("x = 1", "%magic\ny").replace(" ", "  ", 1)
    assert translate_notebook(text, convert).translation.code == text


@pytest.mark.parametrize(
    "cell",
    [
        "!pip install old\nx = 1",
        "%matplotlib inline",
        "for i in range(2):\n    !ls {i}\n    y = i",
        "files = !ls\nx = %env HOME",
        "x?\nx.y??",
        "%%bash\nls old",
        "%%html\n<old>",
        "s = '''\n!old\n%old'''.replace('old', 'x')\nz = (5\n  % 3)\n!ls",
        "%%time\ny = 2",
    ],
)
def test_lines_for_the_notebook_survive(cell: str) -> None:
    converted = sources(translate_notebook(notebook("import x; old()", cell), convert).translation.code)
    assert converted[1] == cell


def test_python_below_a_timing_magic_is_translated() -> None:
    converted = sources(translate_notebook(notebook("%%time\nold()"), convert).translation.code)
    assert converted == ["%%time\nimport added\n\nnew()"]


def test_a_cell_that_is_not_python_stays_and_is_reported() -> None:
    result = translate_notebook(notebook("old()", "def f(:\n  old()", "old()"), convert)
    assert sources(result.translation.code)[1] == "def f(:\n  old()"
    (finding,) = result.translation.gaps
    assert (finding.code, finding.span.line, result.cells) == ("not-python", 1, (2,))


def test_findings_name_their_cell_and_count_lines_inside_it() -> None:
    prose = {"cell_type": "markdown", "metadata": {}, "source": "x"}
    result = translate_notebook(notebook("x\nbad", prose, "%m\n\nx = bad"), convert)
    assert [
        (cell, f.span.line, f.span.column) for cell, f in zip(result.cells, result.translation.findings, strict=True)
    ] == [
        (1, 2, 0),
        (3, 3, 4),
    ]


def test_markers_never_collide_with_the_users_comments() -> None:
    text = notebook("# t2j-cell:0\nold()", "# t2j-cell:1\nold()")
    assert [s.split("\n")[-1] for s in sources(translate_notebook(text, convert).translation.code)] == [
        "new()",
        "new()",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a notebook"),
        ("{", "not a notebook"),
        ("[]", "no list of cells"),
        ('{"worksheets": []}', "no list of cells"),
        ('{"cells": [1]}', "no source"),
        ('{"cells": [], "metadata": {"kernelspec": {"language": "julia"}}}', "julia"),
        ("[" * 100_000, "not a notebook"),
    ],
)
def test_what_is_no_python_notebook_is_a_source_error(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        translate_notebook(text, convert)


@pytest.mark.parametrize("cells", [(), ("",), ("  \n",), ("%%bash\nx",)])
def test_notebooks_without_python_are_left_alone(cells: tuple[str, ...]) -> None:
    text = notebook(*cells)
    assert translate_notebook(text, convert).translation.code == text
