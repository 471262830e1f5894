"""Finds arguments with which a torch program runs: tries the plans, and guesses inputs where a plan has none."""

from __future__ import annotations

import contextlib
import functools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from t2j_lsp.check.inputs import BESIDE, RAISING, Arguments, ArraySpec, Code, InputPlan, draw, map_values
from t2j_lsp.check.messages import Prepared
from t2j_lsp.check.program.names import layer_for
from t2j_lsp.check.protocol import Namespace, Opaque, RawArray, Record, leaves, plain
from t2j_lsp.check.requests import PrepareRequest

from . import device as torch_device
from .build import build, outline, program, realise, to_array
from .guess import Guesser
from .lengths import RESOLUTION, shrunk, unpaired
from .parts import RecordedParts
from .repairs import OUT_OF_ORDER
from .sequences import sorted_sequences
from .shallower import lighter, shallower
from .smaller import SLOW, smaller

_MOST_PLANS = 24
_SEQUENCE = re.compile(r"\b(\w+) (?:must|should|has to|needs to) be (?:an? )?(tuple|list)(?: of (?:length )?(\d+)\b)?")
_NO_SEQUENCE = re.compile(r"'int' object is not (iterable|subscriptable)|non-iterable int object|'int' has no len")
_NO_NUMBER = re.compile(
    r"'(list|tuple)' object cannot be interpreted|\bint and list\b|'(list|tuple)' and 'int'"
    r"|'int' and '(list|tuple)'|not list$"
)

DRAWS, SMALL = 4, 20_000
"""So often other values are drawn for inputs that have fewer elements."""
FAR = 512.0
_LIGHT = "less of"
_MADE_BY_CALL = "its first call makes the parameter {}, which each side would draw for itself"
_MADE_UP = "sizes made up"
"""How it is said that a program doesn't run with the sizes that its calls have."""


def prepare(request: PrepareRequest) -> Prepared:
    """The first plan that runs, with its inputs drawn; or why none does."""
    problems: list[str] = []
    deadline = time.monotonic() + request.seconds
    light: dict[str, str] = {}
    heavy: list[InputPlan] = []
    plans = _smallest_first(request.plans) if request.light else list(request.plans)
    for plan in plans:
        with program(request) as (module, target), RecordedParts(request.slice) as parts:
            rng = np.random.default_rng(request.seed)
            try:
                init = _computed(_evaluated(plan.init, vars(module)), vars(module), "torch.")
                less = {} if any(plan is one for one in heavy) else _lighter(target, init, plan, vars(module), request)
                if less:
                    light |= {source: said for source, (_, said) in less.items()}
                    heavy.append(plan)
                    at = plans.index(plan) + 1
                    plans[at:at] = [*(one for one, _ in less.values()), *([] if request.light else heavy[-1:])]
                    continue
                model = build(target, init, vars(module), request.wide, rng)
                if plan.source.startswith("its parameters") and (empty := _empty(model)) is not None:
                    raise ValueError(f"{empty} has no elements")
            except Exception as error:  # noqa: BLE001 - the user's constructor may raise anything
                problems.append(f"{target.__name__}({plan.init}): {_text(error)}")
                plans += _as_sequence(plan, error, plans)
                continue
            for inputs, guesser in _tries(model, plan):
                try:
                    values = _computed(_evaluated(inputs, vars(module)), vars(module))
                    drawn = drawn_arguments(values, rng)
                    parts.watch(model)
                    began, held = time.process_time(), _parameters(model)
                    with sorted_sequences() if guesser is not None else contextlib.nullcontext():
                        run(model, drawn, vars(module), request.wide)
                    slow = time.process_time() - began > SLOW or request.small
                except Exception as error:  # noqa: BLE001 - so may its forward
                    problems.append(f"with {inputs}: {_text(error)}")
                    plans += _repaired(plan, error, plans) + _as_sequence(plan, error, plans)
                    if guesser is not None:
                        guesser.failed(error)
                    if time.monotonic() > deadline:
                        return Prepared(problems=problems)
                    continue
                if made := _parameters(model) - held:
                    return Prepared(problems=[*problems, f"with {inputs}: {_MADE_BY_CALL.format(min(made))}"])
                prepared = parts.plans()
                made_up = [_MADE_UP] if request.light and request.plans[0].source not in plan.source else []
                made_up += [light[plan.source]] if plan.source in light else []
                given, fewer = plan.init, _shallower(target, init, plan, drawn, vars(module), request, deadline)
                if fewer is not None:
                    init = given = fewer[0]
                    model = build(target, init, vars(module), request.wide, rng)
                change = _smaller(model, values, vars(module), request, deadline) if slow else None
                shown = str(inputs)
                if change is not None:
                    shown, inputs = shown if inputs.call else str(change[0]), change[0]
                    drawn = drawn_arguments(inputs, rng)
                others = variants(model, inputs, plan, rng)
                if time.monotonic() < deadline:
                    others |= _other_lengths(model, inputs, plan.source == "the t2j comment", vars(module), request)
                return Prepared(
                    init=init,
                    inputs=drawn,
                    variants=others,
                    shown=f"{target.__name__}({given})({shown})" if isinstance(target, type) else shown,
                    source=plan.source,
                    parts=prepared,
                    smaller=", ".join([*made_up, *(one[1] for one in (fewer, change) if one)]) or None,
                )
    return Prepared(problems=problems)


