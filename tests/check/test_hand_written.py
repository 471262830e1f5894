"""JAX that somebody wrote: functions of a parameter tree, NNX with names of its own; paired with torch's state."""

from __future__ import annotations

import numpy as np
import pytest

from t2j_lsp.check.arguments.pairing import inferred
from t2j_lsp.contract import VerdictKind

from .conftest import Check

MLP = """
class MLP(nn.Module):
    def __init__(self, n_in, hidden, n_out):
        super().__init__()
        self.fc1 = nn.Linear(n_in, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, n_out)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))
"""
LISTED = """
def init_mlp(key, n_in, hidden, n_out):
    sizes = [n_in, hidden, hidden, n_out]
    keys = jax.random.split(key, 3)
    return [{"w": jax.random.normal(k, (i, o)), "b": jnp.zeros(o)} for k, i, o in zip(keys, sizes[:-1], sizes[1:])]

def mlp_apply(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]
"""
GIVEN = """
# t2j: of="MLP", weights={"a": "fc1.weight.T", "b": "fc1.bias", "c": "fc2.weight", "d": "fc2.bias", \
"e": "fc3.weight.permute(1, 0)", "f": "fc3.bias"}
def network(p, x):
    x = jax.nn.relu(x @ p["a"] + p["b"])
    x = jax.nn.relu(x @ p["c"].T + p["d"])
    return x @ p["e"] + p["f"]
"""
NAMED = """
def init_params(key, n_in, hidden, n_out):
    def dense(i, o):
        return {"kernel": jnp.zeros((i, o)), "bias": jnp.zeros(o)}
    return {"params": {"fc3": dense(hidden, n_out), "fc1": dense(n_in, hidden), "fc2": dense(hidden, hidden)}}

def mlp(variables, x, train=False):
    p = variables["params"]
    for name in ("fc1", "fc2"):
        x = jax.nn.relu(x @ p[name]["kernel"] + p[name]["bias"])
    return x @ p["fc3"]["kernel"] + p["fc3"]["bias"]
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.out = nn.Linear(8, 5)

    def forward(self, x):
        return self.out(F.gelu(self.norm(self.conv(x))).mean((2, 3)))
"""
NNX = """
class ConvNet(nnx.Module):  # t2j: of="Net"
    def __init__(self, rngs: nnx.Rngs):
        self.stem = nnx.Conv(3, 8, (3, 3), padding="VALID", rngs=rngs)
        self.bn = nnx.BatchNorm(8, momentum=0.9, epsilon=1e-5, use_fast_variance=False, rngs=rngs)
        self.head = nnx.Linear(8, 5, rngs=rngs)

    def __call__(self, x):
        h = self.bn(self.stem(jnp.moveaxis(x, 1, -1)))
        return self.head(jax.nn.gelu(h, approximate=False).mean((1, 2)))
"""
# Without state of batches: the running variance of Flax is biased, which is a difference indeed.
PLAIN = NET.replace("self.norm = nn.BatchNorm2d(8)", "self.norm = nn.Identity()")
PLAIN_NNX = NNX.replace(NNX.splitlines()[4], "        self.bn = lambda h: h")

RIGHT = {
    "a list of layers": (MLP, LISTED),
    "weights as the comment has them": (MLP, GIVEN),
    "names under a collection, in another order": (MLP, NAMED),
    "an NNX module with names of its own": (PLAIN, PLAIN_NNX),
}
WRONG = {
    "another activation": (MLP, LISTED.replace("jax.nn.relu", "jax.nn.gelu")),
    "a missing bias": (MLP, GIVEN.replace(' + p["d"]', "")),
    "a missing layer": (MLP, NAMED.replace('("fc1", "fc2")', '("fc1",)').replace("hidden, n_out)}", "hidden, n_out)}")),
    "an approximate GELU": (PLAIN, PLAIN_NNX.replace(", approximate=False", "")),
    "the biased running variance": (NET, NNX),
}


