"""Analyses after edits against analyses of the whole file, ignore comments, and conversions of parts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from t2j_lsp import convert
from t2j_lsp.contract import Options, Span
from t2j_lsp.lsp.analysis.analyst import Analyst
from t2j_lsp.lsp.analysis.model import ConversionRefused, ConversionScope, ConversionSettings, ConvertedPart, LineMap
from t2j_lsp.lsp.analysis.partial import convert_part, restore
from t2j_lsp.lsp.analysis.units import closure, cut, groups
from t2j_lsp.lsp.positions import split_lines
from t2j_lsp.translate import Neighbours, draft
from t2j_lsp.translate.inference.neighbours import Neighbour

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SETTINGS = ConversionSettings()

PROGRAM = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return F.gelu(self.fc(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(8)

    def forward(self, x):
        return torch.softmax(self.block(x), dim=-1)


def watch(x: torch.Tensor):
    x.register_hook(print)
    return torch.cat([x, x])


def join(x: torch.Tensor, y: torch.Tensor):
    return torch.cat([x, y], dim=1)
"""


def line_of(text: str, needle: str) -> int:
    """The line, from 1, that holds a text."""
    return text[: text.index(needle)].count("\n") + 1


def part(text: str, scope: ConversionScope, *, known: bool = True) -> ConvertedPart:
    analyst = Analyst()
    if known:
        analyst.full("a", text, SETTINGS, None)
    return convert_part(analyst, "a", text, SETTINGS, None, scope)


def applied(text: str, conversion: ConvertedPart) -> str:
    lines = text.split("\n")
    for hunk in sorted(conversion.hunks, key=lambda h: h.first, reverse=True):
        lines[hunk.first - 1 : hunk.last] = hunk.lines
    return "\n".join(lines)


# --- quick and full ---------------------------------------------------------------------------------------------------

EDITS = {
    "a statement more": ("return F.gelu(self.fc(x))", "y = torch.cat([x, x])\n        return F.gelu(self.fc(y))"),
    "a call less": ("torch.softmax(self.block(x), dim=-1)", "self.block(x)"),
    "a gap more": ("return torch.cat([x, y], dim=1)", "y.register_hook(print)\n    return torch.cat([x, y], dim=1)"),
    "a gap less": ("    x.register_hook(print)\n", ""),
    "a definition less": (PROGRAM[PROGRAM.index("def watch") : PROGRAM.index("def join")], ""),
    "lines in front": ("class Block", "# one\n# two\n\nSIZE = 3\n\n\nclass Block"),
    "nothing that matters": ("def join", "\n\ndef join"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_analysis_of_the_edited_part_is_that_of_the_whole_file(name: str) -> None:
    old, new = EDITS[name]
    assert old in PROGRAM
    analyst = Analyst()
    analyst.full("a", PROGRAM, SETTINGS, None)
    edited = PROGRAM.replace(old, new, 1)
    quick = analyst.quick("a", edited, SETTINGS, None)
    full = Analyst().full("a", edited, SETTINGS, None)
    assert quick is not None and not quick.complete and full.complete
    assert quick.findings == full.findings
    assert quick.rewrites == full.rewrites
    assert quick.definitions == full.definitions
    assert quick.aliases == full.aliases


def test_a_draft_converts_its_lines_as_the_whole_conversion_does_and_no_others() -> None:
    first = line_of(PROGRAM, "def join")
    done, whole = draft(PROGRAM, Options(), range(first, first + 2), Neighbours()), convert(PROGRAM)
    assert [r for r in whole.rewrites if r.span.line >= first] == list(done.rewrites)
    assert "jnp.concatenate([x, y], axis=1)" in done.code
    assert "return F.gelu(self.fc(x))" in done.code and "nnx" not in done.code


LAYERS = """import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * self.scale
"""
USER = """import torch
from torch import nn

from layers import Norm


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm(4)

    def forward(self, x):
        return torch.relu(self.norm(x))
"""


def test_edits_infer_nothing_of_other_files_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "layers.py").write_text(LAYERS)
    made: list[Neighbour] = []
    run = Neighbour._run
    monkeypatch.setattr(Neighbour, "_run", lambda self: made.append(self) or run(self))
    analyst, path = Analyst(), str(tmp_path / "net.py")
    analyst.full("a", USER, SETTINGS, path)
    edited = USER.replace("torch.relu(", "torch.relu(2 * ")
    quick = analyst.quick("a", edited, SETTINGS, path)
    assert len(made) == 1 and any(info.returns is not None for info in made[0].functions.values())
    full = Analyst().full("a", edited, SETTINGS, path)
    assert len(made) == 2 and quick is not None
    assert quick.rewrites == full.rewrites and quick.findings == full.findings


def test_an_edit_sees_what_changed_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text(LAYERS)
    analyst, path = Analyst(), str(tmp_path / "net.py")
    analyst.full("a", USER, SETTINGS, path)
    (tmp_path / "layers.py").write_text(LAYERS.replace("nn.Module", "object").replace("super().__init__()", "pass"))
    edited = USER.replace("torch.relu(", "torch.relu(2 * ")
    quick = analyst.quick("a", edited, SETTINGS, path)
    full = Analyst().full("a", edited, SETTINGS, path)
    assert quick is not None and quick.rewrites == full.rewrites and quick.findings == full.findings


def test_what_an_analysis_given_up_halfway_knows_of_other_files_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "layers.py").write_text(LAYERS)
    analyst, path = Analyst(), str(tmp_path / "net.py")
    analyst.full("a", USER, SETTINGS, path)
    assert analyst._project is not None

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("t2j_lsp.lsp.analysis.intact.draft", interrupted)
    with pytest.raises(KeyboardInterrupt):
        analyst.quick("a", USER.replace("torch.relu(", "torch.relu(2 * "), SETTINGS, path)
    assert analyst._project is None


