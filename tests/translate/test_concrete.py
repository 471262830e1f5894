"""Positions of the concrete tree, against those of ``ast`` and ``tokenize``; what the interpreter is too old for."""

from __future__ import annotations

import ast
import importlib.util
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from t2j_lsp.contract import SourceError
from t2j_lsp.translate import translate
from t2j_lsp.translate.source.concrete import Concrete, Unreadable
from t2j_lsp.translate.source.newer_syntax import newer_syntax
from t2j_lsp.translate.source.syntax import comments_of, plain_statement
from t2j_lsp.translate.source.text import Source

ROOT = Path(__file__).parents[2]


def _files() -> list[Path]:
    """The examples, the translator itself, the models of the tests and a package of somebody else."""
    flax = Path((importlib.util.find_spec("flax") or pytest.fail("flax is missing")).origin or "").parent
    folders = (ROOT / "examples", ROOT / "t2j_lsp" / "translate", ROOT / "tests" / "translate", flax / "nnx" / "nn")
    return [file for folder in folders for file in sorted(folder.rglob("*.py"))]


ODD = {
    "crlf": "import a\r\nif a:\r\n    b(  # c\r\n        1,\r\n    )\r\n",
    "carriage returns": "import a\rif a:\r    b = 1\r",
    "tabs": "class A:\n\tdef f(self):\n\t\treturn (1,\t2)\t# c\n",
    "form feeds": "\x0cimport a\n\x0c\ndef f():\n    x = 1\n\x0c\n    return x\n",
    "unicode": "é = 'ä🎉'; b = [é, '漢字']  # ü\nc = {b: '\u2028'}\n",
    "no line break at the end": "def f(): return (1)  # c",
    "semicolons": "a = 1; b = [2]  ;c = 3 ; # d\nif a: b; c\n",
    "continued lines": "x = 1 + \\\n    (2)\nassert x, \\\n    'a'\n",
    "decorators": "@a.b(1)\n# c\n@d\n\n# e\nclass F(G, metaclass=H):\n    @i\n    async def j(self): ...\n",
    "blank before a colon": "try:\n    a\nexcept (B, C) as d :\n    pass\nexcept E :\n    f\nfinally :\n    g\n",
    "every block": (
        "async def f():\n  async with a as b, c:\n    async for d in e:\n      p\n    else:\n      p\n"
        "while x:\n    break\nelse:\n    y\nif a:\n    b\nelif c:\n    d\nelif e: f\nelse:\n    # g\n    h\n    # i\n"
        "try:\n    pass\nexcept* A:\n    b\n"
        "match m:\n    case [1, *_] if n:\n        o\n    case {'a': B(c=1)} | None:\n        pass\n"
        "with (p as q, r as s,):\n    t\nfrom u import (\n    v,  # w\n)\nfrom . import *\n"
    ),
    "brackets": "a = ((1), (2,), [x for x in (y) if z], {**{}, 'k': f(*g)[1:2, ...]}, lambda p=(1, 2), *q: (p, q))\n",
    "strings": "a = '(' + \"[\" + '''{\n#'''  # ' (\nb = f'({a}[{{' f\"{a['(']:>{len(a)}}\"\n",
    "comments": "# a\n\n# b\nimport c  # d\n\n\nclass E:\n    # f\n\n    # g\n    h = 1\n # i\n    # j\n# k\n",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_positions_in_odd_texts_are_those_of_ast_and_tokenize(text: str) -> None:
    _compare(text)


@pytest.mark.parametrize("file", _files(), ids=lambda file: "/".join(file.parts[-2:]))
def test_positions_in_files_are_those_of_ast_and_tokenize(file: Path) -> None:
    _compare(file.read_bytes().decode().removeprefix("\ufeff"))


def _compare(text: str) -> None:
    concrete, source = Concrete(text), Source(text)
    nodes = {source.span(node)[0]: node for node in ast.walk(source.tree) if isinstance(node, ast.stmt)}
    assert concrete.statements.keys() == nodes.keys()
    for start, node in nodes.items():
        one = concrete.statements[start]
        assert one.end == source.span(node)[1]
        assert text[one.start] == "@" if getattr(node, "decorator_list", None) else one.start == start
    if "\r" in text.replace("\r\n", "") or text.startswith("\x0c"):
        return  # tokenize's own columns are off there
    tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    starts = [*source.starts, len(text), len(text)]
    at = [(starts[t.start[0] - 1] + t.start[1], t) for t in tokens]
    assert concrete.comments == tuple((start, t.string) for start, t in at if t.type == tokenize.COMMENT)
    brackets = {start for start, t in at if t.type == tokenize.OP and t.string in tuple("()[]{}")}
    jax_side = {place for one in concrete.brackets.pairs.values() for place in (one.start, one.end - 1)}
    inside = {place for one in concrete.fields for place in _of_string(concrete, one.start)}
    assert jax_side - inside == brackets - inside


def _of_string(concrete: Concrete, place: int) -> range:
    """The f-string around a place: before Python 3.12 tokenize has it as one token."""
    import libcst

    strings = [span for node, span in concrete.spans.items() if isinstance(node, libcst.FormattedString)]
    return range(*max((span for span in strings if span[0] <= place < span[1]), key=lambda span: span[1] - span[0]))


FSTRINGS = [
    "f'{a}'",
    "f'{ a !r:>{ w }.{p}f}' 'x' f\"{b['k']:%H:%M} {{c}}\"",
    "f'{(a + b)}{(a), (b)}{a, b}{[(x), (y)]}'",
    "f'{a=}{a.b(c)[d]!s}{lambda_}{(lambda: 1)()}'",
    'f\'{f"{a}" + f"{b:{c}}"}ä{d}\'',
    "f'''{\n  a(\n  b)\n}{c}'''",
    "F'{x != y}{x if y == z else w}' rf'\\d{x}'",
    "é + f'ü{é.ü}'",
]


@pytest.mark.parametrize("text", FSTRINGS)
def test_expressions_in_f_strings_stand_where_ast_says(text: str) -> None:
    source = Source(f"import a; v = ({text})\n")
    seen = 0
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FormattedValue):
            for inner in ast.walk(node.value):
                if isinstance(inner, ast.expr) and not isinstance(inner, ast.JoinedStr):
                    if not _within_string(inner, source):
                        segment = source.segment(inner)
                        assert ast.dump(ast.parse(f"({segment})", mode="eval").body) == ast.dump(inner)
                        seen += 1
    assert seen


