"""Decorators that put another constructor in the place of a module's."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

HEAD = "import functools\nimport torch\nfrom torch import nn\n\n\n"
DECORATOR = """\
def decorated(cls):
    made = cls.__init__

    @functools.wraps(made)
    def init({arguments}):
        {line}
        made({handed})

    cls.__init__ = init
    return cls


@decorated
class Net(nn.Module):
    def __init__(self, *, n=3):
        super().__init__()
        self.layer = nn.Linear(n, n)

    def forward(self, x):
        return self.layer(x)
"""
LOSING = {
    "keeps all keywords": ("self, **given", "self.settings = {**given}", "self, **given"),
    "goes through them": ("self, **given", "self.names = list(given)", "self, **given"),
    "has none": ("self, n=3", "self.n = n", "self, n=n"),
}
TAGGED = """\
def decorated(cls):
    cls.tag = cls.__name__
    return cls


@decorated
class Net(nn.Module):
    def forward(self, x):
        return x
"""


@pytest.mark.parametrize("how", LOSING.values(), ids=LOSING)
@pytest.mark.parametrize("factory", [False, True], ids=["a decorator", "one that is made"])
def test_a_constructor_that_does_not_only_hand_keywords_on_is_a_gap(how: tuple[str, str, str], factory: bool) -> None:
    text = DECORATOR.format(arguments=how[0], line=how[1], handed=how[2])
    if factory:
        head, _, rest = text.partition("\n\n\n")
        inner = "".join(f"    {line}".rstrip() + "\n" for line in head.splitlines())
        text = f"def maker():\n{inner}\n    return decorated\n\n\n" + rest.replace("@decorated", "@maker()")
    (gap,) = convert(HEAD + text).gaps
    assert "is handed rngs" in gap.reason


@pytest.mark.parametrize(
    "text",
    [DECORATOR.format(arguments="self, *a, **given", line="self.seen = True", handed="self, *a, **given"), TAGGED],
    ids=["hands all on", "no constructor"],
)
def test_others_are_none(text: str) -> None:
    assert not convert(HEAD + text).gaps


WRAPPED = """\
def checked(strict=False):
    def decorator(made):
        @functools.wraps(made)
        def wrapper(self, *positional, **given):
            {}
            return made(self, *positional, **{})

        return wrapper

    return decorator


class Net(nn.Module):
    @checked(strict=True)
    def __init__(self, n=3):
        super().__init__()
        self.layer = nn.Linear(n, n)

    def forward(self, x):
        return self.layer(x)
"""


@pytest.mark.parametrize(
    ("line", "handed", "gap"),
    [
        ("self.settings = dict(sorted(given.items()))", "given", True),
        ("rest = {**given}", "rest", True),
        ("self.seen = True", "given", False),
        ("given = {k: v for k, v in given.items() if not k.startswith('_')}", "given", False),
        ("given = {k: v for k, v in given.items() if k != 'name' and k}", "given", True),
        ("given = {k: v for k, v in given.items() if k not in ('name', 'tag')}", "given", False),
        ("given = {k: v for k, v in given.items() if k not in KNOWN}", "given", True),
        ("given = {k: v for k, v in given.items() if not k.startswith(('r', '_'))}", "given", True),
        ("given = {k: str(v) for k, v in given.items() if not k.startswith('_')}", "given", True),
        ("given = {k: v for k, v in given.items() if k in {'n'}}", "given", True),
    ],
    ids=[
        "keeps keywords",
        "makes a dict of them",
        "hands them on",
        "leaves out others",
        "has a condition more",
        "names others",
        "leaves out what isn't known",
        "leaves out what begins so",
        "changes values",
        "keeps some",
    ],
)
def test_so_of_a_decorator_of_the_constructor_itself(line: str, handed: str, gap: bool) -> None:
    reasons = [one.reason for one in convert(HEAD + WRAPPED.format(line, handed)).gaps]
    assert any("is handed rngs" in reason for reason in reasons) is gap
