"""A small library of models that is laid out as torchvision is, for tests where that isn't installed."""

from __future__ import annotations

import re
from pathlib import Path

from t2j_lsp.libraries.known import Library

FILES = {
    "pictures/__init__.py": "from pictures import models, transforms\n",
    "pictures/transforms.py": "def preset(size):\n    return lambda image: image[..., :size]\n",
    "pictures/_log.py": "MADE = []\n\n\ndef log_once(model):\n    MADE.append(type(model).__name__)\n",
    "pictures/layers.py": '''\
from torch import nn

from ._log import log_once


class ConvBlock(nn.Sequential):
    """A convolution, normalized."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
        log_once(self)
        self.outputs = outputs


class Unused(nn.Module):
    pass
''',
    "pictures/models/__init__.py": """\
from .net import *
from .deep import *
from . import net, deep
from ._api import get_model
""",
    "pictures/models/_api.py": """\
from enum import Enum

import torch

MODELS = {}


def register(fn):
    MODELS[fn.__name__] = fn
    return fn


def get_model(name, **options):
    return MODELS[name](**options)


class WeightsEnum(Enum):
    @classmethod
    def verify(cls, weights):
        assert weights is None or isinstance(weights, cls), weights
        return weights

    @property
    def meta(self):
        return self.value["meta"]

    def get_state_dict(self):
        shapes = self.value["shapes"]
        return {name: torch.linspace(-1, 1, torch.Size(s).numel()).reshape(s) for name, s in shapes.items()}
""",
    "pictures/models/net.py": '''\
# Copyright: the authors of pictures.
"""Small networks."""

from typing import Any, Optional

import torch
from torch import nn

from .._log import log_once
from ..layers import ConvBlock
from ..transforms import preset
from ._api import register, WeightsEnum

__all__ = ["Net", "Net_Weights", "small_net", "other_net"]


class Net(nn.Module):
    """Two blocks and a classifier."""

    def __init__(self, num_classes: int = 5, width: int = 4) -> None:
        super().__init__()
        log_once(self)
        self.features = nn.Sequential(ConvBlock(3, width), nn.MaxPool2d(2), ConvBlock(width, 2 * width))
        self.fc = nn.Linear(2 * width, num_classes)
        self.classifier = nn.Sequential(nn.Linear(num_classes, num_classes), nn.ReLU(), nn.Linear(num_classes, 3))

    def forward(self, x):
        x = self.features(x).mean((2, 3))
        return self.classifier(self.fc(x))


class Net_Weights(WeightsEnum):
    V1 = {
        "meta": {"categories": ["a", "b"]},
        "transforms": preset(4),
        "shapes": {
            "features.0.0.weight": (4, 3, 3, 3), "features.0.0.bias": (4,),
            "features.0.1.weight": (4,), "features.0.1.bias": (4,),
            "features.0.1.running_mean": (4,), "features.0.1.running_var": (4,),
            "features.0.1.num_batches_tracked": (),
            "features.2.0.weight": (8, 4, 3, 3), "features.2.0.bias": (8,),
            "features.2.1.weight": (8,), "features.2.1.bias": (8,),
            "features.2.1.running_mean": (8,), "features.2.1.running_var": (8,),
            "features.2.1.num_batches_tracked": (),
            "fc.weight": (2, 8), "fc.bias": (2,),
            "classifier.0.weight": (2, 2), "classifier.0.bias": (2,),
            "classifier.2.weight": (3, 2), "classifier.2.bias": (3,),
        },
    }
    DEFAULT = V1


# What it is made by.
@register
def small_net(*, weights: Optional[Net_Weights] = None, **kwargs: Any) -> Net:
    weights = Net_Weights.verify(weights)
    if weights is not None:
        kwargs["num_classes"] = len(weights.meta["categories"])
    model = Net(**kwargs)
    if weights is not None:
        model.load_state_dict(weights.get_state_dict())
    return model


@register
def other_net() -> Net:
    return Net(width=6)
''',
    "pictures/models/deep.py": """\
from torch import nn

from pictures.layers import ConvBlock

__all__ = ["deep"]


def deep(n: int) -> nn.Sequential:
    return nn.Sequential(*[ConvBlock(3, 3) for _ in range(n)])
""",
    "pictures-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: pictures\nVersion: 1.2\nLicense: MIT\n",
    "pictures-1.2.dist-info/RECORD": "pictures/__init__.py,,\npictures-1.2.dist-info/LICENSE,,\n",
    "pictures-1.2.dist-info/top_level.txt": "pictures\n",
    "pictures-1.2.dist-info/LICENSE": "Do as you like.\n",
}
LIBRARY = Library(
    "pictures",
    ("pictures.models", "pictures.layers"),
    re.compile(r"pictures\.(?:transforms|models\._api)(?:\..*)?|pictures\..*\w_Weights"),
    frozenset({"register", "log_once"}),
    ("pictures.models.get_model",),
)


def install(folder: Path) -> None:
    """Write the library into a folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
