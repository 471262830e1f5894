"""Calls the ``generate`` of a torch module with few tokens to make, and records what it returns."""

from __future__ import annotations

import copy
import inspect
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from t2j_lsp.check.inputs import Arguments, map_values
from t2j_lsp.check.messages import GenerateCall, Tape, TorchGenerated
from t2j_lsp.check.protocol import Opaque, leaves, plain
from t2j_lsp.check.requests import TorchRequest

from . import device as torch_device
from .build import realise, to_array
from .random import recording
from .runs import Runs

NEW = 5
"""Tokens that are to be made."""
SECONDS, CALLS = 10.0, 256
"""What ``generate`` may take: a loop that waits for a token to come may have no end."""
PLAIN, OTHER = "generate output", "generate output (other settings)"

_UNITS = "tokens?|steps?|iters?|iterations|chars?|words?|len|length|frames|points"
_TOTAL = re.compile(r"max_?len|(max|total|seq|sequence|target|tgt|trg|output|out)_(\w+_)?(len|length)")
_NEW = re.compile(rf"n|num|length|steps|horizon|future|((max|num|n|new|gen|pred)_)+((\w+_)?({_UNITS})|new|generate)")
_SETTINGS: tuple[tuple[str, Any, Any], ...] = (
    ("temperature|temp", 1.0, 3.0),
    ("top_?k", 3, 3),
    ("top_?p|nucleus_p", 0.9, 0.7),
    ("(eos|end|stop)(_token)?(_id|_idx)?", -1, None),
    ("(bos|sos|start)(_token)?(_id|_idx)?", 0, None),
    ("(num_)?beams?(_size|_width)?|num_samples|n_samples|batch_size", 2, None),
)
"""Names of parameters, what they get where they have no default, and among the other settings, if they get another."""
_FIXED = (("(do_|use_)?sampl(e|ing)", False, True), ("greedy", True, False))
"""Names of switches, what they get, and among the other settings."""


class _NotCalled(Exception):
    """Why the method can't be called."""


def generation(runs: Runs, request: TorchRequest) -> TorchGenerated | None:
    """What ``generate`` returns, and the calls; None where none is asked for, or no class of the workspace has it."""
    asked = request.generate
    if asked is None or not isinstance(runs.model, nn.Module) or not _defined(type(runs.model), request):
        return None
    model = runs.model
    generated = TorchGenerated()
    try:
        with _limited(runs):
            for name, call in asked.items():
                generated.observed[name], _ = _copied(runs, model, call.inputs)
            if not asked:
                _search(runs, model, generated)
    except _NotCalled as error:
        generated.reasons.append(str(error))
    except Exception as error:  # noqa: BLE001 - the user's code may raise anything
        generated.reasons.append(f"PyTorch's fails with small arguments: {type(error).__name__}: {error}"[:300])
    finally:
        runs.model = model
    return generated


def called(runs: Runs, inputs: Arguments) -> tuple[Any, Tape]:
    """What one call returns, as plain data, and its draws."""
    args = realise(inputs.args, runs.namespace, runs.wide)
    kwargs = realise(inputs.kwargs, runs.namespace, runs.wide)
    runs.model.eval()
    with torch.no_grad(), recording(runs.seed) as tape:
        output = runs.model.generate(*args, **kwargs)
        output = plain(list(output) if inspect.isgenerator(output) else output, to_array)
    return output, tape.entries


def _copied(runs: Runs, model: nn.Module, inputs: Arguments) -> tuple[Any, Tape]:
    """As `called`, by a copy of the model: a cache that it keeps is not there in the next run."""
    try:
        runs.model = copy.deepcopy(model)
    except Exception as error:  # it may hold anything; what PyTorch computes from parameters, for one
        raise _NotCalled("the module can't be copied") from error
    return called(runs, inputs)


def _defined(cls: type, request: TorchRequest) -> bool:
    own = {m.name for m in request.slice.modules}
    owner = next((c for c in cls.__mro__ if "generate" in vars(c)), None)
    return owner is not None and owner.__module__ in own and inspect.isfunction(vars(owner)["generate"])


def _search(runs: Runs, model: nn.Module, generated: TorchGenerated) -> None:
    """Adds the first call that runs, and one with other settings. Raises what the very first try raised."""
    first: Exception | None = None
    for cut in (False, True):
        for sparing in (False, True):
            try:
                inputs = _arguments(runs, model, cut, sparing)
                _add(PLAIN, runs, model, inputs, generated)
            except Exception as error:  # noqa: BLE001 - the next may run
                first = first or error
                continue
            other = _arguments(runs, model, cut, sparing, other=True)
            if str(other) != str(inputs):
                _try_other(runs, model, other, generated)
            return
    assert first is not None
    raise first