@pytest.mark.parametrize("what", RIGHT)
def test_right_code_is_equivalent(what: str, check: Check) -> None:
    verdict = check(*RIGHT[what])
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert verdict.stages["behavioral"].observed


@pytest.mark.parametrize("what", WRONG)
def test_wrong_code_is_different(what: str, check: Check) -> None:
    verdict = check(*WRONG[what])
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason
    assert verdict.divergence is not None


SQUARE = MLP.replace("n_in, hidden, n_out", "d").replace("hidden", "d").replace("n_in", "d").replace("n_out", "d")
REVERSED = """
def init_mlp(key, d):
    return {f"layer{i}": {"w": jnp.zeros((d, d)), "b": jnp.zeros(d)} for i in (3, 2, 1)}

def mlp(params, x):
    for i in (1, 2):
        x = jax.nn.relu(x @ params[f"layer{i}"]["w"].T + params[f"layer{i}"]["b"])
    return x @ params["layer3"]["w"].T + params["layer3"]["b"]
"""


def test_a_pairing_by_order_alone_accuses_nobody(check: Check) -> None:
    verdict = check(SQUARE, REVERSED)
    assert verdict.verdict is VerdictKind.UNCHECKED
    assert "by their order alone" in (verdict.reason or "") and "# t2j: weights=" in (verdict.reason or "")


UNCLEAR = {
    "no function makes the parameters": (LISTED.replace("def init_mlp", "def build"), "# t2j: weights="),
    "a name that torch does not have": (GIVEN.replace("fc1.bias", "fc9.bias"), "torch has no 'fc9.bias'"),
    "one parameter left out": (GIVEN.replace(', "f": "fc3.bias"', ""), "nothing is said of torch's fc3.bias"),
    "a comment that can't be read": (GIVEN.replace('"fc1.bias"', "1"), "`weights` should be like"),
}


@pytest.mark.parametrize("what", UNCLEAR)
def test_what_cant_be_paired_is_said(what: str, check: Check) -> None:
    code, reason = UNCLEAR[what]
    verdict = check(MLP, code)
    assert verdict.verdict is not VerdictKind.EQUIVALENT
    assert reason in (verdict.reason or "")


def test_shapes_names_and_ties_decide() -> None:
    rng = np.random.default_rng(0)
    state = {"a.weight": rng.normal(size=(3, 4)), "a.bias": rng.normal(size=3), "b.weight": rng.normal(size=(3, 3))}
    state["head.weight"] = state["b.weight"]
    own = {"x.w": (4, 3), "x.b": (3,), "y.w": (3, 3)}
    result = inferred(state, own, True)
    assert result is not None and result.sure
    assert set(result.pairs) == {
        ("a.weight", "x.w", (1, 0)),
        ("a.bias", "x.b", None),
        ("b.weight", "y.w", (1, 0)),
        ("head.weight", "y.w", (1, 0)),
    }


OWN = [{"x.w": (4, 3)}, {"x.w": (4, 3), "x.b": (3,), "z": (2,)}, {"x.w": (4, 3), "x.b": (5,)}]


@pytest.mark.parametrize("own", OWN)
def test_nothing_is_left_over(own: dict[str, tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    assert inferred({"a.weight": rng.normal(size=(3, 4)), "a.bias": rng.normal(size=3)}, own, True) is None


HALF = PLAIN_NNX.replace('ConvNet(nnx.Module):  # t2j: of="Net"', "Net(nnx.Module):").replace("stem", "conv")


def test_a_conversion_keeps_all_of_torchs_names(check: Check) -> None:
    verdict = check(PLAIN, HALF)
    assert verdict.verdict is VerdictKind.DIFFERENT
    assert "out.weight" in (verdict.reason or "")
    assert (
        check(PLAIN, HALF.replace("(nnx.Module):", '(nnx.Module):  # t2j: of="Net"')).verdict is VerdictKind.EQUIVALENT
    )