def _within_string(node: ast.expr, source: Source) -> bool:
    """Whether a node is the text of an f-string or one of its fields, which have no position of their own."""
    strings = [n for n in ast.walk(source.tree) if isinstance(n, ast.JoinedStr)]
    return isinstance(node, ast.FormattedValue) or any(node in string.values for string in strings)


def test_calls_in_f_strings_convert_in_every_place() -> None:
    code = translate("import torch\nprint(f'''{torch.exp(x +\n  y)} {torch.sin(x):>{torch.sin(w)}}''')\n").code
    assert "{jnp.exp(x +\n  y)} {jnp.sin(x):>{jnp.sin(w)}}" in code


def test_brackets_that_only_group_are_told_from_those_of_a_call() -> None:
    text = "x = (a).b + y(c) * ( # d\n  e  # f\n) + (g, h)"
    concrete = Concrete(text)

    def around(name: str) -> str | None:
        at = text.index(name)
        one = concrete.brackets.around(at, at + 1)
        return None if one is None else f"{text[one.start]}{'group' if one.group else 'call'}"

    assert [around(name) for name in ("a", "c", "e", "g")] == ["(group", "(call", "(group", None]


def test_commas_of_a_bracket_are_its_own() -> None:
    text = "f(a, (b, c), lambda d, e=(1, 2): g, h={i, j}, *k)"
    outer = Concrete(text).brackets.pairs[1]
    assert [text[:at].count(",") for at in outer.commas] == [0, 2, 5, 7]


def test_clauses_of_a_comprehension_belong_to_its_bracket() -> None:
    text = "x = [a for a in (b for b in c if d) if  (e for e in f)]"
    assert [text[at : at + 5] for at in Concrete(text).brackets.pairs[4].clauses] == ["for a", "if  ("]


def test_comments_belong_to_their_statement() -> None:
    text = "# top\n\n# a\n# b\nx = 1  # c\n\n# d\n\ny = 2; z = 3  # e\nif x:  # f\n    # g\n    pass  # h\n"
    result = {text[start]: one for start, one in Concrete(text).statements.items()}
    behind = {name: text[slice(*one.behind)] if one.behind else None for name, one in result.items()}
    assert behind == {"x": "# c", "y": None, "z": "# e", "i": "# h", "p": "# h"}
    assert {name: one.above for name, one in result.items()} == {
        "x": ("# a", "# b"), "y": (), "z": (), "i": (), "p": ("# g",),
    }  # fmt: skip
    assert [name for name, one in result.items() if not one.alone] == ["z"]
    separator = result["y"].separator
    assert separator is not None and text[separator] == "z"