def test_there_is_no_quick_analysis_without_a_full_one_or_with_other_settings() -> None:
    analyst = Analyst()
    assert analyst.quick("a", PROGRAM, SETTINGS, None) is None
    analyst.full("a", PROGRAM, SETTINGS, None)
    assert analyst.quick("a", PROGRAM, ConversionSettings(x64=True), None) is None


@pytest.mark.parametrize("text", ["def f(:\n", "x = (\n", "a\0b", "(" * 300 + ")" * 300])
def test_a_text_that_does_not_parse_is_a_syntax_error_where_one_did_before(text: str) -> None:
    analyst = Analyst()
    first = analyst.full("a", "import torch\n" + text, SETTINGS, None)
    assert first.broken and [f.code for f in first.findings] == ["syntax"]
    analyst.full("a", "import torch\n", SETTINGS, None)
    for analyse in (analyst.quick, analyst.full):
        with pytest.raises(SyntaxError):
            analyse("a", "import torch\n" + text, SETTINGS, None)


def test_a_byte_order_mark_moves_columns_of_the_first_line_only() -> None:
    text = "\ufeffimport torch; x = torch.zeros(2)\ny = torch.ones(2)\n"
    spans = [
        r.span for r in Analyst().full("a", text, SETTINGS, None).rewrites if r.name in ("torch.zeros", "torch.ones")
    ]
    assert [text.split("\n")[s.line - 1][s.column : s.end_column] for s in spans] == ["torch.zeros(2)", "torch.ones(2)"]


def test_only_so_many_programs_are_kept() -> None:
    analyst = Analyst()
    for number in range(100):
        analyst.full(str(number), "x = 1\n", SETTINGS, None)
    assert len(analyst._states) == 64


# --- ignore comments --------------------------------------------------------------------------------------------------