def _try_other(runs: Runs, model: nn.Module, inputs: Arguments, generated: TorchGenerated) -> None:
    try:
        _add(OTHER, runs, model, inputs, generated)
    except Exception:  # noqa: BLE001 - it need not take settings that we made up
        return


def _add(name: str, runs: Runs, model: nn.Module, inputs: Arguments, generated: TorchGenerated) -> None:
    """Adds a call, unless the tape does not hold all its randomness."""
    if torch_device.on_card():
        with torch_device.chosen_by_program():  # where a wrong guess is an error, and no more
            _copied(runs, copy.deepcopy(model).cpu(), inputs)
    torch_device.seed(1)
    output, tape = _copied(runs, model, inputs)
    torch_device.seed(2)
    again, _ = _copied(runs, model, inputs)
    if not runs.same(output, again):
        generated.reasons.append("its random numbers can't be replayed")
    elif all(isinstance(leaf, Opaque) for _, leaf in leaves(output)):
        generated.reasons.append("what it returns can't be compared")
    else:
        generated.observed[name] = output
        generated.calls[name] = GenerateCall(inputs, tape)


def _arguments(runs: Runs, model: nn.Module, cut: bool, sparing: bool, other: bool = False) -> Arguments:
    """The inputs of ``forward`` for parameters of these names, and for the first; few tokens for a length.

    With ``cut``, token ids are so short that what is made does not exceed them; with ``sparing``, only parameters
    without a default get an input of ``forward``; with ``other``, sampling has settings that are not the defaults.
    """
    given = inspect.signature(model.forward).bind(*runs.inputs.args, **runs.inputs.kwargs).arguments
    arrays = [v for v in given.values() if isinstance(v, np.ndarray)]
    length = _length(arrays[0]) if arrays else 0
    if cut and arrays and arrays[0].dtype.kind in "iu":
        shape, length = arrays[0].shape[:2], max(1, length - NEW + 1)
        given = map_values(dict(given), lambda v: _shortened(v, shape, length))
    parameters = list(inspect.signature(model.generate).parameters.values())  # type: ignore[arg-type]
    result = Arguments()
    for index, parameter in enumerate(parameters):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        needed = parameter.default is parameter.empty
        if parameter.name in given and (needed or not sparing):
            value = given[parameter.name]
        elif (value := _setting(parameter, length, other)) is parameter.empty:
            if not index and given:
                value = next(iter(given.values()))
            elif needed:
                raise _NotCalled(f"no value is known for its parameter {parameter.name}")
            else:
                continue
        if index or parameter.kind is parameter.KEYWORD_ONLY:
            result.kwargs[parameter.name] = value
        else:
            result.args.append(value)
    return result


def _setting(parameter: inspect.Parameter, length: int, other: bool) -> Any:
    """The value of a parameter by its name; ``empty`` where it says nothing, or the default will do."""
    name, needed = parameter.name.lower(), parameter.default is parameter.empty
    if _TOTAL.fullmatch(name):
        return length + NEW
    if _NEW.fullmatch(name):
        return NEW
    for pattern, value, changed in _FIXED:
        if re.fullmatch(pattern, name):
            return changed if other else value
    for pattern, value, changed in _SETTINGS:
        if re.fullmatch(pattern, name):
            return changed if other and changed is not None else value if needed else parameter.empty
    return parameter.empty


def _length(array: Any) -> int:
    return int(array.shape[min(1, array.ndim - 1)]) if array.ndim else 0


def _shortened(value: Any, shape: tuple[int, ...], length: int) -> Any:
    if not isinstance(value, np.ndarray) or value.shape[: len(shape)] != shape or not shape:
        return value
    return value[:, :length] if len(shape) > 1 else value[:length]


@contextmanager
def _limited(runs: Runs) -> Iterator[None]:
    """Ends what takes too long, at a call of a module."""
    deadline, calls = time.monotonic() + SECONDS, 0

    def before(module: nn.Module, args: Any) -> None:
        nonlocal calls
        calls += module is runs.model
        if calls > CALLS or time.monotonic() > deadline:
            raise TimeoutError(f"it takes more than {CALLS} calls of the model, or {SECONDS:g} seconds")

    handle = nn.modules.module.register_module_forward_pre_hook(before)
    try:
        yield
    finally:
        handle.remove()
