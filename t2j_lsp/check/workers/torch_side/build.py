"""Builds a user's module or function in torch, with given arguments and telling values in its state."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from t2j_lsp.check.inputs import ArraySpec, Code, draw, map_values
from t2j_lsp.check.protocol import Array, Namespace, RawArray
from t2j_lsp.check.requests import CallRequest, SliceRequest
from t2j_lsp.check.workers.loading import Transform, loaded
from t2j_lsp.check.workers.widen import widen

from . import device as torch_device

WIDE = {
    torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
    torch.complex32: torch.complex128, torch.complex64: torch.complex128,
}  # fmt: skip


def to_array(value: Any) -> Array | None:
    """A tensor's values; None for what is no tensor."""
    if not isinstance(value, torch.Tensor):
        return None
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype == torch.bfloat16:
        return RawArray("bfloat16", tensor.contiguous().view(torch.int16).numpy().view(np.uint16))
    return np.array(tensor.numpy())


def to_tensor(array: Array, wide: bool) -> torch.Tensor:
    """A tensor of an array; ``wide`` makes floats float64."""
    if isinstance(array, RawArray):
        tensor = torch.from_numpy(array.bits.view(np.int16).copy()).view(getattr(torch, array.dtype))
    else:
        tensor = torch.from_numpy(np.array(array))
    tensor = torch_device.put(tensor)
    return tensor.to(WIDE.get(tensor.dtype, tensor.dtype)) if wide else tensor


def _evaluate(text: str, names: dict[str, Any], wide: bool) -> Any:
    """What an argument's code gives; ``wide`` makes a dtype that it names float64, as it does in the program."""
    tree = ast.parse(text.strip())
    (last,) = (widen(tree, "<arguments>") if wide else tree).body
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "<arguments>", "eval"), names)


def realise(value: Any, namespace: Namespace, wide: bool, rng: np.random.Generator | None = None) -> Any:
    """Arguments as the program gets them: code evaluated, specifications drawn, arrays as tensors."""

    def leaf(item: Any) -> Any:
        if isinstance(item, Code):
            return _evaluate(item.text, {"torch": torch, "nn": nn, "functools": functools, **namespace}, wide)
        if isinstance(item, ArraySpec):
            assert rng is not None
            tensor = to_tensor(draw(item, rng), wide)
            return tensor.to(torch.bfloat16) if item.dtype == "bfloat16" and not wide else tensor
        return to_tensor(item, wide) if isinstance(item, np.ndarray | RawArray) else item

    return map_values(value, leaf)


@contextmanager
def program(
    request: SliceRequest, transform: Transform | None = None, names: dict[str, Any] | None = None
) -> Iterator[tuple[ModuleType, Any]]:
    """The request's slice, loaded in the request's precision, and its object. Global torch state is put back."""
    wide = request.wide
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if wide else torch.float32)
    torch_device.seed(request.seed)

    def change(tree: Any, path: str) -> Any:
        tree = widen(tree, path) if wide else tree
        return transform(tree, path) if transform else tree

    try:
        part = request.slice
        with loaded(part, change, names) as module:
            target: Any = module
            for name in part.name.split("."):
                target = getattr(target, name)
            yield module, target
    finally:
        torch.set_default_dtype(before)
        torch.set_grad_enabled(True)


def build(target: Any, init: Any, namespace: Namespace, wide: bool, rng: np.random.Generator) -> Any:
    """An instance of a module class; a function stays as it is."""
    if not isinstance(target, type):
        torch_device.pin()
        return target
    args = realise(init.args, namespace, wide, rng)
    kwargs = realise(init.kwargs, namespace, wide, rng)
    instance = target(*args, **kwargs)
    torch_device.pin()
    if not isinstance(instance, nn.Module):
        return instance
    if torch_device.on_card():
        instance = instance.cuda()  # What ``torch.Tensor(...)`` made knows no default device.
    return instance.double() if wide else instance


def outline(target: Any, init: Any, namespace: Namespace, wide: bool, rng: np.random.Generator) -> Any:
    """An instance to look at, without values where the program can do without: drawing them takes the longest."""
    try:
        with torch.device("meta"):
            return build(target, init, namespace, wide, rng)
    except Exception:  # noqa: BLE001 - it may ask for a value
        return build(target, init, namespace, wide, rng)


def give_sizes(model: Any, request: CallRequest, namespace: Namespace) -> None:
    """Calls a model once if it has lazy layers, which take their sizes from their first input."""
    if not isinstance(model, nn.Module) or not any(isinstance(p, UninitializedTensorMixin) for p in _tensors(model)):
        return
    inputs = request.inputs
    args, kwargs = realise((inputs.args, inputs.kwargs), namespace, request.wide)
    training = model.training
    with torch.no_grad():
        model.eval()(*args, **kwargs)
    model.train(training)


def _tensors(model: nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]


def randomise(module: nn.Module, rng: np.random.Generator) -> None:
    """Gives every parameter, and every buffer that still has a fresh constant value, telling values.

    A fresh scale of 1 or bias of 0 hides errors. Values are exactly representable in float32. Buffers that the
    constructor computed (tables of positions, masks) stay, since the conversion must compute them too.
    """
    buffers = dict(module.named_buffers())
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *buffers.items()]:
            if isinstance(tensor, UninitializedTensorMixin) or tensor.numel() == 0:
                continue
            if not (tensor.is_floating_point() or tensor.is_complex()):
                continue
            if name in buffers and not _fresh(name, tensor):
                continue
            values = _telling(name, tensor, rng)
            tensor.copy_(torch.from_numpy(np.asarray(values, np.complex64 if tensor.is_complex() else np.float32)))


def _fresh(name: str, tensor: torch.Tensor) -> bool:
    last = name.rpartition(".")[2]
    return last in ("running_mean", "running_var") or bool((tensor == tensor.flatten()[0]).all())


def _telling(name: str, tensor: torch.Tensor, rng: np.random.Generator) -> Any:
    shape = tuple(tensor.shape)
    if tensor.is_complex():
        return _normal(rng, shape, 0.5) + 1j * _normal(rng, shape, 0.5)
    old = tensor.detach().double().cpu()
    if name.rpartition(".")[2] == "running_var" or (not tensor.requires_grad and bool((old == 1).all())):
        return rng.uniform(0.5, 1.5, shape)
    mean = float(old.mean())
    spread = float(old.std()) if old.numel() > 1 else 0.0
    if not np.isfinite(spread) or not np.isfinite(mean):
        return old.numpy()
    if spread > 1e-2:
        return mean + _normal(rng, shape, min(spread, 1.0))
    fan = int(np.prod(shape[1:])) if len(shape) > 1 else 25
    return (mean if abs(mean) >= 0.1 else 0.0) + _normal(rng, shape, float(np.clip(fan**-0.5, 0.05, 0.5)))


def _normal(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> Any:
    return scale * rng.standard_normal(shape)
