"""Calls the ``generate`` of a converted module as torch's was called, and records what it returns."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from flax import nnx

from t2j_lsp.check.messages import JaxGenerated
from t2j_lsp.check.protocol import plain
from t2j_lsp.check.workers.serve import failure

from . import random as jax_random
from .build import takes_rngs, to_array
from .session import ProgramSession


def generation(session: ProgramSession) -> JaxGenerated | None:
    """What ``generate`` returns for each of torch's calls; None where none is asked for, or the module itself fails."""
    calls = session.request.generate or {}
    if not calls or session.errors:
        return None
    generated = JaxGenerated()
    if not callable(getattr(session.model, "generate", None)):
        return JaxGenerated(reasons=["its conversion has none"])
    for name, call in calls.items():
        session.take(call.inputs)
        model = session.fresh(train=False)
        try:
            inspect.signature(model.generate).bind(*session.args, **_keywords(session, model))
        except TypeError as error:
            generated.reasons.append(f"its conversion's takes other arguments: {error}")
            continue
        try:
            with jax_random.replaying(call.tape, session.request.seed) as tape:
                generated.observed[name] = plain(called(session, model), to_array)
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything
            generated.error = replace(failure(error), call=name)
            break
        if tape is not None and tape.problems:
            generated.draws[name] = tape.problems
    return generated


def called(session: ProgramSession, model: Any) -> Any:
    """What one call of a model's ``generate`` returns, with the session's inputs."""
    jax_random.rewind(session.request.seed)
    output = model.generate(*session.args, **_keywords(session, model))
    return list(output) if inspect.isgenerator(output) else output


def _keywords(session: ProgramSession, model: Any) -> dict[str, Any]:
    return {**session.kwargs, **({"rngs": nnx.Rngs(0)} if takes_rngs(model.generate) else {})}
