"""Guesses the inputs of a torch program: from its first layers, its parameters' names, and torch's own errors."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from torch import nn

from t2j_lsp.check.inputs import Arguments, ArraySpec, Code

from .lengths import BATCHES, batched

SIZES = (
    (17, 19), (20, 28), (24, 32), (32, 48), (33, 35), (64, 96), (28, 28), (32, 32), (64, 64), (96, 96), (128, 128),
    (224, 224), (227, 227), (256, 256), (299, 299),
)  # fmt: skip
LENGTH = 5
_BY_AXES = {1: ((23,), (64,), (100,), (1024,)), 2: SIZES[:2], 3: ((7, 9, 11), (8, 16, 16), (16, 32, 32))}
"""What convolutions of one, two and three axes are tried with."""
_GENERIC = (
    (4, 3, 17, 19), (3, LENGTH, 7), (3, 7), (3, 3), (3, 4, LENGTH, 6), (7,), (4, 6, 3, 17, 19), (3, 6, 16, 24),
    (3, 8, 6),
)  # fmt: skip
_PAIRS = ((2, 3, 17, 19), (2, LENGTH, 7), (2, 7))
"""Shapes for what takes nothing but pairs."""
_INTEGER_NAMES = re.compile(
    r"(\w+_)?(ids?|tokens?|idx|indices|index|labels?|targets?|positions?|t|timesteps?|time_?steps?|lengths?)(_ids)?|y|steps?"
)
_SIZE_NAMES = re.compile(r"(\w+_)?(image|img|input)_?(size|resolution|height|width)?|(\w+_)?resolution|size")
_CHANNEL_NAMES = re.compile(r"channels|chs|features|dim|planes|size")
_PLAIN: tuple[tuple[str, Any], ...] = (
    (r"dim|axis", 1),
    (r"dims|axes", (1,)),
    (r"reduction", "mean"),
    (r"(num|n)_\w+|kernel(_size)?|stride|window_size|hop_(size|length)|(\w+_)?(rate|sr|count|factor)|amount", 2),
    (r"eps|epsilon", 1e-5),
    (r"device", Code("torch.device('cpu')")),
)
"""What parameters of a call beside its first are, by their names, where nothing says that they are tensors."""
_EDGES = 11
"""Of a graph whose nodes are the rows of its first input."""
_MOST_ELEMENTS = 2_000_000
_MASK_NAMES = re.compile(r"(\w+_)?masks?(_\w+)?")
Spec = ArraySpec
OUT_OF_ORDER = "the offsets of an embedding bag must not decrease"


class Guesser:
    """Inputs to try for one model or function; `failed` tells it the error of the last, which shapes the next.

    ``built_with`` are the keyword arguments of the model's constructor, which may say the size of its images.
    """

    def __init__(self, model: Any, built_with: Mapping[str, Any] | None = None) -> None:
        self.model = model
        self.built_with = built_with or {}
        function = model.forward if isinstance(model, nn.Module) else model
        self.parameters = [
            p for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]  # fmt: skip
        self.star = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(function).parameters.values())
        self.queue: list[dict[str, Any]] = []
        self.tried: set[str] = set()
        self.last: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Arguments]:
        self.queue = list(self._first())
        while self.queue and len(self.tried) < 60:
            self.last = self.queue.pop(0)
            arguments = self._arguments(self.last)
            key = str(arguments)
            if key not in self.tried and self._elements(self.last) <= _MOST_ELEMENTS:
                self.tried.add(key)
                yield arguments

    @staticmethod
    def _elements(specs: dict[str, Any]) -> int:
        return max((math.prod(s.shape) for s in specs.values() if isinstance(s, Spec)), default=0)

    def _arguments(self, specs: dict[str, Any]) -> Arguments:
        by_position = [specs[p.name] for p in self.parameters if p.kind is not p.KEYWORD_ONLY]
        by_position += [specs["*"]] if "*" in specs else []
        return Arguments(by_position, {p.name: specs[p.name] for p in self.parameters if p.kind is p.KEYWORD_ONLY})

    def failed(self, error: Exception) -> None:
        """Puts what an error suggests at the head of the queue."""
        text = str(error)
        better = self._with_key(error.args[0]) if isinstance(error, KeyError) and error.args else []
        for pattern, change in _REPAIRS:
            match = re.search(pattern, text)
            if match:
                for name, spec in self.last.items():
                    if isinstance(spec, Spec):
                        better += [{**self.last, name: s} for s in change(spec, match)]
        self.queue[:0] = better[:8]

    def _with_key(self, key: Any) -> list[dict[str, Any]]:
        """The last inputs with what a dict among them was asked for."""
        main = next((s for s in self.last.values() if isinstance(s, Spec)), Spec("float32", _GENERIC[0]))
        if not isinstance(key, str | int):
            return []
        held = {name: given for name, given in self.last.items() if isinstance(given, dict) and key not in given}
        specs = [main, *(Spec("float32", shape) for shape in _GENERIC if shape != main.shape)]
        return [
            {**self.last, name: {**given, key: next(iter(given.values()), spec)}}
            for name, given in held.items()
            for spec in (specs[:1] if given else specs)
        ]

    def _first(self) -> Iterator[dict[str, Any]]:
        names = [p.name for p in self.parameters] or (["*"] if self.star else [])
        for main in self._main_specs():
            specs = {name: self._by_name(name, main, index) for index, name in enumerate(names)}
            for p in self.parameters:
                specs[p.name] = _by_annotation(p, specs[p.name])
            yield specs

    def _by_name(self, name: str, main: Spec, index: int) -> Any:
        lowered = name.lower()
        plain = next((value for pattern, value in _PLAIN if index and re.fullmatch(pattern, lowered)), None)
        if plain is not None:
            return plain
        if index and lowered == "edge_index":
            return Spec("int64", (2, _EDGES), 0, main.shape[0] if main.shape else 1)
        if index and lowered == "edge_weight":
            return Spec("float32", (_EDGES,))
        if index and _MASK_NAMES.fullmatch(lowered):
            return Spec("bool", main.shape[:2] if len(main.shape) > 1 else main.shape)
        if index and _INTEGER_NAMES.fullmatch(lowered) and main.dtype != "int64":
            return Spec("int64", main.shape[:1], 0, 3)
        return main

    def _main_specs(self) -> Iterator[Spec]:
        layers = list(_leaf_layers(self.model))
        for index, layer in enumerate(layers[:4]):
            pattern = getattr(layer, "pattern", None)
            if isinstance(pattern, str) and "->" in pattern:
                yield from self._for_pattern(pattern, getattr(layer, "axes_lengths", {}), layers[index + 1 :])
            yield from _for_layer(layer, self.model)
        first = self.parameters[0].name.lower() if self.parameters else ""
        if _INTEGER_NAMES.fullmatch(first) and first not in ("y", "t"):
            yield Spec("int64", batched(7), 0, 8)
        channels = next((v for k, v in self.built_with.items() if _CHANNEL_NAMES.search(k)), None)
        if channels is not None:
            yield from (
                Spec("float32", batched(*rest)) for rest in ((channels, 17, 19), (LENGTH, channels), (channels,))
            )
        for shape in _GENERIC:
            yield Spec("float32", shape)
        yield Spec("int64", batched(7), 0, 8)
        yield from (Spec("float32", shape) for shape in _PAIRS)

    def _for_pattern(self, pattern: str, lengths: Mapping[str, int], behind: list[nn.Module]) -> Iterator[Spec]:
        """What an einops layer takes: ``b c (h p1) (w p2) -> b (h w) (p1 p2 c)`` in front of a linear layer."""
        left, right = (re.findall(r"\([^)]*\)|\S+", side) for side in pattern.split("->"))
        last = right[-1].strip("()").split()
        features = next((_features(layer) for layer in behind if _features(layer)), None)
        known = dict(lengths)
        free = [name for name in last if name not in known]
        if features and len(free) == 1:
            known[free[0]] = max(1, features // math.prod(known[n] for n in last if n in known))
        sizes = [v for k, v in self.built_with.items() if _SIZE_NAMES.fullmatch(k) and isinstance(v, int)]
        frames = next((v for k, v in self.built_with.items() if "frames" in k and isinstance(v, int)), 8)
        for size in [*sizes, None]:
            shape = []
            for position, token in enumerate(left):
                names = token.strip("()").split()
                product = math.prod(known.get(n, 1) for n in names)
                unknown = [n for n in names if n not in known]
                if token.startswith("(") and unknown and size is not None:
                    whole = frames if unknown[0] in ("f", "t") else size
                    shape.append(max(whole // product, 1) * product)
                else:
                    shape.append(product * (BATCHES[0] if position == 0 else 3 + position if unknown else 1))
            yield Spec("float32", tuple(shape))


def _features(layer: nn.Module) -> int | None:
    """The length of the last axis that a layer takes."""
    match layer:
        case nn.Linear(in_features=features):
            return int(features)
        case nn.LayerNorm(normalized_shape=shape):
            return int(shape[-1])
        case _:
            return None


def _by_annotation(parameter: inspect.Parameter, spec: Any) -> Any:
    kind = parameter.annotation
    text = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    plain = {"int": 2, "float": 0.5, "bool": True}
    if text in plain:
        return plain[text]
    if re.search(r"\b([Dd]ict|Mapping|MutableMapping)\[\s*(str|int|Any)\b", str(kind)) or kind in (dict, "dict"):
        return {}  # what is asked of it tells its keys
    if re.search(r"(List|list|Sequence|Tuple|tuple)\[.*Tensor", str(kind)):
        return [spec, spec]
    if re.match(r"(typing\.)?(List|list|Sequence|Tuple|tuple)\[int\b", str(kind)):
        return [1, 2]
    return spec


def _leaf_layers(model: Any) -> Iterator[nn.Module]:
    if isinstance(model, nn.Module):
        for module in model.modules():
            if (
                type(module).__module__.startswith(("torch.nn", "einops"))
                and next(module.children(), None) is None
                or isinstance(module, nn.MultiheadAttention)
            ):
                yield module


def _sizes(model: Any) -> Iterator[tuple[int, int]]:
    for name in ("img_size", "image_size", "input_resolution", "input_size", "resolution"):
        for module in model.modules():
            size = getattr(module, name, None)
            if isinstance(size, int):
                yield size, size
            elif isinstance(size, tuple | list) and len(size) >= 2 and all(isinstance(n, int) for n in size[-2:]):
                yield size[-2], size[-1]
    yield from SIZES


def _for_layer(layer: nn.Module, model: nn.Module) -> Iterator[Spec]:
    """What a model that starts with this layer takes."""
    match layer:
        case nn.Conv2d(in_channels=channels) | nn.ConvTranspose2d(in_channels=channels):
            yield from (Spec("float32", batched(channels, *size)) for size in _sizes(model))
        case nn.BatchNorm2d(num_features=channels) | nn.InstanceNorm2d(num_features=channels):
            yield from (Spec("float32", batched(channels, *size)) for size in SIZES[:2])
        case nn.GroupNorm(num_channels=channels):
            yield from (Spec("float32", batched(channels, *size)) for size in ((7, 9), (11,), ()))
        case nn.Conv1d(in_channels=channels) | nn.ConvTranspose1d(in_channels=channels):
            yield from (Spec("float32", batched(channels, length)) for (length,) in _BY_AXES[1])
        case nn.BatchNorm1d(num_features=channels):
            yield from (Spec("float32", shape) for shape in (batched(channels), batched(channels, 7)))
        case nn.Conv3d(in_channels=channels) | nn.ConvTranspose3d(in_channels=channels):
            yield from (Spec("float32", batched(channels, *size)) for size in _BY_AXES[3])
        case nn.Embedding(num_embeddings=count) | nn.EmbeddingBag(num_embeddings=count):
            yield from (Spec("int64", batched(n), 0, count) for n in (7, 16))
        case nn.Linear(in_features=features):
            yield from (Spec("float32", shape) for shape in (batched(LENGTH, features), batched(features), (features,)))
            root = int(features**0.5)
            if root * root == features:
                yield from (Spec("float32", shape) for shape in (batched(1, root, root), batched(root, root)))
            yield Spec("float32", batched(7, 9, features))
        case nn.LSTM(input_size=size) | nn.GRU(input_size=size) | nn.RNN(input_size=size):
            yield Spec("float32", batched(LENGTH, size))
        case nn.LSTMCell(input_size=size) | nn.GRUCell(input_size=size) | nn.RNNCell(input_size=size):
            yield Spec("float32", batched(size))
        case nn.MultiheadAttention(embed_dim=size):
            yield Spec("float32", batched(LENGTH, size))
        case nn.LayerNorm(normalized_shape=shape):
            yield from (Spec("float32", batched(*lead, *shape)) for lead in ((LENGTH,), (7, 9), ()))
        case _ if type(layer).__name__ == "RMSNorm":
            yield Spec("float32", batched(LENGTH, *getattr(layer, "normalized_shape", ())))


def _channels(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Channels that a convolution wants; where inputs are concatenated, one gives less, or both give a half."""
    given, channels, got = tuple(map(int, match[1].split(","))), int(match[2]), int(match[3])
    if given == (1, *spec.shape):  # Taken for one example without a batch.
        return [Spec("float32", batched(channels, *size)) for size in _BY_AXES.get(len(spec.shape) - 1, ())]
    if len(spec.shape) < 3:
        return []
    have = spec.shape[1]
    wanted = [channels, channels - (got - have), have * channels // got]
    return [
        Spec(spec.dtype, (spec.shape[0], n, *spec.shape[2:]), spec.low, spec.high)
        for n in dict.fromkeys(wanted if got != have else wanted[:1]) if n > 0
    ]  # fmt: skip


def _normalized(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """The axis that became the last one; where it was multiplied on the way (shifted copies), with so many fewer."""
    want, got = int(match[1]), int(match[2])
    found = [
        Spec(spec.dtype, (*spec.shape[:i], want, *spec.shape[i + 1 :])) for i, n in enumerate(spec.shape) if n == got
    ]
    if len(spec.shape) == 4 and got % want == 0 and spec.shape[1] % (got // want) == 0:
        found.append(Spec(spec.dtype, (spec.shape[0], spec.shape[1] * want // got, *spec.shape[2:])))
    return found


def _divisible(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Images that patches and windows divide."""
    return [Spec(spec.dtype, (*spec.shape[:2], *s), spec.low, spec.high) for s in ((32, 48), (64, 64), (56, 28))] * (
        len(spec.shape) == 4
    )


def _last(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return [Spec(spec.dtype, (*spec.shape[:-1], int(match[1])), spec.low, spec.high)] if spec.shape else []


def _flattened(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Images (or sequences) of about the size that gives a linear layer behind a flattening what it wants."""
    got, want, axes = int(match[1]), int(match[2]), len(spec.shape) - 2
    if axes < 1 or spec.dtype != "float32":
        return []
    near = (math.prod(spec.shape[2:]) * want / got) ** (1 / axes)
    sides = sorted(range(1, int(near) + 16), key=lambda side: abs(side - near))[:8]
    return [Spec(spec.dtype, (*spec.shape[:2], *(side,) * axes), spec.low, spec.high) for side in sides]


def _rank(spec: Spec, match: re.Match[str]) -> list[Spec]:
    rank = int(match[1])
    shapes = {1: (7,), 2: (LENGTH, 6), 3: (3, LENGTH, 6), 4: (3, 6, 17, 19), 5: (3, 6, 5, 17, 19)}
    if rank not in shapes or len(spec.shape) == rank:
        return []
    last = spec.shape[-1:] or (6,)
    return [Spec(spec.dtype, s, spec.low, spec.high) for s in (shapes[rank], (*shapes[rank][:-1], *last))]


def _integers(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return [] if spec.dtype == "int64" else [Spec("int64", spec.shape[:2], 0, 3)]


def _smaller(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return [Spec("int64", spec.shape, 0, 2)] if spec.dtype == "int64" and spec.high != 2 else []


def _size(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """An axis whose length torch wants to be another."""
    have, want, axis = int(match[1]), int(match[2]), int(match[3])
    found = []
    for old, new in ((have, want), (want, have)):
        spots = [i for i, n in enumerate(spec.shape) if n == old]
        for spot in sorted(spots, key=lambda i: abs(i - axis)):
            found.append(Spec(spec.dtype, (*spec.shape[:spot], new, *spec.shape[spot + 1 :]), spec.low, spec.high))
    return found


def _image(spec: Spec, match: re.Match[str]) -> list[Spec]:
    size = int(match[1])
    return [Spec(spec.dtype, (*spec.shape[:2], size, size), spec.low, spec.high)] if len(spec.shape) == 4 else []


def _offsets(spec: Spec, match: re.Match[str]) -> list[Any]:
    """Where bags start in a list of ids."""
    return [np.array([0, 2, 5])] if spec.dtype == "int64" and len(spec.shape) == 1 else []


def _larger(spec: Spec, match: re.Match[str]) -> list[Spec]:
    """Images of four times the size, for networks that halve them often."""
    if len(spec.shape) != 4 or max(spec.shape[2:]) > 128:
        return []
    height, width = spec.shape[2:]
    return [Spec(spec.dtype, (*spec.shape[:2], 4 * height, 4 * width), spec.low, spec.high)]


def _boolean(spec: Spec, match: re.Match[str]) -> list[Spec]:
    return [] if spec.dtype == "bool" else [Spec("bool", spec.shape)]


_RANKS = r"Expected .*?(\d)D \(batched\)|expected (?:a )?(\d)D|expected (\d)-?[dD]|must be (\d)-?D"
_LONG = r"scalar types: Long|must be.*(?:Long|Int|integer)|tensors used as indices must be long"
_MATCH = r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)"

_REPAIRS: tuple[tuple[str, Callable[[Spec, re.Match[str]], list[Any]]], ...] = (
    (f"^{OUT_OF_ORDER}$|offsets\\[\\S+\\] (?:has to be 0|can not be greater)", _offsets),
    (r"expected input\[([\d, ]+)\] to have (\d+) channels, but got (\d+)", _channels),
    (r"expected input with shape \[\*, (\d+)\], but got input of size\s*\[[\d, ]*?(\d+)\]", _normalized),
    (r"rearrange-reduction pattern|[Ss]hape can't divide|is invalid for input of size|divisible", _divisible),
    (r"expected input with shape \[\*, (?:\d+, )*(\d+)\]", _last),
    (r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _flattened),
    (r"mat1 and mat2 shapes cannot be multiplied \(\d+x\d+ and (\d+)x\d+\)", _last),
    (r"input.size\(-1\) must be equal to input_size. Expected (\d+)", _last),
    (_RANKS, lambda spec, match: _rank(spec, _first(match))),
    (r"values to unpack \(expected (\d)", _rank),
    (_LONG, _integers),
    (r"index out of range|Class values must be smaller|is out of bounds", _smaller),
    (_MATCH, _size),
    (r"[Oo]utput size is too small|[Kk]ernel size can't be greater|less than|too small", _larger),
    (r"doesn't match model \((\d+)", _image),
    (r"[Ww]rong image (?:height|width).*[Ee]xpected (\d+)", _image),
    (r"expected.*(?:Bool|bool)|mask.*must be bool", _boolean),
)


def _first(match: re.Match[str]) -> re.Match[str]:
    number = next(g for g in match.groups() if g)
    found = re.match(r"(\d)", number)
    assert found is not None
    return found
