"""Names that the output writes and that the user's code has taken, in every kind of scope: both sides run and agree."""

from __future__ import annotations

import sys
from types import ModuleType

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.contract import Options, SourceError
from t2j_lsp.translate import pipeline, translate
from t2j_lsp.translate.expressions.rngs import TAKEN

from .side_by_side import compare, randomized, sides

HEAD = "import os\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


@pytest.fixture(autouse=True)
def neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that the sources import: it has names of helpers that mean something else."""
    module = ModuleType("taken_names_neighbour")
    module.layer_norm = lambda x: x * 3  # type: ignore[attr-defined]
    module.pool_padding = module.pad = 7  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)


def same(source: str, name: str, *shape: int) -> str:
    """``f`` and its conversion give the same on random input of ``shape``; returns the conversion."""
    both = sides(HEAD + source, f"taken_{name}")
    assert both.gaps() == []
    x = np.random.default_rng(3).normal(size=shape)
    with jax.enable_x64(True):
        np.testing.assert_allclose(both.jax.f(x), both.torch.f(torch.as_tensor(x)).numpy(), rtol=1e-12)
    return both.translation.code


FUNCTIONS = {
    "except": """
def f(x):
    try:
        raise ValueError
    except ValueError as jnp:
        return torch.cat([x, x]) + len(str(jnp))
""",
    "match": """
def f(x):
    match (3, 2):
        case (jax, 2):
            return F.relu(x) * jax
    return x
""",
    "match_rest": """
def f(x):
    match {"a": 1, "b": 2}:
        case {"a": 1, **jnp}:
            return torch.cat([x, x]) * len(jnp)
""",
    "import": """
def f(x):
    from taken_names_neighbour import layer_norm
    return F.layer_norm(x, (4,)) + layer_norm(x)
""",
    "async": """
def f(x):
    async def jax(): pass
    jax().close()
    return torch.softmax(x, -1)
""",
    "comprehension": """
def f(x):
    return sum([torch.cat([x, x]) * jnp for jnp in range(3)])
""",
    "lambda": """
def f(x):
    return (lambda jnp: torch.cat([x, x]) * jnp)(2)
""",
    "walrus": """
def f(x):
    return torch.cat([x, x]) * (jnp := 2) + jnp
""",
    "global": """
def count():
    global jnp
    jnp = 5

def f(x):
    count()
    return torch.cat([x, x]) * jnp
""",
    "nonlocal": """
def f(x):
    jnp = 1
    def inner():
        nonlocal jnp
        jnp += 1
        return torch.cat([x, x]) * jnp
    return inner()
""",
    "class": """
class Constants:
    jnp = 3
    def of(self, x):
        return torch.cat([x, x]) * self.jnp

def f(x):
    return Constants().of(x)
""",
    "class_level": """
class Constants:
    jnp = 3
    both = torch.cat([torch.ones(2), torch.zeros(2)]) * jnp

def f(x):
    return x + Constants.both
""",
    "before": """
pool_padding = 2

def f(x):
    return F.max_pool2d(x[None], 2)[0] * pool_padding
""",
    "behind": """
def f(x):
    return F.max_pool2d(x[None], 2, padding=1)[0] * pool_padding

pool_padding = 2
""",
    "helper_itself": """
def f(x):
    return F.pad(x, (1, 1)) + pad

pad = 2
""",
    "import_of_a_helper": """
Any = Sequence = Callable = 2

def f(x):
    return F.max_pool2d(x[None], 2)[0] * Any * Sequence * Callable
""",
    "star": """
from taken_names_neighbour import *

def f(x):
    return F.layer_norm(layer_norm(x), (4,)) + F.max_pool2d(x[None], 2, padding=1).sum() * pool_padding
""",
    "star_behind": """
def f(x):
    return F.layer_norm(x, (4,)) + F.max_pool2d(x[None], 2, padding=1).sum() * pool_padding

from taken_names_neighbour import *
""",
    "builtins": """
max = range = len = isinstance = 3

def f(x):
    y = F.layer_norm(x, (4,)) + F.max_pool2d(x[None], 2, padding=1).sum() * max
    return F.interpolate(y[None, None], scale_factor=2)[0, 0] * range
""",
    "builtins_behind": """
def f(x):
    return F.layer_norm(x, (4,)) * tuple

tuple = 2
""",
    "builtins_inside": """
def f(x):
    bool = 2
    return x * bool if torch.is_nonzero(x[0, 0]) else x
""",
    "loop": """
def f(x):
    with open(os.devnull) as jax:
        for jnp in (1, 2):
            y = torch.softmax(torch.cat([x, x]), -1) * jnp
    return y + jax.closed
