"""Sample calls of names that PyTorch's operator database lacks, and of options that its samples never use."""

from __future__ import annotations

from typing import Any

import torch

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def x(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal float64 values, the same in every run."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def ids(*shape: int, high: int = 5) -> torch.Tensor:
    """Whole numbers from 0 to high - 1."""
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(0))


def call(*args: Any, **kwargs: Any) -> Arguments:
    return args, kwargs


def symmetric(n: int) -> torch.Tensor:
    return x(n, n) + x(n, n).T


F = "torch.nn.functional."
WINDOWS = [call(7), call(8, periodic=False), call(1 + 5, dtype=torch.float64)]

MORE: dict[str, list[Arguments]] = {
    "torch.spmm": [call(x(3, 4), x(4, 2))],
    "torch.where": [call(x(3, 4) > 0, x(3, 4), x(4, seed=1)), call(x(3) > 0, x(3), 2.0), call(x(3, 4) > 0)],
    "torch.einsum": [
        call("ij,jk->ik", x(2, 3), x(3, 4)),
        call("bij,bjk->bik", [x(2, 3, 4), x(2, 4, 2)]),
        call("...i,i", x(2, 3, 4), x(4)),
        call("ii", x(3, 3)),
    ],
    "torch.polygamma": [call(1, x(3).abs() + 1), call(2, x(3).abs() + 1)],
    "torch.fft.fftfreq": [call(5), call(6, d=0.5)],
    "torch.fft.rfftfreq": [call(5), call(6, d=0.5)],
    "torch.hann_window": WINDOWS,
    "torch.blackman_window": WINDOWS,
    "torch.bartlett_window": WINDOWS,
    "torch.hamming_window": WINDOWS,
    "torch.kaiser_window": [*WINDOWS, call(8, beta=6.0)],
    "torch.linalg.eigvalsh": [call(symmetric(4)), call(symmetric(3), UPLO="U")],
    "torch.linalg.pinv": [call(x(4, 3)), call(x(2, 3, 4)), call(symmetric(3), hermitian=True)],
    "torch.embedding": [call(x(5, 4), ids(2, 3)), call(x(5, 4), ids(3))],
    "torch.nn.functional.embedding": [
        call(ids(2, 3), x(5, 4)),
        call(ids(2, 3), x(5, 4), padding_idx=2),
        call(ids(2, 3), x(5, 4), padding_idx=-1),
    ],
    "torch.nn.functional.embedding_bag": [
        call(ids(2, 3), x(5, 4)),
        call(ids(6), x(5, 4), offsets=torch.tensor([0, 2, 2]), mode="sum"),
        call(ids(2, 3), x(5, 4), mode="max"),
        call(ids(2, 3), x(5, 4), mode="sum", per_sample_weights=x(2, 3)),
    ],
    "torch.Tensor.flip": [call(x(2, 3), 0), call(x(2, 3), 0, 1), call(x(2, 3), (1,))],
    "torch.Tensor.to": [call(x(2, 3), dtype=torch.int64)],
    "torch.scatter_reduce": [
        call(x(3, 4), 0, ids(2, 4, high=3), x(2, 4), "sum"),
        call(x(3, 4), 1, ids(3, 2, high=4), x(3, 2), reduce="amax"),
        call(x(3, 4), 1, ids(3, 2, high=4), x(3, 2), reduce="mean"),
        call(x(3, 4), 1, ids(3, 2, high=4), x(3, 2, seed=1), "amin", include_self=False),
    ],
    "torch.index_reduce": [
        call(x(3, 4), 0, torch.tensor([0, 2]), x(2, 4), "amax"),
        call(x(3, 4), 1, torch.tensor([0, 2, 2]), x(3, 3), "mean", include_self=False),
    ],
    F + "batch_norm": [
        call(x(4, 3), x(3), x(3).abs() + 1),
        call(x(4, 3, 2), x(3), x(3).abs() + 1, x(3), x(3), False, eps=0.1),
        call(x(4, 3, 2), None, None, training=True),
    ],
    F + "instance_norm": [call(x(2, 3, 5)), call(x(2, 3, 4, 2), weight=x(3), bias=x(3, seed=1), eps=0.1)],
    F + "triplet_margin_with_distance_loss": [
        call(x(4, 3), x(4, 3, seed=1), x(4, 3, seed=2), margin=2.0),
        call(x(4, 3), x(4, 3, seed=1), x(4, 3, seed=2), swap=True, reduction="none"),
    ],
    F + "ctc_loss": [
        call(
            torch.log_softmax(x(6, 2, 4), -1),
            torch.tensor([[1, 2, 2], [3, 1, 0]]),
            torch.tensor([6, 5]),
            torch.tensor([3, 2]),
        ),
        call(
            torch.log_softmax(x(6, 2, 4), -1),
            torch.tensor([[1, 2, 3], [3, 1, 0]]),
            torch.tensor([6, 5]),
            torch.tensor([3, 2]),
            reduction="none",
        ),
    ],
    F + "lp_pool1d": [call(x(2, 3, 7), 2, 3), call(x(2, 3, 7), 2.0, 3, stride=2, ceil_mode=True)],
    F + "lp_pool2d": [call(x(2, 3, 7, 6), 2, 3), call(x(2, 3, 7, 6), 2, (3, 2), stride=(2, 1))],
    F + "lp_pool3d": [call(x(1, 2, 5, 6, 4), 2, 2)],
    F + "unfold": [
        call(x(2, 3, 5, 6), 2),
        call(x(2, 3, 5, 6), (2, 3), dilation=(2, 1), padding=1, stride=2),
    ],
    F + "fold": [
        call(x(2, 12, 20), (5, 6), 2),
        call(x(2, 12, 12), output_size=(5, 6), kernel_size=2, padding=1, stride=2),
    ],
    F + "upsample": [
        call(x(2, 3, 4, 5), (7, 3)),
        call(x(2, 3, 4, 5), scale_factor=2, mode="bilinear", align_corners=True),
    ],
    F + "affine_grid": [
        call(x(2, 2, 3), (2, 1, 4, 5)),
        call(x(2, 2, 3), [2, 1, 4, 5], align_corners=True),
    ],
    "torch.max_pool1d": [call(x(2, 3, 7), 3), call(x(2, 3, 7), 3, stride=2, padding=1, ceil_mode=True)],
    "torch.max_pool2d": [call(x(2, 3, 7, 6), 3), call(x(2, 3, 7, 6), (3, 2), 2, dilation=2)],
    "torch.max_pool3d": [call(x(1, 2, 5, 6, 4), 2)],
    "torch.adaptive_max_pool1d": [call(x(2, 3, 7), 3)],
}

