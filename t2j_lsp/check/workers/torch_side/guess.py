"""Guesses the inputs of a torch program: from its first layers, its parameters' names, and torch's own errors."""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from t2j_lsp.check.inputs import Arguments, ArraySpec, Code
from t2j_lsp.check.program.names import number_for
from t2j_lsp.check.protocol import leaves

from .annotated import NAMES, by_annotation
from .lengths import BATCHES, batched, grid
from .repairs import BY_AXES, LENGTH, REPAIRS, SIDES, Change, changed

SIZES = (
    *SIDES, (24, 32), (32, 48), (33, 35), (64, 96), (28, 28), (32, 32), (64, 64), (96, 96), (128, 128),
    (224, 224), (227, 227), (256, 256), (299, 299),
)  # fmt: skip
_GENERIC = (
    (4, 3, 17, 19), (3, LENGTH, 7), (3, 7), (3, 3), (3, 4, LENGTH, 6), (7,), (4, 6, 3, 17, 19), (3, 6, 16, 24),
    (3, 8, 6), (5, 4), (3, LENGTH, 4), (3, LENGTH, 1), (4, LENGTH, 2), (2, 3),
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
    (r"interpolation(_mode)?", "nearest"),
    (r"(num|n)_\w+|kernel(_size)?|stride|window_size|hop_(size|length)|(\w+_)?(rate|sr|count|factor)|amount", 2),
    (r"(\w+_)?(channels|features|width|height)|\w+_(dim|size)", 6),
    (r"eps|epsilon", 1e-5),
    (r"device", Code("torch.device('cpu')")),
    (r"dtype", Code("torch.float32")),
)
"""What parameters of a call beside its first are, by their names, where nothing says that they are tensors."""
MOST_TRIED = 160
DEEPEST = 10
"""So many errors in a row shape one guess; then the next is taken, since each can go on growing without end."""
_IDS = ArraySpec("int64", batched(7), 0, 8)
_UNSAID = inspect.Parameter.empty
_EDGES = 11
"""Of a graph whose nodes are the rows of its first input."""
_MOST_ELEMENTS = 2_000_000
_LENGTH_NAMES = re.compile(r"(\w+_)?(lengths|lens)")
_ONE_SHAPE = re.compile(r"(have|be of|of) the same (shape|size|dimension)|same (shape|size)s?\b")
_NO_PAIR = re.compile(r"non-iterable int object|'int' has no len|'int' object is not (iterable|subscriptable)")
_MASK_NAMES = re.compile(r"(\w+_)?masks?(_\w+)?")
Spec = ArraySpec