GAP = "    x.register_hook(print)"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (GAP, 1),
        (f"{GAP}  # t2j: ignore", 0),
        (f"{GAP}  # t2j: ignore[refused]", 0),
        (f"{GAP}  # t2j: ignore[close, refused]", 0),
        (f"{GAP}  # t2j: ignore[close]", 1),
        (f"    # t2j: ignore[refused]\n{GAP}", 0),
        (f"    # t2j: ignore-file[refused]\n\n{GAP}", 0),
        (f"    y = 1  # t2j: ignore[refused]\n{GAP}", 1),
    ],
)
def test_a_comment_ignores_the_codes_it_names(line: str, count: int) -> None:
    text = PROGRAM.replace(GAP, line)
    assert len(Analyst().full("a", text, SETTINGS, None).findings) == count


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False], ids=["analysed", "not analysed yet"])
def test_a_function_is_converted_with_the_imports_it_needs(known: bool) -> None:
    first = line_of(PROGRAM, "def join")
    new = applied(PROGRAM, part(PROGRAM, ConversionScope("lines", None, first, first + 1), known=known))
    ast.parse(new)
    assert "def join(x: jax.Array, y: jax.Array):\n    return jnp.concatenate([x, y], axis=1)\n" in new
    assert new.startswith("import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nimport jax\n")
    assert "import jax.numpy as jnp\n" in new and "class Net(nn.Module)" in new


def test_a_class_brings_its_helpers_and_says_what_is_still_torch() -> None:
    first = line_of(PROGRAM, "class Net")
    conversion = part(PROGRAM, ConversionScope("lines", None, first, first + 6))
    new = applied(PROGRAM, conversion)
    assert "class Net(nnx.Module)" in new and "class Block(nn.Module)" in new
    assert conversion.caveats == ("it uses Block, which is still PyTorch",)
    block = line_of(PROGRAM, "class Block")
    helped = applied(PROGRAM, part(PROGRAM, ConversionScope("lines", None, block, block + 6)))
    assert helped.index("def uniform_init(") < helped.index("class Block(nnx.Module)")
    compile(helped, "helped", "exec")


def test_an_expression_is_converted_alone() -> None:
    analysis = Analyst().full("a", PROGRAM, SETTINGS, None)
    span = next(r.span for r in analysis.rewrites if r.name == "torch.softmax")
    new = applied(PROGRAM, part(PROGRAM, ConversionScope("expression", span)))
    assert "return jax.nn.softmax(self.block(x), axis=-1)" in new
    assert new.count("jax") == 2


def test_what_is_refused_says_why() -> None:
    analysis = Analyst().full("a", PROGRAM, SETTINGS, None)
    gap = analysis.findings[0]
    with pytest.raises(ConversionRefused, match="custom_vjp"):
        part(PROGRAM, ConversionScope("expression", gap.span))
    with pytest.raises(ConversionRefused, match="nothing to convert"):
        part(PROGRAM, ConversionScope("lines", None, 4, 5))
    layer = next(r.span for r in analysis.rewrites if r.name == "torch.nn.Linear")
    with pytest.raises(ConversionRefused, match="rngs"):
        part(PROGRAM, ConversionScope("expression", layer))


def test_all_that_is_exact_leaves_what_hangs_together_with_a_finding() -> None:
    new = applied(PROGRAM, part(PROGRAM, ConversionScope("exact")))
    assert "class Block(nnx.Module)" in new and "class Net(nnx.Module)" in new
    assert "def watch(x: torch.Tensor)" in new
    used = PROGRAM + "\n\ndef both(x):\n    return watch(Net()(x))\n"
    left = applied(used, part(used, ConversionScope("exact")))
    assert "class Net(nn.Module)" in left and "def join(x: jax.Array" in left


def test_converting_parts_one_by_one_leaves_no_torch_call() -> None:
    text = PROGRAM.replace("    x.register_hook(print)\n", "")
    for name in ("class Block", "class Net", "def watch", "def join"):
        tree = ast.parse(text)
        node = next(n for n in tree.body if getattr(n, "name", None) == name.split()[1])
        text = applied(text, part(text, ConversionScope("lines", None, node.lineno, node.end_lineno or 0)))
    names = {
        n.value.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
    }
    assert not names & {"torch", "nn", "F"}


@pytest.mark.parametrize("example", ["residual_net", "vision_transformer"])
def test_parts_of_real_files_are_python(example: str) -> None:
    text = (EXAMPLES / f"{example}.py").read_text()
    for definition in Analyst().full("a", text, SETTINGS, None).definitions:
        if definition.edits and definition.kind != "loop":
            new = applied(text, part(text, ConversionScope("lines", None, definition.line, definition.end_line)))
            compile(new, example, "exec")


