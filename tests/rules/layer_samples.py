"""Sample constructor arguments and inputs of every layer that has a record.

The arguments are written by name; the test spells them by position, by keyword and shuffled. Axis lengths differ from
each other, from kernels and from batch sizes, strides don't divide them, and inputs hold zeros and ties.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Text:
    """An argument that is spelled in source text: a module, a function, a tensor."""

    text: str


@dataclass
class LayerSample:
    """One way to build a layer, and the arrays to call it with."""

    arguments: dict[str, Any]
    inputs: tuple[np.ndarray, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the call, spelled as they are."""
    train: bool = False
    """Whether it is compared in training mode too (nothing in it may be random)."""
    constant: tuple[int, ...] = ()
    """Inputs that PyTorch has no gradient for, or none that is finite."""
    tolerance: float = 1e-10


def floats(*shape: int, seed: int = 0, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    """Uniform values rounded to halves in every third place, so that zeros and ties occur."""
    values = np.random.default_rng([seed, *shape]).uniform(low, high, shape)
    flat = values.reshape(-1)
    flat[::3] = np.clip(np.round(flat[::3] * 2) / 2, low, high)
    return values


def ints(high: int, *shape: int, low: int = 0) -> np.ndarray:
    return np.random.default_rng([high, *shape]).integers(low, high, shape)


def one(inputs: np.ndarray, /, train: bool = False, **arguments: Any) -> LayerSample:
    return LayerSample(arguments, (inputs,), train=train)


def call(inputs: tuple[np.ndarray, ...], keywords: dict[str, Any] | None = None, /, **arguments: Any) -> LayerSample:
    return LayerSample(arguments, inputs, keywords or {})


def log_softmax(x: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities along the last axis."""
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def positions(rank: int) -> np.ndarray:
    """Indices as max pooling by 2 returns them, for an image of 4 on each axis: (1, 2, 2, ...)."""
    grid = np.indices((2,) * rank) * 2 + (np.arange(2**rank).reshape((2,) * rank) % 2)
    flat = np.ravel_multi_index(tuple(grid), (4,) * rank)
    return np.stack([flat, flat])[None]


IMAGE, LINE, VOLUME = floats(2, 3, 7, 8), floats(2, 3, 9), floats(2, 3, 5, 6, 4)
SPATIAL = {1: LINE, 2: IMAGE, 3: VOLUME}
SIGNED = floats(4, 5)

SAMPLES: dict[str, list[LayerSample]] = {
    "Linear": [
        one(floats(4, 3), in_features=3, out_features=5),
        one(floats(2, 4, 3), in_features=3, out_features=2, bias=False),
    ],
    "Bilinear": [call((floats(4, 3), floats(4, 2)), in1_features=3, in2_features=2, out_features=5)],
    "Identity": [one(SIGNED)],
    "Flatten": [one(IMAGE), one(IMAGE, start_dim=2), one(IMAGE, start_dim=0, end_dim=1)],
    "Unflatten": [one(floats(4, 6), dim=1, unflattened_size=(2, 3))],
    "Embedding": [
        one(ints(7, 4, 5), num_embeddings=7, embedding_dim=3),
        one(ints(7, 4, 5), num_embeddings=7, embedding_dim=3, padding_idx=2),
    ],
    "Embedding.from_pretrained": [one(ints(7, 4, 5), embeddings=Text("torch.ones(7, 3)"), freeze=False)],
    "EmbeddingBag": [
        one(ints(7, 4, 5), num_embeddings=7, embedding_dim=3),
        one(ints(7, 4, 5), num_embeddings=7, embedding_dim=3, mode="sum"),
    ],
    "Dropout": [one(SIGNED), one(SIGNED, p=0.3)],
    "AlphaDropout": [one(SIGNED), one(SIGNED, p=0.3)],
    "FeatureAlphaDropout": [one(IMAGE), one(IMAGE, p=0.3)],
    "LayerNorm": [
        one(floats(4, 5, 6), normalized_shape=6),
        one(floats(4, 5, 6), normalized_shape=(5, 6), eps=1e-3),
        one(floats(4, 5, 6), normalized_shape=[6], elementwise_affine=False),
        one(floats(4, 5, 6), normalized_shape=6, bias=False),
    ],
    "RMSNorm": [one(floats(4, 5, 6), normalized_shape=6), one(floats(4, 5, 6), normalized_shape=(5, 6), eps=1e-3)],
    "GroupNorm": [
        one(floats(2, 6, 5), num_groups=3, num_channels=6),
        one(floats(2, 6, 5, 4), num_groups=2, num_channels=6, eps=1e-3, affine=False),
        one(floats(2, 6, 5), num_groups=3, num_channels=6, bias=False),
    ],
    "LocalResponseNorm": [one(floats(2, 6, 5, 4), size=3), one(floats(2, 6, 5, 4), size=2, alpha=0.1, beta=0.5, k=2.0)],
    "SyncBatchNorm": [one(IMAGE, num_features=3)],
    # Activations
    "ReLU": [one(SIGNED)],
    "GELU": [one(SIGNED), one(SIGNED, approximate="tanh")],
    "LeakyReLU": [one(SIGNED), one(SIGNED, negative_slope=0.2)],
    "ELU": [one(SIGNED), one(SIGNED, alpha=0.5)],
    "CELU": [one(SIGNED), one(SIGNED, alpha=0.5)],
    "Hardtanh": [one(SIGNED), one(SIGNED, min_val=-0.5, max_val=2.0)],
    "Hardshrink": [one(SIGNED), one(SIGNED, lambd=1.0)],
    "Softshrink": [one(SIGNED), one(SIGNED, lambd=1.0)],
    "Softplus": [one(SIGNED), one(SIGNED, beta=2.0, threshold=3.0)],
    "Threshold": [one(SIGNED, threshold=0.5, value=-2.0)],
    "GLU": [one(floats(4, 6)), one(floats(4, 6, 3), dim=1)],
    "Softmax": [one(SIGNED, dim=1), one(SIGNED, dim=0)],
    "LogSoftmax": [one(SIGNED, dim=1), one(SIGNED, dim=0)],
    "Softmin": [one(SIGNED, dim=1)],
    "Softmax2d": [one(IMAGE)],
    "PReLU": [one(IMAGE), one(IMAGE, num_parameters=3, init=0.1)],
    "RReLU": [one(SIGNED), one(SIGNED, lower=0.2, upper=0.4)],
    # Containers
    "Sequential": [one(floats(4, 3), args=(Text("nn.Linear(3, 5)"), Text("nn.Tanh()"), Text("nn.Linear(5, 2)")))],
    # Pixels
    "Upsample": [
        one(IMAGE, scale_factor=2),
        one(IMAGE, size=(9, 5), mode="bilinear"),
        one(IMAGE, scale_factor=1.5, mode="bilinear", align_corners=True),
        one(LINE, size=5, mode="linear"),
    ],
    "UpsamplingNearest2d": [one(IMAGE, scale_factor=2), one(IMAGE, size=(5, 11))],
    "UpsamplingBilinear2d": [one(IMAGE, scale_factor=2), one(IMAGE, size=(5, 11))],
    "PixelShuffle": [one(floats(2, 8, 3, 5), upscale_factor=2)],
    "PixelUnshuffle": [one(floats(2, 3, 4, 6), downscale_factor=2)],
    "ChannelShuffle": [one(floats(2, 6, 3, 5), groups=3)],
    "Unfold": [one(IMAGE, kernel_size=3), one(IMAGE, kernel_size=(2, 3), dilation=2, padding=1, stride=(2, 1))],
    "Fold": [one(floats(2, 12, 42), output_size=(7, 8), kernel_size=2)],
    # Recurrent
    "LSTM": [
        one(floats(5, 2, 3), input_size=3, hidden_size=4),
        one(
            floats(2, 5, 3),
            input_size=3,
            hidden_size=4,
            num_layers=2,
            batch_first=True,
            bidirectional=True,
            proj_size=2,
        ),
        call(
            (floats(5, 2, 3), floats(1, 2, 4), floats(1, 2, 4, seed=1)),
            {"pair": True},
            input_size=3,
            hidden_size=4,
            bias=False,
        ),
    ],
    "GRU": [
        one(floats(5, 2, 3), input_size=3, hidden_size=4),
        call(
            (floats(2, 5, 3), floats(4, 2, 4)),
            input_size=3,
            hidden_size=4,
            num_layers=2,
            batch_first=True,
            bidirectional=True,
        ),
    ],
    "RNN": [
        one(floats(5, 2, 3), input_size=3, hidden_size=4, nonlinearity="relu"),
        call((floats(5, 2, 3), floats(1, 2, 4)), input_size=3, hidden_size=4, bias=False),
    ],
    "LSTMCell": [
        one(floats(2, 3), input_size=3, hidden_size=4),
        one(floats(2, 3), input_size=3, hidden_size=4, bias=False),
    ],
    "GRUCell": [call((floats(2, 3), floats(2, 4)), input_size=3, hidden_size=4)],
    "RNNCell": [call((floats(2, 3), floats(2, 4)), input_size=3, hidden_size=4, nonlinearity="relu")],
    # Attention
    "MultiheadAttention": [
        call((floats(3, 2, 4),) * 3, embed_dim=4, num_heads=2),
        call(
            (floats(2, 3, 4), floats(2, 5, 6), floats(2, 5, 7)),
            embed_dim=4,
            num_heads=2,
            kdim=6,
            vdim=7,
            batch_first=True,
        ),
        call((floats(3, 2, 4),) * 3, embed_dim=4, num_heads=2, add_bias_kv=True, add_zero_attn=True),
    ],
    "TransformerEncoderLayer": [
        one(floats(3, 2, 4), d_model=4, nhead=2, dim_feedforward=6),
        one(
            floats(2, 3, 4), d_model=4, nhead=2, dim_feedforward=6, activation="gelu", batch_first=True, norm_first=True
        ),
        one(
            floats(3, 2, 4),
            d_model=4,
            nhead=2,
            dim_feedforward=6,
            activation=Text("F.gelu"),
            layer_norm_eps=1e-3,
            bias=False,
        ),
    ],
    "TransformerDecoderLayer": [
        call((floats(3, 2, 4), floats(5, 2, 4)), d_model=4, nhead=2, dim_feedforward=6),
    ],
    "TransformerEncoder": [
        one(floats(3, 2, 4), encoder_layer=Text("nn.TransformerEncoderLayer(4, 2, 6)"), num_layers=2),
        one(
            floats(3, 2, 4),
            encoder_layer=Text("nn.TransformerEncoderLayer(4, 2, 6)"),
            num_layers=2,
            norm=Text("nn.LayerNorm(4)"),
            enable_nested_tensor=False,
        ),
    ],
    "TransformerDecoder": [
        call(
            (floats(3, 2, 4), floats(5, 2, 4)), decoder_layer=Text("nn.TransformerDecoderLayer(4, 2, 6)"), num_layers=1
        ),
    ],
    "Transformer": [
        call(
            (floats(3, 2, 4), floats(5, 2, 4)),
            d_model=4,
            nhead=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dim_feedforward=6,
        ),
    ],
}
for name in ("ReLU6", "SiLU", "Mish", "Hardswish", "Hardsigmoid", "SELU", "Sigmoid", "Tanh", "LogSigmoid", "Softsign"):
    SAMPLES[name] = [one(SIGNED)]
SAMPLES["Tanhshrink"] = [one(SIGNED)]
# PyTorch's gradient in float64 is the float32 number nearest to 1/6.
SAMPLES["Hardsigmoid"] = [LayerSample({}, (SIGNED,), tolerance=1e-7)]

for rank, x in SPATIAL.items():
    wide = {1: floats(2, 4, 9), 2: floats(2, 4, 7, 8), 3: floats(2, 4, 5, 6, 4)}[rank]
    kernel = {1: (3,), 2: (3, 2), 3: (3, 3, 3)}[rank]  # XLA's CPU compiler aborts on the gradient of (3, 2, 3)
    every = {
        f"Conv{rank}d": [
            one(x, in_channels=3, out_channels=4, kernel_size=kernel, stride=2, padding=1, bias=False),
            one(x, in_channels=3, out_channels=4, kernel_size=3),
            one(wide, in_channels=4, out_channels=6, kernel_size=3, padding=2, dilation=2, groups=2),
            one(x, in_channels=3, out_channels=4, kernel_size=3, padding="same"),
            one(x, in_channels=3, out_channels=4, kernel_size=3, padding=1, padding_mode="reflect"),
        ],
        f"ConvTranspose{rank}d": [
            one(x, in_channels=3, out_channels=4, kernel_size=2, stride=2),
            one(
                wide,
                in_channels=4,
                out_channels=6,
                kernel_size=kernel,
                stride=2,
                padding=1,
                output_padding=1,
                groups=2,
                bias=False,
            ),
        ],
        f"MaxPool{rank}d": [
            one(x, kernel_size=kernel, stride=1, padding=1),
            one(x, kernel_size=2),
            one(x, kernel_size=2, ceil_mode=True),
            one(x, kernel_size=2, return_indices=True),
        ],
        f"AvgPool{rank}d": [one(x, kernel_size=3, stride=2, padding=1, count_include_pad=False), one(x, kernel_size=2)],
        f"AdaptiveAvgPool{rank}d": [one(x, output_size=3), one(x, output_size=1)],
        f"AdaptiveMaxPool{rank}d": [one(x, output_size=3), one(x, output_size=1)],
        f"LPPool{rank}d": [one(np.abs(x) + 0.1, norm_type=2, kernel_size=2)],
        f"MaxUnpool{rank}d": [call((floats(1, 2, *[2] * rank), positions(rank)), kernel_size=2)],
        f"ZeroPad{rank}d": [one(x, padding=tuple(range(2 * rank))), one(x, padding=1)],
        f"ReflectionPad{rank}d": [one(x, padding=(2, 1) * rank), one(x, padding=1)],
        f"ReplicationPad{rank}d": [one(x, padding=(2, 1) * rank), one(x, padding=1)],
        f"CircularPad{rank}d": [one(x, padding=(2, 1) * rank), one(x, padding=1)],
        f"ConstantPad{rank}d": [one(x, padding=(2, 1) * rank, value=-1.0), one(x, padding=1, value=0.5)],
        f"BatchNorm{rank}d": [
            one(x, train=True, num_features=3, eps=1e-3, momentum=0.3),
            one(x, train=True, num_features=3),
            one(x, train=True, num_features=3, affine=False),
            one(x, train=True, num_features=3, track_running_stats=False),
            one(x, train=True, num_features=3, momentum=None),
            one(x, train=True, num_features=3, bias=False),
        ],
        f"InstanceNorm{rank}d": [
            one(x, train=True, num_features=3, eps=1e-3, affine=True, track_running_stats=True),
            one(x, train=True, num_features=3),
            one(x, train=True, num_features=3, affine=True, bias=False),
        ],
        f"Dropout{rank}d": [one(x, p=0.3), one(x)],
    }
    if rank > 1:
        drawn = Text(f"torch.tensor([[{[0.3, 0.6, 0.9][:rank]}] * 3] * 2)")
        every[f"FractionalMaxPool{rank}d"] = [
            one(x, kernel_size=2, output_size=2, _random_samples=drawn),
            one(x, kernel_size=(2, 3, 2)[:rank], output_ratio=0.5, _random_samples=drawn),
        ]
    # Two axes stand for all: what the ranks share is compiled once.
    SAMPLES |= every if rank == 2 else {name: result[:1] for name, result in every.items()}

# Losses -----------------------------------------------------------------------------------------------------------

SCORES, CLASSES = floats(4, 5), ints(5, 4)
PROBABILITIES = np.clip(floats(4, 5, low=0.0, high=1.0, seed=3), 0.0, 1.0)
OTHER, SIGNS = floats(4, 5, seed=1), np.where(floats(4) > 0, 1.0, -1.0)
REDUCTIONS: tuple[dict[str, Any], ...] = ({}, {"reduction": "sum"}, {"reduction": "none"})


def losses(
    *inputs: np.ndarray, more: tuple[dict[str, Any], ...] = (), constant: tuple[int, ...] = ()
) -> list[LayerSample]:
    return [LayerSample(arguments, inputs, constant=constant) for arguments in (*REDUCTIONS, *more)]


WEIGHT = Text("torch.tensor([1.0, 0.5, 2.0, 0.25, 1.5])")
SAMPLES |= {
    "L1Loss": losses(SCORES, OTHER),
    "MSELoss": losses(SCORES, OTHER),
    "SmoothL1Loss": losses(SCORES, OTHER, more=({"beta": 0.5},)),
    "HuberLoss": losses(SCORES, OTHER, more=({"delta": 0.5},)),
    "KLDivLoss": [  # the gradient of a target of 0 is not finite
        *losses(-np.abs(SCORES), PROBABILITIES, constant=(1,)),
        *losses(-np.abs(SCORES), -np.abs(OTHER), more=({"reduction": "batchmean", "log_target": True},))[-1:],
    ],
    "GaussianNLLLoss": losses(SCORES, OTHER, PROBABILITIES + 0.1, more=({"full": True, "eps": 1e-3},)),
    "PoissonNLLLoss": losses(SCORES, np.abs(OTHER), more=({"full": True},)),
    "CrossEntropyLoss": losses(
        SCORES, CLASSES, more=({"ignore_index": 2, "label_smoothing": 0.1}, {"weight": WEIGHT, "ignore_index": 2})
    ),
    "LinearCrossEntropyLoss": [
        call((SCORES, ints(3, 4)), in_features=5, num_classes=3),
        call((SCORES, ints(3, 4)), in_features=5, num_classes=3, bias=True, ignore_index=1, reduction="sum"),
    ],
    "NLLLoss": losses(SCORES, CLASSES, more=({"weight": WEIGHT, "ignore_index": 2},)),
    "BCELoss": losses(PROBABILITIES * 0.9 + 0.05, PROBABILITIES, more=({"weight": WEIGHT},)),
    "BCEWithLogitsLoss": losses(SCORES, PROBABILITIES, more=({"pos_weight": WEIGHT},)),
    "SoftMarginLoss": losses(SCORES, np.sign(OTHER + 0.1), constant=(1,)),
    "MultiMarginLoss": losses(SCORES, CLASSES, more=({"p": 2, "margin": 0.5}, {"weight": WEIGHT})),
    "MultiLabelMarginLoss": losses(
        SCORES, np.array([[1, 3, -1, 0, 0], [0, 1, 2, 3, 4], [4, -1, 0, 0, 0], [2, 0, -1, 1, 1]])
    ),
    "MultiLabelSoftMarginLoss": losses(SCORES, (OTHER > 0).astype(float), more=({"weight": WEIGHT},)),
    "CosineEmbeddingLoss": losses(SCORES, OTHER, SIGNS, more=({"margin": 0.3},)),
    "MarginRankingLoss": losses(SCORES[:, 0], OTHER[:, 0], SIGNS, more=({"margin": 0.3},)),
    "HingeEmbeddingLoss": losses(SCORES[:, 0], SIGNS, more=({"margin": 0.3},)),
    "TripletMarginLoss": losses(SCORES, OTHER, floats(4, 5, seed=2), more=({"margin": 0.3, "p": 1.0, "swap": True},)),
    "TripletMarginWithDistanceLoss": losses(SCORES, OTHER, floats(4, 5, seed=2), more=({"margin": 0.3, "swap": True},)),
    "CTCLoss": losses(
        log_softmax(floats(6, 2, 4)),
        ints(4, 2, 2, low=1),
        np.array([6, 5]),
        np.array([2, 1]),
        more=({"blank": 0},),
    ),
    "CosineSimilarity": [call((SCORES, OTHER)), call((SCORES, OTHER), dim=0, eps=1e-3)],
    "PairwiseDistance": [call((SCORES, OTHER)), call((SCORES, OTHER), p=1.0, keepdim=True)],
}
