"""Inheritance, mixins, properties and a table of classes inside one file."""

import abc
import copy
from typing import Dict, Optional, Tuple, Type

import torch
import torch.nn as nn

class InitMixin:
    """Initialises linear layers of whatever module it is mixed into."""

    init_std = 0.02

    def init_weights(self) -> None:
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                module.weight.data.normal_(mean=0.0, std=self.init_std)
                if module.bias is not None:
                    module.bias.data.zero_()
            elif isinstance(module, nn.LayerNorm):
                module.bias.data.zero_()
                module.weight.data.fill_(1.0)


class BaseModel(nn.Module, abc.ABC):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self._frozen = False

    @abc.abstractmethod
    def embed(self, x: torch.Tensor) -> torch.Tensor:
        """Features of the input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.embed(x)

    @property
    def output_shape(self) -> Tuple[int, ...]:
        return (self.width,)


class MLPModel(InitMixin, BaseModel):
    def __init__(self, in_features: int, width: int, depth: int = 2, act: Optional[nn.Module] = None):
        super().__init__(width)
        self.stem = nn.Linear(in_features, width)
        self.act = act if act is not None else nn.Tanh()
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.init_weights()

    def embed(self, x):
        x = self.act(self.stem(x))
        for i, layer in enumerate(self.hidden):
            x = x + self.act(layer(x)) if i % 2 == 0 else x - self.act(layer(x))
        return self.norm(x)


class WideMLP(MLPModel):
    factor = 2

    def __init__(self, in_features: int, width: int, **kwargs):
        super().__init__(in_features, width * self.factor, **kwargs)
        self.proj = nn.Linear(width * self.factor, width)

    def embed(self, x):
        return self.proj(super().embed(x))

    @property
    def output_shape(self):
        return (self.width // self.factor,)


MODELS: Dict[str, Type[BaseModel]] = {"mlp": MLPModel, "wide": WideMLP}


class ScaledLinear(nn.Linear):
    """A linear layer with a fixed scale on its output, and a mask on its weight."""

    def __init__(self, in_features, out_features, scale=0.5, bias=True):
        super().__init__(in_features, out_features, bias)
        self.scale = scale
        self.register_buffer("scale_mask", torch.ones(out_features))

    def forward(self, input):
        return super().forward(input) * self.scale * self.scale_mask


class Ensemble(nn.Module):
    """Copies of one model, and a registry lookup."""

    def __init__(self, kind: str, in_features: int, width: int, copies: int = 2):
        super().__init__()
        model = MODELS[kind](in_features, width)
        self.members = nn.ModuleList([copy.deepcopy(model) for _ in range(copies)])
        self.weights = nn.Parameter(torch.ones(copies) / copies)
        self.head = ScaledLinear(width, 3)

    def forward(self, x):
        outputs = torch.stack([m(x) for m in self.members])
        mixed = (self.weights.softmax(0)[:, None, None] * outputs).sum(0)
        return self.head(mixed)