def test_windows_line_ends_stay() -> None:
    text = PROGRAM.replace("\n", "\r\n")
    first = line_of(PROGRAM, "def join")
    hunks = part(text, ConversionScope("lines", None, first, first + 1)).hunks
    assert all("\r" not in line for hunk in hunks for line in hunk.lines)


def test_a_changed_line_of_a_conversion_is_restored() -> None:
    fresh = "a = 1\nb = jnp.sum(x)\nc = 3\n"
    assert restore("a = 1\nb = jnp.mean(x)\nc = 3\n", fresh, 2).hunks[0].lines == ("b = jnp.sum(x)",)
    assert restore("a = 1\nc = 3\n", fresh, 2).hunks[0].lines == ("b = jnp.sum(x)",)
    with pytest.raises(ConversionRefused):
        restore(fresh, fresh, 2)


FRESH = """import jax
import jax.numpy as jnp


def f(x):
    y = jax.nn.gelu(
        x, approximate=False
    )
    z = y * 2
    return z.sum(axis=1)
"""


def test_only_the_statement_is_restored_and_not_what_was_changed_beside_it() -> None:
    edited = FRESH.replace(", approximate=False", "").replace("y * 2", "2 * y")
    (hunk,) = restore(edited, FRESH, 7).hunks
    assert (hunk.first, hunk.last) == (6, 8)
    assert hunk.lines == ("    y = jax.nn.gelu(", "        x, approximate=False", "    )")
    (hunk,) = restore(edited, FRESH, 9).hunks
    assert (hunk.first, hunk.last, hunk.lines) == (9, 9, ("    z = y * 2",))


def test_what_the_rules_write_does_not_get_into_code_of_ones_own() -> None:
    own = "import jax\n\n\ndef f(inputs):\n    h = jax.nn.gelu(inputs)\n    return (2 * h).sum(1)\n"
    with pytest.raises(ConversionRefused, match="not written by the rules"):
        restore(own, FRESH, 5)
    # The counterpart of the statement reads a name that is not there.
    with pytest.raises(ConversionRefused, match="not written by the rules"):
        restore(own, FRESH, 6)


# --- units and lines --------------------------------------------------------------------------------------------------


def test_a_unit_needs_what_it_reads_and_not_what_has_the_same_name_inside() -> None:
    text = (
        "import torch\ndef f(x):\n    return g(x)\ndef g(y):\n    x = y\n    return x\nx = 3\ndef h():\n    return x\n"
    )
    units = cut(split_lines(text), ast.parse(text), {})
    names = [sorted(u.about.defines) for u in units]
    assert names == [["torch"], ["f"], ["g"], ["x"], ["h"]]
    assert closure(units, [1]) == {0, 1, 2}
    assert closure(units, [4]) == {0, 3, 4}
    assert sorted(map(sorted, groups(units))) == [[1, 2], [3, 4]]


def test_statements_on_one_line_are_one_unit() -> None:
    units = cut(["a = 1; b = a\n", "@d\n", "def f(): pass\n", ""], ast.parse("a = 1; b = a\n@d\ndef f(): pass\n"), {})
    assert [(u.first, u.last) for u in units] == [(1, 1), (2, 3)]


def test_lines_are_mapped_around_edits_and_not_through_them() -> None:
    lines = LineMap(list("abcdef"))
    lines.follow(list("abXYef"))
    assert [lines.to_new(i) for i in range(6)] == [0, 1, None, None, 4, 5]
    lines.follow(list("0abXYef"))
    assert [lines.to_new(i) for i in range(6)] == [1, 2, None, None, 5, 6]
    assert [lines.to_old(i) for i in range(7)] == [None, 0, 1, None, None, 4, 5]
    assert lines.span(Span(1, 3, 2, 1)) == Span(2, 3, 3, 1)
    assert lines.span(Span(2, 0, 4, 0)) is None and lines.to_old(99) is None
    doubled = LineMap(["a"])
    doubled.follow(["a", "a"])
    assert (doubled.to_new(0), doubled.to_old(1)) == (0, None)