for rank, size in enumerate(((2, 3, 9), (2, 3, 7, 8), (2, 3, 5, 6, 4)), start=1):
    MORE[f"{F}max_pool{rank}d_with_indices"] = [call(x(*size), 2), call(x(*size), 3, stride=2, padding=1)]
    MORE[f"{F}adaptive_max_pool{rank}d_with_indices"] = [call(x(*size), 2), call(x(*size), 3)]

UNARY_FOREACH = (
    "abs", "ceil", "cos", "cosh", "exp", "expm1", "floor", "round", "sin", "sinh", "tan", "tanh", "trunc", "acos",
    "asin", "atan", "neg", "reciprocal", "norm", "log", "log10", "log1p", "log2", "sqrt", "rsqrt",
)  # fmt: skip
for name in UNARY_FOREACH:
    MORE[f"torch._foreach_{name}"] = [call([x(2, 3).sigmoid(), x(4).sigmoid()])]
for name in ("mul", "div", "add", "sub", "maximum", "minimum"):
    lists = [x(2, 3), x(4)], [x(2, 3, seed=1), x(4, seed=1)]
    MORE[f"torch._foreach_{name}"] = [call(*lists)]
MORE["torch._foreach_lerp"] = [call([x(2, 3), x(4)], [x(2, 3, seed=1), x(4, seed=1)], w) for w in (0.25, [0.75, 2.0])]
MORE["torch._foreach_pow"] = [call([x(2, 3), x(4)], 3), call([x(2, 3), x(4)], [2.0, 3]), call(2.5, [x(2, 3), x(4)])]
for name in ("addcmul", "addcdiv"):
    three = [x(2, 3)], [x(2, 3, seed=1)], [x(2, 3, seed=2)]
    MORE[f"torch._foreach_{name}"] = [call(*three), call(*three, value=-0.5)]
