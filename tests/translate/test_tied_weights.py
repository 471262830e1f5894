"""Weights that two layers share are one parameter, whichever of them is made, filled or read first."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

from .convert import body


def test_weight_tying_is_one_parameter() -> None:
    code = body("""
    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10, bias=False)
            self.head.weight = self.wte.weight

        def forward(self, ids):
            return self.head(self.wte(ids))
    """)
    assert "self.head = TiedLinear(self.wte.embedding)" in code
    assert "nnx.Linear" not in code


def test_a_tied_linear_keeps_its_own_bias() -> None:
    code = body("""
    class LM(nn.Module):
        def __init__(self, tie):
            super().__init__()
            self.wte = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10)
            if tie:
                self.head.weight = self.wte.weight

        def forward(self, ids):
            return self.head(self.wte(ids))
    """)
    assert "self.head = nnx.Linear(4, 10" in code
    assert "self.head = TiedLinear(self.wte.embedding, self.head.bias)" in code


TIED_HEAD = "self.head.weight = self.parts.wte.weight"


TIED_TABLE = "self.parts.wte.weight = self.head.weight"


NEW_TABLE = "self.parts.wte = nn.Embedding(vocab, dim)"


OTHER = "nn.Parameter(weight.detach().clone())"


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("place", [f"{TIED_HEAD}\n        self.reset()", f"{TIED_TABLE}\n        self.reset()"])
def test_the_own_weight_of_a_tied_linear_is_a_view_of_the_shared_one(place: str, bias: bool) -> None:
    method = "def reset(self):\n        nn.init.uniform_(self.head.weight)"
    translation = translate(TIED.format(here=place, method=method).replace("bias=False", f"bias={bias}"), Options())
    assert not translation.gaps
    assert "self.head = TiedLinear(self.parts.wte.embedding" in translation.code
    assert "self.head.kernel[...] = rngs.params.uniform(" in translation.code
    assert "class TiedLinear(nnx.Linear)" in translation.code and "class Transposed" in translation.code


@pytest.mark.parametrize(
    ("statements", "tied"),
    [
        ("weight = self.parts.wte.weight\n        self.head.weight = weight", True),
        ("weight = self.parts.wte.weight\n        print(weight.shape)\n        self.head.weight = weight", True),
        (f"weight = self.parts.wte.weight\n        {NEW_TABLE}\n        self.head.weight = weight", False),
        (f"weight = self.parts.wte.weight\n        weight = {OTHER}\n        self.head.weight = weight", False),
    ],
)
def test_a_weight_is_tied_by_way_of_a_variable(statements: str, tied: bool) -> None:
    translation = translate(TIED.format(here=statements, method=""), Options())
    assert tied == (not translation.gaps)
    assert tied == ("self.head = TiedLinear(self.parts.wte.embedding" in translation.code)


def test_a_linear_that_is_initialised_and_then_tied_is_built_first() -> None:
    place = f"nn.init.zeros_(self.head.weight)\n        {TIED_HEAD}"
    code = translate(TIED.format(here=place, method=""), Options()).code
    built, zeros, tied = (code.index(f"self.head{x}") for x in (" = nnx.Linear", ".kernel[...] = ", " = TiedLinear"))
    assert built < zeros < tied


@pytest.mark.parametrize(
    ("place", "method"),
    [
        (f"nn.init.zeros_(self.head.weight)\n        {TIED_TABLE}", ""),
        (f"self.reset()\n        {TIED_TABLE}", "def reset(self):\n        nn.init.zeros_(self.head.weight)"),
        (TIED_HEAD, "def parts(self):\n        return [self.head.weight]"),
        (TIED_HEAD, "def freeze(self):\n        self.head.weight.requires_grad = False"),
        (TIED_HEAD, "def untie(self):\n        self.head.weight = nn.Parameter(torch.zeros(3, 2))"),
        (TIED_HEAD, "def tied(self):\n        return self.head.weight is self.parts.wte.weight"),
        (TIED_HEAD, "def optimizer(self):\n        return torch.optim.SGD((self.head.weight,))"),
    ],
)
def test_a_tied_linears_own_weight_is_a_gap_as_a_parameter_or_before_the_table_has_it(place: str, method: str) -> None:
    translation = translate(TIED.format(here=place, method=method), Options())
    assert "weight tying" in [gap.name for gap in translation.gaps]


WALK = """\
if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=0.02)
        elif isinstance(m, nn.Embedding):
            nn.init.{tables}"""


@pytest.mark.parametrize(
    ("walk", "gaps"),
    [
        (WALK.format(tables="normal_(m.weight, std=0.02)"), []),
        ("if isinstance(m, (nn.Linear, nn.Embedding)):\n            nn.init.normal_(m.weight, std=0.02)", []),
        ("if isinstance(m, nn.Linear):\n            nn.init.zeros_(m.bias)", []),
        (WALK.format(tables="normal_(m.weight, std=0.5)"), ["weight tying"]),
        (WALK[: WALK.index("elif")], []),
    ],
)
def test_a_tied_weight_that_a_walk_fills_as_two_layers_is_a_gap(walk: str, gaps: list[str]) -> None:
    """PyTorch fills it twice, as an Embedding's and as a Linear's, and Flax walks in another order."""
    method = f"def fill(self, m):\n        {walk}"
    source = TIED.format(here=f"{TIED_HEAD}\n        self.apply(self.fill)", method=method)
    assert [gap.name for gap in translate(source, Options()).gaps] == gaps


def test_a_walk_that_fills_linears_before_the_table_has_the_linears_weight_is_a_gap() -> None:
    method = f"def fill(self, m):\n        {WALK[: WALK.index('elif')]}"
    behind, before = f"{TIED_TABLE}\n        self.apply(self.fill)", f"self.apply(self.fill)\n        {TIED_TABLE}"
    assert not translate(TIED.format(here=behind, method=method), Options()).gaps
    assert [gap.name for gap in translate(TIED.format(here=before, method=method), Options()).gaps] == ["weight tying"]


TIED = """\
import torch
import torch.nn as nn