def _parameters(model: Any) -> set[str]:
    """The names of a model's parameters."""
    return {name for name, _ in model.named_parameters()} if isinstance(model, nn.Module) else set()


def _empty(model: Any) -> str | None:
    """A parameter without elements, as sizes make it that nobody would choose: 6 channels in 8 groups."""
    named = model.named_parameters() if isinstance(model, nn.Module) else ()
    return next((name for name, p in named if not isinstance(p, UninitializedTensorMixin) and p.numel() == 0), None)


def _smaller(
    model: Any, inputs: Arguments, namespace: Namespace, request: PrepareRequest, deadline: float
) -> tuple[Arguments, str] | None:
    """Smaller inputs that the program takes, and what became of which; None where there are none."""

    def call(arguments: Arguments) -> None:
        run(model, drawn_arguments(arguments, np.random.default_rng(request.seed)), namespace, request.wide)

    return smaller(
        model, inputs, call, lambda: time.monotonic() < deadline + request.seconds, 0.0 if request.small else SLOW
    )


def _shallower(
    target: Any,
    init: Arguments,
    plan: InputPlan,
    drawn: Arguments,
    namespace: Namespace,
    request: PrepareRequest,
    deadline: float,
) -> tuple[Arguments, str] | None:
    """Constructor arguments for fewer blocks where the program took too long, and how that is said."""
    if not request.small or not isinstance(target, type) or plan.source == "the t2j comment":
        return None

    def made(arguments: Arguments) -> tuple[Any, Callable[[], None]]:
        rng = np.random.default_rng(request.seed)
        model = build(target, arguments, namespace, request.wide, rng)
        return model, lambda: run(model, drawn, namespace, request.wide)

    return shallower(target, init, made, lambda: time.monotonic() < deadline + request.seconds)


def _smallest_first(plans: list[InputPlan]) -> list[InputPlan]:
    """Sizes that are made up for parameters first: those of calls may be a model's that is trained."""
    if any(plan.source == "the t2j comment" for plan in plans):
        return list(plans)
    return sorted(plans, key=lambda plan: not plan.source.startswith("its parameters"))


def _lighter(
    target: Any, init: Arguments, plan: InputPlan, namespace: Namespace, request: PrepareRequest
) -> dict[str, tuple[InputPlan, str]]:
    """Plans with smaller sizes and fewer blocks for one that took too much, by their sources, and what is so."""
    made = request.small and isinstance(target, type)
    if not made or plan.source == "the t2j comment" or plan.source.startswith(_LIGHT):
        return {}
    rng = np.random.default_rng(request.seed)
    lighter_ones = lighter(target, init, lambda given: outline(target, given, namespace, request.wide, rng))
    return {
        (source := f"{_LIGHT} {plan.source}, {said}{'' if stays else ', guessed'}"): (
            replace(plan, init=less, source=source) if stays else InputPlan(less, None, source),
            said,
        )
        for less, said, stays in lighter_ones
    }


def _as_sequence(plan: InputPlan, error: Exception, plans: list[InputPlan]) -> list[InputPlan]:
    """Where a constructor says that a number must be a tuple or a list, the plan with one, as long as it says or 2."""
    match = _SEQUENCE.search(str(error))
    if match is None and plan.source.startswith("its parameters") and (changed := _of_other_kind(plan, error)):
        known = {str(p.init) for p in plans}
        return [replace(plan, init=init) for init in changed if str(init) not in known and len(plans) < _MOST_PLANS]
    if match is None and _NO_SEQUENCE.search(str(error)) and plan.source.startswith("its parameters"):
        plain = {name: value for name, value in plan.init.kwargs.items() if type(value) is int}
        inits = [Arguments([], plan.init.kwargs | {name: [value] * 2}) for name, value in plain.items()]
        known = {str(p.init) for p in plans}
        return [replace(plan, init=init) for init in inits if str(init) not in known and len(plans) < _MOST_PLANS]
    value = plan.init.kwargs.get(match[1]) if match else None
    if match is None or not plan.source.startswith("its parameters") or value is None:
        return []
    values = list(value) if isinstance(value, list | tuple) else [value]
    longer = (values * int(match[3] or 2))[: int(match[3] or 2)]
    init = Arguments([], plan.init.kwargs | {match[1]: longer if match[2] == "list" else tuple(longer)})
    return [replace(plan, init=init)] if all(str(p.init) != str(init) for p in plans) else []


