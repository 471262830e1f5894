"""Functions of PyTorch handed over as values, alone or as partials, and conditions on PyTorch's version."""

# ruff: noqa: E501 - programs of one line each

from __future__ import annotations

import jax
import numpy as np
import pytest
import torch
from flax import nnx

from .convert import body, expect, run
from .side_by_side import compare, randomized, sides


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("map(partial(torch.cat, dim=-2), ((a, b), (b, a)))", "map(partial(jnp.concatenate, axis=-2), ((a, b), (b, a)))"),
        ("partial(torch.clamp, min=-1., max=1.) if a else torch.sin", "partial(clamp, min=-1.0, max=1.0) if a else jnp.sin"),
        ("each(partial(torch.clamp, min=b), a)", "each(partial(clamp, min=b), a)"),
        ("each(torch.clamp, a)", "each(clamp, a)"),
        ("each(partial(torch.add, alpha=2), a)", "each(lambda x, y: x + 2 * y, a)"),
        ("each(partial(torch.add, alpha=b), a)", "each(lambda x, y: x + b * y, a)"),
        ("each(partial(F.softmax, dim=b, dtype=torch.float64), a)", "each(lambda x: jax.nn.softmax(x.astype(jnp.float32), axis=b), a)"),
        ("each(torch.square, torch.is_tensor)", "each(jnp.square, lambda x: isinstance(x, jax.Array))"),
    ],
)  # fmt: skip
def test_functions_that_are_given_some_arguments_are_functions_of_jax(given: str, written: str) -> None:
    code = body(f"from functools import partial\ndef f(a, b, each):\n    return {given}\n")
    assert code.endswith(f"    return {written}"), code


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("each(partial(torch.mul, torch.ones(3)), a)", "has no JAX function"),  # an array would have no gradient
        ("each(partial(F.gumbel_softmax, tau=b), a)", "draws random numbers"),
        ("each is F.gelu", "has no JAX function"),  # a partial is never what was compared with
        ("{F.gelu: a}", "has no JAX function"),
    ],
)  # fmt: skip
def test_what_would_be_another_function_stays(given: str, reason: str) -> None:
    result = run(f"from functools import partial\ndef f(a, b, each):\n    return {given}\n")
    assert [gap.code for gap in result.gaps] == ["function-value"]
    assert reason in result.gaps[0].reason


def test_a_partial_in_an_attribute_is_called_as_it_is_made() -> None:
    expect(
        """
        from functools import partial
        class Net(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.act = partial(F.softmax, dim=dim)

            def forward(self, x):
                return self.act(x)
        """,
        """
        class Net(nnx.Module):
            def __init__(self, dim, *, rngs: nnx.Rngs):
                self.act = partial(jax.nn.softmax, axis=dim)

            def __call__(self, x):
                return self.act(x)
        """,
    )


def test_a_call_that_names_pytorchs_parameters_is_a_gap() -> None:
    result = run("""
    from functools import partial
    class Net(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.act = partial(F.softmax, dim=dim)

        def forward(self, x):
            return self.act(x, dtype=torch.float64)
    """)
    assert [gap.code for gap in result.gaps] == ["function-value"]


def test_a_parameter_may_be_trained_or_not() -> None:
    code = body("""
    class Net(nn.Module):
        def __init__(self, fixed):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3), requires_grad=not fixed)
    """)
    assert "self.w = (nnx.Param if not fixed else Buffer)(jnp.ones(3))" in code


@pytest.mark.parametrize(
    ("condition", "known"),
    [
        ("version.parse(torch.__version__) < version.parse('2.0.0')", False),
        ("torch.__version__ >= '1.8'", True),
        ("not Version(torch.__version__) < Version('2.6')", True),
        ("version.parse(torch.__version__) >= version.parse('2.7')", None),
        ("version.parse(torch.__version__) == version.parse('2.0')", None),
        ("torch.__version__ < here", None),
    ],
)
def test_old_versions_of_pytorch_are_not_asked_about(condition: str, known: bool | None) -> None:
    result = run(f"def f(x, here):\n    if {condition}:\n        x = x + 1\n    return x\n")
    if known is None:
        assert [gap.name for gap in result.gaps] == ["torch.__version__"]
    else:
        assert not result.gaps and "__version__" not in result.code
        assert ("    x = x + 1" in result.code) is known


def test_an_assertion_that_holds_goes() -> None:
    code = body("""
    def f(x, flash):
        assert not (flash and version.parse(torch.__version__) < version.parse("2.0.0")), "too old"
        return torch.sin(x)
    """)
    assert "assert" not in code


