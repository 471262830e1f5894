"""Comparisons in tests: ``torch.testing``."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import is_tensor
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, refuse, rule


@rule(
    "torch.testing.assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, "
    "check_device=True, check_dtype=True, check_layout=True, check_stride=False, msg=None)",
    jax="np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, equal_nan=False, strict=True)",
    result="none",
    ignore=["allow_subclasses", "check_device", "check_layout", "check_stride"],
)
def assert_close(call: Call) -> Piece | None:
    """With both tolerances given NumPy compares two arrays; else a helper has PyTorch's tolerances by dtype."""
    plain = not any(call.given(name) for name in ("equal_nan", "check_dtype", "msg"))
    arrays = is_tensor(call["actual"].fact) and is_tensor(call["expected"].fact)
    if plain and arrays and call.given("rtol") and call.given("atol"):
        return call.emit(
            "np.testing.assert_allclose({actual}, {expected}, rtol={rtol}, atol={atol}, equal_nan=False, strict=True)"
        )
    return call.emit(
        "assert_close({actual}, {expected}, rtol={rtol?}, atol={atol?}, equal_nan={equal_nan?}, "
        "check_dtype={check_dtype?}, msg={msg?})"
    )


@rule(
    "torch.testing.assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg='')",
    jax="np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)",
    result="none",
    fidelity=CLOSE,
    note="The tolerances are those that PyTorch has for float32.",
)
def assert_allclose(call: Call) -> Piece | None:
    rtol, atol = ("{rtol}", "{atol}") if call.given("rtol") or call.given("atol") else ("1e-4", "1e-5")
    tail = "equal_nan={equal_nan?}, err_msg={msg?})"
    return call.emit(f"np.testing.assert_allclose({{actual}}, {{expected}}, rtol={rtol}, atol={atol}, {tail}")


refuse("torch.testing.make_tensor", "Write the values out, or draw them with jax.random.")