FREE = "an f-string whose expressions hold its own quotes, a backslash or a comment"
NEWER = [
    ("x = 1\ntype A = int\n", 2, "a type statement", (3, 12)),
    ("def f():\n    pass\n\n@a\ndef g[T](x: T) -> T:\n    return x\n", 5, "a function with type parameters", (3, 12)),
    ("class A[T = int]:\n    pass\n", 1, "a type parameter with a default", (3, 13)),
    ("a = t'{b}'\n", 1, "a t-string", (3, 14)),
    ("try:\n    a\nexcept B, C:\n    d\n", 3, "except with several exceptions and no brackets", (3, 14)),
    ('a = 1\nb = f"{c["d"]}"\n', 2, FREE, (3, 12)),
    ("b = f'{'\\n'.join(c)}'\n", 1, FREE, (3, 12)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "what", "version"), NEWER)
def test_syntax_is_named_with_the_python_that_has_it_first(
    text: str, line: int, what: str, version: tuple[int, int]
) -> None:
    assert newer_syntax(text, line, running=(version[0], version[1] - 1)) == (line, what, version)
    assert newer_syntax(text, line, running=version) is None


def _newer_here() -> Iterator[str]:
    for text, _, _, version in NEWER:
        if version > sys.version_info[:2]:
            yield text


@pytest.mark.parametrize("text", list(_newer_here()))
def test_what_this_interpreter_does_not_parse_is_refused_by_name(text: str) -> None:
    with pytest.raises(SourceError, match=r"^line \d+: .* needs Python 3\.\d+, and t2j runs in Python 3"):
        translate("import torch\n" + text)


@pytest.mark.parametrize("text", ["def f(:\n", "x = (\n", "f(" * 3000, "x = " + "-" * 30000 + "\ny = (\n"])
def test_what_is_no_python_at_all_keeps_the_message_of_the_interpreter(text: str) -> None:
    with pytest.raises(SourceError) as error:
        translate("import torch\n" + text)
    assert "needs Python" not in str(error.value)


def test_what_libcst_does_not_parse_is_refused_with_its_line() -> None:
    with pytest.raises(SourceError, match=r"^line 3: t2j reads files with libcst, and libcst does not parse it"):
        translate("import torch  # the one library\ndef f():\n    (x): int\n    return torch.exp(x)\n")


def test_libcst_is_not_asked_where_statements_have_their_lines_for_themselves() -> None:
    code = translate("import torch\ndef f():\n    (x): int\n    return torch.exp(x)\n").code
    assert code == "import jax.numpy as jnp\ndef f():\n    (x): int\n    return jnp.exp(x)\n"


PLAIN = """import os
from sys import (
    argv,  # the arguments
    path,
)
# above
x = 1
y = f(  # inside
    x, (x + 1), [x  # last
    ])
z = 1; w = 2
v = 3  # behind
s = '''
# no comment'''
u = 4 \\

if x: a = 1
class A:
    "Doc # string."

    b: int = 1
    @property
    def f(self):
        return (self.b)
    # behind the method
    c = "é#", "#"  # here
"""


def test_what_is_plain_to_see_is_what_libcst_says() -> None:
    source = Source(PLAIN)
    plain = [(n, p) for n in source.nodes if isinstance(n, ast.stmt) and (p := plain_statement(source, n)) is not None]
    assert [replace(source.parsed_statement(node), node=None) for node, _ in plain] == [one for _, one in plain]
    assert [node.lineno for node, _ in plain] == [1, 2, 8, 13, 19, 21, 24]
    assert comments_of(source.text, source.starts) == source.concrete.comments and len(source.comments) == 7
    for node in (n for n in source.nodes if isinstance(n, ast.expr)):
        span = source.span(node)
        assert source.brackets_around(*span) == source.concrete.brackets.around(*span)


def test_a_text_that_libcst_does_not_parse_has_no_concrete_tree() -> None:
    with pytest.raises(Unreadable) as error:
        Concrete("x = 1\ny = (\n")
    assert error.value.at >= 6


@pytest.mark.parametrize("module", ["t2j_lsp.cli", "t2j_lsp.lsp.server"])
def test_libcst_is_loaded_with_the_first_conversion(module: str) -> None:
    code = f"import sys, {module}; assert 'libcst' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_converts_without_libcst() -> None:
    code = (
        "import sys; sys.modules['libcst'] = None\nfrom t2j_lsp import convert\nconvert('import torch\\ntorch.exp(x)')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "libcst" in done.stderr


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("a = 1; import torch; b = 2\n", "a = 1; b = 2\n"),
        ("import torch; b = 2  # c\n", "b = 2  # c\n"),
        ("a = 1; import torch  # c\n", "a = 1; pass  # c\n"),
        ("a = 1\nimport torch  # c\nb = 2\n", "a = 1\n# c\nb = 2\n"),
        ("if a: import torch; b\n", "if a: b\n"),
    ],
)
def test_a_statement_goes_with_its_separator_and_without_its_comment(source: str, code: str) -> None:
    assert translate(source).code == code
