"""What constants make plain in copied helpers is written plainly: conditions, loops, variables, calls, strings."""

from __future__ import annotations

import ast

import pytest

from t2j_lsp import convert
from t2j_lsp.translate.source.folding.constants import folded
from t2j_lsp.translate.source.folding.docstrings import without_entries, without_sentences
from t2j_lsp.translate.source.folding.evaluation import evaluated, pure_functions
from t2j_lsp.translate.source.folding.inlining import expression_of, inlined
from t2j_lsp.translate.source.folding.joining import joined
from t2j_lsp.translate.source.folding.signatures import without_parameters
from t2j_lsp.translate.source.folding.unrolling import unrolled
from t2j_lsp.translate.source.folding.variables import without_idle_variables
from t2j_lsp.translate.source.helpers import helpers

from .test_cut_helpers import HEAD, definitions


def test_lines_are_joined_without_a_change_of_meaning() -> None:
    for helper in helpers().values():
        text = joined(helper.text)
        assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(helper.text)), helper.name
    assert joined("x = (\n    1,\n)\n") == "x = (1,)\n"
    assert joined("x = f(\n    1,\n)\n") == "x = f(1)\n"
    long = ", ".join(["a" * 30] * 3)
    exploded = "".join(f"    {'a' * 30},\n" for _ in range(3))
    assert joined(f"x = f{'f' * 30}(\n{exploded})\n") == f"x = f{'f' * 30}(\n    {long}\n)\n"
    assert joined("x = f(\n    1,  # one\n)\n") == "x = f(\n    1,  # one\n)\n"


FOLDED = {
    "a branch": (
        "def f(x, a):\n    if a is None:\n        return x\n    return x + a\n",
        "def f(x, a):\n    return x\n",
    ),
    "the other branch": ("def f(x, a):\n    if a:\n        x = x + 1\n    return x\n", "def f(x, a):\n    return x\n"),
    "an elif": (
        "def f(x, a):\n    if x:\n        y = 1\n    elif a is None:\n        y = 2\n    else:\n        y = 3\n"
        "    return y\n",
        "def f(x, a):\n    if x:\n        y = 1\n    else:\n        y = 2\n    return y\n",
    ),
    "an expression": ("def f(x, a):\n    return x if a is None else a\n", "def f(x, a):\n    return x\n"),
    "and": ("def f(x, a):\n    return a is None and x > 0\n", "def f(x, a):\n    return x > 0\n"),
    "not": ("def f(x, a):\n    if not a:\n        return 1\n    return x\n", "def f(x, a):\n    return 1\n"),
    "a number that is taken away": (
        "def f(x, a):\n    return x - (-1 if a is None else 1)\n",
        "def f(x, a):\n    return x + 1\n",
    ),
    "a keyword of that name": ("def f(x, a):\n    return g(a=a)\n", "def f(x, a):\n    return g(a=None)\n"),
    "an attribute of that name": ("def f(x, a):\n    return x.a\n", "def f(x, a):\n    return x.a\n"),
}


@pytest.mark.parametrize("name", FOLDED)
def test_a_constant_decides_what_it_decides(name: str) -> None:
    before, after = FOLDED[name]
    assert folded(before, (("a", "None"),)) == after


def test_numbers_and_kinds_of_literals_are_worked_out() -> None:
    text = "def f(x, a):\n    return x.shape[a - 2 : x // a], a * x, isinstance(a, str)\n"
    assert folded(text, (("a", "1"),)) == "def f(x, a):\n    return x.shape[-1:x], x, False\n"
    infinite = 'def f(x, a):\n    return a == float("inf"), a > float("-inf"), x == float("inf"), a == float("nan")\n'
    assert folded(infinite, (("a", "2.0"),)) == (
        'def f(x, a):\n    return False, True, x == float("inf"), 2.0 == float("nan")\n'
    )
    assert "x // 2" in folded(text, (("a", "2"),)) and "2 * x" in folded(text, (("a", "2"),))