def test_the_choice_of_a_kernel_goes_with_its_context() -> None:
    code = body("""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    def f(x):
        with sdpa_kernel([SDPBackend.MATH]):
            y = torch.sin(x)
        return y
    """)
    assert "    y = jnp.sin(x)\n    return y" in code and "SDPBackend" not in code


KERNELS = """
import torch
from functools import partial
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class Attention(nn.Module):
    def __init__(self, flash=False, **flags):
        super().__init__()
        table = dict(flash=SDPBackend.FLASH_ATTENTION, math=SDPBackend.MATH)
        backends = [table[name] for name in table if name == "math" or flash]
        self.context = partial(sdpa_kernel, backends)
        self.older = partial(torch.backends.cuda.sdp_kernel, **flags)
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        q = self.fc(x)
        with self.context(), self.older():
            y = torch.nn.functional.scaled_dot_product_attention(q, x, x)
        once = sdpa_kernel([SDPBackend.MATH])
        with once:
            return y * 2
"""


@pytest.mark.filterwarnings("ignore:.*sdp_kernel:FutureWarning")
def test_a_context_that_chooses_a_kernel_and_is_kept_changes_nothing() -> None:
    both = sides(KERNELS, "kernels")
    assert both.gaps() == []
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(2, 3, 4))
        compare(randomized(both.torch.Attention()), both.jax.Attention(rngs=nnx.Rngs(0)), [x])


def test_trees_keep_none_as_a_leaf() -> None:
    code = body("""
    from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
    def f(x):
        leaves, spec = tree_flatten((x, None))
        return tree_map(torch.add, tree_unflatten(leaves, spec), x)
    """)
    leaf = "is_leaf=lambda leaf: leaf is None"
    assert f"leaves, spec = jax.tree.flatten((x, None), {leaf})" in code
    written = (
        "return jax.tree.map(lambda x, y: x + y, jax.tree.unflatten(spec, leaves), x, is_leaf=lambda leaf: leaf is None"
    )
    assert "".join(written.split()) in "".join(code.split())


@pytest.mark.parametrize("change", ["b = 2\n    return g", "for b in a:\n        g(b)", "a = [b := 2]\n    return g"])
def test_a_function_of_what_changes_meanwhile_stays(change: str) -> None:
    source = f"from functools import partial\ndef f(a, b):\n    g = partial(torch.add, alpha=b)\n    {change}\n"
    assert [gap.code for gap in run(source).gaps][:1] == ["function-value"]


def test_a_partial_is_no_call_of_what_was_changed_in_between() -> None:
    source = "from functools import partial\ndef f(x, b):\n    g = partial(F.softmax, dim=b)\n    {}return g(x)\n"
    assert "return jax.nn.softmax(x, axis=b)" in run(source.format("")).code
    assert "return g(x)" in run(source.format("b = 0\n    ")).code


PARTIALS = """
class Net(nn.Module):
    def __init__(self, dim=-1, norm=False):
        super().__init__()
        softmax_fn = partial(F.softmax, dim=dim)
        self.act = partial(softmax_fn, dtype=torch.float32) if not norm else softmax_fn

    def forward(self, x):
        return self.act(x) * torch.arange(3)
"""


@pytest.mark.parametrize("norm", [True, False])
def test_a_partial_of_a_partial_is_one_of_all_arguments(norm: bool) -> None:
    two = sides(
        f"from functools import partial\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n{PARTIALS}",
        "partials",
    )
    assert "self.act = (\n            lambda x: jax.nn.softmax(x.astype(jnp.float32), axis=dim)" in two.translation.code
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    given = two.torch.Net(norm=norm)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(two.jax.Net(norm=norm, rngs=nnx.Rngs(0))(x), given, rtol=1e-6)


def test_a_partial_of_one_that_isnt_in_reach_has_jax_keywords_to_give() -> None:
    source = (
        "from functools import partial\n\n\ndef f(x: torch.Tensor, b, dim):\n    fn = partial(F.softmax, dim=dim)\n"
    )
    result = run(f"{source}    dim = 0\n    g = partial(fn, dtype=torch.float32) if b else fn\n    return g(x)\n")
    assert [(gap.name, gap.code) for gap in result.gaps] == [("torch.nn.functional.softmax", "function-value")]
    assert "fn = partial(jax.nn.softmax, axis=dim)" in result.code
