"""What annotations of parameters tell of their values, where no call is found."""

from __future__ import annotations

import collections.abc
import re
import sys
import types
import typing
from typing import Any

import numpy as np
import torch
from torch import nn

from t2j_lsp.check.inputs import ArraySpec

NAMES = vars(typing) | {"torch": torch, "nn": nn, "Tensor": torch.Tensor}
"""What annotations that are texts name."""
_OF_OTHERS = sys.stdlib_module_names | {"builtins", "jaxtyping", "numpy", "torch", "torchtyping"}
"""Packages whose classes may stand for tensors in annotations, or for plain values."""
_MODULE = re.compile(r"[\w.]*(?:Module|Layer|Model|Net|Network|Block)")
"""Texts of annotations that name a kind of module, by their last word."""
_KIND_OF_TENSOR = re.compile(r"(?!Opt|Any|Maybe|Torch)[A-Z]\w*(Tensor|Base|Config|Dataset|Dict|Graph|Loader)")
"""Names of classes that work as tensors do, or have what tensors have: ``ManifoldTensor``, ``TensorDictBase``."""
_OF_NUMPY = re.compile(r"(np\.|numpy\.)?ndarray|(npt\.)?NDArray(\[.*\])?")
"""Texts of annotations that name NumPy's arrays, which nobody traces."""
_PLAIN_KINDS = {"int": 2, "float": 0.5, "bool": True, "str": "a"}


def by_annotation(kind: Any, spec: Any) -> Any:
    """The value to try for a parameter with an annotation, or the text of one, where a tensor would be ``spec``."""
    text = _first_number(kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind)), kind)
    if text in ("Size", "torch.Size"):
        return spec.shape[:2] if isinstance(spec, ArraySpec) else spec
    if text in _PLAIN_KINDS:
        return _PLAIN_KINDS[text] if isinstance(spec, ArraySpec) or text not in ("int", "str") else spec
    if re.search(r"\b([Dd]ict|Mapping|MutableMapping)\[\s*(str|int|Any)\b", str(kind)) or kind in (dict, "dict"):
        return {}  # what is asked of it tells its keys
    if _is_module(kind) or _is_own(kind) or _OF_NUMPY.fullmatch(text):
        return None  # a tensor takes attributes as a module does, and may have methods of the same names
    if (made := _of_kind(kind, spec)) is not None:
        return made
    if re.search(r"(List|list|Sequence|Tuple|tuple)\[[^|]*Tensor", str(kind)):
        return [spec, spec]
    if re.match(r"(typing\.)?(List|list|Sequence|Tuple|tuple)\[int\b", str(kind)):
        return [1, 2]
    return None if re.match(r"(typing\.)?(List|list|Sequence|Tuple|tuple)\[", str(kind)) else spec


def _first_number(text: str, kind: Any) -> str:
    """The first kind of a union of numbers, ``int | float``, ``Optional[float]``; else the text of the annotation."""
    named = [getattr(part, "__name__", "") for part in typing.get_args(kind)]
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        union = re.fullmatch(r"(?:typing\.)?(?:Union|Optional)\[(.*)\]", text)
        named = [part.strip() for part in re.split(r"[,|]", union[1] if union else text)]
    numbers = [name for name in named if name not in ("None", "NoneType")]
    return numbers[0] if numbers and set(numbers) <= {"int", "float", "bool"} else text


def _is_module(kind: Any) -> bool:
    """Whether an annotation, or the text of one, names a kind of module."""
    if isinstance(kind, str):
        return _MODULE.fullmatch(kind) is not None
    return isinstance(kind, type) and issubclass(kind, nn.Module)


def _is_own(kind: Any) -> bool:
    """Whether an annotation names a class of the program's or a library's own, which is no tensor of PyTorch's."""
    if isinstance(kind, str):
        name = kind.rpartition(".")[2]
        return _KIND_OF_TENSOR.fullmatch(name) is not None and not hasattr(torch, name)
    if not isinstance(kind, type) or issubclass(
        kind, torch.Tensor | np.ndarray | tuple | list | dict | str | int | float
    ):
        return False
    return kind.__module__.partition(".")[0] not in _OF_OTHERS


def _of_kind(kind: Any, spec: Any) -> Any:
    """A value built as an annotation says: ``list[tuple[Tensor, float]]``; None where it names something else."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is torch.Tensor or torch.Tensor in inner and origin in (typing.Union, types.UnionType):
        return spec
    if isinstance(kind, type) and kind.__name__ in _PLAIN_KINDS and origin is None:
        return _PLAIN_KINDS[kind.__name__]
    if origin not in (list, tuple, collections.abc.Sequence, collections.abc.Iterable) or not inner:
        return None
    if origin is tuple and inner[-1] is not Ellipsis:
        items = [_of_kind(item, spec) for item in inner]
    else:
        items = [_of_kind(inner[0], spec)] * 2
    if any(item is None for item in items) or inner[0] is int:
        return None
    return tuple(items) if origin is tuple else items
