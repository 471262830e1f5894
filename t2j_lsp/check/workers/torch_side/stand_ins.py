"""Stand-ins for data sets of torchvision that are not there, and loaders that end after a few batches.

A data set that can't be made is filled with made-up images of its own shape and number: its classes, lengths and
transforms are the user's, its images are patterns of their class with noise. Both sides of a check make the same.
"""

from __future__ import annotations

import functools
import importlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.utils.data import dataloader

BATCHES = 8
"""Batches in one pass over a loader."""
_BANK = 256
"""Different images of a data set; the others are these again."""
_FOLDER_SIZE, _FOLDER_LENGTH, _FOLDER_CLASSES = (64, 64, 3), 512, 2


def images(name: str, number: int, shape: tuple[int, ...], classes: int) -> tuple[Any, Any]:
    """Images in bytes, and their classes, of a data set of this name."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), classes])
    patterns = rng.integers(0, 256, (classes, *shape))
    labels = np.concatenate([rng.permutation(classes) for _ in range(-(-_BANK // classes))])[:_BANK]
    bank = np.clip(0.7 * patterns[labels] + 0.3 * rng.integers(0, 256, (_BANK, *shape)), 0, 255).astype(np.uint8)
    index = np.arange(number) % _BANK
    return bank[index], labels[index].astype(np.int64)


def _mnist(data: Any) -> int:
    splits: dict[Any, list[str]] = getattr(data, "classes_split_dict", {})
    names = splits.get(getattr(data, "split", None), getattr(data, "classes", ()))
    count, labels = images(type(data).__name__, 60_000 if data.train else 10_000, (28, 28), len(names) or 10)
    data.data, data.targets = torch.from_numpy(count), torch.from_numpy(labels)
    return len(count)


def _cifar(data: Any) -> int:
    count = 100 if "CIFAR100" in {base.__name__ for base in type(data).__mro__} else 10
    length, labels = images(f"CIFAR{count}", 50_000 if data.train else 10_000, (32, 32, 3), count)
    data.data, data.targets = length, labels.tolist()
    data.classes = [f"class {i}" for i in range(count)]
    data.class_to_idx = {name: i for i, name in enumerate(data.classes)}
    return len(length)


def _usps(data: Any) -> int:
    count, labels = images("USPS", 7291 if getattr(data, "train", True) else 2007, (16, 16), 10)
    data.data, data.targets = count, labels.tolist()
    return len(count)


def _svhn(data: Any) -> int:
    data.data, data.labels = images("SVHN", 26_032 if data.split == "test" else 73_257, (3, 32, 32), 10)
    return len(data.data)


def _folder(data: Any) -> int:
    image: Any = importlib.import_module("PIL.Image")
    count, labels = images("folder", _FOLDER_LENGTH, _FOLDER_SIZE, _FOLDER_CLASSES)
    data.classes = [f"class {i}" for i in range(_FOLDER_CLASSES)]
    data.class_to_idx = {name: i for i, name in enumerate(data.classes)}
    data.samples = data.imgs = [(f"{i}.png", label) for i, label in enumerate(labels.tolist())]
    data.targets = labels.tolist()
    data.loader = lambda path: image.fromarray(count[int(path.partition(".")[0])])
    return len(count)


_FILL: dict[str, Callable[[Any], int]] = {
    "MNIST": _mnist,
    "CIFAR10": _cifar,
    "USPS": _usps,
    "SVHN": _svhn,
    "ImageFolder": _folder,
}
"""What fills a data set that could not be made, by the class whose constructor failed; how many images it has then."""


@contextmanager
def data_stood_in(texts: list[str], note: Callable[[str], None]) -> Iterator[None]:
    """In this context, data sets of torchvision that are not there are made up, and loaders are cut.

    ``texts`` are the files of the program; ``note`` is told what was made up.
    """
    with ExitStack() as stack:
        stack.enter_context(_cut(note))
        if any("torchvision" in text for text in texts):
            try:
                datasets = importlib.import_module("torchvision.datasets")
            except ImportError:
                datasets = None
            for name, fill in _FILL.items():
                if hasattr(datasets, name):
                    stack.enter_context(_filled(getattr(datasets, name), fill, note))
        yield


def _filled(owner: Any, fill: Callable[[Any], int], note: Callable[[str], None]) -> Any:
    """A patch of a constructor: where the data set is not there, it is filled."""
    original = owner.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except (OSError, RuntimeError) as error:
            try:
                number = fill(self)
            except AttributeError:
                # The constructor failed before it was said what the data set is.
                raise error from None
            note(f"{type(self).__name__}: {number} made-up images")

    return mock.patch.object(owner, "__init__", init)


@contextmanager
def _cut(note: Callable[[str], None]) -> Iterator[None]:
    """Each pass over a loader ends after a few batches."""
    owner: Any = dataloader._BaseDataLoaderIter
    original = owner.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        if self._num_yielded < BATCHES:
            return original(self)
        if self._dataset_kind == dataloader._DatasetKind.Iterable or len(self) > BATCHES:
            note(f"a pass over a loader ends after {BATCHES} batches")
        raise StopIteration

    with mock.patch.object(owner, "__next__", following):
        yield