def test_a_negative_number_keeps_its_place() -> None:
    assert folded("def f(a):\n    return a**2\n", (("a", "-1"),)) == "def f(a):\n    return (-1)**2\n"


def test_parameters_go_with_what_is_said_of_them() -> None:
    text = 'def f(x, *, a=1, b=2):\n    """One.\n\n    Args:\n      x: two.\n      a: three,\n        four.\n'
    text += '    """\n    return x\n'
    assert without_parameters(text, "f", frozenset("ab")) == (
        'def f(x):\n    """One.\n\n    Args:\n      x: two.\n    """\n    return x\n'
    )
    assert without_entries('"""One.\n\n    Args:\n      a: two.\n    """', frozenset("a")) == '"""One."""'


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("One; `a` scales it.", "One."),
        ("One (over `a`), as `torch.one`.", "One, as `torch.one`."),
        ("One of `a`.", "One of `a`."),  # The first sentence is what the function is for.
        ("One.\n\n    Two of `b`. `a` is three. Four.\n    ", "One.\n\n    Two of `b`. Four.\n    "),
        ("One.\n\n    `a` is two.\n    ", "One."),
        ("One; `a`.\n\n    Args:\n      b: two.\n    ", "One.\n\n    Args:\n      b: two.\n    "),
        (
            "One.\n\n        Two; `a`.\n\n        Args:\n          b: `a`.\n        ",
            "One.\n\n        Args:\n          b: `a`.\n        ",
        ),
        ("One.\n\n        Returns:\n          `a`.\n        ", "One.\n\n        Returns:\n          `a`.\n        "),
    ],
)
def test_what_a_docstring_says_of_a_parameter_goes_with_it(said: str, left: str) -> None:
    assert without_sentences(f'"""{said}"""', frozenset("a")) == f'"""{left}"""'


@pytest.mark.parametrize(
    ("text", "constants", "cut"),
    [
        ("isinstance(x, A) == flag", {"flag": "True"}, "isinstance(x, A)"),
        ("isinstance(x, A) == flag", {"flag": "False"}, "not isinstance(x, A)"),
        ("jnp.sum(x, axis=axis, keepdims=keep)", {"axis": "None", "keep": "False"}, "jnp.sum(x)"),
        ("jnp.max(x, axis=axis, keepdims=keep)", {"axis": "1", "keep": "False"}, "jnp.max(x, axis=1)"),
        ("jnp.mean(x, axis=None)", {"axis": "1"}, "jnp.mean(x, axis=None)"),
        ("other.sum(x, axis=axis)", {"axis": "None"}, "other.sum(x, axis=None)"),
    ],
)
def test_what_a_constant_makes_plain_is_written_plainly(text: str, constants: dict[str, str], cut: str) -> None:
    assert folded(f"def f(x):\n    return {text}\n", tuple(constants.items())) == f"def f(x):\n    return {cut}\n"


def test_an_expression_moves_only_where_its_names_mean_the_same() -> None:
    function = "def g(x):\n    return jnp.exp(x)\n"
    assert expression_of(function) == "jnp.exp(x)"
    assert inlined("def f(y):\n    return g(y + 1)\n", function) == "def f(y):\n    return jnp.exp(y + 1)\n"
    assert inlined("def f(jnp):\n    return g(jnp)\n", function) is None
    twice = "def g(x):\n    return x * x\n"
    assert inlined("def f(y):\n    return g(h(y))\n", twice) is None
    assert inlined("def f(y):\n    return g(y) + 1\n", twice) == "def f(y):\n    return (y * y) + 1\n"


def test_idle_variables_go() -> None:
    text = "def f(x):\n    a = None\n    b = jnp.ones(3)\n    if a is not None:\n        x = x + a\n    return x\n"
    assert without_idle_variables(text) == "def f(x):\n    return x\n"
    effect = "def f(x):\n    b = x.pop()\n    return x\n"
    assert without_idle_variables(effect) == effect
    inner = "def f(x):\n    a = None\n\n    def g(a):\n        return a\n\n    return g(x)\n"
    assert "return a" in without_idle_variables(inner)


