"""The sizes that layers give for those that they take, by which lazy layers become others: ``nn.LazyLinear(10)``."""

from __future__ import annotations

import math
from functools import partial

from t2j_lsp.translate.rule.sizes import UNKNOWN_SIZES, Given, Size, Sizes, gives, lazy, like_layer, makes_sized

NN = "torch.nn"


def _each(value: object, rank: int) -> tuple[Size, ...]:
    """A number for each spatial axis."""
    if isinstance(value, int):
        return (value,) * rank
    known = isinstance(value, tuple | list) and len(value) == rank and all(isinstance(v, int) for v in value)
    return tuple(value) if known and isinstance(value, tuple | list) else (None,) * rank


def _swept(given: Given, sizes: Sizes, rank: int) -> tuple[Size, ...]:
    """What a window leaves of the spatial axes that it is moved over."""
    if given.get("padding") == "same":
        return tuple(sizes.at(axis) for axis in range(-rank, 0))
    out: list[Size] = []
    kernel = given.get("kernel_size")
    stride = given.get("stride")
    parts = (kernel, kernel if stride is None else stride, given.get("padding"), given.get("dilation", 1))
    padding = 0 if parts[2] == "valid" else parts[2]
    columns = zip(*(_each(part, rank) for part in (parts[0], parts[1], padding, parts[3])), strict=True)
    for axis, (window, step, pad, spread) in zip(range(-rank, 0), columns, strict=True):
        size = sizes.at(axis)
        if size is None or window is None or not step or pad is None or spread is None:
            out.append(None)
        else:
            out.append((size + 2 * pad - spread * (window - 1) - 1) // step + 1)
    return tuple(out)


def _number(value: object) -> Size:
    return value if isinstance(value, int) else None


def _convolved(given: Given, sizes: Sizes, rank: int) -> Sizes:
    return sizes.with_last(_number(given.get("out_channels")), *_swept(given, sizes, rank))


def _transposed(given: Given, sizes: Sizes, rank: int) -> Sizes:
    return sizes.with_last(_number(given.get("out_channels")), *(None,) * rank)


def _pooled(given: Given, sizes: Sizes, rank: int) -> Sizes:
    plain = given.get("ceil_mode") is False and given.get("return_indices", False) is False
    return sizes.with_last(*_swept(given, sizes, rank)) if plain else UNKNOWN_SIZES


def _adapted(given: Given, sizes: Sizes, rank: int) -> Sizes:
    return sizes.with_last(*_each(given.get("output_size"), rank))


def _flat(given: Given, sizes: Sizes) -> Sizes:
    if (given.get("start_dim"), given.get("end_dim")) != (1, -1):
        return UNKNOWN_SIZES
    if not sizes.whole:
        return Sizes((None, None), whole=True)
    known = [size for size in sizes.last[1:] if size is not None]
    return Sizes((*sizes.last[:1], math.prod(known) if len(known) == len(sizes.last) - 1 else None), whole=True)


def _channels(sizes: Sizes) -> Size:
    """The channels of vectors or of signals, which only the number of axes tells apart."""
    return sizes.last[1] if sizes.whole and len(sizes.last) > 1 else None


gives(f"{NN}.Flatten", _flat)
gives(f"{NN}.Linear", lambda given, sizes: sizes.with_last(_number(given.get("out_features"))))
for name in ("Dropout", "AlphaDropout", "Softmax", "LogSoftmax", "LayerNorm", "GroupNorm", "LocalResponseNorm"):
    gives(f"{NN}.{name}", lambda given, sizes: sizes)
for rank in (1, 2, 3):
    gives(f"{NN}.Conv{rank}d", partial(_convolved, rank=rank))
    gives(f"{NN}.ConvTranspose{rank}d", partial(_transposed, rank=rank))
    for name in ("MaxPool", "AvgPool"):
        gives(f"{NN}.{name}{rank}d", partial(_pooled, rank=rank))
    gives(f"{NN}.AdaptiveAvgPool{rank}d", partial(_adapted, rank=rank))
    for name in ("BatchNorm", "InstanceNorm", "Dropout"):
        gives(f"{NN}.{name}{rank}d", lambda given, sizes: sizes)
    for name in ("Conv", "ConvTranspose", "InstanceNorm"):
        lazy(f"{NN}.Lazy{name}{rank}d", f"{name}{rank}d", -rank - 1)
    lazy(f"{NN}.LazyBatchNorm{rank}d", f"BatchNorm{rank}d", _channels if rank == 1 else -rank - 1)
lazy(f"{NN}.LazyLinear", "Linear", -1)
makes_sized("torch.rand", "torch.randn", "torch.zeros", "torch.ones", "torch.empty")

like_layer("torch.flatten", f"{NN}.Flatten", start_dim=0)
for name, layer_name in {"relu": "ReLU", "sigmoid": "Sigmoid", "tanh": "Tanh"}.items():
    like_layer(f"torch.{name}", f"{NN}.{layer_name}")
    like_layer(f"{NN}.functional.{name}", f"{NN}.{layer_name}")
for name, layer_name in {"leaky_relu": "LeakyReLU", "elu": "ELU", "gelu": "GELU", "silu": "SiLU"}.items():
    like_layer(f"{NN}.functional.{name}", f"{NN}.{layer_name}")
for name in ("softmax", "log_softmax"):
    like_layer(f"{NN}.functional.{name}", f"{NN}.Softmax")
like_layer(f"{NN}.functional.dropout", f"{NN}.Dropout")
for rank in (1, 2, 3):
    for name, layer_name in {
        "max_pool": "MaxPool",
        "avg_pool": "AvgPool",
        "adaptive_avg_pool": "AdaptiveAvgPool",
    }.items():
        like_layer(f"{NN}.functional.{name}{rank}d", f"{NN}.{layer_name}{rank}d")
