"""Right conversions that compute, hold or hand on their values in a way of their own are not accused."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import VerdictKind

from .conftest import Check


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        ("F.hardsigmoid(x * 9)", "jnp.clip(x * 9 + 3, 0, 6) / 6"),
        ("F.celu(x, alpha=0.7)", "jax.nn.celu(x, 0.7)"),
    ],
)
def test_float32_constants_in_torchs_own_gradients_accuse_nobody(torch: str, jax: str, check: Check) -> None:
    parameters = "# t2j: x=f32[3, 50]\ndef f(x):\n    return"
    verdict = check(f"{parameters} {torch}\n", f"def f(x):\n    return {jax}\n")
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


NAMED = """
class Output(NamedTuple):
    logits: {tensor}
    extra: {tensor} | None

# t2j: x=f32[3, 4]
class Named({base}):
    def {call}(self, x):
        return {{"a": Output(x * 2, None), "b": Pair(x, x + {one})}}

@dataclasses.dataclass{register}
class Pair:
    left: {tensor}
    right: {tensor}
"""


@pytest.mark.parametrize(("one", "verdict"), [("1", VerdictKind.EQUIVALENT), ("2", VerdictKind.DIFFERENT)])
def test_named_tuples_and_data_classes_are_compared_by_field(one: str, verdict: VerdictKind, check: Check) -> None:
    imports = "import dataclasses\nfrom typing import NamedTuple\n"
    torch = NAMED.format(tensor="torch.Tensor", base="nn.Module", call="forward", one=1, register="")
    jax = NAMED.format(tensor="jax.Array", base="nnx.Module", call="__call__", one=one, register="")
    assert check(imports + torch, imports + jax, "Named").verdict is verdict


VERSIONED = """
class Versioned({base}):
    def __init__(self{rngs}):
        {start}
        self.fc = {linear}

    def {call}(self, x):
        return self.fc(x)
"""
LOADING = """
    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args):
        if local_metadata.get("version") is None:
            raise ValueError("no version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)
"""


def test_modules_that_ask_for_a_version_load_their_state(check: Check) -> None:
    torch = VERSIONED.format(
        base="nn.Module", rngs="", start="super().__init__()", linear="nn.Linear(3, 2)", call="forward"
    )
    jax = VERSIONED.format(
        base="nnx.Module", rngs=", rngs: nnx.Rngs", start="pass", linear="nnx.Linear(3, 2, rngs=rngs)", call="__call__"
    )
    verdict = check(f"{torch}{LOADING}    _version = 2\n", jax, initial=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


LAZY = """
class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LazyLinear(2))

    def forward(self, x):
        return self.net(x)
"""


@pytest.mark.parametrize(("activation", "kind"), [("nnx.tanh", "EQUIVALENT"), ("jnp.sin", "DIFFERENT")])
def test_lazy_layers_have_their_sizes_before_states_are_compared(activation: str, kind: str, check: Check) -> None:
    jax = (
        "class Lazy(nnx.Module):\n"
        "    def __init__(self, *, rngs):\n"
        f"        self.net = nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), {activation}, nnx.Linear(4, 2, rngs=rngs))\n"
        "    def __call__(self, x): return self.net(x)\n"
    )
    verdict = check(LAZY, jax, initial=False)
    assert verdict.verdict is VerdictKind[kind], verdict.reason


RENAMED = """
    def state_dict(self, *args, **kwargs):
        return {name.replace("fc", "layer"): value for name, value in super().state_dict(*args, **kwargs).items()}
