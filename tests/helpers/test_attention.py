"""Attention against PyTorch: masks of both polarities, rows with every key masked, layouts, returned weights."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import attention, attention_forward
from tests.helpers.compare import array, copy_state, randomize, same_distribution, same_function, same_module

same = partial(same_function, jit=True)

HIDDEN_ROW = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 0, 1]], bool)  # (3, 5), its second row all masked


def heads(*lengths: int, count: int = 2) -> list[np.ndarray]:
    return [array(2, count, length, 4, seed=i) for i, length in enumerate(lengths)]


@pytest.mark.parametrize("mask", [HIDDEN_ROW, np.where(HIDDEN_ROW, array(3, 5), -np.inf), array(2, 1, 3, 5)])
def test_masks_keep_where_true_add_numbers_and_zero_hidden_rows(mask: np.ndarray) -> None:
    if mask.ndim == 4:
        same(attention.scaled_dot_product_attention, F.scaled_dot_product_attention, *heads(3, 5, 5), mask)
        return
    same(
        lambda q, k, v: attention.scaled_dot_product_attention(q, k, v, jnp.asarray(mask)),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.from_numpy(mask)),
        *heads(3, 5, 5),
    )


@pytest.mark.parametrize("lengths", [(3, 5, 5), (5, 3, 3)])
def test_causal_masks_align_at_the_first_key(lengths: tuple[int, ...]) -> None:
    options: dict[str, Any] = dict(is_causal=True, scale=0.3)
    function, reference = attention.scaled_dot_product_attention, F.scaled_dot_product_attention
    same(partial(function, **options), partial(reference, **options), *heads(*lengths))


def test_grouped_queries_and_inputs_without_a_batch() -> None:
    q, k, v = array(4, 3, 4), array(2, 5, 4), array(2, 5, 6)
    options = dict(enable_gqa=True)
    function, reference = attention.scaled_dot_product_attention, F.scaled_dot_product_attention
    same_function(partial(function, **options), partial(reference, **options), q, k, v)


def test_dropout_of_weights_uses_the_given_rngs() -> None:
    q, k, v = (jnp.asarray(x) for x in heads(3, 5, 5))
    rngs = nnx.Rngs(0)
    first = attention.scaled_dot_product_attention(q, k, v, dropout_p=0.5, rngs=rngs)
    second = attention.scaled_dot_product_attention(q, k, v, dropout_p=0.5, rngs=rngs)
    assert not np.allclose(first, second)
    same(
        lambda q, k, v: attention.scaled_dot_product_attention(q, k, v, dropout_p=1.0, rngs=nnx.Rngs(0)),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=1.0),
        *heads(3, 5, 5),
    )


def test_half_precision_softmax_runs_in_float32() -> None:
    inputs = [torch.from_numpy(x).to(torch.bfloat16) for x in heads(3, 5, 5)]
    want = F.scaled_dot_product_attention(*inputs)
    got = attention.scaled_dot_product_attention(*(jnp.asarray(x.float().numpy(), jnp.bfloat16) for x in inputs))
    assert got.dtype == jnp.bfloat16
    np.testing.assert_allclose(got.astype(jnp.float32), want.float().numpy(), atol=0.02)


class Call(torch.nn.Module):
    """Calls attention with fixed keyword arguments, so that the three inputs are compared."""

    def __init__(self, inner: torch.nn.Module, options: dict[str, Any]):
        super().__init__()
        self.inner, self.options = (
            inner,
            {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()},
        )

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.inner(*inputs, **self.options)


class CallNNX(nnx.Module):
    def __init__(self, inner: nnx.Module, options: dict[str, Any]):
        self.inner, self.options = inner, nnx.static(_Options(options))

    def __call__(self, *inputs: Any) -> Any:
        options = {k: jnp.asarray(v) if isinstance(v, np.ndarray) else v for k, v in self.options.values.items()}
        return self.inner(*inputs, **options)


class _Options:
    """Keyword arguments that Flax takes for static data."""

    def __init__(self, values: dict[str, Any]):
        self.values = values


PADDING = np.array([[0, 0, 1, 0, 1], [0, 1, 0, 0, 0]], bool)  # (2, 5)
ATTENTION: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    (dict(batch_first=True, bias=False), dict(attn_mask=HIDDEN_ROW, need_weights=False)),
    (dict(kdim=6, vdim=3), dict(key_padding_mask=PADDING, average_attn_weights=False)),
    (dict(batch_first=True), dict(key_padding_mask=PADDING, attn_mask=~HIDDEN_ROW)),
    (dict(batch_first=True), dict(key_padding_mask=array(2, 5), attn_mask=array(4, 3, 5), need_weights=False)),
    (dict(dropout=1.0), dict(attn_mask=array(3, 5))),
]


@pytest.mark.parametrize(("options", "call"), ATTENTION, ids=[f"{a} {sorted(b)}" for a, b in ATTENTION])
def test_multihead_attention(options: dict[str, Any], call: dict[str, Any]) -> None:
    layer = attention.MultiheadAttention(4, 2, **options, rngs=nnx.Rngs(0))
    reference = torch.nn.MultiheadAttention(4, 2, **options)
    widths = (4, options.get("kdim", 4), options.get("vdim", 4))
    inputs = [array(2, length, width, seed=width) for length, width in zip((3, 5, 5), widths, strict=True)]
    if not options.get("batch_first"):
        inputs = [x.swapaxes(0, 1).copy() for x in inputs]
    same_module(CallNNX(layer, call), Call(reference, call), *inputs, jit=True)


def test_multihead_attention_without_a_batch() -> None:
    layer = attention.MultiheadAttention(4, 2, batch_first=True, rngs=nnx.Rngs(0))
    reference = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    call = dict(key_padding_mask=PADDING[0])
    same_module(CallNNX(layer, call), Call(reference, call), array(3, 4), array(5, 4), array(5, 4, seed=1))


def test_a_fully_masked_row_is_nan_with_weights_and_the_bias_without() -> None:
    layer, reference = attention.MultiheadAttention(4, 2, rngs=nnx.Rngs(0)), torch.nn.MultiheadAttention(4, 2)
    copy_state(randomize(reference), layer)
    x = array(3, 1, 4)
    mask = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0]], bool)
    for need_weights in (True, False):
        want, _ = reference(*[torch.from_numpy(x)] * 3, attn_mask=torch.from_numpy(mask), need_weights=need_weights)
        got, _ = layer(*[jnp.asarray(x)] * 3, attn_mask=jnp.asarray(mask), need_weights=need_weights)
        np.testing.assert_allclose(got, want.detach().numpy(), atol=1e-12)


def test_a_causal_hint_needs_the_mask() -> None:
    layer = attention.MultiheadAttention(4, 2, rngs=nnx.Rngs(0))
    x = jnp.ones((3, 1, 4))
    with pytest.raises(ValueError, match="needs attn_mask"):
        layer(x, x, x, is_causal=True)


@pytest.mark.parametrize("options", [{}, dict(kdim=80)])
def test_fresh_parameters_are_distributed_as_in_pytorch(options: dict[str, Any]) -> None:
    layer = attention.MultiheadAttention(96, 2, **options, rngs=nnx.Rngs(0))
    same_distribution(layer, torch.nn.MultiheadAttention(96, 2, **options))


FORWARD = {
    "masks": dict(
        key_padding_mask=np.array([[0, 1, 0, 0, 0], [0, 0, 0, 0, 1]], bool), attn_mask=HIDDEN_ROW[1:2].repeat(3, 0)
    ),
    "heads apart": dict(average_attn_weights=False, add_zero_attn=True, key_padding_mask=np.zeros((2, 5), bool)),
    "no weights": dict(need_weights=False, attn_mask=~HIDDEN_ROW),
    "one more key": dict(bias_k=array(1, 1, 4, seed=8), bias_v=array(1, 1, 4, seed=9), attn_mask=array(3, 5)),
}


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize("separate", [False, True])
def test_attention_of_given_parameters(name: str, separate: bool) -> None:
    options = FORWARD[name]
    q, k, v = array(3, 2, 4), array(5, 2, 4, seed=1), array(5, 2, 4, seed=2)
    packed, bias, out = array(12, 4, seed=3), array(12, seed=4), array(4, 4, seed=5)

    def reference(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor, b: torch.Tensor, o: torch.Tensor
    ) -> Any:
        given: dict[str, Any] = dict(bias_k=None, bias_v=None, add_zero_attn=False) | {
            n: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for n, x in options.items()
        }
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        apart = dict(zip(names, w.chunk(3), strict=True), use_separate_proj_weight=True) if separate else {}
        attended = F.multi_head_attention_forward(
            q,
            k,
            v,
            4,
            2,
            None if separate else w,
            b,
            dropout_p=0.0,
            out_proj_weight=o,
            out_proj_bias=None,
            **apart,
            **given,
        )
        return attended if options.get("need_weights", True) else attended[0]

    def converted(q: Any, k: Any, v: Any, w: Any, b: Any, o: Any) -> Any:
        given = {n: jnp.asarray(x) if isinstance(x, np.ndarray) else x for n, x in options.items()}
        attended = attention_forward.multi_head_attention_forward(q, k, v, 2, jnp.split(w, 3), b, o, None, **given)
        return attended if options.get("need_weights", True) else attended[0]

    same(converted, reference, q, k, v, packed, bias, out)