def _of_other_kind(plan: InputPlan, error: Exception) -> list[Arguments]:
    """Constructor arguments with a number instead of a list, or a dict instead of a number, as an error wants them."""
    given, text = plan.init.kwargs, str(error)
    if (wanted := re.search(r"values to unpack \(expected (\d+)", text)) is not None:
        lists = [(n, v[0]) for n, v in given.items() if isinstance(v, list | tuple) and v]
        return [Arguments([], given | {n: [first] * int(wanted[1])}) for n, first in lists]
    if _NO_NUMBER.search(text):
        return [Arguments([], given | {n: v[0]}) for n, v in given.items() if isinstance(v, list | tuple) and v]
    if "'int' object is not callable" in text:
        layers = {n: layer_for(n) for n, v in given.items() if type(v) is int}
        return [Arguments([], given | {n: Code(layer)}) for n, layer in layers.items() if layer is not None]
    if "must be a mapping, not int" in text:
        return [Arguments([], given | {n: {}}) for n, v in given.items() if type(v) is int]
    return []


def _repaired(plan: InputPlan, error: Exception, plans: list[InputPlan]) -> list[InputPlan]:
    """Where a residual connection doesn't fit, the plan with as many channels going in as come out, or the reverse."""
    match = re.search(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", str(error))
    if match is None or not plan.source.startswith("its parameters"):
        return []
    sizes, repaired = (int(match[1]), int(match[2])), []
    for old, new in (sizes, sizes[::-1]):
        names = [name for name, value in plan.init.kwargs.items() if value == old and not isinstance(value, bool)]
        repaired += [replace(plan, init=Arguments([], plan.init.kwargs | {name: new})) for name in names]
    known = {str(p.init) for p in plans}
    return [p for p in repaired[:2] if str(p.init) not in known and len(plans) < _MOST_PLANS]


def _tries(model: Any, plan: InputPlan) -> Iterator[tuple[Arguments, Guesser | None]]:
    if plan.inputs is not None:
        known = plan.source == "the t2j comment" or plan.inputs.call is not None
        for inputs in [plan.inputs] if known else shrunk(plan.inputs):
            yield inputs, None
        return
    said = {name: value for name, value in plan.init.kwargs.items() if isinstance(value, int) or name == RESOLUTION}
    guesser = Guesser(model, said, plan.known, plan.several)
    for inputs in guesser:
        yield inputs, guesser


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]


def _evaluated(arguments: Arguments, namespace: Namespace) -> Arguments:
    """Arguments given by a call such as ``get_inputs()``, as values."""
    if arguments.call is None:
        return arguments
    value = plain(list(eval(arguments.call, dict(namespace))), to_array)
    if any(isinstance(leaf, Opaque) for _, leaf in leaves(value)):
        raise TypeError(f"{arguments.call} gives more than tensors and plain data")
    match value:
        case [list() as args, dict() as kwargs]:
            return Arguments(args, kwargs)
        case list():
            return Arguments(value)
    raise TypeError(f"{arguments.call} gives no arguments")


def _computed(arguments: Arguments, namespace: Namespace, naming: str = "") -> Arguments:
    """Arguments in which expressions of the program's that give tensors or plain data are these values.

    Only those that name ``naming``. The other side could not evaluate them, or would compute them in its own precision.
    """

    def leaf(item: Any) -> Any:
        if not isinstance(item, Code) or naming not in item.text:
            return item
        value = plain(realise(item, namespace, False), to_array)
        whole = all(not isinstance(v, Opaque | Record) for _, v in leaves(value))
        return value if whole else item

    return Arguments(map_values(arguments.args, leaf), map_values(arguments.kwargs, leaf), arguments.call)