""",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_name_means_stays(name: str) -> None:
    same(FUNCTIONS[name], name, 4, 4)


def test_a_name_that_is_taken_elsewhere_is_written_as_ever() -> None:
    source = "def f(x, jnp):\n    return jnp\n\ndef g(x):\n    return torch.cat([x, [jnp for jnp in x]])\n"
    code = translate(HEAD + source.replace("[jnp for jnp in x]", "x")).code
    assert "    return jnp.concatenate([x, x])" in code


def test_a_helper_keeps_its_own_variables() -> None:
    """Renaming the helper ``pad`` leaves the parameters of other helpers alone that are called so."""
    code = translate(HEAD + "pad = 1\n\n\ndef f(x):\n    return F.pad(x, (1, 1), mode='reflect')\n").code
    namespace: dict[str, object] = {}
    exec(code, namespace)
    x = np.arange(12.0).reshape(1, 3, 4)
    wanted = F.pad(torch.as_tensor(x), (1, 1), mode="reflect").numpy()
    np.testing.assert_allclose(namespace["f"](x), wanted)  # type: ignore[operator]
    assert namespace["pad"] == 1


@pytest.mark.parametrize("helpers", ["inline", "module", "import"])
def test_a_helper_that_the_file_has_already_is_used(helpers: str) -> None:
    """What is left of a conversion is converted later, beside what the first one wrote."""
    options = Options(helpers=helpers)  # type: ignore[arg-type]
    first = translate(HEAD + "def f(x):\n    return F.layer_norm(x, (4,))\n", options).code
    more = "\n\ndef g(x):\n    import torch.nn.functional as F\n    return F.layer_norm(x, (3,))\n"
    again = translate(first + more, options).code
    assert "    return layer_norm(x, (3,))" in again
    assert again.count("def layer_norm(") == (helpers == "inline")


def test_a_helper_module_is_written_under_its_own_names() -> None:
    source = HEAD + "def f(x, layer_norm):\n    return F.layer_norm(x, (4,)) + layer_norm\n"
    result = translate(source, Options(helpers="module"))
    assert "import layer_norm as layer_norm_" in result.code
    assert "def layer_norm(" in (result.helper_source or "")


def test_text_that_uses_names_as_python_does_not_allow_is_refused() -> None:
    source = HEAD + "def f(x):\n    y = torch.cat([x])\n    global y\n    return y\n"
    with pytest.raises(SourceError, match="line 7: name 'y' is assigned to before global declaration"):
        translate(source)


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ("jnp = 11\nlax = 2\n", "import jax.numpy as _jnp"),
        ("import jax.numpy as jnp\nimport torch\n\n\ndef g(x):\n    return jnp.sum(x)\n", "import jax.numpy as jnp"),
        ("tuple = 3\n", "from builtins import tuple as _tuple"),
    ],
)
def test_what_another_file_hands_on_with_a_star_takes_names(other: str, line: str) -> None:
    source = "import torch\nimport torch.nn.functional as F\nfrom other import *\n\n\ndef f(x):\n    "
    done = convert(f"{source}return F.layer_norm(torch.exp(x), (4,))\n", resolve=lambda level, name: other)
    assert line in done.code.splitlines()


def test_a_file_that_calls_something_else_nnx_was_not_converted_before() -> None:
    code = "import torch\n\nnnx = 3\n\n\ndef f():\n    rngs = 5\n    return torch.randn(3) + rngs + nnx\n"
    assert [gap.reason for gap in translate(code).gaps] == [TAKEN]


MODULE = """
class A(nn.Module):
    def __init__(self):
        super().__init__()
        nnx = 4
        self.jnp = nn.Linear(nnx, 3)

    def forward(self, x):
        jax = self.jnp(x)
        return F.softmax(jax, -1)
"""


def test_a_module_whose_names_are_taken() -> None:
    both = sides(HEAD + MODULE, "taken_in_a_module")
    assert both.gaps() == []
    x = np.random.default_rng(1).normal(size=(2, 4))
    with jax.enable_x64(True):
        compare(randomized(both.torch.A()), both.jax.A(rngs=nnx.Rngs(0)), [x])


TRAINER = """
class Trainer:
    def __init__(self, model):
        self.jnp = model
        self.optimizer = torch.optim.SGD(self.jnp.parameters(), lr=0.1)

    def fit(self, loader, g: float):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.jnp(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_value_(self.jnp.parameters(), g)
            self.optimizer.step()
"""


def test_a_train_step_calls_neither_its_parameters_nor_its_gradients_like_what_it_uses() -> None:
    code = translate(HEAD + TRAINER).code
    assert "def train_step(jnp2, optimizer, " in code
    assert "return jnp.mean(jnp.square(jnp2(x) - y))" in code
    assert "lambda gradient: jnp.clip(gradient, -g, g)" in code


@pytest.mark.parametrize(
    "top",
    [
        "layer_norm = 1",
        "def center_and_scale(x):\n    return x",
        "jnp = 2",
        "from .ops import jnp",
        "class jax:\n    pass",
    ],
)
def test_a_name_that_the_top_level_has_is_claimed_before_anything_is_written(
    top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[object] = []
    write = pipeline._convert
    monkeypatch.setattr(pipeline, "_convert", lambda *given: written.append(given) or write(*given))
    source = f"import torch\nimport torch.nn.functional as F\n\n{top}\n\n\n"
    code = translate(f"{source}def f(x):\n    return F.layer_norm(torch.exp(x), (4,))\n").code
    assert top in code and "_(" in code or " as " in code
    assert len(written) == 1