class LM(nn.Module):
    def __init__(self, vocab: int, dim: int):
        super().__init__()
        self.parts = nn.ModuleDict(dict(wte=nn.Embedding(vocab, dim), wpe=nn.Embedding(9, dim)))
        self.head = nn.Linear(dim, vocab, bias=False)
        {here}

    {method}

    def forward(self, ids):
        return self.head(self.parts.wte(ids))
"""


def test_a_table_that_a_linears_weight_replaces_starts_as_the_linear_does() -> None:
    translation = translate(TIED.format(here="self.parts.wte.weight = self.head.weight", method=""), Options())
    code = " ".join(translation.code.split()).replace("( ", "(").replace(" )", ")")
    linear = 'nnx.initializers.variance_scaling(1 / 3, "fan_out", "uniform")'
    assert f"wte=nnx.Embed(vocab, dim, embedding_init={linear}, rngs=rngs" in code
    assert "wpe=nnx.Embed(9, dim, embedding_init=jax.random.normal, rngs=rngs)" in code
    assert "self.head = TiedLinear(self.parts.wte.embedding)" in code
    assert not translation.findings


def test_where_it_is_not_sure_that_the_table_is_replaced_its_initial_values_are_said_to_be_its_own() -> None:
    method = "def tie(self):\n        self.parts.wte.weight = self.head.weight"
    translation = translate(TIED.format(here="self.tie()", method=method), Options())
    assert "variance_scaling" not in translation.code.split("class LM")[1].partition("\n\n\n")[0]
    assert [f.reason for f in translation.findings if f.name == "weight tying"] == [
        "the shared weight starts as an Embedding's here, and as a Linear's in PyTorch"
    ]