def variants(model: Any, inputs: Arguments, plan: InputPlan, rng: np.random.Generator) -> dict[str, Arguments]:
    """Other inputs: other values; if the first axis is that of a batch, a batch of one; those that are to raise.

    None of the last on a card: there, an error ends all that the process has on it, or there is none.
    """
    raising = [] if torch_device.has_card() else plan.raising
    variations = {f"{RAISING} ({n})": drawn_arguments(a, rng) for n, a in enumerate(raising, 1)}
    specs: list[ArraySpec] = []
    map_values((inputs.args, inputs.kwargs), lambda v: specs.append(v) if isinstance(v, ArraySpec) else None)
    if inputs.call is not None or not specs:
        return variations
    small = sum(np.prod(spec.shape) for spec in specs) < SMALL
    for number in range(1, 1 + (DRAWS if small else 1)):
        variations[f"eval output (other values {number})"] = drawn_arguments(inputs, rng)
    variations["eval output (far from zero)"] = Arguments(
        map_values(drawn_arguments(inputs, rng).args, _far), map_values(drawn_arguments(inputs, rng).kwargs, _far)
    )
    batch = specs[0].shape[0] if len(specs[0].shape) > 1 else 1

    def one(item: Any) -> Any:
        if isinstance(item, ArraySpec) and item.shape[:1] == (batch,):
            return replace(item, shape=(1, *item.shape[1:]))
        return item

    if isinstance(model, nn.Module) and batch > 1:
        single = Arguments(map_values(inputs.args, one), map_values(inputs.kwargs, one))
        variations["eval output (batch of 1)"] = drawn_arguments(single, rng)
    return variations


def _other_lengths(
    model: Any, inputs: Arguments, stated: bool, namespace: Namespace, request: PrepareRequest
) -> dict[str, Arguments]:
    """Where inputs have axes too short to tell, the first of those with longer ones that the program takes.

    Inner axes that the user has ``stated`` stay: code may rest on them. Values are drawn apart from the others', which
    so stay what they are.
    """
    rng = np.random.default_rng(request.seed)
    for longer in unpaired(inputs)[stated:] if inputs.call is None else []:
        drawn = drawn_arguments(longer, rng)
        with contextlib.suppress(Exception):
            run(model, drawn, namespace, request.wide)
            return {BESIDE if stated else "eval output (other lengths)": drawn}
    return {}


def _far(item: Any) -> Any:
    """Values whose mean is large beside their spread: what a variance by mean of squares is wrong for."""
    far = isinstance(item, np.ndarray) and item.dtype == np.float32 and item.ndim > 1 and (item < 0).any()
    return item + np.float32(FAR) if far else item


def drawn_arguments(arguments: Arguments, rng: np.random.Generator) -> Arguments:
    """Specifications replaced by values."""

    def leaf(item: Any) -> Any:
        if not isinstance(item, ArraySpec):
            return item
        array = draw(item, rng)
        if item.dtype == "bfloat16":
            return RawArray("bfloat16", (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
        return array

    return Arguments(map_values(arguments.args, leaf), map_values(arguments.kwargs, leaf))


def run(model: Any, inputs: Arguments, namespace: Namespace, wide: bool) -> Any:
    """One call in training mode, then one in evaluation mode."""
    output = None
    with (
        mock.patch.object(functional, "embedding_bag", _in_order(functional.embedding_bag)),
        mock.patch.object(torch, "tensordot", _as_long(torch.tensordot)),
    ):
        for train in (True, False):
            if isinstance(model, nn.Module):
                model.train(train)
            args = realise(inputs.args, namespace, wide)
            kwargs = realise(inputs.kwargs, namespace, wide)
            output = model(*args, **kwargs)
    return output


def _as_long(tensordot: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refusing axes of other lengths: torch stretches one of length 1, unlike its documentation."""

    @functools.wraps(tensordot)
    def checked(a: Any, b: Any, dims: Any = 2, *args: Any, **kwargs: Any) -> Any:
        if isinstance(dims, int):
            left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
        else:
            left, right = ([int(i) for i in (one if hasattr(one, "__iter__") else [one])] for one in dims)
        if any(a.shape[i] != b.shape[j] for i, j in zip(left, right, strict=False)):
            raise ValueError("contracted dimensions need to match")
        return tensordot(a, b, dims, *args, **kwargs)

    return checked


def _in_order(embedding_bag: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refusing bags out of order: torch takes them, and what it computes then means nothing."""

    @functools.wraps(embedding_bag)
    def checked(input: Any, weight: Any, offsets: Any = None, *args: Any, **kwargs: Any) -> Any:
        whole = isinstance(offsets, torch.Tensor) and offsets.dtype in (torch.int32, torch.int64)
        if whole and offsets.ndim == 1 and bool((offsets.diff() < 0).any()):
            raise ValueError(OUT_OF_ORDER)
        return embedding_bag(input, weight, offsets, *args, **kwargs)

    return checked
