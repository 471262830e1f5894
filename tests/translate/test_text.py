"""Positions, line breaks, layout: the text around what is converted stays as it is."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp.contract import SourceError
from t2j_lsp.translate import translate
from t2j_lsp.translate.output.wrap import wrap_long_lines

from .convert import body, run


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_breaks_are_kept(newline: str) -> None:
    source = newline.join(["import torch", "", "def f(x):", "    return torch.exp(x)  # e", ""])
    code = translate(source).code
    assert f"    return jnp.exp(x)  # e{newline}" in code
    assert code.replace(newline, "").count("\n") == code.replace(newline, "").count("\r") == 0


def test_characters_outside_ascii_do_not_shift_positions() -> None:
    source = 'import torch\ns = "ä🎉"; y = torch.exp(torch.zeros(2)); t = "é"\n'
    assert 's = "ä🎉"; y = jnp.exp(jnp.zeros(2)); t = "é"' in translate(source).code


def test_a_byte_order_mark_stays_in_front() -> None:
    code = translate("\ufeffimport torch\nx = torch.zeros(2)\n").code
    assert code.startswith("\ufeffimport jax.numpy as jnp")


@pytest.mark.parametrize(
    "source", ["import torch\nx = torch.zeros(", "def f(:\n  torch", "import torch\n\tx = 1\n  y = 2\n"]
)
def test_text_that_is_not_python_is_refused_with_its_line(source: str) -> None:
    with pytest.raises(SourceError) as error:
        translate(source)
    assert error.value.line is not None


def test_a_long_line_of_the_output_is_broken_and_one_of_the_source_is_not() -> None:
    long = "x" * 90
    code = body(f"""
    {long} = 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1
    class Net(nn.Module):
        def __init__(self, in_features: int, out_features: int):
            super().__init__()
            self.projection = nn.Linear(in_features * 4, out_features * 4 + in_features * 2)
    """)
    assert f"{long} = 1 + 1" in code
    assert "self.projection = nnx.Linear(\n            in_features * 4," in code


def test_wrapping_keeps_the_source_map_on_the_statement() -> None:
    result = run("""
    class Net(nn.Module):
        def __init__(self, in_features: int, out_features: int):
            super().__init__()
            self.projection = nn.Linear(in_features * 4, out_features * 4 + in_features * 2)
            self.after = 1
    """)
    lines = result.code.splitlines()
    source_line = next(i for i, t in enumerate(result.source.splitlines(), 1) if "self.after" in t)
    entry = next(e for e in result.source_map if e.source_line == source_line)
    assert "self.after" in lines[entry.line - 1]


def wrapped(code: str, source: str = "") -> str:
    return wrap_long_lines(code, source, ast.parse(code), [], "\n")[0]


def test_wrap_gives_up_on_a_line_without_brackets() -> None:
    code = "x = " + " + ".join(["name"] * 40)
    assert wrapped(code) == code


def test_wrap_breaks_a_comprehension_at_its_clauses() -> None:
    code = "x = tuple(length * factor for length, factor in zip(all_lengths, factors_of_axes, strict=True) if factor)"
    assert wrapped(code).splitlines() == [
        "x = tuple(",
        "    length * factor",
        "    for length, factor in zip(all_lengths, factors_of_axes, strict=True)",
        "    if factor",
        ")",
    ]


def test_wrap_indents_as_the_file_does() -> None:
    code = f"def f():\n\tx = g({'a' * 60}, {'b' * 60})\n"
    assert wrapped(code, code.replace("g", "h")).splitlines()[1:] == [
        "\tx = g(",
        f"\t\t{'a' * 60},",
        f"\t\t{'b' * 60},",
        "\t)",
    ]


@pytest.mark.parametrize(
    ("line", "first"),
    [
        (f"x = {'f' * 60}(aaaaaaaaa, bbbbbbbbb, ccccccccc).squeeze(d)", f"x = {'f' * 60}("),
        (f"x = f({'a' * 60}, b) if exists({'c' * 9}) else {'d' * 9}", "x = f("),
        (f"x, y = {'f' * 60}(loss, has_aux=True)(model, batch)", f"x, y = {'f' * 60}(loss, has_aux=True)("),
        (f"x = f({'a' * 84}) * (c)", "x = f("),
    ],
)
def test_wrap_breaks_a_line_where_most_is(line: str, first: str) -> None:
    lines = wrapped(line).splitlines()
    assert lines[0] == first and len(lines) == 3


def test_wrap_breaks_conditions_in_a_bracket_and_dicts() -> None:
    begins = [f'"the_label_{c}" if name.startswith("{c}.[if else]") else ' for c in "abc"]
    assert wrapped(
        f'x = labels({{"a": f("if"), "b": {"b" * 70}}}, lambda name: {"".join(begins)}"d")'
    ).splitlines() == [
        "x = labels(",
        "    {",
        '        "a": f("if"),',
        f'        "b": {"b" * 70},',
        "    },",
        '    lambda name: "the_label_a"',
        '    if name.startswith("a.[if else]")',
        '    else "the_label_b"',
        '    if name.startswith("b.[if else]")',
        '    else "the_label_c"',
        '    if name.startswith("c.[if else]")',
        '    else "d",',
        ")",
    ]


def test_wrap_gives_each_argument_of_a_line_its_own() -> None:
    line = "    first_argument, (1,) * lead + kernel, (1,) * lead + strides, [(0, 0)] * lead + padding, dtype"
    assert wrapped(f"f(\n{line}\n)").splitlines() == [
        "f(",
        "    first_argument,",
        "    (1,) * lead + kernel,",
        "    (1,) * lead + strides,",
        "    [(0, 0)] * lead + padding,",
        "    dtype,",
        ")",
    ]


@pytest.mark.parametrize(
    "line",
    [
        'value = combine(f"{first(a, b)} and {second[c]}", "a, (bracket", \'another, "one\', and_the_last_one)',
        "value = combine(lambda first, second: first + second, [one for one, other in pairs], {'key': value})  # why",
        "async def step(model: nnx.Module, batch: tuple[jax.Array, jax.Array], *args: int, **more: bool) -> None: ...",
        "with first_context(some_argument, another_one) as first, second_context(some_argument, another_one): pass",
        "result = [await value async for name, value in stream_of_values(some_argument, another_argument) if name]",
        "@decorate(first_argument=1, second_argument=2, third_argument=3, fourth_argument=4, fifth=5)\ndef f(): pass",
        "\ufeffvalue = combine(first_argument, second_argument, third_argument, fourth_argument, fifth_argument)",
        "a = 1; value = combine(first_argument, second_argument, third_argument, fourth_argument, fifth_argument)",
        "a, b = (first_argument + second_argument, third_argument), combine(fourth_argument, 'a, b', (fifth, sixth))",
        "if a: first = combine(first_argument, second_argument, third_argument); second = combine(first, 'über; a')",
        "ü = 'ü; b'; returned = combine(first_argument, second_argument, third_argument, 'ü', fifth_argument); b = 1",
        "for a in b: assert combine(first_argument, second_argument, third_argument), 'something about the arguments'",
        "def f(a, b): return a + first_argument(second_argument), b + first_argument(second_argument, third_argument)",
    ],
)
def test_wrap_changes_no_meaning(line: str) -> None:
    tree = ast.parse(line.removeprefix("\ufeff"))
    code, _ = wrap_long_lines(line, "", tree, [], "\n")
    assert code != line
    assert code.startswith(line[:5])
    assert max(map(len, code.splitlines())) <= 88
    assert ast.dump(ast.parse(code.removeprefix("\ufeff"))) == ast.dump(tree)


def test_wrap_gives_each_statement_of_a_line_its_own() -> None:
    made = f"make({', '.join(f'argument_{i}=value_{i}' for i in range(6))})"
    items = [f"        argument_{i}=value_{i}," for i in range(6)]
    shorter = [item[4:] for item in items]
    assert wrapped(f"for a in b: c = {made}; d = 1  # why").splitlines() == [
        "for a in b:",
        *("    c = make(", *items, "    )"),
        "    d = 1  # why",
    ]
    assert wrapped(f"a, b = {made}, c[1, 2]; d = 1").splitlines() == [
        "a, b = (",
        *("    make(", *items, "    ),"),
        "    c[1, 2],",
        ")",
        "d = 1",
    ]
    assert wrapped(f"if a:\n    b = 1\nelse: c = {made}").splitlines()[2:4] == ["else:", "    c = make("]
    assert wrapped(f"a, = (b, {made})").splitlines() == ["a, = (", "    b,", "    make(", *items, "    ),", ")"]
    assert wrapped(f"{made}; a = 1").splitlines() == ["make(", *shorter, ")", "a = 1"]


def test_every_statement_is_in_the_source_map() -> None:
    result = run("def f(x: Tensor):\n    y = torch.exp(x)\n    return y\n")
    mapped = {e.source_line: result.code.splitlines()[e.line - 1] for e in result.source_map}
    source = result.source.splitlines()
    assert mapped[source.index("    y = torch.exp(x)") + 1] == "    y = jnp.exp(x)"
    assert mapped[source.index("    return y") + 1] == "    return y"


def test_no_grad_blocks_lose_a_level_and_stop_the_gradient() -> None:
    code = body("""
    def f(x: Tensor):
        with torch.no_grad():
            y = x * 2
            z = y + 1
        return x + z
    """)
    assert "    y = x * 2\n    z = y + 1\n    z = jax.lax.stop_gradient(z)\n    return x + z" in code


def test_names_of_the_user_are_not_shadowed() -> None:
    code = body("""
    def dropout(x):
        return x

    class Net(nn.Module):
        def forward(self, x):
            return dropout(F.dropout(x, 0.5, training=True))
    """)
    assert "dropout(dropout_(x, 0.5, deterministic=False, rngs=self.rngs))" in code


def test_wrap_breaks_a_line_that_begins_with_a_branch() -> None:
    """Its first half stands on a line above: cut at its ``else``, it is what it was."""
    line = f"    else make_the_layer({', '.join(f'argument_{i}=value_{i}' for i in range(6))})"
    assert wrapped(f"x = [\n    short if small\n{line},\n]").splitlines()[2:] == [
        "    else make_the_layer(",
        *(f"        argument_{i}=value_{i}," for i in range(6)),
        "    ),",
        "]",
    ]