CALLS = {
    "a helper": ("y = twice(2)", "y = 4"),
    "by a name": ("y = twice(value=(1,))", "y = (1, 1)"),
    "of something unknown": ("y = twice(x)", "y = twice(x)"),
    "a builtin": ("y = len((1, 2)), max((1, 3)), tuple([1])", "y = 2, 3, tuple([1])"),
    "that fails": ("y = len(1)", "y = len(1)"),
    "a number": ("y = float(2), float(0.5), float(x)", "y = 2.0, 0.5, float(x)"),
    "no number": ('y = float("inf"), float("1"), float(True)', 'y = float("inf"), float("1"), float(True)'),
    "a method of a string": ('y = "l0_reverse".endswith("_reverse")', "y = True"),
    "too long a result": ("y = twice((1, 2, 3))", "y = twice((1, 2, 3))"),
    "of itself": ("y = f(1)", "y = f(1)"),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_pure_functions_with_literals_are_worked_out(name: str) -> None:
    before, after = CALLS[name]
    texts = {
        "f": f"def f(x):\n    {before}\n    return y\n",
        "twice": "def twice(value: Any) -> Any:\n    return value * 2\n",
        "impure": "def impure(x):\n    return jnp.exp(x)\n",
    }
    pure = pure_functions({name: text for name, text in texts.items() if name != "f"})
    assert [name for name, _ in pure] == ["twice"]
    assert evaluated(texts["f"], pure) == f"def f(x):\n    {after}\n    return y\n"


LOOPS = {
    "one element": ('for a in ("",):\n        g(a)', 'a = ""\n    g(a)'),
    "one round": ("for i in range(1):\n        g(i)", "i = 0\n    g(i)"),
    "two elements": ("for a in (1, 2):\n        g(a)", "for a in (1, 2):\n        g(a)"),
    "a count from 1": ("for i in range(1, 3):\n        g(i)", "for i in range(1, 3):\n        g(i)"),
    "a break": ("for i in range(1):\n        break", "for i in range(1):\n        break"),
    "a break of a loop in it": (
        "for i in range(1):\n        for j in x:\n            break",
        "i = 0\n    for j in x:\n            break",
    ),
    "an else": ("for i in range(1):\n        g(i)\n    else:\n        h()", None),
    "an attribute by its name": ('setattr(self, "a", getattr(self, "b"))', "self.a = self.b"),
    "an attribute by a name with a dot": ('setattr(self, "a.b", 1)', 'setattr(self, "a.b", 1)'),
    "an attribute with a default": ('getattr(self, "b", None)', 'getattr(self, "b", None)'),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_one_round_and_names_of_attributes_are_written_plainly(name: str) -> None:
    before, after = LOOPS[name]
    text = "def f(self, x):\n    {}\n"
    assert ast.dump(ast.parse(unrolled(text.format(before)))) == ast.dump(ast.parse(text.format(after or before)))


def test_variables_that_are_another_one_go() -> None:
    text = "def f(x):\n    a = x\n    return a + 1\n"
    assert without_idle_variables(text) == "def f(x):\n    return x + 1\n"
    changed = "def f(x):\n    a = x\n    x = x + 1\n    return a + x\n"
    assert without_idle_variables(changed) == changed


def test_conditions_that_are_known_in_part_are_cut() -> None:
    text = "def f(x, a):\n    return x > 0 and a, x > 0 and not a, x > 0 or a, g(x) > 0 and not a, x and a\n"
    assert folded(text, (("a", "True"),)) == (
        "def f(x, a):\n    return x > 0, False, True, g(x) > 0 and False, x and True\n"
    )


def test_what_asks_for_nothing_is_known_and_brackets_that_say_nothing_go() -> None:
    asked = "k in a, k not in a, g(k) in a, x or b and (k or x), x and (k or x), x or (k and x)"
    text = f"def f(k, x, a, b):\n    return {asked}\n"
    assert folded(text, (("a", "()"), ("b", "True"))) == (
        "def f(k, x, a, b):\n    return False, True, g(k) in (), x or k or x, x and (k or x), x or (k and x)\n"
    )


def test_strings_are_put_together() -> None:
    text = 'def f(x, a, b):\n    return f"l{a}{b}", f"l{a}_{x}", f"{a!r}", f"{a:2}"\n'
    assert folded(text, (("a", "0"), ("b", '"_back"'))) == (
        'def f(x, a, b):\n    return "l0_back", f"l0_{x}", f"{0!r}", f"{0:2}"\n'
    )
    odd = 'def f(a):\n    return f"l{a}"\n'
    assert folded(odd, (("a", '"{}"'),)) == odd


def test_annotations_go_with_the_imports_that_only_they_need() -> None:
    done = convert(HEAD + "def f(x: torch.Tensor):\n    return F.pad(x, (1, 1))\n")
    assert "import Sequence" not in done.code and "def pad(x: jax.Array, padding" in done.code
    user = HEAD.replace("import torch\n", "from collections.abc import Sequence\n\nimport torch\n", 1)
    kept = convert(user + "def f(x, sizes: Sequence[int]):\n    return F.pad(x, (1, 1))\n")
    assert "padding: Sequence[int]" in kept.code


def test_helpers_are_annotated_where_their_file_is() -> None:
    defined = definitions("def f(x, ids):\n    return nn.utils.rnn.pad_sequence(x), torch.max(x, 1)\n")
    for name, node in defined.items():
        functions = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef)]
        assert all(f.returns is None and all(a.annotation is None for a in f.args.args) for f in functions), name
    assert ast.unparse(defined["ValuesAndIndices"]).endswith("namedtuple('ValuesAndIndices', 'values indices')")
    record = definitions("def f(x: torch.Tensor):\n    return torch.max(x, 1)\n")["ValuesAndIndices"]
    assert isinstance(record, ast.ClassDef) and {type(s) for s in record.body[1:]} == {ast.AnnAssign}


