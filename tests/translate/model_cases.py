"""Which class of which file in ``models`` is built how, and what it is called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

Build = Callable[[ModuleType, dict[str, Any]], Any]


@dataclass(frozen=True)
class Case:
    """One module of a file. ``build`` gets the executed file and ``rngs``, which is empty on PyTorch's side."""

    file: str
    name: str
    build: Build
    inputs: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    train: bool = True
    """Whether it is compared in training mode too: nothing in it is random there."""
    calls: int = 1
    """Calls in a row, for modules that keep state."""
    jit: bool = True
    tolerance: float = 1e-10

    @property
    def id(self) -> str:
        return f"{self.file} {self.name}"


def case(file: str, name: str, inputs: tuple[Any, ...], *args: Any, **options: Any) -> Case:
    """The class or function ``name`` called with ``args`` and the keywords ``options["having"]``."""
    having = options.pop("having", {})
    return Case(file, name, lambda m, rngs: getattr(m, name)(*args, **having, **rngs), inputs, **options)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).uniform(-2, 2, shape)


def ints(high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng([high, *shape]).integers(0, high, shape)


def sequences(vocabulary: int, batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Padded token ids and their lengths, the first one full."""
    lengths = np.array([length, *range(length - 1, length - batch, -1)])
    ids = ints(vocabulary - 1, batch, length) + 1
    ids[np.arange(length)[None] >= lengths[:, None]] = 0
    return ids, lengths


def _of_config(cls: str, config: str, **values: Any) -> Build:
    return lambda m, rngs: getattr(m, cls)(getattr(m, config)(**values), **rngs)


EDGES = np.array([[0, 1, 2, 3, 4, 0, 2, 2], [1, 2, 0, 4, 3, 2, 1, 4]])
BOXES = np.abs(floats(3, 4)) + np.array([0.0, 0.0, 3.0, 3.0])

CASES = [
    case("lenet", "LeNet", (floats(2, 1, 28, 28),), 7),
    case("vgg", "vgg", (floats(2, 3, 16, 16),), "A", True, having={"num_classes": 5, "dropout": 0.0}),
    case("resnet", "resnet_basic", (floats(2, 3, 16, 24),), having={"num_classes": 5, "width": 8}),
    case("resnet", "resnet_bottleneck", (floats(2, 3, 16, 24),), having={"num_classes": 5, "width": 4}),
    # PyTorch multiplies the gradient of hardsigmoid by the sixth of float32, in float64 too.
    case("mobilenet", "mobilenet_v3_tiny", (floats(2, 3, 16, 12),), 5, 0.0, tolerance=1e-7),
    case("efficientnet", "efficientnet_tiny", (floats(2, 3, 16, 12),), having={"drop_path_rate": 0.0}),
    case("densenet", "DenseNet", (floats(2, 3, 32, 24),), 4, (2, 1)),
    case("unet", "UNet", (floats(2, 3, 10, 13),), 3, 2, having={"base": 4}),
    case("unet", "UNet", (floats(2, 3, 10, 13),), 3, 2, True, 4),
    case(
        "vit",
        "ViT",
        (floats(2, 3, 8, 12),),
        having={
            "image_size": (8, 12),
            "patch_size": 4,
            "num_classes": 5,
            "dim": 10,
            "depth": 2,
            "heads": 2,
            "mlp_dim": 14,
            "dim_head": 3,
        },
    ),
    case("deit", "VisionTransformer", (floats(2, 3, 8, 8),), 8, 4, 5, 12, 1, 3),
    case(
        "deit",
        "VisionTransformer",
        (floats(2, 3, 8, 8),),
        8,
        4,
        5,
        12,
        1,
        3,
        having={"distilled": False, "fused_attn": False},
    ),
    case("swin", "Stage", (floats(2, 64, 8),)),
    case("convnext", "ConvNeXt", (floats(2, 3, 16, 24),)),
    Case("gpt2", "GPT", _of_config("GPT", "GPTConfig"), (ints(37, 2, 9), ints(37, 2, 9)), tolerance=1e-9),
    Case("gpt2", "GPT flash", _of_config("GPT", "GPTConfig", flash=True, bias=False), (ints(37, 2, 9),)),
    Case("llama", "Transformer", _of_config("Transformer", "ModelArgs"), (ints(29, 2, 5),), tolerance=1e-4),
    Case(
        "rope",
        "DecoderLayer",
        _of_config("DecoderLayer", "DecoderConfig"),
        (floats(2, 5, 16),),
        {"attention_mask": np.where(np.tri(5) > 0, 0.0, -1e9)[None, None], "output_attentions": True},
        tolerance=1e-5,
    ),
    case(
        "lstm_classifier",
        "LSTMClassifier",
        sequences(11, 3, 6),
        11,
        4,
        5,
        3,
        having={"dropout": 0.0},
    ),
    case("lstm_classifier", "CharRNN", (ints(9, 3), floats(2, 3, 12)), 9, having={"num_layers": 2}),
    case("lstm_classifier", "CellLoop", (floats(3, 4),), 1, 5),
    case("seq2seq", "build", (ints(11, 6, 3), ints(13, 5, 3), 1.0)),
    case("vae", "VAE", (floats(3, 4, 5),), train=False),
    case("vae", "ConvVAE", (floats(2, 3, 8, 8), floats(2, 4))),
    case("gan", "Generator", (floats(2, 5, 1, 1),)),
    case("gan", "Discriminator", (floats(2, 3, 16, 16),)),
    case("gan", "MLPGenerator", (floats(4, 6),)),
    case("moe", "DenseMoE", (floats(2, 5, 4),), 4, 3, 2, train=False, tolerance=1e-6),
    case("moe", "SparseMoE", (floats(2, 5, 4),), 4, 3, 2, train=False),
    case("moe", "GumbelRouter", (floats(6, 4),), 4, 5, 3),
    case("gnn", "GraphNet", (floats(5, 3), EDGES, np.array([0, 0, 0, 1, 1]), 2), 3, 4, 6),
    case("diffusion", "build_diffusion", (floats(2, 3, 8, 8), np.array([1, 6]), floats(2, 3, 8, 8, seed=1))),
    case("mixins", "MLPModel", (floats(4, 3),), 3, 5),
    case("mixins", "WideMLP", (floats(4, 3),), 3, 5, having={"depth": 1}),
    case("mixins", "Ensemble", (floats(4, 3),), "wide", 3, 5),
    case("containers", "MultiHead", (floats(4, 3),), 3, {"b": 2, "a": 5}),
    case("containers", "Factors", (ints(3, 4), ints(4, 4), ints(5, 4)), (3, 4, 5), 2),
    case("containers", "Named", (floats(4, 3),), [3, 5, 2]),
    case("containers", "Chain", (floats(4, 3),), 3),
    case("containers", "Registered", (floats(2, 5, 6),), 6, calls=2),
    case("inplace", "Scribbler", (floats(2, 5, 6),), 6),
    case("inplace", "Shapes", (floats(2, 5, 6),), 2),
    case("inplace", "Masks", (floats(3, 6), np.array([6, 4, 2]))),
    case("inplace", "Boxes", (floats(3, 4), BOXES)),
]