"""


@pytest.mark.parametrize(("bias", "kind"), [("self.fc.bias", "EQUIVALENT"), ("0", "DIFFERENT")])
def test_a_state_dict_of_ones_own_names_nothing(bias: str, kind: str, check: Check) -> None:
    torch = VERSIONED.format(
        base="nn.Module", rngs="", start="super().__init__()", linear="nn.Linear(3, 2)", call="forward"
    )
    jax = (
        "class Versioned(nnx.Module):\n"
        "    def __init__(self, *, rngs): self.fc = nnx.Linear(3, 2, rngs=rngs)\n"
        f"    def __call__(self, x): return x @ self.fc.kernel + {bias}\n"
    )
    assert check(f"{torch}{RENAMED}", jax, initial=False).verdict is VerdictKind[kind]


TABLE = """
class Positions(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.table = torch.arange(dim) / dim
        self.parts = [torch.ones(dim), {"half": torch.full((dim,), 0.5)}]
    def forward(self, x): return self.fc(x) + self.table * self.parts[1]["half"] + self.parts[0]
"""
ITS_TABLE = """
class Positions(nnx.Module):
    def __init__(self, dim, *, rngs):
        self.fc = nnx.Linear(dim, dim, rngs=rngs)
        self.table = jnp.arange(dim) / dim
        self.parts = nnx.data([jnp.ones(dim), {"half": jnp.full((dim,), 0.5)}])
    def __call__(self, x): return self.fc(x) + self.table * self.parts[1]["half"] + self.parts[0]
"""


def test_a_table_that_a_constructor_computes_and_keeps_as_an_array(check: Check) -> None:
    """Modules are built without computing their initial values, where nothing else is lost by that."""
    assert check(TABLE, ITS_TABLE, initial=False).verdict is VerdictKind.EQUIVALENT
    wrong = ITS_TABLE.replace("jnp.arange(dim) /", "jnp.arange(1, dim + 1) /")
    assert check(TABLE, wrong, initial=False).verdict is VerdictKind.DIFFERENT


FROZEN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        for p in self.fc.parameters(): p.requires_grad = False
    def forward(self, x): return self.fc(x)
"""
ITS_LOOP = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = nnx.Linear(3, 4, rngs=rngs)
        # NOTE
        for p in self.fc.parameters(): p.requires_grad = False
    def __call__(self, x): return self.fc(x)
"""


def test_what_the_rules_left_and_cant_run_is_no_mistake(check: Check) -> None:
    left = check(FROZEN, ITS_LOOP.replace("NOTE", "TODO(t2j): parameters are frozen"))
    assert left.verdict is VerdictKind.UNCHECKED
    assert left.reason == "the conversion is not complete: line 13: parameters are frozen"
    assert check(FROZEN, ITS_LOOP).verdict is VerdictKind.DIFFERENT


LONG = "# t2j: x=f32[4, 3, 17, 19]\ndef f(x): return torch.log((1 - torch.sigmoid(x)).clamp(min=1e-8)).sum()\n"
ITS_LONG = "def f(x): return jnp.log(jnp.maximum(1 - jax.nn.sigmoid(x), 1e-8)).sum()\n"


def test_a_long_sum_in_float32_may_be_off_by_what_its_order_makes(check: Check) -> None:
    """Far from zero all 3,876 numbers are the same: XLA on the CPU adds one after the other, PyTorch in parts."""
    assert check(LONG, ITS_LONG).verdict is VerdictKind.EQUIVALENT
    assert check(LONG, ITS_LONG.replace("1e-8", "1.01e-8")).verdict is VerdictKind.DIFFERENT


EMBEDDED = """
class Table({base}):
    def __init__(self{rngs}):
        {start}
        self.table = {table}
        {buffer}

    def {call}(self, x):
        return {softmax}(x + self.table(self.index{value}), {axis}=-1)
"""
ITS_EMBEDDING = "nnx.Embed(7, 5, embedding_init=nnx.initializers.normal(1.0), rngs=rngs)"


def test_a_table_beside_a_buffer_that_no_state_dict_holds_is_as_wide_as_the_rest(check: Check) -> None:
    """Such a module is built with its initial values, in float32, and then widened."""
    verdict = check(
        EMBEDDED.format(
            base="nn.Module", rngs="", start="super().__init__()", table="nn.Embedding(7, 5)", call="forward",
            buffer="self.register_buffer('index', torch.arange(6), persistent=False)", softmax="torch.softmax",
            value="", axis="dim",
        ),
        EMBEDDED.format(
            base="nnx.Module", rngs=", *, rngs", start="", table=ITS_EMBEDDING, call="__call__",
            buffer="self.index = nnx.Variable(jnp.arange(6), persistent=False)", softmax="jax.nn.softmax",
            value="[...]", axis="axis",
        ),
        "Table",
    )  # fmt: skip
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


def test_elements_that_are_no_number_have_no_gradient_to_compare(check: Check) -> None:
    """``relu`` of NaN passes a gradient on in PyTorch, and none in JAX."""
    comment = "# t2j: x=f32[9, 40], y=f32[9, 40]\n"
    right = "def f(x, y):\n    return {relu}({relu}(x - 1) - {relu}(y) / {relu}(y))\n"
    torch, jax = comment + right.format(relu="torch.relu"), right.format(relu="jax.nn.relu")
    verdict = check(torch, jax)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert check(torch, jax.replace("x - 1", "x - 1.5")).verdict is VerdictKind.DIFFERENT


def test_arrays_of_numpy_in_the_output_take_no_tensor_s_cotangents(check: Check) -> None:
    torch = "import numpy as np\ndef f(x):\n    return np.arange(2), torch.sin(x)\n"
    jax = "import numpy as np\ndef f(x):\n    return np.arange(2), jnp.sin(x)\n"
    verdict = check(torch, jax)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    stopped = jax.replace("jnp.sin(x)", "jax.lax.stop_gradient(jnp.sin(x))")
    assert check(torch, stopped).verdict is VerdictKind.DIFFERENT


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        ("torch.linalg.eigh(x @ x.mT)[1][..., 0]", "jnp.linalg.eigh(x @ x.mT)[1][..., 0]"),
        ("torch.linalg.eigh(x @ x.mT).eigenvectors.sum(-1)", "jnp.linalg.eigh(x @ x.mT).eigenvectors.sum(-1)"),
        ("torch.linalg.svd(x, full_matrices=False)[0]", "jnp.linalg.svd(x, full_matrices=False)[0]"),
        ("torch.svd(x)[2][..., 0]", "jnp.linalg.svd(x, full_matrices=False)[2].mT[..., 0]"),
    ],
)
def test_vectors_whose_signs_both_libraries_leave_open_accuse_nobody(torch: str, jax: str, check: Check) -> None:
    head = "# t2j: x=f32[5, 3, 4]\ndef f(x):\n    return"
    verdict = check(f"{head} {torch}\n", f"def f(x):\n    return {jax}\n")
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    wrong = check(f"{head} {torch}\n", f"def f(x):\n    return -{jax}\n")
    assert wrong.verdict is VerdictKind.DIFFERENT