class Guesser:
    """Inputs to try for one model or function; `failed` tells it the error of the last, which shapes the next.

    ``built_with`` are the keyword arguments of the model's constructor, which may say the size of its images;
    ``known`` are arguments of the call that are no tensors, and ``several`` those that are lists of tensors.
    """

    def __init__(
        self,
        model: Any,
        built_with: Mapping[str, Any] | None = None,
        known: Mapping[str, Any] | None = None,
        several: Sequence[str] = (),
    ) -> None:
        self.model = model
        self.known = known or {}
        self.several = several
        self.built_with = built_with or {}
        function = model.forward if isinstance(model, nn.Module) else model
        self.parameters = [
            p for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]  # fmt: skip
        self.star = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(function).parameters.values())
        self.queue: list[tuple[dict[str, Any], int]] = []
        """Values for the parameters, and how many errors shaped them."""
        self.tried: set[str] = set()
        self.last: dict[str, Any] = {}
        self.depth = 0

    def __iter__(self) -> Iterator[Arguments]:
        self.queue = [(specs, 0) for specs in self._first()]
        while self.queue and len(self.tried) < MOST_TRIED:
            self.last, self.depth = self.queue.pop(0)
            arguments = self._arguments(self.last)
            key = str(arguments)
            if key not in self.tried and self._elements(self.last) <= _MOST_ELEMENTS:
                self.tried.add(key)
                yield arguments

    @staticmethod
    def _elements(specs: dict[str, Any]) -> int:
        return max((math.prod(one.shape) for _, one in leaves(specs) if isinstance(one, Spec)), default=0)

    def _arguments(self, specs: dict[str, Any]) -> Arguments:
        by_position = [specs[p.name] for p in self.parameters if p.kind is not p.KEYWORD_ONLY]
        by_position += [specs["*"]] if "*" in specs else []
        return Arguments(by_position, {p.name: specs[p.name] for p in self.parameters if p.kind is p.KEYWORD_ONLY})

    def failed(self, error: Exception) -> None:
        """Puts what an error suggests at the head of the queue."""
        if self.depth == DEEPEST:
            return
        text = str(error)
        better = self._with_key(error.args[0]) if isinstance(error, KeyError) and error.args else []
        better += self._as_long(text) + self._of_one_shape(text)
        for pattern, change in REPAIRS:
            match = re.search(pattern, text)
            if match:
                masks_first = sorted(self.last.items(), key=lambda item: not _MASK_NAMES.fullmatch(item[0].lower()))
                for name, value in masks_first:
                    better += [{**self.last, name: new} for new in changed(value, change, match)]
                better += self._alike_changed(change, match)
        self.queue[:0] = [(specs, self.depth + 1) for specs in better[:8]]

    def _alike_changed(self, change: Change, match: re.Match[str]) -> list[dict[str, Any]]:
        """The last inputs with the same change in all that are of one shape, as layers want them that add them up."""
        names: dict[str, list[str]] = {}
        for name, value in self.last.items():
            if isinstance(value, Spec):
                names.setdefault(str(value), []).append(name)
        return [
            {**self.last, **dict.fromkeys(alike, new)}
            for alike in names.values()
            if len(alike) > 1
            for new in changed(self.last[alike[0]], change, match)[:1]
        ]

    def _as_long(self, text: str) -> list[dict[str, Any]]:
        """The last inputs with a list as long as what it is unpacked into, or with a pair where a number is none."""
        if "list index out of range" in text:
            lists = [(name, given) for name, given in self.last.items() if isinstance(given, list)]
            return [{**self.last, name: [*given, *given[-1:]]} for name, given in lists]
        if _NO_PAIR.search(text):
            numbers = [(name, given) for name, given in self.last.items() if type(given) is int]
            return [{**self.last, name: (given, given + 2)} for name, given in numbers]
        match = re.search(r"values to unpack \(expected (\d+)", text)
        if match is None:
            return []
        lists = [(name, given) for name, given in self.last.items() if isinstance(given, list) and given]
        wanted = int(match[1])
        return [
            {**self.last, name: [*range(1, wanted + 1)] if isinstance(given[0], int) else given[:1] * wanted}
            for name, given in lists
            if isinstance(given[0], int | Spec)
        ]

    def _of_one_shape(self, text: str) -> list[dict[str, Any]]:
        """The last inputs with all tensors as the first, where the program says that they must be of one shape."""
        tensors = {name: spec for name, spec in self.last.items() if isinstance(spec, Spec)}
        if len(tensors) < 2 or _ONE_SHAPE.search(text) is None:
            return []
        return [{**self.last, **dict.fromkeys(tensors, next(iter(tensors.values())))}]

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
        kinds = {p.name: p.annotation for p in self.parameters} | self._evaluated()
        alone = len(names) < 2 and isinstance(self.model, nn.Module)
        guesses = (self._by_name,) if alone else (self._by_name, self._by_number)
        tries = [(guess, main) for guess in guesses for main in self._main_specs()]
        tries += [(guess, _IDS) for guess in guesses]  # behind those that gradients go to
        tries += [(self._alike, main) for main in (*self._main_specs(), _IDS) if not alone]
        for guess, main in tries:
            specs = {name: guess(name, main, index) for index, name in enumerate(names)}
            annotated = {name: by_annotation(kinds.get(name, _UNSAID), spec) for name, spec in specs.items()}
            several = {n: [annotated[n]] * 2 for n in self.several if isinstance(annotated.get(n), Spec)}
            yield annotated | several | {name: value for name, value in self.known.items() if name in annotated}

    def _evaluated(self) -> dict[str, Any]:
        """Annotations as values: in a slice they are text, mostly with names of ``typing`` and torch.

        Where the program has them as text already, that is the text of a text.
        """
        values = {}
        for parameter in self.parameters:
            kind = parameter.annotation
            with contextlib.suppress(Exception):  # evaluating what a program says may raise anything
                while isinstance(kind, str):
                    kind = values[parameter.name] = eval(kind, dict(NAMES))
        return values

    def _by_name(self, name: str, main: Spec, index: int) -> Any:
        lowered = name.lower()
        if lowered in ("shape", "size") and not isinstance(self.model, nn.Module):
            return list(_GENERIC[1])
        plain = next((value for pattern, value in _PLAIN if re.fullmatch(pattern, lowered)), None)
        plain = plain if index or isinstance(plain, Code) else None
        if plain is not None:
            return plain
        if index and lowered == "edge_index":
            return Spec("int64", (2, _EDGES), 0, main.shape[0] if main.shape else 1)
        if index and lowered == "edge_weight":
            return Spec("float32", (_EDGES,))
        if index and _LENGTH_NAMES.fullmatch(lowered) and len(main.shape) > 1:
            return _lengths_of(main, next(_leaf_layers(self.model), None))
        if index and _MASK_NAMES.fullmatch(lowered):
            return Spec("bool", main.shape[:2] if len(main.shape) > 1 else main.shape)
        if index and _INTEGER_NAMES.fullmatch(lowered) and main.dtype != "int64":
            return Spec("int64", main.shape[:1], 0, 3)
        return main

    def _alike(self, name: str, main: Spec, index: int) -> Any:
        """All of one shape, as a loss wants them that says ``y`` of what is no label."""
        return main

    def _by_number(self, name: str, main: Spec, index: int) -> Any:
        """Numbers, for names that mean one: ``embed_dim``, ``kernel_size``, ``timesteps``."""
        number = number_for(name.lower())
        return main if number is None else number

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
            if (
                places := grid(self.model, self.built_with)
            ) is not None:  # an image whose rows are laid behind each other
                yield Spec("float32", batched(places, channels))
            yield from (
                Spec("float32", batched(*rest)) for rest in ((channels, 17, 19), (LENGTH, channels), (channels,))
            )
        for shape in _GENERIC:
            yield Spec("float32", shape)
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


def _lengths_of(main: Spec, first: nn.Module | None) -> np.ndarray:
    """How much of each sequence of a padded batch is there, the longest first: it is as long as the batch."""
    channels_first = isinstance(first, nn.Conv1d | nn.BatchNorm1d) and len(main.shape) == 3
    longest = main.shape[2 if channels_first else 1]
    return np.array([max(1, longest - 2 * place) for place in range(main.shape[0])])


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
            yield from (Spec("float32", batched(channels, length)) for (length,) in BY_AXES[1])
        case nn.BatchNorm1d(num_features=channels):
            yield from (Spec("float32", shape) for shape in (batched(channels), batched(channels, 7)))
        case nn.Conv3d(in_channels=channels) | nn.ConvTranspose3d(in_channels=channels):
            yield from (Spec("float32", batched(channels, *size)) for size in BY_AXES[3])
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
