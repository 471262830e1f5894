"""Comparison: what counts as a difference, and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2j_lsp.check.program.digest import digest
from t2j_lsp.check.protocol import Opaque, RawArray, Record
from t2j_lsp.check.verdict.compare import Comparison, compare
from t2j_lsp.check.verdict.initial import compare_initial
from t2j_lsp.check.verdict.stages import Conditioning, compare_all, compare_dtypes, perturbed, trajectory

A = np.array([[1.0, -2.0], [0.0, 4.0]])


def kinds(torch: Any, jax: Any, name: str = "output") -> list[str]:
    result = Comparison()
    compare(name, torch, jax, result)
    return [d.kind for d in result.differences]


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        (A, A * (1 + 1e-12)),
        ([A, (A, 3)], (A, [A, np.asarray(3)])),
        (Record("Output", {"a": A, "b": None}), {"a": A}),
        (Record("Pair", {"a": A, "b": A}), (A, A)),
        (np.array([1, 2]), np.array([1, 2], np.int32)),
        (A.astype(np.float32), A),
        (np.array([np.nan, np.inf, 1.0]), np.array([np.nan, np.inf, 1.0])),
        (Opaque("Cache"), Opaque("Other")),
        (None, None),
        ("a", "a"),
        ("cpu", "cpu:0"),  # the text of a device
        ("Tensor(torch.float32)", "Tensor(float32)"),  # and that of a dtype
        ("torch.float64 on cpu", "float32 on cpu:0"),
        ("torch.bool", "bool"),
        (np.zeros(3), np.full(3, 1e-15)),
        (2.5, np.asarray(2.5)),
        (np.array([-(2**63), 1]), np.array([2**31 - 1, 1], np.int32)),  # NaN and infinity, cast to integers
        (np.array([2**63 - 1, 1]), np.array([2**31 - 1, 1], np.int32)),  # the largest number of each type
    ],
)
def test_these_agree(torch: Any, jax: Any) -> None:
    assert kinds(torch, jax) == []


@pytest.mark.parametrize(
    ("torch", "jax", "kind"),
    [
        (A, A * (1 + 1e-7), "value"),
        (np.array([-(2**63), 1]), np.array([2**31 - 1, 2], np.int32), "integer"),
        (np.array([2**63 - 1, 1]), np.array([2**31 - 2, 1], np.int32), "integer"),
        (np.array([2**40, 1]), np.array([2**31 - 1, 1], np.int32), "integer"),
        (A, A.T, "value"),
        (A, A[None], "shape"),
        (A, A.astype(int), "dtype"),
        (A > 0, (A > 0).astype(int), "dtype"),
        ([A], [A, A], "structure"),
        ({"a": A}, {"b": A}, "structure"),
        ("cpu:0", "gpu:0", "structure"),
        ("cpu", "cpu:1", "structure"),
        ("torch.float32", "int32", "structure"),
        ("torch.float16", "float32", "structure"),
        (A, [A], "structure"),
        (A, None, "structure"),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), "nan"),
        (np.array([1.0, np.inf]), np.array([1.0, -np.inf]), "nan"),
        (np.array([1, 2]), np.array([1, 3]), "integer"),
        (np.zeros(3), np.full(3, 1e-9), "value"),
    ],
)
def test_these_differ(torch: Any, jax: Any, kind: str) -> None:
    assert kinds(torch, jax) == [kind]


def test_a_difference_says_where_and_by_how_much() -> None:
    result = Comparison()
    compare("eval output", [A], [A + np.array([[0, 0.5], [0, 0]])], result)
    assert str(result.differences[0]) == (
        "eval output[0] differs by 0.12 of its scale in 1 of 4 elements: -2 in torch and -1.5 in JAX at [0, 1]"
    )
    assert (result.max_abs_err, result.max_rel_err) == (0.5, 0.125)


def test_rounding_in_a_tensor_that_is_zero_but_for_it_is_measured_by_its_group() -> None:
    torch = {"gradient of parameter: a": A * 1e3, "gradient of parameter: b": np.array([1e-13])}
    jax = {"gradient of parameter: a": A * 1e3, "gradient of parameter: b": np.array([-3e-13])}
    assert not compare_all(torch, jax).differences
    assert compare_all({"b": np.array([1e-13])}, {"b": np.array([-3e-13])}).differences


def test_half_precision_bits_are_compared_by_value() -> None:
    bits = np.array([0x3F80], np.uint16)
    assert kinds(RawArray("bfloat16", bits), np.array([1.0], np.float32)) == []


def test_dtypes_may_be_narrower_only_where_jax_has_no_wider_ones() -> None:
    def differs(torch: str, jax: str) -> bool:
        return bool(compare_dtypes({"eval output": np.zeros(1, torch)}, {"eval output": np.zeros(1, jax)}))

    assert not differs("int64", "int32")
    assert not differs("float64", "float32")
    assert differs("float32", "float16")
    assert differs("float16", "float32")


def test_what_rounding_alone_changes_is_not_decided() -> None:
    conditioning = Conditioning({"eval output": np.array([1.0])}, {"eval output": np.array([-1.0])})
    assert conditioning.ill == {"eval output"}
    close = Conditioning({"eval output": np.array([1.0])}, {"eval output": np.array([1.0 + 1e-6])})
    assert not close.ill
    assert close.meaning("eval output", np.array([1.0]), 0.0) == pytest.approx(1e-9)
    assert Conditioning({"eval output": 1e308}, {"eval output": 1e38}).ill == {"eval output"}
    assert not Conditioning({"eval output": 2.5}, {"eval output": 2.5}).ill


def test_a_large_array_is_compared_by_samples_and_products() -> None:
    array = np.random.default_rng(0).standard_normal((400, 500))
    other = array.copy()
    assert kinds(digest(array), digest(other)) == []
    other[123, 7] += 1e-3
    assert kinds(digest(array), digest(other)) == ["value"]
    assert digest(array[:3]) is not None and isinstance(digest(array[:3]), np.ndarray)


def test_after_steps_as_much_is_allowed_as_rounding_is_carried() -> None:
    weight = np.linspace(0.5, 1.0, 4)
    name = "after 3 steps: parameter w"
    conditioning = Conditioning({}, {})
    for carried, part, fails in ((0.0, 2e-9, True), (1e-9, 2e-9, False), (1e-9, 2e-8, True), (1.0, 2e-6, True)):
        allowed = trajectory(conditioning.meaning, {name: weight}, [{name: weight + carried}])
        result = compare_all({name: weight}, {name: weight + part}, (), allowed)
        assert bool(result.differences) is fails, (carried, part)


def test_a_state_is_moved_in_its_floats_alone() -> None:
    state = {"w": np.ones(3), "count": np.array(3), "mask": np.array([True])}
    moved = perturbed(state)
    assert 0 < np.abs(moved["w"] - 1).max() <= 1e-12
    assert moved["count"] is state["count"] and moved["mask"] is state["mask"]


def test_fewer_constructions_on_one_side_say_less() -> None:
    many = np.random.default_rng(11).uniform(-1, 1, (400, 24))
    many[:60, 0] = 0.9999
    few = np.random.default_rng(12).uniform(-0.99, 0.99, (48, 24))
    assert not compare_initial({"bias": many}, {"bias": few})
    as_many = np.random.default_rng(12).uniform(-0.99, 0.99, (400, 24))
    assert compare_initial({"bias": many}, {"bias": as_many})


def test_a_constructor_that_sets_the_seed_gives_one_draw() -> None:
    rng = np.random.default_rng(0)
    always = np.tile(rng.normal(size=(1, 600)), (50, 1))
    assert compare_initial({"p": always}, {"p": rng.normal(size=(50, 600))})
    assert not compare_initial({"p": always}, {"p": rng.normal(size=(50, 600))}, seeded=True)
    assert compare_initial({"p": always}, {"p": 2 * rng.normal(size=(50, 600))}, seeded=True)
    assert compare_initial({"p": np.ones((50, 3))}, {"p": np.zeros((50, 3))}, seeded=True)


@pytest.mark.parametrize("torch", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_torch_has_not_is_not_compared(torch: float) -> None:
    left, right = np.array([torch, 1.0]), np.array([2.0, 1.0])
    assert kinds(left, right, "gradient of input 0") == []
    assert kinds(right, left, "gradient of input 0") == ["nan"]
    assert kinds(left, right + 1.0, "gradient of input 0") == ["value"]
    assert kinds(left, right, "eval output") == ["nan"]


def test_what_jax_computes_in_float32_is_compared_as_such() -> None:
    """A quotient of 32-bit integers is float64 in torch, once that is its default, and float32 in JAX."""
    torch = {"eval output": np.array([1 / 3, 2 / 7])}
    near, far = np.array([1 / 3, 2 / 7], np.float32), np.array([1 / 3, 2 / 7 + 1e-5], np.float32)
    assert kinds(torch, {"eval output": near}) == []
    assert kinds(torch, {"eval output": far}) == ["value"]
    assert kinds(torch, {"eval output": near.astype(np.float64)}) == ["value"]


def test_integers_that_numpy_lacks_are_compared() -> None:
    one, other = (RawArray("int4", np.array([1, last], np.uint8)) for last in (2, 3))
    assert not compare_all({"output": one}, {"output": one}).differences
    (difference,) = compare_all({"output": one}, {"output": other}).differences
    assert "differs in 1 of 2 elements: 2 in torch and 3 in JAX" in difference.what
