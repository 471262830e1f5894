"""Where torch runs: on the CPU, or on a CUDA card that it shares with JAX; and float32 that is float32 there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F

from t2j_lsp.check.process.processes import DEVICE, GPU_SHARE
from t2j_lsp.check.requests import EmptyRequest, MemoryRequest
from t2j_lsp.check.workers.precision import kernel, permutation, telling

_held: list[torch.Tensor] = []
_cards: list[str] = []
"""The card that this process runs on, if any."""
_Outcome = TypeVar("_Outcome")


def install() -> None:
    """Makes the card the default device, where one is asked for and found. Called before torch's functions are
    replaced, since torch looks up once which of them make tensors.
    """
    pin()
    if os.environ.get(DEVICE) != "gpu" or missing():
        return
    torch.set_default_device("cuda")
    _cards.append(torch.cuda.get_device_name())
    torch.cuda.set_per_process_memory_fraction(GPU_SHARE)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.empty(0)


def seed(number: int) -> None:
    """``torch.manual_seed`` for the device in use. Without a card, it would note down each call for four kinds of
    cards, with its stack: a millisecond."""
    if on_card():
        torch.manual_seed(number)
    else:
        torch.default_generator.manual_seed(number)


def pin() -> None:
    """Takes back what a program has set: TF32 and sums in half precision, on a card and on the CPU."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cudnn.benchmark = False


def missing() -> str | None:
    """Why torch has no card, where it was to use one."""
    if os.environ.get(DEVICE) != "gpu":
        return None
    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} is built without CUDA"
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no CUDA device"
    return None


def on_card() -> bool:
    """Whether tensors are made on a card."""
    return torch.get_default_device().type == "cuda"


@contextmanager
def chosen_by_program() -> Iterator[None]:
    """Tensors are made where the program says, as when its user runs it: on the CPU if it says nothing."""
    default = torch.get_default_device()
    torch.set_default_device(None)
    try:
        yield
    finally:
        torch.set_default_device(None if default.type == "cpu" else default)


def on_cpu_first(work: Callable[[], _Outcome], failed: Callable[[_Outcome], bool]) -> _Outcome:
    """What ``work`` finds by trying: on the CPU, and only where that has failed on the card.

    A wrong guess is an error there and no more; on a card, an index out of range ends all that the process has on it.
    """
    if not on_card():
        return work()
    with chosen_by_program():
        outcome = work()
    return work() if failed(outcome) else outcome


def is_usable() -> bool:
    """Whether the card still answers: after some errors it does not, until the process ends."""
    try:
        done()
    except RuntimeError:
        return False
    return True


def done() -> None:
    """Waits for what the card still has to do; calls return before it."""
    if on_card():
        torch.cuda.synchronize()


def has_card() -> bool:
    """Whether what is checked runs on a card, if not at this moment (`on_cpu_first`)."""
    return bool(_cards)


def put(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor on the device in use."""
    return tensor.to(torch.get_default_device())


def memory(request: MemoryRequest) -> dict[str, int]:
    """Bytes that torch holds and may hold, and those of the card; nothing on the CPU.

    ``hold`` is a share of what torch may have, to be kept from now on.
    """
    if not on_card():
        return {}
    free, total = torch.cuda.mem_get_info()
    limit = int(total * GPU_SHARE)
    _held.clear()
    torch.cuda.empty_cache()
    if request.hold:
        _held.append(torch.empty(int(limit * request.hold) - torch.cuda.memory_reserved(), dtype=torch.uint8))
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
    used, peak = torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved()
    return {"used": used, "peak": peak, "limit": limit, "free": free, "total": total}


def precision(request: EmptyRequest) -> dict[str, float]:
    """How far float32 products of matrices and convolutions are from the right result, relative to it."""
    a, b = telling(), permutation()
    product = put(torch.from_numpy(a)) @ put(torch.from_numpy(b))
    image, weight = a[None, :64].reshape(1, 64, 16, -1), kernel()
    filtered = F.conv2d(put(torch.from_numpy(image)), put(torch.from_numpy(weight)), padding=1)
    errors = {"matrix product": (product, a @ b), "convolution": (filtered, image)}
    return {name: float(np.abs(error.cpu().numpy() / right - 1).max()) for name, (error, right) in errors.items()}