def test_a_class_says_nothing_of_parameters_that_its_constructor_lost() -> None:
    code = convert(
        "import torch\nfrom torch import nn\n\nattention = nn.MultiheadAttention(8, 2)\n"
        "print(attention(*[torch.ones(3, 1, 8)] * 3)[0].shape)\n"
    ).code
    assert "`in_proj_weight` (3 * embed_dim, embed_dim) holds the rows" in code
    assert "kdim" not in code


def test_a_class_that_was_put_together_begins_with_its_constructor_and_declares_no_attribute_twice() -> None:
    code = convert(
        "import torch\nfrom torch.distributions import Normal\n\n\ndef draw(loc: torch.Tensor) -> torch.Tensor:\n"
        "    normal = Normal(loc, 1.0)\n    return normal.log_prob(normal.sample())\n\n\nprint(draw(torch.zeros(2)))\n"
    ).code
    methods = [line.strip() for line in code.splitlines() if line.startswith("    def ")]
    assert methods[0].startswith("def __init__(") and any(m.startswith("def sample(") for m in methods[1:])
    assert "variance: jax.Array" not in code


def test_what_is_left_of_a_choice_counts_up() -> None:
    source = "net = nn.Linear(2, 3)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    source += (
        "schedule = torch.optim.lr_scheduler.StepLR(opt, 2)\nfor i in range(3):\n    print(i)\n    schedule.step({})\n"
    )
    text = ast.unparse(definitions(source.format(""))["LRScheduler"])
    assert "self.last_epoch += 1" in text and "self.last_epoch + 1" not in text
    text = ast.unparse(definitions(source.format("i"))["LRScheduler"])
    assert "self.last_epoch = epoch" in text or "else epoch" in text
