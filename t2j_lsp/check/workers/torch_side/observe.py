"""Runs a torch program with given arguments and records what it computes: outputs, gradients, buffers, steps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from torch import nn

from t2j_lsp.check.inputs import map_values
from t2j_lsp.check.messages import TorchObserved
from t2j_lsp.check.program.marks import RAN
from t2j_lsp.check.requests import TorchRequest

from .build import build, give_sizes, program
from .generate import generation
from .rounding import rounded_otherwise
from .runs import Runs, set_state, state_of

_HALF = re.compile(r"\.half\b|float16|\bamp\b|autocast")


def observe(request: TorchRequest) -> TorchObserved:
    """Everything the checker compares, for one set of arguments."""
    rng = np.random.default_rng(request.seed)
    with program(request) as (module, target):
        model = build(target, request.init, vars(module), request.wide, rng)
        give_sizes(model, request, vars(module))
        if isinstance(model, nn.Module):
            set_state(model, request.state, rng, request.wide)
        runs = Runs(model, vars(module), request, rng)
        state, parameters = state_of(model), _parameters(model)
        # Before any call: a module that keeps what it computed can't be copied.
        generated = generation(runs, request)
        with rounded_otherwise(request.rounding):
            observed = runs.forward() | runs.others(request.variants)
            if isinstance(model, nn.Module):
                runs.check_control("train")
                observed |= runs.steps(request.steps)
            else:
                observed |= runs.function_gradients()
        return TorchObserved(
            state=state,
            parameters=parameters,
            observed=observed,
            cotangents=runs.cotangents,
            elements=runs.elements(),
            tapes=runs.tapes,
            halves=_mentions_half(request),
            uncontrolled=runs.uncontrolled,
            varies=runs.varies,
            on_host=runs.on_host,
            generate=generated,
            left_out=runs.budget.left_out,
            ran=RAN.reported(),
        )


def _mentions_half(request: TorchRequest) -> bool:
    """Whether a program may compute in half precision: its text says so, or its inputs or state are."""
    if any(_HALF.search(m.text) for m in request.slice.modules):
        return True
    given = request.inputs
    names: list[str] = []
    arrays = (given.args, given.kwargs, request.state or {})
    map_values(arrays, lambda v: names.append(str(getattr(v, "dtype", ""))))
    return any(_HALF.search(name) for name in names)


def _parameters(model: Any) -> dict[str, bool]:
    """The names of the parameters (tied ones under each name) and whether they are trained."""
    if not isinstance(model, nn.Module):
        return {}
    return {name: p.requires_grad for name, p in model.named_parameters(remove_duplicate=False)}
