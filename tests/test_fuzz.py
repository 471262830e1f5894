"""Hypothesis breaks real sources and drives the translator with them.

The sources are read at run time from installed packages (torch's own Python files, einops) and from ``examples/``.
Whatever is left of them: the translator raises nothing but SourceError, its output parses, every comment and string
literal that the source held is still there, and converting the output again changes nothing.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2j_lsp.contract import SourceError, Translation
from t2j_lsp.contract.translation import InternalError
from t2j_lsp.translate import translate
from t2j_lsp.translate.rule.names import may_use_torch

ROOT = Path(__file__).resolve().parents[1]
PATTERNS = {
    "torch": ("nn/modules/*.py", "optim/*.py", "nn/utils/*.py", "distributions/*.py"),
    "einops": ("**/*.py",),
    "flax": ("nnx/*.py",),
}
SMALL = 12_000
"""Characters: whole files up to this size are mutated, so that one example takes milliseconds."""


@cache
def real_files() -> tuple[Path, ...]:
    path = sorted((ROOT / "examples").glob("*.py"))
    for package, patterns in PATTERNS.items():
        spec = importlib.util.find_spec(package)
        assert spec is not None, f"{package} is not installed; install t2j-lsp[dev]"
        assert spec.submodule_search_locations
        home = Path(next(iter(spec.submodule_search_locations)))
        path += [file for pattern in patterns for file in sorted(home.glob(pattern))]
    return tuple(path)


@cache
def small_sources() -> tuple[str, ...]:
    texts = [file.read_text(encoding="utf-8") for file in real_files()]
    return tuple(text for text in texts if 200 < len(text) <= SMALL)


NEVER_IN_JAX = re.compile(
    r"\bis_(scripting|tracing|compiling|dynamo_compiling|in_onnx_export)\b|\bhas_torch_function|\.device != \w+\.device"
)
"""Conditions that are known to be false in JAX: their branches go, with the strings in them."""


def comments_and_strings(source: str) -> tuple[Counter[str], Counter[str]]:
    """Every comment, and every string literal by value, that the text holds."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = Counter(token.string for token in tokens if token.type == tokenize.COMMENT)
    return comments, Counter(strings(ast.parse(source)))


def strings(tree: ast.AST) -> Iterator[str]:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    if isinstance(tree, ast.If | ast.IfExp | ast.BoolOp) and NEVER_IN_JAX.search(ast.unparse(tree)):
        return
    for child in ast.iter_child_nodes(tree):
        yield from strings(child)


def holds(source: str) -> Translation | None:
    """Translate ``source`` and assert what must hold of every text; None if it is not Python."""
    try:
        translation = translate(source)
    except InternalError:
        raise
    except SourceError as error:
        assert str(error)
        return None
    ast.parse(translation.code)
    if not may_use_torch(source):  # ``x.size(0)`` tells of torch, whether the text names it or not.
        assert translation.code == source
    comments, texts = comments_and_strings(source)
    new_comments, new_texts = comments_and_strings(translation.code)
    assert not comments - new_comments
    lost = [text for text in texts - new_texts if is_prose(text)]
    assert not lost
    again = translate(translation.code)
    assert again.code == translation.code
    for finding in translation.findings:
        span = finding.span
        assert 1 <= span.line <= span.end_line <= source.count("\n") + source.count("\r") + 1
        assert finding.reason
    return translation


def is_prose(text: str) -> bool:
    """Whether a string literal is the user's own text: arguments such as ``"mean"`` may be converted away."""
    return " " in text


@pytest.mark.parametrize("file", real_files(), ids=lambda file: "/".join(file.parts[-3:]))
def test_real_files_hold(file: Path) -> None:
    assert holds(file.read_text(encoding="utf-8")) is not None


@st.composite
def broken_lines(draw: st.DrawFn) -> str:
    """A real source with some of its lines deleted, doubled, swapped or indented differently."""
    lines = draw(st.sampled_from(small_sources())).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 6))):
        if not lines:
            break
        index = draw(st.integers(0, len(lines) - 1))
        other = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["delete", "double", "swap", "indent", "dedent", "cut", "join", "move"])):
            case "delete":
                del lines[index]
            case "double":
                lines.insert(index, lines[index])
            case "swap":
                lines[index], lines[other] = lines[other], lines[index]
            case "indent":
                lines[index] = "    " + lines[index]
            case "dedent":
                lines[index] = lines[index].removeprefix("    ")
            case "cut":
                lines = lines[:index]
            case "join":
                lines[index] = lines[index].rstrip("\n")
            case "move":
                lines.insert(other, lines.pop(index))
    return "".join(lines)


@st.composite
def broken_tokens(draw: st.DrawFn) -> str:
    """A real source with some of its tokens deleted, doubled, or replaced by others of the same kind."""
    source = draw(st.sampled_from(small_sources()))
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    solid = [t for t in tokens if t.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)]
    edits = draw(st.lists(st.tuples(st.integers(0, len(solid) - 1), st.sampled_from("dxrs")), min_size=1, max_size=4))
    for index, kind in sorted(dict(edits).items(), reverse=True):
        token = solid[index]
        same = [t.string for t in solid if t.type == token.type]
        new = {
            "d": "",
            "x": f"{token.string} {token.string}",
            "r": draw(st.sampled_from(same)),
            "s": draw(st.sampled_from(SPLICES)),
        }[kind]
        start, end = (starts[row - 1] + column for row, column in (token.start, token.end))
        source = source[:start] + new + source[end:]
    return source


SPLICES = (
    "torch",
    "x",
    "self",
    "()",
    "[0]",
    "(yield)",
    "(await x)",
    "lambda: 0",
    "*",
    "**",
    "...",
    "None",
    "x if y else z",
    "(x := y)",
    "f'{torch.cat([x, x]):>{3}}'",
    "'''a\nb'''",
    "torch.zeros(2)[0].view(-1)",
    "[i for i in x if torch.any(i)]",
    "\\\n",
    "😀",
    "é",
    "x.size(0)",
    "nn.Linear(2, 3)",
    "# torch\n",
    "global torch",
    "del torch",
    "print(*x, **y)",
    "x[..., None, ::2]",
    "not x",
)


@given(broken_lines())
@settings(max_examples=150)
def test_broken_lines_hold(source: str) -> None:
    holds(source)


@given(broken_tokens())
@settings(max_examples=250)
def test_broken_tokens_hold(source: str) -> None:
    holds(source)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_any_text_holds(text: str) -> None:
    holds(text)


@given(st.sampled_from(small_sources()), st.sampled_from(["\r\n", "\r"]))
@settings(max_examples=20)
def test_line_ends_make_no_difference(source: str, newline: str) -> None:
    if "\r" in source or "\x0c" in source:
        return
    changed = translate(source.replace("\n", newline)).code
    assert changed.replace(newline, "\n") == translate(source).code
